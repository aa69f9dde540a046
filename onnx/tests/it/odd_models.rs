//! Files that contradict themselves, or whose meaning is not known. They are read with a warning,
//! or kept unchanged.

use anfora_ir::{Diagnostic, Literal, Severity, Source, parse_module};
use anfora_onnx::convert::{int_attribute, ints_attribute};
use anfora_onnx::proto::{
    FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, SparseTensorProto, TensorProto,
    ValueInfoProto,
};
use anfora_onnx::{ImportOptions, Imported, UnknownFields, import, registry};
use bytes::Bytes;
use prost::Message;

use crate::models::{
    FLOAT, INT64, again, float, floats, graph, graph_attribute, info, initializer, model, node, one_node, operators,
    read, symbolic_type, typed, write,
};

fn import_of_model(model: &ModelProto) -> Imported {
    import(model.encode_to_vec().into(), &ImportOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Asserts that a model is read with a single warning that contains these words.
fn warned(model: &ModelProto, words: &[&str]) -> Imported {
    let imported = import_of_model(model);
    let [warning] = imported.warnings.as_slice() else {
        panic!("{} warnings: {:?}", imported.warnings.len(), imported.warnings)
    };
    assert_eq!(warning.severity, Severity::Warning);
    assert!(warning.help.is_some(), "{warning}");
    for w in words {
        assert!(warning.message.contains(w), "`{w}` is not in: {warning}");
    }
    imported
}

/// Returns a model of a Relu of `x` and an Exp of the result.
fn chain() -> ModelProto {
    let nodes = vec![node("Relu", &["x"], &["a"], vec![]), node("Exp", &["a"], &["y"], vec![])];
    model(17, graph("g", nodes, vec![float("x", &[3, 4])], vec![float("y", &[3, 4])]))
}

fn graph_of(model: &mut ModelProto) -> &mut GraphProto {
    model.graph.as_mut().expect("it has a graph")
}

#[test]
fn a_type_that_contradicts_the_node_is_left_out() {
    for (stated, text) in [
        (float("y", &[12]), "Tensor[(12,), float32]"),
        (float("y", &[5, 4]), "Tensor[(5, 4), float32]"),
        (info("y", INT64, &[3, 4]), "Tensor[(3, 4), int64]"),
    ] {
        let mut m = chain();
        graph_of(&mut m).output = vec![ValueInfoProto { doc_string: Some("text".into()), ..stated }];
        let words = ["the graph `g`, node 1 (`Exp`)", "`y` is Tensor[(3, 4), float32], but the file says", text];
        let imported = warned(&m, &words);
        let expected = ValueInfoProto { doc_string: Some("text".into()), ..float("y", &[3, 4]) };
        assert_eq!(write(&imported.module).graph.unwrap().output, [expected]);
    }
    let mut m = chain();
    graph_of(&mut m).value_info = vec![float("a", &[3, 4, 5])];
    let imported = warned(&m, &["node 0 (`Relu`)", "`a` is Tensor[(3, 4), float32]", "Tensor[(3, 4, 5), float32]"]);
    assert_eq!(write(&imported.module).graph.unwrap().value_info, [float("a", &[3, 4])]);
    let mut m = chain();
    graph_of(&mut m).value_info = vec![float("x", &[3])];
    warned(&m, &["the graph `g`: `x` is"]);
    // For an output, the statement of the output takes precedence.
    let mut m = chain();
    graph_of(&mut m).value_info = vec![info("y", INT64, &[2])];
    assert!(import_of_model(&m).warnings.is_empty());
}

#[test]
fn a_type_that_contradicts_a_node_that_is_kept_is_left_out() {
    let nodes =
        vec![node("Softplus", &["x"], &["a"], vec![int_attribute("new", 1)]), node("Exp", &["a"], &["y"], vec![])];
    let mut m = model(17, graph("g", nodes, vec![float("x", &[3, 4])], vec![float("y", &[3, 4])]));
    graph_of(&mut m).value_info = vec![float("a", &[3])];
    warned(&m, &["node 0 (`Softplus`)", "`a` is Tensor[(3, 4), float32]"]);
}

#[test]
fn types_of_subgraphs_that_contradict() {
    let branch = |name: &str, op: &str, output: ValueInfoProto| {
        graph(name, vec![node(op, &["x"], &[output.name()], vec![])], vec![], vec![output.clone()])
    };
    let branches = vec![
        graph_attribute("then_branch", &branch("t", "Relu", float("r", &[2]))),
        graph_attribute("else_branch", &branch("e", "Exp", float("r", &[3, 4]))),
    ];
    let inputs = vec![info("c", 9, &[]), float("x", &[3, 4])];
    let m = model(17, graph("g", vec![node("If", &["c"], &["y"], branches)], inputs, vec![float("y", &[3, 4])]));
    warned(&m, &["node 0 (`If`), its `then_branch`, node 0 (`Relu`): `r` is", "Tensor[(2,), float32]"]);
}

#[test]
fn types_of_functions_that_contradict() {
    let mut f = function("my", "f", vec![node("Relu", &["a"], &["t"], vec![]), node("Exp", &["t"], &["b"], vec![])]);
    f.value_info = vec![float("t", &[7, 7, 7])];
    let m = with_functions(vec![call("f", "x", "y")], vec![f]);
    let imported = warned(&m, &["the function `f`, node 0 (`Relu`): `t` is Tensor[", "the file says Tensor[(7, 7, 7)"]);
    let [back] = write(&imported.module).functions.try_into().expect("one function");
    assert_ne!(back.value_info, [float("t", &[7, 7, 7])]);
}

#[test]
fn constants_and_default_values_that_contradict_their_declaration() {
    let mut m = model(
        17,
        graph("g", vec![node("Add", &["x", "w"], &["y"], vec![])], vec![float("x", &[2])], vec![float("y", &[2])]),
    );
    graph_of(&mut m).initializer = vec![initializer("w", &floats(&[1.0, 2.0]))];
    graph_of(&mut m).input.push(float("w", &[1, 2]));
    graph_of(&mut m).output = vec![float("y", &[1, 2])];
    let declared = graph_of(&mut m).input.clone();
    // A default value does not change the declared input.
    let imported = warned(&m, &["`w` is Tensor[(2,), float32], but the file says Tensor[(1, 2), float32]"]);
    let back = write(&imported.module).graph.unwrap();
    assert_eq!((back.input, back.initializer), (declared, graph_of(&mut m).initializer.clone()));
    // Before version 4 an initializer that is an input is a constant.
    m.ir_version = Some(3);
    graph_of(&mut m).output = vec![float("y", &[2])];
    let imported = warned(&m, &["`w` is Tensor[(2,), float32]"]);
    assert_eq!(write(&imported.module).graph.unwrap().input[1], float("w", &[2]));
}

#[test]
fn an_output_that_is_an_input_leaves_that_as_it_is_declared() {
    let input = typed("x", symbolic_type(FLOAT, &["n", "4"]));
    let nodes = vec![node("Relu", &["x"], &["y"], vec![])];
    let outputs = vec![float("x", &[3, 4]), typed("y", symbolic_type(FLOAT, &["n", "4"]))];
    let m = model(17, graph("g", nodes, vec![input.clone()], outputs.clone()));
    assert!(import_of_model(&m).warnings.is_empty());
    let back = again(&m).graph.unwrap();
    assert_eq!((back.input, back.output), (vec![input], outputs));
}

/// Returns the graph in the first attribute that holds one.
fn inner_graph(model: &ModelProto) -> GraphProto {
    let nodes = &model.graph.as_ref().unwrap().node;
    let bytes = nodes.iter().flat_map(|n| &n.attribute).find_map(|a| a.g.clone()).expect("a node has a graph");
    GraphProto::decode(bytes).expect("it is a graph")
}

/// Returns a function with an input `a` and an output `b`.
fn function(domain: &str, name: &str, nodes: Vec<NodeProto>) -> FunctionProto {
    let mut opset_import = chain().opset_import;
    opset_import.push(OperatorSetIdProto { domain: Some("my".into()), version: Some(1) });
    FunctionProto {
        name: Some(name.into()),
        domain: Some(domain.into()),
        input: vec!["a".into()],
        output: vec!["b".into()],
        node: nodes,
        opset_import,
        ..FunctionProto::default()
    }
}

/// Returns a call of a function in the domain `my`.
fn call(name: &str, input: &str, output: &str) -> NodeProto {
    NodeProto { domain: Some("my".into()), ..node(name, &[input], &[output], vec![]) }
}

/// Returns a model with functions that computes `y` from `x`.
fn with_functions(nodes: Vec<NodeProto>, functions: Vec<FunctionProto>) -> ModelProto {
    let mut m = model(17, graph("g", nodes, vec![float("x", &[3, 4])], vec![float("y", &[3, 4])]));
    m.opset_import.push(OperatorSetIdProto { domain: Some("my".into()), version: Some(1) });
    m.functions = functions;
    m
}

/// Asserts that each output of a graph is computed by a node of it and is not also another output.
fn assert_outputs_are_computed(graph: &GraphProto) {
    let mut computed: Vec<&str> = graph.node.iter().flat_map(|n| &n.output).map(String::as_str).collect();
    for output in &graph.output {
        let position = computed.iter().position(|&name| name == output.name());
        computed
            .remove(position.unwrap_or_else(|| panic!("`{}` is given as it is, or twice: {graph:#?}", output.name())));
    }
}

#[test]
fn what_a_subgraph_is_given_it_returns_through_a_node() {
    let scan = |body: &str| {
        format!(
            "def @main(%x: Tensor[(3,), float32], %y: Tensor[(4, 3), float32]) {{
               let %r = nn.relu(%x);
               let %body = fn (%s: Tensor[(3,), float32], %e: Tensor[(3,), float32]) {{ {body} }};
               let %t: (Tensor[(3,), float32], Tensor[(4, 3), float32]) = onnx.Scan(%x, %y, %body, \
                 num_scan_inputs=1, onnx_present=[true, true], onnx_subgraphs=[\"body\"]);
               let %p = %t.0; let %q = %t.1; let %z = add(%r, %p);
               (%z, %q)
             }}"
        )
    };
    for body in [
        "let %t = add(%s, %e); (%s, %t)",
        "let %t = add(%s, %e); (%t, %e)",
        "let %t = add(%s, %e); (%t, %t)",
        "let %t = add(%s, %e); (%t, %r)",
        "let %t = add(%s, %e); (%t, dense<Tensor[(3,), float32]>[1, 2, 3])",
        "let %k = dense<Tensor[(3,), float32]>[1, 2, 3]; let %t = add(%s, %e); (%t, %k)",
        "(%e, %s)",
    ] {
        let text = scan(body);
        let module =
            parse_module(Source::new("scan", text.clone()), registry()).unwrap_or_else(|e| panic!("{}\n{text}", e[0]));
        let written = write(&module);
        let inner = inner_graph(&written);
        assert_outputs_are_computed(&inner);
        // Reading and writing it again adds no node.
        assert_eq!(inner_graph(&again(&written)).node.len(), inner.node.len(), "{body}");
    }
}

#[test]
fn what_a_subgraph_of_a_file_returns_as_it_is_or_twice_gets_a_node() {
    let body = |outputs: &[&str]| {
        let nodes = vec![node("Add", &["s", "e"], &["t"], vec![])];
        let mut body = graph("b", nodes, vec![float("s", &[3]), float("e", &[3])], vec![]);
        body.initializer = vec![initializer("k", &floats(&[1.0, 2.0, 3.0]))];
        body.output = outputs.iter().map(|o| float(o, &[3])).collect();
        body
    };
    for outputs in [["s", "t"], ["t", "t"], ["t", "k"], ["e", "s"]] {
        let attributes = vec![graph_attribute("body", &body(&outputs)), int_attribute("num_scan_inputs", 1)];
        let ends = [vec![float("x", &[3]), float("y", &[4, 3])], vec![float("p", &[3]), float("q", &[4, 3])]];
        let [inputs, results] = ends;
        let m = model(17, graph("g", vec![node("Scan", &["x", "y"], &["p", "q"], attributes)], inputs, results));
        assert_outputs_are_computed(&inner_graph(&again(&m)));
    }
}

#[test]
fn what_a_subgraph_of_a_file_returns_is_not_an_initializer_that_no_literal_can_hold() {
    // Strings that are not UTF-8, and a sparse tensor that is kept unchanged.
    let text = TensorProto {
        name: Some("k".into()),
        data_type: Some(8),
        dims: vec![1],
        string_data: vec![Bytes::from_static(&[0xff])],
        ..TensorProto::default()
    };
    let sparse = SparseTensorProto {
        values: Some(initializer("k", &floats(&[1.5]))),
        indices: Some(initializer("", &Literal::from_elements(&[1], &[7_i64]).expect("one element"))),
        dims: vec![1 << 20],
    };
    let inner = |stated: bool| {
        let said = vec![info("k", 8, &[1])];
        let output = said.clone();
        let mut of_text = graph("b", vec![], vec![], output);
        of_text.initializer = vec![text.clone()];
        let mut of_sparse = graph("b", vec![], vec![], vec![float("k", &[1 << 20])]);
        of_sparse.sparse_initializer = vec![sparse.clone()];
        if stated {
            of_text.node = vec![node("Identity", &["k"], &["i"], vec![])];
            of_text.value_info = said;
            of_text.output = vec![info("i", 8, &[1])];
        }
        [of_text, of_sparse]
    };
    // A sparse tensor that a literal can hold.
    let small = SparseTensorProto { dims: vec![9], ..sparse.clone() };
    let of_small = GraphProto { sparse_initializer: vec![small], ..graph("b", vec![], vec![], vec![float("k", &[9])]) };
    for body in [inner(false), inner(true)].into_iter().flatten().chain([of_small]) {
        let output = ValueInfoProto { name: Some("y".into()), ..body.output[0].clone() };
        let branches = ["then_branch", "else_branch"].map(|name| graph_attribute(name, &body));
        let nodes = vec![node("If", &["c"], &["y"], branches.into())];
        let m = model(17, graph("g", nodes, vec![info("c", 9, &[])], vec![output]));
        let written = again(&m);
        let back = inner_graph(&written);
        assert_outputs_are_computed(&back);
        assert_eq!((back.node.len(), &back.value_info), (1, &body.value_info));
        assert_eq!(back.initializer, body.initializer);
        let elements = |g: &GraphProto| -> Vec<_> {
            let sparse = g.sparse_initializer.iter();
            sparse.map(|s| (s.dims.clone(), s.values.as_ref().map(|v| v.raw_data.clone()))).collect()
        };
        assert_eq!(elements(&back), elements(&body));
    }
}

#[test]
fn a_function_returns_what_it_is_given_through_a_node() {
    let text = "def private @f(%a: Tensor[(3,), float32]) { let %b = nn.relu(%a); (%a, %b, %b) }
       def @main(%x: Tensor[(3,), float32]) {
         let %t = @f(%x); let %p = %t.0; let %q = %t.1; let %r = %t.2; (%p, %q, %r)
       }";
    let module = parse_module(Source::new("f", text), registry()).unwrap_or_else(|e| panic!("{}", e[0]));
    let written = write(&module);
    let [function] = written.functions.as_slice() else { panic!("one function") };
    let as_graph = GraphProto {
        node: function.node.clone(),
        output: function.output.iter().map(|o| float(o, &[3])).collect(),
        ..GraphProto::default()
    };
    assert_outputs_are_computed(&as_graph);
}

#[test]
fn what_an_old_version_cannot_say_is_kept() {
    let x = || typed("x", symbolic_type(FLOAT, &["3", "4"]));
    let b = || typed("b", symbolic_type(FLOAT, &["3", "n"]));
    for (opset, op, reason) in [(6, "Min", "`minimum` needs version 8"), (7, "Max", "`maximum` needs version 8")] {
        let nodes = vec![node(op, &["x", "b"], &["y"], vec![])];
        let m = model(opset, graph("g", nodes, vec![x(), b()], vec![float("y", &[3, 4])]));
        let imported = import_of_model(&m);
        assert!(imported.warnings.is_empty(), "{:?}", imported.warnings);
        assert!(imported.kept[0].reason.contains(reason), "{:?}", imported.kept);
        assert_eq!(write(&imported.module).graph.unwrap().node, m.graph.unwrap().node);
    }
    // Element types that a version does not have are an error of the file.
    for (opset, op, elements, words) in [
        (7, "Add", 3, "`add of int8` needs version 14"),
        (13, "Relu", 6, "`nn.relu of int32` needs version 14"),
        (17, "Neg", 2, "no version of ONNX's `Neg` has elements of uint8"),
    ] {
        let inputs = if op == "Add" { vec!["x", "x"] } else { vec!["x"] };
        let nodes = vec![node(op, &inputs, &["y"], vec![])];
        let m = model(opset, graph("g", nodes, vec![info("x", elements, &[4])], vec![info("y", elements, &[4])]));
        let imported = warned(&m, &[&format!("node 0 (`{op}`)"), words]);
        assert_eq!(operators(&imported.module), [format!("onnx.{op}")]);
        assert_eq!(write(&imported.module).graph, m.graph);
    }
}

#[test]
fn nodes_that_do_not_fit_their_operands_are_kept() {
    for (m, place, reason) in [
        (one_node(13, "Add", &[&[2], &[3]], vec![]), "node 0 (`Add`)", "does not broadcast"),
        (one_node(13, "Reshape", &[&[2], &[1]], vec![]), "node 0 (`Reshape`)", "integers are expected"),
        (one_node(13, "Conv", &[&[1, 3, 8, 8], &[4, 2, 3, 3]], vec![]), "node 0 (`Conv`)", ""),
        (one_node(13, "Softmax", &[&[2]], vec![int_attribute("axis", 7)]), "node 0 (`Softmax`)", "out of range"),
        // The conversion of the operator refuses these.
        (one_node(11, "Softmax", &[&[2]], vec![int_attribute("axis", 7)]), "node 0 (`Softmax`)", "out of range"),
        (one_node(13, "Conv", &[&[3, 4], &[4, 4]], vec![]), "node 0 (`Conv`)", "input 1 has 2 axes"),
        (one_node(13, "Conv", &[&[3, 4, 5], &[4, 4, 3, 3]], vec![]), "node 0 (`Conv`)", "another rank"),
        (one_node(13, "ConvTranspose", &[&[3, 4], &[4, 4]], vec![]), "node 0 (`ConvTranspose`)", "input 1 has 2 axes"),
        (
            one_node(13, "MaxPool", &[&[1, 1, 5]], vec![ints_attribute("kernel_shape", &[2, 2])]),
            "node 0 (`MaxPool`)",
            "another rank",
        ),
        (
            one_node(13, "Conv", &[&[1, 2, 5], &[3, 2, 3]], vec![ints_attribute("strides", &[1, 1])]),
            "node 0 (`Conv`)",
            "`strides` does not have 1 entries",
        ),
        (one_node(6, "Add", &[&[2], &[3]], vec![]), "node 0 (`Add`)", "`broadcast` is not set"),
        (one_node(13, "Split", &[&[4]], vec![int_attribute("axis", 1)]), "node 0 (`Split`)", "out of range"),
        (
            one_node(17, "LayerNormalization", &[&[4], &[4]], vec![int_attribute("axis", 1)]),
            "node 0 (`LayerNormalization`)",
            "out of range",
        ),
    ] {
        let imported = warned(&m, &[place, reason]);
        assert_eq!(imported.kept.len(), 1);
        assert_eq!(write(&imported.module).graph.unwrap().node, m.graph.unwrap().node);
    }
}

#[test]
fn nodes_that_are_only_not_supported_are_no_fault() {
    for m in [
        one_node(13, "Conv", &[&[1, 2, 4, 4, 4, 4], &[3, 2, 2, 2, 2, 2]], vec![]),
        one_node(6, "Add", &[&[2, 3], &[2]], vec![int_attribute("broadcast", 1), int_attribute("axis", 0)]),
        one_node(13, "Softplus", &[&[2]], vec![int_attribute("new", 1)]),
        one_node(17, "LayerNormalization", &[&[1; 66], &[1]], vec![int_attribute("axis", -66)]),
        one_node(17, "LayerNormalization", &[&[1; 66], &[1]], vec![int_attribute("axis", 0)]),
        one_node(99, "Relu", &[&[2]], vec![]),
    ] {
        let imported = import_of_model(&m);
        assert!(imported.warnings.is_empty(), "{:?}", imported.warnings);
        assert_eq!(imported.kept.len(), 1);
    }
}

#[test]
fn initializers_that_no_literal_can_hold_come_back() {
    // Elements of six bits, and strings that are not UTF-8.
    let small = TensorProto {
        name: Some("k".into()),
        data_type: Some(27),
        dims: vec![4],
        raw_data: Some(Bytes::from_static(&[0x41, 0x10, 0x1b])),
        doc_string: Some("text".into()),
        ..TensorProto::default()
    };
    let text = TensorProto {
        name: Some("k".into()),
        data_type: Some(8),
        dims: vec![1],
        string_data: vec![Bytes::from_static(&[0xff])],
        ..TensorProto::default()
    };
    let inner = |tensor: &TensorProto, output: &ValueInfoProto| {
        let mut inner = graph("b", vec![node("Frob", &["k"], &["y"], vec![])], vec![], vec![output.clone()]);
        inner.initializer = vec![tensor.clone()];
        inner
    };
    for (tensor, reason) in [(small, "element type 27 is not supported"), (text, "element 0 is not UTF-8 text")] {
        let output = info("y", tensor.data_type(), &tensor.dims);
        let mut m = model(25, inner(&tensor, &output));
        assert_eq!(again(&m), m);
        let kept = import_of_model(&m).kept;
        let kept: Vec<String> = kept.iter().map(|k| k.to_string()).collect();
        assert_eq!(kept.len(), 2, "{kept:?}");
        assert_eq!(kept[0], format!("initializer `k`: {reason}"));
        assert!(kept[1].starts_with("node `Frob`"), "{kept:?}");
        // In a subgraph, and as a default value.
        let branches = ["then_branch", "else_branch"].map(|name| graph_attribute(name, &inner(&tensor, &output)));
        let nested = vec![node("If", &["c"], &["y"], branches.into())];
        let nested = model(25, graph("g", nested, vec![info("c", 9, &[])], vec![output.clone()]));
        assert_eq!(inner_graph(&again(&nested)).initializer, std::slice::from_ref(&tensor));
        let default = info("k", tensor.data_type(), &tensor.dims);
        graph_of(&mut m).input = vec![default];
        assert_eq!(again(&m), m);
        // Before version 4 it is a constant.
        m.ir_version = Some(3);
        assert_eq!(again(&m), m);
    }
}

#[test]
fn versions_that_are_not_known() {
    let import_of = |domain: &str, version| OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) };
    let mut m = chain();
    m.opset_import.push(import_of("", 13));
    let imported = warned(&m, &["the model", "two versions of the operators of the standard domain"]);
    assert_eq!(operators(&imported.module), ["onnx.Relu", "onnx.Exp"]);
    assert_eq!(again(&m), m);
    let mut m = chain();
    m.opset_import.extend([import_of("acme", 1), import_of("acme", 2)]);
    let imported = warned(&m, &["of the domain `acme`"]);
    assert_eq!(operators(&imported.module), ["nn.relu", "exp"]);
    let mut m = chain();
    m.opset_import[0].version = Some(1000);
    assert_eq!(operators(&read(&m)), ["onnx.Relu", "onnx.Exp"]);
    let mut m = chain();
    m.ir_version = Some(99);
    warned(&m, &["IR version 99 is newer than the newest that is known"]);
    assert_eq!(again(&m), m);
    // The file might have another meaning with fields that are not known.
    let options = ImportOptions { unknown_fields: UnknownFields::Drop, ..ImportOptions::default() };
    let refused = import(m.encode_to_vec().into(), &options).expect_err("it may have lost something");
    assert!(refused.to_string().contains("IR version 99"), "{refused}");
}

