//! Calls with invalid, huge and unusual operands and attributes. No call may panic or take more
//! memory than its result.
//!
//! Each operator is called at least 300 times; `ANFORA_CASES=5000` sets another number.

use anfora_ir::{
    Attr, AttrId, AttrKind, AttrReader, AttrsId, Context, DType, KernelCall, Literal, OpDef, OpId, Operand, Type,
    TypeId, element_count, infer_op,
};

struct Rng(fastrand::Rng);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0.usize(..n)
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    fn int(&mut self) -> i64 {
        if self.below(8) == 0 {
            self.pick(&[i64::MIN, i64::MAX, i64::MIN + 1, 1 << 31, -(1 << 31), 1 << 62, 1 << 40, 1 << 20])
        } else {
            self.below(8) as i64 - 3
        }
    }

    fn ints(&mut self, rank: usize) -> Vec<i64> {
        let n = if self.below(4) == 0 { self.below(6) } else { rank };
        let small = self.below(3) > 0;
        (0..n).map(|_| if small { self.below(3) as i64 } else { self.int() }).collect()
    }

    fn shape(&mut self) -> Vec<usize> {
        let rank = self.below(6);
        let huge = self.below(10) == 0;
        (0..rank)
            .map(|_| if huge { self.pick(&[1, 3, 1 << 20, 1 << 40, 1 << 62, usize::MAX]) } else { self.below(5) })
            .collect()
    }

    fn literal(&mut self, dtype: DType, shape: &[usize]) -> Literal {
        let bytes: Vec<u8> = (0..16).map(|_| self.pick(&[0, 0, 1, 3, 0x3f, 0x7f, 0x80, 0xff])).collect();
        let count = element_count(shape).filter(|&n| n < 1 << 16);
        match count {
            Some(count) if self.below(3) > 0 && dtype.has_kernels() => {
                let small = dtype.is_integer() && self.below(2) == 0;
                let size = dtype.bits() / 8;
                let bytes: Vec<u8> = (0..count)
                    .flat_map(|_| {
                        let mut e: Vec<u8> = (0..size).map(|_| self.pick(&[0, 1, 0x3f, 0x7f, 0x80, 0xff])).collect();
                        if small {
                            e.fill(0);
                            e[0] = self.below(4) as u8;
                        }
                        e
                    })
                    .collect();
                Literal::from_bytes(dtype, shape, bytes.into()).unwrap()
            }
            _ if dtype == DType::String => Literal::from_strings(&[0], Vec::new()).unwrap(),
            _ => Literal::splat_bytes(dtype, shape, &bytes),
        }
    }
}

fn attribute(rng: &mut Rng, cx: &mut Context, kind: AttrKind, rank: usize) -> AttrId {
    match kind {
        AttrKind::Bool => {
            let b = rng.below(2) == 0;
            cx.attr(Attr::Bool(b))
        }
        AttrKind::Int => {
            let i = rng.int();
            cx.int_attr(i)
        }
        AttrKind::Float => {
            let f = rng.pick(&[0.0, 1.0, -1.0, 0.5, f64::NAN, f64::INFINITY, 1e300, -0.0]);
            cx.float_attr(f)
        }
        AttrKind::Str => {
            let texts = [
                "none", "tanh", "sum", "mean", "", "x", "DCR", "CRD", "edge", "reflect", "wrap", "update", "add",
                "mul", "max",
            ];
            let subscripts = ["ij,jk->ik", "...", "i...->...", "ab,ab", "...ii->...i"];
            let s = if rng.below(2) == 0 { rng.pick(&texts) } else { rng.pick(&subscripts) };
            cx.str_attr(s)
        }
        AttrKind::Ints => {
            let rank = rng.pick(&[rank, rank.saturating_sub(2), 2 * rank.saturating_sub(2), 1]);
            let ints = rng.ints(rank);
            cx.ints_attr(&ints)
        }
        AttrKind::Shape => {
            let dims: Vec<i64> = rng.ints(3);
            let dims = dims.into_iter().map(|d| cx.types.dims.constant(d)).collect();
            cx.attr(Attr::Shape(dims))
        }
        AttrKind::DType => {
            let d = rng.pick(DType::ALL);
            cx.attr(Attr::DType(d))
        }
        AttrKind::Literal => {
            let (shape, dtype) = (rng.pick(&[&[][..], &[1], &[2], &[0]]), rng.pick(&[DType::Int8, DType::Float16]));
            let literal = rng.literal(dtype, shape);
            let id = cx.literals.intern(literal);
            cx.attr(Attr::Literal(id))
        }
        _ => {
            let ty = cx.types.unranked(DType::Float32);
            cx.attr(Attr::Type(ty))
        }
    }
}

