//! The comparison of two functions, item by item.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::alpha::MetaPolicy;
use crate::alpha::hash::ModuleHasher;
use crate::alpha::modules::Modules;
use crate::core::context::Context;
use crate::core::entity::{AttrId, AttrsId, ExprId, FunctionAttrId, NameId, TypeId};
use crate::core::expr::{Expr, LetFlags};
use crate::core::function::Function;
use crate::ops::op_def::OpDef;
use crate::tables::attrs::Attr;
use crate::tables::entry::Entry;

use super::items::{BlockRole, Item, Items, NONE, Role};
use super::matching::{Matching, Reading, Side};
use super::sequence::longest_increasing;
use super::tokens::Tokens;
use super::{ChangedPart, DifferenceKind, ItemDifference, ItemKind, PartChange, constants, describe};

/// Two lists of more items have a note that says where they differ.
const SHORT_LIST: usize = 16;

/// The comparison of the parts of two modules.
pub(super) struct Compare<'a> {
    pub(super) modules: Modules<'a>,
    /// The entries that were compared in this function and differ. Comparing them again takes no
    /// time.
    differ: FxHashSet<(Entry, Entry)>,
    /// More about entries that differ: see [`Compare::note`].
    notes: FxHashMap<(Entry, Entry), Option<String>>,
    /// The functions in attributes that were found to differ: see [`Compare::take_functions`].
    functions: Vec<ChangedFunction>,
}

/// A function in an attribute that differs.
pub(super) struct ChangedFunction {
    /// The number of the change among those of its item, and its attribute.
    pub(super) change: usize,
    pub(super) attribute: String,
    pub(super) left: FunctionAttrId,
    pub(super) right: FunctionAttrId,
}

/// The differences of two functions in their parameters and bodies.
pub(super) struct FoundItems {
    pub(super) items: Vec<ItemDifference>,
    /// The functions in attributes of these items that differ, each with the number of its item,
    /// and the label of that.
    pub(super) functions: Vec<(usize, String, ChangedFunction)>,
}

impl<'a> Compare<'a> {
    pub(super) fn new(modules: Modules<'a>) -> Compare<'a> {
        Compare { modules, differ: FxHashSet::default(), notes: FxHashMap::default(), functions: Vec::new() }
    }

    pub(super) fn left(&self) -> &'a Context {
        &self.modules.left.cx
    }

