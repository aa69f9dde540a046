//! Resize and Upsample, by version of the operators.

use anfora_ir::Literal;
use anfora_onnx::convert::{float_attribute, floats_attribute, int_attribute, ints_attribute, str_attribute};
use anfora_onnx::proto::{AttributeProto, ModelProto, ValueInfoProto};

use crate::models::{INT64, again, float, graph, info, initializer, ints, model, node, operators, read};

fn floats(values: &[f32]) -> Literal {
    Literal::from_elements(&[values.len()], values).unwrap()
}

/// Returns a model of a node on an image. `inputs` are its other inputs, with the values of those
/// that are constants.
fn resize(opset: i64, op: &str, inputs: &[(&str, Option<Literal>)], attributes: Vec<AttributeProto>) -> ModelProto {
    let mut names = vec!["x"];
    names.extend(inputs.iter().map(|(name, _)| *name));
    let y = ValueInfoProto { name: Some("y".into()), ..Default::default() };
    let mut g = graph("g", vec![node(op, &names, &["y"], attributes)], vec![float("x", &[1, 1, 4, 6])], vec![y]);
    g.initializer = inputs.iter().filter_map(|(name, value)| Some(initializer(name, value.as_ref()?))).collect();
    for (name, _) in inputs.iter().filter(|(name, value)| value.is_none() && !name.is_empty()) {
        g.input.push(if *name == "sizes" { info(name, INT64, &[4]) } else { float(name, &[4]) });
    }
    model(opset, g)
}

/// Asserts that a node is written back unchanged. Returns the operator that it becomes and the type
/// of its result.
fn becomes(model: &ModelProto) -> String {
    let mut back = again(model).graph.unwrap();
    let mut original = model.graph.clone().unwrap();
    for node in back.node.iter_mut().chain(&mut original.node) {
        node.attribute.sort_by(|a, b| a.name().cmp(b.name()));
        // A default need not be stated.
        node.attribute.retain(|a| *a != mode("nearest"));
    }
    assert_eq!(back.node, original.node);
    for tensor in &back.initializer {
        assert!(original.initializer.contains(tensor), "{tensor:?}");
    }
    kind(model)
}

fn kind(model: &ModelProto) -> String {
    let module = read(model);
    let main = module.get(module.find("main").unwrap()).unwrap();
    let ty = module.cx.type_text(main.body.type_of(main.body.root())).to_string();
    format!("{} {ty}", operators(&module).join(" "))
}

fn mode(value: &str) -> AttributeProto {
    str_attribute("mode", value)
}

fn place(value: &str) -> AttributeProto {
    str_attribute("coordinate_transformation_mode", value)
}

const DOUBLED: &str = "image.resize Tensor[(1, 1, 8, 12), float32]";

#[test]
fn upsample_has_its_scales_in_an_attribute_or_an_operand() {
    let scales = || floats(&[1.0, 1.0, 2.0, 2.0]);
    for m in [mode("nearest"), mode("linear")] {
        let attribute = vec![m.clone(), floats_attribute("scales", &[1.0, 1.0, 2.0, 2.0])];
        assert_eq!(becomes(&resize(7, "Upsample", &[], attribute)), DOUBLED);
        assert_eq!(becomes(&resize(9, "Upsample", &[("s", Some(scales()))], vec![m])), DOUBLED);
    }
    let open = resize(9, "Upsample", &[("s", None)], vec![]);
    assert_eq!(becomes(&open), "image.resize Tensor[(?, ?, ?, ?), float32]");
    let less = resize(9, "Upsample", &[("s", Some(floats(&[1.0, 1.0, 0.5, 2.0])))], vec![]);
    assert!(becomes(&less).starts_with("onnx.Upsample"));
    assert!(becomes(&resize(10, "Upsample", &[("s", Some(scales()))], vec![])).starts_with("onnx.Upsample"));
    assert!(becomes(&resize(9, "Upsample", &[("s", Some(scales()))], vec![mode("cubic")])).starts_with("onnx."));
}

#[test]
fn the_first_resize_is_from_the_corner() {
    let m = |scales: Option<&[f32]>, m: &str| resize(10, "Resize", &[("s", scales.map(floats))], vec![mode(m)]);
    assert_eq!(becomes(&m(Some(&[1.0, 1.0, 2.0, 2.0]), "nearest")), DOUBLED);
    assert_eq!(becomes(&m(Some(&[1.0, 1.0, 0.5, 2.0]), "linear")), "image.resize Tensor[(1, 1, 2, 12), float32]");
    assert!(becomes(&m(Some(&[1.0, 1.0, 0.5, 2.0]), "nearest")).starts_with("onnx.Resize"));
    assert!(becomes(&m(None, "nearest")).starts_with("onnx.Resize"));
    assert!(becomes(&m(None, "linear")).starts_with("image.resize"));
}