/// Returns the values of an attribute that is a choice of words, which random generation seldom
/// produces.
fn words(attribute: &str) -> Option<&'static [&'static str]> {
    Some(match attribute {
        "method" => &["nearest", "linear", "cubic"],
        "coordinate_transformation_mode" => &[
            "half_pixel",
            "half_pixel_symmetric",
            "pytorch_half_pixel",
            "align_corners",
            "asymmetric",
            "tf_half_pixel_for_nn",
        ],
        "rounding_method" => &["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"],
        "keep_aspect_ratio_policy" => &["stretch", "not_larger", "not_smaller"],
        "mode" => &["nearest", "linear", "cubic"],
        "padding_mode" => &["zeros", "border", "reflection"],
        "kind" => &["hann", "hamming", "blackman"],
        "direction" => &["forward", "reverse"],
        "update_rule" => &["linear", "gated", "delta", "gated_delta"],
        "activation" => &["none", "silu", "swish"],
        "round_mode" => &["up", "down", "nearest"],
        _ => return None,
    })
}

fn small(cx: &Context, ty: TypeId) -> bool {
    let parts = match cx.types.get(ty) {
        Type::Tuple(fields) => fields.to_vec(),
        _ => vec![ty],
    };
    parts.len() < 1000
        && parts.iter().all(|&p| cx.types.static_shape(p).and_then(|s| element_count(&s)).is_some_and(|n| n < 1 << 16))
}

/// Makes most operands of operators on quantized tensors valid.
fn quantized(rng: &mut Rng, op: &str, i: usize, shape: &mut Vec<usize>, dtype: &mut DType) {
    if rng.below(40) == 0 {
        return;
    }
    let scale = match op {
        "quantize" | "dequantize" => i == 1,
        _ => !op.contains("integer") && matches!(i, 1 | 4 | 6),
    };
    let element = match op {
        "quantize" => i == 2,
        "dynamic_quantize" => false,
        _ => !scale,
    };
    if element || scale {
        *dtype = if element { DType::Int8 } else { DType::Float32 };
    }
    let features = shape.first().copied().unwrap_or(1);
    let is_parameter = match op {
        "quantize" | "dequantize" => i > 0,
        _ if op.contains("integer") => i > 1,
        _ => !matches!(i, 0 | 3),
    };
    if is_parameter && rng.below(16) > 0 && op != "dynamic_quantize" {
        shape.clear();
    }
    if i == 8 {
        (*dtype, *shape) = (DType::Int32, vec![features]);
    }
}

/// The number of spatial axes if the operator has windows, and the shape and element type of most
/// operands of a call.
struct Common {
    spatial: Option<usize>,
    shape: Vec<usize>,
    dtype: DType,
}

