//! Tests of `expand_a_normal_form`, with the three refactorings of RAF's page on adding a pass,
//! each next to the recursion that it replaces.

use std::ops::ControlFlow;

use anfora_ir::{Body, Editor, Expr, ExprId, SideTable, VarFlags};
use anfora_testing::{depth, on_small_stack};
use anfora_visit::{
    Binding, ChainLink, ExprFunctor, HoldsBody, Link, Memo, RewriteError, chain, expand_a_normal_form,
    expand_every_chain, insert_before, unlink_let,
};
use expect_test::expect;

use crate::programs;
use crate::programs::{body, edited, parse, var};

const FOLDABLE: &str = "def @main(%x: float32) {
    let %one = 1f;
    let %a = add(%x, %one);
    let %b = %a;
    let %two = 2f;
    let %c = (%b, %two);
    let %d = %c.0;
    %d
}";

/// The state of RAF's first example: the number of uses of each variable, and the value of each.
struct UpdateUses<'b> {
    body: &'b Body,
    uses: SideTable<ExprId, u32>,
    values: Memo<ExprId>,
}

impl HoldsBody for UpdateUses<'_> {
    fn body(&self) -> &Body {
        self.body
    }
}

impl<'b> UpdateUses<'b> {
    fn new(body: &'b Body) -> UpdateUses<'b> {
        UpdateUses { body, uses: body.side_table(0), values: Memo::new() }
    }

    fn update(&mut self, id: ExprId) {
        *self.uses.get_mut(id) += 1;
    }

    fn update_operands(&mut self, value: ExprId) {
        match self.body.expr(value) {
            Expr::Proj { tuple, .. } => self.update(tuple),
            expr if expr.is_atom() => self.update(value),
            _ => self.body.operands_of(value).iter().for_each(|&o| self.update(o)),
        }
    }
}

/// Before: the recursion, which records uses and goes into the rest.
impl ExprFunctor for UpdateUses<'_> {
    type Output = ();

    fn visit_default(&mut self, tail: ExprId) {
        self.update(tail);
    }

    fn visit_let(&mut self, binding: Binding) {
        self.update_operands(binding.value);
        self.values.insert(binding.var.expr(), binding.value);
        self.recurse(binding.rest);
    }
}

#[test]
fn refactoring_1_a_visitor_over_lets() {
    let module = parse(FOLDABLE);
    let body = body(&module);
    let mut before = UpdateUses::new(body);
    before.recurse(body.root());

    // After: the code before the recursion is `pre`; there is no code after it.
    let mut after = UpdateUses::new(body);
    let walked: ControlFlow<RewriteError, ExprId> = expand_a_normal_form(
        &mut after,
        Link::Root,
        |pass, at| {
            pass.update_operands(at.binding.value);
            pass.values.insert(at.binding.var.expr(), at.binding.value);
            ControlFlow::Continue(())
        },
        |_, _, ()| ControlFlow::Continue(()),
    );
    let ControlFlow::Continue(tail) = walked else { panic!("nothing stops it") };
    after.update(tail);

    for b in chain(body, body.root()) {
        assert_eq!(after.uses[b.var.expr()], 1, "{:?}", b.var);
        assert_eq!(after.values.get(b.var.expr()), Some(b.value));
    }
    for (id, _) in body.exprs() {
        assert_eq!((before.uses[id], before.values.get(id)), (after.uses[id], after.values.get(id)));
    }
}

/// The state of RAF's second example: constants, by the variables that stand for them.
struct FoldConstants<'e, 'b> {
    editor: &'e mut Editor<'b>,
    memo: Memo<ExprId>,
}

impl HoldsBody for FoldConstants<'_, '_> {
    fn body(&self) -> &Body {
        self.editor.body
    }
}

impl<'e, 'b> FoldConstants<'e, 'b> {
    fn new(editor: &'e mut Editor<'b>) -> FoldConstants<'e, 'b> {
        FoldConstants { editor, memo: Memo::new() }
    }

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

    fn pre(&mut self, at: ChainLink) -> ControlFlow<RewriteError, bool> {
        let value = self.rewrite_value(at.binding.value);
        let is_constant = self.editor.body.as_literal(value).is_some();
        if is_constant {
            self.memo.insert(at.binding.var.expr(), value);
        } else {
            Link::Value(at.binding.id).set(self.editor.body, value);
        }
        ControlFlow::Continue(is_constant)
    }

