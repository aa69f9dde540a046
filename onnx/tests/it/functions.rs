//! Functions of a module that the entry calls become functions of the model and are read back.

use anfora_ir::{Module, Source, Visibility, alpha_equal, first_difference, parse_module};
use anfora_onnx::proto::{AttributeProto, FunctionProto, ModelProto, NodeProto, OperatorSetIdProto, ValueInfoProto};
use anfora_onnx::{ExportOptions, export, registry};
use prost::Message;

use crate::models::{FLOAT, info, node, read, symbolic_type, try_read, typed};

fn parsed(text: &str) -> Module {
    parse_module(Source::new("test", text), registry()).unwrap_or_else(|e| panic!("{}\n{text}", e[0]))
}

fn written(module: &Module) -> ModelProto {
    let exported = export(module, &ExportOptions::default()).unwrap_or_else(|e| panic!("{e}\n{module}"));
    let model = ModelProto::decode(exported.bytes.as_slice()).unwrap();
    let in_functions: usize = model.functions.iter().map(|f| f.node.len()).sum();
    // Nodes in graphs inside nodes count, too.
    assert!(exported.nodes.total() >= model.graph.as_ref().unwrap().node.len() + in_functions);
    model
}

/// Writes a program and reads it back. Asserts that the result is the program, except for
/// attributes about the file, and that it is preserved when it is written and read again.
fn comes_back(text: &str) -> (ModelProto, Module) {
    let module = parsed(text);
    let model = written(&module);
    let back = read(&model);
    let mut bare = back.clone();
    let none = bare.cx.attrs.empty();
    bare.set_attrs(none);
    if let Some(difference) = first_difference(&module, &bare) {
        panic!("{difference}\n{module}\nbut got\n{bare}");
    }
    let again = read(&written(&back));
    assert!(alpha_equal(&back, &again), "{back}\nthen\n{again}");
    (model, back)
}

fn refused(text: &str) -> String {
    export(&parsed(text), &ExportOptions::default()).unwrap_err().to_string()
}

const RELU: &str = "def private @fused(%x: Tensor[(n, 4), float32], Primitive=1) {
  let %a = add(%x, dense<Tensor[(4,), float32]>[1, 2, 3, 4]);
  let %b = nn.relu(%a);
  %b
}";

#[test]
fn a_function_is_one_of_the_model() {
    let (model, back) = comes_back(&format!(
        "{RELU}
         def @main(%x: Tensor[(8, 4), float32], %y: Tensor[(m, 4), float32]) {{
           let %u = @fused(%x);
           let %v = @fused(%y);
           (%u, %v)
         }}"
    ));
    let [function] = model.functions.as_slice() else { panic!("{} functions", model.functions.len()) };
    assert_eq!((function.name(), function.domain()), ("fused", "anfora"));
    assert_eq!(function.node.iter().map(NodeProto::op_type).collect::<Vec<_>>(), ["Add", "Relu"]);
    // The constant is an initializer that both calls pass; it needs no node.
    let graph = model.graph.as_ref().unwrap();
    assert_eq!(graph.initializer.len(), 1);
    assert_eq!(graph.node.len(), 2);
    assert!(graph.node.iter().all(|n| n.domain() == "anfora" && n.op_type() == "fused" && n.input.len() == 2));
    for imports in [&model.opset_import, &function.opset_import] {
        assert!(imports.iter().any(|o| o.domain().is_empty()));
    }
    assert!(model.opset_import.iter().any(|o| o.domain() == "anfora"));
    assert!(model.ir_version() >= 10);

    let key = back.find("fused").unwrap();
    let function = back.get(key).unwrap();
    assert_eq!(function.visibility, Visibility::Private);
    assert_eq!(back.functions().count(), 2);
    assert!(back.to_string().contains("def private @fused(%x: Tensor[(n, 4), float32], Primitive=1)"), "{back}");
}

#[test]
fn functions_call_functions_and_return_tuples() {
    let (model, _) = comes_back(
        "def private @inner(%x: Tensor[(4,), float32], %k: Tensor[(), float32], Primitive=1, Kind=\"scale\", Ratio=0.5, On=true) {
           let %a = multiply(%x, %k);
           let %b = multiply(%a, dense<Tensor[(4,), float32]>[1, 2, 3, 4]);
           let %c = negative(%a);
           (%b, %c)
         }
         def private @outer(%x: Tensor[(4,), float32]) {
           let %0 = @inner(%x, 2f);
           let %b = %0.0;
           let %c = %0.1;
           let %d = add(%b, %c);
           %d
         }
         def @main(%x: Tensor[(4,), float32]) {
           let %u = @outer(%x);
           let %0 = @inner(%u, 3f);
           let %b = %0.0;
           let %c = %0.1;
           (%b, %c)
         }",
    );
    // Each function comes after the functions that it calls.
    assert_eq!(model.functions.iter().map(FunctionProto::name).collect::<Vec<_>>(), ["inner", "outer"]);
    // The constant of the inner function is passed through the outer function.
    let graph = model.graph.as_ref().unwrap();
    assert_eq!(graph.initializer.len(), 3);
}

