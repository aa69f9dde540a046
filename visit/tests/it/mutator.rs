//! Tests of mutators: verdicts, regions, types, sharing, scopes.

use anfora_ir::{BlockKind, Editor, Expr, ExprId, LinkWatch, Literal};
use anfora_visit::{
    Binding, Edits, Link, Mutator, Rewrite, RewriteError, Scope, Site, Slot, Verdict, copy_fresh, mutate, mutate_at,
    post_order_rewrite, substitute, unlink_let,
};
use expect_test::{Expect, expect};

use crate::programs::{edited, var};

/// The action of a test at each binding whose variable has a name.
type OnBinding = fn(&mut Site<'_>, &str, Binding) -> Result<Verdict, RewriteError>;
/// The action of a test at each node. It gets the operator's name.
type OnExpr = fn(&mut Site<'_>, &str, ExprId) -> Result<Rewrite, RewriteError>;

struct Test {
    on_binding: OnBinding,
    on_expr: OnExpr,
}

fn op_name(site: &Site<'_>, id: ExprId) -> String {
    match site.editor.body.expr(id) {
        Expr::CallOp { op, .. } => site.editor.cx.ops.get(op).name.to_string(),
        _ => String::new(),
    }
}

impl Mutator for Test {
    type Error = RewriteError;

    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, RewriteError> {
        let name = op_name(site, id);
        (self.on_expr)(site, &name, id)
    }

    fn rewrite_value(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        let Some(binding) = slot.binding(site.editor.body, value) else { return Ok(Verdict::Keep) };
        let name = site.editor.body.var_name(binding.var);
        let name = name.map_or(String::new(), |n| site.editor.cx.names.get(n).to_string());
        (self.on_binding)(site, &name, binding)
    }
}

fn check_bindings(text: &str, on_binding: OnBinding, expected: Expect) {
    let text = edited(text, |editor| {
        mutate(editor, &mut Test { on_binding, on_expr: |_, _, _| Ok(Rewrite::Keep) }).unwrap();
    });
    expected.assert_eq(&text);
}

fn check_exprs(text: &str, on_expr: OnExpr, expected: Expect) {
    let text = edited(text, |editor| {
        mutate(editor, &mut Test { on_binding: |_, _, _| Ok(Verdict::Keep), on_expr }).unwrap();
    });
    expected.assert_eq(&text);
}

const REGIONS: &str = "def @main(%x: float32) {
    dataflow {
        let %a = negative(%x);
        let %b = negative(%a);
        let %c = negative(%b);
        output(%c)
    }
    dataflow {
        let %d = negative(%c);
        output(%d)
    }
    let %e = negative(%d);
    %e
}";

#[test]
fn nothing_changed_means_nothing_written() {
    check_bindings(
        REGIONS,
        |_, _, _| Ok(Verdict::Keep),
        expect![[r#"
        unchanged
    "#]],
    );
    // An existing alias stays by default.
    check_bindings(
        "def @main(%x: float32) { let %y = %x; %y }",
        |_, _, _| Ok(Verdict::Keep),
        expect![[r#"
        unchanged
    "#]],
    );
}

#[test]
fn a_variable_is_replaced_and_its_region_starts_with_the_next() {
    check_bindings(
        REGIONS,
        |site, name, _| {
            let x = site.editor.body.params()[0].expr();
            Ok(if name == "a" { Verdict::Var(x) } else { Verdict::Keep })
        },
        expect![[r#"
            def @main(%x: float32) -> float32 {
              dataflow {
                let %b = negative(%x);
                let %c = negative(%b);
                output(%c);
              }
              dataflow {
                let %d = negative(%c);
                output(%d);
              }
              let %e = negative(%d);
              %e
            }
        "#]],
    );
}

#[test]
fn a_region_that_loses_all_its_bindings_is_gone() {
    check_bindings(
        REGIONS,
        |site, name, binding| {
            let operand = site.editor.body.operands_of(binding.value)[0];
            Ok(if "abc".contains(name) { Verdict::Var(operand) } else { Verdict::Keep })
        },
        expect![[r#"
            def @main(%x: float32) -> float32 {
              dataflow {
                let %d = negative(%x);
                output(%d);
              }
              let %e = negative(%d);
              %e
            }
        "#]],
    );
}

#[test]
fn what_replaces_an_output_becomes_one() {
    check_bindings(
        REGIONS,
        |site, name, binding| {
            let operand = site.editor.body.operands_of(binding.value)[0];
            Ok(if name == "c" { Verdict::Var(operand) } else { Verdict::Keep })
        },
        expect![[r#"
            def @main(%x: float32) -> float32 {
              dataflow {
                let %a = negative(%x);
                let %b = negative(%a);
                output(%b);
              }
              dataflow {
                let %d = negative(%b);
                output(%d);
              }
              let %e = negative(%d);
              %e
            }
        "#]],
    );
}

#[test]
fn a_binding_expands_into_several_in_its_region() {
    check_bindings(
        REGIONS,
        |site, name, binding| {
            if !"ae".contains(name) {
                return Ok(Verdict::Keep);
            }
            let fresh = site.editor.cx.names.intern("fresh");
            let x = site.editor.body.params()[0].expr();
            let sum = site.editor.call_named("add", &[x, x])?;
            let sum = site.bind(Some(fresh), sum);
            let value = site.editor.call_named("multiply", &[sum, sum])?;
            let _ = binding;
            Ok(Verdict::Value(value))
        },
        expect![[r#"
            def @main(%x: float32) -> float32 {
              dataflow {
                let %fresh = add(%x, %x);
                let %a = multiply(%fresh, %fresh);
                let %b = negative(%a);
                let %c = negative(%b);
                output(%c);
              }
              dataflow {
                let %d = negative(%c);
                output(%d);
              }
              let %fresh$1 = add(%x, %x);
              let %e = multiply(%fresh$1, %fresh$1);
              %e
            }
        "#]],
    );
}

#[test]
fn dead_bindings_are_dropped() {
    check_bindings(
        "def @main(%x: float32) { let %dead = negative(%x); let %y = negative(%x); let %dead = negative(%y); %y }",
        |_, name, _| Ok(if name == "dead" { Verdict::Drop } else { Verdict::Keep }),
        expect![[r#"
            def @main(%x: float32) -> float32 {
              let %y = negative(%x);
              %y
            }
        "#]],
    );
}

#[test]
fn a_block_is_spliced() {
    // The branch of an If with a known condition.
    let on_binding: OnBinding = |site, _, binding| {
        if let Expr::If { cond, then_block, .. } = site.editor.body.expr(binding.value)
            && let Some(literal) = site.editor.body.as_literal(cond)
            && site.editor.cx.literals.get(literal).as_scalar::<bool>() == Some(true)
        {
            return Ok(Verdict::Splice(then_block));
        }
        if matches!(site.editor.body.expr(binding.value), Expr::Let { .. }) {
            return Ok(Verdict::Splice(binding.value));
        }
        Ok(Verdict::Keep)
    };
    check_bindings(
        "def @main(%x: float32) {
            let %y = if (true) { let %a = negative(%x); let %z = { let %b = negative(%a); negative(%b) }; %z } else { %x };
            let %v = negative(%y);
            %v
        }",
        on_binding,
        expect![[r#"
            def @main(%x: float32) -> float32 {
              let %a = negative(%x);
              let %b = negative(%a);
              let %z = negative(%b);
              let %v = negative(%z);
              %v
            }
        "#]],
    );
    check_bindings(
        "def @main(%x: float32) {
            dataflow {
                let %y = { let %a = negative(%x); negative(%a) };
                let %z = { let %b = negative(%y); negative(%b) };
                output(%z)
            }
            %z
        }",
        on_binding,
        expect![[r#"
            def @main(%x: float32) -> float32 {
              dataflow {
                let %a = negative(%x);
                let %y = negative(%a);
                let %b = negative(%y);
                let %z = negative(%b);
                output(%z);
              }
              %z
            }
        "#]],
    );
}

/// Replaces `multiply(x, 1f)` by `x`.
const UNIT: OnExpr = |site, name, id| {
    if name == "multiply"
        && let &[x, one] = site.editor.body.operands_of(id)
        && let Some(one) = site.editor.body.as_literal(one)
        && *site.editor.cx.literals.get(one) == Literal::scalar(1f32)
    {
        return Ok(Rewrite::Replace(x));
    }
    Ok(Rewrite::Keep)
};

#[test]
fn nodes_are_replaced_wherever_they_stand() {
    check_exprs(
        "def @main(%x: float32, %c: bool) {
            let %a = multiply(%x, 1f);
            let %b = add(multiply(multiply(%a, 1f), 1f), %a);
            let %f = fn(%p: float32) { let %q = multiply(%p, 1f); %q };
            let %v = { let %i = multiply(%b, 1f); multiply(%i, 1f) };
            if (%c) { let %t = %f(%v); multiply(%t, 1f) } else { multiply(%b, 1f) }
        }",
        UNIT,
        expect![[r#"
            def @main(%x: float32, %c: bool) -> float32 {
              let %b = add(%x, %x);
              let %f = fn (%p: float32) { %p };
              if (%c) {
                let %t = %f(%b);
                %t
              } else { %b }
            }
        "#]],
    );
}

#[test]
fn a_shared_node_is_rewritten_once_and_stays_shared() {
    check_exprs(
        "def @main(%x: float32) { %g = negative(multiply(%x, 1f)); %h = multiply(%g, 1f); (%g, %h, (%g, %h)) }",
        UNIT,
        expect![[r#"
            def @main(%x: float32) -> (float32, float32, (float32, float32)) {
              %0 = negative(%x);
              (%0, %0, (%0, %0))
            }
        "#]],
    );
    let mut calls = 0;
    edited("def @main(%x: float32) { %g = negative(%x); (%g, (%g, %g)) }", |editor| {
        post_order_rewrite(editor, Link::Root, &mut |_: &mut anfora_ir::Editor<'_>, pre, post| {
            assert_eq!(pre, post);
            calls += 1;
            Ok::<_, RewriteError>(post)
        })
        .unwrap();
    });
    assert_eq!(calls, 3);
}

#[test]
fn types_become_more_specific_down_to_where_they_stay_the_same() {
    let text = edited(
        "def @main(%x: Tensor[?, float32], %y: Tensor[(8,), float32], %c: bool) -> Tensor[?, float32] {
            let %a = negative(%x);
            let %b = if (%c) { negative(%a) } else { add(%a, %x) };
            let %f = fn() { %b };
            let %p = less(%b, %b);
            let %t = (%p, %b);
            %t.1
        }",
        |editor| {
            let (a, b, f, p) = (var(editor, "a"), var(editor, "b"), var(editor, "f"), var(editor, "p"));
            let y = editor.body.params()[1].expr();
            let (vector, flag) = (editor.body.ty(y), editor.body.ty(p.expr()));
            let on_binding: OnBinding = |site, name, _| {
                let y = site.editor.body.params()[1].expr();
                Ok(if name == "a" { Verdict::Var(y) } else { Verdict::Keep })
            };
            mutate(editor, &mut Test { on_binding, on_expr: |_, _, _| Ok(Rewrite::Keep) }).unwrap();
            // The other branch still adds %y first, so both branches are vectors.
            assert_eq!(editor.body.ty(b.expr()), vector);
            assert_eq!(editor.body.ty(p.expr()), flag);
            let function = editor.cx.types.as_function(editor.body.ty(f.expr())).unwrap();
            assert_eq!(function.ret, vector);
            assert_ne!(editor.body.ty(a.expr()), vector, "a binding that is gone is left alone");
            let root = editor.body.root();
            assert_eq!(editor.body.type_of(root), vector);
        },
    );
    expect![[r#"
        def @main(%x: Tensor[?, float32], %y: Tensor[(8,), float32], %c: bool) -> Tensor[?, float32] {
          let %b = if (%c) { negative(%y) } else { add(%y, %x) };
          let %f = fn () { %b };
          let %p = less(%b, %b);
          let %t = (%p, %b);
          %t.1
        }
    "#]]
    .assert_eq(&text);
}

/// A shared node with a more specific type passes it on to all its uses as a value or tail, even
/// where the walk reaches it again.
#[test]
fn the_type_of_a_shared_node_is_passed_on_each_time() {
    let text = "def @main(%x: Tensor[?, float32], %y: Tensor[(8,), float32], %c: bool) -> Any {
        %g = (%x, %x);
        let %a = %g.0;
        let %b = %g;
        let %d = if (%c) { %g } else { %g };
        let %f = fn () { %g };
        let %e = { let %i = negative(%a); %g };
        (%a, %b, %d, %f, %e)
    }";
    let check = |rewrite: fn(&mut Editor<'_>, [ExprId; 2])| {
        edited(text, |editor| {
            let params = [0, 1].map(|i| editor.body.params()[i].expr());
            let vars = ["b", "d", "e"].map(|name| var(editor, name));
            rewrite(editor, params);
            let vector = editor.body.ty(params[1]);
            let pair = editor.cx.types.tuple(&[vector, vector]);
            for var in vars {
                let name = editor.body.var_name(var).map(|n| editor.cx.names.get(n));
                assert_eq!(editor.cx.type_text(editor.body.ty(var.expr())), editor.cx.type_text(pair), "{name:?}");
            }
        })
    };
    check(|editor, [x, y]| {
        let x = editor.body.as_var(x).unwrap();
        substitute(editor, Link::Root, &[(x, y)]).unwrap();
    });
    // The same if the shared node is overwritten in place.
    check(|editor, [x, y]| {
        struct Replaces([ExprId; 2]);
        impl Mutator for Replaces {
            type Error = RewriteError;
            fn enter(&mut self, site: &mut Site<'_>, scope: Scope) -> Result<(), RewriteError> {
                let x = site.editor.body.as_var(self.0[0]).unwrap();
                if scope == Scope::Block(BlockKind::Root) { site.replace_var(x, self.0[1]) } else { Ok(()) }
            }
        }
        mutate(editor, &mut Replaces([x, y])).unwrap();
    });
}

#[test]
fn a_less_specific_type_is_refused() {
    edited("def @main(%x: Tensor[?, float32], %y: Tensor[(8,), float32]) { let %a = negative(%y); %a }", |editor| {
        let on_binding: OnBinding = |site, _, _| Ok(Verdict::Var(site.editor.body.params()[0].expr()));
        let error = mutate(editor, &mut Test { on_binding, on_expr: |_, _, _| Ok(Rewrite::Keep) }).unwrap_err();
        expect!["a value of type Tensor[?, float32] cannot replace one of type Tensor[(8,), float32]"]
            .assert_eq(&error.to_string());
    });
    edited("def @main(%x: float32) { let %a = negative(%x); %a }", |editor| {
        let on_binding: OnBinding = |_, _, binding| Ok(Verdict::Var(binding.value));
        let error = mutate(editor, &mut Test { on_binding, on_expr: |_, _, _| Ok(Rewrite::Keep) }).unwrap_err();
        assert_eq!(error, RewriteError::NotAnAtom);
    });
}

/// Replaces the condition variable of an If by its value in the branches.
struct KnownConditions;

impl Mutator for KnownConditions {
    type Error = RewriteError;
    const EDITS: Edits = Edits::Scoped;

    fn enter(&mut self, site: &mut Site<'_>, scope: Scope) -> Result<(), RewriteError> {
        let (id, known) = match scope {
            Scope::Block(BlockKind::Then(id)) => (id, true),
            Scope::Block(BlockKind::Else(id)) => (id, false),
            _ => return Ok(()),
        };
        if let Expr::If { cond, .. } = site.editor.body.expr(id)
            && let Some(var) = site.editor.body.as_var(site.resolve(cond))
        {
            let literal = site.editor.literal(Literal::scalar(known));
            site.assume(var, literal)?;
        }
        Ok(())
    }
}

fn check_known(text: &str, expected: Expect) {
    let text = edited(text, |editor| mutate(editor, &mut KnownConditions).unwrap());
    expected.assert_eq(&text);
}

#[test]
fn what_is_assumed_holds_in_its_block_only() {
    check_known(
        "def @main(%c: bool, %d: bool) {
            let %a = if (%c) { if (%d) { (%c, %d) } else { (%c, %d) } } else { (%c, %d) };
            (%a, %c)
        }",
        expect![[r#"
            def @main(%c: bool, %d: bool) -> ((bool, bool), bool) {
              let %a = if (%c) {
                if (%d) { (true, true) } else { (true, false) }
              } else { (false, %d) };
              (%a, %c)
            }
        "#]],
    );
}

#[test]
fn a_scoped_rewrite_copies_shared_nodes_on_each_path() {
    check_known(
        "def @main(%c: bool) {
            %g = (%c, (%c, 1));
            (if (%c) { let %t = (%g, %g); %t } else { let %e = (%g, %g); %e }, %g)
        }",
        expect![[r#"
            def @main(%c: bool) -> (((bool, (bool, Tensor[(), int32, 1])), (bool, (bool, Tensor[(), int32, 1]))), (bool, (bool, Tensor[(), int32, 1]))) {
              (if (%c) {
                %0 = (true, (true, 1));
                let %t = (%0, %0);
                %t
              } else {
                %1 = (false, (false, 1));
                let %e = (%1, %1);
                %e
              }, (%c, (%c, 1)))
            }
        "#]],
    );
}

#[test]
fn a_shared_node_that_holds_blocks_is_copied_for_each_scope() {
    check_known(
        "def @main(%c: bool) {
            %g = (if (%c) { %c } else { false }, %c);
            (if (%c) { let %t = (%g, %g); %t } else { let %e = (%g, %g); %e }, %g)
        }",
        expect![[r#"
            def @main(%c: bool) -> (((bool, bool), (bool, bool)), (bool, bool)) {
              (if (%c) {
                %0 = (if (true) { true } else { false }, true);
                let %t = (%0, %0);
                %t
              } else {
                %1 = (if (false) { false } else { false }, false);
                let %e = (%1, %1);
                %e
              }, (if (%c) { true } else { false }, %c))
            }
        "#]],
    );
}

#[test]
fn the_original_is_kept_beside_the_copy() {
    let text = edited("def @main(%x: float32) { let %a = negative(negative(%x)); %a }", |editor| {
        let mut pairs = Vec::new();
        post_order_rewrite(editor, Link::Root, &mut |editor: &mut anfora_ir::Editor<'_>, pre, post| {
            pairs.push((pre, post));
            let (before, after) = (editor.body.operands_of(pre), editor.body.operands_of(post));
            if before == after {
                let x = before[0];
                return editor.call_named("add", &[x, x]).map_err(RewriteError::from);
            }
            assert!(matches!(editor.body.expr(before[0]), Expr::CallOp { .. }));
            assert_ne!(before, after);
            Ok(post)
        })
        .unwrap();
        assert_eq!(pairs.len(), 2);
        assert_eq!(pairs[0].0, pairs[0].1);
        assert_ne!(pairs[1].0, pairs[1].1);
    });
    expect![[r#"
        def @main(%x: float32) -> float32 {
          let %a = negative(add(%x, %x));
          %a
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn the_walk_may_begin_at_a_link_within_a_region() {
    let text = edited(REGIONS, |editor| {
        let first = editor.body.root();
        let on_binding: OnBinding = |site, name, binding| {
            let operand = site.editor.body.operands_of(binding.value)[0];
            Ok(if name == "b" { Verdict::Var(operand) } else { Verdict::Keep })
        };
        mutate_at(editor, Link::Rest(first), &mut Test { on_binding, on_expr: |_, _, _| Ok(Rewrite::Keep) }).unwrap();
    });
    expect![[r#"
        def @main(%x: float32) -> float32 {
          dataflow {
            let %a = negative(%x);
            let %c = negative(%a);
            output(%c);
          }
          dataflow {
            let %d = negative(%c);
            output(%d);
          }
          let %e = negative(%d);
          %e
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn the_authors_error_ends_the_walk() {
    #[derive(Debug, PartialEq)]
    enum Mine {
        Found(ExprId),
        Rewrite(RewriteError),
    }
    impl From<RewriteError> for Mine {
        fn from(error: RewriteError) -> Mine {
            Mine::Rewrite(error)
        }
    }
    struct Find;
    impl Mutator for Find {
        type Error = Mine;
        fn rewrite_expr(&mut self, _: &mut Site<'_>, id: ExprId) -> Result<Rewrite, Mine> {
            Err(Mine::Found(id))
        }
    }
    edited("def @main(%x: float32) { let %a = negative(%x); %a }", |editor| {
        let value = Binding::of(editor.body, editor.body.root()).unwrap().value;
        assert_eq!(mutate(editor, &mut Find), Err(Mine::Found(value)));
    });
}

/// Checks that every `enter` has its `exit`, with regions inside of their blocks.
#[derive(Default)]
struct Nesting(Vec<&'static str>, usize);

impl Mutator for Nesting {
    type Error = RewriteError;
    fn enter(&mut self, site: &mut Site<'_>, scope: Scope) -> Result<(), RewriteError> {
        if scope == Scope::Region {
            assert!(site.in_region());
            self.0.push("region");
            self.1 += 1;
        } else {
            self.0.push("block");
            assert_eq!(site.depth(), self.0.iter().filter(|&&w| w == "block").count());
        }
        Ok(())
    }
    fn exit(&mut self, _: &mut Site<'_>, scope: Scope) -> Result<(), RewriteError> {
        assert_eq!(self.0.pop(), Some(if scope == Scope::Region { "region" } else { "block" }));
        Ok(())
    }
}

#[test]
fn blocks_and_regions_are_entered_and_left() {
    let mut nesting = Nesting::default();
    let text = edited(REGIONS, |editor| mutate(editor, &mut nesting).unwrap());
    assert_eq!(text, "unchanged\n");
    assert_eq!((nesting.0.len(), nesting.1), (0, 2));
}

/// Overwrites a link of the program in a callback.
struct Trespasser(fn(&mut Site<'_>, ExprId));

impl Mutator for Trespasser {
    type Error = RewriteError;
    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, RewriteError> {
        (self.0)(site, id);
        Ok(Rewrite::Keep)
    }
}

#[test]
fn a_link_that_is_overwritten_during_the_walk_is_reported() {
    let trespasses: [fn(&mut Site<'_>, ExprId); 4] = [
        |site, _| {
            unlink_let(site.editor.body, Link::Root);
        },
        |site, id| Link::Operand(id, 0).set(site.editor.body, id),
        |site, id| site.editor.body.set_root(id),
        |site, id| {
            // In the whole program; a walk inside of the walk must not do this either.
            let copy = copy_fresh(&mut site.editor, id);
            post_order_rewrite(&mut site.editor, Link::Root, &mut |_: &mut Editor<'_>, _, post| {
                Ok::<_, RewriteError>(if post == id { copy } else { post })
            })
            .unwrap();
        },
    ];
    for trespass in trespasses {
        edited("def @main(%x: float32) { let %a = negative(%x); negative(%a) }", |editor| {
            let root = editor.body.root();
            let result = mutate(editor, &mut Trespasser(trespass));
            assert_eq!(result, Err(RewriteError::OverwrittenLink));
            let left = editor.body.watch_links(LinkWatch::default());
            assert_eq!(left, LinkWatch::default(), "the watch has ended");
            // Like the caller of a failing edit.
            editor.body.rollback_journal();
            assert_eq!(editor.body.root(), root);
            editor.body.begin_journal();
        });
    }
}

#[test]
fn what_was_made_during_the_walk_may_be_overwritten_and_renamed() {
    let edit: fn(&mut Site<'_>, ExprId) = |site, id| {
        let copy = copy_fresh(&mut site.editor, id);
        let x = site.editor.body.params()[0].expr();
        Link::Operand(copy, 0).set(site.editor.body, x);
        let flags = anfora_ir::VarFlags::PLAIN;
        anfora_visit::set_var_flags(site.editor.body, site.editor.body.params()[0], flags);
        site.bind(None, copy);
    };
    edited("def @main(%x: float32) { let %a = negative(%x); %a }", |editor| {
        mutate(editor, &mut Trespasser(edit)).unwrap();
        assert_eq!(anfora_visit::chain(editor.body, editor.body.root()).count(), 2);
    });
}

/// Replaces each lambda's block by a copy that was rewritten again.
struct CopyLambdas(anfora_ir::VarId, ExprId);

impl Mutator for CopyLambdas {
    type Error = RewriteError;
    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, RewriteError> {
        let Expr::Lambda { body: block, .. } = site.editor.body.expr(id) else { return Ok(Rewrite::Keep) };
        let lambda = copy_fresh(&mut site.editor, id);
        assert_ne!(lambda, block);
        // A walk inside of the walk, with edits of its own, of an expression that has no parent
        // yet.
        substitute(&mut site.editor, Link::Lambda(lambda), &[(self.0, self.1)])?;
        mutate_at(&mut site.editor, Link::Lambda(lambda), &mut Trespasser(|_, _| {}))?;
        Ok(Rewrite::Replace(lambda))
    }
}

#[test]
fn a_walk_of_what_was_made_during_the_walk_may_rewrite_it() {
    edited("def @main(%x: float32) { let %f = fn (%y: float32) { let %a = add(%y, %x); %a }; %f(%x) }", |editor| {
        let two = editor.literal(Literal::scalar(2f32));
        let x = editor.body.params()[0];
        mutate(editor, &mut CopyLambdas(x, two)).unwrap();
        let uses = anfora_visit::link_counts(editor.body);
        assert_eq!(uses[x.expr()], 1, "only the argument is left");
    });
}

#[test]
fn a_binding_that_is_dropped_and_used_is_reported() {
    let text = "def @main(%x: float32) { let %a = negative(%x); let %b = negative(%a); let %c = negative(%b); %c }";
    let dropping = |names: &[&str]| {
        let mut result = Ok(());
        edited(text, |editor| {
            let mut dropper = Dropper(names.iter().map(|n| n.to_string()).collect());
            result = mutate(editor, &mut dropper);
            editor.body.rollback_journal();
            editor.body.begin_journal();
        });
        result
    };
    let used = |name: &str| Err(RewriteError::DroppedUsed { name: name.to_string() });
    assert_eq!(dropping(&["a"]), used("a"));
    assert_eq!(dropping(&["c"]), used("c"));
    // The users are dropped as well, except for the tail.
    assert_eq!(dropping(&["a", "b"]), used("b"));
}

struct Dropper(Vec<String>);

impl Mutator for Dropper {
    type Error = RewriteError;
    fn rewrite_value(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        let Some(binding) = slot.binding(site.editor.body, value) else { return Ok(Verdict::Keep) };
        let name = site.editor.body.var_name(binding.var).map(|n| site.editor.cx.names.get(n).to_string());
        Ok(if name.is_some_and(|n| self.0.contains(&n)) { Verdict::Drop } else { Verdict::Keep })
    }
}