#[test]
fn one_fault_is_said_once() {
    let function = |said: &str| {
        let mut f = anfora_onnx::proto::FunctionProto {
            name: Some("f".into()),
            domain: Some("my".into()),
            input: vec!["a".into()],
            output: vec!["b".into()],
            node: vec![node("Relu", &["a"], &["t"], vec![]), node("Exp", &["t"], &["b"], vec![])],
            ..Default::default()
        };
        f.opset_import = chain().opset_import;
        f.value_info = vec![float("t", &[9, 9, 9])];
        f.node.extend((!said.is_empty()).then(|| node("Exp", &[said], &["u"], vec![])));
        f
    };
    let call = |x: &str, y: &str| {
        let mut call = node("f", &[x], &[y], vec![]);
        call.domain = Some("my".into());
        call
    };
    let of = |said: &str| {
        let nodes = vec![call("x", "y"), call("y", "z"), call("w", "v")];
        let outputs = vec![float("z", &[2]), float("v", &[2, 3])];
        let mut m = model(17, graph("g", nodes, vec![float("x", &[2]), float("w", &[2, 3])], outputs));
        m.opset_import.push(OperatorSetIdProto { domain: Some("my".into()), version: Some(1) });
        m.functions = vec![function(said)];
        m
    };
    // Two copies for two types have two faults, since the types differ.
    let warnings = import_of_model(&of("")).warnings;
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    let messages: Vec<&Diagnostic> =
        warnings.iter().filter(|w| w.message.contains("the function `f`, node 0")).collect();
    assert_eq!(messages.len(), 2);
    // Warnings about a function that is preserved in the end are dropped.
    assert!(import_of_model(&of("nowhere")).warnings.is_empty());
}

