//! Export of programs that do not come from a file, and programs that cannot be written.

use anfora_ir::{Module, Source, parse_module};
use anfora_onnx::proto::type_proto::Value;
use anfora_onnx::proto::{GraphProto, ModelProto};
use anfora_onnx::{ExportOptions, ExportProblem, export, registry};
use anfora_passes::{inline_functions, lift_lambdas, normalize, to_a_normal_form};
use bytes::Bytes;
use prost::Message;

use crate::models::{float, floats, graph, initializer, model, node, node_types, read, write};

fn parse(text: &str) -> Module {
    match parse_module(Source::new("test", text), registry()) {
        Ok(module) => module,
        Err(e) => panic!("{}\n{text}", e[0]),
    }
}

fn written(text: &str) -> ModelProto {
    write(&parse(text))
}

fn written_graph(text: &str) -> GraphProto {
    written(text).graph.expect("a model has a graph")
}

/// Returns each node as `op(inputs) -> outputs`.
fn lines(graph: &GraphProto) -> Vec<String> {
    let line = |n: &anfora_onnx::proto::NodeProto| {
        format!("{}({}) -> {}", n.op_type(), n.input.join(", "), n.output.join(", "))
    };
    graph.node.iter().map(line).collect()
}

fn refused(text: &str, words: &[&str]) {
    let error = export(&parse(text), &ExportOptions::default()).expect_err("it cannot be written").to_string();
    for w in words {
        assert!(error.contains(w), "`{w}` is not in: {error}");
    }
}

#[test]
fn tuples_and_aliases_leave_no_node() {
    let g = written_graph(
        "def @main(%x: Tensor[(4,), float32]) {
           let %a = nn.relu(%x);
           let %b = %a;
           let %p = (%x, %a);
           let %t = (%b, %p);
           let %u = %t.1;
           let %u0 = %u.0;
           let %t0 = %t.0;
           let %c = add(%u0, %t0);
           let %s = split(%c, sections=2);
           let %y = %s.1;
           (%y, %u0, %a)
         }",
    );
    assert_eq!(lines(&g), ["Relu(x) -> a", "Add(x, a) -> c", "Split(c) -> v, y"], "{g:#?}");
    assert_eq!(output_names(&g), ["y", "x", "a"]);
}

fn output_names(graph: &GraphProto) -> Vec<&str> {
    graph.output.iter().map(|o| o.name()).collect()
}

#[test]
fn a_value_may_be_several_results() {
    let g = written_graph("def @main(%x: Tensor[(4,), float32]) { let %y = nn.relu(%x); (%x, %y, %x, %y) }");
    assert_eq!(lines(&g), ["Relu(x) -> y", "Identity(x) -> x_1", "Identity(y) -> y_1"]);
    assert_eq!(output_names(&g), ["x", "y", "x_1", "y_1"]);
}

#[test]
fn a_call_may_be_the_tail() {
    assert_eq!(lines(&written_graph("def @main(%x: Tensor[(4,), float32]) { nn.relu(%x) }")), ["Relu(x) -> output"]);
    let g = written_graph("def @main(%x: Tensor[(4,), float32]) { split(%x, sections=2) }");
    assert_eq!(lines(&g), ["Split(x) -> output, output_1"]);
}

/// Trailing outputs without a use are left out, but not the fields of a returned tuple.
#[test]
fn all_fields_of_a_tuple_that_is_returned_are_outputs() {
    let call = "nn.layer_norm(%x, dense<Tensor[(4,), float32]>[1, 2, 3, 4], statistics=true)";
    let main = |tail: &str| format!("def @main(%x: Tensor[(2, 4), float32]) {{ let %t = {call}; {tail} }}");
    let g = written_graph(&main("%t"));
    assert_eq!(
        (g.node[0].output.len(), &g.node[0].output),
        (3, &g.output.iter().map(|o| o.name().to_owned()).collect::<Vec<_>>())
    );
    assert_eq!(written_graph(&main("%t.0")).node[0].output.len(), 1);
}

