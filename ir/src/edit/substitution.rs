//! Replacement of symbolic dimensions by other dimensions.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::core::body::{Body, SharedEdits};
use crate::core::context::Context;
use crate::core::entity::{AttrId, AttrsId, DimId, ExprId, FunctionKey, SymbolId, TypeId};
use crate::core::expr::{Expr, VarId};
use crate::core::module::Module;
use crate::edit::retype::{Retype, RetypeError};
use crate::ops::op::TypeError;
use crate::tables::attrs::Attr;
use crate::tables::dim::Dim;
use crate::tables::types::SubstitutedParts;
use crate::walk::cursor::{BlockKind, Step};
use crate::walk::parts_first::PartsFirst;
use crate::walk::symbols::SymbolWalk;

/// A map from symbols to dimensions, which replaces the symbols in types, attributes, bodies and
/// functions.
///
/// The result for each part of a type or attribute is computed once.
///
/// ```
/// use anfora_ir::{Source, SymbolSubstitution, parse_module};
///
/// let text = "def @f(%x: Tensor[(n,), float32]) { let %y = tanh(%x); add(%x, %y) }";
/// let mut module = parse_module(Source::new("example", text), anfora_ops::standard())?;
/// let key = module.find("f").expect("it is defined");
/// let (function, cx) = module.get_mut(key).expect("it is there");
/// let mut substitution = SymbolSubstitution::new();
/// let four = cx.types.dims.constant(4);
/// let x = function.body.params()[0].expr();
/// cx.types.for_each_binding_symbol(function.body.ty(x), |n| substitution.set(n, four));
/// substitution.in_function(&mut module, key, &[])?;
/// let function = module.get(key).expect("it is there");
/// let result = function.body.type_of(function.body.root());
/// assert_eq!(module.cx.type_text(result), "Tensor[(4,), float32]");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default, Debug)]
pub struct SymbolSubstitution {
    map: FxHashMap<SymbolId, DimId>,
    /// Symbols that were visited and have no replacement. A replacement for any other symbol does
    /// not invalidate the computed results.
    left: FxHashSet<SymbolId>,
    types: FxHashMap<TypeId, TypeId>,
    parts: SubstitutedParts,
    attrs: FxHashMap<AttrsId, AttrsId>,
    values: FxHashMap<AttrId, AttrId>,
    /// The parts whose symbols were renamed, in a substitution that renames.
    renamed: Option<SymbolWalk>,
}

impl SymbolSubstitution {
    /// Returns a substitution that changes nothing.
    pub fn new() -> SymbolSubstitution {
        SymbolSubstitution::default()
    }

    /// Returns a substitution that replaces each visited symbol without a replacement by a new
    /// symbol of the same name, since a symbol belongs to one function.
    pub fn renaming() -> SymbolSubstitution {
        SymbolSubstitution { renamed: Some(SymbolWalk::new()), ..SymbolSubstitution::default() }
    }

    /// Sets the replacement of a symbol. The dimension must name no symbol that has a replacement.
    ///
    /// Cost: one entry.
    pub fn set(&mut self, symbol: SymbolId, by: DimId) {
        let before = self.map.insert(symbol, by);
        if before.is_some_and(|before| before != by) || self.left.contains(&symbol) {
            // Clearing a map takes time in proportion to its capacity.
            let (map, renamed) = (std::mem::take(&mut self.map), self.renamed.take());
            *self = SymbolSubstitution { map, renamed, ..SymbolSubstitution::default() };
        }
    }

    /// Sets a new symbol of the same name as the replacement of a symbol, and returns it.
    ///
    /// Cost: one entry.
    pub fn rename(&mut self, cx: &mut Context, symbol: SymbolId) -> SymbolId {
        let dims = &mut cx.types.dims;
        let fresh = dims.new_symbol(dims.symbol_name(symbol));
        let dim = dims.symbol(fresh);
        self.set(symbol, dim);
        if self.renamed.is_some() {
            // The walk meets the new symbol when it visits a type twice.
            self.map.insert(fresh, dim);
        }
        fresh
    }

    /// Returns the replacement of a symbol.
    pub fn get(&self, symbol: SymbolId) -> Option<DimId> {
        self.map.get(&symbol).copied()
    }

    /// Returns true if no symbol has a replacement.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Returns the number of symbols with a replacement.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Returns the types that were passed to [`ty`](SymbolSubstitution::ty), with their results, in
    /// no order. Types that were passed before a [`set`](SymbolSubstitution::set) of a symbol that
    /// they name are not included.
    pub fn types(&self) -> impl Iterator<Item = (TypeId, TypeId)> {
        self.types.iter().map(|(&old, &new)| (old, new))
    }

    /// Returns a type with its symbols replaced.
    #[inline]
    pub fn ty(&mut self, cx: &mut Context, ty: TypeId) -> TypeId {
        if self.changes_nothing() || !cx.types.is_symbolic(ty) { ty } else { self.symbolic_type(cx, ty) }
    }

