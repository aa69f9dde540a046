//! `expand_a_normal_form`, and the three refactorings of RAF's page on adding a pass, each beside the recursion that it replaces.

use std::ops::ControlFlow;

use anfora_ir::{Body, Editor, Expr, ExprId, SideTable, VarId};
use anfora_visit::{ChainLink, HoldsBody, Link, Memo, chain, expand_a_normal_form, expand_every_chain, unlink_let};
use expect_test::expect;

mod programs;
use programs::{body, edited, on_a_small_stack, parse, var};

const FOLDABLE: &str = "def @main(%x: float32) {
    let %one = 1f;
    let %a = add(%x, %one);
    let %b = %a;
    let %two = 2f;
    let %c = (%b, %two);
    let %d = %c.0;
    %d
}";

/// RAF's first example: a visitor that notes how often each variable is used, and what each is bound to. Recursion on the rest becomes `post`, which here
/// only counts how far the walk has come back up.
struct UpdateUses<'b> {
    body: &'b Body,
    uses: SideTable<ExprId, u32>,
    values: Memo<ExprId>,
    way_back: Vec<VarId>,
}

impl HoldsBody for UpdateUses<'_> {
    fn body(&self) -> &Body {
        self.body
    }
}

impl UpdateUses<'_> {
    fn update(&mut self, id: ExprId) {
        *self.uses.get_mut(id) += 1;
    }

    fn pre(&mut self, at: ChainLink) {
        let operands = match self.body.expr(at.binding.value) {
            Expr::Proj { tuple, .. } => vec![tuple],
            expr if expr.is_atom() => vec![at.binding.value],
            _ => self.body.operands_of(at.binding.value).to_vec(),
        };
        for operand in operands {
            self.update(operand);
        }
        self.values.insert(at.binding.var.expr(), at.binding.value);
    }
}

#[test]
fn refactoring_1_a_visitor_over_lets() {
    let module = parse(FOLDABLE);
    let body = body(&module);
    let mut pass = UpdateUses { body, uses: body.side_table(0), values: Memo::new(), way_back: Vec::new() };
    let walked: ControlFlow<(), ExprId> = expand_a_normal_form(
        &mut pass,
        Link::Root,
        |pass, at| {
            pass.pre(at);
            ControlFlow::Continue(())
        },
        |pass, at, ()| {
            pass.way_back.push(at.binding.var);
            ControlFlow::Continue(())
        },
    );
    let ControlFlow::Continue(tail) = walked else { panic!("nothing stops it") };
    pass.update(tail);

    let bindings: Vec<_> = chain(body, body.root()).collect();
    assert_eq!(bindings.len(), 6);
    for b in &bindings {
        assert_eq!(pass.uses[b.var.expr()], 1, "{:?}", b.var);
        assert_eq!(pass.values.get(b.var.expr()), Some(b.value));
    }
    let forth: Vec<_> = bindings.iter().rev().map(|b| b.var).collect();
    assert_eq!(pass.way_back, forth);
}

/// RAF's second example: constants are remembered for their variables and their Lets left out; the If of the recursion stands in `pre` and in
/// `post`, and what RAF looks up again in `post` is handed over.
struct FoldConstants<'e, 'b> {
    editor: &'e mut Editor<'b>,
    memo: Memo<ExprId>,
}

impl HoldsBody for FoldConstants<'_, '_> {
    fn body(&self) -> &Body {
        self.editor.body
    }
}

impl FoldConstants<'_, '_> {
    fn rewrite_value(&mut self, value: ExprId) -> ExprId {
        if let Some(known) = self.memo.get(value) {
            return known;
        }
        if let Some(list) = self.editor.body.expr(value).operand_list() {
            for i in 0..list.len() {
                if let Some(known) = self.memo.get(self.editor.body.operands(list)[i]) {
                    self.editor.body.set_operand(list, i, known);
                }
            }
        }
        value
    }
}

