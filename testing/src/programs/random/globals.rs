//! Global functions that are the same in every program that has them.

use anfora_ir::{BuildError, DType, ExprId, FunctionBuilder, GLOBAL_SYMBOL, Literal, Module, TypeId, Visibility};

use super::rng::Rng;

/// The functions that bodies may call, by their parameters and results.
#[derive(Default)]
pub(super) struct Globals {
    /// Functions from a vector to a vector.
    pub(super) helpers: Vec<String>,
    /// Functions from a vector to a vector that have no effects.
    pub(super) pure: Vec<&'static str>,
    /// Functions from a vector to a function.
    pub(super) makers: Vec<String>,
    /// Functions from a vector of any length and a vector of eight to a vector of eight.
    pub(super) sized: Vec<String>,
    /// A function that nothing calls, and that attributes may name.
    pub(super) named_in_attributes: Option<String>,
}

pub(super) fn add_fixed(module: &mut Module, rng: &mut Rng, globals: &mut Globals) -> Result<(), BuildError> {
    if rng.one_in(2) {
        countdown(module)?;
        globals.pure.push("countdown");
    }
    if rng.one_in(2) {
        doubled(module)?;
        globals.pure.push("doubled");
    }
    if rng.one_in(3) {
        // The two functions call each other. Often nothing else calls them.
        mutual(module)?;
        if rng.one_in(2) {
            globals.pure.push("ping");
        }
    }
    if rng.apart().one_in(2) {
        several(module)?;
        globals.pure.push("chosen");
    }
    if rng.one_in(3) {
        linked(module)?;
    }
    if rng.one_in(3) {
        spare(module)?;
        globals.named_in_attributes = Some("spare".to_string());
    }
    Ok(())
}

fn private<'m>(module: &'m mut Module, name: &str) -> (FunctionBuilder<'m>, TypeId, TypeId) {
    let mut b = FunctionBuilder::new(module, name);
    b.visibility(Visibility::Private);
    let (vector, int) = (b.cx().types.static_tensor(DType::Float32, &[8]), b.cx().types.scalar(DType::Int64));
    (b, vector, int)
}