    fn symbolic_type(&mut self, cx: &mut Context, ty: TypeId) -> TypeId {
        if let Some(&done) = self.types.get(&ty) {
            return done;
        }
        self.rename_unknown(cx, |walk, cx, each| walk.in_type(cx, ty, each));
        let SymbolSubstitution { map, left, types, parts, .. } = self;
        let new = cx.types.substitute_in(ty, parts, |s| look_up(map, left, s));
        types.insert(ty, new);
        new
    }

    fn changes_nothing(&self) -> bool {
        self.map.is_empty() && self.renamed.is_none()
    }

    /// Renames the symbols that a walk meets, if this substitution renames.
    fn rename_unknown(
        &mut self,
        cx: &mut Context,
        walk: impl FnOnce(&mut SymbolWalk, &Context, &mut dyn FnMut(SymbolId)),
    ) {
        let Some(seen) = &mut self.renamed else { return };
        let mut found: SmallVec<[SymbolId; 4]> = SmallVec::new();
        walk(seen, cx, &mut |symbol| found.push(symbol));
        for symbol in found {
            if !self.map.contains_key(&symbol) {
                self.rename(cx, symbol);
            }
        }
    }

    /// Returns attributes with the symbols in types and shapes replaced.
    pub fn attrs(&mut self, cx: &mut Context, attrs: AttrsId) -> AttrsId {
        if self.changes_nothing() || attrs == cx.attrs.empty() {
            return attrs;
        }
        if let Some(&done) = self.attrs.get(&attrs) {
            return done;
        }
        self.rename_unknown(cx, |walk, cx, each| walk.in_attrs(cx, attrs, each));
        let mut list = cx.attrs.list(attrs).to_vec();
        let mut changed = false;
        for (_, value) in &mut list {
            let new = self.attr(cx, *value);
            changed |= new != *value;
            *value = new;
        }
        let new = if changed { cx.attrs(&list) } else { attrs };
        self.attrs.insert(attrs, new);
        new
    }

    /// Returns a value with its symbols replaced; lists nest on an explicit stack.
    fn attr(&mut self, cx: &mut Context, value: AttrId) -> AttrId {
        let mut work = PartsFirst::to(value);
        while let Some(top) = work
            .next(|value| self.values.contains_key(&value), |value, stack| stack.extend(cx.attrs.get(value).items()))
        {
            let new = match cx.attrs.get(top) {
                Attr::List(items) => {
                    let items: Vec<AttrId> = items.iter().map(|i| self.values[i]).collect();
                    cx.attr(Attr::List(items.into()))
                }
                Attr::Shape(shape) => {
                    let shape = shape.to_vec();
                    let (map, left) = (&self.map, &mut self.left);
                    let dims = &mut cx.types.dims;
                    let shape = shape
                        .into_iter()
                        .map(|d| {
                            dims.substitute(d, |dims, leaf| match *dims.get(leaf) {
                                Dim::Symbol(s) => look_up(map, left, s),
                                _ => None,
                            })
                        })
                        .collect();
                    cx.attr(Attr::Shape(shape))
                }
                &Attr::Type(ty) => {
                    let ty = self.ty(cx, ty);
                    cx.attr(Attr::Type(ty))
                }
                _ => top,
            };
            self.values.insert(top, new);
        }
        self.values[&value]
    }

    /// Replaces symbols in the types and attributes of a body, and infers the types of expressions
    /// with a part whose type changed, now or before (`changed`). One walk of the body.
    ///
    /// # Errors
    /// If an expression has no type any more. The body is then partly rewritten, and its stop is
    /// recorded.
    pub fn in_body(&mut self, cx: &mut Context, body: &mut Body, changed: &[ExprId]) -> Result<(), RetypeError> {
        // A symbol has the same meaning in each use of a node.
        let before = body.shared_edits(SharedEdits::Meant);
        let mut retype = Retype::new(body);
        changed.iter().for_each(|&id| retype.changed(id));
        for i in 0..body.params().len() {
            self.in_type_of(&mut retype, cx, body, body.params()[i].expr());
        }
        let root = body.root();
        let done = retype.sweep_with(cx, body, root, |retype, cx, body, step| self.at_step(retype, cx, body, step));
        body.shared_edits(before);
        done.map(drop)
    }

    /// Replaces symbols at a step of the walk. Returns true if the type of a node must be inferred
    /// again although the types of its parts did not change.
    fn at_step(
        &mut self,
        retype: &mut Retype,
        cx: &mut Context,
        body: &mut Body,
        step: Step,
    ) -> Result<bool, TypeError> {
        match step {
            Step::EnterBlock(_, BlockKind::Lambda(id)) => self.in_lambda(retype, cx, body, id),
            Step::Let(id) => {
                if let Expr::Let { var, value, .. } = body.expr(id)
                    && let Expr::Lambda { .. } = body.expr(value)
                {
                    self.in_type_of(retype, cx, body, var.expr());
                }
            }
            Step::Bound(id) => {
                // If the type of the value changed, the sweep gives the variable that type.
                if let Expr::Let { var, value, .. } = body.expr(id)
                    && !retype.has_changed(body.tail(value))
                {
                    self.in_type_of(retype, cx, body, var.expr());
                }
            }
            Step::Flat(id) | Step::Exit(id) => {
                self.in_type_of(retype, cx, body, id);
                return self.in_attrs_of(cx, body, id);
            }
            _ => {}
        }
        Ok(false)
    }

