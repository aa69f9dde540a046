//! Tests of recursive walks: deep programs on a small stack, memoisation, edits, failures,
//! unwinding.
//!
//! These run without optimisation too, where frames are largest:
//! `cargo test --profile test-unoptimised --workspace --test functor`.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use anfora_ir::{AttrsId, Body, Editor, Expr, ExprId, LambdaId, LiteralId, OpId, OperandList, SideTable, VarId};
use anfora_testing::{depth, on_small_stack};
use anfora_visit::{Binding, ExprFunctor, HoldsBody, Link, Memo, link_counts};
use expect_test::expect;

mod programs;
use programs::{SHAPES, Shape, body, deep, edited, parse};

fn n() -> usize {
    depth(100_000)
}

/// Counts uses of variables, as `link_counts` does by a walk.
struct Uses<'b> {
    body: &'b Body,
    uses: SideTable<ExprId, u32>,
    gone_into: SideTable<ExprId, bool>,
}

impl<'b> Uses<'b> {
    fn new(body: &'b Body) -> Uses<'b> {
        Uses { body, uses: body.side_table(0), gone_into: body.side_table(false) }
    }
}

impl HoldsBody for Uses<'_> {
    fn body(&self) -> &Body {
        self.body
    }
}

impl ExprFunctor for Uses<'_> {
    type Output = ();

    fn recall(&self, id: ExprId) -> Option<()> {
        self.gone_into[id].then_some(())
    }

    fn remember(&mut self, id: ExprId, (): &()) {
        self.gone_into.set(id, true);
    }

    fn visit_default(&mut self, id: ExprId) {
        self.recurse_parts(id, |_, ()| {});
    }

    fn visit_var(&mut self, var: VarId) {
        *self.uses.get_mut(var.expr()) += 1;
    }
}

#[test]
fn every_shape_on_a_small_stack() {
    for shape in SHAPES {
        on_small_stack(move || {
            let module = deep(shape, n());
            let body = body(&module);
            let mut uses = Uses::new(body);
            uses.recurse(body.root());
            let walked = link_counts(body);
            for id in body.exprs().map(|(id, _)| id).filter(|&id| body.as_var(id).is_some()) {
                assert_eq!(uses.uses[id], walked[id], "{shape:?}");
            }
        });
    }
}

/// Has 16 KiB of local variables in each frame.
struct Greedy<'b>(&'b Body);

impl HoldsBody for Greedy<'_> {
    fn body(&self) -> &Body {
        self.0
    }
}

impl ExprFunctor for Greedy<'_> {
    type Output = u64;
    const RED_ZONE: usize = 128 << 10;
    const SEGMENT: usize = 4 << 20;

    fn visit_default(&mut self, id: ExprId) -> u64 {
        let mut sum = 0;
        self.recurse_parts(id, |_, part| sum += part);
        sum
    }

    fn visit_let(&mut self, binding: Binding) -> u64 {
        let mut locals = [0u64; 2048];
        let rest = self.recurse(binding.rest);
        std::hint::black_box(&mut locals)[rest as usize % 2048] = 1;
        rest + locals.iter().sum::<u64>()
    }
}

#[test]
fn a_red_zone_of_the_authors_for_large_frames() {
    on_small_stack(|| {
        let module = deep(Shape::Chain, 20_000);
        let body = body(&module);
        assert_eq!(Greedy(body).recurse(body.root()), 20_001);
    });
}

/// Records the address of the stack at each Let.
struct Addresses<'b>(&'b Body, Vec<usize>);

impl HoldsBody for Addresses<'_> {
    fn body(&self) -> &Body {
        self.0
    }
}

impl ExprFunctor for Addresses<'_> {
    type Output = usize;

    fn visit_default(&mut self, _: ExprId) -> usize {
        0
    }

    fn visit_let(&mut self, binding: Binding) -> usize {
        let here = 0u8;
        self.1.push(&raw const here as usize);
        let value = self.recurse(binding.value);
        self.recurse(binding.rest) + value + usize::from(std::hint::black_box(here)) + 1
    }
}