#[test]
fn inputs_keep_their_types() {
    let g = written_graph(
        "def @main(%x: Tensor[(n, 3, ?), float32], %y: Tensor[?, int64], %z: Tensor[(), bool]) { nn.relu(%x) }",
    );
    let shapes: Vec<_> = g
        .input
        .iter()
        .map(|i| match i.r#type.as_ref().and_then(|t| t.value.as_ref()) {
            Some(Value::TensorType(t)) => t.shape.as_ref().map(|s| s.dim.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(shapes, [Some(3), None, Some(0)]);
    assert!(format!("{:?}", g.input[0]).contains("DimParam(\"n\")"));
}

#[test]
fn equal_constants_are_one_initializer() {
    let g = written_graph(
        "def @main(%x: Tensor[(2,), float32]) {
           let %a = add(%x, dense<Tensor[(2,), float32]>[1, 2]);
           let %b = multiply(%a, dense<Tensor[(2,), float32]>[1, 2]);
           let %c = subtract(%b, 1f);
           divide(%c, 1f)
         }",
    );
    assert_eq!(g.initializer.len(), 2);
    assert_eq!(lines(&g)[0], "Add(x, c_1) -> a");
}

#[test]
fn a_large_splat_becomes_a_node() {
    let text = "def @main(%x: Tensor[(100, 100), float32]) {
           let %a = add(%x, dense<Tensor[(100, 100), float32]>[1]);
           let %b = add(%a, dense<Tensor[(100, 100), float32]>[1]);
           let %c = add(%b, dense<Tensor[(100, 100), float32]>[2]);
           add(%c, dense<Tensor[(100, 1), float32]>[2])
         }";
    let module = parse(text);
    let nodes = |options: &ExportOptions| {
        let exported = export(&module, options).expect("it can be written");
        let m = ModelProto::decode(Bytes::from(exported.bytes)).expect("a model");
        assert_eq!(exported.nodes.total(), node_types(&m).len());
        let fills = node_types(&m).iter().filter(|n| **n == "ConstantOfShape").count();
        (fills, m.graph.expect("a graph").initializer.len())
    };
    let options = ExportOptions::default();
    assert_eq!(nodes(&options), (2, 2), "two values, one shape for both, one small constant");
    let up_to = |max_splat_bytes| ExportOptions { max_splat_bytes, ..options.clone() };
    assert_eq!(nodes(&up_to(40_000)), (0, 3));
    assert_eq!(nodes(&up_to(u64::MAX)), (0, 3));
    let tight = ExportOptions { max_total_splat_bytes: 50_000, ..up_to(40_000) };
    assert_eq!(nodes(&tight), (1, 3), "only the first of the large ones fits, and the small one");
    assert_eq!(nodes(&up_to(0)), (3, 2));
}

#[test]
fn a_splat_past_every_limit_is_still_a_node() {
    let text = "def @main(%x: Tensor[(), float32]) { multiply(%x, dense<Tensor[(1000000, 1000000), float32]>[1]) }";
    assert_eq!(node_types(&written(text)), ["ConstantOfShape", "Mul"]);
    // No file can hold it, whatever the options are.
    let unlimited = ExportOptions { max_splat_bytes: u64::MAX, ..ExportOptions::default() };
    assert_eq!(export(&parse(text), &unlimited).map(|e| e.nodes.total()), Ok(2));
    // Before version 9 there is no such node.
    let error = export(&parse(text), &ExportOptions { opset: Some(8), ..unlimited }).expect_err("it is too large");
    assert!(error.to_string().contains("2 GiB"), "{error}");
    assert!(error.diagnostic().help.is_some_and(|h| h.contains("external_data")), "{error}");
}

