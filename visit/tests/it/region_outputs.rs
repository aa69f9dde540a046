//! Tests that variables of dataflow regions stay visible where a rewrite uses them.

use anfora_ir::{Editor, Expr, ExprId, work};
use anfora_visit::{Binding, LetList, Mutator, Rewrite, RewriteError, Site, Slot, Verdict, chain, copy_fresh, mutate};
use expect_test::{Expect, expect};

use crate::programs::{edited, var};
use crate::splicing::OnBinding;

const REGION: &str = "def @main(%x: float32) {
    dataflow {
        let %a = negative(%x);
        let %b = negative(%a);
        output(%b)
    }
    dataflow {
        let %c = negative(%b);
        let %d = negative(%c);
        output(%d)
    }
    let %e = negative(%d);
    negative(%e)
}";

/// Checks the result of a rewrite of the bindings of `REGION`. `rewrite` gets the variables `%a`
/// and `%c`.
fn check_region(
    mut rewrite: impl FnMut(&mut Site<'_>, &str, Binding, [ExprId; 2]) -> Result<Verdict, RewriteError>,
    expected: Expect,
) {
    let text = edited(REGION, |editor| {
        let vars = ["a", "c"].map(|name| var(editor, name).expr());
        let mut mutator = OnBinding(
            |site: &mut Site<'_>, name: &str, binding: Binding, _: &mut Option<ExprId>| {
                rewrite(site, name, binding, vars)
            },
            None,
        );
        mutate(editor, &mut mutator).unwrap();
    });
    expected.assert_eq(&text);
}

