//! Tests of every tool on every shape of program, on a small stack.
//!
//! By default, programs are 5,000 deep; `ANFORA_DEEP=1000000` sets another depth.

use std::convert::Infallible;
use std::ops::ControlFlow;

use anfora_ir::{Body, Editor, Expr, ExprId, Module, Transplant};
use anfora_testing::{depth, on_small_stack};
use anfora_visit::{
    Binding, Edits, LetList, Link, Mutator, Rewrite, RewriteError, Site, Visit, Visitor, bound_variables, chain,
    copy_fresh, expand_a_normal_form, expand_every_chain, free_variables, link_counts, mutate, post_order_rewrite,
    splice_before, substitute, tail_link, unlink_let, walk,
};

use crate::programs::{SHAPES, Shape, body, deep, edit};

/// Calls `run` on each shape.
fn on_each(run: impl Fn(Shape, &mut Module) + Send + Sync + Clone + 'static) {
    for shape in SHAPES {
        let run = run.clone();
        on_small_stack(move || {
            let mut module = deep(shape, depth(5_000));
            run(shape, &mut module);
        });
    }
}

#[test]
fn visitors() {
    struct Count(usize, usize);
    impl Visitor for Count {
        type Break = Infallible;
        fn visit_expr(&mut self, _: &Body, _: ExprId) -> Visit<Infallible> {
            self.0 += 1;
            Visit::Continue
        }
        fn exit_expr(&mut self, _: &Body, _: ExprId) -> ControlFlow<Infallible> {
            self.1 += 1;
            ControlFlow::Continue(())
        }
    }
    on_each(|shape, module| {
        let mut count = Count(0, 0);
        let _ = walk(body(module), &mut count);
        let nodes = match shape {
            Shape::LetInValue => 1,
            Shape::NestedFn => 2 * depth(5_000) + 1,
            _ => depth(5_000) + 1,
        };
        assert_eq!((count.0, count.1), (nodes, nodes), "{shape:?}");
    });
}

#[test]
fn chains_expanded() {
    on_each(|shape, module| {
        let body = body(module);
        let mut context = (body, 0usize);
        let flow: ControlFlow<RewriteError, ExprId> = expand_a_normal_form(
            &mut context,
            Link::Root,
            |_, _| ControlFlow::Continue(()),
            |(_, n), _, ()| {
                *n += 1;
                ControlFlow::Continue(())
            },
        );
        assert!(flow.is_continue());
        assert_eq!(context.1, chain(body, body.root()).count());
        let mut context = (body, 0usize, 0usize);
        let mut pair = (context.0, (0usize, 0usize));
        let flow: ControlFlow<RewriteError> = expand_every_chain(
            &mut pair,
            Link::Root,
            |(_, n), _| {
                n.0 += 1;
                ControlFlow::Continue(())
            },
            |(_, n), _, ()| {
                n.1 += 1;
                ControlFlow::Continue(())
            },
        );
        assert!(flow.is_continue());
        (context.1, context.2) = pair.1;
        let lets = match shape {
            Shape::Chain | Shape::LetInValue => depth(5_000) + 1,
            Shape::NestedFn | Shape::IfInValue => depth(5_000),
            _ => 0,
        };
        assert_eq!((context.1, context.2), (lets, lets), "{shape:?}");
    });
}

struct Idle<const EDITS: u8>;

impl Mutator for Idle<0> {
    type Error = RewriteError;
}
impl Mutator for Idle<1> {
    type Error = RewriteError;
    const EDITS: Edits = Edits::Copied;
}
impl Mutator for Idle<2> {
    type Error = RewriteError;
    const EDITS: Edits = Edits::Scoped;
}

#[test]
fn a_mutator_that_does_nothing_writes_nothing() {
    on_each(|shape, module| {
        let len = body(module).len();
        assert!(!edit(module, |editor| mutate(editor, &mut Idle::<0>).unwrap()), "{shape:?}");
        assert!(!edit(module, |editor| mutate(editor, &mut Idle::<1>).unwrap()), "{shape:?}");
        assert!(!edit(module, |editor| mutate(editor, &mut Idle::<2>).unwrap()), "{shape:?}");
        assert_eq!(body(module).len(), len);
    });
}

