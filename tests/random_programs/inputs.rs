//! The inputs and the limits of runs of `@main`.

use anfora::interp::{EvalError, Interpreter, Limits, Outcome, ValueId, Values, random_tensor};
use anfora::ir::{DType, Literal, Module, VarId};

/// Returns arguments for `@main`, drawn from a seed: ordinary numbers.
pub(crate) fn arguments(module: &Module, seed: u64) -> Vec<Literal> {
    for_each_parameter(module, |i, dtype, shape| {
        random_tensor(dtype, shape, seed ^ i as u64).expect("small inputs can be drawn")
    })
}

/// Returns arguments for `@main` with extreme numbers: infinities, NaNs with payloads, both zeros,
/// the largest and the smallest numbers.
pub(crate) fn extreme_arguments(module: &Module, seed: u64) -> Vec<Literal> {
    const FLOATS: [u32; 8] =
        [0x7f80_0000, 0x8000_0000, 0x7fc0_1234, 0xff80_0000, 0x7f7f_ffff, 0x0000_0001, 0x3f80_0000, 0xffc0_0001];
    const INTS: [i64; 5] = [i64::MIN, -1, 0, i64::MAX, 1];
    for_each_parameter(module, |i, dtype, shape| {
        let start = (seed as usize).wrapping_add(i);
        let count: usize = shape.iter().product();
        let at = |n: usize, len: usize| start.wrapping_add(n) % len;
        match dtype {
            DType::Float32 => {
                let elements: Vec<f32> = (0..count).map(|n| f32::from_bits(FLOATS[at(n, FLOATS.len())])).collect();
                Literal::from_elements(shape, &elements).expect("as many elements as the shape has")
            }
            DType::Int64 => Literal::splat(shape, INTS[at(0, INTS.len())]),
            DType::Bool => Literal::splat(shape, at(0, 2) == 0),
            _ => random_tensor(dtype, shape, seed ^ i as u64).expect("small inputs can be drawn"),
        }
    })
}

fn for_each_parameter(module: &Module, draw: impl Fn(usize, DType, &[usize]) -> Literal) -> Vec<Literal> {
    let main = module.find("main").and_then(|k| module.get(k)).expect("a program has a main");
    let draw = |(i, p): (usize, &VarId)| {
        let ty = main.body.ty(p.expr());
        let dtype = module.cx.types.as_tensor(ty).expect("inputs are tensors").dtype;
        draw(i, dtype, &module.cx.types.static_shape(ty).expect("inputs have constant shapes"))
    };
    main.body.params().iter().enumerate().map(draw).collect()
}

/// Returns the outcome of `@main` on these arguments.
pub(crate) fn call_main(module: &Module, arguments: &[Literal]) -> Result<Outcome, EvalError> {
    let mut values = Values::new();
    let arguments: Vec<ValueId> = arguments.iter().map(|a| values.tensor(a.clone())).collect();
    let limits = Limits { steps: 1 << 20, ..Limits::default() };
    Interpreter::new(module).limits(limits).call("main", values, &arguments)
}

/// Returns the outcome of `@main` on arguments drawn from a seed.
pub(crate) fn meaning(module: &Module, seed: u64) -> Result<Outcome, EvalError> {
    call_main(module, &arguments(module, seed))
}
