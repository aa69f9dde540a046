//! Gradient, judged by finite differences in float64: every operator with a rule, and random
//! programs.
//!
//! `ANFORA_CASES=1000` sets the number of random programs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use anfora_interp::{ArgumentGenerator, EvalError, Interpreter, Limits, Outcome, ValueId, Values, random_tensor};
use anfora_ir::{
    AdjointRule, AdjointWriter, Arity, DType, FunctionBuilder, Literal, Module, OpDef, OpRegistry, Source, TypeId,
    parse_module, verify_module,
};
use anfora_manager::{Pass, PassContext, PassRegistry, parse_pipeline};
use anfora_ops::typing::{Elements, elementwise};
use anfora_passes::{GradientOptions, MemoryOptions, gradient, plan_memory, registry};
use anfora_testing::programs::{Random, Vocabulary, add_loss, with_type};
use anfora_testing::{depth, on_small_stack};

fn run(pipeline: &str, module: &mut Module) -> Result<(), String> {
    static REGISTRY: LazyLock<Arc<PassRegistry>> = LazyLock::new(registry);
    let pipeline = parse_pipeline(&REGISTRY, pipeline).unwrap();
    let cx = PassContext::builder().registry(REGISTRY.clone()).build().unwrap();
    pipeline.apply(module, &cx).map(|_| ()).map_err(|error| error.to_string())
}

fn call(module: &Module, function: &str, arguments: &[Literal]) -> Result<Outcome, EvalError> {
    let mut values = Values::new();
    let arguments: Vec<ValueId> = arguments.iter().map(|a| values.tensor(a.clone())).collect();
    let limits = Limits { steps: 1 << 20, ..Limits::default() };
    Interpreter::new(module).limits(limits).call(function, values, &arguments)
}

/// Returns the number that a function returns.
fn number(module: &Module, function: &str, arguments: &[Literal]) -> Result<f64, EvalError> {
    let outcome = call(module, function, arguments)?;
    Ok(outcome.tensor().expect("the result is a tensor").elements::<f64>().expect("of float64")[0])
}

/// Returns the results of an adjoint function: the number, and the derivatives.
fn derivatives(module: &Module, function: &str, arguments: &[Literal]) -> Result<(f64, Vec<Literal>), EvalError> {
    let outcome = call(module, function, arguments)?;
    let tensors: Vec<Literal> = outcome.values.tensors(outcome.result, usize::MAX).into_iter().cloned().collect();
    let result = tensors[0].elements::<f64>().expect("of float64")[0];
    Ok((result, tensors[1..].to_vec()))
}

/// Returns the arguments with those at `positions` moved by `by` times the directions.
fn moved(arguments: &[Literal], positions: &[usize], directions: &[Vec<f64>], by: f64) -> Vec<Literal> {
    let mut moved = arguments.to_vec();
    for (&position, direction) in positions.iter().zip(directions) {
        let shape: Vec<usize> = arguments[position].shape().to_vec();
        let elements = arguments[position].elements::<f64>().expect("it is differentiated by floats").into_owned();
        let elements: Vec<f64> = elements.iter().zip(direction).map(|(x, d)| x + by * d).collect();
        moved[position] = Literal::from_elements(&shape, &elements).unwrap();
    }
    moved
}

/// The distance of finite differences.
const STEP: f64 = 1e-5;

/// Compares the derivative along a direction with a finite difference. Returns `None` if the
/// function is not smooth there, or too large to tell.
fn agrees(value: impl Fn(f64) -> Result<f64, EvalError>, derivative: f64) -> Option<Result<(), String>> {
    let [before, here, after] = [-STEP, 0.0, STEP].map(|by| value(by).ok());
    let (before, here, after) = (before?, here?, after?);
    let sides = [(after - here) / STEP, (here - before) / STEP];
    let found = (after - before) / (2.0 * STEP);
    let noise = 1e-14 * here.abs() / STEP;
    if !found.is_finite() || (sides[0] - sides[1]).abs() > 1e-3 * (1.0 + found.abs()) || noise > 1e-3 {
        return None;
    }
    let close = (found - derivative).abs() <= 1e-5 * (1.0 + found.abs()) + 100.0 * noise;
    Some(if close { Ok(()) } else { Err(format!("{derivative}, but differences give {found}")) })
}

// ---- Operators ----

/// Parameters and the body of a function. Numbers of `%p…` are positive, and so are those of `%q…`,
/// which are above 1.
const CASES: &[(&str, &str)] = include!("gradients/cases.in");

/// Returns the function that adds up a smooth function of the result of a case.
fn text_of(parameters: &str, body: &str) -> String {
    let (lets, result) = body.rsplit_once(';').unwrap_or(("", body));
    let lets = if lets.is_empty() { String::new() } else { format!("{lets};") };
    format!("def @f({parameters}) {{\n{lets} let %y = {result};\nlet %s = sin(%y);\nsum(%s)\n}}\n")
}

