//! Operators of an embedder, in a domain of its own.

use std::sync::Arc;

use anfora_ir::{Arity, AttrDef, AttrDefault, AttrKind, Module, OpDef, OpRegistry, Source, parse_module};
use anfora_onnx::convert::{Conversion, Conversions, int_attribute};
use anfora_onnx::proto::{AttributeType, ModelProto, OperatorSetIdProto};
use anfora_onnx::{ExportError, ExportOptions, ExportProblem, ImportOptions, Imported, export, import};
use anfora_ops::typing::{Elements, elementwise};
use prost::Message;

use crate::models::{float, graph, model, node};

const ATTRS: &[AttrDef] = &[
    AttrDef::new("flag", AttrKind::Bool, AttrDefault::Bool(false), ""),
    AttrDef::new("count", AttrKind::Int, AttrDefault::Int(1), ""),
    AttrDef::new("factor", AttrKind::Float, AttrDefault::Float(1.5), ""),
    AttrDef::new("mode", AttrKind::Str, AttrDefault::Str("plain"), ""),
    AttrDef::new("axes", AttrKind::Ints, AttrDefault::Ints(&[0]), ""),
    AttrDef::new("scales", AttrKind::Floats, AttrDefault::Absent, ""),
    AttrDef::new("labels", AttrKind::Strs, AttrDefault::Absent, ""),
    AttrDef::new("own", AttrKind::Any, AttrDefault::Absent, ""),
];

fn registry() -> Arc<OpRegistry> {
    let mut registry = OpRegistry::clone(&anfora_onnx::registry());
    for (name, arity) in [("acme.all", Arity::between(1, 3)), ("acme.late", Arity::exactly(1))] {
        let row = OpDef::new(name, "for tests", arity, |call| elementwise(call, Elements::Float));
        registry.register(row.attrs(ATTRS)).unwrap();
    }
    Arc::new(registry)
}

fn conversions() -> Conversions {
    let mut table = Conversions::default();
    table.register(Conversion::new("All", 1..=9, "acme.all").domain("com.acme").same(&[
        ("flag", AttributeType::Int),
        ("count", AttributeType::Int),
        ("factor", AttributeType::Float),
        ("mode", AttributeType::String),
        ("axes", AttributeType::Ints),
        ("scales", AttributeType::Floats),
        ("labels", AttributeType::Strings),
    ]));
    table.register(Conversion::new("Late", 3..=9, "acme.late").domain("com.acme").same(&[]));
    table
}

fn parse(body: &str) -> Module {
    let text = format!("def @main(%x: Tensor[(n,), float32], %d: Tensor[(n,), float64]) {{ {body} }}");
    parse_module(Source::new("test", text), registry()).map_err(|e| e[0].to_string()).unwrap()
}

fn write(module: &Module) -> Result<ModelProto, ExportError> {
    let options = ExportOptions { conversions: conversions(), ..ExportOptions::default() };
    export(module, &options).map(|e| ModelProto::decode(e.bytes.as_slice()).unwrap())
}

fn read(model: &ModelProto) -> Imported {
    let options = ImportOptions { registry: registry(), conversions: conversions(), ..ImportOptions::default() };
    import(model.encode_to_vec().into(), &options).unwrap()
}

fn version(model: &ModelProto, domain: &str) -> Option<i64> {
    model.opset_import.iter().find(|o| o.domain() == domain).map(OperatorSetIdProto::version)
}

