//! The matching of functions, and the comparison of their signatures.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::alpha::MetaPolicy;
use crate::alpha::hash::ModuleHasher;
use crate::alpha::modules::Modules;
use crate::alpha::tables::is_private;
use crate::core::context::Context;
use crate::core::entity::{FunctionAttrId, GlobalId, SymbolId};
use crate::core::function::{Function, FunctionKind, Visibility};
use crate::core::module::Module;
use crate::walk::symbols::SymbolWalk;

use super::bodies::{ChangedFunction, Compare, FoundItems, change};
use super::items::{Items, Role};
use super::{ChangedPart, DifferenceKind, Differences, FunctionDifference, ItemDifference, PartChange, describe};

/// Returns the differences of two modules that are not alpha-equal.
pub(super) fn differences(left: &Module, right: &Module, meta: MetaPolicy) -> Differences {
    let mut compare = Compare::new(Modules::new(left, right, meta));
    let mut hashers = [ModuleHasher::sampling(left), ModuleHasher::sampling(right)];
    let mut partners = match_functions(left, right, &mut hashers);
    for (&l, &r) in &partners {
        compare.modules.tables.relate_globals(l, r);
    }
    let mut found = Differences::default();
    compare.attrs(ChangedPart::Attribute, left.attrs(), right.attrs(), &mut found.module);
    let mut changed: FxHashMap<GlobalId, FunctionDifference> = FxHashMap::default();
    let ordered = left.functions().filter_map(|(_, f)| f.global());
    let mut work: VecDeque<(GlobalId, GlobalId)> = ordered.filter_map(|l| Some((l, *partners.get(&l)?))).collect();
    while let Some((l, r)) = work.pop_front() {
        if let (Some(f), Some(g)) = (function_of(left, l), function_of(right, r)) {
            changed.extend(compare_functions(&mut compare, (f, g), &mut hashers).map(|d| (l, d)));
        }
        // Private functions that nothing has matched so far correspond by their uses.
        for (l, r) in std::mem::take(&mut compare.modules.tables.pending_globals) {
            partners.insert(l, r);
            work.push_back((l, r));
        }
    }
    for (_, f) in left.functions() {
        let Some(global) = f.global() else { continue };
        match partners.contains_key(&global) {
            true => found.functions.extend(changed.remove(&global)),
            false => found.functions.push(one_sided(&left.cx, f, DifferenceKind::Removed)),
        }
    }
    let matched: FxHashSet<GlobalId> = partners.values().copied().collect();
    for (_, f) in right.functions() {
        if f.global().is_some_and(|global| !matched.contains(&global)) {
            found.functions.push(one_sided(&right.cx, f, DifferenceKind::Added));
        }
    }
    found
}

fn function_of(module: &Module, global: GlobalId) -> Option<&Function> {
    module.get(module.cx.globals.get(global).target.function()?)
}

