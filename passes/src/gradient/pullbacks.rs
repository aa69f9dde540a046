//! The functions that are called: each gets one pullback, which returns the result and a fn that
//! computes the adjoints of parameters. These are the parameters by which a call differentiates it.
//!
//! The functions are found first ([`Pullbacks::prepare`]), since a call that comes late may make
//! one more parameter of an earlier function active.

use std::collections::hash_map::Entry;

use anfora_ir::{
    Context, Editor, ExprId, Function, FunctionKey, Functions, GlobalId, Module, NameSupply, Purity, TypeId, Visibility,
};
use anfora_manager::PassError;
use rustc_hash::FxHashMap;

use super::backward::Differentiator;
use super::flow::{Flow, ReachedParameter};
use super::tangents::AdjointTypes;
use super::tuple_functions::{TupleFunction, TupleFunctions};
use super::{Target, WantedValue, in_function, prepared_copy};

/// The end of the names of pullbacks.
const PULLBACK: &str = "pullback";

/// A function that calls reach, before it is differentiated.
struct PreparedFunction {
    function: Function,
    /// The type of the result of its calls.
    result: TypeId,
    flow: Flow,
    /// For each parameter: is the function differentiated by it?
    wanted: Vec<bool>,
}

impl PreparedFunction {
    fn of(functions: Functions<'_>, cx: &mut Context, key: FunctionKey) -> Result<PreparedFunction, PassError> {
        let (function, result) = prepared_copy(functions, cx, key)?;
        let flow = Flow::of(cx, &function.body, Target::whole(&function.body));
        let wanted = vec![false; function.body.params().len()];
        Ok(PreparedFunction { function, result, flow, wanted })
    }

    /// Returns the parameters by which the function is differentiated.
    fn wanted_params(&self) -> Vec<WantedValue> {
        let params = self.function.body.params().iter().zip(&self.wanted).filter(|(_, is_wanted)| **is_wanted);
        params.map(|(param, _)| WantedValue { var: param.expr(), is_param: true }).collect()
    }
}

/// Returns the type of the pair that the pullback of a function returns, given the type of the
/// result of its calls, and for each parameter whether the function is differentiated by it.
fn pullback_result(
    cx: &mut Context,
    types: &mut AdjointTypes,
    function: &Function,
    result: TypeId,
    wanted: &[bool],
) -> TypeId {
    let body = &function.body;
    let params = body.params().iter().zip(wanted).filter(|(_, is_wanted)| **is_wanted);
    let params: Vec<TypeId> = params.map(|(param, _)| types.of(cx, body.ty(param.expr()))).collect();
    let params = cx.types.tuple(&params);
    let adjoint = types.of(cx, result);
    let back = cx.types.function(&[adjoint], params, &[]);
    cx.types.tuple(&[result, back])
}

/// The pullback of a function.
#[derive(Clone)]
pub(super) struct Pullback {
    pub(super) global: GlobalId,
    pub(super) signature: TypeId,
    /// For each parameter: does the fn return its adjoint?
    pub(super) wanted: Vec<bool>,
}

/// The pullbacks of the functions that are called.
pub(super) struct Pullbacks {
    names: NameSupply,
    /// The number of segments of a function: see [`segments`](super::segments).
    pub(super) checkpoints: usize,
    /// Which calls may be repeated, if functions have segments.
    pub(super) purity: Option<Purity>,
    prepared: FxHashMap<FunctionKey, PreparedFunction>,
    known: FxHashMap<FunctionKey, Pullback>,
    /// The functions whose pullbacks are named, in order. Those before `made` have been made.
    order: Vec<FunctionKey>,
    made: Vec<Function>,
    tuple_functions: TupleFunctions,
}

impl Pullbacks {
    pub(super) fn new(module: &Module, checkpoints: usize) -> Pullbacks {
        Pullbacks {
            names: NameSupply::new(module),
            checkpoints,
            purity: (checkpoints > 1).then(|| Purity::of_module(module)),
            prepared: FxHashMap::default(),
            known: FxHashMap::default(),
            order: Vec::new(),
            made: Vec::new(),
            tuple_functions: TupleFunctions::default(),
        }
    }

