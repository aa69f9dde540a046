//! The nodes that become our operators, by version of the operators, and the nodes that these are
//! written as.

use anfora_ir::{Attr, Expr, Literal, Module};
use anfora_onnx::convert::{float_attribute, int_attribute, ints_attribute, str_attribute, tensor_attribute};
use anfora_onnx::proto::{AttributeProto, ModelProto, TensorProto};
use anfora_onnx::tensor::tensor_of;
use anfora_onnx::{ExportOptions, export};

use crate::models::{
    BOOL, INT64, again, float, graph, info, initializer, ints, model, node, node_types, one_node, operators, read,
    write,
};

/// Returns the operators of a model in a single line.
fn calls(model: &ModelProto) -> String {
    operators(&read(model)).join(" ")
}

/// Returns a model of a single node. Its inputs are a float input `x` of the given extents and
/// constants; its output is `y`.
fn with_constants(
    opset: i64,
    op: &str,
    dims: &[i64],
    constants: &[Literal],
    attribute: Vec<AttributeProto>,
) -> ModelProto {
    let names: Vec<String> = (0..constants.len()).map(|i| format!("c{i}")).collect();
    let mut inputs = vec!["x"];
    inputs.extend(names.iter().map(String::as_str));
    let output = anfora_onnx::proto::ValueInfoProto { name: Some("y".into()), ..Default::default() };
    let mut g = graph("g", vec![node(op, &inputs, &["y"], attribute)], vec![float("x", dims)], vec![output]);
    g.initializer = names.iter().zip(constants).map(|(n, c)| initializer(n, c)).collect();
    model(opset, g)
}

fn shape_of_result(model: &ModelProto) -> Vec<usize> {
    let module = read(model);
    let main = module.get(module.find("main").expect("@main")).expect("it is there");
    module.cx.types.static_shape(main.body.type_of(main.body.root())).expect("a static shape").to_vec()
}

/// Returns the attributes of the first call as text.
fn attributes(module: &Module) -> String {
    let main = module.get(module.find("main").expect("@main")).expect("it is there");
    let Expr::Let { value, .. } = main.body.expr(main.body.root()) else { panic!("a binding") };
    let Expr::CallOp { attrs, .. } = main.body.expr(value) else { panic!("a call") };
    let cx = &module.cx;
    let text = |a: &Attr| match a {
        Attr::Bool(b) => b.to_string(),
        Attr::Int(i) => i.to_string(),
        Attr::Float(bits) => f64::from_bits(*bits).to_string(),
        Attr::List(items) => {
            let items: Vec<String> = items.iter().map(|&i| format!("{:?}", cx.attrs.get(i))).collect();
            items.join(",").replace("Int(", "").replace(')', "")
        }
        other => format!("{other:?}"),
    };
    let list: Vec<String> =
        cx.attrs.list(attrs).iter().map(|&(k, v)| format!("{}={}", cx.names.get(k), text(cx.attrs.get(v)))).collect();
    list.join(" ")
}

#[test]
fn every_row_is_registered() {
    let registry = anfora_onnx::registry();
    for row in anfora_onnx::convert::Conversions::default().rows() {
        // `if` is not an operator.
        let is_known = row.native.is_empty() || row.native == "if" || registry.find(&row.native).is_some();
        assert!(is_known, "{}", row.native);
        assert!(row.import.is_some() || row.export.is_some(), "{} does nothing", row.onnx);
    }
}

#[test]
fn only_known_versions_are_understood() {
    for (opset, expected) in [(5, "onnx.Add"), (6, "add"), (7, "add"), (28, "add"), (29, "onnx.Add")] {
        assert_eq!(calls(&one_node(opset, "Add", &[&[2], &[2]], vec![])), expected, "{opset}");
    }
}

/// Runtimes accept tensors of one element as bounds of `Range`, and such files exist, although the
/// format does not allow them.
#[test]
fn a_range_to_a_tensor_of_one_element() {
    assert_eq!(calls(&one_node(13, "Range", &[&[], &[], &[]], vec![])), "arange");
    assert_eq!(calls(&one_node(13, "Range", &[&[], &[1], &[]], vec![])), "reshape arange");
}

#[test]
fn an_attribute_that_is_not_known_keeps_the_node() {
    assert_eq!(calls(&one_node(13, "Relu", &[&[2]], vec![int_attribute("fast", 1)])), "onnx.Relu");
    let mut wrong_type = float_attribute("axis", 1.0);
    assert_eq!(calls(&one_node(13, "Softmax", &[&[2]], vec![wrong_type.clone()])), "onnx.Softmax");
    wrong_type = int_attribute("axis", 0);
    wrong_type.ref_attr_name = Some("a".into());
    assert_eq!(calls(&one_node(13, "Softmax", &[&[2]], vec![wrong_type])), "onnx.Softmax");
}

#[test]
fn softmax_before_13_flattens() {
    let axis = |a| vec![int_attribute("axis", a)];
    for (opset, dims, attribute, expected) in [
        (11, &[2, 3, 4][..], vec![], "axes=1,2"),
        (11, &[2, 3, 4], axis(-3), "axes=0,1,2"),
        (11, &[2, 3, 4], axis(2), "axis=2"),
        (11, &[2, 3, 4], axis(-1), ""),
        (11, &[2, 3, 1, 1], vec![], "axis=1"),
        (11, &[2, 3], vec![], "axis=1"),
        (13, &[2, 3, 4], vec![], ""),
        (13, &[2, 3, 4], axis(0), "axis=0"),
    ] {
        for (op, native) in [("Softmax", "nn.softmax"), ("LogSoftmax", "nn.log_softmax"), ("Hardmax", "nn.hardmax")] {
            let m = one_node(opset, op, &[dims], attribute.clone());
            assert_eq!(calls(&m), native, "{opset} {dims:?} {attribute:?}");
            assert_eq!(attributes(&read(&m)), expected, "{opset} {dims:?} {attribute:?}");
        }
    }
    assert_eq!(calls(&one_node(11, "Softmax", &[&[2]], vec![])), "onnx.Softmax", "axis 1 is out of range");
    let back = again(&one_node(11, "Softmax", &[&[2, 3, 4]], axis(-1)));
    assert_eq!(back.graph.unwrap().node[0].attribute, axis(2), "negative axes are younger than version 9");
    let flattening = one_node(11, "Softmax", &[&[2, 3, 4]], axis(1));
    assert_eq!(again(&flattening).graph.unwrap().node, flattening.graph.as_ref().unwrap().node);
    let error = refusal(13, "def @main(%x: Tensor[(2, 3, 4), float32]) { nn.softmax(%x, axes=[1, 2]) }");
    assert!(error.contains("`nn.softmax` over several axes"), "{error}");
}

