//! A visit and a rewrite by the tools of `visit`, on programs in which the rewrite has something to
//! do.

use std::convert::Infallible;

use anfora::ir::{
    AttrsId, Body, DType, Editor, Expr, ExprId, FunctionBuilder, FunctionKey, Literal, LiteralId, Module, OpId,
    OperandList, SideTable, VarId,
};
use anfora::visit::{
    Binding, ExprFunctor, HoldsBody, Link, Memo, Mutator, Rewrite, RewriteError, Site, Visit, Visitor, chain, mutate,
    walk,
};

use crate::programs::CHAIN;

/// A program with multiplications by one.
#[derive(Debug)]
pub struct Subject {
    /// The module of the program.
    pub module: Module,
    /// The function of the program.
    pub key: FunctionKey,
    /// The operator `multiply`.
    pub multiply: OpId,
    /// The constant 1.
    pub one: LiteralId,
}

impl Subject {
    /// Builds the benchmark program of `n` bindings, in which every fourth product with a constant
    /// is a product with 1.
    ///
    /// # Panics
    /// If it cannot be built, which is a defect.
    pub fn chain(n: usize) -> Subject {
        let mut subject = Subject::of(CHAIN.build(n));
        let (function, cx) = subject.module.get_mut(subject.key).expect("the program has a function");
        let mut editor = Editor::new(cx, &mut function.body);
        let one = editor.literal_id(subject.one);
        let products: Vec<OperandList> = chain(editor.body, editor.body.root())
            .filter_map(|b| match editor.body.expr(b.value) {
                Expr::CallOp { op, operands, .. } if op == subject.multiply => Some(operands),
                _ => None,
            })
            .filter(|&operands| matches!(editor.body.expr(editor.body.operands(operands)[1]), Expr::Literal(_)))
            .collect();
        for operands in products.into_iter().step_by(4) {
            editor.body.set_operand(operands, 1, one);
        }
        subject
    }

    /// Builds ifs that nest `n` deep in their first branches. Each branch has a binding, and every
    /// fourth of these is a product with 1.
    ///
    /// # Panics
    /// If it cannot be built, which is a defect.
    pub fn nest(n: usize) -> Subject {
        let mut module = Module::new(anfora::ops::standard());
        let mut f = FunctionBuilder::new(&mut module, "main");
        let ty = f.cx().types.static_tensor(DType::Float32, &[8]);
        let flag = f.cx().types.scalar(DType::Bool);
        let (x, c) = (f.param("x", ty), f.param("c", flag));
        let one = f.literal(Literal::splat(&[8], 1f32));
        let mut tail = x;
        for i in 0..n {
            f.open_block();
            let value = match i % 4 {
                0 => f.call_op("multiply", &[tail, one], &[]),
                _ => f.call_op("add", &[tail, x], &[]),
            };
            tail = f.bind("", value.expect("the operands fit"));
        }
        for _ in 0..n {
            let block = f.close_block(tail).expect("a block is open");
            tail = f.if_(c, block, x).expect("the branches fit");
        }
        f.finish(tail).expect("the program is well-typed");
        Subject::of(module)
    }

    fn of(mut module: Module) -> Subject {
        let one = module.cx.literals.intern(Literal::splat(&[8], 1f32));
        let multiply = module.cx.ops.resolve("multiply").expect("a standard operator");
        Subject { key: module.order()[0], multiply, one, module }
    }

    /// Returns the body of the function.
    ///
    /// # Panics
    /// Never, since the function exists.
    pub fn body(&self) -> &Body {
        &self.module.get(self.key).expect("the program has a function").body
    }
}

struct Uses<'b>(&'b Body, SideTable<ExprId, u32>);

impl HoldsBody for Uses<'_> {
    fn body(&self) -> &Body {
        self.0
    }
}

impl ExprFunctor for Uses<'_> {
    type Output = ();

    fn visit_default(&mut self, id: ExprId) {
        self.recurse_parts(id, |_, ()| {});
    }

    fn visit_var(&mut self, var: VarId) {
        *self.1.get_mut(var.expr()) += 1;
    }
}

/// Counts the uses of variables by recursion.
pub fn recurse_uses(body: &Body) -> SideTable<ExprId, u32> {
    let mut uses = Uses(body, body.side_table(0));
    uses.recurse(body.root());
    uses.1
}

