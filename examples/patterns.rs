//! Rewriting by patterns, as a pass: `x * 1`, `x + 0`, a transpose of a transpose, and a
//! convolution with bias and relu, which becomes one function.
//!
//! `cargo run --release -p anfora --example patterns`

use anfora::prelude::*;
use anfora::visit::pattern::{PatternOptions, Rule, capture, literal, op, rewrite_patterns};

fn rules() -> Vec<Rule<'static>> {
    let one = || literal(1) | literal(1.0);
    // -0 + 0 is 0, so only an addition of -0 can be removed for floats.
    let zero = || literal(0) | literal(-0.0);
    let transposed = op("permute_dims", [op("permute_dims", [capture("x")]).capture("inner")]).capture("outer");
    let convolution = op("nn.conv2d", [capture("data"), capture("weight")]).capture("conv").used_once();
    let layer = op("nn.relu", [op("add", [convolution, capture("bias")]).used_once()]);
    vec![
        Rule::replace("x * 1", op("multiply", [capture("x"), one()]), capture("x")),
        Rule::replace("x + 0", op("add", [capture("x"), zero()]), capture("x")),
        Rule::new("transpose of transpose", transposed, |rw, found| {
            // A transpose without axes reverses all axes.
            let axes = |id| rw.attrs(id).and_then(|attrs| attrs.ints("axes"));
            let (Some(inner), Some(outer)) = (axes(found["inner"]), axes(found["outer"])) else { return Ok(None) };
            let rank = inner.len() as i64;
            let place = |axis: i64| axis.rem_euclid(rank);
            let axes: Vec<i64> = outer.iter().map(|&a| place(inner[place(a) as usize])).collect();
            if axes.iter().copied().eq(0..rank) {
                return Ok(Some(found["x"]));
            }
            Ok(Some(rw.op_with("permute_dims", &[found["x"]], &[("axes", axes.into())])?))
        }),
        Rule::new("convolution, bias, relu", layer, |rw, found| {
            let inputs = [found["data"], found["weight"], found["bias"]];
            let types = inputs.map(|input| rw.ty(input));
            let attrs = [("Composite", "conv_bias_relu".into()), ("Primitive", 1.into())];
            let fused = rw.lambda(&types, &attrs, |rw, p| {
                let conv = rw.op_like(found["conv"], &p[..2])?;
                let sum = rw.op("add", &[conv, p[2]])?;
                rw.op("nn.relu", &[sum])
            })?;
            Ok(Some(rw.call(fused, &inputs)?))
        }),
    ]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = "def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 1, 1), float32], %b: Tensor[(4, 1, 1), float32]) {
        let %one = multiply(1f, %x);
        let %conv = nn.conv2d(%one, %w, padding=[0, 0, 0, 0]);
        let %bias = add(%b, -0f);
        let %sum = add(%bias, %conv);
        let %relu = nn.relu(%sum);
        let %t = permute_dims(%relu, axes=[0, 2, 3, 1]);
        let %u = permute_dims(%t, axes=[0, 3, 1, 2]);
        tanh(%u)
    }";
    let mut module = parse_module(Source::new("example.anf", text), anfora::ops::standard())?;
    let pass = FunctionPass::new("Patterns", 1, |function, _module, _cx| {
        let outcome = rewrite_patterns(&mut function.editor(), &mut rules(), &PatternOptions::default())?;
        for rule in &outcome.rules {
            println!("{}: {}", rule.name, rule.rewrites);
        }
        Ok(())
    });
    pass.apply(&mut module, &PassContext::new())?;
    print!("\n{module}");
    verify_module(&module)?;
    Ok(())
}
