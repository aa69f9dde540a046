//! Functions of a file, in any domain. They become functions of the module when they are called,
//! and are written back as functions of their domain.

use anfora_ir::{Module, Visibility, alpha_equal};
use anfora_onnx::convert::{float_attribute, int_attribute, ints_attribute};
use anfora_onnx::proto::{
    AttributeProto, AttributeType, FunctionProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto,
};
use anfora_onnx::{ImportOptions, import};
use bytes::Bytes;
use prost::Message;

use crate::models::{
    BOOL, float, graph, graph_attribute, info, model, node, normalized, operators, read, tensor_type, try_read, typed,
    write,
};

const DOMAIN: &str = "com.example";

fn import_of(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) }
}

fn function(name: &str, inputs: &[&str], outputs: &[&str], node: Vec<NodeProto>) -> FunctionProto {
    let names = |list: &[&str]| list.iter().map(|s| s.to_string()).collect();
    FunctionProto {
        name: Some(name.into()),
        domain: Some(DOMAIN.into()),
        input: names(inputs),
        output: names(outputs),
        node,
        opset_import: vec![import_of("", 18), import_of(DOMAIN, 1)],
        ..FunctionProto::default()
    }
}

fn call(op: &str, inputs: &[&str], outputs: &[&str], attributes: Vec<AttributeProto>) -> NodeProto {
    NodeProto { domain: Some(DOMAIN.into()), ..node(op, inputs, outputs, attributes) }
}

/// Returns a model with the inputs `x` of 4 floats, `y` of 3 floats, and `c`, a condition.
fn with(functions: Vec<FunctionProto>, nodes: Vec<NodeProto>, outputs: &[(&str, i64)]) -> ModelProto {
    let inputs = vec![float("x", &[4]), float("y", &[3]), info("c", BOOL, &[])];
    let outputs = outputs.iter().map(|&(name, n)| float(name, &[n])).collect();
    let mut m = model(18, graph("g", nodes, inputs, outputs));
    m.opset_import.push(import_of(DOMAIN, 1));
    m.functions = functions;
    m
}

fn referring(name: &str, ty: AttributeType, to: &str) -> AttributeProto {
    let mut a = AttributeProto { name: Some(name.into()), ref_attr_name: Some(to.into()), ..AttributeProto::default() };
    a.set_type(ty);
    a
}

fn assert_comes_back(model: &ModelProto) -> Module {
    let module = read(model);
    let back = write(&module);
    let (went, came) = (normalized(model.clone()), normalized(back.clone()));
    assert!(went == came, "went in:\n{went:#?}\ncame out:\n{came:#?}\n{module}");
    assert!(alpha_equal(&module, &read(&back)));
    module
}

fn reasons(model: &ModelProto) -> Vec<String> {
    let imported = import(Bytes::from(model.encode_to_vec()), &ImportOptions::default()).unwrap();
    imported.kept.iter().map(|k| k.reason.clone()).collect()
}

#[test]
fn it_is_one_of_the_module_and_comes_back() {
    let mut inner = function("inner", &["a"], &["b"], vec![node("Relu", &["a"], &["b"], vec![])]);
    inner.doc_string = Some("a doc".into());
    let outer = function(
        "outer",
        &["a", "k"],
        &["s", "b"],
        vec![call("inner", &["a"], &["b"], vec![]), node("Add", &["b", "k"], &["s"], vec![])],
    );
    let mut m = with(vec![inner, outer], vec![call("outer", &["x", "x"], &["u", "v"], vec![])], &[("u", 4), ("v", 4)]);
    m.functions[0].opset_import.truncate(1);
    let module = assert_comes_back(&m);
    let inner = module.get(module.find("inner").unwrap()).unwrap();
    assert_eq!(inner.visibility, Visibility::Private);
    assert_eq!(operators(&module), ["nn.relu", "add"]);
    // The format had such functions before it had types in them.
    assert_eq!(write(&module).ir_version, Some(8));
}

#[test]
fn calls_of_other_types_get_copies_that_are_one_function_again() {
    let f = function("f", &["a"], &["b"], vec![node("Relu", &["a"], &["b"], vec![])]);
    let nodes = vec![call("f", &["x"], &["u"], vec![]), call("f", &["y"], &["v"], vec![])];
    let mut m = with(vec![f], nodes, &[("u", 4), ("v", 3)]);
    m.functions[0].opset_import.truncate(1);
    let module = assert_comes_back(&m);
    assert_eq!(module.functions().count(), 3);
}

