//! Import and export of elementwise operators by version and element type.

use anfora_ir::Literal;
use anfora_onnx::convert::{float_attribute, int_attribute, ints_attribute, str_attribute};
use anfora_onnx::proto::{AttributeProto, ModelProto, ValueInfoProto};

use crate::models::{
    BOOL, FLOAT, INT64, again, graph, info, initializer, model, node, node_types, normalized, operators, read,
};

const UINT8: i32 = 2;
const INT32: i32 = 6;
const STRING: i32 = 8;
const FLOAT16: i32 = 10;
const DOUBLE: i32 = 11;

/// Returns a model of a single node with inputs of these element types and two elements each. A
/// type of 0 is an input that is left out.
fn of_types(opset: i64, op: &str, types: &[i32], attributes: Vec<AttributeProto>) -> ModelProto {
    let names: Vec<String> = (0..types.len()).map(|i| format!("x{i}")).collect();
    let inputs: Vec<&str> = names.iter().zip(types).map(|(n, &t)| if t == 0 { "" } else { n.as_str() }).collect();
    let infos = names.iter().zip(types).filter(|t| *t.1 != 0).map(|(n, &t)| info(n, t, &[2])).collect();
    let output = ValueInfoProto { name: Some("y".into()), ..ValueInfoProto::default() };
    model(opset, graph("g", vec![node(op, &inputs, &["y"], attributes)], infos, vec![output]))
}

fn call(model: &ModelProto) -> String {
    operators(&read(model)).join(" ")
}

/// Asserts that a node becomes this single call and is written back as the same node.
fn goes_and_comes(opset: i64, op: &str, types: &[i32], attributes: Vec<AttributeProto>, native: &str) {
    let m = of_types(opset, op, types, attributes);
    assert_eq!(call(&m), native, "{op} in version {opset}");
    let (back, m) = (normalized(again(&m)), normalized(m));
    assert_eq!(back.graph.unwrap().node, m.graph.unwrap().node, "{op} in version {opset}");
}

fn alpha(value: f64) -> Vec<AttributeProto> {
    vec![float_attribute("alpha", value)]
}

#[test]
fn operators_without_attributes() {
    for (opset, op, types, native) in [
        (1, "Not", &[BOOL][..], "logical_not"),
        (9, "Where", &[BOOL, INT64, INT64], "where"),
        (18, "BitwiseAnd", &[UINT8, UINT8], "bitwise_and"),
        (18, "BitwiseOr", &[INT64, INT64], "bitwise_or"),
        (18, "BitwiseXor", &[INT32, INT32], "bitwise_xor"),
        (18, "BitwiseNot", &[INT32], "bitwise_not"),
        (13, "Reciprocal", &[FLOAT], "reciprocal"),
        (8, "Sum", &[FLOAT, FLOAT, FLOAT], "add_n"),
        (8, "Mean", &[FLOAT, FLOAT], "mean_n"),
        (13, "Max", &[INT64, INT64, INT64, INT64], "maximum_n"),
        (13, "Min", &[FLOAT16, FLOAT16, FLOAT16], "minimum_n"),
        (13, "Max", &[FLOAT, FLOAT], "maximum"),
        (7, "Pow", &[FLOAT, FLOAT], "power"),
        (12, "Pow", &[FLOAT, INT64], "power"),
        (15, "Pow", &[INT32, DOUBLE], "power"),
        (10, "Mod", &[INT64, INT64], "floor_mod"),
        (28, "Mod", &[FLOAT, FLOAT], "floor_mod"),
        (9, "PRelu", &[INT64, INT64], "nn.prelu"),
        (14, "HardSwish", &[FLOAT], "nn.hard_swish"),
        (18, "Mish", &[FLOAT], "nn.mish"),
        (1, "Softplus", &[FLOAT], "nn.softplus"),
        (22, "Softsign", &[FLOAT16], "nn.softsign"),
        (11, "Clip", &[FLOAT], "clip"),
    ] {
        goes_and_comes(opset, op, types, vec![], native);
    }
    for (opset, op, types) in [
        (17, "BitwiseAnd", &[UINT8, UINT8][..]),
        (27, "Mod", &[FLOAT, FLOAT]),
        (13, "Mean", &[FLOAT, STRING]),
        (15, "Equal", &[STRING, STRING]),
        (17, "Mish", &[FLOAT]),
    ] {
        assert_eq!(call(&of_types(opset, op, types, vec![])), format!("onnx.{op}"), "{opset}");
    }
}

#[test]
fn operators_of_one_operand_are_that_operand() {
    for op in ["Sum", "Mean", "Max", "Min"] {
        let m = of_types(13, op, &[FLOAT], vec![]);
        assert_eq!(call(&m), "", "{op}");
        assert_eq!(node_types(&again(&m)), ["Identity"], "{op}");
    }
}