#[test]
fn a_variable_that_is_used_outside_of_its_region_becomes_an_output() {
    // In a new value, outside of regions and in the next region.
    check_region(
        |site, name, _, [a, c]| match name {
            "d" => Ok(Verdict::Value(site.editor.call_named("add", &[a, c])?)),
            "e" => {
                let inner = site.editor.call_named("negative", &[c])?;
                Ok(Verdict::Value(site.editor.call_named("add", &[inner, inner])?))
            }
            _ => Ok(Verdict::Keep),
        },
        expect![[r#"
            def @main(%x: float32) -> float32 {
              dataflow {
                let %a = negative(%x);
                let %b = negative(%a);
                output(%a, %b);
              }
              dataflow {
                let %c = negative(%b);
                let %d = add(%a, %c);
                output(%c, %d);
              }
              %0 = negative(%c);
              let %e = add(%0, %0);
              negative(%e)
            }
        "#]],
    );
    // In an inserted binding, and as an atom.
    check_region(
        |site, name, _, [a, _]| match name {
            "c" => Ok(Verdict::Var(a)),
            "e" => {
                let sum = site.editor.call_named("add", &[a, a])?;
                let sum = site.bind(None, sum);
                Ok(Verdict::Value(site.editor.call_named("negative", &[sum])?))
            }
            _ => Ok(Verdict::Keep),
        },
        expect![[r#"
            def @main(%x: float32) -> float32 {
              dataflow {
                let %a = negative(%x);
                let %b = negative(%a);
                output(%a, %b);
              }
              dataflow {
                let %d = negative(%a);
                output(%d);
              }
              let %0 = add(%a, %a);
              let %e = negative(%0);
              negative(%e)
            }
        "#]],
    );
}

#[test]
fn a_variable_that_is_used_in_its_region_stays_in_it() {
    check_region(
        |site, name, _, [a, c]| match name {
            "b" => Ok(Verdict::Value(site.editor.call_named("add", &[a, a])?)),
            "d" => {
                let sum = site.editor.call_named("add", &[c, c])?;
                Ok(Verdict::Value(site.bind(None, sum)))
            }
            // A block with a region of its own.
            "e" => {
                let mut list = LetList::new();
                list.begin_region();
                let x = site.editor.body.params()[0].expr();
                let inner = site.editor.call_named("negative", &[x])?;
                let inner = list.bind(&mut site.editor, None, inner);
                let outer = site.editor.call_named("negative", &[inner])?;
                let outer = list.bind(&mut site.editor, None, outer);
                let var = site.editor.body.as_var(outer);
                list.end_region(site.editor.body, var.as_slice());
                let block = list.finish(&mut site.editor, outer);
                Ok(Verdict::Splice(block))
            }
            _ => Ok(Verdict::Keep),
        },
        expect![[r#"
            def @main(%x: float32) -> float32 {
              dataflow {
                let %a = negative(%x);
                let %b = add(%a, %a);
                output(%b);
              }
              dataflow {
                let %c = negative(%b);
                let %0 = add(%c, %c);
                let %d = %0;
                output(%d);
              }
              dataflow {
                let %1 = negative(%x);
                let %2 = negative(%1);
                output(%2);
              }
              negative(%2)
            }
        "#]],
    );
}

#[test]
fn a_recursive_function_that_gets_a_new_value_stays_in_its_region() {
    let text = "def @main(%x: float32) {
        dataflow {
            let %f: fn(float32) -> float32 = fn (%v: float32) -> float32 { %f(%v) };
            let %b = %f(%x);
            output(%b)
        }
        %b
    }";
    let after = edited(text, |editor| {
        let mut copied = OnBinding(
            |site: &mut Site<'_>, name: &str, binding: Binding, _: &mut Option<ExprId>| match name {
                "f" => Ok(Verdict::Value(copy_fresh(&mut site.editor, binding.value))),
                _ => Ok(Verdict::Keep),
            },
            None,
        );
        mutate(editor, &mut copied).unwrap();
    });
    assert!(after.contains("output(%b);"), "{after}");
}

/// Replaces values by the names of their variables, and drops bindings that get no value.
fn put_values(text: &str, values: impl FnOnce(&mut Editor<'_>) -> Vec<(&'static str, Option<ExprId>)>) -> String {
    edited(text, |editor| {
        let values = values(editor);
        let mut puts = OnBinding(
            |_: &mut Site<'_>, name: &str, _: Binding, _: &mut Option<ExprId>| {
                Ok(match values.iter().find(|(of, _)| *of == name) {
                    Some((_, Some(value))) => Verdict::Value(*value),
                    Some((_, None)) => Verdict::Drop,
                    None => Verdict::Keep,
                })
            },
            None,
        );
        mutate(editor, &mut puts).unwrap();
    })
}

#[test]
fn what_was_there_before_the_walk_is_looked_into() {
    // A part of the program that moves out of the region.
    let text = "def @main(%x: float32) {
        dataflow {
            let %a = negative(%x);
            let %f = fn (%v: float32) -> float32 { add(%v, %a) };
            let %b = negative(%a);
            output(%b)
        }
        let %g = fn (%v: float32) -> float32 { negative(%v) };
        let %c = %g(%b);
        %c
    }";
    let after = put_values(text, |editor| {
        let f = var(editor, "f");
        let f = chain(editor.body, editor.body.root()).find(|b| b.var == f).unwrap();
        vec![("f", None), ("g", Some(f.value))]
    });
    assert!(after.contains("output(%a, %b);"), "{after}");

    // An expression made before the walk, with an operand that has operands.
    let after = put_values(REGION, |editor| {
        let a = var(editor, "a").expr();
        let inner = editor.call_named("negative", &[a]).unwrap();
        vec![("e", Some(editor.call_named("add", &[inner, a]).unwrap()))]
    });
    assert!(after.contains("output(%a, %b);") && after.contains("output(%d);"), "{after}");
}

/// Wraps each call of a function value in an operator.
struct NegatesCalls;

impl Mutator for NegatesCalls {
    type Error = RewriteError;
    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, RewriteError> {
        match site.editor.body.expr(id) {
            Expr::Call { .. } => Ok(Rewrite::Replace(site.editor.call_named("negative", &[id])?)),
            _ => Ok(Rewrite::Keep),
        }
    }
}

#[test]
fn a_recursive_call_in_its_function_is_no_use_outside() {
    let text = "def @main(%x: float32) {
        dataflow {
            let %f: fn(float32) -> float32 = fn (%v: float32) -> float32 { let %w = %f(%v); %w };
            let %b = %f(%x);
            output(%b)
        }
        %b
    }";
    let after = edited(text, |editor| mutate(editor, &mut NegatesCalls).unwrap());
    assert!(after.contains("output(%b);") && after.matches("negative(").count() == 2, "{after}");
}

/// In a region, a value block with a region of its own: uses of variables that the block binds are
/// not uses outside, whatever the block becomes.
#[test]
fn a_block_binds_what_it_uses() {
    struct Negates;
    impl Mutator for Negates {
        type Error = RewriteError;
        fn rewrite_value(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
            let Some(b) = slot.binding(site.editor.body, value) else { return Ok(Verdict::Keep) };
            Ok(Verdict::Value(site.editor.call_named("negative", &[b.value])?))
        }
    }
    let text = "def @main(%x: float32) {
        dataflow {
            let %a = { dataflow { let %i = negative(%x); let %j = add(%i, %x); output(%j) } negative(%j) };
            let %b = negative(%a);
            output(%b)
        }
        %b
    }";
    let after = edited(text, |editor| mutate(editor, &mut Negates).unwrap());
    assert!(after.contains("output(%j);") && after.contains("output(%b);"), "{after}");
}