#[test]
fn one_function_has_a_symbol_that_several_state() {
    let symbol =
        StringStringEntryProto { key: Some("anfora.attribute.global_symbol".into()), value: Some("\"symbol\"".into()) };
    let function = |name| {
        let mut f = function(name, &["a"], &["b"], vec![node("Relu", &["a"], &["b"], vec![])]);
        f.opset_import.truncate(1);
        f.metadata_props = vec![symbol.clone()];
        f
    };
    // Two copies of one function, and another function.
    let calls = [("f", "x", "u"), ("f", "y", "v"), ("g", "x", "w")];
    let nodes = calls.map(|(f, input, output)| call(f, &[input], &[output], vec![])).into();
    let m = with(vec![function("f"), function("g")], nodes, &[("u", 4), ("v", 3), ("w", 4)]);
    let module = read(&m);
    assert_eq!(module.functions().count(), 4);
    assert_eq!(module.to_string().matches("global_symbol=\"symbol\"").count(), 1, "{module}");
    read(&write(&module));
}

#[test]
fn attributes_are_those_of_the_call() {
    let elu = node("LeakyRelu", &["a"], &["b"], vec![referring("alpha", AttributeType::Float, "slope")]);
    let branches = [("then_branch", "LeakyRelu"), ("else_branch", "Elu")].map(|(label, op)| {
        let n = node(op, &["b"], &["r"], vec![referring("alpha", AttributeType::Float, "other")]);
        graph_attribute(label, &graph(label, vec![n], vec![], vec![float("r", &[4])]))
    });
    let choose = node("If", &["c"], &["d"], branches.into());
    let mut f = function("f", &["a", "c"], &["d"], vec![elu, choose]);
    f.attribute = vec!["slope".into()];
    f.attribute_proto = vec![float_attribute("other", 0.25)];
    let nodes = vec![
        call("f", &["x", "c"], &["u"], vec![float_attribute("slope", 0.5)]),
        call("f", &["x", "c"], &["v"], vec![float_attribute("slope", 0.5), float_attribute("other", 2.0)]),
        call("f", &["x", "c"], &["w"], vec![]),
        call("f", &["x", "c"], &["z"], vec![float_attribute("slope", 0.5)]),
    ];
    let m = with(vec![f], nodes, &[("u", 4), ("v", 4), ("w", 4), ("z", 4)]);
    let module = read(&m);
    let text = module.to_string();
    assert_eq!(module.functions().count(), 4, "{text}");
    // A call that does not give the slope uses the operator's default.
    for value in ["alpha=0.5", "alpha=0.25", "alpha=2"] {
        assert!(text.contains(value), "`{value}` is not in {text}");
    }
    assert_eq!(text.matches("alpha=0.5").count(), 2, "{text}");
    let back = write(&module);
    let names: Vec<&str> = back.functions.iter().map(FunctionProto::name).collect();
    assert_eq!(names, ["f", "f_1", "f_2"]);
    assert!(back.functions.iter().all(|f| f.domain() == DOMAIN && f.attribute.is_empty()));
    assert!(alpha_equal(&module, &read(&back)), "{module}");
}

/// Each reference decodes its value separately, so a file of a few megabytes could otherwise take
/// hours.
#[test]
fn attributes_that_stand_in_too_many_places_keep_the_calls_as_they_are() {
    let of_references = |count: usize| {
        let constant =
            |i| node("Constant", &[], &[&format!("k{i}")], vec![referring("value_ints", AttributeType::Ints, "table")]);
        let mut nodes: Vec<NodeProto> = (0..count).map(constant).collect();
        nodes.push(node("Relu", &["a"], &["b"], vec![]));
        let mut f = function("f", &["a"], &["b"], nodes);
        f.attribute_proto = vec![ints_attribute("table", &(0..10_000).collect::<Vec<i64>>())];
        with(vec![f], vec![call("f", &["x"], &["u"], vec![])], &[("u", 4)])
    };
    assert_eq!(reasons(&of_references(20)), [""; 0]);
    let reasons = reasons(&of_references(2_000));
    let [reason] = reasons.as_slice() else { panic!("{reasons:?}") };
    assert!(reason.contains("its function cannot be one of the module") && reason.contains("refer"), "{reason}");
}

#[test]
fn constants_stay_in_it() {
    let value =
        anfora_onnx::proto::AttributeProto { ..anfora_onnx::convert::floats_attribute("value_floats", &[1.0, 2.0]) };
    let nodes = vec![
        node("Constant", &[], &["k"], vec![value]),
        node("Concat", &["a", "k"], &["b"], vec![int_attribute("axis", 0)]),
    ];
    let f = function("f", &["a"], &["b"], nodes);
    let mut m = with(vec![f], vec![call("f", &["x"], &["u"], vec![])], &[("u", 6)]);
    m.functions[0].opset_import.truncate(1);
    assert_comes_back(&m);
}