#[test]
fn a_level_takes_as_much_stack_as_documented() {
    let module = deep(Shape::Chain, 10_000);
    let body = body(&module);
    let mut addresses = Addresses(body, Vec::new());
    assert_eq!(addresses.recurse(body.root()), 10_001);
    // Within a segment, addresses decrease by one frame per level.
    let mut frames: Vec<usize> = addresses.1.windows(2).filter_map(|w| w[0].checked_sub(w[1])).collect();
    frames.sort_unstable();
    let frame = frames[frames.len() / 2];
    assert!(frame <= 1024, "{frame} bytes a Let");
}

/// Counts the paths to leaves.
struct Paths<'b> {
    body: &'b Body,
    memo: Option<Memo<u64>>,
    calls: usize,
}

impl HoldsBody for Paths<'_> {
    fn body(&self) -> &Body {
        self.body
    }
}

impl ExprFunctor for Paths<'_> {
    type Output = u64;

    fn recall(&self, id: ExprId) -> Option<u64> {
        self.memo.as_ref()?.get(id)
    }

    fn remember(&mut self, id: ExprId, &paths: &u64) {
        if let Some(memo) = &mut self.memo {
            memo.insert(id, paths);
        }
    }

    fn visit_default(&mut self, _: ExprId) -> u64 {
        1
    }

    fn visit_call_op(&mut self, id: ExprId, _: OpId, _: OperandList, _: AttrsId) -> u64 {
        self.calls += 1;
        let mut paths = 0u64;
        self.recurse_parts(id, |_, part| paths = paths.wrapping_add(part));
        paths
    }
}

#[test]
fn shared_nodes_are_gone_into_once_where_values_are_remembered() {
    let module = deep(Shape::Diamonds, 16);
    let body = body(&module);
    let mut all = Paths { body, memo: None, calls: 0 };
    let mut once = Paths { body, memo: Some(Memo::new()), calls: 0 };
    assert_eq!((all.recurse(body.root()), once.recurse(body.root())), (1 << 16, 1 << 16));
    assert_eq!(once.calls, 17);
    assert_eq!(all.calls, (1 << 17) - 1);
}

/// Prints every callback with its arguments.
struct Outline<'b>(&'b Body);

impl HoldsBody for Outline<'_> {
    fn body(&self) -> &Body {
        self.0
    }
}

impl Outline<'_> {
    fn parts(&mut self, name: &str, id: ExprId) -> String {
        let mut parts = Vec::new();
        self.recurse_parts(id, |_, part| parts.push(part));
        format!("{name}({})", parts.join(" "))
    }
}

impl ExprFunctor for Outline<'_> {
    type Output = String;

    fn visit_default(&mut self, id: ExprId) -> String {
        self.parts("?", id)
    }
    fn visit_var(&mut self, _: VarId) -> String {
        "var".to_string()
    }
    fn visit_literal(&mut self, _: ExprId, _: LiteralId) -> String {
        "literal".to_string()
    }
    fn visit_call_op(&mut self, id: ExprId, _: OpId, operands: OperandList, _: AttrsId) -> String {
        self.parts(&format!("op/{}", operands.len()), id)
    }
    fn visit_call(&mut self, id: ExprId, operands: OperandList, _: AttrsId) -> String {
        self.parts(&format!("call/{}", operands.len()), id)
    }
    fn visit_tuple(&mut self, id: ExprId, fields: OperandList) -> String {
        self.parts(&format!("tuple/{}", fields.len()), id)
    }
    fn visit_proj(&mut self, _: ExprId, tuple: ExprId, index: u32) -> String {
        format!("{}.{index}", self.recurse(tuple))
    }
    fn visit_let(&mut self, binding: Binding) -> String {
        let value = self.recurse(binding.value);
        format!("let {value}; {}", self.recurse(binding.rest))
    }
    fn visit_if(&mut self, _: ExprId, cond: ExprId, then_block: ExprId, else_block: ExprId) -> String {
        let cond = self.recurse(cond);
        let then_block = self.recurse(then_block);
        format!("if {cond} {{ {then_block} }} else {{ {} }}", self.recurse(else_block))
    }
    fn visit_lambda(&mut self, _: ExprId, lambda: LambdaId, block: ExprId) -> String {
        let params = self.0.lambda_params(lambda).len();
        format!("fn/{params} {{ {} }}", self.recurse(block))
    }
}

