//! A model with everything that has no operator of ours goes through every registered pass and
//! keeps its meaning.

use std::collections::BTreeMap;

use anfora_manager::{Pass, PassContext, parse_pipeline};
use anfora_onnx::convert::float_attribute;
use anfora_onnx::proto::{
    AttributeProto, AttributeType, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
};
use prost::Message;

use crate::models::{
    BOOL, FLOAT, INT64, float, floats, graph, graph_attribute, info, initializer, model, node, read, symbolic_type,
    typed, write,
};

const DOMAIN: &str = "com.example";
/// Passes that need other passes before them, and a pass whose result must be converted back: the
/// pass, the text before it, and the text after it.
const AROUND: &[(&str, &str, &str)] =
    &[("FuseOps", "ConvertToDataflow,", ""), ("ToGraphNormalForm", "", ",ToANormalForm")];

/// Returns a model with an `If` in a function that is called by a loop with two captured values, a
/// scan with one captured value, a sequence, and an operator of another domain.
fn everything() -> ModelProto {
    let one = |name: &str, op: &str, attributes| {
        graph(name, vec![node(op, &["a"], &[name], attributes)], vec![], vec![float(name, &[4])])
    };
    let branches = vec![
        graph_attribute("then_branch", &one("t", "LeakyRelu", vec![float_attribute("alpha", 0.5)])),
        graph_attribute("else_branch", &one("e", "Neg", vec![])),
    ];
    let import = |domain: &str, version| OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) };
    let choose = FunctionProto {
        name: Some("choose".into()),
        domain: Some(DOMAIN.into()),
        input: vec!["a".into(), "c".into()],
        output: vec!["b".into()],
        node: vec![node("If", &["c"], &["b"], branches)],
        opset_import: vec![import("", 18)],
        ..FunctionProto::default()
    };
    let of_domain = |op: &str, inputs: &[&str], outputs: &[&str], attributes| NodeProto {
        domain: Some(DOMAIN.into()),
        ..node(op, inputs, outputs, attributes)
    };
    let body = graph(
        "body",
        vec![
            of_domain("choose", &["v", "flag"], &["w"], vec![]),
            node("Add", &["w", "h"], &["u"], vec![]),
            node("Add", &["u", "k"], &["next"], vec![]),
            node("Identity", &["go"], &["again"], vec![]),
        ],
        vec![info("i", INT64, &[]), info("go", BOOL, &[]), float("v", &[4])],
        vec![info("again", BOOL, &[]), float("next", &[4]), float("u", &[4])],
    );
    let step = graph(
        "step",
        vec![node("Mul", &["s", "h"], &["m"], vec![]), node("Add", &["m", "row"], &["sum"], vec![])],
        vec![float("s", &[4]), float("row", &[4])],
        vec![float("sum", &[4]), float("m", &[4])],
    );
    let inputs = AttributeProto {
        name: Some("num_scan_inputs".into()),
        i: Some(1),
        r#type: Some(AttributeType::Int as i32),
        ..AttributeProto::default()
    };
    let nodes = vec![
        node("Exp", &["x"], &["h"], vec![]),
        node("Loop", &["n", "", "x"], &["last", "rows"], vec![graph_attribute("body", &body)]),
        node("Scan", &["h", "rows"], &["total", "scanned"], vec![graph_attribute("body", &step), inputs]),
        of_domain("Weird", &["total", "", "last"], &["p", "", "q"], vec![float_attribute("z", 2.0)]),
        node("SequenceConstruct", &["p", "q", "total"], &["all"], vec![]),
        node("SequenceAt", &["all", "n"], &["y"], vec![]),
    ];
    let mut g = graph(
        "g",
        nodes,
        vec![float("x", &[4]), info("n", INT64, &[]), info("flag", BOOL, &[])],
        vec![float("y", &[4]), typed("scanned", symbolic_type(FLOAT, &["rounds", "4"]))],
    );
    g.value_info =
        vec![typed("rows", symbolic_type(FLOAT, &["rounds", "4"])), float("total", &[4]), float("last", &[4])];
    g.initializer = vec![initializer("k", &floats(&[1.0, 2.0, 3.0, 4.0]))];
    let mut m = model(18, g);
    m.opset_import.push(import(DOMAIN, 1));
    m.functions = vec![choose];
    m
}

/// The values of names.
type Values = BTreeMap<String, String>;

/// The distinct calls of operators, as text in which operands are the numbers of other calls.
#[derive(Default)]
struct Calls(Vec<String>);

