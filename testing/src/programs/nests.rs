//! Deep programs: the shapes that overflow a recursive compiler's stack.

use anfora_ir::{Attr, BuildError, DType, ExprId, FunctionBuilder, Module};

use super::main_of;

pub(super) fn nested_if(n: usize, _seed: u64) -> Result<Module, BuildError> {
    main_of(|b, x| {
        let cond = b.cx().types.scalar(DType::Bool);
        let c = b.param("c", cond);
        let mut tail = x;
        for _ in 0..n {
            b.open_block();
            let call = b.call_op("tanh", &[tail], &[])?;
            tail = b.bind("", call);
        }
        for _ in 0..n {
            let then_block = b.close_block(tail)?;
            tail = b.if_(c, then_block, x)?;
        }
        Ok(tail)
    })
}

pub(super) fn if_in_value(n: usize, _seed: u64) -> Result<Module, BuildError> {
    main_of(|b, x| {
        let cond = b.cx().types.scalar(DType::Bool);
        let c = b.param("c", cond);
        for _ in 0..n {
            b.open_block();
        }
        let mut tail = x;
        for _ in 0..n {
            let then_block = b.close_block(tail)?;
            let choice = b.if_(c, then_block, x)?;
            tail = b.bind("", choice);
        }
        Ok(tail)
    })
}

pub(super) fn nested_fn(n: usize, _seed: u64) -> Result<Module, BuildError> {
    called_lambdas(n, |_, _, y| Ok(y))
}

/// Builds nested lambdas. Each captures the parameter of the function for the innermost lambda.
pub(super) fn nested_closure(n: usize, _seed: u64) -> Result<Module, BuildError> {
    called_lambdas(n, |b, x, y| b.call_op("add", &[y, x], &[]))
}

/// Builds nested lambdas, each of which is called by the lambda around it. `result` computes the
/// result of the innermost lambda from the parameter of the function and its own.
fn called_lambdas(
    n: usize,
    result: impl FnOnce(&mut FunctionBuilder<'_>, ExprId, ExprId) -> Result<ExprId, BuildError>,
) -> Result<Module, BuildError> {
    main_of(|b, x| {
        let ty = b.cx().types.static_tensor(DType::Float32, &[8]);
        let mut inner = Vec::with_capacity(n);
        for _ in 0..n {
            inner.push(b.open_lambda(&[("y", ty)], None, &[])[0]);
        }
        let mut tail = match inner.last() {
            Some(&y) => result(b, x, y)?,
            None => x,
        };
        for i in (0..n).rev() {
            let lambda = b.close_lambda(tail)?;
            let f = b.bind("f", lambda);
            let argument = if i == 0 { x } else { inner[i - 1] };
            let call = b.call(f, &[argument])?;
            tail = b.bind("", call);
        }
        Ok(tail)
    })
}

pub(super) fn nested_call(n: usize, _seed: u64) -> Result<Module, BuildError> {
    main_of(|b, x| {
        let mut tail = x;
        for _ in 0..n {
            tail = b.call_op("add", &[tail, x], &[])?;
        }
        Ok(tail)
    })
}

/// Types nest as deep as the tuples do, so this is also the shape of deep types.
pub(super) fn nested_tuple(n: usize, _seed: u64) -> Result<Module, BuildError> {
    main_of(|b, x| {
        let mut tail = x;
        for _ in 0..n {
            let tuple = b.tuple(&[tail, x]);
            tail = b.bind("", tuple);
        }
        for _ in 0..n {
            let field = b.proj(tail, 0)?;
            tail = b.bind("", field);
        }
        Ok(tail)
    })
}

pub(super) fn let_in_value(n: usize, _seed: u64) -> Result<Module, BuildError> {
    main_of(|b, x| {
        for _ in 0..n {
            b.open_block();
        }
        let call = b.call_op("tanh", &[x], &[])?;
        let mut tail = b.bind("", call);
        for _ in 0..n {
            let block = b.close_block(tail)?;
            tail = b.bind("", block);
        }
        Ok(tail)
    })
}

/// Builds a parameter of a nested tuple type, and projections down to its middle. The type of each
/// projection is a part of the type before.
pub(super) fn nested_type(n: usize, _seed: u64) -> Result<Module, BuildError> {
    let mut module = Module::new(anfora_ops::standard());
    let mut b = FunctionBuilder::new(&mut module, "main");
    let mut ty = b.cx().types.static_tensor(DType::Float32, &[8]);
    for _ in 0..n {
        ty = b.cx().types.tuple(&[ty]);
    }
    let mut tail = b.param("x", ty);
    for _ in 0..n {
        let field = b.proj(tail, 0)?;
        tail = b.bind("", field);
    }
    b.finish(tail)?;
    Ok(module)
}

pub(super) fn nested_attribute(n: usize, _seed: u64) -> Result<Module, BuildError> {
    let mut module = Module::new(anfora_ops::standard());
    let mut b = FunctionBuilder::new(&mut module, "main");
    let mut attr = b.cx().int_attr(1);
    for _ in 0..n {
        attr = b.cx().attr(Attr::List([attr].into()));
    }
    b.attr("note", attr);
    let ty = b.cx().types.static_tensor(DType::Float32, &[8]);
    let mut tail = b.param("x", ty);
    for _ in 0..n {
        let call = b.call_op("tanh", &[tail], &[])?;
        tail = b.bind("", call);
    }
    b.finish(tail)?;
    Ok(module)
}