#[test]
fn inputs_may_be_left_out() {
    let f = function("f", &["a", "low", "high"], &["b"], vec![node("Clip", &["a", "low", "high"], &["b"], vec![])]);
    let nodes = vec![call("f", &["x"], &["u"], vec![]), call("f", &["x", "", "k"], &["v"], vec![])];
    let mut m = with(vec![f], nodes, &[("u", 4), ("v", 4)]);
    m.graph.as_mut().unwrap().input.push(float("k", &[]));
    let module = read(&m);
    assert_eq!(module.functions().count(), 3, "{module}");
    let back = write(&module);
    let inputs: Vec<usize> = back.functions.iter().map(|f| f.input.len()).collect();
    assert_eq!(inputs, [1, 2]);
    assert!(alpha_equal(&module, &read(&back)), "{module}");
}

#[test]
fn what_is_left_out_may_have_another_name() {
    let nodes = vec![node("Identity", &["low"], &["l"], vec![]), node("Clip", &["a", "l"], &["b"], vec![])];
    let f = function("f", &["a", "low"], &["b"], nodes);
    let m = with(vec![f], vec![call("f", &["x"], &["u"], vec![])], &[("u", 4)]);
    let module = read(&m);
    assert_eq!(operators(&module), ["clip"]);
    assert_eq!(write(&module).functions[0].node, [node("Clip", &["a"], &["b"], vec![])]);

    // No function of the module returns an operand that is left out.
    for nodes in [vec![node("Identity", &["low"], &["b"], vec![])], vec![]] {
        let mut f = function("f", &["a", "low"], &["b"], nodes);
        if f.node.is_empty() {
            f.output = vec!["low".into()];
        }
        let m = with(vec![f], vec![call("f", &["x"], &["u"], vec![])], &[("u", 4)]);
        let module = read(&m);
        assert_eq!(operators(&module), ["onnx.com.example.f"]);
        assert!(reasons(&m)[0].contains("an omitted output"), "{:?}", reasons(&m));
        assert_eq!(write(&module).functions, m.functions);
    }
}

#[test]
fn calls_and_what_their_function_declares() {
    // Calls take no time for inputs and attributes that they do not give, however many the function
    // declares.
    let count = anfora_testing::cases(500);
    let names = |prefix: &str| -> Vec<String> { (0..count).map(|i| format!("{prefix}{i}")).collect() };
    let mut f = function("f", &[], &["b"], vec![node("Neg", &["a0"], &["b"], vec![])]);
    f.input = names("a");
    f.attribute = names("p");
    f.attribute_proto = names("q").iter().map(|name| int_attribute(name, 1)).collect();
    f.opset_import.extend(names("org.d").iter().map(|domain| import_of(domain, 1)));
    let nodes = names("u").iter().map(|u| call("f", &["x"], &[u], vec![])).collect();
    let mut m = with(vec![f], nodes, &[("u0", 4)]);
    // Many functions that fail to be imported, and as many reasons why nodes are kept.
    for name in names("broken") {
        m.functions.push(function(&name, &["a"], &["b"], vec![node("Relu", &["nowhere"], &["b"], vec![])]));
        let graph = m.graph.as_mut().unwrap();
        graph.node.push(call(&name, &["x"], &[&format!("of_{name}")], vec![]));
    }
    // Many functions, and as many domains.
    for name in names("plain") {
        m.functions.push(function(&name, &["a"], &["b"], vec![node("Neg", &["a"], &["b"], vec![])]));
        let graph = m.graph.as_mut().unwrap();
        graph.node.push(call(&name, &["x"], &[&format!("of_{name}")], vec![]));
    }
    m.opset_import.extend(names("org.e").iter().map(|domain| import_of(domain, 1)));
    let module = read(&m);
    assert_eq!(module.functions().count(), count + 2);
    assert_eq!(reasons(&m).len(), count);
    let back = write(&module);
    assert_eq!(back.graph.unwrap().node.len(), 3 * count);
    assert_eq!(back.functions.len(), 2 * count + 1);
}