#[test]
fn operators_with_attributes() {
    let direction = |d| vec![str_attribute("direction", d)];
    let to = |t: i32| vec![int_attribute("to", t.into())];
    for (opset, op, types, attributes, native) in [
        (11, "BitShift", &[UINT8, UINT8][..], direction("LEFT"), "left_shift"),
        (28, "BitShift", &[INT32, INT32], direction("RIGHT"), "right_shift"),
        (10, "Mod", &[FLOAT, FLOAT], vec![int_attribute("fmod", 1)], "mod"),
        (10, "IsInf", &[FLOAT], vec![], "isinf"),
        (20, "IsInf", &[FLOAT16], vec![int_attribute("detect_negative", 0)], "isinf"),
        (20, "IsInf", &[FLOAT], vec![int_attribute("detect_positive", 0)], "isinf"),
        (9, "Cast", &[FLOAT], to(INT64), "astype"),
        (19, "Cast", &[FLOAT], vec![int_attribute("to", 7), int_attribute("saturate", 0)], "astype"),
        (26, "BitCast", &[FLOAT], to(INT32), "bitcast"),
        (26, "BitCast", &[BOOL], to(UINT8), "bitcast"),
        (7, "LeakyRelu", &[FLOAT], alpha(0.2), "nn.leaky_relu"),
        (7, "LeakyRelu", &[FLOAT], vec![], "nn.leaky_relu"),
        (7, "LeakyRelu", &[DOUBLE], alpha(0.2), "nn.leaky_relu"),
        (10, "ThresholdedRelu", &[FLOAT], alpha(2.0), "nn.thresholded_relu"),
        (7, "Elu", &[FLOAT], alpha(0.5), "nn.elu"),
        (12, "Celu", &[FLOAT], alpha(0.5), "nn.celu"),
        (28, "Celu", &[FLOAT16], vec![], "nn.celu"),
        (7, "Selu", &[FLOAT], vec![], "nn.selu"),
        (7, "Selu", &[DOUBLE], vec![float_attribute("gamma", 1.5)], "nn.selu"),
        (7, "HardSigmoid", &[DOUBLE], vec![], "nn.hard_sigmoid"),
        (22, "HardSigmoid", &[FLOAT16], vec![float_attribute("beta", 0.25)], "nn.hard_sigmoid"),
        (24, "Swish", &[FLOAT], alpha(1.5), "nn.silu"),
        (28, "SwiGLU", &[FLOAT, FLOAT], vec![], "nn.swiglu"),
        (9, "Shrink", &[FLOAT], vec![float_attribute("bias", 1.5), float_attribute("lambd", 1.5)], "nn.shrink"),
        (20, "Gelu", &[FLOAT], vec![str_attribute("approximate", "tanh")], "nn.gelu"),
    ] {
        goes_and_comes(opset, op, types, attributes, native);
    }
    for (opset, op, types, attributes) in [
        (27, "BitShift", &[INT32, INT32][..], direction("LEFT")),
        (11, "BitShift", &[UINT8, UINT8], direction("UP")),
        (11, "BitShift", &[UINT8, UINT8], vec![]),
        (10, "IsInf", &[FLOAT], vec![int_attribute("detect_positive", 2)]),
        (9, "Cast", &[FLOAT], to(STRING)),
        (26, "BitCast", &[UINT8], to(BOOL)),
        (9, "Shrink", &[INT32], vec![]),
        (11, "Clip", &[FLOAT], vec![float_attribute("min", 0.0)]),
        (7, "Elu", &[FLOAT], vec![ints_attribute("alpha", &[1])]),
    ] {
        assert_eq!(call(&of_types(opset, op, types, attributes)), format!("onnx.{op}"), "{opset}");
    }
}

#[test]
fn a_cast_like_another_is_a_cast() {
    let m = of_types(19, "CastLike", &[FLOAT, INT32], vec![int_attribute("saturate", 0)]);
    assert_eq!(call(&m), "astype");
    let back = again(&m).graph.unwrap();
    let attributes = vec![int_attribute("to", INT32.into()), int_attribute("saturate", 0)];
    assert_eq!((back.node[0].op_type(), &back.node[0].attribute), ("Cast", &attributes));
}

#[test]
fn bounds_move_from_attributes_to_operands() {
    let bounds = |min: f64, max: f64| vec![float_attribute("max", max), float_attribute("min", min)];
    for ty in [FLOAT, FLOAT16, DOUBLE] {
        goes_and_comes(6 + 1, "Clip", &[ty], bounds(-0.5, 6.0), "clip");
        goes_and_comes(10, "Clip", &[ty], bounds(f64::NEG_INFINITY, 6.0), "clip");
    }
    goes_and_comes(10, "Clip", &[FLOAT], vec![], "clip");
    let text = read(&of_types(10, "Clip", &[FLOAT], vec![])).to_string();
    assert!(text.contains("-3.4028235e38f") || text.contains("-3.4028235e+38f"), "{text}");

    // A bound that is left out is written back as left out, also between other inputs.
    let clip = |opset: i64, min: Option<Literal>, max: Option<Literal>| {
        let name = |bound: &Option<Literal>, name| if bound.is_some() { name } else { "" };
        let inputs = ["x", name(&min, "min"), name(&max, "max")];
        let output = ValueInfoProto { name: Some("y".into()), ..ValueInfoProto::default() };
        let mut g = graph("g", vec![node("Clip", &inputs, &["y"], vec![])], vec![info("x", INT64, &[2])], vec![output]);
        g.initializer.extend(min.map(|l| initializer("min", &l)));
        g.initializer.extend(max.map(|l| initializer("max", &l)));
        model(opset, g)
    };
    let five = || Some(Literal::scalar(5i64));
    for m in [clip(13, None, five()), clip(13, five(), five())] {
        assert_eq!(call(&m), "clip");
        let (back, m) = (normalized(again(&m)).graph.unwrap(), normalized(m).graph.unwrap());
        assert_eq!((back.node, back.initializer), (m.node, m.initializer));
    }
    let back = again(&clip(13, five(), None)).graph.unwrap();
    assert_eq!(back.node[0].input, ["x", "min"]);
}