#[test]
fn sizes_or_scales() {
    let none = || Some(floats(&[]));
    let (scales, sizes) = (|| Some(floats(&[1.0, 1.0, 2.0, 2.0])), || Some(ints(&[1, 1, 8, 12])));
    for opset in [11, 12] {
        let m = resize(opset, "Resize", &[("roi", none()), ("scales", scales())], vec![mode("cubic")]);
        assert_eq!(becomes(&m), DOUBLED);
        let inputs = [("roi", none()), ("scales", none()), ("sizes", sizes())];
        let m = resize(opset, "Resize", &inputs, vec![place("tf_half_pixel_for_nn")]);
        assert_eq!(kind(&m), DOUBLED);
        let back = again(&m).graph.unwrap();
        assert_eq!((back.node[0].input.len(), back.node[0].input[3].as_str()), (4, "sizes"));
    }
    for opset in [13, 18, 28] {
        assert_eq!(becomes(&resize(opset, "Resize", &[("", None), ("scales", scales())], vec![])), DOUBLED);
        let inputs = [("", None), ("", None), ("sizes", sizes())];
        assert_eq!(becomes(&resize(opset, "Resize", &inputs, vec![place("align_corners"), mode("linear")])), DOUBLED);
        let open = [("", None), ("", None), ("sizes", None)];
        let unknown = "image.resize Tensor[(?, ?, ?, ?), float32]";
        assert_eq!(becomes(&resize(opset, "Resize", &open, vec![str_attribute("nearest_mode", "ceil")])), unknown);
        let both = [("", None), ("scales", scales()), ("sizes", sizes())];
        assert!(becomes(&resize(opset, "Resize", &both, vec![])).starts_with("onnx.Resize"));
        let dropped = kind(&resize(opset, "Resize", &[("roi", none()), ("scales", scales())], vec![]));
        assert_eq!(dropped, DOUBLED, "a region counts for `tf_crop_and_resize` alone");
    }
    let old = resize(13, "Resize", &[("", None), ("scales", scales())], vec![place("tf_half_pixel_for_nn")]);
    assert!(becomes(&old).starts_with("onnx.Resize"));
}

#[test]
fn what_later_versions_added() {
    let sizes = || [("", None), ("", None), ("sizes", Some(ints(&[3, 3])))];
    let added = || {
        vec![
            int_attribute("antialias", 1),
            int_attribute("exclude_outside", 1),
            ints_attribute("axes", &[-1, 2]),
            float_attribute("cubic_coeff_a", -0.5),
            mode("cubic"),
            str_attribute("keep_aspect_ratio_policy", "not_larger"),
        ]
    };
    assert_eq!(becomes(&resize(18, "Resize", &sizes(), added())), "image.resize Tensor[(1, 1, 2, 3), float32]");
    assert!(becomes(&resize(17, "Resize", &sizes(), added())).starts_with("onnx.Resize"));
    let scales = || [("", None), ("scales", Some(floats(&[1.0, 1.0, 0.7, 1.0])))];
    let symmetric = |opset| resize(opset, "Resize", &scales(), vec![place("half_pixel_symmetric"), mode("linear")]);
    assert_eq!(becomes(&symmetric(19)), "image.resize Tensor[(1, 1, 2, 6), float32]");
    assert!(becomes(&symmetric(18)).starts_with("onnx.Resize"));
    let weightless = resize(18, "Resize", &scales(), vec![int_attribute("antialias", 1)]);
    assert!(becomes(&weightless).starts_with("onnx.Resize"));
}

#[test]
fn a_region_is_another_operator_of_ours() {
    let region = || ("roi", Some(floats(&[0.0, 0.0, 0.25, 0.5, 1.0, 1.0, 0.75, 2.0])));
    let attributes = || vec![float_attribute("extrapolation_value", 3.5), mode("linear"), place("tf_crop_and_resize")];
    let none = || Some(floats(&[]));
    let m = resize(11, "Resize", &[region(), ("scales", none()), ("sizes", Some(ints(&[1, 1, 2, 3])))], attributes());
    assert_eq!(kind(&m), "image.crop_and_resize Tensor[(1, 1, 2, 3), float32]");
    let m = resize(
        13,
        "Resize",
        &[region(), ("", None), ("sizes", Some(ints(&[1, 1, 2, 3])))],
        vec![mode("linear"), place("tf_crop_and_resize"), float_attribute("extrapolation_value", 3.5)],
    );
    assert_eq!(becomes(&m), "image.crop_and_resize Tensor[(1, 1, 2, 3), float32]");
    let scales = resize(13, "Resize", &[region(), ("scales", Some(floats(&[1.0; 4])))], attributes());
    assert!(becomes(&scales).starts_with("onnx.Resize"));
    let nowhere = resize(13, "Resize", &[("", None), ("", None), ("sizes", Some(ints(&[1, 1, 2, 3])))], attributes());
    assert!(becomes(&nowhere).starts_with("onnx.Resize"));
}

#[test]
fn integers_are_moved_but_not_mixed() {
    let m = |how: &str| {
        let mut m =
            resize(18, "Resize", &[("", None), ("scales", Some(floats(&[1.0, 1.0, 2.0, 2.0])))], vec![mode(how)]);
        let g = m.graph.as_mut().unwrap();
        g.input[0] = info("x", INT64, &[1, 1, 4, 6]);
        becomes(&m)
    };
    assert_eq!(m("nearest"), "image.resize Tensor[(1, 1, 8, 12), int64]");
    assert!(m("linear").starts_with("onnx.Resize"));
}