/// Returns the function of the right module for each function of the left module that has one.
fn match_functions(
    left: &Module,
    right: &Module,
    [of_left, of_right]: &mut [ModuleHasher<'_>; 2],
) -> FxHashMap<GlobalId, GlobalId> {
    let mut matches = Matches::default();
    let namesake = |l: GlobalId| {
        let found = right.cx.find_global(left.cx.global_name(l))?;
        right.cx.globals.get(found).target.function().map(|_| found)
    };
    // Names of private functions do not count, so these are matched by content first.
    for l in left.functions().filter_map(|(_, f)| f.global()) {
        if let Some(r) = namesake(l).filter(|&r| !is_private(left, l) || !is_private(right, r)) {
            matches.pair(l, r);
        }
    }
    let open_left = open_hashes(left, of_left, |g| matches.partners.contains_key(&g));
    let open_right = open_hashes(right, of_right, |g| matches.taken.contains(&g));
    let right_hashes: FxHashMap<GlobalId, u64> = open_right.iter().copied().collect();
    for &(l, hash) in &open_left {
        if let Some(r) = namesake(l).filter(|r| right_hashes.get(r) == Some(&hash)) {
            matches.pair(l, r);
        }
    }
    let mut by_hash: FxHashMap<(u64, bool), VecDeque<GlobalId>> = FxHashMap::default();
    for &(r, hash) in open_right.iter().filter(|(r, _)| !matches.taken.contains(r)) {
        by_hash.entry((hash, is_private(right, r))).or_default().push_back(r);
    }
    for &(l, hash) in &open_left {
        if !matches.partners.contains_key(&l)
            && let Some(r) = by_hash.get_mut(&(hash, is_private(left, l))).and_then(VecDeque::pop_front)
        {
            matches.pair(l, r);
        }
    }
    for &(l, _) in &open_left {
        if let Some(r) = namesake(l) {
            matches.pair(l, r);
        }
    }
    matches.partners
}

/// Returns the definitions that are not taken, with the hashes of their contents.
fn open_hashes(
    module: &Module,
    hasher: &mut ModuleHasher<'_>,
    is_taken: impl Fn(GlobalId) -> bool,
) -> Vec<(GlobalId, u64)> {
    let open = module.functions().filter_map(|(_, f)| Some((f.global().filter(|&g| !is_taken(g))?, f)));
    open.filter(|(_, f)| f.is_definition()).map(|(g, f)| (g, hasher.function(f))).collect()
}

/// The functions that are matched so far.
#[derive(Default)]
struct Matches {
    partners: FxHashMap<GlobalId, GlobalId>,
    taken: FxHashSet<GlobalId>,
}

impl Matches {
    /// Matches two functions, unless one of them is matched already.
    fn pair(&mut self, l: GlobalId, r: GlobalId) {
        if !self.partners.contains_key(&l) && self.taken.insert(r) {
            self.partners.insert(l, r);
        }
    }
}

/// Returns the differences of two matched functions, if they differ.
fn compare_functions<'a>(
    compare: &mut Compare<'a>,
    (f, g): (&'a Function, &'a Function),
    hashers: &mut [ModuleHasher<'a>; 2],
) -> Option<FunctionDifference> {
    let mut changes = Vec::new();
    let name = |cx: &'a Context, f: &Function| f.global().map_or("", |g| cx.global_name(g));
    let (left, right) = (name(compare.left(), f), name(compare.right(), g));
    let are_private = f.visibility == Visibility::Private && g.visibility == Visibility::Private;
    if left != right && !are_private {
        changes.push(change(ChangedPart::Name, describe::global(left), describe::global(right)));
    }
    let items = match compare_contents(compare, (f, g), hashers) {
        None => Vec::new(),
        Some(contents) => {
            changes.extend(contents.signature);
            compare_inner_functions(compare, contents.found, hashers)
        }
    };
    let (kind, left, right) = (DifferenceKind::Changed, Some(left.to_string()), Some(right.to_string()));
    let differs = !changes.is_empty() || !items.is_empty();
    differs.then_some(FunctionDifference { kind, left, right, bindings: 0, changes, items })
}

/// The differences of the contents of two functions.
struct Contents {
    signature: Vec<PartChange>,
    found: FoundItems,
    /// The first difference, in words.
    what: String,
}

impl Contents {
    fn count(&self) -> usize {
        usize::from(!self.signature.is_empty()) + self.found.items.len()
    }
}

/// Returns the differences of the contents of two functions, in the reading of their symbols with
/// the fewer differences; `None` if they are equal.
fn compare_contents<'a>(
    compare: &mut Compare<'a>,
    (f, g): (&'a Function, &'a Function),
    hashers: &mut [ModuleHasher<'a>; 2],
) -> Option<Contents> {
    compare.modules.tables.begin();
    let compared = compare.modules.bodies((f, g), None, "").and_then(|()| compare.modules.function_attrs());
    let what = compared.err()?.what;
    let (left, right) = (symbols_of(compare.left(), f), symbols_of(compare.right(), g));
    let by_name = pairs_by_name(compare, &left, &right);
    let in_order: Vec<(SymbolId, SymbolId)> = left.into_iter().zip(right).collect();
    let mut read = |symbols: &[(SymbolId, SymbolId)]| {
        compare.begin_reading();
        symbols.iter().for_each(|&(l, r)| compare.modules.tables.relate_symbols(l, r));
        let mut changes = Vec::new();
        signature(compare, f, g, &mut changes);
        let found = compare.items((f, g), hashers);
        Contents { signature: changes, found, what: what.clone() }
    };
    let first = read(&by_name);
    if by_name == in_order || first.count() <= 1 {
        return Some(first);
    }
    let second = read(&in_order);
    Some(if second.count() < first.count() { second } else { first })
}

/// Adds the differences inside of the functions in attributes that differ to those of the items,
/// and returns all. The functions that remain to be compared are in a queue.
fn compare_inner_functions<'a>(
    compare: &mut Compare<'a>,
    found: FoundItems,
    hashers: &mut [ModuleHasher<'a>; 2],
) -> Vec<ItemDifference> {
    let mut items = found.items;
    let place = |owner: String, f: &ChangedFunction| format!("{} of {owner}", f.attribute);
    let mut work: VecDeque<(usize, String, ChangedFunction)> =
        found.functions.into_iter().map(|(item, owner, f)| (item, place(owner, &f), f)).collect();
    // The changes that the items inside of a function show.
    let mut shown: FxHashSet<(usize, usize)> = FxHashSet::default();
    let mut first_places: FxHashMap<(FunctionAttrId, FunctionAttrId), String> = FxHashMap::default();
    while let Some((item, at, function)) = work.pop_front() {
        let ChangedFunction { change, left, right, .. } = function;
        if let Some(first) = first_places.get(&(left, right)) {
            items[item].changes[change].note = Some(format!("the same functions as in {first}"));
            continue;
        }
        first_places.insert((left, right), at.clone());
        let pair = (&*compare.left().function_attrs[left], &*compare.right().function_attrs[right]);
        let Some(Contents { signature, found, what }) = compare_contents(compare, pair, hashers) else { continue };
        match (signature.is_empty(), found.items.is_empty()) {
            (true, false) => _ = shown.insert((item, change)),
            (true, true) => items[item].changes[change].note = Some(what),
            (false, _) => {
                let texts: Vec<String> = signature.iter().map(ToString::to_string).collect();
                items[item].changes[change].note = Some(texts.join("; "));
            }
        }
        let base = items.len();
        work.extend(
            found.functions.into_iter().map(|(i, owner, f)| (base + i, describe::within(place(owner, &f), &at), f)),
        );
        items.extend(found.items.into_iter().map(|item| {
            let place = item.place.map_or_else(|| at.clone(), |place| describe::within(place, &at));
            ItemDifference { place: Some(place), ..item }
        }));
    }
    let mut number = 0;
    items.retain_mut(|item| {
        let mut change = 0;
        let had_changes = !item.changes.is_empty();
        item.changes.retain(|_| {
            change += 1;
            !shown.contains(&(number, change - 1))
        });
        number += 1;
        !had_changes || !item.changes.is_empty()
    });
    items
}

/// Adds the changes of the signature of a function, except for its parameters.
fn signature(compare: &mut Compare<'_>, f: &Function, g: &Function, to: &mut Vec<PartChange>) {
    if f.kind != g.kind {
        let text = |kind| if kind == FunctionKind::Definition { "defined" } else { "declared" }.to_string();
        to.push(change(ChangedPart::Definition, text(f.kind), text(g.kind)));
    }
    if f.visibility != g.visibility {
        let text = |v| if v == Visibility::Public { "public" } else { "private" }.to_string();
        to.push(change(ChangedPart::Visibility, text(f.visibility), text(g.visibility)));
    }
    // A result type that is inferred on both sides follows from the rest.
    if f.ret.is_some() || g.ret.is_some() {
        match (f.known_result_type(), g.known_result_type()) {
            (Some(l), Some(r)) => compare.types(ChangedPart::ResultType, l, r, to),
            (None, None) => {}
            (l, r) => {
                let (left, right) = (l.map(|l| compare.left().type_text(l)), r.map(|r| compare.right().type_text(r)));
                to.push(PartChange { part: ChangedPart::ResultType, left, right, note: None });
            }
        }
    }
    compare.attrs(ChangedPart::Attribute, f.attrs, g.attrs, to);
    compare.meta(Some(f.meta), Some(g.meta), to);
}

/// Returns the symbols in the signature of a function, in order of appearance.
fn symbols_of(cx: &Context, f: &Function) -> Vec<SymbolId> {
    let (mut walk, mut found) = (SymbolWalk::new(), Vec::new());
    let types = f.body.params().iter().map(|p| f.body.ty(p.expr())).chain(f.ret);
    types.filter(|&ty| cx.types.is_symbolic(ty)).for_each(|ty| walk.in_type(cx, ty, |s| found.push(s)));
    found
}

/// Pairs the symbols of two functions: those of one name, and the others in order. The pairs are in
/// the order of the left symbols.
fn pairs_by_name(compare: &Compare<'_>, left: &[SymbolId], right: &[SymbolId]) -> Vec<(SymbolId, SymbolId)> {
    let name = |cx: &Context, s: SymbolId| cx.names.get(cx.types.dims.symbol_name(s)).to_string();
    let mut by_name: FxHashMap<String, SymbolId> = right.iter().map(|&s| (name(compare.right(), s), s)).collect();
    let namesakes: Vec<Option<SymbolId>> = left.iter().map(|&l| by_name.remove(&name(compare.left(), l))).collect();
    let taken: FxHashSet<SymbolId> = namesakes.iter().copied().flatten().collect();
    let mut others = right.iter().copied().filter(|r| !taken.contains(r));
    left.iter().zip(namesakes).filter_map(|(&l, r)| Some((l, r.or_else(|| others.next())?))).collect()
}

/// Returns the difference for a function without a partner.
fn one_sided(cx: &Context, f: &Function, kind: DifferenceKind) -> FunctionDifference {
    let name = f.global().map(|g| cx.global_name(g).to_string());
    let (left, right) = if kind == DifferenceKind::Removed { (name, None) } else { (None, name) };
    let bindings = Items::of_function(f).list.iter().filter(|item| item.role == Role::Binding).count();
    FunctionDifference { kind, left, right, bindings, changes: Vec::new(), items: Vec::new() }
}