#[test]
fn the_form_of_a_result_comes_back() {
    comes_back(
        "def private @value(%x: Tensor[(4,), float32]) { let %y = negative(%x); nn.relu(%y) }
         def private @only(%x: Tensor[(4,), float32]) { nn.relu(%x) }
         def private @one(%x: Tensor[(4,), float32]) { let %y = nn.relu(%x); (%y,) }
         def private @whole(%x: Tensor[(4,), float32]) { let %y = nn.relu(%x); let %0 = split(%y, sections=2); %0 }
         def private @fields(%x: Tensor[(4,), float32]) { let %0 = split(%x, sections=2); let %a = %0.0; let %b = %0.1; (%a, %b) }
         def private @swapped(%x: Tensor[(4,), float32]) { let %0 = split(%x, sections=2); let %a = %0.0; let %b = %0.1; (%b, %a) }
         def private @last(%x: Tensor[(4,), float32]) { split(%x, sections=2) }
         def @public(%x: Tensor[(4,), float32]) { let %y = nn.relu(%x); %y }
         def @main(%x: Tensor[(4,), float32]) {
           let %a = @value(%x);
           let %b = @only(%a);
           let %0 = @one(%b);
           let %c = %0.0;
           let %d = @public(%c);
           let %1 = @whole(%d);
           let %e = %1.0;
           let %f = %1.1;
           let %2 = @fields(%d);
           let %g = %2.0;
           let %h = %2.1;
           let %3 = @swapped(%d);
           let %i = %3.0;
           let %j = %3.1;
           let %4 = @last(%d);
           let %k = %4.0;
           let %l = %4.1;
           (%e, %f, %g, %h, %i, %j, %k, %l)
         }",
    );
}

