//! Deep nesting and long lists on a small stack.

use anfora_ir::{Literal, Module, work};
use anfora_onnx::convert::{int_attribute, tensor_attribute};
use anfora_onnx::proto::type_proto::{Tensor, Value};
use anfora_onnx::proto::{GraphProto, ModelProto, TypeProto, ValueInfoProto};
use anfora_onnx::tensor::tensor_of;
use anfora_onnx::{ExportOptions, ExportProblem, ImportOptions, export, import, registry};
use anfora_testing::{depth, on_small_stack};
use bytes::Bytes;
use prost::Message;

use crate::models::{
    BOOL, FLOAT, again, float, graph, graph_attribute, info, initializer, model, node, operators, read, symbolic_type,
    typed,
};

fn imported(bytes: Vec<u8>) -> Module {
    match import(Bytes::from(bytes), &ImportOptions::default()) {
        Ok(imported) => imported.module,
        Err(e) => panic!("{e}"),
    }
}

/// Returns a model with this depth of nested graphs, including the main graph.
fn nested(depth: usize) -> ModelProto {
    let mut inner: Option<GraphProto> = None;
    for i in (0..depth).rev() {
        let output = format!("y{i}");
        let nodes = match inner {
            None => vec![node("Relu", &["x"], &[&output], vec![])],
            Some(g) => {
                vec![node("If", &["c"], &[&output], vec![graph_attribute("then_branch", &g)])]
            }
        };
        let inputs = if i == 0 { vec![info("c", BOOL, &[]), float("x", &[2])] } else { vec![] };
        let mut output = float(&output, &[2]);
        if i > 0 {
            output.r#type = None;
        }
        inner = Some(graph(&format!("g{i}"), nodes, inputs, vec![output]));
    }
    model(13, inner.expect("a depth of at least 1"))
}

#[test]
fn graphs_nest_as_deep_as_the_format_lets_them() {
    let bytes = nested(32).encode_to_vec();
    let back = on_small_stack(move || {
        let module = imported(bytes);
        assert_eq!(operators(&module).len(), 32);
        export(&module, &ExportOptions::default()).expect("it can be written")
    });
    assert_eq!(back.nodes.total(), 32);
    assert_eq!(operators(&imported(back.bytes)).len(), 32);
}

#[test]
fn branches_nest_as_deep_as_graphs() {
    // The innermost graph uses a value of the outermost.
    let mut inner = graph("g", vec![node("Add", &["h", "k"], &["y32"], vec![])], vec![], vec![float("y32", &[2])]);
    inner.initializer = vec![initializer("k", &Literal::from_elements(&[2], &[1f32, 2.0]).expect("two elements"))];
    for i in (1..32).rev() {
        let name = format!("y{i}");
        let other = format!("o{i}");
        let other = graph("o", vec![node("Neg", &["h"], &[&other], vec![])], vec![], vec![float(&other, &[2])]);
        let branches = vec![graph_attribute("then_branch", &other), graph_attribute("else_branch", &inner)];
        inner = graph("g", vec![node("If", &["c"], &[&name], branches)], vec![], vec![float(&name, &[2])]);
    }
    inner.node.insert(0, node("Relu", &["x"], &["h"], vec![]));
    inner.input = vec![info("c", BOOL, &[1]), float("x", &[2])];
    let m = model(13, inner);
    let bytes = m.encode_to_vec();
    let (module, back) = on_small_stack(move || {
        let module = imported(bytes);
        let back = export(&module, &ExportOptions::default()).expect("it can be written");
        (module, back)
    });
    let all = operators(&module);
    assert_eq!(
        ["nn.relu", "negative", "add", "reshape"].map(|op| all.iter().filter(|o| *o == op).count()),
        [1, 31, 1, 31]
    );
    assert_eq!(back.nodes.total(), 1 + 31 + 31 + 1);
    let again = imported(back.bytes);
    assert!(anfora_ir::alpha_equal(&module, &again), "{module}\nthen\n{again}");
}

#[test]
fn and_no_deeper() {
    for depth in [40, 1000] {
        let bytes = nested(depth).encode_to_vec();
        let error = on_small_stack(move || {
            import(Bytes::from(bytes), &ImportOptions::default()).expect_err("it is too deep").to_string()
        });
        assert!(error.contains("nested more than 100 deep"), "{error}");
    }
}

#[test]
fn text_that_nests_deeper_is_not_written() {
    let mut text = String::from("%c");
    for i in 0..60 {
        text = format!(
            "{{ let %f{i} = fn () {{ {text} }}; let %v{i}: Tensor[(), bool] = onnx.If(%c, %f{i}, onnx_subgraphs=[\"then_branch\"]); %v{i} }}"
        );
    }
    let text = format!("def @main(%c: Tensor[(), bool]) {text}");
    let module = match anfora_ir::parse_module(anfora_ir::Source::new("t", text), registry()) {
        Ok(module) => module,
        Err(e) => panic!("{}", e[0]),
    };
    let error = export(&module, &ExportOptions::default()).expect_err("it is too deep");
    assert_eq!(error.problem, ExportProblem::TooDeep(33));
    assert!(error.diagnostic().to_string().contains("move inner ones into functions"), "{}", error.diagnostic());
}

#[test]
fn many_nodes() {
    let count = depth(20_000);
    let mut nodes = Vec::with_capacity(count);
    for i in 0..count {
        nodes.push(node("Relu", &[&format!("v{i}")], &[&format!("v{}", i + 1)], vec![]));
    }
    let m = model(13, graph("g", nodes, vec![float("v0", &[2])], vec![float(&format!("v{count}"), &[2])]));
    let bytes = m.encode_to_vec();
    let expected = bytes.len();
    let back =
        on_small_stack(move || export(&imported(bytes), &ExportOptions::default()).expect("it can be written").bytes);
    assert!(back.len().abs_diff(expected) < 100);
}

