//! Hashes of items, by which items of two functions are matched. They do not depend on the names
//! of variables.

use crate::alpha::hash::ModuleHasher;
use crate::alpha::mix;
use crate::core::entity::ExprId;
use crate::core::expr::Expr;
use crate::tables::entry::Entry;

use super::items::{BlockRole, Items, NONE, Role};

/// The number of steps from an item to the definitions of its operands that [`Tokens::near`] takes
/// into account.
const NEAR: usize = 2;

/// The hashes of the items of a function, from the most to the least specific.
pub(super) struct Tokens {
    /// The item and everything that it is computed from.
    pub(super) full: Vec<u64>,
    /// The item and the definitions of its operands, a few steps far.
    pub(super) near: Vec<u64>,
    /// The item: its operator, attributes and constants.
    pub(super) own: Vec<u64>,
    /// The kind of the item: its operator.
    pub(super) kind: Vec<u64>,
}

impl Tokens {
    pub(super) fn of(items: &Items<'_>, hasher: &mut ModuleHasher<'_>) -> Tokens {
        let kind: Vec<u64> = (0..items.list.len()).map(|i| kind_hash(items, i, hasher)).collect();
        let own: Vec<u64> = kind.iter().enumerate().map(|(i, &kind)| own_hash(items, i, kind, hasher)).collect();
        let mut near = own.clone();
        for _ in 0..NEAR {
            near = (0..own.len()).map(|i| with_operands(items, i, own[i], &near)).collect();
        }
        let mut full = vec![0; own.len()];
        for (i, &hash) in own.iter().enumerate() {
            // Parameters of one type are told apart by their number.
            let number = if items.list[i].role == Role::Parameter { i as u64 } else { 0 };
            full[i] = with_operands(items, i, mix(hash, number), &full);
        }
        Tokens { full, near, own, kind }
    }
}

fn kind_hash(items: &Items<'_>, i: usize, hasher: &mut ModuleHasher<'_>) -> u64 {
    let at = &items.list[i];
    let role = match at.role {
        Role::Parameter => return 1,
        Role::Binding => 2,
        Role::Operand { .. } => 3,
        Role::Result => 4 + u64::from(items.blocks[at.block as usize].role == BlockRole::Root),
    };
    if items.is_reference(i as u32) {
        return mix(role, 10);
    }
    let kind = match items.body.expr(at.node) {
        Expr::CallOp { op, .. } => hasher.entry(Entry::Op(op)),
        Expr::Call { .. } => 11,
        Expr::Tuple(_) => 12,
        Expr::Proj { .. } => 13,
        Expr::If { .. } => 14,
        Expr::Lambda { .. } => 15,
        _ => 16,
    };
    mix(role, kind)
}

fn own_hash(items: &Items<'_>, i: usize, kind: u64, hasher: &mut ModuleHasher<'_>) -> u64 {
    let (body, at) = (items.body, &items.list[i]);
    if at.role == Role::Parameter {
        return mix(kind, hasher.entry(Entry::Type(body.ty(at.node))));
    }
    if items.is_reference(i as u32) {
        return mix(kind, constant_hash(items, at.node, hasher));
    }
    let mut hash = mix(kind, hasher.head(body, at.node));
    for &input in body.inputs(at.node) {
        hash = mix(hash, constant_hash(items, input, hasher));
    }
    hash
}

/// Returns the hash of a constant, global or operator; the same number for everything else.
fn constant_hash(items: &Items<'_>, id: ExprId, hasher: &mut ModuleHasher<'_>) -> u64 {
    match items.body.expr(id) {
        Expr::Literal(literal) => hasher.entry(Entry::Literal(literal)),
        Expr::Op(op) => hasher.entry(Entry::Op(op)),
        Expr::Global(_) => 20,
        Expr::None => 21,
        _ => 22,
    }
}

/// Mixes the hashes of the items that define the operands of an item into its own hash.
fn with_operands(items: &Items<'_>, i: usize, own: u64, hashes: &[u64]) -> u64 {
    let (body, at) = (items.body, &items.list[i]);
    if at.role == Role::Parameter {
        return own;
    }
    let defined = |id: ExprId| match items.item_of(id) {
        NONE => 0,
        item => hashes[item as usize],
    };
    match items.is_reference(i as u32) {
        true => mix(own, defined(at.node)),
        false => body.inputs(at.node).iter().fold(own, |hash, &input| mix(hash, defined(input))),
    }
}