#[test]
fn graphs_in_functions_and_calls_in_graphs() {
    let (model, _) = comes_back(
        "def private @leaf(%x: Tensor[(4,), float32]) { let %y = add(%x, dense<Tensor[(4,), float32]>[1, 2, 3, 4]); %y }
         def private @choose(%c: Tensor[(), bool], %x: Tensor[(4,), float32]) {
           let %y = if (%c) { let %a = @leaf(%x); %a } else { let %b = multiply(%x, 2f); %b };
           let %graph = fn () { let %d = nn.relu(%y); %d };
           let %z: Tensor[(4,), float32] = onnx.Once(%c, %graph, onnx_subgraphs=[\"graph\"]);
           %z
         }
         def @main(%c: Tensor[(), bool], %x: Tensor[(4,), float32]) { let %y = @choose(%c, %x); %y }",
    );
    assert_eq!(model.functions.len(), 2);
}

#[test]
fn many_constants_are_nodes_of_their_function() {
    let mut text = "def private @f(%v0: Tensor[(), float32]) {\n".to_string();
    for i in 1..=40 {
        text += &format!("  let %v{i} = add(%v{}, {i}f);\n", i - 1);
    }
    text += "  %v40 }\ndef @main(%x: Tensor[(), float32]) { let %y = @f(%x); %y }";
    let (model, _) = comes_back(&text);
    let [function] = model.functions.as_slice() else { panic!("{} functions", model.functions.len()) };
    assert_eq!(function.node.len(), 80);
    assert!(model.graph.as_ref().unwrap().initializer.is_empty());
}

#[test]
fn a_model_of_an_old_version_is_one_again_without_functions() {
    let head = "#![onnx_ir_version=3, onnx_opsets=[[\"\", 9]]]";
    let text = format!("{head} {RELU} def @main(%x: Tensor[(8, 4), float32]) {{ let %y = @fused(%x); %y }}");
    let module = parsed(&text);
    let model = written(&module);
    assert_eq!(model.ir_version(), 10);
    assert_eq!(model.graph.as_ref().unwrap().input.len(), 1);
    let back = read(&model);
    assert!(alpha_equal(&module, &back), "{module}\nthen\n{back}");
    let plain = format!("{head} def @main(%x: Tensor[(8, 4), float32]) {{ let %y = add(%x, 1f); %y }}");
    let model = written(&parsed(&plain));
    assert_eq!((model.ir_version(), model.graph.as_ref().unwrap().input.len()), (3, 2));
}

#[test]
fn what_is_no_function_of_a_model_is_refused() {
    let error = refused(
        "def private @f(%x: Tensor[(4,), float32]) -> Tensor[(4,), float32] { let %y = @g(%x); %y }
         def private @g(%x: Tensor[(4,), float32]) -> Tensor[(4,), float32] { let %y = @f(%x); %y }
         def @main(%x: Tensor[(4,), float32]) { let %y = @f(%x); %y }",
    );
    assert!(error.contains("in @g, at %y: `@f` calls itself"), "{error}");
    let error = refused("def @main(%x: Tensor[(4,), float32]) -> Tensor[(4,), float32] { let %y = @main(%x); %y }");
    assert!(error.contains("`@main` calls itself"), "{error}");
    let error = refused(
        "declare @gone(%x: Tensor[(4,), float32]) -> Tensor[(4,), float32];
         def @main(%x: Tensor[(4,), float32]) { let %y = @gone(%x); %y }",
    );
    assert!(error.contains("in @main, at %y: `@gone` is called and has no body"), "{error}");
    let error = refused(
        "def private @f(%x: Tensor[(4,), float32]) { let %y = floor_divide(%x, %x); %y }
         def @main(%x: Tensor[(4,), float32]) { let %y = @f(%x); %y }",
    );
    assert!(error.contains("in @f, at %y: the operator `floor_divide`"), "{error}");
}

#[test]
fn tuples_are_no_arguments_and_are_not_nested_in_results() {
    let pair = "(Tensor[(4,), float32], Tensor[(4,), float32])";
    let error = refused(&format!(
        "def private @f(%t: {pair}) {{ let %a = %t.0; let %b = nn.relu(%a); %b }}
         def @main(%x: Tensor[(4,), float32]) {{ let %t = (%x, %x); let %y = @f(%t); %y }}"
    ));
    assert!(error.contains(&format!("in @f, at %a: the type {pair} cannot be written")), "{error}");
    let error = refused(&format!(
        "def private @f(%t: {pair}, %x: Tensor[(4,), float32]) {{ let %b = nn.relu(%x); %b }}
         def @main(%x: Tensor[(4,), float32]) {{ let %t = (%x, %x); let %y = @f(%t, %x); %y }}"
    ));
    assert!(error.contains("in @main, at %y: a tuple as an operand cannot be written"), "{error}");
    let error = refused(
        "def private @f(%x: Tensor[(4,), float32]) { let %a = nn.relu(%x); (%a, (%a, %x)) }
         def @main(%x: Tensor[(4,), float32]) { let %u = @f(%x); let %y = %u.0; %y }",
    );
    assert!(error.contains(&format!("in @main, at %u: the type {pair} cannot be written")), "{error}");
}

/// Returns a model that calls a function of our domain for which the file states no types.
fn untyped(calls: &[NodeProto], function: Vec<NodeProto>) -> ModelProto {
    let module = parsed(
        "#![onnx_ir_version=10, onnx_opsets=[[\"\", 18], [\"anfora\", 1]]] def @main(%x: Tensor[(2, 3), float32]) { %x }",
    );
    let mut model = written(&module);
    let graph = model.graph.as_mut().unwrap();
    graph.node = calls.to_vec();
    for call in calls {
        graph.output.extend(call.output.iter().map(|o| ValueInfoProto { name: Some(o.clone()), ..Default::default() }));
    }
    graph.output.remove(0);
    graph.input = vec![info("x", FLOAT, &[2, 3]), typed("y", symbolic_type(FLOAT, &["n", "4"]))];
    model.functions = vec![FunctionProto {
        name: Some("f".to_string()),
        domain: Some("anfora".to_string()),
        input: vec!["a".to_string()],
        output: vec!["b".to_string()],
        node: function,
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(18) }],
        ..FunctionProto::default()
    }];
    model
}

fn call(input: &str, output: &str) -> NodeProto {
    NodeProto { domain: Some("anfora".to_string()), ..node("f", &[input], &[output], vec![]) }
}

