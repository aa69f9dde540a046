//! The baseline: an ordinary tree of boxes, which is read and rewritten by recursion. `stacker`
//! guards every level of the recursion.
//!
//! The tree has the kinds of expression that the programs of [`rewrites`](crate::rewrites) use. It
//! lacks the types, places in the source, metadata and dataflow regions that the arenas have. A
//! tree this deep cannot even be dropped without a guard: see its `Drop`.

use anfora::ir::{AttrsId, Body, EntityId, Expr, ExprId, LiteralId, OpId, OperandList, VarId};
use anfora::visit::{Binding, ExprFunctor, HoldsBody};

/// The limits of `functor`, so that both pay for the same.
const RED_ZONE: usize = 32 << 10;
const SEGMENT: usize = 2 << 20;

fn guarded<R>(step: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(RED_ZONE, SEGMENT, step)
}

/// An expression.
pub enum Tree {
    /// A variable, by number.
    Var(usize),
    /// A constant.
    Literal(LiteralId),
    /// A call of an operator.
    CallOp(OpId, Vec<Tree>),
    /// A binding: its number, its value and the rest.
    Let(usize, Box<Tree>, Box<Tree>),
    /// The condition and the branches.
    If(Box<Tree>, Box<Tree>, Box<Tree>),
}

/// A tree that is dropped level by level.
pub struct Program(pub Tree);

// A derived implementation would recurse.
anfora::ir::brief_debug! {
    Program;
    Tree;
}

impl Drop for Program {
    fn drop(&mut self) {
        dismantle(std::mem::replace(&mut self.0, Tree::Var(0)));
    }
}

fn dismantle(tree: Tree) {
    guarded(|| match tree {
        Tree::Var(_) | Tree::Literal(_) => {}
        Tree::CallOp(_, operands) => operands.into_iter().for_each(dismantle),
        Tree::Let(_, value, rest) => {
            dismantle(*value);
            dismantle(*rest);
        }
        Tree::If(cond, then_block, else_block) => {
            dismantle(*cond);
            dismantle(*then_block);
            dismantle(*else_block);
        }
    });
}

impl Program {
    /// Builds the tree of a body. Variables have the numbers of their ids.
    ///
    /// # Panics
    /// If the body has an expression that the tree cannot hold.
    pub fn of(body: &Body) -> Program {
        Program(Builder(body).recurse(body.root()))
    }

    /// Counts the uses of variables, whose numbers are below `len`.
    pub fn uses(&self, len: usize) -> Vec<u32> {
        let mut uses = vec![0; len];
        count_uses(&self.0, &mut uses);
        uses
    }

    /// Replaces `x * 1` by `x` in place, and drops bindings whose values become atoms.
    pub fn rewrite(&mut self, len: usize, multiply: OpId, one: LiteralId) {
        let mut rewrite = Rewrite { multiply, one, atoms: vec![None; len] };
        rewrite.in_place(&mut self.0);
    }

    /// Does the same as [`Program::rewrite`] in the functional style, by making a new tree.
    pub fn rebuild(&mut self, len: usize, multiply: OpId, one: LiteralId) {
        let mut rewrite = Rewrite { multiply, one, atoms: vec![None; len] };
        self.0 = rewrite.rebuilt(std::mem::replace(&mut self.0, Tree::Var(0)));
    }

    /// Returns every node in order, as its kind and a number, for comparisons.
    pub fn flat(&self) -> Vec<(u8, usize)> {
        let mut nodes = Vec::new();
        flatten(&self.0, &mut nodes);
        nodes
    }
}

fn count_uses(tree: &Tree, uses: &mut [u32]) {
    guarded(|| match tree {
        Tree::Var(var) => uses[*var] += 1,
        Tree::Literal(_) => {}
        Tree::CallOp(_, operands) => operands.iter().for_each(|o| count_uses(o, uses)),
        Tree::Let(_, value, rest) => {
            count_uses(value, uses);
            count_uses(rest, uses);
        }
        Tree::If(cond, then_block, else_block) => {
            count_uses(cond, uses);
            count_uses(then_block, uses);
            count_uses(else_block, uses);
        }
    });
}

#[derive(Copy, Clone)]
enum Atom {
    Var(usize),
    Literal(LiteralId),
}

impl Atom {
    fn of(tree: &Tree) -> Option<Atom> {
        match *tree {
            Tree::Var(var) => Some(Atom::Var(var)),
            Tree::Literal(literal) => Some(Atom::Literal(literal)),
            _ => None,
        }
    }

    fn tree(self) -> Tree {
        match self {
            Atom::Var(var) => Tree::Var(var),
            Atom::Literal(literal) => Tree::Literal(literal),
        }
    }
}