#[test]
fn many_names_for_one_wish() {
    let count = anfora_testing::depth(5_000);
    let nodes = (0..count).map(|i| node("Relu", &["x"], &[&format!("d{i}")], vec![])).collect();
    let m = model(13, graph("g", nodes, vec![float("x", &[2])], vec![float("d0", &[2])]));
    let module = read(&m);
    assert_eq!(operators(&module).len(), count);
    assert_eq!(again(&m).graph.map(|g| g.node.len()), Some(count));
}

/// Returns a file with about `n` parts of the given kind.
fn wide(kind: &str, n: usize) -> ModelProto {
    let names = |prefix: &str| -> Vec<String> { (0..n).map(|i| format!("{prefix}{i}")).collect() };
    let x = || vec![float("x", &[2])];
    let y = || vec![float("y", &[2])];
    let opaque = |inputs: &[String], outputs: &[String]| anfora_onnx::proto::NodeProto {
        input: inputs.to_vec(),
        output: outputs.to_vec(),
        op_type: Some("Foo".into()),
        ..Default::default()
    };
    let (x_name, y_name) = (["x".to_string()], ["y".to_string()]);
    let g = match kind {
        "attributes" => {
            let attributes = names("a").iter().map(|a| int_attribute(a, 1)).collect();
            graph("g", vec![node("Foo", &["x"], &["y"], attributes)], x(), y())
        }
        "results" => {
            let mut outputs = names("z");
            outputs.extend(y_name);
            graph("g", vec![opaque(&x_name, &outputs)], x(), y())
        }
        "inputs" => {
            let inputs = names("x").iter().map(|i| typed(i, symbolic_type(1, &[&format!("n{i}")]))).collect();
            graph("g", vec![opaque(&names("x"), &y_name)], inputs, y())
        }
        "initializers" => {
            let mut g = graph("g", vec![opaque(&names("w"), &y_name)], x(), y());
            let number = |(i, name): (usize, &String)| initializer(name, &Literal::scalar(i as f32));
            g.initializer = names("w").iter().enumerate().map(number).collect();
            g
        }
        "outputs" => {
            let nodes = names("y").iter().map(|y| node("Relu", &["x"], &[y], vec![])).collect();
            graph("g", nodes, x(), names("y").iter().map(|y| float(y, &[2])).collect())
        }
        "constants" => {
            let value =
                |i: usize| tensor_attribute("value", tensor_of(&Literal::scalar(i as f32), 8).expect("a number"));
            let mut nodes: Vec<_> =
                names("c").iter().enumerate().map(|(i, c)| node("Constant", &[], &[c], vec![value(i)])).collect();
            nodes.push(opaque(&names("c"), &y_name));
            graph("g", nodes, x(), y())
        }
        other => unreachable!("{other}"),
    };
    model(13, g)
}

#[test]
fn what_is_kept_is_linear_in_the_file() {
    let weigh = |kind: &str, n: usize| {
        let module = imported(wide(kind, n).encode_to_vec());
        let body = &module.get(module.find("main").expect("@main")).expect("it is there").body;
        let cx = &module.cx;
        [body.len(), body.operand_count(), cx.names.len(), cx.types.len(), cx.attrs.len(), cx.literals.len()]
    };
    for kind in ["attributes", "results", "inputs", "initializers", "outputs", "constants"] {
        let (small, large) = (weigh(kind, 1_000), weigh(kind, 10_000));
        for (s, l) in small.into_iter().zip(large) {
            assert!(l <= 10 * s + 100, "{kind}: {small:?} at 1,000, {large:?} at 10,000");
        }
    }
}

#[test]
fn statements_about_large_types_cost_what_they_say() {
    // A value with `n` extents under `n` names, and a short statement about each name.
    let counted = |n: usize, stated: &dyn Fn(&str) -> ValueInfoProto| {
        let nodes = (0..n).map(|i| node("Identity", &["x"], &[&format!("v{i}")], vec![]));
        let nodes = nodes.chain([node("Relu", &["x"], &["y"], vec![])]).collect();
        let mut m = model(17, graph("g", nodes, vec![float("x", &vec![1; n])], vec![typed("y", of_no_shape())]));
        m.graph.as_mut().expect("a graph").value_info = (0..n).map(|i| stated(&format!("v{i}"))).collect();
        let before = work::count();
        let imported = import(m.encode_to_vec().into(), &ImportOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        (work::count() - before, imported.warnings.len())
    };
    for (stated, is_wrong) in [
        (&(|name: &str| float(name, &[7])) as &dyn Fn(&str) -> ValueInfoProto, true),
        (&|name: &str| typed(name, of_no_shape()), false),
    ] {
        let [(small, of_small), (large, of_large)] = [250, 2000].map(|n| counted(n, stated));
        assert_eq!([of_small, of_large], if is_wrong { [250, 2000] } else { [0, 0] });
        assert!(small > 250 && large <= small * 10, "{small} accesses of 250 extents, {large} of 2000");
    }
}

/// Returns the type of float tensors of any shape.
fn of_no_shape() -> TypeProto {
    let tensor = Tensor { elem_type: Some(FLOAT), shape: None };
    TypeProto { value: Some(Value::TensorType(tensor)), denotation: None }
}
