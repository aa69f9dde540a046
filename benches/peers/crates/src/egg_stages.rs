//! egg: the operations are added to an e-graph, which finds each operation that it already has.

use std::io::Write;

use egg::{EGraph, Id, define_language};

use crate::program::{Op, Operand, Program};
use crate::stage::Report;

define_language! {
    enum Language {
        "x" = Parameter,
        Constant(u32),
        "add" = Add([Id; 2]),
        "multiply" = Multiply([Id; 2]),
        "subtract" = Subtract([Id; 2]),
    }
}

/// Times the stage. The number of operations after it is the number of their classes.
pub(crate) fn time(report: &mut Report<impl Write>) {
    let program = Program::new(report.n());
    let leaves = 1 + program.constants.len();
    let left = |graph: &EGraph<Language, ()>| Some(graph.number_of_classes() - leaves);
    report.stage("cse", EGraph::default, |graph| add(&program, graph), left);
}

fn add(program: &Program, mut graph: EGraph<Language, ()>) -> EGraph<Language, ()> {
    let x = graph.add(Language::Parameter);
    let constants: Vec<Id> = program.constants.iter().map(|c| graph.add(Language::Constant(c.to_bits()))).collect();
    let mut results: Vec<Id> = Vec::with_capacity(program.operations.len());
    for &(op, lhs, rhs) in &program.operations {
        let [lhs, rhs] = [lhs, rhs].map(|operand| match operand {
            Operand::Parameter => x,
            Operand::Result(k) => results[k],
            Operand::Constant(j) => constants[j],
        });
        results.push(graph.add(match op {
            Op::Add => Language::Add([lhs, rhs]),
            Op::Multiply => Language::Multiply([lhs, rhs]),
            Op::Subtract => Language::Subtract([lhs, rhs]),
        }));
    }
    graph
}