impl Common {
    fn random(rng: &mut Rng, row: &OpDef) -> Common {
        let (mut shape, mut dtype) =
            (rng.shape(), rng.pick(&[DType::Float32, DType::Float16, DType::Int8, DType::UInt64]));
        // Random windows seldom fit together.
        let spatial = row
            .name
            .trim_end_matches("_transpose")
            .strip_suffix('d')
            .and_then(|n| n.chars().last())
            .and_then(|c| c.to_digit(10));
        let spatial = spatial.map(|n| n as usize).filter(|_| row.name.starts_with("nn.") && rng.below(8) > 0);
        if row.name == "det" && rng.below(4) > 0 {
            let order = rng.below(4);
            shape = vec![rng.below(3), order, order];
        }
        if let Some(n) = spatial {
            shape = (0..n + 2).map(|_| rng.below(6)).collect();
            shape[1] = 2;
            dtype = rng.pick(&[DType::Float32, DType::BFloat16, DType::Float64]);
            if rng.below(8) == 0 {
                shape[2] = 1 << 40;
            }
        }
        if row.name.starts_with("logical") {
            dtype = DType::Bool;
        }
        let dtype = if rng.below(8) == 0 { rng.pick(DType::ALL) } else { dtype };
        match row.name.as_ref() {
            "nn.depth_to_space" | "nn.space_to_depth" => shape = (0..4).map(|_| rng.pick(&[0, 1, 2, 4, 8])).collect(),
            "eye_like" => shape.truncate(2),
            _ => {}
        }
        Common { spatial, shape, dtype }
    }
}

/// Returns operand `i` of a call; `None` if it is left out.
fn operand(rng: &mut Rng, row: &OpDef, common: &Common, i: usize) -> Option<Literal> {
    let is_quantized = row.name.contains("quantized");
    let same = rng.below(4) > 0 || (common.spatial.is_some() && rng.below(8) > 0) || is_quantized;
    let mut shape = if same { common.shape.clone() } else { rng.shape() };
    let mut dtype = if rng.below(10) > 0 { common.dtype } else { rng.pick(DType::ALL) };
    if row.name.contains("quantize") || row.name.contains("_integer") {
        quantized(rng, &row.name, i, &mut shape, &mut dtype);
    }
    if row.name == "col2im" && i > 0 && rng.below(8) > 0 {
        // Images of 3 by 3 have 4 patches of 2 by 2.
        let extents = [[3i64, 3], [2, 2]][i - 1];
        return Some(Literal::from_elements(&[2], &extents).unwrap());
    }
    let (dtype, shape) = fitting(rng, row, common, i, dtype, shape);
    (rng.below(if is_quantized { 200 } else { 20 }) > 0).then(|| rng.literal(dtype, &shape))
}