#[test]
fn attributes_of_every_kind_go_there_and_back() {
    let call = "acme.all(%x, none, %x, flag=true, count=-7, factor=0.1, mode=\"né\", axes=[2, -1], scales=[0.5, 0.2], labels=[\"a\", \"\"])";
    let model = write(&parse(&format!("let %y = {call}; let %z = acme.all(%y); %z"))).unwrap();
    let nodes = &model.graph.as_ref().unwrap().node;
    assert_eq!((nodes[0].op_type(), nodes[0].domain(), nodes[0].attribute.len()), ("All", "com.acme", 7));
    assert_eq!(nodes[0].input, ["x", "", "x"]);
    let factor = nodes[0].attribute.iter().find(|a| a.name() == "factor").unwrap();
    assert_eq!((factor.r#type(), factor.f()), (AttributeType::Float, 0.1));
    assert!(nodes[1].attribute.is_empty(), "what is the default is not written");
    let back = read(&model);
    assert!(back.kept.is_empty());
    let text = back.module.to_text();
    for part in [
        "none, %x",
        "flag=true",
        "count=-7",
        "factor=0.1",
        "mode=\"né\"",
        "axes=[2, -1]",
        "scales=[0.5, 0.2]",
        "labels=[\"a\", \"\"]",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("let %z = acme.all(%y);"), "{text}");
}

#[test]
fn what_onnx_cannot_hold_is_refused() {
    for (body, why) in [
        ("acme.all(%d, factor=0.1)", "the value of the attribute `factor` of `acme.all`"),
        ("acme.all(%x, factor=0.12345678901234)", "the value of the attribute `factor` of `acme.all`"),
        ("acme.all(%d, scales=[0.5, 0.1])", "the value of the attribute `scales` of `acme.all`"),
        ("acme.all(%x, own=1)", "the attribute `own` of `acme.all`"),
    ] {
        match write(&parse(body)).map_err(|e| e.problem) {
            Err(ExportProblem::Unsupported(what)) => assert_eq!(what, why),
            other => panic!("{body}: {other:?}"),
        }
    }
    assert!(write(&parse("acme.all(%d, factor=0.25)")).is_ok());
    let nothing = export(&parse("acme.all(%x)"), &ExportOptions::default()).unwrap_err();
    assert!(matches!(nothing.problem, ExportProblem::Operator(op) if op == "acme.all"));
}

#[test]
fn the_version_of_a_domain_is_the_first_that_has_all() {
    let early = write(&parse("acme.all(%x)")).unwrap();
    assert_eq!((version(&early, "com.acme"), version(&early, "")), (Some(1), Some(18)));
    let late = write(&parse("let %y = acme.all(%x); let %z = nn.gelu(%y); acme.late(%z)")).unwrap();
    assert_eq!((version(&late, "com.acme"), version(&late, "")), (Some(3), Some(20)));
    assert!(read(&late).kept.is_empty());
    // A version that a file states is not changed.
    let text = read(&early).module.to_text().replace("acme.all(%x)", "acme.late(%x)");
    let stated = parse_module(Source::new("test", text), registry()).map_err(|e| e[0].to_string()).unwrap();
    match write(&stated).map_err(|e| e.problem) {
        Err(ExportProblem::Opset { operator, domain, needed, present }) => {
            assert_eq!((operator.as_str(), domain.as_str(), needed, present), ("acme.late", "com.acme", 3, 1));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_node_with_a_value_that_is_not_known_is_kept() {
    let with = |attribute, opset| {
        let mut all = node("All", &["x"], &["y"], vec![attribute]);
        all.domain = Some("com.acme".into());
        let mut m = model(18, graph("g", vec![all], vec![float("x", &[2])], vec![float("y", &[2])]));
        m.opset_import.push(OperatorSetIdProto { domain: Some("com.acme".into()), version: Some(opset) });
        let read = read(&m);
        read.kept.first().map_or_else(String::new, |k| k.reason.clone())
    };
    assert_eq!(with(int_attribute("flag", 1), 2), "");
    assert_eq!(with(int_attribute("flag", 2), 2), "the value of the attribute `flag` is not known");
    assert_eq!(with(int_attribute("flag", 1), 10), "its meaning is known in versions 1 to 9");
    assert_eq!(with(int_attribute("more", 1), 2), "the attribute `more` is not known");
}

#[test]
fn a_later_row_replaces_the_meaning_of_a_standard_operator() {
    let mut table = conversions();
    table.register(Conversion::new("Relu", 7..=28, "acme.all").domain("ai.onnx").same(&[]));
    let m = model(
        18,
        graph("g", vec![node("Relu", &["x"], &["y"], vec![])], vec![float("x", &[2])], vec![float("y", &[2])]),
    );
    let options = ImportOptions { registry: registry(), conversions: table, ..ImportOptions::default() };
    let module = import(m.encode_to_vec().into(), &options).unwrap().module;
    assert!(module.to_text().contains("acme.all(%x)"), "{module}");
}