fn arguments_of(module: &Module, function: &str, seed: u64) -> Vec<Literal> {
    let main = module.get(module.find(function).unwrap()).unwrap();
    let mut rng = fastrand::Rng::with_seed(seed);
    let params = main.body.params().iter().enumerate();
    let draw = |(i, param): (usize, &anfora_ir::VarId)| {
        let ty = main.body.ty(param.expr());
        let shape = module.cx.types.static_shape(ty).unwrap();
        let dtype = module.cx.types.as_tensor(ty).unwrap().dtype;
        if dtype != DType::Float64 {
            return random_tensor(dtype, &shape, seed ^ i as u64).unwrap();
        }
        let name = main.body.binding_name(&module.cx, param.expr()).unwrap();
        let count: usize = shape.iter().product();
        let elements: Vec<f64> = (0..count)
            .map(|_| {
                let size = 0.1 + 0.8 * rng.f64();
                match name.as_bytes()[0] {
                    b'p' => size,
                    b'q' => 1.0 + size,
                    _ => {
                        if rng.bool() {
                            size
                        } else {
                            -size
                        }
                    }
                }
            })
            .collect();
        Literal::from_elements(&shape, &elements).unwrap()
    };
    params.map(draw).collect()
}

/// Returns the positions and names of the parameters that are float64.
fn float_parameters(module: &Module, function: &str) -> (Vec<usize>, Vec<String>) {
    let main = module.get(module.find(function).unwrap()).unwrap();
    let is_float = |ty: TypeId| module.cx.types.as_tensor(ty).is_some_and(|t| t.dtype == DType::Float64);
    let params = main.body.params().iter().enumerate().filter(|(_, p)| is_float(main.body.ty(p.expr())));
    let name = |p: &anfora_ir::VarId| main.body.binding_name(&module.cx, p.expr()).unwrap_or_default().to_string();
    params.map(|(i, p)| (i, name(p))).unzip()
}

fn parse(text: &str) -> Module {
    parse_module(Source::new("case", text), anfora_ops::standard()).unwrap_or_else(|e| panic!("{}\n{text}", e[0]))
}

/// Differentiates `@f` of a text, and compares each derivative with a finite difference.
fn check_case(text: &str, arguments: &[Literal]) -> Result<(), String> {
    check_derivatives(parse(text), arguments)
}

/// Differentiates `@f` of a module, and compares each derivative with a finite difference.
fn check_derivatives(mut module: Module, arguments: &[Literal]) -> Result<(), String> {
    run("ToANormalForm", &mut module)?;
    let (positions, names) = float_parameters(&module, "f");
    run(&format!("Gradient{{function=f,require_grads=[{}]}}", names.join(",")), &mut module)?;
    if let Err(errors) = verify_module(&module) {
        return Err(format!("{}\n{module}", errors[0]));
    }
    let (_, found) = derivatives(&module, "f_adjoint", arguments).map_err(|e| format!("{e}\n{module}"))?;
    for (k, &position) in positions.iter().enumerate() {
        let derivatives = found[k].elements::<f64>().unwrap().into_owned();
        if found[k].shape() != arguments[position].shape() {
            return Err(format!("%{}: the shapes differ\n{module}", names[k]));
        }
        for (i, derivative) in derivatives.iter().enumerate() {
            let mut direction = vec![0.0; derivatives.len()];
            direction[i] = 1.0;
            let at = |by| number(&module, "f", &moved(arguments, &[position], &[direction.clone()], by));
            match agrees(at, *derivative) {
                Some(Ok(())) => {}
                Some(Err(error)) => return Err(format!("%{}, element {i}: {error}\n{module}", names[k])),
                None => return Err(format!("%{}, element {i}: it is not smooth\n{module}", names[k])),
            }
        }
    }
    Ok(())
}

