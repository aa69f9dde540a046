//! Small models, which `examples/` holds as files.

use anfora_ir::{Attr, AttrId, BuildError, DType, ExprId, FunctionBuilder, Literal, Module};

/// Returns deterministic weights: hashes of the positions, scaled as He et al. (2015) do for layers
/// followed by a ReLU.
fn weights(shape: &[usize], seed: u32) -> Literal {
    let count: usize = shape.iter().product();
    let fan_in: usize = shape[1..].iter().product();
    let scale = (6.0 / fan_in as f32).sqrt();
    let elements: Vec<f32> = (0..count as u32)
        .map(|i| {
            let mut h = (i ^ seed.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b);
            h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
            // A weight has 11 bits, so that its text is short.
            let unit = ((h >> 21) as f32 - 1024.0) / 1024.0;
            unit * scale
        })
        .collect();
    Literal::from_elements(shape, &elements).expect("as many elements as the shape has")
}

fn ints(b: &mut FunctionBuilder<'_>, values: &[i64]) -> AttrId {
    b.cx().ints_attr(values)
}

/// Builds a convolution with its normalisation, as exporters write them: the weights are literals,
/// and the statistics are computed.
fn conv_bn(
    b: &mut FunctionBuilder<'_>,
    name: &str,
    x: ExprId,
    channels: [usize; 2],
    seed: u32,
) -> Result<ExprId, BuildError> {
    let [from, to] = channels;
    let w = b.literal(weights(&[to, from, 3, 3], seed));
    let padding = ints(b, &[1, 1, 1, 1]);
    let conv = b.call_op("nn.conv2d", &[x, w], &[("padding", padding)])?;
    let conv = b.bind(&format!("{name}_conv"), conv);
    let shape = b.literal(Literal::from_elements(&[1], &[to as i64]).expect("one extent"));
    let statistic = |b: &mut FunctionBuilder<'_>, what: &str, value: f32| -> Result<ExprId, BuildError> {
        let value = b.cx().literals.intern(Literal::splat(&[1], value));
        let value = b.cx().attr(Attr::Literal(value));
        let full = b.call_op("full", &[shape], &[("value", value)])?;
        Ok(b.bind(&format!("{name}_{what}"), full))
    };
    let scale = statistic(b, "scale", 0.75)?;
    let bias = statistic(b, "bias", 0.125)?;
    let mean = statistic(b, "mean", 0.0625)?;
    let variance = statistic(b, "variance", 1.5)?;
    let bn = b.call_op("nn.batch_norm", &[conv, scale, bias, mean, variance], &[])?;
    Ok(b.bind(&format!("{name}_bn"), bn))
}

/// Returns a small residual network for images of 3 x 16 x 16, as a careless exporter leaves it. It
/// has statistics that are computed from constants, a branch that is computed twice, a dropout, an
/// output that is not used, and a shape that is put together at run time.
///
/// # Errors
/// If the registry of standard operators lacks one that the program needs, which is a defect.
pub fn residual() -> Result<Module, BuildError> {
    let mut module = Module::new(anfora_ops::standard());
    let mut b = FunctionBuilder::new(&mut module, "main");
    let ty = b.cx().types.static_tensor(DType::Float32, &[1, 3, 16, 16]);
    let image = b.param("image", ty);
    let stem = conv_bn(&mut b, "stem", image, [3, 8], 1)?;
    let stem = b.call_op("nn.relu", &[stem], &[])?;
    let mut x = b.bind("stem_relu", stem);
    for (i, block) in ["block1", "block2"].into_iter().enumerate() {
        let seed = 2 + 2 * i as u32;
        let a = conv_bn(&mut b, &format!("{block}_a"), x, [8, 8], seed)?;
        let a = b.call_op("nn.relu", &[a], &[])?;
        let a = b.bind(&format!("{block}_relu_a"), a);
        let c = conv_bn(&mut b, &format!("{block}_b"), a, [8, 8], seed + 1)?;
        // The shortcut is an activation of the block's input, which is then computed again under
        // another name.
        let shortcut = b.call_op("nn.relu", &[x], &[])?;
        let shortcut = b.bind(&format!("{block}_shortcut"), shortcut);
        let again = b.call_op("nn.relu", &[x], &[])?;
        let again = b.bind(&format!("{block}_debug"), again);
        let unused = b.call_op("sigmoid", &[again], &[])?;
        b.bind(&format!("{block}_unused"), unused);
        let sum = b.call_op("add", &[c, shortcut], &[])?;
        let sum = b.bind(&format!("{block}_sum"), sum);
        let relu = b.call_op("nn.relu", &[sum], &[])?;
        x = b.bind(&format!("{block}_out"), relu);
    }
    let pooled = b.call_op("nn.global_avg_pool2d", &[x], &[])?;
    let pooled = b.bind("pooled", pooled);
    let dropped = b.call_op("nn.dropout", &[pooled], &[])?;
    let dropped = b.bind("dropout", dropped);
    let dropped = b.proj(dropped, 0)?;
    let dropped = b.bind("dropped", dropped);
    let batch = b.literal(Literal::from_elements(&[1], &[1i64]).expect("one extent"));
    let features = b.literal(Literal::from_elements(&[1], &[-1i64]).expect("one extent"));
    let shape = b.call_op("concat", &[batch, features], &[])?;
    let shape = b.bind("shape", shape);
    let flat = b.call_op("reshape", &[dropped, shape], &[])?;
    let flat = b.bind("flat", flat);
    let w = b.literal(weights(&[10, 8], 9));
    let bias = b.literal(Literal::splat(&[10], 0.0f32));
    let transposed = b.cx().attr(Attr::Bool(true));
    let logits = b.call_op("nn.gemm", &[flat, w, bias], &[("trans_b", transposed)])?;
    let logits = b.bind("logits", logits);
    let axis = b.cx().int_attr(1);
    let probabilities = b.call_op("nn.softmax", &[logits], &[("axis", axis)])?;
    let probabilities = b.bind("probabilities", probabilities);
    b.finish(probabilities)?;
    Ok(module)
}

