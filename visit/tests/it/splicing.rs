//! Blocks that are spliced: at one place only, and variables of regions stay visible where they are
//! used.

use anfora_ir::{Expr, ExprId};
use anfora_visit::{Binding, BindingRewrite, LetList, Mutator, RewriteError, Site, chain, copy_fresh, mutate};
use expect_test::{Expect, expect};

use crate::programs::edited;

struct OnBinding<F>(F, Option<ExprId>);

impl<F> Mutator for OnBinding<F>
where
    F: FnMut(&mut Site<'_, '_>, &str, Binding, &mut Option<ExprId>) -> Result<BindingRewrite, RewriteError>,
{
    type Error = RewriteError;

    fn rewrite_binding(&mut self, site: &mut Site<'_, '_>, binding: Binding) -> Result<BindingRewrite, RewriteError> {
        let name = site.editor.body.var_name(binding.var);
        let name = name.map_or(String::new(), |n| site.editor.cx.names.get(n).to_string());
        (self.0)(site, &name, binding, &mut self.1)
    }
}

/// The error of a rewrite of bindings, which is given a place to remember an expression in.
fn error(
    text: &str,
    on_binding: impl FnMut(&mut Site<'_, '_>, &str, Binding, &mut Option<ExprId>) -> Result<BindingRewrite, RewriteError>,
) -> String {
    let mut found = String::new();
    let mut on_binding = OnBinding(on_binding, None);
    edited(text, |editor| {
        editor.body.begin_journal();
        found = mutate(editor, &mut on_binding).expect_err("the splice is refused").to_string();
        editor.body.rollback_journal();
    });
    found
}

const BLOCK: &str = "def @main(%x: float32) { let %y = { let %a = negative(%x); let %b = negative(%a); negative(%b) }; let %z = negative(%y); %z }";

fn is_refused(name: &str, found: &str) {
    assert_eq!(
        found,
        format!(
            "the binding of `%{name}` was spliced, and hangs at another place of the program too; splice a copy: `copy_fresh`"
        )
    );
}

#[test]
fn the_same_block_twice_is_an_error() {
    // By a verdict, after the block was spliced in front.
    is_refused(
        "b",
        &error(BLOCK, |site, name, binding, _| match name {
            "y" => {
                site.splice(binding.value)?;
                Ok(BindingRewrite::Splice(binding.value))
            }
            _ => Ok(BindingRewrite::Keep),
        }),
    );
    // It stays the value as well.
    is_refused(
        "a",
        &error(BLOCK, |site, name, binding, _| {
            if name == "y" {
                site.splice(binding.value)?;
            }
            Ok(BindingRewrite::Keep)
        }),
    );
    // For the next binding it is spliced once more.
    let mut found = error(BLOCK, |_, name, binding, block| match name {
        "y" => {
            *block = Some(binding.value);
            Ok(BindingRewrite::Splice(binding.value))
        }
        "z" => Ok(BindingRewrite::Splice(block.expect("%y comes first"))),
        _ => Ok(BindingRewrite::Keep),
    });
    is_refused("y", &found);
    // It stays the value of the binding before.
    found = error(BLOCK, |_, name, binding, block| match name {
        "y" => {
            *block = Some(binding.value);
            Ok(BindingRewrite::Keep)
        }
        "z" => Ok(BindingRewrite::Splice(block.expect("%y comes first"))),
        _ => Ok(BindingRewrite::Keep),
    });
    is_refused("a", &found);
}

#[test]
fn a_part_of_the_chain_itself_is_an_error() {
    // What comes after the binding, and what is before it.
    is_refused(
        "z",
        &error(BLOCK, |_, name, binding, _| match name {
            "y" => Ok(BindingRewrite::Splice(binding.rest)),
            _ => Ok(BindingRewrite::Keep),
        }),
    );
    is_refused(
        "y",
        &error(BLOCK, |site, name, _, _| match name {
            "z" => Ok(BindingRewrite::Splice(site.editor.body.root())),
            _ => Ok(BindingRewrite::Keep),
        }),
    );
    // The chain around a block, into the block.
    is_refused(
        "y",
        &error(BLOCK, |site, name, _, _| match name {
            "b" => Ok(BindingRewrite::Splice(site.editor.body.root())),
            _ => Ok(BindingRewrite::Keep),
        }),
    );
}

#[test]
fn a_copy_is_spliced_as_often_as_one_likes() {
    let text = edited(BLOCK, |editor| {
        let mut twice = OnBinding(
            |site: &mut Site<'_, '_>, name: &str, binding: Binding, _: &mut Option<ExprId>| match name {
                "y" => {
                    let copy = copy_fresh(site.editor, binding.value);
                    site.splice(copy)?;
                    Ok(BindingRewrite::Splice(binding.value))
                }
                _ => Ok(BindingRewrite::Keep),
            },
            None,
        );
        mutate(editor, &mut twice).unwrap();
        assert_eq!(chain(editor.body, editor.body.root()).count(), 6);
    });
    assert_eq!(text.matches("let %a").count(), 2, "{text}");
}

