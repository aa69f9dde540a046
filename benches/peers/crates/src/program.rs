//! The benchmark program as a list of operations, read from the module that anfora builds of it.

use std::collections::HashMap;

use anfora::ir::{Body, Expr, ExprId, Module};
use anfora::visit::{Binding, chain};
use anfora_testing::programs::Shape;

/// The operator of an operation.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    Add,
    Multiply,
    Subtract,
}

/// An operand of an operation.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum Operand {
    /// The parameter.
    Parameter,
    /// The result of an operation.
    Result(usize),
    /// A constant, as its index in [`Program::constants`].
    Constant(usize),
}

impl Operand {
    /// Returns the value that the operand stands for.
    ///
    /// # Panics
    /// If it is a result or constant that is not in the lists.
    pub(crate) fn value<V: Copy>(self, parameter: V, results: &[V], constants: &[V]) -> V {
        match self {
            Operand::Parameter => parameter,
            Operand::Result(k) => results[k],
            Operand::Constant(j) => constants[j],
        }
    }
}

/// Straight-line code over one parameter. Its result is that of its last operation.
pub(crate) struct Program {
    pub(crate) operations: Vec<(Op, Operand, Operand)>,
    /// The constants that occur, each once, in the order of their first occurrences.
    pub(crate) constants: Vec<f32>,
}

/// Builds the module of a shape.
///
/// # Panics
/// If it cannot be built, which is a defect.
pub(crate) fn module(shape: &str, size: usize) -> Module {
    let shape: Shape = shape.parse().expect("a shape");
    shape.build(size, 0).expect("shapes are well-typed")
}

/// Returns the body of `@main`.
///
/// # Panics
/// If there is no `@main`.
pub(crate) fn main_body(module: &Module) -> &Body {
    &module.get(module.find("main").expect("the program has a main")).expect("it is defined").body
}

impl Program {
    /// Builds the benchmark program of `n` operations.
    ///
    /// # Panics
    /// If the program is not as specified: calls of three operators on the parameter, on results
    /// and on splats of float32.
    pub(crate) fn new(n: usize) -> Program {
        let module = module("chain", n);
        let body = main_body(&module);
        let mut program = Program { operations: Vec::with_capacity(n), constants: Vec::new() };
        let mut results = HashMap::<ExprId, usize>::with_capacity(n);
        let mut constants = HashMap::new();
        for (i, Binding { var, value, .. }) in chain(body, body.root()).enumerate() {
            let Expr::CallOp { op, .. } = body.expr(value) else { panic!("operation {i} is no call of an operator") };
            let op = match module.cx.ops.get(op).name.as_ref() {
                "add" => Op::Add,
                "multiply" => Op::Multiply,
                "subtract" => Op::Subtract,
                other => panic!("operation {i} is `{other}`"),
            };
            let mut read = |id: ExprId| match (body.as_literal(id), results.get(&id)) {
                (Some(literal), _) => Operand::Constant(*constants.entry(literal).or_insert_with(|| {
                    let element = module.cx.literals.get(literal).as_splat().expect("constants are splats");
                    program.constants.push(f32::from_le_bytes(element.try_into().expect("of float32")));
                    program.constants.len() - 1
                })),
                (None, Some(&k)) => Operand::Result(k),
                (None, None) => Operand::Parameter,
            };
            let &[lhs, rhs] = body.operands_of(value) else { panic!("operation {i} has not two operands") };
            program.operations.push((op, read(lhs), read(rhs)));
            results.insert(var.expr(), i);
        }
        assert_eq!(results.get(&body.tail(body.root())), Some(&(n - 1)), "the result is the last operation");
        program
    }
}