/// Returns the accesses of a rewrite in which values of `n` regions share a new expression, which
/// consists of `n` calls of a variable.
fn work_of_sharing(n: usize, of_region: bool) -> u64 {
    let regions: String = (0..n)
        .map(|i| format!("dataflow {{ let %a{i} = negative(%x); let %b{i} = negative(%a{i}); output(%b{i}) }}\n"))
        .collect();
    let mut accesses = 0;
    let after = edited(&format!("def @main(%x: float32) {{ {regions} %b0 }}"), |editor| {
        let of = if of_region { var(editor, "a0").expr() } else { editor.body.params()[0].expr() };
        let mut shares = OnBinding(
            |site: &mut Site<'_>, name: &str, _: Binding, shared: &mut Option<ExprId>| {
                if !name.starts_with('b') {
                    return Ok(Verdict::Keep);
                }
                let value = match *shared {
                    Some(made) => made,
                    None => (0..n).try_fold(of, |value, _| site.editor.call_named("negative", &[value]))?,
                };
                *shared = Some(value);
                Ok(Verdict::Value(value))
            },
            None,
        );
        let before = work::count();
        mutate(editor, &mut shares).unwrap();
        accesses = work::count() - before;
    });
    assert_eq!(after.contains("output(%a0, "), of_region, "{after}");
    accesses
}

#[test]
fn what_many_regions_share_is_looked_into_once() {
    for of_region in [false, true] {
        let (small, large) = (work_of_sharing(50, of_region), work_of_sharing(400, of_region));
        assert!(small > 0 && large < 10 * small, "{small} accesses for 50 regions, {large} for 400");
    }
}

/// Replaces each If by its first branch.
struct TakesThen;

impl Mutator for TakesThen {
    type Error = RewriteError;

    fn expand(&mut self, site: &mut Site<'_>, _: Slot, value: ExprId) -> Result<Option<ExprId>, RewriteError> {
        Ok(match site.editor.body.expr(value) {
            Expr::If { then_block, .. } => Some(then_block),
            _ => None,
        })
    }
}