/// Returns a Relu of `a` for which the file states a wrong type.
fn relu_with_a_fault(output: &str) -> (Vec<NodeProto>, ValueInfoProto) {
    let nodes = vec![node("Relu", &["a"], &["t"], vec![]), node("Exp", &["t"], &[output], vec![])];
    (nodes, float("t", &[9, 9, 9]))
}

fn places(imported: &Imported) -> Vec<&str> {
    imported.warnings.iter().map(|w| w.message.split_once(", node").expect("it is of a node").0).collect()
}

#[test]
fn what_is_said_of_a_function_stays_when_one_around_it_fails() {
    let (nodes, fault) = relu_with_a_fault("u");
    // The outer function has a fault, calls the inner function, and then fails.
    let last =
        [call("Inner", "u", "v"), node("Frob", &["v"], &["w"], vec![]), node("Exp", &["nowhere"], &["b"], vec![])];
    let mut outer = function("my", "Outer", nodes.into_iter().chain(last).collect());
    outer.value_info = vec![fault];
    let (nodes, fault) = relu_with_a_fault("b");
    let kept = node("Glob", &["a"], &["g"], vec![]);
    let mut inner = function("my", "Inner", std::iter::once(kept).chain(nodes).collect());
    inner.value_info = vec![fault];
    let m = with_functions(vec![call("Outer", "x", "y")], vec![outer, inner]);
    let imported = import_of_model(&m);
    assert_eq!(places(&imported), ["the function `Inner`"]);
    let kept: Vec<&str> = imported.kept.iter().map(|k| k.op_type.as_str()).collect();
    assert_eq!(kept, ["Glob", "Outer"]);
    assert_eq!(imported.module.functions().count(), 2);
}