#[test]
fn overloads_and_types_that_the_file_says() {
    let mut one = function("f", &["a"], &["b"], vec![node("Relu", &["a"], &["b"], vec![])]);
    let mut two = function("f", &["a"], &["b"], vec![node("Neg", &["a"], &["b"], vec![])]);
    for (f, overload) in [(&mut one, "first"), (&mut two, "second")] {
        f.overload = Some(overload.into());
        f.value_info = vec![typed("a", tensor_type(1, &[4])), typed("b", tensor_type(1, &[4]))];
        f.opset_import.truncate(1);
    }
    let calls = [("u", "first"), ("v", "second")].map(|(output, overload)| NodeProto {
        overload: Some(overload.into()),
        ..call("f", &["x"], &[output], vec![])
    });
    let mut m = with(vec![one, two], calls.into(), &[("u", 4), ("v", 4)]);
    m.ir_version = Some(10);
    let module = assert_comes_back(&m);
    assert_eq!(operators(&module), ["nn.relu", "negative"]);
}

#[test]
fn versions_of_the_operators() {
    // A domain that the model does not import is imported in the function's version.
    let other = NodeProto { domain: Some("org.other".into()), ..node("Foo", &["a"], &["z"], vec![]) };
    let body = vec![other, node("Relu", &["a"], &["b"], vec![])];
    let mut f = function("f", &["a"], &["b"], body);
    f.opset_import = vec![import_of("", 18), import_of("org.other", 7)];
    let m = with(vec![f], vec![call("f", &["x"], &["u"], vec![])], &[("u", 4)]);
    let module = read(&m);
    assert!(module.find("f").is_some());
    let back = write(&module);
    assert_eq!(back.functions, m.functions);
    assert!(back.opset_import.contains(&import_of("org.other", 7)));

    // A function may import another version than the model. Operators known here become those of
    // the model's version.
    let axes = node("Squeeze", &["a"], &["b"], vec![anfora_onnx::convert::ints_attribute("axes", &[0])]);
    let mut f = function("f", &["a"], &["b"], vec![node("Unsqueeze", &["x0"], &["a"], vec![]), axes]);
    f.node[0] = node("Unsqueeze", &["x0"], &["a"], vec![anfora_onnx::convert::ints_attribute("axes", &[0])]);
    f.input = vec!["x0".into()];
    f.opset_import = vec![import_of("", 11)];
    let m = with(vec![f.clone()], vec![call("f", &["x"], &["u"], vec![])], &[("u", 4)]);
    let back = write(&read(&m));
    assert!(back.functions[0].node.iter().all(|n| n.attribute.iter().all(|a| a.name() != "axes")));
    assert_eq!(back.functions[0].opset_import, [import_of("", 18)]);

    // Operators that are not known here stay in the function, which states their version.
    f.node.insert(0, node("Unheard", &["x0"], &["h"], vec![]));
    let m = with(vec![f], vec![call("f", &["x"], &["u"], vec![])], &[("u", 4)]);
    let module = read(&m);
    assert_eq!(operators(&module), ["onnx.com.example.f"]);
    assert!(
        reasons(&m)[0].contains("`Unheard` is kept unchanged, but the model imports another version"),
        "{:?}",
        reasons(&m)
    );
    assert_eq!(reasons(&m).len(), 1);
    assert_eq!(write(&module).functions, m.functions);
}

#[test]
fn what_cannot_be_one_of_the_module_is_carried_along() {
    let broken = function("broken", &["a"], &["b"], vec![node("Relu", &["nowhere"], &["b"], vec![])]);
    let user = function("user", &["a"], &["b"], vec![call("broken", &["a"], &["b"], vec![])]);
    let m = with(vec![broken, user], vec![call("user", &["x"], &["u"], vec![])], &[("u", 4)]);
    let module = read(&m);
    // The file states the type of the output of `user`; its body does not show the type.
    assert_eq!(operators(&module).last().map(String::as_str), Some("onnx.com.example.user"));
    assert!(reasons(&m).iter().any(|r| r.contains("`nowhere` is neither an input")), "{:?}", reasons(&m));
    assert_eq!(write(&module).functions, m.functions);

    let undeclared = with(
        vec![function("f", &["a"], &["b"], vec![node("Relu", &["a"], &["b"], vec![])])],
        vec![call("f", &["x"], &["u"], vec![int_attribute("k", 1)])],
        &[("u", 4)],
    );
    let module = read(&undeclared);
    assert_eq!(operators(&module), ["onnx.com.example.f"]);
    assert_eq!(write(&module).functions, undeclared.functions);

    let itself = function("f", &["a"], &["b"], vec![call("f", &["a"], &["b"], vec![])]);
    let error = try_read(&with(vec![itself], vec![call("f", &["x"], &["u"], vec![])], &[("u", 4)])).unwrap_err();
    assert!(error.to_string().contains("calls itself"), "{error}");
}
