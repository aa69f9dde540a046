//! The matching of the items of two functions.
//!
//! Items of one name are matched first, unless the names are ignored ([`Reading`]). The longest
//! sequence of pairs that is in order on both sides divides the functions into gaps. The items in
//! each gap are matched by content: first by hashes that take everything into account that an item
//! is computed from, last by operator. Each step compares the two sequences of hashes in a gap with
//! [`sequence_changes`]. Items that are left over and have a hash that no other item has are
//! matched across gaps: they have moved. Results and parameters of a `fn` correspond if their
//! blocks do.

use rustc_hash::FxHashMap;

use crate::core::context::Context;
use crate::core::entity::NameId;

use super::items::{BlockRole, Items, NONE, Role};
use super::sequence::{longest_increasing, sequence_changes};
use super::tokens::Tokens;

/// The way in which bindings are matched.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Reading {
    /// By name, then by content.
    ByName,
    /// By content, whatever the names.
    ByContent,
}

/// The items and blocks of one function, with their partners in the other one.
pub(super) struct Matching {
    /// The partner of each item on the left, or [`NONE`].
    pub(super) left: Vec<u32>,
    /// The partner of each item on the right, or [`NONE`].
    pub(super) right: Vec<u32>,
    /// The partner of each block on the left, or [`NONE`].
    pub(super) blocks: Vec<u32>,
    /// The partner of each block on the right, or [`NONE`].
    pub(super) right_blocks: Vec<u32>,
}

/// One of the two functions.
pub(super) struct Side<'a> {
    pub(super) cx: &'a Context,
    pub(super) items: &'a Items<'a>,
    pub(super) tokens: &'a Tokens,
}

impl Matching {
    pub(super) fn new(l: &Side<'_>, r: &Side<'_>, reading: Reading) -> Matching {
        let mut matcher = Matcher {
            l,
            r,
            left: vec![NONE; l.items.list.len()],
            right: vec![NONE; r.items.list.len()],
            anchors: Vec::new(),
        };
        if reading == Reading::ByName {
            matcher.match_names();
        }
        matcher.match_gaps(|tokens| &tokens.full);
        matcher.match_gaps(|tokens| &tokens.near);
        matcher.match_moved();
        matcher.match_gaps(|tokens| &tokens.own);
        matcher.match_gaps(|tokens| &tokens.kind);
        matcher.match_rest(reading);
        let (blocks, right_blocks) = matcher.match_blocks();
        Matching { left: matcher.left, right: matcher.right, blocks, right_blocks }
    }
}

struct Matcher<'a, 't> {
    l: &'a Side<'t>,
    r: &'a Side<'t>,
    left: Vec<u32>,
    right: Vec<u32>,
    /// Pairs that increase on both sides.
    anchors: Vec<(u32, u32)>,
}

/// Marks a name that several items have.
const SEVERAL: u32 = NONE;

