//! Hashes of modules that are equal for alpha-equal modules.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::tables::is_private;
use super::{flags_word, mix, mix_bytes};
use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{AttrsId, DimId, EntityId, ExprId, GlobalId, SymbolId};
use crate::core::expr::Expr;
use crate::core::function::{Function, FunctionKind, Visibility};
use crate::core::module::Module;
use crate::tables::dim::{Dim, DimOp};
use crate::tables::entry::{Entry, EntryHead};
use crate::tables::literal::Literal;
use crate::walk::cursor::{BlockKind, Cursor, Step};
use crate::walk::parts_first::PartsFirst;

/// Returns a hash of a module. Alpha-equal modules (see [`alpha_equal`](super::alpha_equal)) have
/// the same hash, on every machine; others hardly ever do.
///
/// Variables are hashed by the number of their binder in program order, symbolic dimensions by
/// where they first stand alone, and public globals by name. A private function is hashed by the
/// hash of its content. In that hash, private functions are not told apart, so there are two
/// rounds. Linear.
pub fn module_hash(module: &Module) -> u64 {
    let mut hasher = ModuleHasher::new(module);
    let has_private = module.functions().any(|(_, f)| f.visibility == Visibility::Private && f.is_definition());
    if has_private {
        let first = hasher.functions();
        for (&key, &h) in module.order().iter().zip(&first) {
            if let Some(global) = module.get(key).and_then(Function::global)
                && is_private(module, global)
            {
                hasher.private.insert(global, h);
            }
        }
        hasher.entries.clear();
    }
    let mut all = 0u64;
    for (h, (_, f)) in hasher.functions().into_iter().zip(module.functions()) {
        let name = match f.global() {
            Some(g) if !is_private(module, g) => mix_bytes(1, module.cx.global_name(g).as_bytes()),
            _ => 2,
        };
        // The hashes are added, since the order of functions does not count.
        all = all.wrapping_add(mix(name, h));
    }
    let attrs = hasher.attrs(module.attrs());
    mix(all, attrs)
}

pub(crate) struct ModuleHasher<'a> {
    module: &'a Module,
    cx: &'a Context,
    /// Returns the hash of a constant.
    literal: fn(&Literal) -> u64,
    /// The hashes of entries that are looked up by id after they were hashed.
    entries: FxHashMap<Entry, u64>,
    /// The entries to be hashed. Empty between calls.
    work: PartsFirst<Entry>,
    /// Hashes of the functions in attributes, by id: each function names only earlier ones.
    function_attrs: Vec<u64>,
    /// The number of each symbol of the current function.
    symbols: FxHashMap<SymbolId, u64>,
    next_symbol: u64,
    private: FxHashMap<GlobalId, u64>,
}