/// Replaces `negative(v)` by `v`.
struct DropNegative;

fn without_negative(editor: &Editor<'_>, id: ExprId) -> ExprId {
    match editor.body.expr(id) {
        Expr::CallOp { op, .. } if editor.cx.ops.get(op).name == "negative" => editor.body.operands_of(id)[0],
        _ => id,
    }
}

impl Mutator for DropNegative {
    type Error = RewriteError;
    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, RewriteError> {
        let by = without_negative(&site.editor, id);
        Ok(if by == id { Rewrite::Keep } else { Rewrite::Replace(by) })
    }
}

fn check_without_negative(shape: Shape, module: &Module) {
    struct Find(bool);
    impl Visitor for Find {
        type Break = Infallible;
        fn visit_expr(&mut self, body: &Body, id: ExprId) -> Visit<Infallible> {
            self.0 |= body.operands_of(id).len() == 1 && matches!(body.expr(id), Expr::CallOp { .. });
            Visit::Continue
        }
    }
    let body = body(module);
    let mut find = Find(false);
    let _ = walk(body, &mut find);
    assert!(!find.0, "{shape:?}");
    if matches!(shape, Shape::LetInValue | Shape::NestedCall) {
        assert_eq!(body.root(), body.params()[0].expr(), "{shape:?}");
    }
}

#[test]
fn mutators() {
    on_each(|shape, module| {
        assert!(edit(module, |editor| mutate(editor, &mut DropNegative).unwrap()));
        check_without_negative(shape, module);
        // A second run changes nothing.
        assert!(!edit(module, |editor| mutate(editor, &mut DropNegative).unwrap()));
    });
}

#[test]
fn post_order_rewrites() {
    on_each(|shape, module| {
        assert!(edit(module, |editor| {
            post_order_rewrite(editor, Link::Root, &mut |editor: &mut Editor<'_>, _, post| {
                Ok::<_, RewriteError>(without_negative(editor, post))
            })
            .unwrap();
        }));
        check_without_negative(shape, module);
    });
}

#[test]
fn variables_and_copies() {
    on_each(|shape, module| {
        let root = body(module).root();
        let x = body(module).params()[0];
        let free = free_variables(body(module), root);
        assert!(free.contains(&x));
        let bound = bound_variables(body(module), root).len();
        assert!(link_counts(body(module))[x.expr()] > 0);
        let source = body(module).clone();
        edit(module, |editor| {
            let copy = copy_fresh(editor, root);
            assert_eq!(bound_variables(editor.body, copy).len(), bound, "{shape:?}");
            assert_eq!(free_variables(editor.body, copy), free);
            editor.body.set_root(copy);

            let mut transplant = Transplant::new();
            for &param in source.params() {
                transplant.replace(param.expr(), param.expr());
            }
            let copy = transplant.copy(editor, Some(&source), root);
            assert_eq!(free_variables(editor.body, copy), free);

            let one = crate::programs::float(editor, 1.0);
            substitute(editor, Link::Root, &[(x, one)]).unwrap();
            let root = editor.body.root();
            assert!(!free_variables(editor.body, root).contains(&x));
        });
    });
}

#[test]
fn lists_and_edits_of_chains() {
    on_small_stack(|| {
        let mut module = deep(Shape::Chain, depth(5_000));
        edit(&mut module, |editor| {
            let root = editor.body.root();
            let mut list = LetList::new();
            let tail = list.splice(editor, root).unwrap();
            assert_eq!(list.len(), depth(5_000) + 1);
            let block = list.finish(editor, tail);
            Link::Root.set(editor.body, tail);
            let (tail, link) = splice_before(editor.body, Link::Root, block);
            link.set(editor.body, tail);
            assert_eq!(tail_link(editor.body, Link::Root), link);
            while Binding::of(editor.body, editor.body.root()).is_some() {
                unlink_let(editor.body, Link::Root);
            }
            assert_eq!(editor.body.root(), tail);
        });
    });
}