/// Returns an element type and a shape with which operand `i` is more often valid than with those
/// given.
fn fitting(
    rng: &mut Rng,
    row: &OpDef,
    common: &Common,
    i: usize,
    mut dtype: DType,
    mut shape: Vec<usize>,
) -> (DType, Vec<usize>) {
    let (spatial, rank) = (common.spatial, common.shape.len());
    if let Some((dtype, shape)) = of_sequences(rng, &row.name, common.dtype, i) {
        return (dtype, shape);
    }
    match row.name.as_ref() {
        "col2im" if i == 0 => shape = vec![rng.below(3), 4, 4],
        "col2im" => (dtype, shape) = (DType::Int64, vec![2]),
        name if i > 0 && name.starts_with("nn.max_unpool") => {
            dtype = DType::Int64;
            if i == 2 {
                shape = vec![2 + spatial.unwrap_or(1)];
            }
        }
        "reshape" | "broadcast_to" if i == 1 => (dtype, shape) = (DType::Int64, vec![rng.below(4)]),
        "full" => (dtype, shape) = (DType::Int64, vec![rng.below(4)]),
        "take" | "gather_elements" if i == 1 => dtype = DType::Int64,
        "tile" if i == 1 => (dtype, shape) = (DType::Int64, vec![rank]),
        "gather_nd" if i == 1 => {
            dtype = DType::Int64;
            shape.truncate(2);
            shape.push(rng.below(3));
        }
        "scatter_elements" if i > 0 => {
            (dtype, shape) = (if i == 1 { DType::Int8 } else { dtype }, vec![2; rank]);
        }
        "scatter_nd" if i == 1 => (dtype, shape) = (DType::Int8, vec![2, 1]),
        "scatter_nd" if i == 2 => shape = shape.iter().enumerate().map(|(a, &e)| if a == 0 { 2 } else { e }).collect(),
        "nn.pad" if i == 1 => (dtype, shape) = (DType::Int8, vec![2 * rank]),
        "nn.pad" if i == 2 => shape = vec![],
        "nn.pad" if i == 3 => (dtype, shape) = (DType::Int8, vec![rank]),
        "center_crop_pad" if i == 1 => (dtype, shape) = (DType::Int8, vec![rank]),
        "dynamic_strided_slice" if i > 0 => (dtype, shape) = (DType::Int8, vec![rank]),
        "one_hot" if i == 1 => shape = vec![],
        "one_hot" if i == 2 => shape = vec![2],
        "tril" | "triu" if i == 1 => (dtype, shape) = (DType::Int64, vec![]),
        "reverse_sequence" if i == 1 => {
            (dtype, shape) = (DType::Int8, shape.get(1).map_or(vec![], |&c| vec![c]));
        }
        "compress" if i == 1 => (dtype, shape) = (DType::Bool, vec![rng.below(6)]),
        "cumsum" | "cumprod" if i == 1 => (dtype, shape) = (DType::Int64, vec![]),
        "image.resize" | "image.crop_and_resize" if i == 1 && rng.below(8) > 0 => {
            dtype = if rng.below(2) == 0 { DType::Int64 } else { DType::Float32 };
            shape = vec![rank];
        }
        "image.crop_and_resize" if i == 2 => (dtype, shape) = (DType::Float32, vec![2 * rank]),
        _ if row.shape_operands.contains(&(i as u32)) => (dtype, shape) = (DType::Int64, vec![rng.below(4)]),
        "where" if i == 0 => dtype = DType::Bool,
        "arange" => shape = vec![],
        "topk" if i == 1 => {
            dtype = DType::Int64;
            shape = vec![1; rng.below(2)];
        }
        "nn.nll_loss" | "nn.softmax_cross_entropy" if i == 1 => {
            dtype = DType::Int32;
            if shape.len() > 1 {
                shape.remove(1);
            }
        }
        "nn.nll_loss" | "nn.softmax_cross_entropy" if i == 2 => {
            shape = shape.get(1).map_or(vec![], |&c| vec![c]);
        }
        "nn.batch_norm" | "nn.batch_norm_training" | "nn.instance_norm" | "nn.group_norm" if i > 0 => {
            shape = shape.get(1).map_or(vec![], |&c| vec![c])
        }
        "nn.layer_norm" | "nn.rms_norm" if i > 0 => shape = shape.last().map_or(vec![], |&c| vec![c]),
        _ if spatial.is_some_and(|n| n + 2 == shape.len()) && i == 1 => {
            shape[0] = 2 * rng.below(3);
            shape[1] = rng.pick(&[1, 2, 2]);
            shape[2..].fill_with(|| rng.below(4));
            if rng.below(8) == 0 {
                shape[2] = 1 << 30;
            }
        }
        _ if spatial.is_some() && i == 2 => shape = vec![2 * rng.below(3)],
        _ => {}
    }
    (dtype, shape)
}