/// Returns a perceptron for any batch size, in the idiom of the text format. It has a symbolic
/// dimension, a dataflow region, a local function and a branch.
///
/// # Errors
/// If the registry of standard operators lacks one that the program needs, which is a defect.
pub fn mlp() -> Result<Module, BuildError> {
    let mut module = Module::new(anfora_ops::standard());
    let mut b = FunctionBuilder::new(&mut module, "main");
    let n = b.symbol("n");
    let cx = b.cx();
    let (four, eight, two) = (cx.types.dims.constant(4), cx.types.dims.constant(8), cx.types.dims.constant(2));
    let input = cx.types.tensor(DType::Float32, &[n, four]);
    let hidden = cx.types.tensor(DType::Float32, &[n, eight]);
    let output = cx.types.tensor(DType::Float32, &[n, two]);
    let flag = cx.types.scalar(DType::Bool);
    let (x, smooth) = (b.param("x", input), b.param("smooth", flag));
    b.result(output);
    let h = b.open_lambda(&[("h", hidden)], None, &[])[0];
    b.open_block();
    let tanh = b.call_op("tanh", &[h], &[])?;
    let tanh = b.bind("t", tanh);
    let then_block = b.close_block(tanh)?;
    b.open_block();
    let relu = b.call_op("nn.relu", &[h], &[])?;
    let relu = b.bind("r", relu);
    let else_block = b.close_block(relu)?;
    let choice = b.if_(smooth, then_block, else_block)?;
    let activation = b.close_lambda(choice)?;
    let activation = b.bind("activation", activation);

    b.begin_dataflow();
    let w = b.literal(weights(&[4, 8], 1));
    let product = b.call_op("matmul", &[x, w], &[])?;
    let product = b.bind("xw", product);
    let (half, quarter) = (Literal::splat(&[8], 0.5f32), Literal::splat(&[8], 0.25f32));
    let (half, quarter) = (b.literal(half), b.literal(quarter));
    let bias = b.call_op("multiply", &[half, quarter], &[])?;
    let bias = b.bind("bias", bias);
    let hidden = b.call_op("add", &[product, bias], &[])?;
    let hidden = b.bind("hidden", hidden);
    let again = b.call_op("add", &[product, bias], &[])?;
    let again = b.bind("again", again);
    let sum = b.call_op("add", &[hidden, again], &[])?;
    let sum = b.bind("sum", sum);
    b.end_dataflow(&[sum]);

    let active = b.call(activation, &[sum])?;
    let active = b.bind("active", active);
    let w = b.literal(weights(&[8, 2], 2));
    let logits = b.call_op("matmul", &[active, w], &[])?;
    let logits = b.bind("logits", logits);
    b.finish(logits)?;
    Ok(module)
}