/// Returns a model of a single node with float inputs of the given extents and the given outputs.
fn with_outputs(
    opset: i64,
    op: &str,
    inputs: &[&[i64]],
    outputs: &[&str],
    attribute: Vec<AttributeProto>,
) -> ModelProto {
    let names: Vec<String> = (0..inputs.len()).map(|i| format!("x{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let infos = names.iter().zip(inputs).map(|(n, dims)| float(n, dims)).collect();
    let results = outputs
        .iter()
        .map(|o| anfora_onnx::proto::ValueInfoProto { name: Some(o.to_string()), ..Default::default() })
        .collect();
    model(opset, graph("g", vec![node(op, &names, outputs, attribute)], infos, results))
}

/// Returns the error of writing a program as a model of a version.
fn refusal(opset: i64, text: &str) -> String {
    let module = anfora_ir::parse_module(anfora_ir::Source::new("text", text), anfora_onnx::registry());
    let options = ExportOptions { opset: Some(opset), ..ExportOptions::default() };
    export(&module.unwrap(), &options).map(|e| e.nodes.total()).unwrap_err().to_string()
}

/// Asserts that a model's node becomes a call of our operator and is written back unchanged.
#[track_caller]
fn comes_back(m: &ModelProto, native: &str) {
    assert_eq!(calls(m), native, "{m:#?}");
    let (mut back, mut original) = (again(m).graph.unwrap().node, m.graph.clone().unwrap().node);
    for node in back.iter_mut().chain(&mut original) {
        node.attribute.sort_by(|a, b| a.name().cmp(b.name()));
    }
    assert_eq!(back, original);
}

#[test]
fn batch_norm_by_version() {
    let inputs: &[&[i64]] = &[&[2, 3, 4], &[3], &[3], &[3], &[3]];
    let epsilon = || float_attribute("epsilon", 0.1);
    let norm = |opset, outputs: &[&str], more: Vec<AttributeProto>| {
        with_outputs(opset, "BatchNormalization", inputs, outputs, [vec![epsilon()], more].concat())
    };
    comes_back(&norm(7, &["y"], vec![]), "nn.batch_norm");
    comes_back(&norm(9, &["y"], vec![float_attribute("momentum", 0.5)]), "nn.batch_norm");
    assert_eq!(calls(&norm(8, &["y"], vec![int_attribute("spatial", 1)])), "nn.batch_norm");
    assert_eq!(calls(&norm(8, &["y"], vec![int_attribute("spatial", 0)])), "onnx.BatchNormalization");
    assert_eq!(calls(&norm(9, &["y", "m", "v"], vec![])), "onnx.BatchNormalization");
    let training = || vec![int_attribute("training_mode", 1), float_attribute("momentum", 0.5)];
    comes_back(&norm(15, &["y", "m", "v"], training()), "nn.batch_norm_training");
    comes_back(&norm(14, &["y"], training()), "nn.batch_norm_training");
    assert_eq!(calls(&norm(13, &["y"], training())), "onnx.BatchNormalization");
    assert_eq!(calls(&norm(15, &["y", "m", "v"], vec![])), "onnx.BatchNormalization");
    let one_axis = with_outputs(15, "BatchNormalization", &[&[2], &[1], &[1], &[1], &[1]], &["y"], vec![]);
    assert_eq!(calls(&one_axis), "onnx.BatchNormalization", "there is no axis of channels");
}

#[test]
fn normalizations_by_version() {
    let epsilon = || float_attribute("epsilon", 0.1);
    let axis = |a| vec![int_attribute("axis", a), epsilon()];
    let x: &[i64] = &[2, 4, 3];
    let layer = |inputs: &[&[i64]], outputs: &[&str], attribute| {
        with_outputs(17, "LayerNormalization", inputs, outputs, attribute)
    };
    comes_back(&layer(&[x, &[4, 3], &[4, 3]], &["y"], axis(-2)), "nn.layer_norm");
    comes_back(&layer(&[x, &[3], &[]], &["y"], axis(-2)), "nn.layer_norm");
    comes_back(&layer(&[x, &[3]], &["y", "mean", "inverse"], axis(-1)), "nn.layer_norm");
    comes_back(&layer(&[x, &[3]], &["y", "mean"], axis(-1)), "nn.layer_norm");
    let stash = |s| [axis(-1), vec![int_attribute("stash_type", s)]].concat();
    assert_eq!(calls(&layer(&[x, &[3]], &["y"], stash(1))), "nn.layer_norm");
    assert_eq!(calls(&layer(&[x, &[3]], &["y"], stash(10))), "onnx.LayerNormalization");
    assert_eq!(calls(&layer(&[x, &[3]], &["y"], axis(3))), "onnx.LayerNormalization");
    assert_eq!(attributes(&read(&layer(&[x, &[3]], &["y"], vec![int_attribute("axis", 1)]))), "axes=-2,-1");
    comes_back(&with_outputs(23, "RMSNormalization", &[x, &[3]], &["y"], axis(-2)), "nn.rms_norm");
    comes_back(
        &with_outputs(7, "InstanceNormalization", &[x, &[4], &[4]], &["y"], vec![epsilon()]),
        "nn.instance_norm",
    );
    let groups = || vec![int_attribute("num_groups", 2), epsilon()];
    let group =
        |opset, extent: &[i64]| with_outputs(opset, "GroupNormalization", &[x, extent, extent], &["y"], groups());
    comes_back(&group(18, &[2]), "nn.group_norm");
    comes_back(&group(21, &[4]), "nn.group_norm");
    let grouped = |extent: usize| {
        let parameter = format!("Tensor[({extent},), float32]");
        format!(
            "def @main(%x: Tensor[(2, 4, 3), float32], %s: {parameter}) {{ nn.group_norm(%x, %s, %s, num_groups=2) }}"
        )
    };
    assert!(refusal(18, &grouped(2)).contains("needs version 21"));
    assert!(refusal(18, &grouped(4)).contains("needs version 21"));
    let axes = vec![ints_attribute("axes", &[0, 2])];
    comes_back(&with_outputs(9, "MeanVarianceNormalization", &[x], &["y"], axes), "nn.mean_variance_norm");
    let lp =
        |p| with_outputs(7, "LpNormalization", &[x], &["y"], vec![int_attribute("axis", 1), int_attribute("p", p)]);
    comes_back(&lp(1), "nn.lp_norm");
    comes_back(&lp(2), "nn.lp_norm");
    assert_eq!(calls(&lp(3)), "onnx.LpNormalization");
}

#[test]
fn losses_come_back() {
    let loss = |op: &str, outputs: &[&str], weighted: bool, attribute: Vec<AttributeProto>| {
        let inputs: [&[i64]; 3] = [&[2, 3, 4], &[2, 4], &[3]];
        let mut m = with_outputs(13, op, &inputs[..2 + usize::from(weighted)], outputs, attribute);
        m.graph.as_mut().unwrap().input[1] = info("x1", INT64, &[2, 4]);
        m
    };
    let mean = || vec![str_attribute("reduction", "mean")];
    let none = || vec![str_attribute("reduction", "none"), int_attribute("ignore_index", -1)];
    for weighted in [false, true] {
        comes_back(&loss("NegativeLogLikelihoodLoss", &["y"], weighted, none()), "nn.nll_loss");
        comes_back(&loss("SoftmaxCrossEntropyLoss", &["y"], weighted, mean()), "nn.softmax_cross_entropy");
        comes_back(&loss("SoftmaxCrossEntropyLoss", &["y", "p"], weighted, none()), "nn.softmax_cross_entropy");
    }
    assert_eq!(attributes(&read(&loss("NegativeLogLikelihoodLoss", &["y"], false, vec![]))), "");
    let strange = loss("NegativeLogLikelihoodLoss", &["y"], false, vec![str_attribute("reduction", "max")]);
    assert_eq!(calls(&strange), "onnx.NegativeLogLikelihoodLoss");
}

#[test]
fn top_k_by_version() {
    let axis = || int_attribute("axis", 0);
    let old = with_outputs(9, "TopK", &[&[5, 2]], &["v", "i"], vec![axis(), int_attribute("k", 3)]);
    comes_back(&old, "topk");
    let with_k = |opset, k: &[i64], elem_type, attribute: Vec<AttributeProto>| {
        let mut m = with_outputs(opset, "TopK", &[&[5, 2], k], &["v", "i"], attribute);
        m.graph.as_mut().unwrap().input[1] = info("x1", elem_type, k);
        m
    };
    comes_back(&with_k(10, &[1], INT64, vec![axis()]), "topk");
    let smallest = vec![axis(), int_attribute("largest", 0), int_attribute("sorted", 0)];
    comes_back(&with_k(11, &[1], INT64, smallest.clone()), "topk");
    comes_back(&with_k(24, &[1], INT64, smallest.clone()), "topk");
    assert_eq!(calls(&with_k(10, &[1], INT64, smallest.clone())), "onnx.TopK");
    let text = "def @main(%x: Tensor[(5,), float32], %k: Tensor[(1,), int64]) { topk(%x, %k, largest=false) }";
    assert!(refusal(10, text).contains("needs version 11"));
    let text = "def @main(%x: Tensor[(5,), float32], %k: int32) { topk(%x, %k) }";
    let module = anfora_ir::parse_module(anfora_ir::Source::new("text", text), anfora_onnx::registry()).unwrap();
    assert_eq!(node_types(&write(&module)), ["Cast", "Reshape", "TopK"]);
}

#[test]
fn axes_move_from_an_attribute_to_an_operand() {
    for (op, dims, result) in [("Unsqueeze", &[2, 3][..], &[2, 1, 3][..]), ("Squeeze", &[2, 1, 3], &[2, 3])] {
        let old = one_node(11, op, &[dims], vec![ints_attribute("axes", &[1])]);
        let new = with_constants(13, op, dims, &[ints(&[1])], vec![]);
        for m in [&old, &new] {
            assert_eq!(shape_of_result(m), result.iter().map(|&d| d as usize).collect::<Vec<_>>());
            let back = again(m).graph.unwrap();
            let original = m.graph.as_ref().unwrap();
            assert_eq!(back.node, original.node);
            assert_eq!(back.initializer, original.initializer);
        }
    }
}

#[test]
fn reductions_by_version() {
    let keep = || int_attribute("keepdims", 0);
    let cases = [
        (one_node(11, "ReduceSum", &[&[2, 3]], vec![ints_attribute("axes", &[1])]), "sum", vec![2, 1]),
        (one_node(11, "ReduceSum", &[&[2, 3]], vec![keep()]), "sum", vec![]),
        (with_constants(13, "ReduceSum", &[2, 3], &[ints(&[-1])], vec![keep()]), "sum", vec![2]),
        (one_node(13, "ReduceMean", &[&[2, 3]], vec![ints_attribute("axes", &[0]), keep()]), "mean", vec![3]),
        (with_constants(18, "ReduceMax", &[2, 3], &[ints(&[0])], vec![]), "max", vec![1, 3]),
        (with_constants(18, "ReduceMax", &[2, 3], &[ints(&[])], vec![]), "max", vec![1, 1]),
        (one_node(18, "ReduceMin", &[&[2, 3]], vec![int_attribute("noop_with_empty_axes", 1)]), "min", vec![2, 3]),
    ];
    for (m, op, shape) in cases {
        assert_eq!((calls(&m).as_str(), shape_of_result(&m)), (op, shape), "{m:#?}");
    }
    let noop = one_node(18, "ReduceMin", &[&[2, 3]], vec![int_attribute("noop_with_empty_axes", 1)]);
    assert_eq!(again(&noop).graph.unwrap().node, noop.graph.unwrap().node);
}

#[test]
fn norms_and_logarithms_by_version() {
    for (op, native) in [
        ("ReduceSumSquare", "sum_square"),
        ("ReduceL1", "l1_norm"),
        ("ReduceL2", "l2_norm"),
        ("ReduceLogSum", "log_sum"),
        ("ReduceLogSumExp", "log_sum_exp"),
    ] {
        let old = one_node(17, op, &[&[2, 3]], vec![ints_attribute("axes", &[1]), int_attribute("keepdims", 0)]);
        let new = with_constants(28, op, &[2, 3], &[ints(&[1])], vec![int_attribute("keepdims", 0)]);
        for m in [old, new] {
            assert_eq!((calls(&m).as_str(), shape_of_result(&m)), (native, vec![2]));
            assert_eq!(again(&m).graph.unwrap().node, m.graph.unwrap().node);
        }
        let x = info("x", INT64, &[2, 3]);
        let m = model(13, graph("g", vec![node(op, &["x"], &["y"], vec![])], vec![x], vec![info("y", INT64, &[1, 1])]));
        let expected =
            if matches!(op, "ReduceL1" | "ReduceSumSquare") { native.to_owned() } else { format!("onnx.{op}") };
        assert_eq!(calls(&m), expected, "roots and logarithms of integers are left open");
    }
}

#[test]
fn axes_may_be_known_late() {
    let reduce = |axes: &[i64], attribute: Vec<AttributeProto>| {
        let inputs = vec![float("x", &[2, 3, 4]), info("a", INT64, axes)];
        let y = anfora_onnx::proto::ValueInfoProto { name: Some("y".into()), ..Default::default() };
        let m = model(18, graph("g", vec![node("ReduceMax", &["x", "a"], &["y"], attribute)], inputs, vec![y]));
        assert_eq!(calls(&m), "max");
        assert_eq!(again(&m).graph.unwrap().node, m.graph.as_ref().unwrap().node);
        let module = read(&m);
        let main = module.get(module.find("main").unwrap()).unwrap();
        module.cx.type_text(main.body.type_of(main.body.root())).to_string()
    };
    let prune = || int_attribute("keepdims", 0);
    let noop = || int_attribute("noop_with_empty_axes", 1);
    assert_eq!(reduce(&[1], vec![]), "Tensor[(?, ?, ?), float32]");
    assert_eq!(reduce(&[2], vec![prune()]), "Tensor[(?,), float32]");
    assert_eq!(reduce(&[3], vec![prune()]), "Tensor[(), float32]");
    assert_eq!(reduce(&[0], vec![]), "Tensor[(1, 1, 1), float32]");
    assert_eq!(reduce(&[0], vec![noop()]), "Tensor[(2, 3, 4), float32]");
    assert_eq!(reduce(&[0], vec![prune(), noop()]), "Tensor[(2, 3, 4), float32]");
}

#[test]
fn scans_by_version() {
    let axis = Literal::scalar(-1i64);
    let flags = || vec![int_attribute("exclusive", 1), int_attribute("reverse", 1)];
    for (opset, op, expected) in [
        (11, "CumSum", "cumsum"),
        (14, "CumSum", "cumsum"),
        (26, "CumProd", "cumprod"),
        (25, "CumProd", "onnx.CumProd"),
        (10, "CumSum", "onnx.CumSum"),
    ] {
        let m = with_constants(opset, op, &[2, 3], std::slice::from_ref(&axis), flags());
        assert_eq!(calls(&m), expected, "{opset} {op}");
        let (back, original) = (again(&m).graph.unwrap(), m.graph.unwrap());
        assert_eq!((back.node, back.initializer), (original.node, original.initializer));
    }
    let inputs = vec![float("x", &[2, 3]), info("axis", INT64, &[])];
    let m =
        model(14, graph("g", vec![node("CumSum", &["x", "axis"], &["y"], vec![])], inputs, vec![float("y", &[2, 3])]));
    assert_eq!(calls(&m), "cumsum");
    assert_eq!(again(&m).graph.unwrap().node, m.graph.unwrap().node);
}

#[test]
fn slices_by_version() {
    let old = vec![ints_attribute("starts", &[1]), ints_attribute("ends", &[i64::MAX])];
    assert_eq!(shape_of_result(&one_node(9, "Slice", &[&[5, 3]], old)), [4, 3]);
    let new = with_constants(13, "Slice", &[5, 3], &[ints(&[-1]), ints(&[i64::MIN]), ints(&[0]), ints(&[-2])], vec![]);
    assert_eq!((calls(&new).as_str(), shape_of_result(&new)), ("strided_slice", vec![3, 3]));
    assert_eq!(again(&new).graph.unwrap().node[0].input, ["x", "c0", "c1", "c2", "c3"]);
}

#[test]
fn splits_by_version() {
    let split = |opset, attribute: Vec<AttributeProto>, sizes: Option<Literal>, parts: &[&str]| {
        let inputs: &[&str] = if sizes.is_some() { &["x", "s"] } else { &["x"] };
        let outputs = parts
            .iter()
            .map(|p| anfora_onnx::proto::ValueInfoProto { name: Some(p.to_string()), ..Default::default() });
        let outputs = outputs.collect();
        let mut g = graph("g", vec![node("Split", inputs, parts, attribute)], vec![float("x", &[6, 2])], outputs);
        g.initializer = sizes.iter().map(|s| initializer("s", s)).collect();
        model(opset, g)
    };
    let cases = [
        (split(11, vec![], None, &["a", "b"]), "split"),
        (split(11, vec![ints_attribute("split", &[1, 5])], None, &["a", "b"]), "split"),
        (split(11, vec![ints_attribute("split", &[1, 4])], None, &["a", "b"]), "onnx.Split"),
        (split(13, vec![], Some(ints(&[2, 0, 4])), &["a", "b", "c"]), "split"),
        (split(18, vec![int_attribute("num_outputs", 4)], None, &["a", "b", "c", "d"]), "split"),
        (split(18, vec![int_attribute("num_outputs", 3)], None, &["a", "b"]), "onnx.Split"),
        (split(18, vec![int_attribute("num_outputs", 5)], None, &["a", "b", "c", "d", "e"]), "onnx.Split"),
    ];
    for (m, expected) in cases {
        assert_eq!(calls(&m), expected, "{m:#?}");
        let (back, original) = (again(&m).graph.unwrap(), m.graph.unwrap());
        assert_eq!((&back.node[0].output, &back.node[0].input), (&original.node[0].output, &original.node[0].input));
    }
}

#[test]
fn padding_is_made_explicit() {
    let pads = |auto: &str, stride: i64| {
        let attribute = vec![str_attribute("auto_pad", auto), ints_attribute("strides", &[stride, stride])];
        let m = one_node(13, "Conv", &[&[1, 1, 5, 6], &[1, 1, 3, 2]], attribute);
        attributes(&read(&m))
    };
    assert_eq!(pads("VALID", 1), "");
    assert_eq!(pads("NOTSET", 2), "strides=2,2");
    assert_eq!(pads("SAME_UPPER", 1), "padding=1,0,1,1");
    assert_eq!(pads("SAME_LOWER", 1), "padding=1,1,1,0");
    assert_eq!(pads("SAME_UPPER", 2), "padding=1,0,1,0 strides=2,2");
}

#[test]
fn windows_past_the_end_are_left_to_others() {
    let pool = |extent: i64, more: Vec<AttributeProto>| {
        let mut attribute = vec![
            ints_attribute("kernel_shape", &[2]),
            ints_attribute("strides", &[3]),
            ints_attribute("pads", &[0, 1]),
            int_attribute("ceil_mode", 1),
        ];
        attribute.extend(more);
        calls(&one_node(13, "AveragePool", &[&[1, 1, extent]], attribute))
    };
    assert_eq!(pool(6, vec![]), "onnx.AveragePool", "its last window would begin after the input");
    assert_eq!(pool(7, vec![]), "nn.avg_pool1d");
    assert_eq!(pool(7, vec![int_attribute("count_include_pad", 1)]), "onnx.AveragePool");
}

#[test]
fn a_second_output_counts() {
    let pool = |outputs: &[&str]| {
        let n = node("MaxPool", &["x"], outputs, vec![ints_attribute("kernel_shape", &[2])]);
        calls(&model(13, graph("g", vec![n], vec![float("x", &[1, 1, 4])], vec![float("y", &[1, 1, 3])])))
    };
    assert_eq!(pool(&["y"]), "nn.max_pool1d");
    assert_eq!(pool(&["y", "i"]), "nn.max_pool_with_indices1d");
}

#[test]
fn dropout_by_version() {
    let dropout = |opset, constants: &[Literal], outputs: &[&str], results: &[&str]| {
        let names: Vec<String> = (0..constants.len()).map(|i| format!("c{i}")).collect();
        let mut inputs = vec!["x"];
        inputs.extend(names.iter().map(String::as_str));
        let results = results
            .iter()
            .map(|r| anfora_onnx::proto::ValueInfoProto { name: Some(r.to_string()), ..Default::default() });
        let results = results.collect();
        let mut g = graph("g", vec![node("Dropout", &inputs, outputs, vec![])], vec![float("x", &[2])], results);
        g.initializer = names.iter().zip(constants).map(|(n, c)| initializer(n, c)).collect();
        model(opset, g)
    };
    let half = Literal::scalar(0.25f32);
    let cases = [
        (dropout(9, &[], &["y", "m"], &["y"]), "nn.dropout"),
        (dropout(9, &[], &["y", "m"], &["y", "m"]), "onnx.Dropout"),
        (dropout(10, &[], &["y", "m"], &["y", "m"]), "nn.dropout"),
        (dropout(13, &[half.clone(), Literal::scalar(false)], &["y"], &["y"]), "nn.dropout"),
        (dropout(13, &[half, Literal::scalar(true)], &["y"], &["y"]), "onnx.Dropout"),
        (dropout(13, &[Literal::scalar(0f32), Literal::scalar(true)], &["y", "m"], &["y", "m"]), "nn.dropout"),
        (dropout(13, &[Literal::scalar(0.25f64)], &["y"], &["y"]), "nn.dropout"),
    ];
    for (m, expected) in cases {
        assert_eq!(calls(&m), expected, "{m:#?}");
        let back = again(&m).graph.unwrap();
        assert_eq!(back.node[0].output, m.graph.unwrap().node[0].output);
    }
    let training = dropout(13, &[Literal::scalar(0.5f32), Literal::scalar(true)], &["y"], &["y"]);
    let module = read(&training);
    let op = module.cx.ops.find("onnx.Dropout").unwrap();
    assert_eq!(module.cx.ops.get(op).purity, anfora_ir::OpPurity::Impure);
}

#[test]
fn values_from_shapes() {
    let value = |t: TensorProto| vec![tensor_attribute("value", t)];
    let full = |attribute| {
        let mut g = graph(
            "g",
            vec![node("ConstantOfShape", &["s"], &["y"], attribute)],
            vec![],
            vec![anfora_onnx::proto::ValueInfoProto { name: Some("y".into()), ..Default::default() }],
        );
        g.initializer = vec![initializer("s", &ints(&[2, 3]))];
        model(9, g)
    };
    for (attribute, dtype) in [
        (vec![], "float32"),
        (value(tensor_of(&ints(&[7]), 8).unwrap()), "int64"),
        (value(tensor_of(&Literal::scalar(true), 8).unwrap()), "bool"),
    ] {
        let m = full(attribute);
        assert_eq!((calls(&m).as_str(), shape_of_result(&m)), ("full", vec![2, 3]));
        let module = read(&m);
        let main = module.get(module.find("main").unwrap()).unwrap();
        let ty = main.body.type_of(main.body.root());
        assert_eq!(module.cx.types.as_tensor(ty).unwrap().dtype.name(), dtype);
        assert_eq!(node_types(&again(&m)), ["ConstantOfShape"]);
    }
}

#[test]
fn numbers_are_the_ones_that_were_meant() {
    let norm = |elem_type, attribute| {
        let x = info("x", elem_type, &[1, 2]);
        let s = info("s", elem_type, &[2]);
        let n = node("BatchNormalization", &["x", "s", "s", "s", "s"], &["y"], attribute);
        attributes(&read(&model(13, graph("g", vec![n], vec![x, s], vec![info("y", elem_type, &[1, 2])]))))
    };
    assert_eq!(norm(1, vec![]), "");
    assert_eq!(norm(1, vec![float_attribute("epsilon", 1e-5)]), "");
    assert_eq!(norm(1, vec![float_attribute("epsilon", 0.1)]), "epsilon=0.1");
    assert_eq!(norm(11, vec![]), "epsilon=0.000009999999747378752", "of float64, it is exactly the float32");
}

#[test]
fn element_types_decide() {
    let with_types = |op: &str, types: &[i32], attribute: Vec<AttributeProto>| {
        let names = ["a", "b", "c"];
        let inputs = names.iter().zip(types).map(|(n, &t)| info(n, t, &[2])).collect();
        let output = anfora_onnx::proto::ValueInfoProto { name: Some("y".into()), ..Default::default() };
        calls(&model(15, graph("g", vec![node(op, &names[..types.len()], &["y"], attribute)], inputs, vec![output])))
    };
    assert_eq!(with_types("Pow", &[1, 1], vec![]), "power");
    assert_eq!(with_types("Pow", &[1, INT64], vec![]), "power");
    assert_eq!(with_types("CastLike", &[1, INT64], vec![]), "astype");
    assert_eq!(with_types("CastLike", &[1, 8], vec![]), "onnx.CastLike");
    assert_eq!(with_types("Mod", &[1, 1], vec![]), "onnx.Mod", "of floats, it came with version 28");
    assert_eq!(with_types("Shrink", &[INT64], vec![]), "onnx.Shrink");
    assert_eq!(with_types("Mod", &[INT64, INT64], vec![]), "floor_mod");
    assert_eq!(with_types("Mod", &[1, 1], vec![int_attribute("fmod", 1)]), "mod");
    assert_eq!(with_types("Where", &[BOOL, INT64, INT64], vec![]), "where");
    assert_eq!(with_types("Equal", &[8, 8], vec![]), "onnx.Equal", "strings have no kernels");
    assert_eq!(with_types("Cast", &[1], vec![int_attribute("to", INT64 as i64)]), "astype");
    assert_eq!(with_types("Cast", &[1], vec![int_attribute("to", 8)]), "onnx.Cast");
}

#[test]
fn where_an_operator_takes_less_than_the_format() {
    let expand = |dims: &[i64], to: &[i64]| with_constants(13, "Expand", dims, &[ints(to)], vec![]);
    assert_eq!(shape_of_result(&expand(&[3, 1], &[2, 3, 4])), [2, 3, 4]);
    for (dims, to) in [(&[3, 4][..], &[1][..]), (&[3, 1], &[1, 4]), (&[2, 3], &[2, 3])] {
        let m = expand(dims, to);
        let back = again(&m).graph.unwrap();
        let original = m.graph.as_ref().unwrap();
        assert_eq!((&back.node, &back.initializer), (&original.node, &original.initializer), "{dims:?} {to:?}");
    }
    let larger = expand(&[3, 4], &[1]);
    assert_eq!((calls(&larger).as_str(), shape_of_result(&larger)), ("broadcast_to", vec![3, 4]));
    let sum = |n: usize| calls(&one_node(13, "Sum", &vec![&[2][..]; n], vec![]));
    assert_eq!((sum(1).as_str(), sum(2).as_str(), sum(3).as_str()), ("", "add", "add_n"));
}

#[test]
fn results_of_other_operators_have_types_where_they_show() {
    let nodes = vec![
        node("Clip", &["x"], &["a"], vec![int_attribute("odd", 1)]),
        node("Relu", &["a"], &["b"], vec![]),
        node("Flatten", &["b"], &["c"], vec![int_attribute("axis", 2), int_attribute("other", 1)]),
        node("Tanh", &["c"], &["d"], vec![]),
        node("NonZero", &["d"], &["e"], vec![int_attribute("other", 1)]),
        node("Abs", &["e"], &["y"], vec![]),
    ];
    let x = crate::models::typed("x", crate::models::symbolic_type(1, &["n", "2", "3", "4"]));
    let m = model(13, graph("g", nodes, vec![x], vec![info("y", INT64, &[2, 5])]));
    assert_eq!(calls(&m), "onnx.Clip nn.relu onnx.Flatten tanh onnx.NonZero abs");
    let text = read(&m).to_string();
    assert!(text.contains("Tensor[(2 * n, 12), float32]"), "{text}");
}

#[test]
fn an_identity_is_an_alias() {
    let nodes = vec![
        node("Identity", &["x"], &["a"], vec![]),
        node("Relu", &["a"], &["b"], vec![]),
        node("Identity", &["b"], &["y"], vec![]),
        node("Identity", &["x"], &["z"], vec![]),
    ];
    let m = model(13, graph("g", nodes, vec![float("x", &[2])], vec![float("y", &[2]), float("z", &[2])]));
    let back = again(&m).graph.unwrap();
    let nodes: Vec<_> = back.node.iter().map(|n| (n.op_type(), n.input[0].as_str(), n.output[0].as_str())).collect();
    assert_eq!(nodes, [("Relu", "x", "y"), ("Identity", "x", "z")]);
}

/// Nodes with a float input that become a single call and are written back unchanged.
#[test]
fn operators_on_indices_come_back() {
    let int = int_attribute;
    let x: &[i64] = &[2, 4, 4, 2];
    for (opset, op, constants, attributes, native) in [
        (13, "Flatten", vec![], vec![int("axis", 2)], "nn.flatten"),
        (9, "Flatten", vec![], vec![int("axis", 4)], "nn.flatten"),
        (13, "Size", vec![], vec![], "size"),
        (15, "Shape", vec![], vec![int("start", -2), int("end", 3)], "shape_of"),
        (13, "Tile", vec![ints(&[1, 2, 1, 3])], vec![], "tile"),
        (14, "Trilu", vec![], vec![], "triu"),
        (14, "Trilu", vec![Literal::scalar(-1i64)], vec![int("upper", 0)], "tril"),
        (13, "NonZero", vec![], vec![], "nonzero"),
        (
            11,
            "Compress",
            vec![Literal::from_elements(&[2], &[true, false]).unwrap()],
            vec![int("axis", -3)],
            "compress",
        ),
        (11, "Unique", vec![], vec![int("axis", 1), int("sorted", 0)], "unique"),
        (11, "GatherElements", vec![Literal::splat(&[1, 4, 1, 2], 1i64)], vec![int("axis", 1)], "gather_elements"),
        (12, "GatherND", vec![Literal::splat(&[2, 4, 1], 1i64)], vec![int("batch_dims", 2)], "gather_nd"),
        (
            10,
            "ReverseSequence",
            vec![ints(&[1, 2])],
            vec![int("time_axis", 1), int("batch_axis", 0)],
            "reverse_sequence",
        ),
        (13, "DepthToSpace", vec![], vec![int("blocksize", 2), str_attribute("mode", "CRD")], "nn.depth_to_space"),
        (13, "SpaceToDepth", vec![], vec![int("blocksize", 2)], "nn.space_to_depth"),
    ] {
        let m = with_constants(opset, op, x, &constants, attributes);
        assert_eq!(calls(&m), native, "{op}");
        let (back, original) = (again(&m).graph.unwrap(), m.graph.unwrap());
        assert_eq!((back.node, back.initializer), (original.node, original.initializer), "{op}");
    }
    // A form that a version does not have is not converted.
    let kept = |opset, op: &str, attributes| calls(&with_constants(opset, op, x, &[], attributes));
    assert_eq!(kept(13, "Shape", vec![int("start", 1)]), "onnx.Shape");
    assert_eq!(kept(9, "Flatten", vec![int("axis", -1)]), "onnx.Flatten");
    assert_eq!(kept(10, "DepthToSpace", vec![int("blocksize", 2), str_attribute("mode", "CRD")]), "onnx.DepthToSpace");
    assert_eq!(kept(27, "SpaceToDepth", vec![int("blocksize", 2), str_attribute("mode", "CRD")]), "onnx.SpaceToDepth");
    assert_eq!(kept(28, "SpaceToDepth", vec![int("blocksize", 2), str_attribute("mode", "CRD")]), "nn.space_to_depth");
}

#[test]
fn version_6_repeats_the_second_operand_where_it_is_told_to() {
    let (broadcast, axis) = (int_attribute("broadcast", 1), |a| int_attribute("axis", a));
    type Extents = [&'static [i64]; 2];
    let cases: [(&str, Extents, Vec<AttributeProto>, &str); 9] = [
        ("Add", [&[2, 3], &[2, 3]], vec![], "add"),
        ("Add", [&[2, 3], &[3]], vec![], "onnx.Add"),
        ("Add", [&[2, 3], &[3]], vec![broadcast.clone()], "add"),
        ("Sub", [&[2, 3], &[3]], vec![broadcast.clone(), axis(1)], "subtract"),
        ("Div", [&[2, 3], &[1, 1]], vec![broadcast.clone()], "divide"),
        ("Pow", [&[2, 3], &[]], vec![broadcast.clone()], "power"),
        ("Mul", [&[2, 2], &[2]], vec![broadcast.clone(), axis(0)], "onnx.Mul"),
        ("Greater", [&[3], &[2, 3]], vec![broadcast.clone()], "onnx.Greater"),
        ("Less", [&[4, 2, 3], &[2, 3]], vec![broadcast.clone()], "less"),
    ];
    for (op, inputs, attribute, expected) in cases {
        let m = one_node(6, op, &inputs, attribute.clone());
        assert_eq!(calls(&m), expected, "{op} {inputs:?} {attribute:?}");
        let back = again(&m).graph.unwrap().node[0].clone();
        assert_eq!((back.op_type(), &back.input[..]), (op, &["x0".to_owned(), "x1".to_owned()][..]));
        let repeats = back.attribute.iter().any(|a| a.name() == "broadcast" && a.i() == 1);
        assert_eq!(repeats, inputs[0] != inputs[1] && !attribute.is_empty(), "{op} {inputs:?}");
    }
}

#[test]
fn version_6_says_what_it_broadcasts_and_what_is_for_training() {
    let gemm = |c: &[i64], attribute| calls(&one_node(6, "Gemm", &[&[2, 3], &[3, 4], c], attribute));
    let broadcast = || vec![int_attribute("broadcast", 1)];
    assert_eq!(gemm(&[4], broadcast()), "nn.gemm");
    assert_eq!(gemm(&[2, 4], vec![]), "nn.gemm");
    assert_eq!(gemm(&[4], vec![]), "onnx.Gemm");
    assert_eq!(gemm(&[3], broadcast()), "onnx.Gemm");
    let back = again(&one_node(6, "Gemm", &[&[2, 3], &[3, 4], &[4]], broadcast())).graph.unwrap();
    assert_eq!(back.node[0].attribute, broadcast());

    let norm = |attribute| one_node(6, "BatchNormalization", &[&[1, 3, 2], &[3], &[3], &[3], &[3]], attribute);
    let (is_test, spatial) = (int_attribute("is_test", 1), int_attribute("spatial", 0));
    assert_eq!(calls(&norm(vec![])), "onnx.BatchNormalization");
    assert_eq!(calls(&norm(vec![is_test.clone(), spatial])), "onnx.BatchNormalization");
    assert_eq!(calls(&norm(vec![is_test.clone()])), "nn.batch_norm");
    let back = again(&norm(vec![is_test.clone()])).graph.unwrap();
    assert!(back.node[0].attribute.contains(&is_test), "{:?}", back.node[0]);

    // Operators that version 7 did not change have the same meaning in version 6.
    assert_eq!(calls(&one_node(6, "Sigmoid", &[&[2]], vec![])), "sigmoid");
    assert_eq!(calls(&one_node(5, "Sigmoid", &[&[2]], vec![])), "onnx.Sigmoid");
}

/// Lists that became operands in later versions may be unknown. They become operands of our
/// operators and are written back as operands.
#[test]
fn lists_that_are_not_constant_come_back() {
    let list = |name: &str, n: i64| info(name, INT64, &[n]);
    let x = || float("x", &[2, 1, 6]);
    for (op, lists, outputs, attributes, native) in [
        ("Unsqueeze", vec![list("a", 1)], vec!["y"], vec![], "expand_dims"),
        ("Squeeze", vec![list("a", 1)], vec!["y"], vec![], "squeeze"),
        ("Split", vec![list("a", 2)], vec!["y", "z"], vec![int_attribute("axis", -1)], "split"),
        ("Slice", vec![list("a", 1), list("b", 1)], vec!["y"], vec![], "dynamic_strided_slice"),
        (
            "Slice",
            vec![list("a", 2), list("b", 2), list("c", 2), list("d", 2)],
            vec!["y"],
            vec![],
            "dynamic_strided_slice",
        ),
    ] {
        let names: Vec<&str> = ["x", "a", "b", "c", "d"][..1 + lists.len()].to_vec();
        let result =
            |&name: &&str| anfora_onnx::proto::ValueInfoProto { name: Some(name.into()), ..Default::default() };
        let results = outputs.iter().map(result).collect();
        let inputs = [x()].into_iter().chain(lists).collect();
        let m = model(13, graph("g", vec![node(op, &names, &outputs, attributes)], inputs, results));
        assert_eq!(calls(&m), native, "{op}");
        assert_eq!(again(&m).graph.unwrap().node, m.graph.unwrap().node, "{op}");
    }
}

/// Scattering and padding are written back unchanged, and only forms that a version has are
/// converted.
#[test]
fn writing_and_padding_come_back() {
    let (int, text) = (int_attribute, str_attribute);
    let x: &[i64] = &[3, 4];
    let two = Literal::splat(&[1, 2], 1i64);
    let updates = Literal::from_elements(&[1, 2], &[5f32, 7.0]).unwrap();
    let elements = || vec![two.clone(), updates.clone()];
    let point = || vec![two.clone(), Literal::splat(&[1], 2f32)];
    let value = || Literal::scalar(1.5f32);
    for (opset, op, constants, attributes, native) in [
        (9, "Scatter", elements(), vec![int("axis", 1)], "scatter_elements"),
        (11, "ScatterElements", elements(), vec![int("axis", -1)], "scatter_elements"),
        (16, "ScatterElements", elements(), vec![text("reduction", "add")], "scatter_elements"),
        (18, "ScatterElements", elements(), vec![text("reduction", "max")], "scatter_elements"),
        (15, "ScatterElements", elements(), vec![text("reduction", "add")], "onnx.ScatterElements"),
        (17, "ScatterElements", elements(), vec![text("reduction", "min")], "onnx.ScatterElements"),
        (11, "ScatterND", point(), vec![], "scatter_nd"),
        (16, "ScatterND", point(), vec![text("reduction", "mul")], "scatter_nd"),
        (16, "ScatterND", point(), vec![text("reduction", "max")], "onnx.ScatterND"),
        (7, "Pad", vec![], vec![ints_attribute("pads", &[0, 1, -1, 2])], "nn.pad"),
        (7, "Pad", vec![], vec![ints_attribute("pads", &[0, 1, 0, 2]), float_attribute("value", 1.5)], "nn.pad"),
        (10, "Pad", vec![], vec![ints_attribute("pads", &[0, 1, 0, 2]), text("mode", "edge")], "nn.pad"),
        (10, "Pad", vec![], vec![text("mode", "wrap"), ints_attribute("pads", &[0, 1, 0, 2])], "onnx.Pad"),
        (10, "Pad", vec![], vec![text("mode", "edge")], "onnx.Pad"),
        (11, "Pad", vec![ints(&[0, 1, 0, 2]), value()], vec![], "nn.pad"),
        (11, "Pad", vec![ints(&[0, 1, 0, 2])], vec![text("mode", "reflect")], "nn.pad"),
        (13, "Pad", vec![ints(&[1, 2]), value(), ints(&[-1])], vec![], "onnx.Pad"),
        (18, "Pad", vec![ints(&[1, 2]), value(), ints(&[-1])], vec![], "nn.pad"),
        (19, "Pad", vec![ints(&[0, 1, 0, 2])], vec![text("mode", "wrap")], "nn.pad"),
        (18, "CenterCropPad", vec![ints(&[5, 2])], vec![], "center_crop_pad"),
        (18, "CenterCropPad", vec![ints(&[5])], vec![ints_attribute("axes", &[-1])], "center_crop_pad"),
    ] {
        let m = with_constants(opset, op, x, &constants, attributes);
        assert_eq!(calls(&m), native, "{op} {opset}");
        let (back, original) = (again(&m).graph.unwrap(), m.graph.unwrap());
        assert_eq!((back.node, back.initializer), (original.node, original.initializer), "{op} {opset}");
    }
    for (op, extents) in [("ScatterElements", &[2i64][..]), ("ScatterND", &[2, 1])] {
        let inputs = vec![info("x", BOOL, &[4]), info("i", INT64, extents), info("u", BOOL, &[2])];
        let scatter = node(op, &["x", "i", "u"], &["y"], vec![text("reduction", "add")]);
        let m = model(18, graph("g", vec![scatter], inputs, vec![info("y", BOOL, &[4])]));
        assert_eq!(again(&m).graph.unwrap().node, m.graph.clone().unwrap().node);
        assert!(calls(&m).starts_with("scatter_"));
    }
    let pad = with_constants(18, "Pad", x, &[ints(&[1, 2]), value(), ints(&[-1])], vec![]);
    assert_eq!(shape_of_result(&pad), [3, 7]);
    let crop = with_constants(18, "CenterCropPad", x, &[ints(&[2])], vec![ints_attribute("axes", &[1])]);
    assert_eq!(shape_of_result(&crop), [3, 2]);
}