/// Returns an element type and a shape of an operand of an operator on sequences or boxes, in which
/// sometimes one extent does not fit.
fn of_sequences(rng: &mut Rng, name: &str, dtype: DType, i: usize) -> Option<(DType, Vec<usize>)> {
    const FLOAT: DType = DType::Float32;
    let dtype = if dtype.is_float() { dtype } else { FLOAT };
    let (dtype, shape): (DType, &[usize]) = match (name, i) {
        ("nn.attention", 0) => (dtype, &[2, 2, 3, 2]),
        ("nn.attention", 3) => (rng.pick(&[DType::Bool, dtype]), &[3, 3]),
        ("nn.attention", 6) => (DType::Int64, &[2]),
        ("nn.attention", _) => (dtype, &[2, 1, 3, 2]),
        ("nn.linear_attention", 0..3) => (dtype, &[1, 2, 6]),
        ("nn.linear_attention", 3) => (dtype, &[1, 1, 6, 6]),
        ("nn.linear_attention", _) => (dtype, &[1, 2, 1]),
        ("nn.rotary_embedding", 0) => (dtype, &[1, 2, 2, 4]),
        ("nn.rotary_embedding", 3) => (DType::Int64, &[1, 2]),
        ("nn.rotary_embedding", _) => (dtype, &[1, 2, 2]),
        ("nn.lstm" | "nn.gru" | "nn.rnn", 0) => (dtype, &[2, 2, 3]),
        ("nn.lstm", 1) => (dtype, &[1, 8, 3]),
        ("nn.lstm", 2) => (dtype, &[1, 8, 2]),
        ("nn.lstm", 3) => (dtype, &[1, 16]),
        ("nn.gru", 1) => (dtype, &[1, 6, 3]),
        ("nn.gru", 2) => (dtype, &[1, 6, 2]),
        ("nn.gru", 3) => (dtype, &[1, 12]),
        ("nn.rnn", 1) => (dtype, &[1, 2, 3]),
        ("nn.rnn", 2) => (dtype, &[1, 2, 2]),
        ("nn.rnn", 3) => (dtype, &[1, 4]),
        ("nn.lstm" | "nn.gru" | "nn.rnn", 4) => (DType::Int32, &[2]),
        ("nn.lstm", 7) => (dtype, &[1, 6]),
        ("nn.lstm" | "nn.gru" | "nn.rnn", _) => (dtype, &[1, 2, 2]),
        ("nn.causal_conv1d", 0) => (dtype, &[2, 3, 2]),
        ("nn.causal_conv1d", 1) => (dtype, &[3, 1, 2]),
        ("nn.causal_conv1d", 2) => (dtype, &[3]),
        ("nn.causal_conv1d", _) => (dtype, &[2, 3, 1]),
        ("image.grid_sample", 0) => (dtype, &[1, 2, 3, 2]),
        ("image.grid_sample", _) => (FLOAT, &[1, 2, 2, 2]),
        ("image.non_max_suppression", 0) => (FLOAT, &[1, 3, 4]),
        ("image.non_max_suppression", 1) => (FLOAT, &[1, 2, 3]),
        ("image.non_max_suppression", 2) => (DType::Int64, &[]),
        ("image.non_max_suppression", _) => (FLOAT, &[1]),
        ("cosine_window", _) => (DType::Int64, &[]),
        _ => return None,
    };
    let mut shape = shape.to_vec();
    if rng.below(10) == 0 && !shape.is_empty() {
        let axis = rng.below(shape.len());
        shape[axis] = rng.pick(&[0, 1, 2, 1 << 20, 1 << 40, 1 << 62, usize::MAX]);
    }
    Some((dtype, shape))
}

/// Returns operands with the types of these literals, most of them known.
fn operands_of(rng: &mut Rng, cx: &mut Context, literals: &[Option<Literal>]) -> Vec<Operand> {
    literals
        .iter()
        .map(|l| match l {
            None => Operand { ty: cx.types.any(), literal: None, absent: true },
            Some(l) => {
                let ty = cx.types.static_tensor(l.dtype(), l.shape());
                let literal = (rng.below(3) > 0).then(|| cx.literals.intern(l.clone()));
                Operand { ty, literal, absent: false }
            }
        })
        .collect()
}

