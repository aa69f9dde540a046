//! The programs that stages are timed on, by name and number of bindings.

use std::fmt::Write;

use anfora::ir::Module;
use anfora::passes::registry;
use anfora_testing::programs::Shape;

use crate::{parse, run};

/// A program of any size.
#[derive(Copy, Clone, Debug)]
pub struct Program {
    /// The name of the program in the names of benches.
    pub name: &'static str,
    build: fn(usize) -> Module,
    most: usize,
}

impl Program {
    const fn new(name: &'static str, build: fn(usize) -> Module) -> Program {
        Program { name, build, most: usize::MAX }
    }

    /// Builds the program of about `n` bindings.
    ///
    /// # Panics
    /// If it cannot be built, which is a defect.
    pub fn build(&self, n: usize) -> Module {
        (self.build)(n)
    }

    /// Returns true if there is a program of `n` bindings.
    pub fn reaches(&self, n: usize) -> bool {
        n <= self.most
    }
}

/// The benchmark program.
pub const CHAIN: Program = Program::new("chain", |n| shape("chain", n));

/// Functions, each of which is the benchmark program of 100 bindings.
pub const FUNCTIONS: Program = Program::new("functions", |n| functions(n.div_ceil(100), 100));

/// A chain that folds to one constant.
pub const CONSTANT: Program = Program::new("const", |n| shape("const", n));

/// Bindings, each of which folds to a constant.
pub const CONSTANTS: Program = Program::new("many-consts", |n| shape("many-consts", n));

/// Calls as operands of calls, which a pass has to bind.
pub const NESTED_CALLS: Program = Program::new("nested-call", |n| shape("nested-call", n));

/// Bindings outside of dataflow regions.
pub const PLAIN: Program = Program::new("skip", |n| shape("skip", n));

/// Nested tuples, projected again. Their types nest as deep, so their number is limited.
pub const TUPLES: Program = Program { most: 100_000, ..Program::new("nested-tuple", |n| shape("nested-tuple", n / 2)) };

/// Lambdas side by side, each of which captures something. Each has two bindings.
pub const SIBLINGS: Program = Program::new("siblings", |n| shape("siblings", n / 2));

/// Nested lambdas. Each has two bindings.
pub const NESTED_LAMBDAS: Program = Program::new("nested-fn", |n| shape("nested-fn", n / 2));

/// Nested lambdas, all of which capture what the innermost lambda needs. Each has two bindings.
pub const NESTED_CLOSURES: Program = Program::new("nested-closure", |n| shape("nested-closure", n / 2));

/// A dataflow region of elementwise operators.
pub const REGION: Program = Program::new("region-chain", |n| shape("region-chain", n));

/// A dataflow region of operators side by side, which are joined 62 at a time.
pub const FAN_IN: Program = Program::new("region-fan-in", |n| shape("region-fan-in", n));

/// The benchmark program after fusion. Its groups are primitive functions.
pub const FUSED: Program = Program::new("chain-fused", |n| after("FuseOps", CHAIN.build(n)));

/// Nested lambdas after lifting: functions that call each other.
pub const LIFTED: Program = Program::new("nested-fn-lifted", |n| after("LambdaLifting", NESTED_LAMBDAS.build(n)));

/// Convolutions, each with a normalisation.
pub const CONVOLUTIONS: Program = Program::new("convolutions", |n| convolutions(n / 2));

/// Products of one value with different weights.
pub const PARALLEL: Program = Program::new("parallel", |n| shape("parallel", n));

/// Convolutions with shifts and activations.
pub const IMAGES: Program = Program::new("images", |n| shape("images", n));

/// Layers of a product and an activation, each of which is a composite function of one backend.
pub const COMPOSITE: Program =
    Program::new("layers-composite", |n| after("FuseOpsByPattern{backend=acme}", layers(n / 2)));

/// Computations on weights.
pub const WEIGHTS: Program = Program::new("weights", |n| shape("weights", n));

