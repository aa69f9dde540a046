//! Functions that compute adjoints of large tuple types: one that adds two of them, field by field,
//! and one that returns zeros.
//!
//! The fields of a tuple may be of the same type, so a type of n tuples may have 2^n tensors. The
//! sum and the zeros of such a type are calls of functions, which each type has once. Such a
//! function calls those of the types of its fields, so the functions take as much text as the
//! types.

use anfora_ir::{
    BuildError, Context, ExprId, FunctionBuilder, FunctionKey, GlobalId, Module, NameSupply, TypeId, Visibility,
};
use rustc_hash::FxHashMap;

use super::tangents::known_zeros;

/// A function for a tuple type.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub(super) enum TupleFunction {
    /// It adds two values of the type.
    Sum,
    /// It returns zeros of the type, whose extents are numbers.
    Zeros,
}

impl TupleFunction {
    /// Returns the name of these functions.
    fn name(self) -> &'static str {
        match self {
            TupleFunction::Sum => "add_adjoints",
            TupleFunction::Zeros => "zero_adjoints",
        }
    }

    /// Returns the operator that computes the tensors in the result.
    pub(super) fn operator(self) -> &'static str {
        match self {
            TupleFunction::Sum => "add",
            TupleFunction::Zeros => "zeros",
        }
    }

    fn param_count(self) -> usize {
        match self {
            TupleFunction::Sum => 2,
            TupleFunction::Zeros => 0,
        }
    }
}

/// The functions for tuple types.
#[derive(Default)]
pub(super) struct TupleFunctions {
    known: FxHashMap<(TupleFunction, TypeId), (GlobalId, TypeId)>,
    order: Vec<(TupleFunction, TypeId)>,
}

impl TupleFunctions {
    /// Returns the function of a kind for a type, a tuple without symbols, and its signature.
    pub(super) fn of(
        &mut self,
        cx: &mut Context,
        names: &mut NameSupply,
        kind: TupleFunction,
        ty: TypeId,
    ) -> (GlobalId, TypeId) {
        if let Some(&known) = self.known.get(&(kind, ty)) {
            return known;
        }
        let global = names.fresh(cx, kind.name());
        let signature = cx.types.function(&vec![ty; kind.param_count()], ty, &[]);
        self.known.insert((kind, ty), (global, signature));
        self.order.push((kind, ty));
        (global, signature)
    }

    /// Adds the functions to a module. Returns them in order.
    pub(super) fn add_to(mut self, module: &mut Module, mut names: NameSupply) -> Vec<FunctionKey> {
        let mut next = 0;
        while let Some(&(kind, ty)) = self.order.get(next) {
            let fields = module.cx.types.as_tuple(ty).unwrap_or_default().to_vec();
            for field in fields {
                if module.cx.types.as_tuple(field).is_some_and(|fields| !fields.is_empty()) {
                    self.of(&mut module.cx, &mut names, kind, field);
                }
            }
            let (global, signature) = self.known[&(kind, ty)];
            module.set_signature(global, signature);
            next += 1;
        }
        self.order.iter().map(|&(kind, ty)| self.add_one(module, kind, ty)).collect()
    }

    fn add_one(&self, module: &mut Module, kind: TupleFunction, ty: TypeId) -> FunctionKey {
        let name = module.cx.global_name(self.known[&(kind, ty)].0).to_string();
        let mut f = FunctionBuilder::new(module, &name);
        f.visibility(Visibility::Private);
        f.result(ty);
        let params: Vec<ExprId> = ["a", "b"].iter().take(kind.param_count()).map(|name| f.param(name, ty)).collect();
        let fields = f.cx().types.as_tuple(ty).unwrap_or_default().to_vec();
        let mut results = Vec::with_capacity(fields.len());
        for (i, field) in (0..).zip(fields) {
            let result = self
                .field(&mut f, kind, &params, i, field)
                .expect("the operator exists, and the parameters have the type");
            results.push(f.bind("", result));
        }
        let result = f.tuple(&results);
        f.finish(result).expect("a fresh name has no function, and each field has its type")
    }

    /// Returns the field `i` of the result, of the type `ty`.
    fn field(
        &self,
        f: &mut FunctionBuilder<'_>,
        kind: TupleFunction,
        params: &[ExprId],
        i: u32,
        ty: TypeId,
    ) -> Result<ExprId, BuildError> {
        if ty == f.cx().types.unit() {
            return Ok(f.tuple(&[]));
        }
        let mut parts = Vec::with_capacity(params.len());
        for &param in params {
            let part = f.proj(param, i)?;
            parts.push(f.bind("", part));
        }
        match (self.known.get(&(kind, ty)), kind) {
            (Some(&(global, _)), _) => {
                let callee = f.editor().global(global);
                f.call(callee, &parts)
            }
            (None, TupleFunction::Sum) => f.call_op(kind.operator(), &parts, &[]),
            (None, TupleFunction::Zeros) => {
                let zeros = known_zeros(&mut f.editor(), ty).expect("the extents are numbers");
                Ok(zeros?)
            }
        }
    }
}
