//! Tests of FoldBatchNorm on random convolutions and the calls after them: results stay the same,
//! except for rounding.

use std::fmt::Write as _;

use anfora_interp::Interpreter;
use anfora_ir::{DType, Element, ExprId, FunctionBuilder, Literal, Module, Source, parse_module, verify_module};
use anfora_passes::{FoldBudget, FoldedIntoWeights, fold_batch_norm};
use fastrand::Rng;
use half::{bf16, f16};

const PROGRAMS: u64 = 512;

/// The seed of a failing program identifies it.
struct Random(Rng);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0.usize(..n)
    }

    /// Returns a number between 0.5 and 2, of either sign.
    fn factor(&mut self) -> f64 {
        let size = 0.5 + 1.5 * f64::from(self.0.u32(..1000)) / 1000.0;
        if self.0.bool() { size } else { -size }
    }

    fn list(&mut self, count: usize, mut number: impl FnMut(&mut Random) -> f64) -> String {
        // Sometimes a splat.
        let count = if self.below(4) == 0 { 1 } else { count };
        let all: Vec<String> = (0..count).map(|_| number(self).to_string()).collect();
        format!("[{}]", all.join(", "))
    }
}

struct Program {
    text: String,
    /// The same program, with the results of all steps as its result.
    with_steps: String,
    input: Vec<usize>,
    dtype: DType,
    /// The number of steps that can be folded.
    steps: usize,
}

fn shape(extents: &[usize]) -> String {
    let all: Vec<String> = extents.iter().map(|e| format!("{e},")).collect();
    format!("({})", all.join(" "))
}

/// The number of kinds of steps.
const STEPS: usize = 8;

/// Returns a step of the kind `which` after `last`, with numbers by channel.
fn step(
    random: &mut Random,
    which: usize,
    last: &str,
    (channels, axes, name): (usize, usize, &str),
    number: fn(&mut Random) -> f64,
) -> String {
    let mut by = vec![channels];
    by.extend((0..axes).map(|_| 1));
    let by = shape(&by);
    let constant = random.list(channels, number);
    let constant = format!("dense<Tensor[{by}, {name}]>{constant}");
    match which {
        0 => format!("multiply({last}, {constant})"),
        1 => format!("multiply({constant}, {last})"),
        2 => format!("divide({last}, {constant})"),
        3 => format!("add({constant}, {last})"),
        4 => format!("subtract({last}, {constant})"),
        5 => format!("subtract({constant}, {last})"),
        6 => format!("negative({last})"),
        _ => {
            let mut call = format!("nn.batch_norm({last}");
            for i in 0..4 {
                let numbers = random.list(channels, |r| if i == 3 { r.factor().abs() } else { number(r) });
                write!(call, ", dense<Tensor[({channels},), {name}]>{numbers}").unwrap();
            }
            call + ", epsilon=0.001)"
        }
    }
}

/// Returns the number of steps before a convolution that are folded into it. Each step has a kind
/// (or is nn.relu), and true if all of its numbers are positive.
fn folded_before(before: &[(usize, bool)]) -> usize {
    let (mut has_relu, mut count) = (false, 0);
    for &(which, is_positive) in before.iter().rev() {
        match which {
            STEPS => has_relu = true,
            // Steps with a shift stay.
            3..=5 | 7 => break,
            _ if has_relu && !(is_positive && which < 3) => break,
            _ => count += 1,
        }
    }
    count
}