#[test]
fn a_list_takes_a_block_once() {
    edited(BLOCK, |editor| {
        let root = editor.body.root();
        let rest = chain(editor.body, root).nth(1).unwrap().id;
        for again in [root, rest] {
            editor.body.begin_journal();
            let mut list = LetList::new();
            let tail = list.splice(editor, root).unwrap();
            let refused = list.splice(editor, again).unwrap_err();
            assert_eq!(refused, RewriteError::SplicedTwice { name: "z".to_string() });
            // What is refused changes nothing: the chain still ends.
            assert_eq!(chain(editor.body, root).take(10).count(), 2);
            assert!(editor.body.as_var(tail).is_some());
            editor.body.rollback_journal();
        }
    });
}

#[test]
fn a_chain_in_front_of_itself_is_refused() {
    let panic = std::panic::catch_unwind(|| {
        edited(BLOCK, |editor| {
            let root = editor.body.root();
            let last = chain(editor.body, root).last().unwrap().id;
            anfora_visit::splice_before(editor.body, anfora_visit::Link::Rest(last), root);
        })
    })
    .unwrap_err();
    let message = panic.downcast_ref::<String>().cloned();
    let message = message.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap();
    assert!(message.contains("a block cannot be spliced into its own chain"), "{message}");
}

// ---- Regions ----

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

/// What becomes of `REGION` under a rewrite of its bindings, which is given the variables `%a` and
/// `%c`.
fn check_region(
    mut rewrite: impl FnMut(&mut Site<'_, '_>, &str, Binding, [ExprId; 2]) -> Result<BindingRewrite, RewriteError>,
    expected: Expect,
) {
    let text = edited(REGION, |editor| {
        let find = |wanted: &str| {
            let named = |(id, expr): (ExprId, Expr)| match expr {
                Expr::Var { name: Some(name), .. } if editor.cx.names.get(name) == wanted => Some(id),
                _ => None,
            };
            editor.body.exprs().find_map(named).unwrap()
        };
        let vars = [find("a"), find("c")];
        let mut mutator = OnBinding(
            |site: &mut Site<'_, '_>, name: &str, binding: Binding, _: &mut Option<ExprId>| {
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
    // In a new value, outside of regions and in the next one.
    check_region(
        |site, name, _, [a, c]| match name {
            "d" => Ok(BindingRewrite::Value(site.editor.call_named("add", &[a, c])?)),
            "e" => {
                let inner = site.editor.call_named("negative", &[c])?;
                Ok(BindingRewrite::Value(site.editor.call_named("add", &[inner, inner])?))
            }
            _ => Ok(BindingRewrite::Keep),
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
    // In a binding that is put in, and as an atom.
    check_region(
        |site, name, _, [a, _]| match name {
            "c" => Ok(BindingRewrite::Var(a)),
            "e" => {
                let sum = site.editor.call_named("add", &[a, a])?;
                let sum = site.bind(None, sum);
                Ok(BindingRewrite::Value(site.editor.call_named("negative", &[sum])?))
            }
            _ => Ok(BindingRewrite::Keep),
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
            "b" => Ok(BindingRewrite::Value(site.editor.call_named("add", &[a, a])?)),
            "d" => {
                let sum = site.editor.call_named("add", &[c, c])?;
                Ok(BindingRewrite::Value(site.bind(None, sum)))
            }
            // A block with a region of its own.
            "e" => {
                let mut list = LetList::new();
                list.begin_region();
                let x = site.editor.body.params()[0].expr();
                let inner = site.editor.call_named("negative", &[x])?;
                let inner = list.bind(site.editor, None, inner);
                let outer = site.editor.call_named("negative", &[inner])?;
                let outer = list.bind(site.editor, None, outer);
                let var = site.editor.body.as_var(outer);
                list.end_region(site.editor.body, var.as_slice());
                let block = list.finish(site.editor, outer);
                Ok(BindingRewrite::Splice(block))
            }
            _ => Ok(BindingRewrite::Keep),
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
            |site: &mut Site<'_, '_>, name: &str, binding: Binding, _: &mut Option<ExprId>| match name {
                "f" => Ok(BindingRewrite::Value(copy_fresh(site.editor, binding.value))),
                _ => Ok(BindingRewrite::Keep),
            },
            None,
        );
        mutate(editor, &mut copied).unwrap();
    });
    assert!(after.contains("output(%b);"), "{after}");
}