/// Returns the accesses of expanding `n` Ifs, each in a `fn` in a region in the one around it.
fn work_of_expanding(n: usize) -> u64 {
    let mut text = String::from("def @main(%x: float32) {");
    for i in 0..n {
        let outer = if i == 0 { "%x".to_string() } else { format!("%a{}", i - 1) };
        text += &format!("dataflow {{ let %a{i} = negative({outer}); let %f{i} = fn () {{ let %r{i} = if (true) {{");
    }
    text += &format!("%a{}", n - 1);
    for i in (0..n).rev() {
        text += &format!("}} else {{ %a{i} }}; %r{i} }}; output(%f{i}); }} %f{i}()");
    }
    text += "}";
    let mut accesses = 0;
    edited(&text, |editor| {
        let before = work::count();
        mutate(editor, &mut TakesThen).unwrap();
        accesses = work::count() - before;
    });
    accesses
}

#[test]
fn nested_blocks_are_not_searched_at_each_expansion() {
    let (small, large) = (work_of_expanding(50), work_of_expanding(400));
    assert!(small > 0 && large < 10 * small, "{small} accesses for 50 blocks, {large} for 400");
}

#[test]
fn a_variable_that_an_expanded_block_uses_becomes_an_output() {
    /// Replaces `%e` by a block with a `fn` that uses `%a`, whose region has ended.
    struct Expands(ExprId, bool);
    impl Mutator for Expands {
        type Error = RewriteError;
        fn expand(&mut self, site: &mut Site<'_>, slot: Slot, _: ExprId) -> Result<Option<ExprId>, RewriteError> {
            let name = slot.var.and_then(|v| site.editor.body.binding_name(site.editor.cx, v.expr()));
            if name != Some("e") || std::mem::replace(&mut self.1, true) {
                return Ok(None);
            }
            let editor = &mut site.editor;
            let mut inside = LetList::new();
            let negated = editor.call_named("negative", &[self.0])?;
            let result = inside.bind(editor, None, negated);
            let block = inside.finish(editor, result);
            let lambda = editor.body.push_lambda(&[], None, editor.cx.attrs.empty());
            let lambda = editor.lambda(lambda, block);
            let mut outside = LetList::new();
            let f = outside.bind(editor, None, lambda);
            let call = editor.call(f, &[], editor.cx.attrs.empty())?;
            let result = outside.bind(editor, None, call);
            Ok(Some(outside.finish(editor, result)))
        }
    }
    let after = edited(REGION, |editor| {
        let a = var(editor, "a").expr();
        mutate(editor, &mut Expands(a, false)).unwrap();
    });
    assert!(after.contains("output(%a, %b);"), "{after}");
}

#[test]
fn a_node_that_was_walked_in_a_region_and_stands_in_an_expanded_block_keeps_its_variables() {
    /// Replaces `%e` by a block that uses the operand of `%b`, a node of a region that has ended.
    struct Shares(ExprId, bool);
    impl Mutator for Shares {
        type Error = RewriteError;
        fn expand(&mut self, site: &mut Site<'_>, slot: Slot, _: ExprId) -> Result<Option<ExprId>, RewriteError> {
            let name = slot.var.and_then(|v| site.editor.body.binding_name(site.editor.cx, v.expr()));
            if name != Some("e") || std::mem::replace(&mut self.1, true) {
                return Ok(None);
            }
            let editor = &mut site.editor;
            let mut list = LetList::new();
            let call = editor.call_named("negative", &[self.0])?;
            let result = list.bind(editor, None, call);
            Ok(Some(list.finish(editor, result)))
        }
    }
    let text = "def @main(%x: float32) {
        dataflow { let %a = negative(%x); let %b = negative(negative(%a)); output(%b) }
        let %e = negative(%b);
        %e
    }";
    let after = edited(text, |editor| {
        let b = chain(editor.body, editor.body.root()).nth(1).unwrap();
        let operand = editor.body.operands_of(b.value)[0];
        mutate(editor, &mut Shares(operand, false)).unwrap();
    });
    assert!(after.contains("output(%a, %0, %b);"), "{after}");
}
