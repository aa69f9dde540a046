//! A scalar of a whole program, for tests of derivatives.

use anfora_ir::{
    AttrValue, BuildError, DType, ExprId, FunctionBuilder, FunctionKey, Module, Number, SymbolSubstitution, TypeId,
};

/// The name of the function that [`add_loss`] adds.
pub const LOSS: &str = "loss";

/// Adds the function `@loss`, which calls `@main` and returns a scalar of `dtype`: the sum of a
/// smooth function of every float that `@main` returns, in tuples too. It has the parameters of
/// `@main`, named `%p0`, `%p1` and so on. Returns `None` if the module has no `@main`.
///
/// # Errors
/// If the function cannot be built, for example because `@loss` exists already.
pub fn add_loss(module: &mut Module, dtype: DType) -> Result<Option<FunctionKey>, BuildError> {
    let Some(main) = module.find("main").and_then(|key| module.get(key)) else { return Ok(None) };
    let params: Vec<TypeId> = main.body.params().iter().map(|param| main.body.ty(param.expr())).collect();
    let mut own_symbols = SymbolSubstitution::renaming();
    let params: Vec<TypeId> = params.into_iter().map(|ty| own_symbols.ty(&mut module.cx, ty)).collect();
    let mut f = FunctionBuilder::new(module, LOSS);
    let params: Vec<ExprId> = params.iter().enumerate().map(|(i, &ty)| f.param(&format!("p{i}"), ty)).collect();
    let callee = f.global("main");
    let result = f.call(callee, &params)?;
    let mut stack = vec![f.bind("result", result)];
    let zero = Number::Float(0.0).scalar(dtype).expect("the scalar is of floats");
    let mut total = f.literal(zero);
    while let Some(value) = stack.pop() {
        let ty = f.body().ty(value);
        if let Some(fields) = f.cx().types.as_tuple(ty).map(<[TypeId]>::len) {
            for i in 0..fields {
                let field = f.proj(value, i as u32)?;
                stack.push(f.bind("", field));
            }
        } else if f.cx().types.as_tensor(ty).is_some_and(|tensor| tensor.dtype.is_float()) {
            let mut term = value;
            let attr = AttrValue::DType(dtype).intern(f.cx());
            for (op, attrs) in [("nn.softsign", None), ("sum", None), ("astype", Some(("dtype", attr)))] {
                let next = f.call_op(op, &[term], attrs.as_slice())?;
                term = f.bind("", next);
            }
            let next = f.call_op("add", &[total, term], &[])?;
            total = f.bind("", next);
        }
    }
    f.finish(total).map(Some)
}
