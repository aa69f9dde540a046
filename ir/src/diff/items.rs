//! The parts of a function that are compared one by one.
//!
//! An [`Item`] is a parameter, a binding, the result of a block, or an expression that is an
//! operand and not bound to a variable. Items are in program order. Each is in a block, which
//! belongs to another item, or is the block of the function.

use rustc_hash::FxHashMap;

use crate::core::body::Body;
use crate::core::entity::{EntityId, ExprId, NameId};
use crate::core::expr::Expr;
use crate::core::function::Function;
use crate::walk::cursor::{BlockKind, Cursor, Step};

/// Marks that there is no item, or no block.
pub(super) const NONE: u32 = u32::MAX;

/// The kind of an item.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// A parameter of the function or of a `fn`.
    Parameter,
    /// A Let.
    Binding,
    /// A call, tuple, projection, If or Lambda that is an operand. Its container is the binding or
    /// result that it is a part of.
    Operand { container: u32 },
    /// The tail of a block.
    Result,
}

#[derive(Copy, Clone, Debug)]
pub(super) struct Item {
    pub(super) role: Role,
    /// The variable of a parameter, the value of a Let, or the expression itself.
    pub(super) node: ExprId,
    /// The Let of a binding.
    pub(super) binder: Option<ExprId>,
    pub(super) block: u32,
}

/// The position of a block in its owner.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum BlockRole {
    Root,
    Then,
    Else,
    Lambda,
    Value,
    /// A block that is an operand, with its number among such blocks of the owner.
    Operand(u32),
}

#[derive(Copy, Clone, Debug)]
pub(super) struct Block {
    /// The item that the block belongs to; [`NONE`] for the block of the function.
    pub(super) owner: u32,
    pub(super) role: BlockRole,
    /// The item of the block's result; [`NONE`] for a declaration.
    pub(super) result: u32,
    /// The number of the first item after the block begins. The parameters of a `fn` are there.
    pub(super) first: u32,
}

/// The items and blocks of a function.
pub(super) struct Items<'a> {
    pub(super) body: &'a Body,
    pub(super) list: Vec<Item>,
    pub(super) blocks: Vec<Block>,
    /// For each expression, the item that it is the variable or the node of, or [`NONE`].
    of: Vec<u32>,
}

/// A block that the walk is in.
struct BlockItems {
    block: u32,
    /// The number of Lets and nodes of the block that the walk is in.
    inside: u32,
    /// The last binding or result of the block.
    container: u32,
}