struct Rewrite {
    multiply: OpId,
    one: LiteralId,
    /// The atoms that replace variables.
    atoms: Vec<Option<Atom>>,
}

impl Rewrite {
    fn in_place(&mut self, tree: &mut Tree) {
        guarded(|| match tree {
            Tree::Var(var) => {
                if let Some(atom) = self.atoms[*var] {
                    *tree = atom.tree();
                }
            }
            Tree::Literal(_) => {}
            Tree::CallOp(op, operands) => {
                operands.iter_mut().for_each(|o| self.in_place(o));
                if *op == self.multiply && matches!(operands[1], Tree::Literal(l) if l == self.one) {
                    *tree = operands.swap_remove(0);
                }
            }
            Tree::Let(var, value, rest) => {
                self.in_place(value);
                match Atom::of(value) {
                    Some(atom) => {
                        self.atoms[*var] = Some(atom);
                        self.in_place(rest);
                        *tree = std::mem::replace(rest, Tree::Var(0));
                    }
                    None => self.in_place(rest),
                }
            }
            Tree::If(cond, then_block, else_block) => {
                self.in_place(cond);
                self.in_place(then_block);
                self.in_place(else_block);
            }
        });
    }

    fn rebuilt(&mut self, tree: Tree) -> Tree {
        guarded(|| match tree {
            Tree::Var(var) => self.atoms[var].map_or(Tree::Var(var), Atom::tree),
            Tree::Literal(literal) => Tree::Literal(literal),
            Tree::CallOp(op, operands) => {
                let mut operands: Vec<Tree> = operands.into_iter().map(|o| self.rebuilt(o)).collect();
                if op == self.multiply && matches!(operands[1], Tree::Literal(l) if l == self.one) {
                    return operands.swap_remove(0);
                }
                Tree::CallOp(op, operands)
            }
            Tree::Let(var, value, rest) => {
                let value = self.rebuilt(*value);
                if let Some(atom) = Atom::of(&value) {
                    self.atoms[var] = Some(atom);
                    return self.rebuilt(*rest);
                }
                Tree::Let(var, Box::new(value), Box::new(self.rebuilt(*rest)))
            }
            Tree::If(cond, then_block, else_block) => {
                let cond = Box::new(self.rebuilt(*cond));
                let then_block = Box::new(self.rebuilt(*then_block));
                Tree::If(cond, then_block, Box::new(self.rebuilt(*else_block)))
            }
        })
    }
}

fn flatten(tree: &Tree, nodes: &mut Vec<(u8, usize)>) {
    guarded(|| match tree {
        Tree::Var(var) => nodes.push((0, *var)),
        Tree::Literal(literal) => nodes.push((1, literal.index())),
        Tree::CallOp(op, operands) => {
            nodes.push((2, op.index()));
            operands.iter().for_each(|o| flatten(o, nodes));
        }
        Tree::Let(var, value, rest) => {
            nodes.push((3, *var));
            flatten(value, nodes);
            flatten(rest, nodes);
        }
        Tree::If(cond, then_block, else_block) => {
            nodes.push((4, 0));
            flatten(cond, nodes);
            flatten(then_block, nodes);
            flatten(else_block, nodes);
        }
    });
}

/// A functor that builds a tree of boxes from the arenas.
struct Builder<'b>(&'b Body);

impl HoldsBody for Builder<'_> {
    fn body(&self) -> &Body {
        self.0
    }
}

impl ExprFunctor for Builder<'_> {
    type Output = Tree;

    fn visit_default(&mut self, id: ExprId) -> Tree {
        match self.0.expr(id) {
            Expr::Literal(literal) => Tree::Literal(literal),
            other => panic!("the tree has no {other:?}"),
        }
    }

    fn visit_var(&mut self, var: VarId) -> Tree {
        Tree::Var(var.index())
    }

    fn visit_call_op(&mut self, _: ExprId, op: OpId, operands: OperandList, _: AttrsId) -> Tree {
        Tree::CallOp(op, self.0.operands(operands).iter().map(|&o| self.recurse(o)).collect())
    }

    fn visit_let(&mut self, binding: Binding) -> Tree {
        let value = Box::new(self.recurse(binding.value));
        Tree::Let(binding.var.index(), value, Box::new(self.recurse(binding.rest)))
    }

    fn visit_if(&mut self, _: ExprId, cond: ExprId, then_block: ExprId, else_block: ExprId) -> Tree {
        let cond = Box::new(self.recurse(cond));
        let then_block = Box::new(self.recurse(then_block));
        Tree::If(cond, then_block, Box::new(self.recurse(else_block)))
    }
}