#[test]
fn the_version_is_one_that_has_the_operators() {
    let opset = |text: &str| {
        let m = written(text);
        (m.opset_import[0].version(), m.ir_version())
    };
    assert_eq!(opset("def @main(%x: Tensor[(4,), float32]) { nn.relu(%x) }"), (18, 8));
    assert_eq!(opset("def @main(%x: Tensor[(4,), float32]) { nn.gelu(%x) }"), (20, 9));
    let old = ExportOptions { opset: Some(9), ..ExportOptions::default() };
    let error = export(&parse("def @main(%x: Tensor[(4,), float32]) { nn.gelu(%x) }"), &old).unwrap_err().to_string();
    assert!(error.contains("`nn.gelu` needs version 20 of the operators; the model is of version 9"), "{error}");
}

/// `Max` and `Min` did not broadcast before version 8.
#[test]
fn extremes_before_version_8_are_of_one_shape() {
    for (opset, extent, is_written) in [(6, 4, true), (7, 4, true), (7, 1, false), (8, 1, true)] {
        let text = format!(
            "#![onnx_opsets=[[\"\", {opset}]]]
             def @main(%x: Tensor[(4,), float32], %y: Tensor[({extent},), float32]) {{ maximum(%x, %y) }}"
        );
        let exported = export(&parse(&text), &ExportOptions::default());
        assert_eq!(exported.is_ok(), is_written, "{opset}, {extent}: {:?}", exported.err());
    }
}

#[test]
fn operators_that_take_several_nodes() {
    let ops = |text: &str| {
        let m = written(text);
        node_types(&m).join(" ")
    };
    assert_eq!(ops("def @main(%x: Tensor[(4,), float32]) { rsqrt(%x) }"), "Sqrt Reciprocal");
    assert_eq!(ops("def @main(%x: Tensor[(4,), float32]) { not_equal(%x, %x) }"), "Equal Not");
    assert_eq!(ops("def @main(%x: Tensor[(4,), float32]) { isfinite(%x) }"), "IsInf IsNaN Or Not");
    assert_eq!(ops("def @main(%x: Tensor[(4,), float32]) { square(%x) }"), "Mul");
    assert_eq!(ops("def @main(%x: Tensor[(4,), int64]) { floor(%x) }"), "Identity");
    assert_eq!(ops("def @main() { zeros(shape=shape(2, 3)) }"), "ConstantOfShape");
    assert_eq!(ops("def @main(%x: Tensor[(4,), float32]) { argmax(%x) }"), "Reshape ArgMax");
    assert_eq!(ops("def @main(%x: Tensor[(4, 2), float32]) { sum(%x, axis=[]) }"), "ReduceSum");
}

#[test]
fn values_of_extents_ask_the_inputs_for_them() {
    let ops = |inputs: &str, shape: &str| {
        let m = written(&format!("def @main({inputs}) {{ shape_to_tensor(shape=shape({shape})) }}"));
        node_types(&m).join(" ")
    };
    let x = "%x: Tensor[(4, n), float32]";
    assert_eq!(ops(x, "2, 3"), "Identity");
    assert_eq!(ops(x, "n"), "Shape Gather Identity");
    assert_eq!(ops(x, "2, 3, n, 4"), "Shape Gather Concat");
    // A value that occurs twice is computed once.
    assert_eq!(ops(x, "n * 2, n * 2 + 1, n * 2"), "Shape Gather Mul Mul Add Concat");
    assert_eq!(ops("%s: Tensor[(2,), int64, [n, 4]]", "n + 1"), "Gather Add Identity");
    assert_eq!(ops("%s: Tensor[(), int64, n]", "n + 1"), "Reshape Gather Add Identity");
    let m = written("def @main(%x: Tensor[(4, n), float32]) { zeros(shape=shape(n, 2)) }");
    assert_eq!(node_types(&m).join(" "), "Shape Gather Concat ConstantOfShape");
}