fn program(seed: u64) -> Program {
    let mut random = Random(Rng::with_seed(seed));
    let dtype = [DType::Float32, DType::Float64, DType::Float16, DType::BFloat16][random.below(4)];
    let name = dtype.name();
    let axes = 1 + random.below(3);
    let groups = 1 + random.below(3);
    let mut channels = groups * (1 + random.below(2));
    let mut input = vec![1 + random.below(2), channels];
    input.extend((0..axes).map(|_| 3 + random.below(2)));
    let mut text = format!("def @main(%x: Tensor[{}, {name}]) {{\n", shape(&input));
    let mut last = "%x".to_string();
    let (mut at, mut steps) = (0, 0);
    let mut bind = |text: &mut String, value: String| {
        at += 1;
        writeln!(text, "  let %v{at} = {value};").unwrap();
        format!("%v{at}")
    };
    let region = random.below(2) == 0;
    if region {
        text.push_str("  dataflow {\n");
    }
    for _ in 0..1 + random.below(2) {
        let most = random.below(2);
        let is_transposed = random.below(3) == 0;
        // Padding makes the result of a transposed convolution smaller.
        let most = if is_transposed { 0 } else { most };
        let padding: Vec<usize> = (0..2 * axes).map(|_| random.below(1 + most)).collect();
        let mut before = Vec::new();
        for _ in 0..random.below(4) {
            let which = random.below(STEPS + 1);
            let number = if random.below(2) == 0 { |r: &mut Random| r.factor().abs() } else { Random::factor };
            let call = match which {
                STEPS => format!("nn.relu({last})"),
                _ => step(&mut random, which, &last, (channels, axes, name), number),
            };
            before.push((which, !call.contains('-')));
            last = bind(&mut text, call);
        }
        steps += folded_before(&before);
        let out = groups * (1 + random.below(3));
        let mut weight = if is_transposed { vec![channels, out / groups] } else { vec![out, channels / groups] };
        weight.extend((0..axes).map(|_| 1 + random.below(2)));
        let count = weight.iter().product();
        let weights = random.list(count, |r| r.factor() / 2.0);
        let transposed = if is_transposed { "_transpose" } else { "" };
        let mut call = format!("nn.conv{axes}d{transposed}({last}, dense<Tensor[{}, {name}]>{weights}", shape(&weight));
        if random.below(2) == 0 {
            let bias = random.list(out, Random::factor);
            write!(call, ", dense<Tensor[({out},), {name}]>{bias}").unwrap();
        }
        write!(call, ", groups={groups}, padding={padding:?})").unwrap();
        last = bind(&mut text, call);
        channels = out;
        for _ in 0..random.below(5) {
            steps += 1;
            let which = random.below(STEPS);
            let call = step(&mut random, which, &last, (channels, axes, name), Random::factor);
            last = bind(&mut text, call);
        }
        if random.below(2) == 0 {
            last = bind(&mut text, format!("tanh({last})"));
        } else {
            // The convolution's result is used twice, so no more steps are folded into it.
            let more = bind(&mut text, format!("tanh({last})"));
            last = bind(&mut text, format!("subtract({more}, {last})"));
        }
    }
    let every = (1..=at).map(|i| format!("%v{i}")).collect::<Vec<_>>().join(", ");
    let output = |list: &str| if region { format!("  output({list}) }}\n") } else { String::new() };
    let with_steps = format!("{text}{}  ({every})\n}}\n", output(&every));
    write!(text, "{}  {last}\n}}\n", output(&last)).unwrap();
    Program { text, with_steps, input, dtype, steps }
}

fn tensor(random: &mut Random, dtype: DType, shape: &[usize]) -> Literal {
    fn of<T: Element>(random: &mut Random, shape: &[usize], from: impl Fn(f64) -> T) -> Literal {
        let count = shape.iter().product();
        let elements: Vec<T> = (0..count).map(|_| from(random.factor())).collect();
        Literal::from_elements(shape, &elements).unwrap()
    }
    match dtype {
        DType::Float16 => of(random, shape, f16::from_f64),
        DType::BFloat16 => of(random, shape, bf16::from_f64),
        DType::Float64 => of(random, shape, |e| e),
        _ => of(random, shape, |e| e as f32),
    }
}

fn numbers(literal: &Literal) -> Vec<f64> {
    match literal.dtype() {
        DType::Float16 => literal.elements::<f16>().unwrap().iter().map(|e| e.to_f64()).collect(),
        DType::BFloat16 => literal.elements::<bf16>().unwrap().iter().map(|e| e.to_f64()).collect(),
        DType::Float64 => literal.elements::<f64>().unwrap().to_vec(),
        _ => literal.elements::<f32>().unwrap().iter().map(|&e| e.into()).collect(),
    }
}

fn folded(module: &mut Module) -> FoldedIntoWeights {
    let key = module.find("main").unwrap();
    let (function, cx) = module.get_mut(key).unwrap();
    fold_batch_norm(cx, function, FoldBudget { per_call: None, total: None, ..FoldBudget::default() }).unwrap()
}

/// Returns the greatest difference of results, relative to the largest number that a step computes.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::Float16 => 0.01,
        DType::BFloat16 => 0.1,
        DType::Float32 => 1e-5,
        _ => 1e-12,
    }
}

