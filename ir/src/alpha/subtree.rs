//! Hashes of the expressions of one body modulo alpha, bottom-up.
//!
//! After Krzysztof Maziarz, Tom Ellis, Alan Lawrence, Andrew Fitzgibbon and Simon Peyton Jones,
//! "Hashing modulo alpha-equivalence", PLDI 2021. The summary of an expression has two parts: a
//! hash of its structure, in which variables are not told apart, and a map from each free variable
//! to a hash of the positions at which it occurs. A binder removes its variable from the map and
//! mixes the positions into the structure. The entries of the maps of several parts are put into
//! the largest of these maps, each mixed with the structure of the current node, so a variable's
//! entry is updated O(log n) times on its way up. The hash of an expression mixes its structure
//! with the exclusive or of its map's entries, which is kept up to date.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{flags_word, mix};
use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{AttrsId, EntityId, ExprId, TypeId};
use crate::core::expr::Expr;
use crate::tables::attrs::Attr;
use crate::walk::attr_walk::AttrWalk;

/// Hashes expressions of one body so that alpha-equal ones
/// ([`alpha_equal_exprs`](super::alpha_equal_exprs)) have the same hash. The identity of bound
/// variables and symbols does not count; that of free variables does.
///
/// A pass calls [`AlphaHasher::hash`] for each If and Lambda when it leaves it, innermost first,
/// after rewriting its contents:
///
/// ```
/// # use anfora_ir::{AlphaHasher, Context, Body, Cursor, Step, Expr};
/// # fn example(cx: &Context, body: &Body) {
/// let mut hasher = AlphaHasher::new();
/// let mut cursor = Cursor::new(body);
/// while let Some(step) = cursor.next(body) {
///     if let Step::Exit(id) = step
///         && matches!(body.expr(id), Expr::If { .. } | Expr::Lambda { .. })
///     {
///         let _hash = hasher.hash(cx, body, id);
///     }
/// }
/// # }
/// ```
///
/// The hasher keeps the summary of each hashed If and Lambda until it is used for that of the
/// enclosing one. So all hashes of a body in A-normal form together take O(n log n) time for n
/// nodes, however deep it nests. A hashed node must not be changed before the enclosing one is
/// hashed; if it is, callers must call [`AlphaHasher::forget`]. A call that several blocks share,
/// in graph form, is hashed again in each.
///
/// The hashes are for tables in memory: they depend on ids.
#[derive(Default)]
pub struct AlphaHasher {
    /// The summaries of hashed Ifs and Lambdas that are not yet part of a larger summary.
    summaries: FxHashMap<ExprId, Summary>,
    attrs: FxHashMap<AttrsId, u64>,
    tasks: Vec<Task>,
    results: Vec<Summary>,
    links: Vec<ExprId>,
    seen: FxHashSet<ExprId>,
}

enum Task {
    /// Pushes the summary of an expression on the results.
    Eval(ExprId),
    /// Makes the summary of a call, tuple, projection, If or Lambda from those of its parts.
    Node(ExprId),
    /// Makes the summary of a chain from its links from `first` on, and from the summaries of its
    /// values and tail that are not flat.
    Chain { first: usize, tail: ExprId },
}

#[derive(Default)]
struct Summary {
    structure: u64,
    free: VarMap,
}

impl Summary {
    fn hash(&self) -> u64 {
        mix(mix(self.structure, self.free.xor), self.free.len() as u64)
    }
}

/// A map from variables to hashes of their positions.
#[derive(Default)]
struct VarMap {
    few: SmallVec<[(ExprId, u64); 4]>,
    many: FxHashMap<ExprId, u64>,
    /// The exclusive or of the hashes of all entries.
    xor: u64,
}

fn entry_hash(var: ExprId, positions: u64) -> u64 {
    mix(mix(1, var.index() as u64), positions)
}

impl VarMap {
    const FEW: usize = 8;

    fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }

    /// Replaces the entry of a variable; `change` is passed `None` if there is none.
    #[inline]
    fn update(&mut self, var: ExprId, change: impl FnOnce(Option<u64>) -> u64) {
        if self.many.is_empty() {
            if let Some((_, positions)) = self.few.iter_mut().find(|(v, _)| *v == var) {
                let new = change(Some(*positions));
                self.xor ^= entry_hash(var, *positions) ^ entry_hash(var, new);
                *positions = new;
                return;
            }
            if self.few.len() < VarMap::FEW {
                let new = change(None);
                self.xor ^= entry_hash(var, new);
                self.few.push((var, new));
                return;
            }
            self.many.extend(self.few.drain(..));
        }
        let old = self.many.get(&var).copied();
        let new = change(old);
        self.xor ^= old.map_or(0, |o| entry_hash(var, o)) ^ entry_hash(var, new);
        self.many.insert(var, new);
    }

    #[inline]
    fn remove(&mut self, var: ExprId) -> Option<u64> {
        let old = if self.many.is_empty() {
            let at = self.few.iter().position(|(v, _)| *v == var)?;
            self.few.swap_remove(at).1
        } else {
            self.many.remove(&var)?
        };
        self.xor ^= entry_hash(var, old);
        Some(old)
    }

    /// Inserts the entries of a smaller map, mixed with `tag`.
    fn absorb(&mut self, smaller: VarMap, tag: u64) {
        for (var, positions) in smaller.few.into_iter().chain(smaller.many) {
            self.update(var, |old| mix(mix(tag, old.unwrap_or(0)), positions));
        }
    }
}