impl Calls {
    /// Returns the outputs of a model as text. Functions and identities are expanded, and names do
    /// not matter.
    fn of_model(&mut self, model: &ModelProto) -> Vec<String> {
        let graph = model.graph.as_ref().expect("a model has a graph");
        let values = graph.input.iter().map(|i| (i.name().to_string(), format!("input {}", i.name()))).collect();
        self.of_graph(model, graph, values, 0)
    }

    fn of_graph(&mut self, model: &ModelProto, graph: &GraphProto, mut values: Values, depth: usize) -> Vec<String> {
        for t in &graph.initializer {
            let literal = anfora_onnx::read_tensor(t.encode_to_vec().into()).expect("a tensor");
            values.insert(t.name().to_string(), format!("{literal:?}"));
        }
        self.of_nodes(model, &graph.node, &mut values, depth);
        graph.output.iter().map(|o| values[o.name()].clone()).collect()
    }

    /// Adds the calls of nodes, each after those that it uses.
    fn of_nodes(&mut self, model: &ModelProto, nodes: &[NodeProto], values: &mut Values, depth: usize) {
        for n in nodes {
            let value = |name: &String| match name.as_str() {
                "" => "nothing".to_string(),
                name => values.get(name).unwrap_or_else(|| panic!("{name} is not defined: {n:?}")).clone(),
            };
            let inputs: Vec<String> = n.input.iter().map(value).collect();
            let function = model.functions.iter().find(|f| f.domain() == n.domain() && f.name() == n.op_type());
            let results: Vec<String> = match function {
                Some(f) => {
                    let mut own: Values = f.input.iter().cloned().zip(inputs).collect();
                    self.of_nodes(model, &f.node, &mut own, depth);
                    f.output.iter().map(|o| own[o].clone()).collect()
                }
                None if n.op_type() == "Identity" => inputs,
                None => {
                    let attributes = n.attribute.iter().map(|a| self.of_attribute(model, a, values, depth));
                    let mut attributes: Vec<String> = attributes.collect();
                    attributes.sort();
                    let call =
                        format!("{}.{}({})[{}]", n.domain(), n.op_type(), inputs.join(", "), attributes.join(", "));
                    let number = self.0.iter().position(|c| *c == call).unwrap_or(self.0.len());
                    if number == self.0.len() {
                        self.0.push(call);
                    }
                    (0..n.output.len()).map(|i| format!("%{number}.{i}")).collect()
                }
            };
            values.extend(n.output.iter().cloned().zip(results));
        }
    }

    fn of_attribute(&mut self, model: &ModelProto, a: &AttributeProto, values: &Values, depth: usize) -> String {
        let Some(graph) = a.g.clone() else { return format!("{a:?}") };
        let graph = GraphProto::decode(graph).expect("a graph");
        let params = graph.input.iter().enumerate().map(|(i, p)| (p.name().to_string(), format!("param {depth}.{i}")));
        let all = values.clone().into_iter().chain(params).collect();
        format!("{}: {:?}", a.name(), self.of_graph(model, &graph, all, depth + 1))
    }
}

/// DecomposeOps writes calls in other operators, and EnterPhase refuses the model.
#[test]
fn every_pass_keeps_what_is_kept_whole() {
    let went = everything();
    let mut calls = Calls::default();
    let expected = calls.of_model(&went);
    assert_eq!(calls.of_model(&write(&read(&went))), expected, "{:#?}", calls.0);
    let registry = anfora_passes::registry();
    let names: Vec<String> = registry.passes().iter().map(|p| p.name().to_string()).collect();
    assert!(names.len() >= 15, "{names:?}");
    for name in names
        .iter()
        .map(String::as_str)
        .chain(["O1", "O2", "O3"])
        .filter(|n| !["EnterPhase", "DecomposeOps"].contains(n))
    {
        let (_, before, after) = AROUND.iter().find(|a| a.0 == name).copied().unwrap_or((name, "", ""));
        let pipeline = parse_pipeline(&registry, &format!("{before}{name}{after}")).unwrap_or_else(|e| panic!("{e}"));
        let mut module = read(&went);
        let cx = PassContext::builder().registry(registry.clone()).opt_level(3).build().expect("a context");
        pipeline.apply(&mut module, &cx).unwrap_or_else(|e| panic!("{name}: {e}"));
        let came = write(&module);
        assert_eq!(calls.of_model(&came), expected, "{name}: {:#?}\n{module}", calls.0);
        assert!(anfora_ir::alpha_equal(&read(&came), &read(&write(&read(&came)))), "{name}\n{module}");
    }
}