    pub(super) fn right(&self) -> &'a Context {
        &self.modules.right.cx
    }

    /// Forgets what depends on the symbols that correspond, before another reading begins.
    pub(super) fn begin_reading(&mut self) {
        self.modules.tables.take_back();
        self.differ.clear();
        self.functions.clear();
    }

    /// Takes the functions in attributes that differ, of the changes since the last call.
    fn take_functions(&mut self) -> Vec<ChangedFunction> {
        std::mem::take(&mut self.functions)
    }

    /// Returns true if two entries are equal, functions in attributes included.
    fn agree(&mut self, l: Entry, r: Entry) -> bool {
        if self.differ.contains(&(l, r)) {
            return false;
        }
        let equal = self.agree_at_first(l, r);
        if !equal {
            self.differ.insert((l, r));
        }
        equal
    }

    fn agree_at_first(&mut self, l: Entry, r: Entry) -> bool {
        if !self.modules.tables.agree(l, r) {
            return false;
        }
        if self.modules.tables.pending_functions.is_empty() {
            return true;
        }
        let equal = self.modules.function_attrs().is_ok();
        if !equal {
            self.modules.tables.abandon();
        }
        equal
    }

    /// Adds the change of a type.
    pub(super) fn types(&mut self, part: ChangedPart, l: TypeId, r: TypeId, to: &mut Vec<PartChange>) {
        if !self.agree(Entry::Type(l), Entry::Type(r)) {
            to.push(change(part, self.left().type_text(l), self.right().type_text(r)));
        }
    }

    /// Adds the changes of attributes, by name.
    pub(super) fn attrs(&mut self, part: fn(String) -> ChangedPart, l: AttrsId, r: AttrsId, to: &mut Vec<PartChange>) {
        let (left, right) = (self.left(), self.right());
        if l == left.attrs.empty() && r == right.attrs.empty() || self.agree(Entry::Attrs(l), Entry::Attrs(r)) {
            return;
        }
        let (list, others) = (left.attrs.list(l), right.attrs.list(r));
        let (mut i, mut j) = (0, 0);
        // Both lists are sorted by name.
        while i < list.len() || j < others.len() {
            let name = |cx: &'a Context, of: Option<&(NameId, AttrId)>| of.map(|&(n, v)| (cx.names.get(n), v));
            let (a, b) = (name(left, list.get(i)), name(right, others.get(j)));
            match (a, b) {
                (Some((a, l)), Some((b, r))) if a == b => {
                    (i, j) = (i + 1, j + 1);
                    if !self.agree(Entry::Attr(l), Entry::Attr(r)) {
                        self.note_functions(a, (l, r), to.len());
                        let note = self.note(Entry::Attr(l), Entry::Attr(r));
                        let texts = (describe::attribute(left, l), describe::attribute(right, r));
                        to.push(PartChange { note, ..change(part(a.to_string()), texts.0, texts.1) });
                    }
                }
                (Some((a, l)), b) if b.is_none_or(|(b, _)| a < b) => {
                    i += 1;
                    to.push(only_left(part(a.to_string()), describe::attribute(left, l)));
                }
                (_, Some((b, r))) => {
                    j += 1;
                    to.push(only_right(part(b.to_string()), describe::attribute(right, r)));
                }
                (_, None) => break,
            }
        }
    }

    /// Records the functions of two values of an attribute that differ: the values themselves, or
    /// the items of two lists.
    fn note_functions(&mut self, name: &str, (l, r): (AttrId, AttrId), change: usize) {
        let (left, right) = (self.left(), self.right());
        match (left.attrs.get(l), right.attrs.get(r)) {
            (&Attr::Function(left), &Attr::Function(right)) => {
                self.functions.push(ChangedFunction { change, attribute: name.to_string(), left, right });
            }
            (Attr::List(a), Attr::List(b)) if a.len() == b.len() => {
                for (i, (&l, &r)) in a.iter().zip(b).enumerate() {
                    if let (&Attr::Function(l_fn), &Attr::Function(r_fn)) = (left.attrs.get(l), right.attrs.get(r))
                        && !self.agree(Entry::Attr(l), Entry::Attr(r))
                    {
                        let attribute = format!("{name}[{i}]");
                        self.functions.push(ChangedFunction { change, attribute, left: l_fn, right: r_fn });
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns how far two constants are apart, or where two long lists differ first.
    fn note(&mut self, l: Entry, r: Entry) -> Option<String> {
        if let Some(known) = self.notes.get(&(l, r)) {
            return known.clone();
        }
        let (left, right) = (self.left(), self.right());
        let constants = |a, b| constants::distance(left.literals.get(a), right.literals.get(b));
        let note = match (l, r) {
            (Entry::Literal(a), Entry::Literal(b)) => constants(a, b),
            (Entry::Attr(l), Entry::Attr(r)) => match (left.attrs.get(l), right.attrs.get(r)) {
                (Attr::Literal(a), Attr::Literal(b)) => constants(*a, *b),
                (Attr::List(a), Attr::List(b)) if a.len() == b.len() && a.len() > SHORT_LIST => {
                    let differs = |&i: &usize| !self.agree(Entry::Attr(a[i]), Entry::Attr(b[i]));
                    (0..a.len()).find(differs).map(|i| {
                        let texts = (describe::attribute(left, a[i]), describe::attribute(right, b[i]));
                        format!("first at [{i}]: {} -> {}", texts.0, texts.1)
                    })
                }
                _ => None,
            },
            _ => None,
        };
        self.notes.insert((l, r), note.clone());
        note
    }

    /// Adds the changes of metadata, if it counts.
    pub(super) fn meta(&mut self, l: Option<AttrsId>, r: Option<AttrsId>, to: &mut Vec<PartChange>) {
        if self.modules.meta == MetaPolicy::Compare {
            let (l, r) = (l.unwrap_or(self.left().attrs.empty()), r.unwrap_or(self.right().attrs.empty()));
            self.attrs(ChangedPart::Metadata, l, r, to);
        }
    }

    /// Returns the differences of two functions in their parameters and bodies, in the reading with
    /// the fewer differences.
    pub(super) fn items(&mut self, (f, g): (&Function, &Function), hashers: &mut [ModuleHasher<'a>; 2]) -> FoundItems {
        let (l, r) = (Items::of_function(f), Items::of_function(g));
        let tokens = [Tokens::of(&l, &mut hashers[0]), Tokens::of(&r, &mut hashers[1])];
        let left = Side { cx: self.left(), items: &l, tokens: &tokens[0] };
        let right = Side { cx: self.right(), items: &r, tokens: &tokens[1] };
        let mut read = |reading| {
            let matching = Matching::new(&left, &right, reading);
            Pairs { compare: self, l: &l, r: &r, matching: &matching }.differences()
        };
        let by_name = read(Reading::ByName);
        // A single difference is the least, since the modules differ.
        if by_name.items.len() <= 1 {
            return by_name;
        }
        let by_content = read(Reading::ByContent);
        if by_content.items.len() < by_name.items.len() { by_content } else { by_name }
    }
}

pub(super) fn change(part: ChangedPart, left: String, right: String) -> PartChange {
    PartChange { part, left: Some(left), right: Some(right), note: None }
}

fn only_left(part: ChangedPart, left: String) -> PartChange {
    PartChange { part, left: Some(left), right: None, note: None }
}

fn only_right(part: ChangedPart, right: String) -> PartChange {
    PartChange { part, left: None, right: Some(right), note: None }
}

/// The comparison of matched items.
struct Pairs<'p, 'a> {
    compare: &'p mut Compare<'a>,
    l: &'p Items<'p>,
    r: &'p Items<'p>,
    matching: &'p Matching,
}

impl Pairs<'_, '_> {
    /// Returns the differences in the order of the left function. An added item comes before the
    /// first matched item that follows it on the right.
    fn differences(&mut self) -> FoundItems {
        let moved = self.moved();
        let before =
            if moved.is_empty() { (Vec::new(), Vec::new()) } else { (self.l.predecessors(), self.r.predecessors()) };
        self.compare.functions.clear();
        let (mut found, mut functions) = (Vec::new(), Vec::new());
        let mut next_right = 0;
        for i in 0..self.l.list.len() as u32 {
            let j = self.matching.left[i as usize];
            if j == NONE {
                found.extend(one_sided(self.compare.left(), self.l, &self.matching.blocks, i, DifferenceKind::Removed));
                continue;
            }
            let is_moved = moved.contains(&i);
            if !is_moved && j >= next_right {
                self.added(next_right..j, &mut found);
                next_right = j + 1;
            }
            let (left, right) = (self.compare.left(), self.compare.right());
            let is_elsewhere = self.is_in_another_block(i, j);
            let mut changes = Vec::new();
            if is_moved {
                let from = position(left, self.l, i, before.0[i as usize], is_elsewhere);
                let to = position(right, self.r, j, before.1[j as usize], is_elsewhere);
                changes.push(change(ChangedPart::Position, from, to));
            }
            self.item(i, j, &mut changes);
            if !changes.is_empty() {
                let owner = label(left, self.l, i);
                functions.extend(self.compare.take_functions().into_iter().map(|f| (found.len(), owner.clone(), f)));
                let place = place(left, self.l, i);
                let right_place = (is_moved && is_elsewhere)
                    .then(|| block_text(right, self.r, j))
                    .filter(|p| place.as_ref() != Some(p));
                found.push(ItemDifference {
                    kind: DifferenceKind::Changed,
                    item: item_kind(self.l, i),
                    left: name(left, self.l, i),
                    right: name(right, self.r, j),
                    place,
                    right_place,
                    text: None,
                    nested: 0,
                    changes,
                });
            }
        }
        self.added(next_right..self.r.list.len() as u32, &mut found);
        FoundItems { items: found, functions }
    }

    /// Returns true if the partner of an item is in a block that is not the partner of its block.
    fn is_in_another_block(&self, i: u32, j: u32) -> bool {
        let (block, other) = (self.l.list[i as usize].block, self.r.list[j as usize].block);
        self.matching.blocks[block as usize] != other
    }

    /// Adds the items of a range on the right that have no partner.
    fn added(&self, range: std::ops::Range<u32>, found: &mut Vec<ItemDifference>) {
        for j in range {
            if self.matching.right[j as usize] == NONE {
                let cx = self.compare.right();
                found.extend(one_sided(cx, self.r, &self.matching.right_blocks, j, DifferenceKind::Added));
            }
        }
    }

    /// Returns the bindings and parameters on the left whose partners are in another block, or in
    /// another order among those of the block.
    fn moved(&self) -> FxHashSet<u32> {
        let mut moved = FxHashSet::default();
        let mut last = vec![None; self.l.blocks.len()];
        let mut unordered: FxHashMap<u32, Vec<(usize, usize)>> = FxHashMap::default();
        let kept = |i: usize| {
            let at = &self.l.list[i];
            let j = self.matching.left[i];
            let counts = j != NONE && matches!(at.role, Role::Binding | Role::Parameter);
            counts.then_some((at.block, j))
        };
        for i in 0..self.l.list.len() {
            let Some((block, j)) = kept(i) else { continue };
            if self.matching.blocks[block as usize] != self.r.list[j as usize].block {
                moved.insert(i as u32);
            } else if last[block as usize].is_some_and(|last| last > j) {
                unordered.entry(block).or_default();
            } else {
                last[block as usize] = Some(j);
            }
        }
        if unordered.is_empty() {
            return moved;
        }
        for i in 0..self.l.list.len() {
            let Some((block, j)) = kept(i).filter(|_| !moved.contains(&(i as u32))) else { continue };
            if let Some(pairs) = unordered.get_mut(&block) {
                pairs.push((j as usize, i));
            }
        }
        for pairs in unordered.into_values() {
            let in_order: FxHashSet<usize> = longest_increasing(&pairs).into_iter().map(|(_, i)| i).collect();
            moved.extend(pairs.iter().filter(|(_, i)| !in_order.contains(i)).map(|&(_, i)| i as u32));
        }
        moved
    }

    /// Adds the changes of two matched items.
    fn item(&mut self, i: u32, j: u32, to: &mut Vec<PartChange>) {
        let (a, b) = (self.l.list[i as usize], self.r.list[j as usize]);
        let (l, r) = (self.l.body, self.r.body);
        if a.role == Role::Parameter || b.role == Role::Parameter {
            self.compare.types(ChangedPart::Type, l.ty(a.node), r.ty(b.node), to);
            self.compare.meta(l.meta(a.node), r.meta(b.node), to);
            return;
        }
        if let (Some(x), Some(y)) = (a.binder, b.binder) {
            self.binder(x, y, to);
        }
        match (self.l.is_reference(i), self.r.is_reference(j)) {
            (false, false) => self.nodes(a.node, b.node, to),
            (true, true) => self.operands(|_| ChangedPart::Value, &[a.node], &[b.node], to),
            _ => self.whole(a.node, b.node, to),
        }
    }

    fn binder(&mut self, x: ExprId, y: ExprId, to: &mut Vec<PartChange>) {
        let (l, r) = (self.l.body, self.r.body);
        if let (Expr::Let { var, flags, .. }, Expr::Let { var: other, flags: others, .. }) = (l.expr(x), r.expr(y)) {
            let is_local = (l.is_dataflow_var(var), r.is_dataflow_var(other));
            if flags != others || is_local.0 != is_local.1 {
                let text = |flags: LetFlags, is_local| match (flags.is_dataflow(), flags.starts_region(), is_local) {
                    (false, ..) => "outside of a dataflow region",
                    (true, true, true) => "the first of a dataflow region",
                    (true, true, false) => "the first of a dataflow region, and an output",
                    (true, false, true) => "in a dataflow region",
                    (true, false, false) => "an output of a dataflow region",
                };
                let texts = (text(flags, is_local.0), text(others, is_local.1));
                to.push(change(ChangedPart::Dataflow, texts.0.to_string(), texts.1.to_string()));
            }
            self.compare.meta(l.meta(var.expr()), r.meta(other.expr()), to);
        }
    }

    /// Adds the change of one value to another of another kind.
    fn whole(&self, x: ExprId, y: ExprId, to: &mut Vec<PartChange>) {
        let left = describe::value(self.compare.left(), self.l.body, x);
        to.push(change(ChangedPart::Value, left, describe::value(self.compare.right(), self.r.body, y)));
    }

    /// Adds the changes of the parts of two nodes, except for the contents of their blocks.
    fn nodes(&mut self, x: ExprId, y: ExprId, to: &mut Vec<PartChange>) {
        let (l, r) = (self.l.body, self.r.body);
        match (l.expr(x), r.expr(y)) {
            (
                Expr::CallOp { op, operands, attrs },
                Expr::CallOp { op: other, operands: others, attrs: other_attrs },
            ) => {
                let (left, right) = (self.compare.left(), self.compare.right());
                let same = self.compare.modules.tables.ops(op, other);
                if !same {
                    let texts = (left.ops.get(op).name.to_string(), right.ops.get(other).name.to_string());
                    to.push(change(ChangedPart::Operator, texts.0, texts.1));
                }
                self.operands(ChangedPart::Operand, l.operands(operands), r.operands(others), to);
                let from = to.len();
                self.compare.attrs(ChangedPart::Attribute, attrs, other_attrs, to);
                if same {
                    to[from..].iter_mut().for_each(|change| with_default(change, left.ops.get(op)));
                }
                if same && left.ops.is_opaque(op) {
                    self.compare.types(ChangedPart::Type, l.ty(x), r.ty(y), to);
                }
            }
            (Expr::Call { operands, attrs }, Expr::Call { operands: others, attrs: other_attrs }) => {
                let part = |i: usize| i.checked_sub(1).map_or(ChangedPart::Callee, ChangedPart::Operand);
                self.operands(part, l.operands(operands), r.operands(others), to);
                self.compare.attrs(ChangedPart::Attribute, attrs, other_attrs, to);
            }
            (Expr::Tuple(fields), Expr::Tuple(others)) => {
                self.operands(ChangedPart::Operand, l.operands(fields), r.operands(others), to);
            }
            (Expr::Proj { tuple, index }, Expr::Proj { tuple: other, index: other_index }) => {
                self.operands(ChangedPart::Operand, &[tuple], &[other], to);
                if index != other_index {
                    to.push(change(ChangedPart::FieldIndex, format!(".{index}"), format!(".{other_index}")));
                }
            }
            (Expr::If { cond, .. }, Expr::If { cond: other, .. }) => {
                self.operands(|_| ChangedPart::Condition, &[cond], &[other], to);
            }
            (Expr::Lambda { lambda, body }, Expr::Lambda { lambda: other, body: other_body }) => {
                let (data, others) = (l.lambda(lambda), r.lambda(other));
                if data.ret.is_some() || others.ret.is_some() {
                    let ret = data.ret.unwrap_or_else(|| l.type_of(body));
                    let other_ret = others.ret.unwrap_or_else(|| r.type_of(other_body));
                    self.compare.types(ChangedPart::ResultType, ret, other_ret, to);
                }
                self.compare.attrs(ChangedPart::Attribute, data.attrs, others.attrs, to);
            }
            // The contents of a block are items of their own.
            (Expr::Let { .. }, Expr::Let { .. }) => {}
            _ => return self.whole(x, y, to),
        }
        self.compare.meta(l.meta(x), r.meta(y), to);
    }

    /// Adds the changes of operands. If their numbers differ, the operands that are the same at
    /// both ends stay.
    fn operands(&mut self, part: impl Fn(usize) -> ChangedPart, x: &[ExprId], y: &[ExprId], to: &mut Vec<PartChange>) {
        let (mut start, mut ends) = (0, (x.len(), y.len()));
        if x.len() != y.len() {
            while start < ends.0.min(ends.1) && self.is_same(x[start], y[start]) {
                start += 1;
            }
            while ends.0.min(ends.1) > start && self.is_same(x[ends.0 - 1], y[ends.1 - 1]) {
                ends = (ends.0 - 1, ends.1 - 1);
            }
        }
        for n in start..ends.0.max(ends.1) {
            let (a, b) = (x[..ends.0].get(n).copied(), y[..ends.1].get(n).copied());
            let text = |cx: &Context, of: &Items<'_>, id: ExprId| describe::value(cx, of.body, id);
            match (a, b) {
                (Some(a), Some(b)) if !self.is_same(a, b) => {
                    let (left, right) = (self.compare.left(), self.compare.right());
                    let note = match (self.l.body.as_literal(a), self.r.body.as_literal(b)) {
                        (Some(a), Some(b)) => self.compare.note(Entry::Literal(a), Entry::Literal(b)),
                        _ => None,
                    };
                    let texts = (text(left, self.l, a), text(right, self.r, b));
                    to.push(PartChange { note, ..change(part(n), texts.0, texts.1) });
                }
                (Some(a), None) => to.push(only_left(part(n), text(self.compare.left(), self.l, a))),
                (None, Some(b)) => to.push(only_right(part(n), text(self.compare.right(), self.r, b))),
                _ => {}
            }
        }
    }

    /// Returns true if two operands are the same: equal atoms, or defined by matched items.
    fn is_same(&mut self, x: ExprId, y: ExprId) -> bool {
        let tables = &mut self.compare.modules.tables;
        match (self.l.body.expr(x), self.r.body.expr(y)) {
            (Expr::Literal(a), Expr::Literal(b)) => self.compare.agree(Entry::Literal(a), Entry::Literal(b)),
            (Expr::Global(a), Expr::Global(b)) => tables.globals(a, b),
            (Expr::Op(a), Expr::Op(b)) => tables.ops(a, b),
            // A block belongs to its owner; its contents are items of their own.
            (Expr::None, Expr::None) | (Expr::Let { .. }, Expr::Let { .. }) => true,
            (a, b) if std::mem::discriminant(&a).eq(&std::mem::discriminant(&b)) || !a.is_atom() && !b.is_atom() => {
                let (i, j) = (self.l.item_of(x), self.r.item_of(y));
                i != NONE && self.matching.left[i as usize] == j
            }
            _ => false,
        }
    }
}

/// Fills in the default of an attribute that is left out on one side.
fn with_default(change: &mut PartChange, row: &OpDef) {
    if let ChangedPart::Attribute(name) = &change.part
        && let Some(default) = describe::default_attribute(row, name)
    {
        change.left.get_or_insert_with(|| default.clone());
        change.right.get_or_insert(default);
    }
}

/// Returns the difference for an item without a partner. There is none for an expression, which
/// shows as a changed operand, and none in a block without a partner, which is a part of the
/// difference of its owner.
fn one_sided(cx: &Context, items: &Items<'_>, blocks: &[u32], i: u32, kind: DifferenceKind) -> Option<ItemDifference> {
    let at = &items.list[i as usize];
    if blocks[at.block as usize] == NONE || matches!(at.role, Role::Operand { .. }) {
        return None;
    }
    let text = match at.role {
        Role::Parameter => cx.type_text(items.body.ty(at.node)),
        _ => describe::value(cx, items.body, at.node),
    };
    let name = name(cx, items, i);
    let (left, right) = if kind == DifferenceKind::Removed { (name, None) } else { (None, name) };
    let (item, place) = (item_kind(items, i), place(cx, items, i));
    let nested = nested_bindings(items, i);
    let (text, right_place, changes) = (Some(text), None, Vec::new());
    Some(ItemDifference { kind, item, left, right, place, right_place, text, nested, changes })
}

/// Returns the number of bindings in the blocks of an item, which directly follow it.
fn nested_bindings(items: &Items<'_>, i: u32) -> usize {
    if !items.body.expr(items.list[i as usize].node).binds() {
        return 0;
    }
    let is_inside = |at: &&Item| {
        let owner = items.blocks[at.block as usize].owner;
        owner != NONE && owner >= i
    };
    let inside = items.list[i as usize + 1..].iter().take_while(is_inside);
    inside.filter(|at| at.role == Role::Binding).count()
}

fn name(cx: &Context, items: &Items<'_>, item: u32) -> Option<String> {
    items.name(item).map(|name| cx.names.get(name).to_string())
}

fn item_kind(items: &Items<'_>, item: u32) -> ItemKind {
    match items.list[item as usize].role {
        Role::Parameter => ItemKind::Parameter,
        Role::Binding => ItemKind::Binding,
        Role::Operand { .. } => ItemKind::Expression,
        Role::Result => ItemKind::Result,
    }
}

/// Returns an item in a few words, for the place of another.
fn label(cx: &Context, items: &Items<'_>, item: u32) -> String {
    match (items.name(item), items.list[item as usize].role) {
        (Some(name), _) => describe::variable(Some(cx.names.get(name))),
        (None, Role::Result) => "the result".to_string(),
        (None, Role::Binding | Role::Parameter) => describe::variable(None),
        (None, Role::Operand { .. }) => "an expression".to_string(),
    }
}

/// Returns the place of an item, if its name does not tell.
fn place(cx: &Context, items: &Items<'_>, item: u32) -> Option<String> {
    let at = &items.list[item as usize];
    if let Role::Operand { container } = at.role
        && container != NONE
    {
        return Some(label(cx, items, container));
    }
    match items.blocks[at.block as usize].role {
        BlockRole::Root => None,
        _ => Some(block_text(cx, items, item)),
    }
}

/// Returns the block of an item in a few words.
fn block_text(cx: &Context, items: &Items<'_>, item: u32) -> String {
    let block = &items.blocks[items.list[item as usize].block as usize];
    let kind = match block.role {
        BlockRole::Root => return "the function".to_string(),
        BlockRole::Then => "then",
        BlockRole::Else => "else",
        BlockRole::Lambda => "fn",
        BlockRole::Value | BlockRole::Operand(_) => "block",
    };
    format!("{kind} of {}", label(cx, items, block.owner))
}

/// Returns the position of a binding or parameter in its block: the item `before` it, and the block
/// if its partner is in another one.
fn position(cx: &Context, items: &Items<'_>, item: u32, before: u32, is_elsewhere: bool) -> String {
    let at = match before {
        NONE => "first".to_string(),
        before => format!("after {}", label(cx, items, before)),
    };
    if is_elsewhere { format!("{at} in {}", block_text(cx, items, item)) } else { at }
}
