//! Long programs that do not nest.

use anfora_ir::{Attr, BuildError, DType, FunctionBuilder, Literal, Module};

use super::main_of;

pub(super) fn dead(n: usize, _seed: u64) -> Result<Module, BuildError> {
    main_of(|b, x| {
        let mut last = x;
        for _ in 0..n {
            let call = b.call_op("add", &[last, x], &[])?;
            last = b.bind("", call);
        }
        Ok(x)
    })
}

pub(super) fn dup(n: usize, _seed: u64) -> Result<Module, BuildError> {
    main_of(|b, x| {
        let mut last = x;
        for i in 0..n {
            let call = match i % 2 {
                0 => b.call_op("tanh", &[x], &[])?,
                _ => b.call_op("add", &[last, x], &[])?,
            };
            let var = b.bind("", call);
            if i % 2 == 0 {
                last = var;
            }
        }
        Ok(last)
    })
}

pub(super) fn constant(n: usize, _seed: u64) -> Result<Module, BuildError> {
    main_of(|b, x| {
        let mut last = b.literal(Literal::splat(&[8], 1.0f32));
        let step = b.literal(Literal::splat(&[8], 0.5f32));
        for i in 0..n {
            let call = b.call_op(if i % 2 == 0 { "add" } else { "multiply" }, &[last, step], &[])?;
            last = b.bind("", call);
        }
        b.call_op("add", &[x, last], &[])
    })
}

pub(super) fn constants(n: usize, _seed: u64) -> Result<Module, BuildError> {
    main_of(|b, x| {
        let mut last = x;
        for i in 0..n {
            let own = b.literal(Literal::scalar(i as f32));
            let half = b.literal(Literal::scalar(0.5f32));
            let call = match i % 2 {
                0 => b.call_op("multiply", &[own, half], &[])?,
                _ => b.call_op("add", &[last, own], &[])?,
            };
            let var = b.bind("", call);
            if i % 2 == 1 {
                last = var;
            }
        }
        Ok(last)
    })
}

pub(super) fn diamond(n: usize, _seed: u64) -> Result<Module, BuildError> {
    main_of(|b, x| {
        let mut last = x;
        for _ in 0..n {
            let call = b.call_op("maximum", &[last, last], &[])?;
            last = b.bind("", call);
        }
        Ok(last)
    })
}

pub(super) fn skip(n: usize, _seed: u64) -> Result<Module, BuildError> {
    main_of(|b, x| {
        let mut all = vec![x];
        for i in 0..n {
            let last = all[i];
            let call = b.call_op("add", &[last, all[i / 2]], &[])?;
            let call = b.bind("", call);
            all.push(call);
        }
        Ok(all[n])
    })
}

pub(super) fn siblings(n: usize, _seed: u64) -> Result<Module, BuildError> {
    main_of(|b, x| {
        let ty = b.cx().types.static_tensor(DType::Float32, &[8]);
        let mut last = x;
        for _ in 0..n {
            let captured = last;
            let params = b.open_lambda(&[("y", ty)], None, &[]);
            let sum = b.call_op("add", &[params[0], captured], &[])?;
            let lambda = b.close_lambda(sum)?;
            let f = b.bind("f", lambda);
            let call = b.call(f, &[x])?;
            last = b.bind("", call);
        }
        Ok(last)
    })
}

pub(super) fn parallel(n: usize, _seed: u64) -> Result<Module, BuildError> {
    main_of(|b, x| {
        let mut last = x;
        for _ in 0..n / 11 {
            let mut parts = Vec::new();
            for width in [8, 6, 2] {
                let weight = b.literal(Literal::splat(&[8, width], 0.125f32));
                let bias = b.literal(Literal::splat(&[width], 0.5f32));
                let product = b.call_op("matmul", &[last, weight], &[])?;
                let product = b.bind("", product);
                let sum = b.call_op("add", &[product, bias], &[])?;
                let sum = b.bind("", sum);
                let part = b.call_op("tanh", &[sum], &[])?;
                parts.push(b.bind("", part));
            }
            let joined = b.call_op("concat", &parts[1..], &[])?;
            let joined = b.bind("", joined);
            let sum = b.call_op("add", &[parts[0], joined], &[])?;
            last = b.bind("", sum);
        }
        Ok(last)
    })
}

/// Of five bindings, two are in the branches of the fourth.
pub(super) fn images(n: usize, _seed: u64) -> Result<Module, BuildError> {
    main_of(|b, x| {
        let cond = b.cx().types.scalar(DType::Bool);
        let c = b.param("c", cond);
        let shape = b.literal(Literal::from_elements(&[3], &[1i64, 2, 4]).expect("three extents"));
        let image = b.call_op("reshape", &[x, shape], &[])?;
        let mut last = b.bind("", image);
        let kernel = b.literal(Literal::splat(&[2, 2, 1], 0.25f32));
        let shift = b.literal(Literal::splat(&[2, 1], 0.5f32));
        for _ in 0..n / 5 {
            let conv = b.call_op("nn.conv1d", &[last, kernel], &[])?;
            let conv = b.bind("", conv);
            let sum = b.call_op("add", &[conv, shift], &[])?;
            let sum = b.bind("", sum);
            let branch = |b: &mut FunctionBuilder<'_>, op: &str| {
                b.open_block();
                let call = b.call_op(op, &[sum], &[])?;
                let call = b.bind("", call);
                b.close_block(call)
            };
            let (then_block, else_block) = (branch(b, "tanh")?, branch(b, "nn.relu")?);
            let choice = b.if_(c, then_block, else_block)?;
            last = b.bind("", choice);
        }
        Ok(last)
    })
}

/// The second parameter is a weight. Of four bindings, two compute something from it alone, which
/// the other two use.
pub(super) fn weights(n: usize, _seed: u64) -> Result<Module, BuildError> {
    main_of(|b, x| {
        let ty = b.cx().types.static_tensor(DType::Float32, &[8]);
        let mut weight = b.param("w", ty);
        let inputs = b.cx().attr(Attr::Int(1));
        b.attr("num_input", inputs);
        let mut last = x;
        for _ in 0..n / 4 {
            let squashed = b.call_op("tanh", &[weight], &[])?;
            let squashed = b.bind("", squashed);
            let sum = b.call_op("add", &[squashed, weight], &[])?;
            weight = b.bind("", sum);
            let product = b.call_op("multiply", &[last, weight], &[])?;
            let product = b.bind("", product);
            let next = b.call_op("tanh", &[product], &[])?;
            last = b.bind("", next);
        }
        Ok(last)
    })
}
