//! Random programs of every construct.

use anfora_ir::{DType, ExprId, FunctionBuilder, Module};
use proptest::prelude::*;

use super::registry;

/// Returns a program of random choices. Operands are taken from the expressions in scope, and
/// graphs share nodes that were made in enclosing blocks.
pub(crate) fn program(choices: &[(u8, u8, u8)]) -> Module {
    let mut module = Module::new(registry());
    let float = module.cx.types.scalar(DType::Float32);
    let flag = module.cx.types.scalar(DType::Bool);
    let mut f = FunctionBuilder::new(&mut module, "main");
    let x = f.param("x", float);
    let c = f.param("c", flag);
    // The expressions in scope that may be operands. For each open block, their number at its
    // beginning, and its kind.
    let mut scope = vec![x];
    let mut open: Vec<(usize, Kind)> = Vec::new();
    #[derive(Copy, Clone, PartialEq)]
    enum Kind {
        Then,
        Else(ExprId),
        Value,
        Lambda,
        Region,
    }
    let close = |f: &mut FunctionBuilder<'_>, scope: &mut Vec<ExprId>, open: &mut Vec<(usize, Kind)>| {
        let Some((mark, kind)) = open.pop() else { return };
        let tail = *scope.last().unwrap();
        scope.truncate(mark);
        match kind {
            Kind::Region => {
                f.end_dataflow(&[tail]);
                if f.body().as_var(tail).is_some() {
                    scope.push(tail);
                }
            }
            Kind::Then => {
                let then_block = f.close_block(tail).unwrap();
                f.open_block();
                open.push((mark, Kind::Else(then_block)));
            }
            Kind::Else(then_block) => {
                let else_block = f.close_block(tail).unwrap();
                let value = f.if_(c, then_block, else_block).unwrap();
                let value = f.bind("i", value);
                scope.push(value);
            }
            Kind::Value => {
                let block = f.close_block(tail).unwrap();
                let value = f.bind("v", block);
                scope.push(value);
            }
            Kind::Lambda => {
                let function = f.close_lambda(tail).unwrap();
                let function = f.bind("f", function);
                let argument = *scope.last().unwrap();
                let value = f.call(function, &[argument]).unwrap();
                let value = f.bind("r", value);
                scope.push(value);
            }
        }
    };
    for &(what, a, b) in choices {
        let (a, b) = (scope[a as usize % scope.len()], scope[b as usize % scope.len()]);
        let in_region = open.last().is_some_and(|&(_, k)| k == Kind::Region);
        match what % 10 {
            0..=3 => {
                let value = f.call_op(if what % 2 == 0 { "add" } else { "multiply" }, &[a, b], &[]).unwrap();
                scope.push(f.bind("b", value));
            }
            // A node of a graph, which may be used any number of times.
            4 if !in_region => scope.push(f.call_op("negative", &[a], &[]).unwrap()),
            5 => scope.push(f.bind("alias", a)),
            6 | 7 if !in_region && open.len() < 6 => {
                let mark = scope.len();
                let kind = match what / 10 % 4 {
                    0 => {
                        f.begin_dataflow();
                        Kind::Region
                    }
                    1 => {
                        f.open_block();
                        Kind::Value
                    }
                    2 => {
                        scope.extend(f.open_lambda(&[("p", float)], Some(float), &[]));
                        Kind::Lambda
                    }
                    _ => {
                        f.open_block();
                        Kind::Then
                    }
                };
                open.push((mark, kind));
            }
            _ => close(&mut f, &mut scope, &mut open),
        }
    }
    while !open.is_empty() {
        close(&mut f, &mut scope, &mut open);
    }
    let tail = *scope.last().unwrap();
    f.finish(tail).unwrap();
    module
}

/// Returns choices for [`program`].
pub(crate) fn choices() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
    prop::collection::vec(any::<(u8, u8, u8)>(), 0..60)
}