    fn post(&mut self, at: ChainLink, is_constant: bool) -> ControlFlow<RewriteError> {
        if is_constant {
            unlink_let(self.editor.body, at.link);
        }
        ControlFlow::Continue(())
    }
}

/// Before: a recursion that returns the replacement of the rest, with or without its Let. It goes
/// into blocks too.
impl ExprFunctor for FoldConstants<'_, '_> {
    type Output = ExprId;

    fn visit_default(&mut self, id: ExprId) -> ExprId {
        id
    }

    fn visit_let(&mut self, binding: Binding) -> ExprId {
        let value = self.rewrite_value(binding.value);
        if self.editor.body.as_literal(value).is_some() {
            self.memo.insert(binding.var.expr(), value);
            return self.recurse(binding.rest);
        }
        let value = self.recurse(value);
        let rest = self.recurse(binding.rest);
        Link::Value(binding.id).set(self.editor.body, value);
        Link::Rest(binding.id).set(self.editor.body, rest);
        binding.id
    }

    fn visit_if(&mut self, id: ExprId, _: ExprId, then_block: ExprId, else_block: ExprId) -> ExprId {
        let then_block = self.recurse(then_block);
        Link::Then(id).set(self.editor.body, then_block);
        let else_block = self.recurse(else_block);
        Link::Else(id).set(self.editor.body, else_block);
        id
    }
}

/// Constants in blocks of every kind.
const NESTED: &str = "def @main(%x: float32, %c: bool) {
    let %one = 1f;
    let %v = { let %two = 2f; let %i = add(%x, %two); let %j = multiply(%i, %one); %j };
    let %w = if (%c) {
        let %three = 3f;
        let %m = ({ let %two = 2f; let %i = add(%x, %two); %i }, %three, { let %four = 4f; let %k = add(%v, %four); %k });
        %m.0
    } else { %v };
    let %five = 5f;
    let %z = add(%w, %five);
    %z
}";

