//! # ToGraphNormalForm
//!
//! ```text
//! Notation   v, w variables; n a call, tuple or projection; b an If, a lambda, or an n with one of
//!            these in it; B a block.
//! Needs      Nothing: any form.
//! Effect     let v = n; rest                 =>  rest[v := n]
//!              one node, however often v is used
//!            let v = b; rest                 =>  rest[v := b]
//!              v is used once, and not by a node that is shared
//!            let v = w; rest                 =>  rest[v := w]
//!              likewise for a global and an operator as a value
//!            dataflow { bs output(..) }      =>  bs
//!              graphs have no regions
//!            A body with blocks as values or operands is brought into A-normal form first.
//! Moves      A node is evaluated in the innermost block that encloses its uses: as late as
//!            possible, and in a branch if only that branch uses it. So a call that succeeded
//!            still succeeds, and a call that may fail runs in no more cases than before.
//! Stays      An impure value. A match_cast, and a value that contains one. A lambda that names
//!            itself. A b that is used more than once, since a block has only one parent. A value
//!            that only a lambda inside B uses, since each call would evaluate it again. A
//!            constant, since a type rule may infer more from a constant than from a variable. A
//!            variable whose stated type is more general than that of its value. A value that
//!            nothing uses (DeadCodeElimination removes it).
//! Not done   Equal nodes are not merged (EliminateCommonSubexpr). Nodes have no names, so those of
//!            the variables are lost. The metadata of a binding moves to its node. A binding stays
//!            if its node cannot take the metadata.
//! Cost       Three walks; the innermost common block of two is found in time logarithmic in the
//!            nesting depth. Idempotent.
//!
//! before     def @f(%x: int32) {                after   def @f(%x: int32) {
//!              let %s = add(%x, 1);                       %0 = add(%x, 1);
//!              let %n = negative(%s);                     multiply(%0, negative(%0))
//!              let %m = multiply(%s, %n);               }
//!              %m
//!            }
//! ```
//!
//! ToANormalForm is its inverse: this pass turns the result into the same graph again. A first
//! run of both passes moves every binding to just before its first use; further runs change
//! nothing.

use anfora_ir::{
    AncestorTree, Body, BodyPurity, Context, Cursor, EntityId, Expr, ExprId, IdSet, LetFlags, Purity, SharedEdits,
    Step, VarFlags,
};
use anfora_manager::register_pass;
use anfora_visit::{Binding, Link, Memo, chain, set_var_flags};

use crate::to_a_normal_form::to_a_normal_form;

register_pass! {
    /// Turns bindings into the nodes of a graph where this preserves meaning
    pub TO_GRAPH_NORMAL_FORM = FunctionPass("ToGraphNormalForm", 0)
        .establishing(["no-dataflow"])
        .breaking(["anf"])
        .sparing_primitive();
    run |edit, view, cx| {
        let dissolved = to_graph_normal_form(edit.cx, &mut edit.function.body, view.purity());
        cx.count("dissolved", dissolved as u64);
        Ok(())
    }
}

/// Converts a function to graph normal form. Returns the number of bindings that became nodes or
/// were replaced by atoms.
pub fn to_graph_normal_form(cx: &Context, body: &mut Body, purity: &Purity) -> usize {
    // A node that gets several users is the same for all of them.
    let before = body.shared_edits(SharedEdits::Meant);
    if has_blocks_as_values(body) {
        to_a_normal_form(cx, body);
    }
    let program = Program::look_at(cx, body);
    let impure = BodyPurity::new(cx, body, purity);
    let (dissolved, count) = Uses::new(body).choose(body, &program, &impure);
    Rewriter { body: &mut *body, dissolved, stands_for: Memo::new() }.run(&program.order);
    body.shared_edits(before);
    count
}

fn has_blocks_as_values(body: &Body) -> bool {
    let is_block = |id: ExprId| matches!(body.expr(id), Expr::Let { .. });
    body.exprs().any(|(id, expr)| match expr {
        Expr::Let { value, .. } => is_block(value),
        _ => body.inputs(id).iter().any(|&o| is_block(o)),
    })
}

/// A body in program order, with the reasons that keep bindings in place.
struct Program {
    /// Each Let after its value and before the rest of its chain, other nodes after all nodes that
    /// they refer to.
    order: Vec<ExprId>,
    /// Nodes, and first expressions of blocks, that are a `match_cast` or contain one.
    checked: IdSet<ExprId>,
    /// Calls, tuples and projections that contain an If or a lambda.
    owners: IdSet<ExprId>,
    /// Lets of lambdas that name themselves.
    recursive: IdSet<ExprId>,
}