#[test]
fn what_is_said_of_a_function_stays_when_one_in_it_fails() {
    let (nodes, fault) = relu_with_a_fault("u");
    let last = [
        node("Glob", &["u"], &["g"], vec![]),
        call("Inner", "u", "v"),
        node("Glob", &["v"], &["w"], vec![]),
        node("Exp", &["w"], &["b"], vec![]),
    ];
    let mut outer = function("my", "Outer", nodes.into_iter().chain(last).collect());
    outer.value_info = vec![fault];
    let (nodes, fault) = relu_with_a_fault("v");
    let last = [node("Glob", &["v"], &["g"], vec![]), node("Exp", &["nowhere"], &["b"], vec![])];
    let mut inner = function("my", "Inner", nodes.into_iter().chain(last).collect());
    inner.value_info = vec![fault];
    let m = with_functions(vec![call("Outer", "x", "y")], vec![outer, inner]);
    let imported = import_of_model(&m);
    assert_eq!(places(&imported), ["the function `Outer`"]);
    let kept: Vec<(&str, usize)> = imported.kept.iter().map(|k| (k.op_type.as_str(), k.count)).collect();
    // The node after `Inner` has an operand of unknown type.
    assert_eq!(kept, [("Glob", 2), ("Inner", 1), ("Exp", 1), ("Outer", 1)]);
}