#[test]
fn values_of_extents_are_computed_as_before() {
    let shape = "n * 3 + m, n - 7, floordiv(n, 2), ceildiv(n, 2), mod(n, 3), min(n, m), max(n, m), 5, floordiv(n - 7, 2), ceildiv(n - 7, 2), mod(n - 7, 3), n * m * n";
    let m = parse(&format!(
        "def @main(%x: Tensor[(n, m), float32]) {{
           let %s = shape_to_tensor(shape=shape({shape}));
           let %z = zeros(shape=shape(m + 1, n));
           (%s, %z)
         }}"
    ));
    let back = read(&write(&m));
    let back_text = back.to_string();
    for extents in [[5, 3], [2, 9], [7, 7], [12, 1]] {
        let x = anfora_ir::Literal::splat(&extents, 1f32);
        let run =
            |m: &Module| anfora_interp::Interpreter::new(m).run("main", std::slice::from_ref(&x)).expect("it runs");
        assert!(run(&m).same(&run(&back)), "{extents:?}\n{back_text}");
    }
}

#[test]
fn operands_have_the_type_and_the_rank_that_the_format_wants() {
    let ops = |operand: &str, call: &str| {
        let m = written(&format!("def @main(%x: Tensor[(4, 1), float32], %i: {operand}) {{ {call} }}"));
        node_types(&m).join(" ")
    };
    assert_eq!(ops("Tensor[(2,), uint8]", "take(%x, %i)"), "Cast Gather");
    assert_eq!(ops("Tensor[(2,), int32]", "take(%x, %i)"), "Gather");
    assert_eq!(ops("Tensor[(2, 1), int16]", "gather_elements(%x, %i)"), "Cast GatherElements");
    assert_eq!(ops("Tensor[(2, 1), int32]", "gather_nd(%x, %i)"), "Cast GatherND");
    assert_eq!(ops("Tensor[(1,), int32]", "reverse_sequence(%x, %i)"), "Cast ReverseSequence");
    assert_eq!(ops("Tensor[(2,), int32]", "tile(%x, %i)"), "Cast Tile");
    assert_eq!(ops("Tensor[(4,), uint8]", "nn.nll_loss(%x, %i)"), "Cast NegativeLogLikelihoodLoss");
    assert_eq!(ops("Tensor[(), int32]", "triu(%x, %i)"), "Cast Trilu");
    assert_eq!(ops("Tensor[(1,), int64]", "tril(%x, %i)"), "Reshape Trilu");
    assert_eq!(ops("Tensor[(), int64]", "tril(%x, %i)"), "Trilu");
    assert_eq!(ops("Tensor[(1, 1), float32]", "clip(%x, none, %i)"), "Reshape Clip");
    assert_eq!(ops("Tensor[(), float32]", "clip(%x, %i)"), "Clip");
}