/// Returns the attributes of a call.
fn attributes(rng: &mut Rng, cx: &mut Context, row: &OpDef, common: &Common) -> AttrsId {
    let mut attrs = Vec::new();
    for a in row.attrs.iter() {
        if a.name == "groups" && row.name.contains("quantized") && rng.below(8) > 0 {
            continue;
        }
        if let (Some(n), AttrKind::Ints, true) = (common.spatial, a.kind, rng.below(10) > 0) {
            let n = if a.name == "padding" { 2 * n } else { n };
            let least = i64::from(a.name != "padding");
            let mut list: Vec<i64> = (0..n).map(|_| least + rng.below(3) as i64).collect();
            if rng.below(6) == 0 {
                list[0] = rng.pick(&[1 << 30, 1 << 20, (1 << 31) - 1]);
            }
            let list = cx.ints_attr(&list);
            attrs.push((a.name, list));
        } else if a.name.ends_with("num_heads") && rng.below(8) > 0 {
            let heads = cx.int_attr(rng.below(3) as i64 + 1);
            attrs.push((a.name, heads));
        } else if let Some(words) = words(a.name).filter(|_| rng.below(10) > 0) {
            let word = cx.str_attr(rng.pick(words));
            attrs.push((a.name, word));
        } else if rng.below(3) > 0 || a.default == anfora_ir::AttrDefault::Required {
            attrs.push((a.name, attribute(rng, cx, a.kind, common.shape.len())));
        }
    }
    cx.named_attrs(&attrs)
}

/// Infers the type of a call and evaluates it if its result is small. Returns true if it has a
/// result.
fn is_evaluated(
    cx: &mut Context,
    op: OpId,
    row: &OpDef,
    literals: &[Option<Literal>],
    operands: &[Operand],
    attrs: AttrsId,
) -> bool {
    let Ok(attrs) = cx.check_op_attrs(op, attrs) else { return false };
    let annotated = cx.types.error();
    let Ok(ty) = infer_op(cx, op, operands, attrs, annotated) else { return false };
    let Some(kernel) = row.kernel else { return false };
    let refs: Vec<Option<&Literal>> = literals.iter().map(|l| l.as_ref()).collect();
    let call = KernelCall { operands: &refs, attrs: AttrReader { cx, op, attrs }, ty };
    let is_bounded = row.size_bound.is_some() && row.result_bytes(&call).is_some_and(|b| b < 1 << 18);
    if !(small(cx, ty) || is_bounded || row.gives_splat(&refs)) {
        return false;
    }
    let Ok(results) = kernel(&call) else { return false };
    if is_bounded {
        let bytes: usize = results.iter().map(Literal::stored_bytes).sum();
        assert!(row.result_bytes(&call).is_some_and(|b| bytes <= b), "{} {refs:?}", row.name);
    }
    if row.gives_splat(&refs) {
        let plain = |l: &Literal| l.as_splat().is_some() || l.element_count() == 0;
        assert!(results.iter().all(plain), "{} {refs:?}", row.name);
    }
    true
}

/// Returns the random numbers of an operator. They depend on its name alone, so a new operator
/// does not change the calls of the others.
fn random_numbers(name: &str) -> Rng {
    let seed = name.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
    Rng(fastrand::Rng::with_seed(seed))
}

#[test]
fn nothing_panics() {
    let registry = anfora_ops::standard();
    let cases = std::env::var("ANFORA_CASES").map_or(300, |n| n.parse().expect("ANFORA_CASES is a number"));
    for (op, row) in registry.rows() {
        let mut rng = random_numbers(&row.name);
        let mut cx = Context::new(registry.clone());
        let (mut calls, mut evaluated) = (0, 0);
        let least = if row.kernel.is_some() { cases / 250 } else { 0 };
        // Few random calls of some operators have a result. These operators are called more often.
        while calls < cases || evaluated < least {
            let most = row.arity.max.unwrap_or(4);
            let count = row.arity.min + rng.below(most - row.arity.min + 1);
            let common = Common::random(&mut rng, row);
            let literals: Vec<Option<Literal>> = (0..count).map(|i| operand(&mut rng, row, &common, i)).collect();
            let operands = operands_of(&mut rng, &mut cx, &literals);
            let attrs = attributes(&mut rng, &mut cx, row, &common);
            evaluated += usize::from(is_evaluated(&mut cx, op, row, &literals, &operands, attrs));
            calls += 1;
            assert!(calls < 10 * cases, "{}: {evaluated} of {calls} calls have a result", row.name);
        }
    }
}