impl Program {
    fn look_at(cx: &Context, body: &Body) -> Program {
        let none = || IdSet::with_capacity(0);
        let order = Vec::with_capacity(body.len());
        let mut program = Program { order, checked: none(), owners: none(), recursive: none() };
        let mut used = IdSet::with_capacity(body.len());
        // For each open block, true if one of its values contains a `match_cast`.
        let mut blocks: Vec<bool> = Vec::new();
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            match step {
                Step::Atom(atom) => {
                    used.insert(atom);
                }
                Step::Flat(id) | Step::Exit(id) => {
                    program.order.push(id);
                    let mut checked = false;
                    match body.expr(id) {
                        Expr::If { .. } | Expr::Lambda { .. } => {
                            checked = body.parts(id).any(|part| program.checked.contains(part));
                        }
                        expr => {
                            if let Expr::CallOp { op, .. } = expr {
                                checked = cx.ops.facts(op).is_match_cast();
                            }
                            for &operand in body.inputs(id) {
                                used.insert(operand);
                                checked |= program.checked.contains(operand);
                                if body.expr(operand).binds() || program.owners.contains(operand) {
                                    program.owners.insert(id);
                                }
                            }
                        }
                    }
                    if checked {
                        program.checked.insert(id);
                    }
                }
                Step::Bound(id) => {
                    let Some(Binding { var, value, .. }) = Binding::of(body, id) else { continue };
                    program.order.push(id);
                    if used.contains(var.expr()) {
                        program.recursive.insert(id);
                    }
                    if program.checked.contains(value)
                        && let Some(block) = blocks.last_mut()
                    {
                        *block = true;
                    }
                }
                Step::EnterBlock(..) => blocks.push(false),
                Step::ExitBlock(start, _) => {
                    if blocks.pop() == Some(true) || program.checked.contains(body.tail(start)) {
                        program.checked.insert(start);
                    }
                }
                Step::Let(_) | Step::Enter(_) | Step::Seen(_) => {}
            }
        }
        program
    }
}

const NOWHERE: u32 = u32::MAX;

/// The users of each node and variable, as if the processed bindings were dissolved.
struct Uses {
    tree: AncestorTree,
    /// By block: the outermost block that is evaluated together with it, which is the block of a
    /// lambda or of the function.
    callable: Vec<u32>,
    /// By node, Let and variable: the innermost block that encloses all uses. For a Let, the block
    /// that it is in.
    home: Vec<u32>,
    /// By node and variable: the number of uses.
    count: Vec<u32>,
    /// Nodes and variables that a shared node uses, directly or through other nodes.
    below_shared: IdSet<ExprId>,
}

impl Uses {
    fn new(body: &Body) -> Uses {
        Uses {
            tree: AncestorTree::new(),
            callable: vec![0],
            home: vec![NOWHERE; body.len()],
            count: vec![0; body.len()],
            below_shared: IdSet::with_capacity(0),
        }
    }

    /// Returns the Lets to dissolve, and their number. Goes from users to the nodes that they use,
    /// so that all uses are known when a node or binding is reached.
    fn choose(mut self, body: &Body, program: &Program, impure: &BodyPurity) -> (IdSet<ExprId>, usize) {
        let (mut chosen, mut count) = (IdSet::with_capacity(body.len()), 0);
        let mut carriers = IdSet::with_capacity(0);
        self.use_block(body, body.root(), 0);
        for &id in program.order.iter().rev() {
            let Some(Binding { var, value, .. }) = Binding::of(body, id) else {
                self.use_parts(body, id);
                continue;
            };
            let block = self.home[id.index()];
            let (var, meta) = (var.expr(), body.meta(var.expr()).is_some());
            let moves = body.ty(var) == body.ty(value)
                && match body.expr(value) {
                    Expr::Var { .. } | Expr::Global(_) | Expr::Op(_) => !meta,
                    Expr::Literal(_) | Expr::None => false,
                    expr => {
                        let owner = expr.binds() || program.owners.contains(value);
                        let one_place = self.count[var.index()] == 1 && !self.below_shared.contains(var);
                        let carried = meta && (body.meta(value).is_some() || carriers.contains(value));
                        self.count[var.index()] > 0
                            && !carried
                            && (!owner || one_place && !meta)
                            && self.callable[self.home[var.index()] as usize] == self.callable[block as usize]
                            && !program.recursive.contains(id)
                            && !program.checked.contains(value)
                            && !impure.is_impure(value)
                    }
                };
            if !moves {
                self.use_in(value, block, 1, Holder::Single);
                continue;
            }
            chosen.insert(id);
            count += 1;
            if meta {
                carriers.insert(value);
            }
            if self.count[var.index()] == 0 {
                continue;
            }
            let holder = if self.below_shared.contains(var) { Holder::Shared } else { Holder::Single };
            self.use_in(value, self.home[var.index()], self.count[var.index()], holder);
        }
        (chosen, count)
    }