#[test]
fn random_chains_compute_what_they_did() {
    let (mut done, mut changed) = (0, 0);
    for seed in 0..PROGRAMS {
        let program = program(seed);
        let text = &program.text;
        let parse = |text: &str| {
            parse_module(Source::new("random", text.to_owned()), anfora_ops::standard())
                .unwrap_or_else(|e| panic!("seed {seed}: {}\n{text}", e[0]))
        };
        let mut module = parse(text);
        let x = tensor(&mut Random(Rng::with_seed(!seed)), program.dtype, &program.input);
        let before = Interpreter::new(&module).run("main", std::slice::from_ref(&x)).unwrap().tensor().unwrap().clone();
        let result = folded(&mut module);
        verify_module(&module).unwrap_or_else(|e| panic!("seed {seed}: {}\n{text}\n{module}", e[0]));
        assert_eq!(result.folded, program.steps, "seed {seed}: {:?}\n{text}\n{module}", result.remarks);
        let calls = module.to_string().matches("let %").count() + program.steps;
        assert_eq!(calls, text.matches("let %").count(), "seed {seed}:\n{text}\n{module}");
        let after = Interpreter::new(&module).run("main", std::slice::from_ref(&x)).unwrap().tensor().unwrap().clone();
        assert_eq!((before.dtype(), before.shape()), (after.dtype(), after.shape()));
        let (before, after) = (numbers(&before), numbers(&after));
        let with_steps = parse(&program.with_steps);
        let steps = Interpreter::new(&with_steps).run("main", &[x]).unwrap();
        let steps = steps.values.tensors(steps.result, usize::MAX);
        let largest = steps.into_iter().flat_map(numbers).fold(1.0f64, |m, e| m.max(e.abs()));
        let worst = before.iter().zip(&after).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst <= tolerance(program.dtype) * largest, "seed {seed}: {worst} of {largest}\n{text}\n{module}");
        done += result.folded;
        changed += usize::from(before != after);
        assert_eq!(folded(&mut module).folded, 0, "seed {seed}: a second run folds more\n{text}");
    }
    assert!(done as u64 > PROGRAMS, "only {done} steps were folded");
    // Rounding differs, so the comparison above is of two different computations.
    assert!(changed as u64 > PROGRAMS / 4, "only {changed} results differ");
}

/// A call that several Lets share stays unchanged, as a step and as a convolution.
#[test]
fn shared_calls_are_not_folded() {
    type Build = fn(&mut FunctionBuilder<'_>, ExprId) -> ExprId;
    fn conv(b: &mut FunctionBuilder<'_>, x: ExprId) -> ExprId {
        let weight = b.literal(Literal::from_elements(&[1, 1, 1], &[7f32]).unwrap());
        b.call_op("nn.conv1d", &[x, weight], &[]).unwrap()
    }
    fn times(b: &mut FunctionBuilder<'_>, x: ExprId, by: f32) -> ExprId {
        let by = b.literal(Literal::scalar(by));
        b.call_op("multiply", &[x, by], &[]).unwrap()
    }
    let after: Build = |b, x| {
        let call = conv(b, x);
        let v = b.bind("v", call);
        let call = times(b, v, 2.0);
        let (s, t) = (b.bind("s", call), b.bind("t", call));
        b.call_op("add", &[s, t], &[]).unwrap()
    };
    let before: Build = |b, x| {
        let call = times(b, x, 2.0);
        let (s, t) = (b.bind("s", call), b.bind("t", call));
        let (v, w) = (conv(b, s), conv(b, t));
        let (v, w) = (b.bind("v", v), b.bind("w", w));
        b.call_op("add", &[v, w], &[]).unwrap()
    };
    let around: Build = |b, x| {
        let call = times(b, x, 2.0);
        let u = b.bind("u", call);
        let call = conv(b, u);
        let (v, w) = (b.bind("v", call), b.bind("w", call));
        let (s, t) = (times(b, v, 3.0), times(b, w, 5.0));
        let (s, t) = (b.bind("s", s), b.bind("t", t));
        b.call_op("add", &[s, t], &[]).unwrap()
    };
    for build in [after, before, around] {
        let mut module = Module::new(anfora_ops::standard());
        let dims = [1, 1, 2].map(|d| module.cx.types.dims.constant(d));
        let ty = module.cx.types.tensor(DType::Float32, &dims);
        let mut b = FunctionBuilder::new(&mut module, "main");
        let x = b.param("x", ty);
        let result = build(&mut b, x);
        b.finish(result).unwrap();
        let x = Literal::from_elements(&[1, 1, 2], &[1f32, -3.0]).unwrap();
        let run = |module: &Module| {
            let result = Interpreter::new(module).run("main", std::slice::from_ref(&x)).unwrap();
            result.tensor().unwrap().elements::<f32>().unwrap().to_vec()
        };
        let before = run(&module);
        assert_eq!(folded(&mut module).folded, 0, "{module}");
        assert_eq!(run(&module), before, "{module}");
    }
}