    /// Finds the functions that calls reach, and the parameters by which they are differentiated,
    /// from those of a function that has been read. A function without a body is left out: the walk
    /// through the call refuses it.
    pub(super) fn prepare(
        &mut self,
        functions: Functions<'_>,
        cx: &mut Context,
        mut reached: Vec<ReachedParameter>,
    ) -> Result<(), PassError> {
        let mut types = AdjointTypes::default();
        while let Some((key, parameter)) = reached.pop() {
            let function = match self.prepared.entry(key) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let Some(function) = functions.get(key).filter(|function| function.is_definition()) else {
                        continue;
                    };
                    let name = function.global().map_or("", |global| cx.global_name(global)).to_string();
                    let mut new =
                        PreparedFunction::of(functions, cx, key).map_err(|error| in_function(error, &name))?;
                    reached.extend(new.flow.activate(&[]));
                    entry.insert(new)
                }
            };
            let Some(parameter) = parameter.filter(|&i| function.wanted.get(i) == Some(&false)) else { continue };
            let param = function.function.body.params()[parameter].expr();
            let ty = function.function.body.ty(param);
            function.wanted[parameter] = types.has_floats(cx, ty);
            // Derivatives that flow through another part of the parameter are refused, not lost.
            if function.wanted[parameter] || types.hides_derivatives(cx, ty) {
                reached.extend(function.flow.activate(&[param]));
            }
        }
        Ok(())
    }

    /// Returns the pullback of a function.
    pub(super) fn of(
        &mut self,
        functions: Functions<'_>,
        cx: &mut Context,
        types: &mut AdjointTypes,
        key: FunctionKey,
    ) -> Result<Pullback, PassError> {
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let function = functions.get(key).ok_or_else(|| PassError::new("the function was removed"))?;
        let name = function.global().map_or("", |global| cx.global_name(global)).to_string();
        let Some(prepared) = self.prepared.get(&key) else {
            return Err(PassError::new(format!("`@{name}` has no derivative: it has no body"))
                .with_help("define it, or list parameters that do not flow through it in `require_grads`"));
        };
        let global = self.names.fresh(cx, &format!("{name}_{PULLBACK}"));
        // The symbols of the copy are others than those of the function.
        let result = function.ret.unwrap_or_else(|| function.body.type_of(function.body.root()));
        let result = pullback_result(cx, types, function, result, &prepared.wanted);
        let signature = function.signature(cx, result);
        let pullback = Pullback { global, signature, wanted: prepared.wanted.clone() };
        self.known.insert(key, pullback.clone());
        self.order.push(key);
        Ok(pullback)
    }

    /// Returns the function of a kind for a tuple type without symbols, and its signature.
    pub(super) fn tuple_function(&mut self, cx: &mut Context, kind: TupleFunction, ty: TypeId) -> (GlobalId, TypeId) {
        self.tuple_functions.of(cx, &mut self.names, kind, ty)
    }

    /// Returns the next function whose pullback is to be made.
    pub(super) fn next(&self) -> Option<FunctionKey> {
        self.order.get(self.made.len()).copied()
    }

    /// Makes the pullback of the next function.
    pub(super) fn make(
        &mut self,
        functions: Functions<'_>,
        cx: &mut Context,
        key: FunctionKey,
    ) -> Result<(), PassError> {
        let prepared = self.prepared.remove(&key).expect("a pullback is named once, after its function is prepared");
        let PreparedFunction { function, result, wanted, .. } = &prepared;
        let ret = pullback_result(cx, &mut AdjointTypes::default(), function, *result, wanted);
        let wanted = prepared.wanted_params();
        let PreparedFunction { mut function, result, flow, .. } = prepared;
        function.visibility = Visibility::Private;
        function.attrs = cx.attrs.empty();
        function.meta = cx.attrs.empty();
        let target = Target::whole(&function.body);
        let mut editor = Editor::new(cx, &mut function.body);
        Differentiator::new(&mut editor, functions, self, &wanted, target, flow).write_pullback(&wanted, result)?;
        function.ret = Some(ret);
        self.made.push(function);
        Ok(())
    }

    /// Adds the pullbacks to a module, and the functions for tuples. Returns each new function with
    /// the one that it belongs to, which is `of` for those for tuples.
    pub(super) fn add_to(self, module: &mut Module, of: FunctionKey) -> Vec<(FunctionKey, FunctionKey)> {
        let mut added = Vec::with_capacity(self.made.len());
        for (key, function) in self.order.iter().zip(self.made) {
            let Pullback { global, signature, .. } = self.known[key];
            let pullback = module.add(global, function).expect("a fresh name has no function");
            module.set_signature(global, signature);
            added.push((*key, pullback));
        }
        added.extend(self.tuple_functions.add_to(module, self.names).into_iter().map(|function| (of, function)));
        added
    }
}

impl Differentiator<'_, '_> {
    /// Makes the function return its result, of the type `ty`, and a fn that computes the adjoints
    /// of its wanted parameters.
    fn write_pullback(mut self, wanted: &[WantedValue], ty: TypeId) -> Result<(), PassError> {
        let (end, records) = self.forward()?;
        let parameter = self.seed_block(ty, end)?;
        self.backward_by_segments(records)?;
        let block = self.leave_block(end, parameter);
        let params: Vec<ExprId> = wanted.iter().map(|value| value.var).collect();
        self.finish_block(block, &params)
    }
}