    fn use_in(&mut self, part: ExprId, block: u32, times: u32, holder: Holder) {
        let home = &mut self.home[part.index()];
        *home = if *home == NOWHERE { block } else { self.tree.common(*home, block) };
        let count = &mut self.count[part.index()];
        *count = count.saturating_add(times);
        if holder == Holder::Shared {
            self.below_shared.insert(part);
        }
    }

    fn use_block(&mut self, body: &Body, start: ExprId, block: u32) {
        for binding in chain(body, start) {
            self.home[binding.id.index()] = block;
        }
        self.use_in(body.tail(start), block, 1, Holder::Single);
    }

    fn use_parts(&mut self, body: &Body, id: ExprId) {
        let home = self.home[id.index()];
        let holder = match self.count[id.index()] {
            0 | 1 if !self.below_shared.contains(id) => Holder::Single,
            _ => Holder::Shared,
        };
        match body.expr(id) {
            Expr::If { cond, then_block, else_block } => {
                self.use_in(cond, home, 1, holder);
                for block in [then_block, else_block] {
                    let inner = self.tree.add(home);
                    self.callable.push(self.callable[home as usize]);
                    self.use_block(body, block, inner);
                }
            }
            Expr::Lambda { body: block, .. } => {
                let inner = self.tree.add(home);
                self.callable.push(inner);
                self.use_block(body, block, inner);
            }
            _ => {
                for &operand in body.inputs(id) {
                    self.use_in(operand, home, 1, holder);
                }
            }
        }
    }
}

/// The kind of a user: `Shared` if it is a shared node, or a shared node uses it.
#[derive(Copy, Clone, PartialEq)]
enum Holder {
    Single,
    Shared,
}

/// Removes the chosen Lets from their chains, and replaces their variables by their values.
struct Rewriter<'a> {
    body: &'a mut Body,
    dissolved: IdSet<ExprId>,
    /// By variable of a dissolved Let: its value.
    stands_for: Memo<ExprId>,
}

impl Rewriter<'_> {
    fn run(mut self, order: &[ExprId]) {
        order.iter().for_each(|&id| self.node(id));
        self.block(Link::Root);
    }

    fn node(&mut self, id: ExprId) {
        match self.body.expr(id) {
            Expr::CallOp { operands, .. } | Expr::Call { operands, .. } | Expr::Tuple(operands) => {
                for i in 0..operands.len() {
                    if let Some(node) = self.stands_for.get(self.body.operand(operands, i)) {
                        self.body.set_operand(operands, i, node);
                    }
                }
            }
            Expr::Proj { .. } => self.block(Link::Operand(id, 0)),
            Expr::If { .. } => [Link::Cond(id), Link::Then(id), Link::Else(id)].into_iter().for_each(|l| self.block(l)),
            Expr::Lambda { .. } => self.block(Link::Lambda(id)),
            Expr::Let { .. } => self.bound(id),
            _ => {}
        }
    }

    fn bound(&mut self, id: ExprId) {
        let Some(Binding { var, value, rest, .. }) = Binding::of(self.body, id) else { return };
        let value = self.stands_for.get(value).unwrap_or(value);
        if !self.dissolved.contains(id) {
            self.body.set_expr(id, Expr::Let { var, value, body: rest, flags: LetFlags::PLAIN });
            if self.body.is_dataflow_var(var) {
                set_var_flags(self.body, var, VarFlags::PLAIN);
            }
            return;
        }
        self.stands_for.insert(var.expr(), value);
        if let Some(meta) = self.body.meta(var.expr()) {
            self.body.set_meta(var.expr(), None);
            self.body.set_meta(value, Some(meta));
        }
    }

    /// Removes the dissolved Lets from the chain at a link, or replaces the variable there.
    fn block(&mut self, mut link: Link) {
        let mut at = link.target(self.body);
        while let Some(binding) = Binding::of(self.body, at) {
            if !self.dissolved.contains(at) {
                link.set(self.body, at);
                link = Link::Rest(at);
            }
            at = binding.rest;
        }
        let tail = self.stands_for.get(at).unwrap_or(at);
        link.set(self.body, tail);
    }
}