impl<'a> Items<'a> {
    pub(super) fn of_function(function: &'a Function) -> Items<'a> {
        let body = &function.body;
        let mut items = Items { body, list: Vec::new(), blocks: Vec::new(), of: vec![NONE; body.len()] };
        if function.is_definition() {
            items.walk();
        } else {
            items.blocks.push(Block { owner: NONE, role: BlockRole::Root, result: NONE, first: 0 });
            items.parameters(body.params().iter().map(|p| p.expr()), 0);
        }
        items
    }

    fn walk(&mut self) {
        let body = self.body;
        let mut cursor = Cursor::new(body);
        let mut open: Vec<BlockItems> = Vec::new();
        let mut operand_blocks: FxHashMap<u32, u32> = FxHashMap::default();
        while let Some(step) = cursor.next(body) {
            match step {
                Step::EnterBlock(_, kind) => {
                    let block = self.enter_block(kind, &mut operand_blocks);
                    open.push(BlockItems { block, inside: 0, container: NONE });
                }
                Step::ExitBlock(..) => drop(open.pop()),
                Step::Let(id) => {
                    let Some(top) = open.last_mut() else { continue };
                    top.inside += 1;
                    top.container = self.binding(id, top.block);
                }
                Step::Atom(id) | Step::Flat(id) | Step::Enter(id) | Step::Seen(id) => {
                    let Some(top) = open.last_mut() else { continue };
                    if top.inside == 0 {
                        top.container = self.result(id, top.block);
                    } else if !body.expr(id).is_atom() && self.item_of(id) == NONE {
                        let role = Role::Operand { container: top.container };
                        self.push(Item { role, node: id, binder: None, block: top.block }, id);
                    }
                    top.inside += u32::from(matches!(step, Step::Enter(_)));
                }
                Step::Bound(_) | Step::Exit(_) => {
                    if let Some(top) = open.last_mut() {
                        top.inside -= 1;
                    }
                }
            }
        }
    }

    fn enter_block(&mut self, kind: BlockKind, operand_blocks: &mut FxHashMap<u32, u32>) -> u32 {
        let block = self.blocks.len() as u32;
        let (owner, role) = match kind {
            BlockKind::Root => (NONE, BlockRole::Root),
            BlockKind::Then(id) => (self.item_of(id), BlockRole::Then),
            BlockKind::Else(id) => (self.item_of(id), BlockRole::Else),
            BlockKind::Lambda(id) => (self.item_of(id), BlockRole::Lambda),
            BlockKind::Value(id) => (self.item_of(id), BlockRole::Value),
            BlockKind::Operand(id) => {
                let owner = self.item_of(id);
                let number = operand_blocks.entry(owner).or_default();
                *number += 1;
                (owner, BlockRole::Operand(*number))
            }
        };
        self.blocks.push(Block { owner, role, result: NONE, first: self.list.len() as u32 });
        let body = self.body;
        match kind {
            BlockKind::Root => self.parameters(body.params().iter().map(|p| p.expr()), block),
            BlockKind::Lambda(id) => {
                if let Expr::Lambda { lambda, .. } = body.expr(id) {
                    self.parameters(body.lambda_params(lambda).map(|p| p.expr()), block);
                }
            }
            _ => {}
        }
        block
    }

    fn parameters(&mut self, parameters: impl Iterator<Item = ExprId>, block: u32) {
        for var in parameters {
            self.push(Item { role: Role::Parameter, node: var, binder: None, block }, var);
        }
    }

    fn binding(&mut self, id: ExprId, block: u32) -> u32 {
        let Expr::Let { var, value, .. } = self.body.expr(id) else { return NONE };
        let item = self.push(Item { role: Role::Binding, node: value, binder: Some(id), block }, id);
        self.of[var.expr().index()] = item;
        let expr = self.body.expr(value);
        if !expr.is_atom() && !matches!(expr, Expr::Let { .. }) && self.item_of(value) == NONE {
            self.of[value.index()] = item;
        }
        item
    }

    fn result(&mut self, id: ExprId, block: u32) -> u32 {
        let item = Item { role: Role::Result, node: id, binder: None, block };
        let defines = !self.body.expr(id).is_atom() && self.item_of(id) == NONE;
        let number = self.list.len() as u32;
        self.list.push(item);
        if defines {
            self.of[id.index()] = number;
        }
        self.blocks[block as usize].result = number;
        number
    }

    fn push(&mut self, item: Item, defined: ExprId) -> u32 {
        let number = u32::try_from(self.list.len()).unwrap_or(NONE);
        self.list.push(item);
        self.of[defined.index()] = number;
        number
    }

    /// Returns the item that an expression is the variable, the Let or the node of, or [`NONE`].
    #[inline]
    pub(super) fn item_of(&self, id: ExprId) -> u32 {
        self.of[id.index()]
    }

    /// Returns true if the node of an item is an atom, or the node of an earlier item that is used
    /// again.
    #[inline]
    pub(super) fn is_reference(&self, item: u32) -> bool {
        let at = &self.list[item as usize];
        match self.body.expr(at.node) {
            Expr::Let { .. } => false,
            expr => at.role != Role::Parameter && (expr.is_atom() || self.item_of(at.node) != item),
        }
    }

    /// Returns the name of the variable of an item as an id of the names of the module.
    #[inline]
    pub(super) fn name(&self, item: u32) -> Option<NameId> {
        let at = &self.list[item as usize];
        let var = match (at.role, at.binder.map(|id| self.body.expr(id))) {
            (Role::Binding, Some(Expr::Let { var, .. })) => var,
            (Role::Parameter, _) => self.body.as_var(at.node)?,
            _ => return None,
        };
        self.body.var_name(var)
    }

    /// Returns the parameters that a block begins with.
    pub(super) fn parameters_of(&self, block: u32) -> impl Iterator<Item = u32> {
        let first = self.blocks[block as usize].first;
        (first..).take_while(move |&item| {
            self.list.get(item as usize).is_some_and(|at| at.role == Role::Parameter && at.block == block)
        })
    }

    /// Returns the binding before each binding of its block, and the parameter before each
    /// parameter; [`NONE`] for the first one, and for other items.
    pub(super) fn predecessors(&self) -> Vec<u32> {
        let mut last = vec![[NONE; 2]; self.blocks.len()];
        let before = |(i, at): (usize, &Item)| {
            let kind = match at.role {
                Role::Parameter => 0,
                Role::Binding => 1,
                Role::Operand { .. } | Role::Result => return NONE,
            };
            std::mem::replace(&mut last[at.block as usize][kind], i as u32)
        };
        self.list.iter().enumerate().map(before).collect()
    }

    /// Returns true for the items that correspond only if their blocks do: results, and parameters
    /// of a `fn`.
    pub(super) fn goes_with_its_block(&self, item: u32) -> bool {
        let at = &self.list[item as usize];
        match at.role {
            Role::Result => true,
            Role::Parameter => self.blocks[at.block as usize].role != BlockRole::Root,
            Role::Binding | Role::Operand { .. } => false,
        }
    }
}
