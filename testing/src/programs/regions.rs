//! Long dataflow regions of operators that can be fused.

use anfora_ir::{BuildError, ExprId, FunctionBuilder, Module};

use super::main_of;

/// Builds a dataflow region. `next` makes each binding from the parameter and the bindings before
/// it, in this order. The last binding is the output.
fn region_of(
    n: usize,
    mut next: impl FnMut(&mut FunctionBuilder<'_>, &[ExprId]) -> Result<ExprId, BuildError>,
) -> Result<Module, BuildError> {
    main_of(|b, x| {
        b.begin_dataflow();
        let mut all = Vec::with_capacity(n + 1);
        all.push(x);
        for _ in 0..n.max(1) {
            let value = next(b, &all)?;
            let var = b.bind("", value);
            all.push(var);
        }
        let last = all[all.len() - 1];
        b.end_dataflow(&[last]);
        Ok(last)
    })
}

pub(super) fn elementwise(n: usize, _seed: u64) -> Result<Module, BuildError> {
    region_of(n, |b, all| {
        let op = if all.len() % 3 == 0 { "tanh" } else { "exp" };
        b.call_op(op, &[all[all.len() - 1]], &[])
    })
}

pub(super) fn fibonacci(n: usize, _seed: u64) -> Result<Module, BuildError> {
    region_of(n, |b, all| b.call_op("add", &[all[all.len() - 1], all[all.len().saturating_sub(2)]], &[]))
}

/// The number of bindings that one operator joins.
const JOINED: usize = 62;

pub(super) fn fan_in(n: usize, _seed: u64) -> Result<Module, BuildError> {
    joined(n, |b, x, _| b.call_op("exp", &[x], &[]))
}

pub(super) fn skips(n: usize, _seed: u64) -> Result<Module, BuildError> {
    joined(n, |b, x, last| b.call_op("add", &[last, x], &[]))
}

/// Builds a dataflow region whose bindings `next` makes from the parameter and the binding before.
/// Every [`JOINED`] of them are joined, and the sums of the joins are added up.
fn joined(
    n: usize,
    next: impl Fn(&mut FunctionBuilder<'_>, ExprId, ExprId) -> Result<ExprId, BuildError>,
) -> Result<Module, BuildError> {
    main_of(|b, x| {
        b.begin_dataflow();
        let (mut last, mut total) = (x, x);
        let mut open = Vec::with_capacity(JOINED);
        let mut bound = 0;
        while bound < n.max(1) {
            let value = next(b, x, last)?;
            last = b.bind("", value);
            open.push(last);
            bound += 1;
            if open.len() == JOINED || bound + 3 >= n {
                let joined = b.call_op("concat", &open, &[])?;
                let joined = b.bind("", joined);
                let sum = b.call_op("sum", &[joined], &[])?;
                let sum = b.bind("", sum);
                let sum = b.call_op("add", &[total, sum], &[])?;
                total = b.bind("", sum);
                last = total;
                open.clear();
                bound += 3;
            }
        }
        b.end_dataflow(&[total]);
        Ok(total)
    })
}