/// Activations, and the sum of all elements of the last one.
pub const ACTIVATIONS: Program = Program::new("activations", activations);

/// Products of a value with its sigmoid.
pub const GATES: Program = Program::new("gates", |n| gates(n / 2));

/// Random statements of every kind, and private functions.
pub const RANDOM: Program = Program::new("random", |n| after("Normalize", shape("random", n)));

/// Operators on a tensor with a symbolic extent, `n`.
pub const SYMBOLIC: Program = Program::new("symbolic", symbolic);

/// Builds a module of `count` functions, each of which is the benchmark program of `n` bindings.
///
/// # Panics
/// If it cannot be built, which is a defect.
pub fn functions(count: usize, n: usize) -> Module {
    let one = CHAIN.build(n).to_text();
    parse(&(0..count).map(|i| one.replacen("@main", &format!("@f{i}"), 1)).collect::<String>())
}

/// Builds the program of a shape with the given size.
fn shape(name: &str, size: usize) -> Module {
    let shape: Shape = name.parse().expect("a shape");
    shape.build(size, 0).expect("shapes are well-typed")
}

fn after(pipeline: &str, mut module: Module) -> Module {
    run(&registry(), pipeline, &mut module);
    module
}

/// Builds a program of `n` parts: each is the text of its number, counted from 1, between `begin`
/// and `end`.
fn repeated(n: usize, begin: &str, part: impl Fn(usize) -> String, end: &str) -> Module {
    let mut text = format!("{begin}\n");
    for i in 1..=n {
        writeln!(text, "{}", part(i)).expect("writing to a string succeeds");
    }
    parse(&(text + end))
}

fn gates(n: usize) -> Module {
    let part = |i| {
        let before = i - 1;
        format!("let %s{i} = sigmoid(%x{before}); let %x{i} = multiply(%x{before}, %s{i});")
    };
    repeated(n, "def @main(%x0: Tensor[(2, 4), float32]) {", part, &format!("%x{n} }}"))
}

/// Builds `n` layers with different weights, so that no two are the same function.
fn layers(n: usize) -> Module {
    let part = |i| {
        let (before, weight) = (i - 1, format!("dense<Tensor[(2, 2), float32]>[0, 1, 2, {i}]"));
        format!("let %m{i} = matmul(%x{before}, {weight}); let %x{i} = nn.relu(%m{i});")
    };
    let begin = "def @main(%x0: Tensor[(2, 2), float32]) { dataflow {";
    repeated(n, begin, part, &format!("output(%x{n}); }} %x{n} }}"))
}

fn activation(i: usize) -> String {
    format!("let %x{i} = tanh(%x{});", i - 1)
}

fn activations(n: usize) -> Module {
    repeated(n, "def @main(%x0: Tensor[(8,), float32]) {", activation, &format!("sum(%x{n}) }}"))
}

fn symbolic(n: usize) -> Module {
    repeated(n, "def @main(%x0: Tensor[(n, 8), float32]) {", activation, &format!("%x{n} }}"))
}

/// Builds `n` convolutions with two channels. Each is an `nn.conv2d` of the result before, with an
/// `nn.batch_norm` of its own.
fn convolutions(n: usize) -> Module {
    let channel = |a: u32, b: u32| format!("dense<Tensor[(2,), float32]>[{a}, {b}]");
    let weight = "dense<Tensor[(2, 2, 1, 1), float32]>[1, 2, 3, 4]";
    let normal = [channel(1, 2), channel(10, 20), channel(4, 3), channel(3, 8)].join(", ");
    let part = |i| {
        let before = i - 1;
        format!("let %c{i} = nn.conv2d(%n{before}, {weight}); let %n{i} = nn.batch_norm(%c{i}, {normal});")
    };
    repeated(n, "def @main(%n0: Tensor[(1, 2, 4, 4), float32]) {", part, &format!("%n{n} }}"))
}