#[test]
fn the_adjoint_of_every_operator_agrees_with_finite_differences() {
    let mut faults = Vec::new();
    for (i, (parameters, body)) in CASES.iter().enumerate() {
        let text = text_of(parameters, body);
        let module = parse(&text);
        let arguments = arguments_of(&module, "f", 7 + i as u64);
        if let Err(error) = check_case(&text, &arguments) {
            faults.push(format!("{body}: {error}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

/// Windows that are larger than the image leave no result.
#[test]
fn windows_without_results_have_zeros() {
    for (parameters, body) in [
        (
            "%x: Tensor[(1, 1, 2), float64], %w: Tensor[(1, 1, 3), float64], %b: Tensor[(1,), float64]",
            "nn.conv1d(%x, %w, %b)",
        ),
        ("%x: Tensor[(1, 2, 2, 5), float64], %w: Tensor[(2, 2, 3, 2), float64]", "nn.conv2d(%x, %w, strides=[2, 2])"),
        ("%x: Tensor[(1, 1, 2), float64]", "nn.avg_pool1d(%x, pool_size=[3])"),
        ("%x: Tensor[(1, 1, 2), float64]", "nn.max_pool1d(%x, pool_size=[3])"),
    ] {
        let text = text_of(parameters, body);
        check_case(&text, &arguments_of(&parse(&text), "f", 7)).unwrap();
    }
}

/// Steps that overflow or round where the function does not leave its derivative as it is.
#[test]
fn derivatives_are_right_where_steps_are_not() {
    let mean = "let %h = astype(%x, dtype=float16); let %b = broadcast_to(%h, dense<Tensor[(1,), int64]>[70000]);
                let %m = mean(%b); astype(%m, dtype=float64)";
    let largest = "let %h = astype(%x, dtype=float16); let %b = broadcast_to(%h, dense<Tensor[(1,), int64]>[70000]);
                   let %m = max(%b); astype(%m, dtype=float64)";
    // The second query attends nothing.
    let attention = "let %q = broadcast_to(%x, dense<Tensor[(4,), int64]>[1, 1, 2, 1]);
                     let %m = dense<Tensor[(2, 2), bool]>[true, false, false, false];
                     let %y = nn.attention(%q, %q, %q, %m); sum(%y)";
    for (body, x, expected) in [
        ("let %y = nn.elu(%x); sum(%y)", 1000.0, 1.0),
        ("let %y = nn.selu(%x, gamma=2.0); sum(%y)", 1000.0, 2.0),
        ("let %y = nn.celu(%x); sum(%y)", 1000.0, 1.0),
        // The quotient of the operands is rounded to 10.
        ("let %y = mod(dense<Tensor[(1,), float64]>[1.0], %x); sum(%y)", 0.1, -9.0),
        (mean, 1.0, 1.0),
        // More equal elements than any number of 16 bits.
        (largest, 1.0, 1.0),
        // The cube of the approximation by `tanh` overflows, and then the square.
        (
            "let %h = astype(%x, dtype=float16); let %g = nn.gelu(%h, approximate=\"tanh\"); let %y = astype(%g, dtype=float64); sum(%y)",
            300.0,
            1.0,
        ),
        (
            "let %h = astype(%x, dtype=float16); let %g = nn.gelu(%h, approximate=\"tanh\"); let %y = astype(%g, dtype=float64); sum(%y)",
            -300.0,
            0.0,
        ),
        ("let %g = nn.gelu(%x); sum(%g)", 1e200, 1.0),
        // The elements of a row are equal, or zeros.
        (
            "let %r = broadcast_to(%x, dense<Tensor[(2,), int64]>[2, 3]); let %y = nn.mean_variance_norm(%r, axes=[1]); let %f = take(%y, 1i64); sum(%f)",
            1.0,
            0.0,
        ),
        (
            "let %p = nn.pad(%x, dense<Tensor[(2,), int64]>[0, 2]); let %r = subtract(%p, %p); let %s = add(%r, %r); let %y = nn.lp_norm(%s); let %f = take(%y, 0i64); sum(%f)",
            1.0,
            0.0,
        ),
        (
            "let %s = subtract(%x, %x); let %p = nn.pad(%s, dense<Tensor[(2,), int64]>[0, 2]); let %y = nn.lp_norm(%p, p=1); sum(%y)",
            1.0,
            0.0,
        ),
        (attention, 1.0, 1.0),
    ] {
        let mut module = parse(&format!("def @f(%x: Tensor[(1,), float64]) {{ {body} }}"));
        run("Gradient{function=f}", &mut module).unwrap();
        let x = Literal::from_elements(&[1], &[x]).unwrap();
        let derivative = derivatives(&module, "f_adjoint", &[x]).unwrap().1[0].elements::<f64>().unwrap()[0];
        assert!((derivative - expected).abs() < 0.01, "{body}: {derivative}");
    }
}

/// Returns an adjoint function after the bindings that it does not need have been removed.
fn adjoint_text(text: &str, options: &str) -> Module {
    let mut module = parse(text);
    run(&format!("Gradient{{function=f{options}}},DeadCodeElimination"), &mut module).unwrap();
    verify_module(&module).unwrap();
    module
}

/// Returns the largest sum of bytes that are live at once in a function.
fn live_bytes(module: &Module, function: &str) -> u64 {
    let plan = plan_memory(module, &MemoryOptions::default()).unwrap();
    plan.function(module.find(function).unwrap()).unwrap().own_scope().live
}

/// Sums of values of a tuple type are as long as the type is as a graph, not as a tree.
#[test]
fn sums_of_tuples_that_share_fields_are_linear() {
    let length = |levels: usize| {
        let mut text = "def @f(%x: float64) -> float64 {\nlet %t0 = (%x, %x);\n".to_string();
        for level in 1..levels {
            text += &format!("let %t{level} = (%t{0}, %t{0});\n", level - 1);
        }
        let last = levels - 1;
        text += &format!("let %a = @g(%t{last});\nlet %b = @g(%t{last});\nadd(%a, %b)\n}}\n");
        let parameter = format!("def @g(%t{last}: {}) -> float64 {{\n", "TYPE");
        let mut body = String::new();
        for level in (1..levels).rev() {
            body += &format!("let %t{} = %t{level}.1;\n", level - 1);
        }
        let mut types = "type !t0 = (float64, float64);\n".to_string();
        for level in 1..levels {
            types += &format!("type !t{level} = (!t{0}, !t{0});\n", level - 1);
        }
        let g = parameter.replace("TYPE", &format!("!t{last}")) + &body + "let %y = %t0.0;\nsquare(%y)\n}\n";
        let module = adjoint_text(&(types + &text + &g), "");
        if levels < 9 {
            let (result, found) = derivatives(&module, "f_adjoint", &[Literal::scalar(3f64)]).unwrap();
            assert_eq!((result, found[0].elements::<f64>().unwrap()[0]), (18.0, 12.0));
        }
        module.to_text().len()
    };
    let lengths = [8, 16, 32].map(length);
    assert!(lengths[2] < 3 * lengths[1], "{lengths:?}");
}

/// A chain whose values are computed again has the same derivatives, and fewer live values.
#[test]
fn checkpoints_take_less_memory() {
    let length = 64;
    let mut text = "def @f(%x: Tensor[(1000,), float64]) -> float64 {\nlet %v0 = sin(%x);\n".to_string();
    for i in 1..length {
        let value = if i % 16 == 7 { format!("@g(%v{})", i - 1) } else { format!("sin(%v{})", i - 1) };
        text += &format!("let %v{i} = {value};\n");
    }
    text += &format!("sum(%v{})\n}}\n", length - 1);
    text += "def @g(%a: Tensor[(1000,), float64]) -> Tensor[(1000,), float64] { let %b = (%a, %a); let %c = %b.0; let %d = exp(%c); tanh(%d) }\n";
    let x = random_tensor(DType::Float64, &[1000], 5).unwrap();
    let mut found = Vec::new();
    for checkpoints in [0, 1, 2, 8, 64, 1000] {
        let mut module = adjoint_text(&text, &format!(",checkpoints={checkpoints}"));
        let (result, gradients) = derivatives(&module, "f_adjoint", std::slice::from_ref(&x)).unwrap();
        run("InlineFunctions,CanonicalizeBindings,DeadCodeElimination", &mut module).unwrap();
        found.push((result, gradients, live_bytes(&module, "f_adjoint")));
    }
    assert!(found.iter().all(|(result, gradients, _)| (result, gradients) == (&found[0].0, &found[0].1)));
    let live: Vec<u64> = found.iter().map(|(_, _, live)| live / 8000).collect();
    assert_eq!(live[1], live[0]);
    assert!(live[0] >= 64 && live[2] <= 48 && live[3] <= 28, "{live:?}");
}

/// Effects are not repeated.
#[test]
fn checkpoints_repeat_no_effects() {
    let text = "def @f(%x: Tensor[(3,), float64]) -> float64 {
           let %a = sin(%x);
           let %u = random.uniform(shape=shape(3), dtype=float64);
           let %b = multiply(%a, %u);
           let %c = sin(%b);
           let %d = multiply(%c, %c);
           sum(%d)
         }";
    let module = adjoint_text(text, ",checkpoints=3");
    let adjoint = module.to_text();
    let adjoint = &adjoint[adjoint.find("@f_adjoint").unwrap()..];
    assert_eq!(adjoint.matches("random.uniform").count(), 1, "{adjoint}");
    assert_eq!(adjoint.matches("= multiply(%a, %u)").count(), 2, "{adjoint}");
}

/// Returns the derivatives by the parameters that are float64; `None` if Gradient refuses the call.
fn derivatives_of(text: &str, arguments: &[Literal]) -> Result<Option<Vec<Literal>>, String> {
    let mut module = parse(text);
    run("ToANormalForm", &mut module)?;
    let (_, names) = float_parameters(&module, "f");
    match run(&format!("Gradient{{function=f,require_grads=[{}]}}", names.join(",")), &mut module) {
        Ok(()) => {}
        Err(error) if error.contains("is not known") || error.contains("has no derivative") => return Ok(None),
        Err(error) => return Err(error),
    }
    if let Err(errors) = verify_module(&module) {
        return Err(format!("{}\n{module}", errors[0]));
    }
    let (_, found) = derivatives(&module, "f_adjoint", arguments).map_err(|error| format!("{error}\n{module}"))?;
    Ok(Some(found))
}

fn are_close(a: &Literal, b: &Literal) -> bool {
    let (x, y) = (a.elements::<f64>().unwrap(), b.elements::<f64>().unwrap());
    a.shape() == b.shape() && x.iter().zip(y.iter()).all(|(x, y)| (x - y).abs() <= 1e-9 * (1.0 + x.abs()))
}

/// Extents that are symbols or not known give the derivatives that known extents give, or a
/// message.
#[test]
fn extents_need_not_be_known() {
    let (mut faults, mut differentiated) = (Vec::new(), 0);
    for (i, (parameters, body)) in CASES.iter().enumerate() {
        let plain = text_of(parameters, body);
        let arguments = arguments_of(&parse(&plain), "f", 7 + i as u64);
        let expected = derivatives_of(&plain, &arguments).unwrap().expect("the case has a derivative");
        let casts = with_casts(parameters, body);
        let others = ["?", "n"].map(|unknown| text_of(&without_extents(parameters, unknown), body));
        for text in others.into_iter().chain([text_of(&casts.0, &casts.1)]) {
            if parse_module(Source::new("case", &*text), anfora_ops::standard()).is_err() {
                continue;
            }
            match derivatives_of(&text, &arguments) {
                Ok(Some(found)) if found.iter().zip(&expected).all(|(a, b)| are_close(a, b)) => differentiated += 1,
                Ok(Some(found)) => faults.push(format!("{text}: {found:?}, not {expected:?}")),
                Ok(None) => {}
                Err(error) => faults.push(format!("{text}: {error}")),
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    assert!(2 * differentiated > 3 * CASES.len(), "only {differentiated} of three times {}", CASES.len());
}

/// Axes of extent 0 have derivatives wherever the function has a value.
#[test]
fn axes_may_have_no_elements() {
    let (mut faults, mut differentiated) = (Vec::new(), 0);
    for (i, (parameters, body)) in CASES.iter().enumerate() {
        for extent in 1..=8 {
            let emptied = with_extent_zero(parameters, extent);
            let text = text_of(&emptied, body);
            let Ok(module) = parse_module(Source::new("case", &*text), anfora_ops::standard()) else { continue };
            let arguments = arguments_of(&module, "f", 7 + i as u64);
            if emptied == *parameters || number(&module, "f", &arguments).is_err() {
                continue;
            }
            match check_case(&text, &arguments) {
                Ok(()) => differentiated += 1,
                Err(error) if error.contains("is not known") || error.contains("it is not smooth") => {}
                Err(error) => faults.push(format!("{text}: {error}")),
            }
        }
    }
    assert!(faults.is_empty(), "{} faults: {}", faults.len(), faults.join("\n\n"));
    assert!(differentiated > CASES.len() / 2, "only {differentiated}");
}

/// Returns parameters under other names, and a body that begins with casts of them to types with
/// extents that are not known.
fn with_casts(parameters: &str, body: &str) -> (String, String) {
    let mut casts = String::new();
    for parameter in without_extents(parameters, "?").split(", %") {
        let (name, ty) = parameter.trim_start_matches('%').split_once(": ").expect("a parameter has a type");
        casts += &format!("let %{name} = match_cast(%{name}_known, to={ty}); ");
    }
    (parameters.replace(": ", "_known: "), casts + body)
}

/// Returns parameters in which all axes of an extent have the extent 0.
fn with_extent_zero(parameters: &str, extent: i64) -> String {
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit() || c.is_ascii_alphabetic());
    let from = extent.to_string();
    let mut text = String::new();
    let mut rest = parameters;
    while let Some(at) = rest.find(&from) {
        let after = &rest[at + from.len()..];
        let is_number = !is_digit(rest[..at].chars().last()) && !is_digit(after.chars().next());
        text += &rest[..at];
        text += if is_number { "0" } else { &from };
        rest = after;
    }
    text + rest
}

/// Returns parameters with other extents: `?`, or a symbol for each number.
fn without_extents(parameters: &str, unknown: &str) -> String {
    let mut text = String::new();
    for part in parameters.split_inclusive("Tensor[(") {
        let (shape, rest) = match part.split_once(')') {
            Some((shape, rest)) if text.ends_with("Tensor[(") => (shape, format!("){rest}")),
            _ => ("", part.to_string()),
        };
        let dims = shape.split(',').filter(|dim| !dim.trim().is_empty());
        let dims: Vec<String> =
            dims.map(|dim| if unknown == "?" { "?".to_string() } else { format!("{unknown}{}", dim.trim()) }).collect();
        let comma = if dims.len() == 1 { "," } else { "" };
        text += &format!("{}{comma}{rest}", dims.join(", "));
    }
    text
}

/// An adjoint is cast to the type that the fn of a call takes.
#[test]
fn the_type_of_a_variable_may_be_less_specific_than_its_call() {
    let mut module = parse(
        "def @g(%x: Tensor[(3,), float64]) -> (Tensor[(3,), float64], float64) { let %s = sum(%x); let %a = square(%x); (%a, %s) }",
    );
    let known = module.cx.types.static_tensor(DType::Float64, &[3]);
    let extent = module.cx.types.dims.unknown();
    let unknown = module.cx.types.tensor(DType::Float64, &[extent]);
    let scalar = module.cx.types.scalar(DType::Float64);
    let pair = module.cx.types.tuple(&[unknown, scalar]);
    let mut f = FunctionBuilder::new(&mut module, "f");
    let (x, g) = (f.param("x", known), f.global("g"));
    let call = f.call(g, &[x]).unwrap();
    let both = f.declare_var("both", pair);
    f.bind_var(both, call, None);
    let first = f.proj(both.expr(), 0).unwrap();
    let first = f.bind("first", first);
    let sine = f.call_op("sin", &[first], &[]).unwrap();
    let sine = f.bind("sine", sine);
    let sum = f.call_op("sum", &[sine], &[]).unwrap();
    let sum = f.bind("sum", sum);
    f.finish(sum).unwrap();
    verify_module(&module).unwrap();
    let x = Literal::from_elements(&[3], &[0.3, -0.5, 0.7]).unwrap();
    check_derivatives(module, &[x]).unwrap();
}

/// The symbols of a function that is called twice, and what its results are for each call.
#[test]
fn pullbacks_have_the_symbols_of_their_functions() {
    let text = "def @f(%x: Tensor[(3,), float64]) {
           let %p = @pair(%x, %x);
           let %b = %p.0;
           let %q = @pair(%b, %x);
           let %d = %q.0;
           let %e = multiply(%b, %d);
           sum(%e)
         }
         def @pair(%x: Tensor[(n,), float64], %y: Tensor[(3,), float64]) -> (Tensor[(n,), float64], Tensor[(3,), float64]) {
           let %a = sin(%x); (%a, %y)
         }";
    check_case(text, &[Literal::from_elements(&[3], &[0.3, -0.5, 0.7]).unwrap()]).unwrap();
}

#[test]
fn every_operator_with_a_rule_has_a_case() {
    let operators = anfora_ops::standard();
    let texts: Vec<&str> = CASES.iter().map(|(_, body)| *body).collect();
    let is_word = |c: char| c.is_ascii_alphanumeric() || "._".contains(c);
    let is_called = |name: &str| {
        let call = format!("{name}(");
        texts.iter().any(|text| text.match_indices(&call).any(|(at, _)| !text[..at].ends_with(is_word)))
    };
    let rules = operators.rows().filter(|(_, row)| row.adjoint.is_some()).map(|(_, row)| row.name.to_string());
    let (with, without): (BTreeSet<String>, BTreeSet<String>) = rules.partition(|name| is_called(name));
    assert!(without.is_empty(), "{without:?}");
    assert!(with.len() >= 90, "{}", with.len());
}

// ---- Random programs ----

/// Returns a program with float64 in the place of all floats, and without infinities and NaNs.
/// Operators without operands state their element type.
fn in_float64(text: &str) -> String {
    let mut text = text.to_string();
    for own in [("float32", "f"), ("float16", "f16"), ("bfloat16", "bf16")] {
        text = with_type(&text, own, ("float64", "f64"));
    }
    let mut parts = text.split("nan(0x");
    let mut plain = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (_, rest) = part.split_once(')').expect("a payload ends");
        plain = plain + "nan" + rest;
    }
    let mut text = String::new();
    for word in plain.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let end = word.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        text += match &word[..word.len() - end.len()] {
            "nan" => "0.5",
            "nanf" | "nanf64" => "0.5f64",
            "inf" => "2",
            "inff" | "inff64" => "2f64",
            other => other,
        };
        text += end;
    }
    for op in ["zeros(", "ones(", "random.uniform(", "random.normal("] {
        let mut parts = text.split(op);
        let mut stated = parts.next().unwrap_or_default().to_string();
        for part in parts {
            let (call, _) = part.split_once(';').unwrap_or((part, ""));
            let dtype = if call.contains("dtype=") { "" } else { "dtype=float64, " };
            stated = stated + op + dtype + part;
        }
        text = stated;
    }
    text
}

/// Returns a random program with float64 in the place of all floats, without local functions.
fn random_program(vocabulary: Vocabulary, seed: u64) -> Option<Module> {
    let mut module = Random { vocabulary, size: 10 + (seed as usize % 5) * 12, seed }.module();
    let inlining =
        if seed % 4 < 2 { "fixpoint<3>(InlineFunctions,CanonicalizeBindings,DeadCodeElimination)," } else { "" };
    run(&format!("ToANormalForm,{inlining}LambdaLifting"), &mut module).ok()?;
    let text = in_float64(&module.to_text());
    let mut module = parse_module(Source::new("random", &*text), anfora_ops::standard()).ok()?;
    run("ToANormalForm", &mut module).ok()?;
    add_loss(&mut module, DType::Float64).ok()??;
    Some(module)
}

/// The outcome for a random program.
enum Judged {
    /// There is no such program, its loss is not differentiable at the arguments, or it fails.
    No(&'static str),
    /// Gradient refuses it, with this message.
    Refused(String),
    Agrees,
}

fn judge(vocabulary: Vocabulary, seed: u64) -> Result<Judged, String> {
    let Some(mut module) = random_program(vocabulary, seed) else { return Ok(Judged::No("no program")) };
    let (positions, names) = float_parameters(&module, "loss");
    let loss = module.get(module.find("loss").unwrap()).unwrap();
    let Ok(drawn) = ArgumentGenerator::new(seed).extents(&[3]).arguments(&module.cx, loss) else {
        return Ok(Judged::No("arguments"));
    };
    let arguments: Vec<Literal> =
        drawn.list.iter().map(|&id| drawn.values.as_tensor(id).expect("a tensor").clone()).collect();
    let Ok(expected) = number(&module, "loss", &arguments) else { return Ok(Judged::No("it fails")) };
    let before = module.to_text();
    if let Err(refused) = run(&format!("Gradient{{function=loss,require_grads=[{}]}}", names.join(",")), &mut module) {
        return if before == module.to_text() { Ok(Judged::Refused(refused)) } else { Err("it changed".to_string()) };
    }
    if let Err(errors) = verify_module(&module) {
        return Err(format!("{}\n{module}", errors[0]));
    }
    let (found, gradients) = derivatives(&module, "loss_adjoint", &arguments).map_err(|e| format!("{e}\n{module}"))?;
    if found.to_bits() != expected.to_bits() && (found - expected).abs() > 1e-9 * (1.0 + expected.abs()) {
        return Err(format!("the result is {found}, not {expected}\n{module}"));
    }
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut judged = Judged::No("not smooth, or constant");
    for _ in 0..3 {
        let mut along = 0.0;
        let mut directions = Vec::new();
        for gradient in &gradients {
            let gradient = gradient.elements::<f64>().unwrap().into_owned();
            let direction: Vec<f64> = gradient.iter().map(|_| 2.0 * rng.f64() - 1.0).collect();
            along += gradient.iter().zip(&direction).map(|(g, d)| g * d).sum::<f64>();
            directions.push(direction);
        }
        match agrees(|by| number(&module, "loss", &moved(&arguments, &positions, &directions, by)), along) {
            Some(Ok(())) if along != 0.0 => judged = Judged::Agrees,
            Some(Ok(())) => {}
            Some(Err(error)) => return Err(format!("seed {seed}: {error}\n{module}")),
            None => {}
        }
    }
    Ok(judged)
}

#[test]
fn random_programs_agree_with_finite_differences() {
    let cases = anfora_testing::cases(40) as u64;
    let (mut agree, mut refused, mut faults) = (0, BTreeSet::new(), Vec::new());
    let mut others: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..cases {
        let vocabulary = if seed % 2 == 0 { Vocabulary::Whole } else { Vocabulary::Regions };
        match judge(vocabulary, seed) {
            Ok(Judged::Agrees) => agree += 1,
            Ok(Judged::Refused(why)) => {
                *others.entry("refused").or_insert(0) += 1;
                refused.insert(why);
            }
            Ok(Judged::No(why)) => *others.entry(why).or_insert(0) += 1,
            Err(error) => faults.push(error),
        }
    }
    println!("{agree} of {cases} agree; {others:?}; refused: {refused:#?}");
    assert!(faults.is_empty(), "{} faults, the first: {}", faults.len(), faults[0]);
    assert!(agree * 3 >= cases, "only {agree} of {cases} programs can be judged: {refused:#?}");
}

// ---- Training ----

/// A network of two layers learns the exclusive or, in 200 steps against the gradient.
#[test]
fn a_small_network_learns() {
    let mut module = parse(
        "def @f(%v: Tensor[(2, 8), float64], %b: Tensor[(8,), float64], %w: Tensor[(8, 2), float64], %c: Tensor[(2,), float64]) {
           let %x = dense<Tensor[(4, 2), float64]>[0, 0, 0, 1, 1, 0, 1, 1];
           let %p = matmul(%x, %v);
           let %h = add(%p, %b);
           let %t = tanh(%h);
           let %q = matmul(%t, %w);
           let %scores = add(%q, %c);
           let %r = nn.softmax_cross_entropy(%scores, dense<Tensor[(4,), int64]>[0, 1, 1, 0]);
           let %loss = %r.0;
           %loss
         }",
    );
    run("Gradient{function=f}", &mut module).unwrap();
    let mut weights = arguments_of(&module, "f", 3);
    let mut losses = Vec::new();
    for _ in 0..200 {
        let (loss, gradients) = derivatives(&module, "f_adjoint", &weights).unwrap();
        losses.push(loss);
        let directions: Vec<Vec<f64>> =
            gradients.iter().map(|gradient| gradient.elements::<f64>().unwrap().into_owned()).collect();
        weights = moved(&weights, &[0, 1, 2, 3], &directions, -0.5);
    }
    assert!(losses[0] > 0.5 && losses[199] < 0.05, "{losses:?}");
}

// ---- Length and depth ----

/// Returns the module of `@f`, a chain of `length` bindings.
fn chain(length: usize) -> Module {
    let mut module = Module::new(anfora_ops::standard());
    let scalar = module.cx.types.scalar(DType::Float64);
    let mut f = FunctionBuilder::new(&mut module, "f");
    let (x, y) = (f.param("x", scalar), f.param("y", scalar));
    let mut last = x;
    for i in 0..length {
        let next = match i % 3 {
            0 => f.call_op("multiply", &[last, y], &[]),
            1 => f.call_op("sin", &[last], &[]),
            _ => f.call_op("add", &[last, x], &[]),
        };
        let next = next.unwrap();
        last = f.bind("", next);
    }
    f.finish(last).unwrap();
    module
}

#[test]
fn a_long_chain_takes_constant_stack() {
    let length = depth(3000);
    on_small_stack(move || {
        let mut module = chain(length);
        let options = GradientOptions { function: "f".to_string(), ..GradientOptions::default() };
        assert_eq!(gradient(&mut module, &options).unwrap(), 1);
        verify_module(&module).unwrap();
    });
}

/// More operands than a `split` has parts.
#[test]
fn a_concat_may_have_many_operands() {
    let count = (1 << 16) + 2;
    let mut module = Module::new(anfora_ops::standard());
    let list = module.cx.types.static_tensor(DType::Float64, &[1]);
    let mut f = FunctionBuilder::new(&mut module, "f");
    let (x, y) = (f.param("x", list), f.param("y", list));
    let operands: Vec<_> = (0..count).map(|i| if i == 1 { y } else { x }).collect();
    let all = f.call_op("concat", &operands, &[]).unwrap();
    let all = f.bind("all", all);
    let square = f.call_op("square", &[all], &[]).unwrap();
    let square = f.bind("square", square);
    let sum = f.call_op("sum", &[square], &[]).unwrap();
    f.finish(sum).unwrap();
    let options = GradientOptions { function: "f".to_string(), ..GradientOptions::default() };
    gradient(&mut module, &options).unwrap();
    let arguments = [1.0, 3.0].map(|x| Literal::from_elements(&[1], &[x]).unwrap());
    let outcome = Interpreter::new(&module).run("f_adjoint", &arguments).unwrap();
    let tensors = outcome.values.tensors(outcome.result, usize::MAX);
    let found = [1, 2].map(|i: usize| tensors[i].elements::<f64>().unwrap()[0]);
    assert_eq!(found, [2.0 * (count - 1) as f64, 6.0]);
}

/// The zeros of a large tuple are the result of a function, and a block has them once.
#[test]
fn zeros_of_large_tuples_are_shared() {
    let zeros = |calls: usize| {
        let fields = vec!["Tensor[(2,), float64]"; 50].join(", ");
        let mut text = format!("def @f(%x: float64, %t: ({fields}), %c: bool) -> float64 {{\n");
        text += "let %u = %t.1; let %s = sum(%u); let %v0 = multiply(%x, %s);\n";
        for i in 0..calls {
            text += &format!("let %v{} = if (%c) {{ let %a = @g(%v{i}, %t); %a }} else {{ %v{i} }};\n", i + 1);
        }
        text += &format!("%v{calls}\n}}\ndef @g(%x: float64, %t: ({fields})) -> float64 {{\n");
        text += "let %b = %t.7; let %s = sum(%b); multiply(%x, %s)\n}\n";
        let text = adjoint_text(&text, ",require_grads=[x, t]").to_text();
        (text.matches("zeros(").count(), text.matches("= @zero_adjoints(").count())
    };
    assert_eq!([10, 20].map(zeros), [(51, 10), (51, 20)]);
}

/// Each call of a function keeps the fn of the call in it, as deep as the recursion.
#[test]
fn a_deep_recursion_takes_constant_stack() {
    let levels = depth(3000);
    let text = "def @f(%x: float64, %n: int64) -> float64 {
           let %ends = less_equal(%n, 0i64);
           if (%ends) { %x } else {
             let %m = subtract(%n, 1i64);
             let %r = @f(%x, %m);
             multiply(%r, 0.5f64)
           }
         }";
    let found = on_small_stack(move || {
        let mut module = parse(text);
        let options =
            GradientOptions { function: "f".into(), require_grads: vec!["x".into()], ..GradientOptions::default() };
        assert_eq!(gradient(&mut module, &options).unwrap(), 2);
        let arguments = [Literal::scalar(3f64), Literal::scalar(levels as i64)];
        let outcome = Interpreter::new(&module).run("f_adjoint", &arguments).unwrap();
        let tensors = outcome.values.tensors(outcome.result, usize::MAX);
        tensors[1].elements::<f64>().unwrap()[0]
    });
    assert_eq!(found, 0.5f64.powi(levels as i32));
}

// ---- Operators of embedders ----

/// Compares the rule of the operator `acme.cube`, `x^3`, with finite differences.
fn cube_with(rule: AdjointRule) -> Result<(), String> {
    let mut operators = OpRegistry::clone(&anfora_ops::standard());
    let cube = OpDef::new("acme.cube", "x^3", Arity::exactly(1), |call| elementwise(call, Elements::Float))
        .kernel(|call| {
            let x = call.operand(0)?;
            let elements: Vec<f64> = x.elements::<f64>().unwrap().iter().map(|x| x * x * x).collect();
            let shape: Vec<usize> = x.shape().to_vec();
            Ok(vec![Literal::from_elements(&shape, &elements).unwrap()])
        })
        .adjoint(rule);
    operators.register(cube).unwrap();
    let text = text_of("%x: Tensor[(2, 3), float64]", "acme.cube(%x)");
    let module = parse_module(Source::new("cube", &*text), Arc::new(operators)).unwrap();
    let arguments = arguments_of(&module, "f", 1);
    check_derivatives(module, &arguments)
}

#[test]
fn wrong_rules_are_found() {
    assert_eq!(cube_with(|a| scaled_square(a, 3.0)), Ok(()));
    assert!(cube_with(|a| scaled_square(a, 2.0)).unwrap_err().contains("but differences give"));
    assert!(cube_with(|_| None).unwrap_err().contains("the derivative of this call of `acme.cube` is not known"));
    // An operand without an adjoint has zeros.
    assert!(cube_with(|_| Some(())).unwrap_err().contains("0, but differences give"));
    assert!(cube_with(|_| panic!("no rule")).unwrap_err().contains("its adjoint panics: no rule"));
    let unknown: AdjointRule = |a| {
        let x = a.operand(0)?;
        let dx = a.op("acme.square", &[x]);
        a.give(0, dx);
        Some(())
    };
    assert!(cube_with(unknown).unwrap_err().contains("its adjoint is wrong"));
    let other_shape: AdjointRule = |a| {
        let dy = a.adjoint()?;
        let dx = a.op("sum", &[dy]);
        a.give(0, dx);
        Some(())
    };
    assert!(cube_with(other_shape).unwrap_err().contains("its adjoint is wrong"));
}

/// `factor * x^2`, for each element.
fn scaled_square(a: &mut AdjointWriter<'_>, factor: f64) -> Option<()> {
    let (x, dy) = (a.operand(0)?, a.adjoint()?);
    let (square, factor) = (a.op("square", &[x]), a.number(factor, DType::Float64)?);
    let derivative = a.op("multiply", &[square, factor]);
    let dx = a.op("multiply", &[dy, derivative]);
    a.give(0, dx);
    Some(())
}