impl AlphaHasher {
    /// Returns a hasher for one body, without summaries.
    pub fn new() -> AlphaHasher {
        AlphaHasher::default()
    }

    /// Drops the summary of a hashed If or Lambda that is no longer needed, or was changed since.
    pub fn forget(&mut self, id: ExprId) {
        self.summaries.remove(&id);
    }

    /// Returns the hash of an expression. Uses and drops the summaries of the Ifs and Lambdas in
    /// it. Keeps the summary of the expression itself if it is an If or Lambda. Missing summaries
    /// are computed, so any expression can be hashed at any time.
    pub fn hash(&mut self, cx: &Context, body: &Body, id: ExprId) -> u64 {
        if let Some(known) = self.summaries.get(&id) {
            return known.hash();
        }
        self.seen.clear();
        self.tasks.push(Task::Eval(id));
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Eval(id) => self.eval(cx, body, id),
                Task::Node(id) => self.node(cx, body, id),
                Task::Chain { first, tail } => self.chain(cx, body, first, tail),
            }
        }
        let summary = self.results.pop().expect("an expression has a summary");
        let hash = summary.hash();
        if matches!(body.expr(id), Expr::If { .. } | Expr::Lambda { .. }) {
            self.summaries.insert(id, summary);
        }
        hash
    }

    fn eval(&mut self, cx: &Context, body: &Body, id: ExprId) {
        match body.expr(id) {
            Expr::Let { .. } => {
                let first = self.links.len();
                let mut tail = id;
                while let Expr::Let { body: rest, .. } = body.expr(tail) {
                    self.links.push(tail);
                    tail = rest;
                }
                self.tasks.push(Task::Chain { first, tail });
                // Tasks are pushed in reverse, so that the last result is that of the last part.
                if !body.is_flat(tail) {
                    self.tasks.push(Task::Eval(tail));
                }
                for &link in self.links[first..].iter().rev() {
                    if let Expr::Let { value, .. } = body.expr(link)
                        && !body.is_flat(value)
                    {
                        self.tasks.push(Task::Eval(value));
                    }
                }
            }
            Expr::If { .. } | Expr::Lambda { .. } => {
                if let Some(known) = self.summaries.remove(&id) {
                    self.results.push(known);
                    return;
                }
                self.tasks.push(Task::Node(id));
                self.tasks.extend(body.parts(id).rev().map(Task::Eval));
            }
            _ if body.is_flat(id) => {
                let summary = self.flat_summary(cx, body, id);
                self.results.push(summary);
            }
            _ if !self.seen.insert(id) => {
                self.results.push(Summary { structure: 3, free: VarMap::default() });
            }
            _ => {
                self.tasks.push(Task::Node(id));
                self.tasks.extend(body.inputs(id).iter().rev().map(|&o| Task::Eval(o)));
            }
        }
    }

    /// Returns the summary of a flat expression.
    fn flat_summary(&mut self, cx: &Context, body: &Body, id: ExprId) -> Summary {
        let mut summary = Summary::default();
        summary.structure = self.flat(cx, body, id, |var, position| {
            summary.free.update(var, |old| mix(mix(2, old.unwrap_or(0)), position));
        });
        summary
    }

    /// Returns the hash of the structure of an atom, or of a call, tuple or projection of atoms.
    /// Calls `occurs` with its variables and their positions.
    #[inline]
    fn flat(&mut self, cx: &Context, body: &Body, id: ExprId, mut occurs: impl FnMut(ExprId, u64)) -> u64 {
        if body.expr(id).is_atom() {
            return atom(body, id, 1, &mut occurs);
        }
        let mut h = self.head(cx, body, id);
        for (i, &o) in body.inputs(id).iter().enumerate() {
            h = mix(h, atom(body, o, i as u64 + 1, &mut occurs));
        }
        h
    }

    /// Returns the hash of a node without its parts.
    fn head(&mut self, cx: &Context, body: &Body, id: ExprId) -> u64 {
        match body.expr(id) {
            Expr::CallOp { op, operands, attrs } => {
                let mut h = mix(mix(16, op.index() as u64), operands.len() as u64);
                h = mix(h, self.attrs(cx, attrs));
                if cx.ops.is_opaque(op) {
                    h = mix(h, type_hash(cx, body.ty(id)));
                }
                h
            }
            Expr::Call { operands, attrs } => mix(mix(17, operands.len() as u64), self.attrs(cx, attrs)),
            Expr::Tuple(fields) => mix(18, fields.len() as u64),
            Expr::Proj { index, .. } => mix(19, u64::from(index)),
            Expr::If { .. } => 20,
            Expr::Lambda { lambda, body: block } => {
                let data = body.lambda(lambda);
                let mut h = mix(mix(21, data.params.len() as u64), self.attrs(cx, data.attrs));
                for p in body.lambda_params(lambda) {
                    h = mix(h, type_hash(cx, body.ty(p.expr())));
                }
                mix(h, type_hash(cx, data.ret.unwrap_or_else(|| body.type_of(block))))
            }
            _ => 22,
        }
    }

    fn node(&mut self, cx: &Context, body: &Body, id: ExprId) {
        let head = self.head(cx, body, id);
        let from = self.results.len() - body.parts(id).len();
        if let Expr::Lambda { lambda, .. } = body.expr(id) {
            let summary = self.results.last_mut().expect("a Lambda has a block");
            let mut structure = mix(head, summary.structure);
            for p in body.lambda_params(lambda) {
                structure = mix(structure, summary.free.remove(p.expr()).unwrap_or(0));
            }
            summary.structure = structure;
            return;
        }
        // The map of the first part with the largest map is reused; its number is mixed into the
        // structure.
        let (mut largest, mut size) = (0, 0);
        let mut structure = head;
        for (i, part) in self.results[from..].iter().enumerate() {
            structure = mix(structure, part.structure);
            if part.free.len() > size {
                (largest, size) = (i, part.free.len());
            }
        }
        structure = mix(structure, largest as u64);
        let mut free = std::mem::take(&mut self.results[from + largest].free);
        for (i, part) in self.results.drain(from..).enumerate() {
            if i != largest {
                free.absorb(part.free, mix(structure, i as u64));
            }
        }
        self.results.push(Summary { structure, free });
    }

    /// Goes backwards from the tail: each link removes its variable from the rest and adds its
    /// value.
    fn chain(&mut self, cx: &Context, body: &Body, first: usize, tail: ExprId) {
        let mut summary = if body.is_flat(tail) {
            self.flat_summary(cx, body, tail)
        } else {
            self.results.pop().expect("the tail has a summary")
        };
        let mut occurrences: SmallVec<[(ExprId, u64); 8]> = SmallVec::new();
        for at in (first..self.links.len()).rev() {
            let Expr::Let { var, value, flags, .. } = body.expr(self.links[at]) else { continue };
            let flags = flags_word(body, var, flags);
            let bound = summary.free.remove(var.expr()).unwrap_or(0);
            let structure = mix(mix(mix(4 + flags, bound), summary.structure), 5);
            if body.is_flat(value) {
                occurrences.clear();
                let value = self.flat(cx, body, value, |var, position| occurrences.push((var, position)));
                let structure = mix(structure, value);
                for &(var, position) in &occurrences {
                    summary.free.update(var, |old| mix(mix(structure, old.unwrap_or(0)), position));
                }
                summary.structure = structure;
                continue;
            }
            let mut value = self.results.pop().expect("a value that is not flat has a summary");
            // A `fn` may be recursive.
            let recursive = value.free.remove(var.expr()).unwrap_or(0);
            let structure = mix(mix(structure, value.structure), recursive);
            if value.free.len() > summary.free.len() {
                std::mem::swap(&mut value.free, &mut summary.free);
                summary.structure = mix(structure, 1);
            } else {
                summary.structure = mix(structure, 2);
            }
            summary.free.absorb(value.free, summary.structure);
        }
        self.links.truncate(first);
        self.results.push(summary);
    }

    /// Returns the hash of attributes: that of their id, unless they name symbols, which equality
    /// may rename.
    fn attrs(&mut self, cx: &Context, attrs: AttrsId) -> u64 {
        if attrs == cx.attrs.empty() {
            return 6;
        }
        if let Some(&h) = self.attrs.get(&attrs) {
            return h;
        }
        let list = cx.attrs.list(attrs);
        let mut walk = AttrWalk::new();
        walk.add(&cx.attrs, attrs);
        let mut named = false;
        while let Some((_, value)) = walk.next(&cx.attrs) {
            match value {
                Attr::Type(t) => named |= cx.types.is_symbolic(*t),
                Attr::Shape(shape) => named |= shape.iter().any(|&d| cx.types.dims.is_symbolic(d)),
                _ => {}
            }
        }
        let h = if named { mix(7, list.len() as u64) } else { mix(8, attrs.index() as u64) };
        self.attrs.insert(attrs, h);
        h
    }
}

#[inline]
fn atom(body: &Body, id: ExprId, position: u64, occurs: &mut impl FnMut(ExprId, u64)) -> u64 {
    match body.expr(id) {
        Expr::Var { .. } => {
            occurs(id, position);
            32
        }
        Expr::Literal(l) => mix(33, l.index() as u64),
        Expr::Global(g) => mix(34, g.index() as u64),
        Expr::Op(op) => mix(35, op.index() as u64),
        _ => 36,
    }
}

/// Returns the hash of a type. Types with symbols, which may have to be renamed, all have the same
/// hash.
fn type_hash(cx: &Context, ty: TypeId) -> u64 {
    if cx.types.is_symbolic(ty) { 9 } else { mix(10, ty.index() as u64) }
}