impl<'t> Matcher<'_, 't> {
    fn pair(&mut self, l: u32, r: u32) {
        self.left[l as usize] = r;
        self.right[r as usize] = l;
    }

    /// Matches items with a name that no other item of their function has.
    fn match_names(&mut self) {
        let names = |items: &Items<'_>| {
            let mut by_name: FxHashMap<NameId, u32> = FxHashMap::default();
            by_name.reserve(items.list.len());
            for item in 0..items.list.len() as u32 {
                if let Some(name) = items.name(item) {
                    by_name.entry(name).and_modify(|at| *at = SEVERAL).or_insert(item);
                }
            }
            by_name
        };
        let (of_left, of_right) = (names(self.l.items), names(self.r.items));
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for l in 0..self.l.items.list.len() as u32 {
            let Some(name) = self.l.items.name(l).filter(|name| of_left[name] == l) else { continue };
            let text = self.l.cx.names.get(name);
            let found = self.r.cx.names.find(text).and_then(|name| of_right.get(&name)).copied();
            let Some(r) = found.filter(|&r| r != SEVERAL) else { continue };
            let (a, b) = (&self.l.items.list[l as usize], &self.r.items.list[r as usize]);
            if a.role != b.role || self.l.items.goes_with_its_block(l) || self.r.items.goes_with_its_block(r) {
                continue;
            }
            self.pair(l, r);
            pairs.push((r as usize, l as usize));
        }
        self.anchors = match pairs.is_sorted() {
            true => pairs.into_iter().map(|(r, l)| (l as u32, r as u32)).collect(),
            false => longest_increasing(&pairs).into_iter().map(|(r, l)| (l as u32, r as u32)).collect(),
        };
    }

    /// Calls `in_gap` with the unmatched items of each gap, and adds the pairs that it returns.
    fn for_each_gap(&mut self, mut in_gap: impl FnMut(&[u32], &[u32]) -> Vec<(u32, u32)>) {
        let end = (self.left.len() as u32, self.right.len() as u32);
        let anchors = std::mem::take(&mut self.anchors);
        let mut merged = Vec::with_capacity(anchors.len());
        let (mut a, mut b): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut from = (0, 0);
        for (n, &to) in anchors.iter().chain([&end]).enumerate() {
            if from.0 < to.0 && from.1 < to.1 {
                a.clear();
                b.clear();
                let (l, r) = (self.l.items, self.r.items);
                a.extend((from.0..to.0).filter(|&i| self.left[i as usize] == NONE && !l.goes_with_its_block(i)));
                b.extend((from.1..to.1).filter(|&i| self.right[i as usize] == NONE && !r.goes_with_its_block(i)));
                if !a.is_empty() && !b.is_empty() {
                    let found = in_gap(&a, &b);
                    found.iter().for_each(|&(l, r)| self.pair(l, r));
                    merged.extend(found);
                }
            }
            if n < anchors.len() {
                merged.push(to);
                from = (to.0 + 1, to.1 + 1);
            }
        }
        self.anchors = merged;
    }

    /// Matches items in gaps by their hashes.
    fn match_gaps(&mut self, tokens: impl Fn(&'t Tokens) -> &'t [u64]) {
        let (old, new) = (tokens(self.l.tokens), tokens(self.r.tokens));
        self.for_each_gap(|a, b| {
            let hashes = |of: &[u64], items: &[u32]| items.iter().map(|&i| of[i as usize]).collect::<Vec<u64>>();
            let changes = sequence_changes(&hashes(old, a), &hashes(new, b));
            let (mut pairs, mut from) = (Vec::new(), (0, 0));
            let ends = changes.iter().map(|c| (c.old.clone(), c.new.clone()));
            for (o, n) in ends.chain([(a.len()..a.len(), b.len()..b.len())]) {
                pairs.extend((from.0..o.start).zip(from.1..n.start).map(|(i, j)| (a[i], b[j])));
                from = (o.end, n.end);
            }
            pairs
        });
    }

    /// Matches the unmatched items whose hash no other unmatched item of their function has.
    fn match_moved(&mut self) {
        let unmatched = |items: &Items<'_>, partners: &[u32], tokens: &Tokens| {
            let mut by_hash: FxHashMap<u64, u32> = FxHashMap::default();
            for (i, _) in partners.iter().enumerate().filter(|&(_, &partner)| partner == NONE) {
                if items.list[i].role == Role::Binding {
                    by_hash.entry(tokens.near[i]).and_modify(|at| *at = SEVERAL).or_insert(i as u32);
                }
            }
            by_hash
        };
        let of_left = unmatched(self.l.items, &self.left, self.l.tokens);
        let of_right = unmatched(self.r.items, &self.right, self.r.tokens);
        if of_left.is_empty() || of_right.is_empty() {
            return;
        }
        for l in 0..self.left.len() as u32 {
            let hash = self.l.tokens.near[l as usize];
            if self.left[l as usize] == NONE
                && of_left.get(&hash) == Some(&l)
                && let Some(&r) = of_right.get(&hash).filter(|&&r| r != SEVERAL)
            {
                self.pair(l, r);
            }
        }
    }

    /// Matches what is left in a gap in order, if it is as much on both sides. Two bindings of
    /// different names are matched only if the names are ignored.
    fn match_rest(&mut self, reading: Reading) {
        let (l, r) = (self.l, self.r);
        let are_named = |i: u32, j: u32| l.items.name(i).is_some() && r.items.name(j).is_some();
        self.for_each_gap(|a, b| {
            let fit = a.len() == b.len()
                && a.iter().zip(b).all(|(&i, &j)| {
                    let (a, b) = (l.items.list[i as usize].role, r.items.list[j as usize].role);
                    std::mem::discriminant(&a) == std::mem::discriminant(&b)
                        && (reading == Reading::ByContent || !are_named(i, j))
                });
            if fit { a.iter().copied().zip(b.iter().copied()).collect() } else { Vec::new() }
        });
    }

    /// Matches blocks whose owners are matched, with their results and parameters.
    fn match_blocks(&mut self) -> (Vec<u32>, Vec<u32>) {
        let (l, r) = (self.l.items, self.r.items);
        let by_owner: FxHashMap<(u32, BlockRole), u32> =
            r.blocks.iter().enumerate().map(|(n, block)| ((block.owner, block.role), n as u32)).collect();
        let mut partners = vec![NONE; l.blocks.len()];
        let mut right_partners = vec![NONE; r.blocks.len()];
        for (n, block) in l.blocks.iter().enumerate() {
            let owner = match block.owner {
                NONE => NONE,
                owner => match self.left[owner as usize] {
                    NONE => continue,
                    partner => partner,
                },
            };
            let Some(&other) = by_owner.get(&(owner, block.role)) else { continue };
            partners[n] = other;
            right_partners[other as usize] = n as u32;
            if block.role != BlockRole::Root {
                l.parameters_of(n as u32).zip(r.parameters_of(other)).for_each(|(p, q)| self.pair(p, q));
            }
            let result = r.blocks[other as usize].result;
            if block.result != NONE && result != NONE {
                self.pair(block.result, result);
            }
        }
        (partners, right_partners)
    }
}