#[test]
fn a_callback_for_each_kind_of_expression() {
    let module = parse(
        "declare @g() -> float32;
        def @main(%x: float32, %c: bool) {
            let %f = fn(%y: float32) { add(%y, 1f) };
            let %p = (%x, @g);
            let %i = if (%c) { let %n = negative(%x); %n } else { %p.0 };
            %f(%i)
        }",
    );
    let body = &module.get(module.find("main").unwrap()).unwrap().body;
    expect![[
        r"let fn/1 { op/2(var literal) }; let tuple/2(var ?()); let if var { let op/1(var); var } else { var.0 }; call/2(var var)"
    ]]
    .assert_eq(&Outline(body).recurse(body.root()));
}

/// Replaces `negative(negative(x))` by `x`, through Lets, by a recursion with an editor.
struct DoubleNegative<'e, 'b> {
    editor: &'e mut Editor<'b>,
    values: Memo<ExprId>,
}

impl HoldsBody for DoubleNegative<'_, '_> {
    fn body(&self) -> &Body {
        self.editor.body
    }
}

impl ExprFunctor for DoubleNegative<'_, '_> {
    type Output = ExprId;

    fn visit_default(&mut self, id: ExprId) -> ExprId {
        id
    }

    fn visit_call_op(&mut self, id: ExprId, op: OpId, operands: OperandList, _: AttrsId) -> ExprId {
        let operand = self.editor.body.operands(operands)[0];
        if let Some(inner) = self.values.get(operand)
            && let Expr::CallOp { op: of, operands: inner, .. } = self.editor.body.expr(inner)
            && of == op
            && self.editor.cx.ops.get(op).name == "negative"
        {
            return self.editor.body.operands(inner)[0];
        }
        id
    }

    fn visit_let(&mut self, binding: Binding) -> ExprId {
        let value = self.recurse(binding.value);
        self.values.insert(binding.var.expr(), value);
        Link::Value(binding.id).set(self.editor.body, value);
        let rest = self.recurse(binding.rest);
        Link::Rest(binding.id).set(self.editor.body, rest);
        binding.id
    }
}

#[test]
fn a_functor_may_edit() {
    let text = edited(
        "def @main(%x: float32) { let %a = negative(%x); let %b = negative(%a); let %c = negative(%b); %c }",
        |editor| {
            let root = editor.body.root();
            let root = DoubleNegative { editor, values: Memo::new() }.recurse(root);
            assert_eq!(root, root);
        },
    );
    expect![[r#"
        def @main(%x: float32) -> float32 {
          let %a = negative(%x);
          let %b = %x;
          let %c = negative(%b);
          %c
        }
    "#]]
    .assert_eq(&text);
}

/// Stops at the last Let, by an error or by a panic.
struct Failing<'b> {
    body: &'b Body,
    how: fn() -> Result<usize, &'static str>,
}

impl HoldsBody for Failing<'_> {
    fn body(&self) -> &Body {
        self.body
    }
}

impl ExprFunctor for Failing<'_> {
    type Output = Result<usize, &'static str>;

    fn visit_default(&mut self, _: ExprId) -> Self::Output {
        (self.how)()
    }

    fn visit_let(&mut self, binding: Binding) -> Self::Output {
        Ok(self.recurse(binding.rest)? + 1)
    }
}

#[test]
fn errors_and_panics_come_back_through_the_segments() {
    on_small_stack(|| {
        let module = deep(Shape::Chain, 100_000);
        let body = body(&module);
        let run = |how| Failing { body, how }.recurse(body.root());
        assert_eq!(run(|| Ok(0)), Ok(100_001));
        assert_eq!(run(|| Err("enough")), Err("enough"));
        let panicked = catch_unwind(AssertUnwindSafe(|| run(|| resume_unwind(Box::new("in a callback"))))).unwrap_err();
        assert_eq!(panicked.downcast_ref::<&str>(), Some(&"in a callback"));
        // The thread still works.
        assert_eq!(run(|| Ok(0)), Ok(100_001));
    });
}