    fn in_type_of(&mut self, retype: &mut Retype, cx: &mut Context, body: &mut Body, id: ExprId) {
        let ty = self.ty(cx, body.ty(id));
        retype.set_type(body, id, ty);
    }

    fn in_lambda(&mut self, retype: &mut Retype, cx: &mut Context, body: &mut Body, id: ExprId) {
        let Expr::Lambda { lambda, .. } = body.expr(id) else { return };
        let params: Vec<VarId> = body.lambda_params(lambda).collect();
        for param in params {
            self.in_type_of(retype, cx, body, param.expr());
        }
        let mut data = body.lambda(lambda);
        data.ret = data.ret.map(|ty| self.ty(cx, ty));
        data.attrs = self.attrs(cx, data.attrs);
        body.set_lambda(lambda, data);
        let own = body.lambda_symbols(lambda);
        if own.iter().any(|&s| self.get(s).is_some()) {
            let of_new = |symbol: SymbolId| match self.get(symbol).map(|dim| cx.types.dims.get(dim)) {
                None => Some(symbol),
                Some(&Dim::Symbol(new)) if self.renamed.is_some() => Some(new),
                Some(_) => None,
            };
            let left = own.iter().filter_map(|&symbol| of_new(symbol)).collect();
            body.set_lambda_symbols(lambda, left);
        }
    }

    /// Replaces symbols in the attributes of a call. Returns true if the type of the call may
    /// follow from changed attributes.
    fn in_attrs_of(&mut self, cx: &mut Context, body: &mut Body, id: ExprId) -> Result<bool, TypeError> {
        match body.expr(id) {
            Expr::CallOp { op, operands, attrs } => {
                let new = self.attrs(cx, attrs);
                if new == attrs {
                    return Ok(false);
                }
                // A shape may have become equal to the default.
                let attrs = cx.check_op_attrs(op, new).map_err(|(error, _)| error)?;
                body.set_expr(id, Expr::CallOp { op, operands, attrs });
                Ok(true)
            }
            Expr::Call { operands, attrs } => {
                let attrs = self.attrs(cx, attrs);
                body.set_expr(id, Expr::Call { operands, attrs });
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// Replaces symbols in the parameters, the result, the attributes and the body of a function,
    /// and updates the signature of its name. `changed` are expressions of the body whose types
    /// changed before.
    ///
    /// # Errors
    /// If an expression has no type any more. The function is then partly rewritten, and the stop
    /// of its body is recorded.
    pub fn in_function(
        &mut self,
        module: &mut Module,
        key: FunctionKey,
        changed: &[ExprId],
    ) -> Result<(), RetypeError> {
        let mut changed = changed.to_vec();
        let Some((function, cx)) = module.get_mut(key) else { return Ok(()) };
        let global = function.global();
        for i in 0..function.body.params().len() {
            let param = function.body.params()[i].expr();
            let ty = self.ty(cx, function.body.ty(param));
            if ty != function.body.ty(param) {
                function.body.set_type(param, ty);
                changed.push(param);
            }
        }
        function.attrs = self.attrs(cx, function.attrs);
        if let Some(ret) = function.ret {
            let ret = self.ty(cx, ret);
            function.ret = Some(ret);
            // Recursive calls are typed by the signature.
            let signature = function.signature(cx, ret);
            for (leaf, g) in function.body.global_leaves() {
                if Some(g) == global && function.body.ty(leaf) != signature {
                    function.body.set_type(leaf, signature);
                    changed.push(leaf);
                }
            }
            if let Some(global) = global {
                module.set_signature(global, signature);
            }
        }
        let Some((function, cx)) = module.get_mut(key) else { return Ok(()) };
        if function.is_definition() {
            self.in_body(cx, &mut function.body, &changed)?;
        }
        if let (None, Some(global)) = (function.ret, global) {
            let ret = function.body.type_of(function.body.root());
            let signature = function.signature(cx, ret);
            module.set_signature(global, signature);
        }
        Ok(())
    }
}

/// Returns the replacement of a symbol, and records the symbol if there is none.
fn look_up(map: &FxHashMap<SymbolId, DimId>, left: &mut FxHashSet<SymbolId>, symbol: SymbolId) -> Option<DimId> {
    let by = map.get(&symbol).copied();
    if by.is_none() {
        left.insert(symbol);
    }
    by
}