#[test]
fn refactoring_2_a_mutator_with_an_if_around_the_recursion() {
    let recursive = |text| {
        edited(text, |editor| {
            let root = editor.body.root();
            let root = FoldConstants::new(editor).recurse(root);
            editor.body.set_root(root);
        })
    };
    // After: `pre` finds the condition and passes it to `post`, while RAF looks the value up again.
    let text = edited(FOLDABLE, |editor| {
        let mut pass = FoldConstants::new(editor);
        assert!(expand_a_normal_form(&mut pass, Link::Root, FoldConstants::pre, FoldConstants::post).is_continue());
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
    assert_eq!(text, recursive(FOLDABLE));

    // The same two callbacks, for Lets in values, branches and operands.
    let every = |text| {
        edited(text, |editor| {
            let mut pass = FoldConstants::new(editor);
            assert!(expand_every_chain(&mut pass, Link::Root, FoldConstants::pre, FoldConstants::post).is_continue());
        })
    };
    assert_eq!(every(FOLDABLE), text);
    expect![[r#"
        def @main(%x: float32, %c: bool) -> float32 {
          let %v = {
            let %i = add(%x, 2f);
            let %j = multiply(%i, 1f);
            %j
          };
          let %w = if (%c) {
            let %m = ({
              let %i$1 = add(%x, 2f);
              %i$1
            }, 3f, {
              let %k = add(%v, 4f);
              %k
            });
            %m.0
          } else { %v };
          let %z = add(%w, 5f);
          %z
        }
    "#]]
    .assert_eq(&every(NESTED));
    // The recursion above does not go into operands.
    let without_operands = NESTED.replace("{ let %two = 2f; let %i = add(%x, %two); %i }", "%x");
    let without_operands = without_operands.replace("{ let %four = 4f; let %k = add(%v, %four); %k }", "%v");
    assert_eq!(every(&without_operands), recursive(&without_operands));
}

/// The state of RAF's third example: the targets of aliases. A local variable of the recursion says
/// if a Let is an alias; RAF stores this in a map.
struct RemoveAliases<'e, 'b> {
    editor: &'e mut Editor<'b>,
    aliases: Memo<ExprId>,
}

impl HoldsBody for RemoveAliases<'_, '_> {
    fn body(&self) -> &Body {
        self.editor.body
    }
}

impl RemoveAliases<'_, '_> {
    /// Returns the replacement of a value, and true if it is a variable.
    fn rewrite_value(&mut self, binding: Binding) -> (ExprId, bool) {
        let resolve = |id: ExprId| self.aliases.get(id).unwrap_or(id);
        let value = resolve(binding.value);
        if let Some(list) = self.editor.body.expr(value).operand_list() {
            for i in 0..list.len() {
                let operand = resolve(self.editor.body.operands(list)[i]);
                self.editor.body.set_operand(list, i, operand);
            }
        }
        let alias = self.editor.body.as_var(value).is_some();
        if alias {
            self.aliases.insert(binding.var.expr(), value);
        }
        (value, alias)
    }
}

/// Before.
impl ExprFunctor for RemoveAliases<'_, '_> {
    type Output = ExprId;

    fn visit_default(&mut self, id: ExprId) -> ExprId {
        id
    }

    fn visit_let(&mut self, binding: Binding) -> ExprId {
        let (value, alias) = self.rewrite_value(binding);
        let rest = self.recurse(binding.rest);
        if alias {
            return rest;
        }
        Link::Value(binding.id).set(self.editor.body, value);
        Link::Rest(binding.id).set(self.editor.body, rest);
        binding.id
    }
}

#[test]
fn refactoring_3_a_local_of_the_recursion_is_handed_from_pre_to_post() {
    let before = edited(FOLDABLE, |editor| {
        let root = editor.body.root();
        let root = RemoveAliases { editor, aliases: Memo::new() }.recurse(root);
        editor.body.set_root(root);
    });
    // After.
    let after = edited(FOLDABLE, |editor| {
        let mut pass = RemoveAliases { editor, aliases: Memo::new() };
        let walked: ControlFlow<RewriteError, ExprId> = expand_a_normal_form(
            &mut pass,
            Link::Root,
            |pass, at| {
                let (value, alias) = pass.rewrite_value(at.binding);
                Link::Value(at.binding.id).set(pass.editor.body, value);
                ControlFlow::Continue(alias)
            },
            |pass, at, alias| {
                if alias {
                    unlink_let(pass.editor.body, at.link);
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
    .assert_eq(&after);
    assert_eq!(before, after);
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
        let tail: ControlFlow<RewriteError, ExprId> = expand_a_normal_form(
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
    let all: ControlFlow<RewriteError> = expand_every_chain(
        &mut context,
        Link::Root,
        |(body, order), at| {
            order.push(format!("+{}", module.cx.names.get(body.var_name(at.binding.var).unwrap())));
            ControlFlow::Continue(())
        },
        |(body, order), at, ()| {
            order.push(format!("-{}", module.cx.names.get(body.var_name(at.binding.var).unwrap())));
            ControlFlow::Continue(())
        },
    );
    assert!(all.is_continue());
    assert_eq!(context.1.join(" "), "+v +i -i +w +t +u -u -t -w -v");
}

/// The author's own reason to stop.
#[derive(PartialEq, Debug)]
enum Stop {
    Enough,
    Rewrite(RewriteError),
}

impl From<RewriteError> for Stop {
    fn from(error: RewriteError) -> Stop {
        Stop::Rewrite(error)
    }
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
            if *n == 3 { ControlFlow::Break(Stop::Enough) } else { ControlFlow::Continue(()) }
        },
        |_, _, ()| ControlFlow::Continue(()),
    );
    assert_eq!(stopped, ControlFlow::Break(Stop::Enough));
    assert_eq!(context.1, 3);
}

#[test]
fn pre_may_change_what_follows() {
    let text = edited("def @main(%x: float32) { let %a = negative(%x); let %b = negative(%x); %x }", |editor| {
        let b = var(editor, "b");
        let mut context = (editor, 0);
        let walked: ControlFlow<RewriteError, ExprId> = expand_a_normal_form(
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

const THREE: &str =
    "def @main(%x: float32) { let %a = negative(%x); let %b = negative(%x); let %c = negative(%x); %x }";

/// Edits in `pre` and in `post`, by either walk. Returns the new text, or the error that ended the
/// walk.
fn walked(
    every: bool,
    pre: fn(&mut Editor<'_>, ChainLink),
    post: fn(&mut Editor<'_>, ChainLink),
) -> Result<String, RewriteError> {
    let mut end = ControlFlow::Continue(());
    let text = edited(THREE, |editor| {
        editor.body.begin_journal();
        let pre = |editor: &mut &mut Editor<'_>, at| {
            pre(editor, at);
            ControlFlow::Continue(())
        };
        let post = |editor: &mut &mut Editor<'_>, at, ()| {
            post(editor, at);
            ControlFlow::Continue(())
        };
        let mut context = editor;
        end = match every {
            true => expand_every_chain(&mut context, Link::Root, pre, post),
            false => match expand_a_normal_form(&mut context, Link::Root, pre, post) {
                ControlFlow::Continue(_) => ControlFlow::Continue(()),
                ControlFlow::Break(error) => ControlFlow::Break(error),
            },
        };
        match end {
            ControlFlow::Continue(()) => context.body.commit_journal(),
            ControlFlow::Break(_) => {
                context.body.rollback_journal();
                false
            }
        };
    });
    match end {
        ControlFlow::Continue(()) => Ok(text),
        ControlFlow::Break(error) => Err(error),
    }
}

fn is(editor: &Editor<'_>, at: ChainLink, name: &str) -> bool {
    var(editor, name) == at.binding.var
}

/// Inserts a binding before the Let at a link.
fn put_before(editor: &mut Editor<'_>, link: Link) {
    let x = editor.body.params()[0].expr();
    let (ty, name) = (editor.body.ty(x), editor.cx.names.intern("new"));
    let value = editor.call_named("add", &[x, x]).unwrap();
    let new = editor.var(Some(name), VarFlags::PLAIN, ty);
    insert_before(editor, link, &[(new, value)]);
}

#[test]
fn edits_that_are_legal() {
    let nothing = |_: &mut Editor<'_>, _: ChainLink| {};
    let unlink = |editor: &mut Editor<'_>, at: ChainLink| {
        unlink_let(editor.body, at.link);
    };
    for every in [false, true] {
        // Each Let removes itself: on the way down, on the way back, and one after the other.
        let empty = "def @main(%x: float32) -> float32 {\n  %x\n}\n";
        assert_eq!(walked(every, unlink, nothing).unwrap(), empty);
        assert_eq!(walked(every, nothing, unlink).unwrap(), empty);
        let first_two = walked(
            every,
            |editor, at| {
                if !is(editor, at, "c") {
                    unlink_let(editor.body, at.link);
                }
            },
            |editor, at| {
                if is(editor, at, "c") {
                    unlink_let(editor.body, at.link);
                }
            },
        );
        assert_eq!(first_two.unwrap(), empty);
        // A binding is inserted before each Let on the way down; on the way back, each Let removes
        // itself.
        let replaced = walked(every, |editor, at| put_before(editor, at.link), unlink).unwrap();
        assert_eq!(replaced.matches("add(%x, %x)").count(), 3);
        assert!(!replaced.contains("negative"), "{replaced}");
        assert_eq!(walked(every, nothing, |editor, at| put_before(editor, at.link)).unwrap().matches("let").count(), 6);
    }
}

#[test]
fn pre_may_take_out_its_own_let_and_those_after_it() {
    let nothing = |_: &mut Editor<'_>, _: ChainLink| {};
    // Removes its own Let and the next one, in either order; all three; its own and the last.
    let own_first = |editor: &mut Editor<'_>, at: ChainLink| {
        if is(editor, at, "a") {
            unlink_let(editor.body, at.link);
            unlink_let(editor.body, at.link);
        }
    };
    let next_first = |editor: &mut Editor<'_>, at: ChainLink| {
        if is(editor, at, "a") {
            unlink_let(editor.body, Link::Rest(at.binding.id));
            unlink_let(editor.body, at.link);
        }
    };
    let all = |editor: &mut Editor<'_>, at: ChainLink| {
        for _ in 0..3 {
            unlink_let(editor.body, at.link);
        }
        assert!(is(editor, at, "a"));
    };
    let replaced = |editor: &mut Editor<'_>, at: ChainLink| {
        if is(editor, at, "a") {
            unlink_let(editor.body, at.link);
            unlink_let(editor.body, at.link);
            put_before(editor, at.link);
            put_before(editor, at.link);
        }
    };
    for every in [false, true] {
        let c = "def @main(%x: float32) -> float32 {\n  let %c = negative(%x);\n  %x\n}\n";
        assert_eq!(walked(every, own_first, nothing).unwrap(), c);
        assert_eq!(walked(every, next_first, nothing).unwrap(), c);
        // The last Let is given to `post`, with the right link.
        let last = |editor: &mut Editor<'_>, at: ChainLink| {
            if is(editor, at, "c") {
                unlink_let(editor.body, at.link);
            }
        };
        let empty = "def @main(%x: float32) -> float32 {\n  %x\n}\n";
        assert_eq!(walked(every, own_first, last).unwrap(), empty);
        assert_eq!(walked(every, all, nothing).unwrap(), empty);
        let replaced = walked(every, replaced, nothing).unwrap();
        assert_eq!((replaced.matches("add").count(), replaced.matches("negative").count()), (2, 1), "{replaced}");
    }
}

#[test]
fn taking_out_in_pairs_is_linear() {
    let n = 200_000;
    for every in [false, true] {
        let mut module = programs::deep(programs::Shape::Chain, n);
        let key = programs::first(&module);
        let (function, cx) = module.get_mut(key).unwrap();
        let lets = chain(&function.body, function.body.root()).count();
        let mut context = (Editor::new(cx, &mut function.body), 0);
        let pre = |(editor, seen): &mut (Editor<'_>, usize), at: ChainLink| {
            *seen += 1;
            unlink_let(editor.body, at.link);
            if Binding::of(editor.body, at.link.target(editor.body)).is_some() {
                unlink_let(editor.body, at.link);
            }
            ControlFlow::<RewriteError>::Continue(())
        };
        let post = |_: &mut (Editor<'_>, usize), _: ChainLink, ()| ControlFlow::Continue(());
        let ended = match every {
            true => expand_every_chain(&mut context, Link::Root, pre, post).is_continue(),
            false => expand_a_normal_form(&mut context, Link::Root, pre, post).is_continue(),
        };
        assert!(ended);
        assert_eq!(context.1, lets.div_ceil(2));
        assert_eq!(chain(&function.body, function.body.root()).count(), 0);
    }
}

#[test]
fn edits_that_are_not_legal_are_reported() {
    let nothing = |_: &mut Editor<'_>, _: ChainLink| {};
    for every in [false, true] {
        // The last Let removes the first, on the way down or on the way back.
        let first = |editor: &mut Editor<'_>, at: ChainLink| {
            if is(editor, at, "c") {
                unlink_let(editor.body, Link::Root);
            }
        };
        assert_eq!(walked(every, first, nothing), Err(RewriteError::MovedLet));
        assert_eq!(walked(every, nothing, first), Err(RewriteError::MovedLet));
        // The last Let inserts a binding before the first.
        let before_first = |editor: &mut Editor<'_>, at: ChainLink| {
            if is(editor, at, "c") {
                put_before(editor, Link::Root);
            }
        };
        assert_eq!(walked(every, before_first, nothing), Err(RewriteError::MovedLet));
        assert_eq!(walked(every, nothing, before_first), Err(RewriteError::MovedLet));
        // A Let removes itself twice, which would remove the next one.
        let own = |editor: &mut Editor<'_>, at: ChainLink| {
            if is(editor, at, "b") {
                unlink_let(editor.body, at.link);
            }
        };
        assert_eq!(walked(every, own, own), Err(RewriteError::MovedLet));
        // A Let cuts itself and the rest off, including the tail.
        let cut = |editor: &mut Editor<'_>, at: ChainLink| {
            if is(editor, at, "b") {
                let a = var(editor, "a").expr();
                at.link.set(editor.body, a);
            }
        };
        assert_eq!(walked(every, cut, nothing), Err(RewriteError::MovedLet));
    }
}

#[test]
fn many_lets_down_and_up_on_a_small_stack() {
    on_small_stack(|| {
        let module = programs::deep(programs::Shape::Chain, depth(5_000));
        let mut context = (body(&module), 0u64);
        let walked: ControlFlow<RewriteError, ExprId> = expand_a_normal_form(
            &mut context,
            Link::Root,
            |(_, n), _| {
                *n += 1;
                ControlFlow::Continue(*n)
            },
            |(_, n), _, carried| {
                // The callbacks are called in last-in, first-out order.
                assert_eq!(*n, carried);
                *n -= 1;
                ControlFlow::Continue(())
            },
        );
        assert!(walked.is_continue());
        assert_eq!(context.1, 0);
    });
}