/// Adds a function that ends when its counter is zero, or else calls `next` with a smaller counter.
fn counting(
    module: &mut Module,
    name: &str,
    next: &str,
    step: impl FnOnce(&mut FunctionBuilder<'_>, ExprId) -> Result<ExprId, BuildError>,
) -> Result<(), BuildError> {
    let (mut b, vector, int) = private(module, name);
    let (v, n) = (b.param("v", vector), b.param("n", int));
    b.result(vector);
    let zero = b.literal(Literal::scalar(0i64));
    let stop = b.call_op("less_equal", &[n, zero], &[])?;
    let stop = b.bind("stop", stop);
    b.open_block();
    let one = b.literal(Literal::scalar(1i64));
    let rest = b.call_op("subtract", &[n, one], &[])?;
    let rest = b.bind("rest", rest);
    let stepped = step(&mut b, v)?;
    let stepped = b.bind("next", stepped);
    let next = b.global(next);
    let again = b.call(next, &[stepped, rest])?;
    let again = b.bind("again", again);
    let else_block = b.close_block(again)?;
    let choice = b.if_(stop, v, else_block)?;
    b.finish(choice)?;
    Ok(())
}

/// Adds a function that calls `of` with its vector and 3.
fn from_three(module: &mut Module, name: &str, of: &str) -> Result<(), BuildError> {
    let (mut b, vector, _) = private(module, name);
    let v = b.param("v", vector);
    let three = b.literal(Literal::scalar(3i64));
    let callee = b.global(of);
    let call = b.call(callee, &[v, three])?;
    b.finish(call)?;
    Ok(())
}

/// Adds a function that calls a recursive function.
fn countdown(module: &mut Module) -> Result<(), BuildError> {
    counting(module, "loop", "loop", |b, v| b.call_op("add", &[v, v], &[]))?;
    from_three(module, "countdown", "loop")
}

/// Adds two functions that call each other, and a function that calls them.
fn mutual(module: &mut Module) -> Result<(), BuildError> {
    // The signature is needed before the function is defined.
    let vector = module.cx.types.static_tensor(DType::Float32, &[8]);
    let int = module.cx.types.scalar(DType::Int64);
    let signature = module.cx.types.function(&[vector, int], vector, &[]);
    let odd = module.cx.global("odd");
    module.set_signature(odd, signature);
    counting(module, "even", "odd", |b, v| b.call_op("negative", &[v], &[]))?;
    counting(module, "odd", "even", |b, v| b.call_op("tanh", &[v], &[]))?;
    from_three(module, "ping", "even")
}

/// Adds a function of vectors of any length.
fn doubled(module: &mut Module) -> Result<(), BuildError> {
    let (mut b, ..) = private(module, "doubled");
    let n = b.symbol("n");
    let any_length = b.cx().types.tensor(DType::Float32, &[n]);
    let v = b.param("v", any_length);
    let sum = b.call_op("add", &[v, v], &[])?;
    let sum = b.bind("sum", sum);
    b.finish(sum)?;
    Ok(())
}

/// Adds a function with an unused parameter and several results, and a function that uses some of
/// the results.
fn several(module: &mut Module) -> Result<(), BuildError> {
    let (mut b, vector, _) = private(module, "several");
    let (v, w, _) = (b.param("v", vector), b.param("w", vector), b.param("unused", vector));
    let difference = b.call_op("subtract", &[v, w], &[])?;
    let difference = b.bind("difference", difference);
    let magnitude = b.call_op("abs", &[w], &[])?;
    let magnitude = b.bind("magnitude", magnitude);
    let least = b.call_op("minimum", &[v, w], &[])?;
    let least = b.bind("least", least);
    let results = b.tuple(&[difference, magnitude, least]);
    b.finish(results)?;

    let (mut b, vector, _) = private(module, "chosen");
    let v = b.param("v", vector);
    let bounded = b.call_op("tanh", &[v], &[])?;
    let bounded = b.bind("bounded", bounded);
    let negated = b.call_op("negative", &[v], &[])?;
    let negated = b.bind("negated", negated);
    let callee = b.global("several");
    let results = b.call(callee, &[bounded, v, negated])?;
    let results = b.bind("results", results);
    let difference = b.proj(results, 0)?;
    let difference = b.bind("first", difference);
    let least = b.proj(results, 2)?;
    let least = b.bind("last", least);
    let negated = b.call_op("negative", &[least], &[])?;
    let negated = b.bind("opposite", negated);
    let sum = b.call_op("maximum", &[difference, negated], &[])?;
    b.finish(sum)?;
    Ok(())
}

/// Adds a function that nothing calls.
fn spare(module: &mut Module) -> Result<(), BuildError> {
    let (mut b, vector, _) = private(module, "spare");
    let v = b.param("v", vector);
    let call = b.call_op("exp", &[v], &[])?;
    b.finish(call)?;
    Ok(())
}

/// Adds a private function that the module does not call, but that code outside may call by its
/// symbol.
fn linked(module: &mut Module) -> Result<(), BuildError> {
    let (mut b, vector, _) = private(module, "linked");
    let symbol = b.cx().str_attr("linked_symbol");
    b.attr(GLOBAL_SYMBOL, symbol);
    let v = b.param("v", vector);
    let call = b.call_op("tanh", &[v], &[])?;
    b.finish(call)?;
    Ok(())
}

/// Adds a function of two vectors, from which closures are made.
pub(super) fn pairwise(module: &mut Module) -> Result<(), BuildError> {
    let (mut b, vector, _) = private(module, "pairwise");
    let (v, captured) = (b.param("v", vector), b.param("captured", vector));
    let difference = b.call_op("subtract", &[v, captured], &[])?;
    b.finish(difference)?;
    Ok(())
}