#[test]
fn what_a_pass_removes_is_refused_with_its_name() {
    refused("def @main(%x: Tensor[(4,), float32]) { nn.relu(nn.relu(%x)) }", &["ToANormalForm"]);
    refused(
        "def @main(%x: Tensor[(4,), float32]) { let %y = { let %z = nn.relu(%x); %z }; %y }",
        &["at %y", "Normalize"],
    );
    refused(
        "def @main(%c: Tensor[(), bool], %x: Tensor[(4,), float32]) { let %y = if (logical_not(%c)) { %x } else { %x }; %y }",
        &["at %y", "ToANormalForm"],
    );
    refused(
        "def @main(%c: Tensor[(), bool]) { let %y = if (%c) { () } else { () }; %c }",
        &["at %y", "an `if` without a result"],
    );
    // The type of the condition selects a branch, but the node would have both.
    refused(
        "def @main(%x: Tensor[(n,), float32]) {
            let %n = shape_of(%x);
            let %k = take(%n, 0i64);
            let %m = add(%k, 1i64);
            let %c = less(%k, %m);
            let %y = if (%c) { exp(%x) } else { %n };
            %y
        }",
        &["at %y", "an `if` whose branches have results of different kinds"],
    );
    refused(
        "def @main(%c: Tensor[(), bool], %x: Tensor[(4,), float32]) {
           let %y = if (%c) { let %t = ((%x, %x), %x); %t } else { let %u = ((%x, %x), %x); %u };
           let %z = %y.1;
           %z
         }",
        &["at %y", "the type"],
    );
    refused(
        "def @main(%x: Tensor[(4,), float32]) {
           let %f = fn (%a: Tensor[(4,), float32]) { nn.relu(%a) };
           let %y = %f(%x);
           %y
         }",
        &["at %y", "LambdaLifting"],
    );
    refused(
        "def @main(%c: Tensor[(), bool], %x: Tensor[(4,), float32]) {
           let %f = make_closure(@branch, %x);
           let %y: Tensor[(4,), float32] = onnx.If(%c, %f, %f, onnx_subgraphs=[\"then_branch\", \"else_branch\"]);
           %y
         }
         def private @branch(%x: Tensor[(4,), float32]) -> Tensor[(4,), float32] { @branch(%x) }",
        &["at %f", "closures"],
    );
    refused("def @main(%x: Tensor[(4,), float32]) { let %f = fn () { %x }; %f }", &["which is a function"]);
    refused(
        "def @main(%x: Tensor[(4,), float32]) { let %y = floor_divide(%x, %x); %y }",
        &["`floor_divide` has no counterpart"],
    );
    refused("def @main(%x: Any) { %x }", &["the type Any cannot be written"]);
    refused("def @main(%x: (Any, Any)) { () }", &["cannot be written"]);
    refused("def @other() { () }", &["there is no function `@main` with a body"]);
}

#[test]
fn the_pass_that_an_error_names_removes_what_it_says() {
    for (body, passes) in [
        ("add(nn.relu(%x), %x)", &["ToANormalForm"][..]),
        ("%s = nn.relu(%x); let %y = add(%s, %s); %y", &["ToANormalForm"]),
        ("let %y = { let %z = nn.relu(%x); %z }; %y", &["Normalize"]),
        (
            "let %f = fn (%a: Tensor[(4,), float32]) { nn.relu(%a) }; let %y = %f(%x); let %z = %f(%y); %z",
            &["LambdaLifting"],
        ),
        ("let %k = exp(%x); let %f = fn () { add(%x, %k) }; let %y = %f(); %y", &["LambdaLifting"]),
        (
            "let %f = fn (%a: Tensor[(4,), float32]) { nn.relu(%a) }; let %y = @twice(%f, %x); %y",
            &["InlineFunctions", "LambdaLifting"],
        ),
        (
            "let %k = exp(%x); let %f = fn (%a: Tensor[(4,), float32]) { add(%a, %k) }; let %y = @twice(%f, %x); %y",
            &["InlineFunctions", "LambdaLifting"],
        ),
    ] {
        let twice =
            "def private @twice(%f: fn(Tensor[(4,), float32]) -> Tensor[(4,), float32], %x: Tensor[(4,), float32])
            -> Tensor[(4,), float32] { let %y = %f(%x); let %z = %f(%y); %z }";
        let mut module = parse(&format!("def @main(%x: Tensor[(4,), float32]) {{ {body} }} {twice}"));
        let mut named = Vec::new();
        while let Err(error) = export(&module, &ExportOptions::default()) {
            let ExportProblem::Pass { pass, .. } = error.problem else { panic!("{error}\n{module}") };
            assert!(!named.contains(&pass), "{error}\n{module}");
            named.push(pass);
            let main = module.find("main").unwrap();
            match pass {
                "LambdaLifting" => assert!(lift_lambdas(&mut module).is_ok()),
                "InlineFunctions" => assert!(inline_functions(&mut module, &[], None).is_ok()),
                other => {
                    let (main, cx) = module.get_mut(main).unwrap();
                    match other {
                        "ToANormalForm" => assert_ne!(to_a_normal_form(cx, &mut main.body), 0),
                        "Normalize" => {
                            normalize(cx, &mut main.body);
                        }
                        _ => panic!("{error}"),
                    }
                }
            }
        }
        assert_eq!(named, passes, "{module}");
    }
}