struct WalkedUses(SideTable<ExprId, u32>);

impl Visitor for WalkedUses {
    type Break = Infallible;

    #[inline(always)]
    fn visit_use(&mut self, _: &Body, var: VarId) -> Visit<Infallible> {
        *self.0.get_mut(var.expr()) += 1;
        Visit::Continue
    }
}

/// Counts the uses of variables by a visitor.
pub fn walk_uses(body: &Body) -> SideTable<ExprId, u32> {
    let mut uses = WalkedUses(body.side_table(0));
    let _ = walk(body, &mut uses);
    uses.0
}

struct MultiplyByOne {
    multiply: OpId,
    one: LiteralId,
}

impl MultiplyByOne {
    /// Returns the expression that replaces a node, if the node is a product with 1.
    #[inline]
    fn operand(&self, body: &Body, id: ExprId) -> Option<ExprId> {
        match body.expr(id) {
            Expr::CallOp { op, operands, .. } if op == self.multiply => match body.operands(operands) {
                &[x, one] if body.as_literal(one) == Some(self.one) && body.ty(x) == body.ty(id) => Some(x),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Mutator for MultiplyByOne {
    type Error = RewriteError;

    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, RewriteError> {
        Ok(self.operand(site.editor.body, id).map_or(Rewrite::Keep, Rewrite::Replace))
    }
}

/// Rewrites `x * 1` to `x` by a mutator.
///
/// # Panics
/// If it fails, which is a defect.
pub fn mutate_products(subject: &mut Subject) {
    let mut mutator = MultiplyByOne { multiply: subject.multiply, one: subject.one };
    let (function, cx) = subject.module.get_mut(subject.key).expect("the program has a function");
    mutate(&mut Editor::new(cx, &mut function.body), &mut mutator).expect("an operand has the type of the product");
}

struct Recursive<'b> {
    body: &'b mut Body,
    rule: MultiplyByOne,
    atoms: Memo<ExprId>,
}

impl HoldsBody for Recursive<'_> {
    fn body(&self) -> &Body {
        self.body
    }
}

impl ExprFunctor for Recursive<'_> {
    type Output = ExprId;

    fn visit_default(&mut self, id: ExprId) -> ExprId {
        id
    }

    fn visit_var(&mut self, var: VarId) -> ExprId {
        self.atoms.get(var.expr()).unwrap_or(var.expr())
    }

    fn visit_call_op(&mut self, id: ExprId, _: OpId, operands: OperandList, _: AttrsId) -> ExprId {
        for i in 0..operands.len() {
            let operand = self.body.operands(operands)[i];
            let operand = self.recurse(operand);
            self.body.set_operand(operands, i, operand);
        }
        self.rule.operand(self.body, id).unwrap_or(id)
    }

    fn visit_let(&mut self, binding: Binding) -> ExprId {
        let value = self.recurse(binding.value);
        if self.body.expr(value).is_atom() {
            self.atoms.insert(binding.var.expr(), value);
            return self.recurse(binding.rest);
        }
        Link::Value(binding.id).set(self.body, value);
        let rest = self.recurse(binding.rest);
        Link::Rest(binding.id).set(self.body, rest);
        binding.id
    }

    fn visit_if(&mut self, id: ExprId, cond: ExprId, then_block: ExprId, else_block: ExprId) -> ExprId {
        let cond = self.recurse(cond);
        let then_block = self.recurse(then_block);
        let else_block = self.recurse(else_block);
        self.body.set_expr(id, Expr::If { cond, then_block, else_block });
        id
    }
}

/// Rewrites `x * 1` to `x` by recursion. Unlike a [`Mutator`], does not look after types and
/// dataflow regions.
///
/// # Panics
/// Never, since the function exists.
pub fn recurse_products(subject: &mut Subject) {
    let rule = MultiplyByOne { multiply: subject.multiply, one: subject.one };
    let (function, _) = subject.module.get_mut(subject.key).expect("the program has a function");
    let root = function.body.root();
    let root = Recursive { body: &mut function.body, rule, atoms: Memo::new() }.recurse(root);
    function.body.set_root(root);
}