impl<'a> ModuleHasher<'a> {
    fn new(module: &'a Module) -> ModuleHasher<'a> {
        ModuleHasher::with_literals(module, hash_literal)
    }

    /// Returns a hasher that takes less than the contents of constants into account: the hashes
    /// are for tables in memory.
    pub(crate) fn sampling(module: &'a Module) -> ModuleHasher<'a> {
        ModuleHasher::with_literals(module, |literal| FxBuildHasher.hash_one(literal))
    }

    fn with_literals(module: &'a Module, literal: fn(&Literal) -> u64) -> ModuleHasher<'a> {
        ModuleHasher {
            module,
            cx: &module.cx,
            literal,
            entries: FxHashMap::default(),
            work: PartsFirst::default(),
            function_attrs: Vec::new(),
            symbols: FxHashMap::default(),
            next_symbol: 0,
            private: FxHashMap::default(),
        }
    }

    /// Returns the hashes of all functions, in program order.
    fn functions(&mut self) -> Vec<u64> {
        self.function_attrs.clear();
        let (module, cx) = (self.module, self.cx);
        for (_, f) in cx.function_attrs.iter() {
            let h = self.function(f);
            self.function_attrs.push(h);
        }
        module.functions().map(|(_, f)| self.function(f)).collect()
    }

    /// Returns the hash of a function without its name.
    pub(crate) fn function(&mut self, f: &Function) -> u64 {
        self.next_symbol = 0;
        let mut h =
            mix(3, (f.kind == FunctionKind::Definition) as u64 * 2 + (f.visibility == Visibility::Public) as u64);
        h = mix(h, self.attrs(f.attrs));
        let mut numbers = Numbers { of: vec![0; f.body.len()], next: 1 };
        for &p in f.body.params() {
            h = mix(h, self.entry(Entry::Type(f.body.ty(p.expr()))));
            numbers.give(p.expr());
        }
        if let Some(ret) = f.known_result_type() {
            h = mix(h, self.entry(Entry::Type(ret)));
        }
        if f.kind == FunctionKind::Definition {
            h = mix(h, self.body(&f.body, &mut numbers));
        }
        h
    }

    fn body(&mut self, body: &Body, numbers: &mut Numbers) -> u64 {
        let mut cursor = Cursor::new(body);
        let mut h = 0u64;
        while let Some(step) = cursor.next(body) {
            match step {
                Step::Let(id) => {
                    let Expr::Let { var, flags, .. } = body.expr(id) else { continue };
                    h = mix(h, 16 + flags_word(body, var, flags));
                    numbers.give(var.expr());
                }
                Step::Bound(_) => {}
                Step::Atom(id) => h = mix(h, self.atom(body, id, numbers)),
                Step::Flat(id) | Step::Enter(id) => {
                    h = mix(h, self.head(body, id));
                    numbers.give(id);
                    if let Step::Flat(_) = step {
                        for &o in body.inputs(id) {
                            h = mix(h, self.atom(body, o, numbers));
                        }
                    } else if let Expr::Lambda { lambda, body: block } = body.expr(id) {
                        for p in body.lambda_params(lambda) {
                            h = mix(h, self.entry(Entry::Type(body.ty(p.expr()))));
                            numbers.give(p.expr());
                        }
                        let ret = body.lambda(lambda).ret.unwrap_or_else(|| body.type_of(block));
                        h = mix(h, self.entry(Entry::Type(ret)));
                    }
                }
                Step::Seen(id) => h = mix(mix(h, 5), u64::from(numbers.of[id.index()])),
                Step::Exit(_) => h = mix(h, 6),
                Step::EnterBlock(_, kind) => {
                    let kind = match kind {
                        BlockKind::Root => 0,
                        BlockKind::Then(_) => 1,
                        BlockKind::Else(_) => 2,
                        BlockKind::Lambda(_) => 3,
                        BlockKind::Value(_) => 4,
                        BlockKind::Operand(_) => 5,
                    };
                    h = mix(h, 32 + kind);
                }
                Step::ExitBlock(..) => h = mix(h, 7),
            }
        }
        h
    }

    /// Returns the hash of a node without its parts.
    pub(crate) fn head(&mut self, body: &Body, id: ExprId) -> u64 {
        match body.expr(id) {
            Expr::CallOp { op, operands, attrs } => {
                let mut h = mix(mix(64, self.entry(Entry::Op(op))), operands.len() as u64);
                h = mix(h, self.attrs(attrs));
                if self.cx.ops.is_opaque(op) {
                    h = mix(h, self.entry(Entry::Type(body.ty(id))));
                }
                h
            }
            Expr::Call { operands, attrs } => mix(mix(65, operands.len() as u64), self.attrs(attrs)),
            Expr::Tuple(fields) => mix(66, fields.len() as u64),
            Expr::Proj { index, .. } => mix(67, u64::from(index)),
            Expr::If { .. } => 68,
            Expr::Lambda { lambda, .. } => {
                let data = body.lambda(lambda);
                mix(mix(69, data.params.len() as u64), self.attrs(data.attrs))
            }
            _ => 70,
        }
    }

    fn atom(&mut self, body: &Body, id: ExprId, numbers: &Numbers) -> u64 {
        match body.expr(id) {
            Expr::Var { .. } => mix(80, u64::from(numbers.of[id.index()])),
            Expr::Literal(l) => mix(81, self.entry(Entry::Literal(l))),
            Expr::Global(g) => mix(82, self.global(g)),
            Expr::Op(op) => mix(83, self.entry(Entry::Op(op))),
            _ => 84,
        }
    }

    fn global(&self, g: GlobalId) -> u64 {
        if is_private(self.module, g) {
            return self.private.get(&g).copied().unwrap_or(1);
        }
        mix_bytes(2, self.cx.global_name(g).as_bytes())
    }

    fn attrs(&mut self, list: AttrsId) -> u64 {
        if list == self.cx.attrs.empty() { 9 } else { self.entry(Entry::Attrs(list)) }
    }

    /// Returns the hash of an entry. Its parts are hashed first, on an explicit stack.
    pub(crate) fn entry(&mut self, entry: Entry) -> u64 {
        if let Some(&h) = self.entries.get(&entry) {
            return h;
        }
        let cx = self.cx;
        let mut work = std::mem::take(&mut self.work);
        work.add(entry);
        let push_parts = |whole: Entry, stack: &mut Vec<Entry>| {
            let start = stack.len();
            whole.for_each_part(cx, |part| stack.extend(is_found_by_id(cx, part).then_some(part)));
            stack[start..].reverse();
        };
        while let Some(next) = work.next(|entry| self.entries.contains_key(&entry), push_parts) {
            let h = self.combine(next);
            self.entries.insert(next, h);
        }
        self.work = work;
        self.entries[&entry]
    }

    /// Returns the hash of an entry whose parts are hashed.
    fn combine(&mut self, entry: Entry) -> u64 {
        let cx = self.cx;
        match entry {
            Entry::Literal(l) => return (self.literal)(cx.literals.get(l)),
            Entry::Dim(d) => match cx.types.dims.get(d) {
                // The order of terms, and of the operands of commutative operations, depends on
                // when symbols were made.
                Dim::Sum(terms) => {
                    return terms.iter().fold(110, |sum: u64, t| {
                        let product = t.factors.iter().fold(0u64, |p, &f| p.wrapping_add(mix(1, self.inner(f))));
                        sum.wrapping_add(mix(t.coefficient as u64, product))
                    });
                }
                Dim::Op { op, lhs, rhs } => {
                    let (l, r) = (self.inner(*lhs), self.inner(*rhs));
                    let operands = match op {
                        DimOp::Min | DimOp::Max => mix(2, l).wrapping_add(mix(2, r)),
                        _ => mix(mix(3, l), r),
                    };
                    return mix(mix(111, *op as u64), operands);
                }
                _ => {}
            },
            _ => {}
        }
        let (mut h, mut count) = (self.head_of(entry), 0);
        entry.for_each_part(cx, |part| {
            count += 1;
            h = mix(h, self.part(part));
        });
        mix(h, count)
    }

    fn head_of(&self, entry: Entry) -> u64 {
        let EntryHead { kind, numbers, text } = entry.head(self.cx);
        numbers.into_iter().fold(mix_bytes(kind, text.as_bytes()), mix)
    }

    fn part(&mut self, part: Entry) -> u64 {
        match part {
            Entry::Dim(d) => self.standalone(d),
            Entry::Name(_) => self.head_of(part),
            Entry::Global(g) => self.global(g),
            Entry::Function(f) => self.function_attrs.get(f.index()).copied().unwrap_or(0),
            _ => self.entries[&part],
        }
    }

    /// Returns the hash of a dimension of a shape. A symbol that stands alone gets its number here.
    fn standalone(&mut self, d: DimId) -> u64 {
        if let Dim::Symbol(s) = self.cx.types.dims.get(d)
            && !self.symbols.contains_key(s)
        {
            self.next_symbol += 1;
            self.symbols.insert(*s, self.next_symbol);
        }
        self.inner(d)
    }

    fn inner(&self, d: DimId) -> u64 {
        match self.cx.types.dims.get(d) {
            Dim::Symbol(s) => mix(142, self.symbols.get(s).copied().unwrap_or(0)),
            Dim::Sum(_) | Dim::Op { .. } => self.entries.get(&Entry::Dim(d)).copied().unwrap_or(144),
            Dim::Unknown | Dim::Const(_) | Dim::Bound { .. } => self.head_of(Entry::Dim(d)),
        }
    }
}

/// Returns true if the hash of an entry is kept after it was computed.
fn is_found_by_id(cx: &Context, entry: Entry) -> bool {
    match entry {
        Entry::Dim(dim) => matches!(cx.types.dims.get(dim), Dim::Sum(_) | Dim::Op { .. }),
        Entry::Type(_) | Entry::Attr(_) | Entry::Attrs(_) | Entry::Literal(_) | Entry::Op(_) => true,
        Entry::Name(_) | Entry::Symbol(_) | Entry::Global(_) | Entry::Function(_) => false,
    }
}

/// The numbers of variables and shared nodes in program order; 0 for nodes without a number.
struct Numbers {
    of: Vec<u32>,
    next: u32,
}

impl Numbers {
    #[inline]
    fn give(&mut self, id: ExprId) {
        self.of[id.index()] = self.next;
        self.next += 1;
    }
}

fn hash_literal(l: &Literal) -> u64 {
    let mut h = mix_bytes(150, l.dtype().name().as_bytes());
    for &d in l.shape() {
        h = mix(h, d as u64);
    }
    if let Some(element) = l.as_splat() {
        return mix_bytes(mix(h, 1), element);
    }
    if l.is_dense() {
        let mut hash = mix(h, 2);
        // The hash of a constant that cannot be read is that of its beginning. The error stays with
        // the file.
        let _ = l.for_each_piece(|piece| hash = mix_bytes(hash, piece));
        return hash;
    }
    l.as_strings().into_iter().flatten().fold(mix(h, 3), |h, s| mix_bytes(h, s.as_bytes()))
}