#[test]
fn what_a_closure_captures_comes_after_the_arguments() {
    let graph = written_graph(
        "def @main(%x: Tensor[(4,), float32]) {
           let %k = exp(%x);
           let %f = make_closure(@less, %k);
           let %y = %f(%x);
           let %z = %f(%y);
           %z
         }
         def private @less(%a: Tensor[(4,), float32], %b: Tensor[(4,), float32]) -> Tensor[(4,), float32] {
           let %c = subtract(%a, %b);
           %c
         }",
    );
    let nodes: Vec<(&str, Vec<String>)> = graph.node.iter().map(|n| (n.op_type(), n.input.clone())).collect();
    let [(exp, _), (first, of_x), (second, of_y)] = nodes.as_slice() else { panic!("{nodes:?}") };
    assert_eq!([*exp, first, second], ["Exp", "Sub", "Sub"]);
    assert_eq!(*of_x, ["x", "k"]);
    assert_eq!(*of_y, [graph.node[1].output[0].as_str(), "k"]);
}

#[test]
fn functions_that_were_lifted_out_of_a_node_are_its_graphs() {
    let text = "def @main(%c: Tensor[(), bool], %x: Tensor[(4,), float32]) {
           let %k = exp(%x);
           let %f = fn () { let %a = nn.relu(%x); add(%a, %k) };
           let %g = fn () {
             let %h = fn () { %x };
             let %z: Tensor[(4,), float32] = onnx.If(%c, %h, %h, onnx_subgraphs=[\"then_branch\", \"else_branch\"]);
             %z
           };
           let %one = fn () { let %o = dense<Tensor[(4,), float32]>[1, 2, 3, 4]; %o };
           let %y: Tensor[(4,), float32] = onnx.If(%c, %f, %g, onnx_subgraphs=[\"then_branch\", \"else_branch\"]);
           let %w: Tensor[(4,), float32] = onnx.If(%c, %one, %one, onnx_subgraphs=[\"then_branch\", \"else_branch\"]);
           (%y, %w)
         }";
    let options = ExportOptions::default();
    let before = export(&parse(text), &options).unwrap();
    let mut lifted = parse(text);
    assert_eq!(anfora_passes::lift_lambdas(&mut lifted).unwrap(), 4);
    assert!(lifted.to_string().contains("make_closure(@main_f"), "{lifted}");
    let after = export(&lifted, &options).unwrap();
    assert_eq!(lifted.order().len(), 5, "the module stays as it is");
    let graph = |bytes: &[u8]| lines(ModelProto::decode(bytes).unwrap().graph.as_ref().unwrap());
    assert_eq!(graph(&after.bytes), graph(&before.bytes));
    assert_eq!(after.nodes.total(), before.nodes.total());
}

#[test]
fn a_fn_that_is_its_own_subgraph() {
    refused(
        "def @main(%c: Tensor[(), bool]) {
           let %f = fn () -> Tensor[(), bool] {
             let %v: Tensor[(), bool] = onnx.If(%c, %f, onnx_subgraphs=[\"then_branch\"]);
             %v
           };
           let %y: Tensor[(), bool] = onnx.If(%c, %f, onnx_subgraphs=[\"then_branch\"]);
           %y
         }",
        &["its own subgraph"],
    );
}

/// Functions that each have the previous function as the subgraph of two nodes.
#[test]
fn a_subgraph_is_not_written_over_and_over_without_end() {
    let parameters = "%i: int64, %c: bool, %a: Tensor[(1,), float32]";
    let node = |name: &str, of: &str, body: &str| {
        format!("let %{name}: Tensor[(1,), float32] = onnx.Loop(%i, %c, %{of}, {body}, onnx_subgraphs=[\"body\"]);")
    };
    let twice = |body: &str| format!("{{ {} {} (%c, %z) }}", node("y", "a", body), node("z", "y", body));
    let globals = |depth: usize| {
        let mut text = format!("def private @f0({parameters}) {{ let %r = nn.relu(%a); (%c, %r) }}\n");
        for i in 1..depth {
            text.push_str(&format!("def private @f{i}({parameters}) {}\n", twice(&format!("@f{}", i - 1))));
        }
        format!("{text}def @main({parameters}) {}", twice(&format!("@f{}", depth - 1)))
    };
    let lambdas = |depth: usize| {
        let mut text = format!("let %f0 = fn ({parameters}) {{ let %r = nn.relu(%a); (%c, %r) }};\n");
        for i in 1..depth {
            text.push_str(&format!("let %f{i} = fn ({parameters}) {};\n", twice(&format!("%f{}", i - 1))));
        }
        let body = format!("%f{}", depth - 1);
        format!("def @main({parameters}) {{ {text} {} {} %z }}", node("y", "a", &body), node("z", "y", &body))
    };
    for text in [globals(8), lambdas(8)] {
        assert!(written(&text).encoded_len() > 1 << 8);
    }
    refused(&globals(30), &["`@f", "is the subgraph of several nodes", "let it call a function"]);
    refused(&lambdas(30), &["`%f", "is the subgraph of several nodes", "let it call a function"]);
}

#[test]
fn one_fn_may_be_several_subgraphs() {
    let g = written_graph(
        "def @main(%c: Tensor[(), bool], %x: Tensor[(4,), float32]) {
           let %f = fn () { let %v = add(%x, dense<Tensor[(4,), float32]>[1, 2, 3, 4]); let %w = nn.relu(%v); %w };
           let %y: Tensor[(4,), float32] = onnx.If(%c, %f, %f, onnx_subgraphs=[\"then_branch\", \"else_branch\"]);
           %y
         }",
    );
    assert_eq!(lines(&g), ["If(c) -> y"]);
    for attribute in &g.node[0].attribute {
        let inner = GraphProto::decode(attribute.g.clone().expect("a graph")).expect("it can be read");
        assert_eq!(inner.node.len(), 2);
        assert_eq!(inner.node[0].input[0], "x");
        assert_eq!(inner.node[1].output[0], inner.output[0].name());
    }
}

#[test]
fn attributes_that_are_not_the_importers() {
    let main = |attrs: &str| {
        format!("def @main(%x: Tensor[(4,), float32]) {{ let %y: Any = onnx.Foo(%x, {attrs}); nn.relu(%x) }}")
    };
    for (attrs, words) in [
        ("onnx_raw=[1]", "`onnx_raw` is not what the importer writes"),
        ("onnx_raw=dense<Tensor[(1000000000000,), uint8]>[1]", "`onnx_raw`"),
        ("onnx_raw=[dense<Tensor[(1000000000000,), uint8]>[1]]", "`onnx_raw`"),
        ("onnx_raw=[dense<Tensor[(2,), uint8]>[255, 1]]", "`onnx_raw`"),
        ("onnx_subgraphs=[\"a\", \"b\"]", "`onnx_subgraphs`"),
        ("onnx_subgraphs=[\"a\"]", "a subgraph that is not a `fn`"),
        ("onnx_subgraphs=1", "`onnx_subgraphs`"),
        ("onnx_overload=1", "`onnx_overload`"),
        ("a=[[1]]", "the value of the attribute `a`"),
    ] {
        refused(&main(attrs), &[words]);
    }
    for meta in ["onnx_opsets=[1]", "onnx_ir_version=\"8\"", "onnx_metadata=[[\"a\"]]", "onnx_functions=[1]"] {
        refused(&format!("#![{meta}] def @main() {{ () }}"), &["is not what the importer writes"]);
    }
    for meta in ["onnx_outputs=1", "onnx_infos=[1]", "onnx_dimensions=[1]", "onnx_defaults=[1]", "onnx_quantization=2"]
    {
        refused(&format!("#[{meta}] def @main() {{ () }}"), &["is not what the importer writes"]);
    }
    for meta in ["onnx_name=1", "onnx_doc=[]", "onnx_devices=[1]", "onnx_attributes=[]", "onnx_inputs=3", "onnx_info=3"]
    {
        refused(
            &format!(
                "def @main(%x: Tensor[(), float32]) {{ #[{meta}] let %y = nn.relu(%x); let %z = nn.relu(%y); %z }}"
            ),
            &["is not"],
        );
    }
}

#[test]
fn names_are_unique() {
    let g = written_graph(
        "def @main(%x: Tensor[(4,), float32]) {
           let %y = nn.relu(%x);
           let %y = nn.relu(%y);
           let %x = nn.relu(%y);
           let %output = nn.relu(%x);
           nn.relu(%output)
         }",
    );
    let mut names: Vec<&str> = g.node.iter().flat_map(|n| n.output.iter()).map(String::as_str).collect();
    names.push("x");
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn a_constant_result() {
    let mut g = graph("g", vec![], vec![], vec![float("w", &[2]), float("v", &[2])]);
    g.initializer = vec![initializer("w", &floats(&[1.0, 2.0])), initializer("v", &floats(&[1.0, 2.0]))];
    let back = write(&read(&model(13, g))).graph.expect("a graph");
    assert_eq!((back.node.len(), back.initializer.len()), (0, 2));
    let g = written_graph("def @main() { dense<Tensor[(2,), float32]>[1, 2] }");
    assert_eq!(lines(&g), ["Identity(c) -> output"]);
}

#[test]
fn it_is_deterministic() {
    let mut g = graph("g", vec![], vec![float("x", &[2])], vec![float("y50", &[2])]);
    for i in 0..=50 {
        let input = if i == 0 { "x".to_string() } else { format!("y{}", i - 1) };
        g.node.push(node("Add", &[&input, &format!("w{}", i % 7)], &[&format!("y{i}")], vec![]));
    }
    g.initializer = (0..7).map(|i| initializer(&format!("w{i}"), &floats(&[i as f32, 1.0]))).collect();
    let m = model(13, g);
    let (a, b) = (read(&m), read(&m));
    assert_eq!(a.to_string(), b.to_string());
    let options = ExportOptions::default();
    assert_eq!(export(&a, &options), export(&b, &options));
    assert_eq!(export(&a, &options), export(&a, &options));
}

/// onnxruntime finds no functions of the model in the graph of a `SequenceMap`.
#[test]
fn functions_in_the_graph_of_a_sequence_map_are_inlined() {
    let text = |body: &str| {
        format!(
            "def private @inner(%a: Tensor[(n,), float32]) {{ let %r = nn.relu(%a); let %s = exp(%r); %s }}
             def private @f(%a: Tensor[(n,), float32]) {{ let %r = @inner(%a); let %s = tanh(%r); %s }}
             def @main(%x: Tensor[(4,), float32]) {{
               let %q: Any = onnx.SplitToSequence(%x);
               let %body = fn (%e: Tensor[(1,), float32]) {{ {body} }};
               let %m: Any = onnx.SequenceMap(%q, %body, onnx_subgraphs=[\"body\"]);
               let %y: Tensor[(4,), float32] = onnx.ConcatFromSequence(%m, axis=0);
               let %z = @f(%y);
               %z
             }}"
        )
    };
    let m = written(&text("let %i = abs(%e); let %o = @f(%i); %o"));
    assert!(m.functions.is_empty(), "{:?}", m.functions);
    assert_eq!(node_types(&m), ["SplitToSequence", "SequenceMap", "ConcatFromSequence", "Relu", "Exp", "Tanh"]);
    let m = written(&text("let %o = exp(%e); %o"));
    assert_eq!(
        (m.functions.len(), node_types(&m)),
        (2, vec!["SplitToSequence", "SequenceMap", "ConcatFromSequence", "f"])
    );
}
