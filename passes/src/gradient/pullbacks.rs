//! The functions that are called: each gets one pullback, which returns the result and a fn that
//! computes the adjoints of the parameters.

use anfora_ir::{
    Context, Editor, Expr, ExprId, Function, FunctionKey, Functions, GlobalId, Module, NameSupply, TypeId, Visibility,
};
use anfora_manager::PassError;
use rustc_hash::FxHashMap;

use super::backward::Differentiator;
use super::prepared_copy;
use super::tangents::AdjointTypes;
use super::{Target, WantedValue};

/// The end of the names of pullbacks.
const PULLBACK: &str = "pullback";

/// The pullbacks of the functions that are called.
pub(super) struct Pullbacks {
    names: NameSupply,
    known: FxHashMap<FunctionKey, (GlobalId, TypeId)>,
    /// The functions whose pullbacks are named, in order. Those before `made` have been made.
    order: Vec<FunctionKey>,
    made: Vec<Function>,
}

/// A function that is called, and the arguments after those of the call.
pub(super) struct Callee {
    pub(super) function: FunctionKey,
    pub(super) captures: Vec<ExprId>,
}

impl Pullbacks {
    pub(super) fn new(names: NameSupply) -> Pullbacks {
        Pullbacks { names, known: FxHashMap::default(), order: Vec::new(), made: Vec::new() }
    }

    /// Returns the name and the signature of the pullback of a function.
    pub(super) fn of(
        &mut self,
        functions: Functions<'_>,
        cx: &mut Context,
        types: &mut AdjointTypes,
        key: FunctionKey,
    ) -> Result<(GlobalId, TypeId), PassError> {
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let function = functions.get(key).ok_or_else(|| PassError::new("the function was removed"))?;
        let name = function.global().map_or("", |global| cx.global_name(global)).to_string();
        if !function.is_definition() {
            return Err(PassError::new(format!("`@{name}` has no derivative: it has no body"))
                .with_help("define it, or list parameters that do not flow through it in `require_grads`"));
        }
        let global = self.names.fresh(cx, &format!("{name}_{PULLBACK}"));
        let result = function.ret.unwrap_or_else(|| function.body.type_of(function.body.root()));
        let result = pullback_result(cx, types, function, result);
        let signature = function.signature(cx, result);
        self.known.insert(key, (global, signature));
        self.order.push(key);
        Ok((global, signature))
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
        let (mut function, of_call) = prepared_copy(functions, cx, key)?;
        function.visibility = Visibility::Private;
        function.attrs = cx.attrs.empty();
        function.meta = cx.attrs.empty();
        let mut types = AdjointTypes::default();
        let result = pullback_result(cx, &mut types, &function, of_call);
        let wanted: Vec<WantedValue> =
            function.body.params().iter().map(|param| WantedValue { var: param.expr(), is_param: true }).collect();
        let tail = function.body.tail(function.body.root());
        let target = Target { tail, field: None };
        let mut editor = Editor::new(cx, &mut function.body);
        Differentiator::new(&mut editor, functions, self, &wanted, target).write_pullback(&wanted, of_call)?;
        function.ret = Some(result);
        self.made.push(function);
        Ok(())
    }

    /// Adds the pullbacks to a module. Returns each function with its pullback.
    pub(super) fn add_to(self, module: &mut Module) -> Vec<(FunctionKey, FunctionKey)> {
        let mut added = Vec::with_capacity(self.made.len());
        for (key, function) in self.order.iter().zip(self.made) {
            let (global, signature) = self.known[key];
            let pullback = module.add(global, function).expect("a fresh name has no function");
            module.set_signature(global, signature);
            added.push((*key, pullback));
        }
        added
    }
}

/// Returns the type of the pair that the pullback of a function returns, given that of its result.
fn pullback_result(cx: &mut Context, types: &mut AdjointTypes, function: &Function, result: TypeId) -> TypeId {
    let body = &function.body;
    let params: Vec<TypeId> = body.params().iter().map(|param| types.of(cx, body.ty(param.expr()))).collect();
    let params = cx.types.tuple(&params);
    let adjoint = types.of(cx, result);
    let back = cx.types.function(&[adjoint], params, &[]);
    cx.types.tuple(&[result, back])
}

impl Differentiator<'_, '_> {
    /// Makes the function return its result, of the type `ty`, and a fn that computes the adjoints
    /// of its parameters.
    fn write_pullback(mut self, wanted: &[WantedValue], ty: TypeId) -> Result<(), PassError> {
        let (end, records) = self.forward()?;
        let block = self.differentiate_block(ty, end, records)?;
        let params: Vec<ExprId> = wanted.iter().map(|value| value.var).collect();
        self.finish_block(block, &params)
    }

    /// Finds the function that a call calls: a global, or one with captures.
    pub(super) fn callee(&self, call: ExprId) -> Result<Callee, PassError> {
        let body = &*self.editor.body;
        let mut at = body.operands_of(call)[0];
        let mut captures = Vec::new();
        loop {
            match body.expr(at) {
                Expr::Global(global) => {
                    let function = self.editor.cx.globals.get(global).target.function();
                    let function = function.ok_or_else(|| PassError::new("the function that it calls is missing"))?;
                    return Ok(Callee { function, captures });
                }
                Expr::Var { .. } => match self.flow.value_of(at) {
                    Some(value) => at = value,
                    None => return Err(unknown_callee()),
                },
                Expr::CallOp { operands, .. } if captures.is_empty() => {
                    let operands = body.operands(operands);
                    let global = operands.first().filter(|&&first| matches!(body.expr(first), Expr::Global(_)));
                    at = *global.ok_or_else(unknown_callee)?;
                    captures = operands[1..].to_vec();
                }
                Expr::Lambda { .. } => {
                    return Err(PassError::new("it calls a `fn`, which is not differentiated")
                        .with_help("run LambdaLifting before Gradient: it makes functions of them"));
                }
                _ => return Err(unknown_callee()),
            }
        }
    }
}

fn unknown_callee() -> PassError {
    PassError::new("the function that it calls is not known here")
        .with_help("call it by its name, or run InlineFunctions before Gradient")
}