#[test]
fn refactoring_2_a_mutator_with_an_if_around_the_recursion() {
    let text = edited(FOLDABLE, |editor| {
        let mut pass = FoldConstants { editor, memo: Memo::new() };
        let walked: ControlFlow<(), ExprId> = expand_a_normal_form(
            &mut pass,
            Link::Root,
            |pass, at| {
                let value = pass.rewrite_value(at.binding.value);
                let is_constant = pass.editor.body.as_literal(value).is_some();
                if is_constant {
                    pass.memo.insert(at.binding.var.expr(), value);
                } else {
                    Link::Value(at.binding.id).set(pass.editor.body, value);
                }
                ControlFlow::Continue(is_constant)
            },
            |pass, at, is_constant| {
                if is_constant {
                    unlink_let(pass.editor.body, at.link);
                }
                ControlFlow::Continue(())
            },
        );
        assert!(walked.is_continue());
    });
    expect![[r#"
        def @main(%x: float32) -> float32 {
          let %a = add(%x, 1f);
          let %b = %a;
          let %c = (%b, 2f);
          let %d = %c.0;
          %d
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn refactoring_3_a_local_of_the_recursion_is_handed_from_pre_to_post() {
    let text = edited(FOLDABLE, |editor| {
        let aliases = Memo::new();
        let mut context = (editor, aliases);
        let walked: ControlFlow<(), ExprId> = expand_a_normal_form(
            &mut context,
            Link::Root,
            |(editor, aliases): &mut (&mut Editor<'_>, Memo<ExprId>), at| {
                let resolve = |id: ExprId| aliases.get(id).unwrap_or(id);
                let value = resolve(at.binding.value);
                if let Some(list) = editor.body.expr(value).operand_list() {
                    for i in 0..list.len() {
                        let operand = resolve(editor.body.operands(list)[i]);
                        editor.body.set_operand(list, i, operand);
                    }
                }
                let alias = editor.body.as_var(value).is_some();
                if alias {
                    aliases.insert(at.binding.var.expr(), value);
                }
                ControlFlow::Continue(alias)
            },
            |(editor, _), at, alias| {
                if alias {
                    unlink_let(editor.body, at.link);
                }
                ControlFlow::Continue(())
            },
        );
        assert!(walked.is_continue());
    });
    expect![[r#"
        def @main(%x: float32) -> float32 {
          let %one = 1f;
          let %a = add(%x, %one);
          let %two = 2f;
          let %c = (%a, %two);
          let %d = %c.0;
          %d
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn chains_in_branches_and_values_are_walked_from_their_links() {
    let module = parse(
        "def @main(%x: float32, %c: bool) {
            let %v = { let %i = negative(%x); %i };
            let %w = if (%c) { let %t = negative(%v); let %u = negative(%t); %u } else { %x };
            %w
        }",
    );
    let body = body(&module);
    let bindings: Vec<_> = chain(body, body.root()).collect();
    let count = |link: Link| {
        let mut context = (body, 0);
        let tail: ControlFlow<(), ExprId> = expand_a_normal_form(
            &mut context,
            link,
            |_, _| ControlFlow::Continue(()),
            |(_, n), _, ()| {
                *n += 1;
                ControlFlow::Continue(())
            },
        );
        assert!(tail.is_continue());
        context.1
    };
    assert_eq!(count(Link::Value(bindings[0].id)), 1);
    assert_eq!(count(Link::Then(bindings[1].value)), 2);
    assert_eq!(count(Link::Else(bindings[1].value)), 0);
    assert_eq!(count(Link::Root), 2);

    let mut context = (body, Vec::new());
    let all: ControlFlow<()> = expand_every_chain(
        &mut context,
        body.root(),
        |(body, order), b| {
            order.push(format!("+{}", module.cx.names.get(body.var_name(b.var).unwrap())));
            ControlFlow::Continue(())
        },
        |(body, order), b, ()| {
            order.push(format!("-{}", module.cx.names.get(body.var_name(b.var).unwrap())));
            ControlFlow::Continue(())
        },
    );
    assert!(all.is_continue());
    assert_eq!(context.1.join(" "), "+v +i -i +w +t +u -u -t -w -v");
}

#[test]
fn a_break_of_the_authors_type_ends_the_walk() {
    let module = parse(FOLDABLE);
    let mut context = (body(&module), 0);
    let stopped = expand_a_normal_form(
        &mut context,
        Link::Root,
        |(_, n), _| {
            *n += 1;
            if *n == 3 { ControlFlow::Break("enough") } else { ControlFlow::Continue(()) }
        },
        |_, _, ()| ControlFlow::Continue(()),
    );
    assert_eq!(stopped, ControlFlow::Break("enough"));
    assert_eq!(context.1, 3);
}

#[test]
fn pre_may_change_what_follows() {
    let text = edited("def @main(%x: float32) { let %a = negative(%x); let %b = negative(%x); %x }", |editor| {
        let b = var(editor, "b");
        let mut context = (editor, 0);
        let walked: ControlFlow<(), ExprId> = expand_a_normal_form(
            &mut context,
            Link::Root,
            |(editor, seen): &mut (&mut Editor<'_>, usize), at| {
                *seen += 1;
                if at.binding.var != b {
                    unlink_let(editor.body, Link::Rest(at.binding.id));
                }
                ControlFlow::Continue(())
            },
            |_, _, ()| ControlFlow::Continue(()),
        );
        assert!(walked.is_continue());
        assert_eq!(context.1, 1);
    });
    expect![[r#"
        def @main(%x: float32) -> float32 {
          let %a = negative(%x);
          %x
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_million_lets_down_and_up_on_a_small_stack() {
    on_a_small_stack(|| {
        let module = programs::deep(programs::Shape::Chain, 1_000_000);
        let mut context = (body(&module), 0u64);
        let walked: ControlFlow<(), ExprId> = expand_a_normal_form(
            &mut context,
            Link::Root,
            |(_, n), _| {
                *n += 1;
                ControlFlow::Continue(*n)
            },
            |(_, n), _, carried| {
                // The last in is the first out.
                assert_eq!(*n, carried);
                *n -= 1;
                ControlFlow::Continue(())
            },
        );
        assert!(walked.is_continue());
        assert_eq!(context.1, 0);
    });
}