#[test]
fn a_function_without_types_gets_a_copy_for_each() {
    let body = vec![node("Relu", &["a"], &["b"], vec![])];
    let calls = [call("x", "u"), call("y", "v"), call("x", "w")];
    let module = read(&untyped(&calls, body));
    let text = module.to_string();
    assert_eq!(module.functions().count(), 3, "{text}");
    assert!(text.contains("def private @f(%a: Tensor[(2, 3), float32])"), "{text}");
    assert!(text.contains("def private @f_1(%a: Tensor[(n, 4), float32])"), "{text}");
    assert!(text.contains("let %w = @f(%x)"), "{text}");
    assert_eq!(written(&module).functions.len(), 2);
}

#[test]
fn a_copy_for_a_call_does_not_state_the_types_of_the_file() {
    // The file states the type of one parameter of two. The second call gives a value of unknown
    // type.
    let unknown = NodeProto { domain: Some("other".to_string()), ..node("Odd", &["u"], &["v"], vec![]) };
    let calls = [call("x", "u"), unknown, call("v", "w")].map(|mut call| {
        call.input.push("x".to_string());
        call
    });
    let mut model = untyped(&calls, vec![node("Odd", &["a"], &["b"], vec![])]);
    let f = &mut model.functions[0];
    f.input.push("k".to_string());
    f.node[0].domain = Some("other".to_string());
    f.opset_import.push(OperatorSetIdProto { domain: Some("other".to_string()), version: Some(1) });
    f.value_info = ["a", "b"].map(|name| info(name, FLOAT, &[2, 3])).to_vec();
    model.opset_import.push(OperatorSetIdProto { domain: Some("other".to_string()), version: Some(1) });
    let module = read(&model);
    assert!(module.to_string().contains("def private @f_1(%a: Any"), "{module}");
    let once = written(&module);
    assert!(once == written(&read(&once)), "{module}");
}

#[test]
fn what_cannot_be_a_function_of_the_module_is_kept() {
    // The call has an attribute that the function does not declare.
    let mut odd = call("x", "u");
    odd.attribute.push(AttributeProto {
        name: Some("k".to_string()),
        i: Some(1),
        r#type: Some(2),
        ..Default::default()
    });
    let model = untyped(&[odd, call("x", "v")], vec![node("Relu", &["a"], &["b"], vec![])]);
    let module = read(&model);
    let text = module.to_string();
    assert!(text.contains("onnx.anfora.f(%x, k=1)") && text.contains("let %v = @f(%x)"), "{text}");
    let again = written(&module);
    // The kept function keeps its name; the other function gets a new one.
    assert_eq!(again.functions.iter().map(FunctionProto::name).collect::<Vec<_>>(), ["f", "f_1"]);
    assert_eq!(again.functions[0], model.functions[0]);
    // A function without calls is kept, too.
    let model = untyped(&[node("Relu", &["x"], &["u"], vec![])], vec![node("Relu", &["a"], &["b"], vec![])]);
    assert_eq!(written(&read(&model)).functions, model.functions);
}

#[test]
fn a_function_of_a_file_that_calls_itself_is_refused() {
    let model = untyped(&[call("x", "u")], vec![call("a", "b")]);
    let error = try_read(&model).unwrap_err().to_string();
    assert!(error.contains("the function `f`, node 0") && error.contains("calls itself"), "{error}");
}

#[test]
fn copies_are_limited() {
    // Each function calls the next with two new shapes, which would make 2^20 copies without a
    // limit.
    let depth = 20;
    let functions = (0..depth).map(|i| {
        let next = format!("f{}", i + 1);
        let mut nodes = vec![
            node("Concat", &["a", "a"], &["wide"], vec![int("axis", 0)]),
            node("Concat", &["a", "a", "a"], &["wider"], vec![int("axis", 0)]),
        ];
        let ops: &[(&str, &str)] = &[("wide", "c"), ("wider", "d")];
        for (input, output) in ops {
            nodes.push(match i + 1 < depth {
                true => NodeProto { domain: Some("anfora".to_string()), ..node(&next, &[input], &[output], vec![]) },
                false => node("Relu", &[input], &[output], vec![]),
            });
        }
        nodes.push(node("Concat", &["c", "d"], &["b"], vec![int("axis", 0)]));
        let mut f = untyped(&[], nodes).functions.remove(0);
        f.name = Some(format!("f{i}"));
        f
    });
    let mut model = untyped(&[NodeProto { op_type: Some("f0".to_string()), ..call("x", "u") }], vec![]);
    model.functions = functions.collect();
    let module = read(&model);
    assert!(module.functions().count() <= 16 * depth + 1, "{} functions", module.functions().count());
    let again = read(&written(&module));
    assert!(again.functions().count() <= 32 * depth);
}

fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { name: Some(name.to_string()), i: Some(value), r#type: Some(2), ..Default::default() }
}
