//! Edits by name (`anfora::surgery`), on text and on ONNX models.

use anfora::interp::Interpreter;
use anfora::ir::Diagnostics;
use anfora::onnx::proto::ModelProto;
use anfora::onnx::proto::tensor_shape_proto::Extent;
use anfora::onnx::proto::type_proto::Value;
use anfora::onnx::{ExportOptions, ImportOptions};
use anfora::prelude::*;
use anfora::surgery::{
    AttributeEdit, NewAttribute, NewExtent, Part, Renames, extract, rename, set_attributes, set_shapes,
};
use prost::Message;

fn parse(text: &str) -> Module {
    parse_module(Source::new("test", text), anfora::onnx::registry()).unwrap()
}

/// Returns the module that is read from the model of a text.
fn through_onnx(text: &str) -> Module {
    let model = anfora::onnx::export(&parse(text), &ExportOptions::default()).expect("it can be written");
    anfora::onnx::import(model.bytes.into(), &ImportOptions::default()).expect("it is a model").module
}

/// Returns the module that is read from the model of a module.
fn again(module: &Module) -> Module {
    let model = anfora::onnx::export(module, &ExportOptions::default()).expect("it can be written");
    anfora::onnx::import(model.bytes.into(), &ImportOptions::default()).expect("it is a model").module
}

fn names(list: &[&str]) -> Option<Vec<String>> {
    Some(list.iter().map(|name| (*name).to_string()).collect())
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(old, new)| ((*old).to_string(), (*new).to_string())).collect()
}

fn part(inputs: &[&str], outputs: &[&str]) -> Part {
    Part { inputs: names(inputs), outputs: names(outputs) }
}

/// Asserts that an edit fails with a message and a help that contain these texts, and changes
/// nothing.
#[track_caller]
fn refused(module: &mut Module, edit: impl FnOnce(&mut Module) -> Result<(), Diagnostics>, message: &str, help: &str) {
    let before = module.to_text();
    let errors = edit(module).expect_err("it is refused");
    let found = errors[0].help.as_deref().unwrap_or_default();
    assert!(errors[0].message.contains(message), "{}", errors[0].message);
    assert!(found.contains(help), "{}\n{found}", errors[0].message);
    assert_eq!(module.to_text(), before);
}

const MODEL: &str = "def @main(%x: Tensor[(n, 4), float32], %w: Tensor[(4, 4), float32]) {
  let %a = matmul(%x, %w);
  let %b = tanh(%a);
  let %unused = exp(%b);
  let %halves = split(%b, sections=2, axis=1);
  let %left = %halves.0;
  let %right = %halves.1;
  let %y = add(%left, %right);
  let %z = multiply(%y, 2f);
  (%y, %z)
}";

// ---- extract ----

#[test]
fn a_part_has_what_its_outputs_need() {
    let mut module = parse(MODEL);
    extract(&mut module, "main", &part(&["b"], &["left", "y"])).unwrap();
    assert_eq!(
        module.to_text(),
        "def @main(%b: Tensor[(n, 4), float32]) -> (Tensor[(n, 2), float32], Tensor[(n, 2), float32]) {
  let %halves = split(%b, axis=1, sections=2);
  let %left = %halves.0;
  let %right = %halves.1;
  let %y = add(%left, %right);
  (%left, %y)
}
"
    );
    // Without inputs, those that are needed, in their order.
    let mut module = parse("def @main(%x: float32, %y: float32, %z: float32) { (exp(%z), tanh(%x)) }");
    extract(&mut module, "main", &Part::default()).unwrap();
    assert!(module.to_text().starts_with("def @main(%x: Tensor[(), float32], %z: Tensor[(), float32])"));
    // The head of a program: the result is not bound.
    let mut module = parse("def @main(%x: float32) { let %a = exp(%x); tanh(%a) }");
    extract(&mut module, "main", &Part { inputs: names(&["a"]), outputs: None }).unwrap();
    let text = module.to_text();
    assert!(text.contains("def @main(%a: ") && text.contains("tanh(%a)") && !text.contains("exp"), "{text}");
}

#[test]
fn an_input_may_be_an_output_and_an_input_may_be_unused() {
    let mut module = parse(MODEL);
    extract(&mut module, "main", &part(&["w", "y", "x"], &["y", "z"])).unwrap();
    assert_eq!(
        module.to_text(),
        "def @main(%w: Tensor[(4, 4), float32], %y: Tensor[(n, 2), float32], %x: Tensor[(n, 4), float32]) \
         -> (Tensor[(n, 2), float32], Tensor[(n, 2), float32]) {
  let %z = multiply(%y, 2f);
  (%y, %z)
}
"
    );
}

#[test]
fn a_part_of_a_model_keeps_the_names_of_its_values() {
    let mut module = through_onnx(MODEL);
    extract(&mut module, "main", &part(&["a"], &["right"])).unwrap();
    let model = anfora::onnx::export(&module, &ExportOptions::default()).unwrap();
    assert_eq!((model.nodes.total(), model.nodes.of("Split"), model.nodes.of("Tanh")), (2, 1, 1));
    let text = again(&module).to_text();
    assert!(
        text.contains("onnx_outputs=[\"right\"]") && text.contains("def @main(%a: Tensor[(n, 4), float32])"),
        "{text}"
    );
}

#[test]
fn a_part_computes_the_intermediate_values() {
    let text = MODEL.replace("(n, 4)", "(3, 4)");
    let tensor = |shape: &[usize], seed: f32| {
        let count = shape.iter().product::<usize>();
        let elements: Vec<f32> = (0..count).map(|i| (i as f32 * 0.37 + seed).sin()).collect();
        Literal::from_elements(shape, &elements).unwrap()
    };
    let (x, w) = (tensor(&[3, 4], 0.1), tensor(&[4, 4], 0.7));
    for cut in [parse(&text), through_onnx(&text)] {
        let (mut head, mut tail) = (cut.clone(), cut.clone());
        extract(&mut head, "main", &part(&["x", "w"], &["b"])).unwrap();
        extract(&mut tail, "main", &part(&["b"], &["y", "z"])).unwrap();
        let middle = Interpreter::new(&head).run("main", &[x.clone(), w.clone()]).unwrap();
        let middle = middle.tensor().expect("one output").clone();
        let parts = Interpreter::new(&tail).run("main", &[middle]).unwrap();
        let whole = Interpreter::new(&cut).run("main", &[x.clone(), w.clone()]).unwrap();
        assert!(whole.same(&parts));
    }
}

#[test]
fn values_of_regions_and_uses_in_branches_are_part_of_it() {
    let mut module = parse(
        "def private @helper(%v: float32) { let %p = print(%v); %v }
        def private @other(%v: float32) { %v }
        def @main(%x: float32, %c: bool) {
          dataflow { let %a = exp(%x); let %b = tanh(%a); output(%b); }
          let %gone = @other(%b);
          let %y = if (%c) { @helper(%b) } else { %b };
          %y
        }",
    );
    extract(&mut module, "main", &part(&["c", "a"], &["y"])).unwrap();
    let text = module.to_text();
    assert!(text.contains("def private @helper") && text.contains("print(%v)"), "what a call needs stays\n{text}");
    assert!(!text.contains("@other") && !text.contains("exp"), "{text}");
    // A local of a region becomes visible.
    let mut module =
        parse("def @main(%x: float32) { dataflow { let %a = exp(%x); let %b = tanh(%a); output(%b); } %b }");
    extract(&mut module, "main", &part(&["x"], &["a"])).unwrap();
    assert!(module.to_text().ends_with("output(%a);\n  }\n  %a\n}\n"), "{module}");
}

#[test]
fn extents_that_no_input_determines_get_symbols() {
    let text = "def @main(%x: Tensor[(n, 4), float32]) {
      let %d = concat(%x, %x, axis=0);
      let %e = tanh(%d);
      let %f = add(%e, %d);
      let %s = add(%f, zeros(shape=shape(2 * n, 4), dtype=float32));
      (%f, %s)
    }";
    let mut module = parse(text);
    extract(&mut module, "main", &part(&["e", "d"], &["f"])).unwrap();
    assert!(
        module.to_text().starts_with(
            "def @main(%e: Tensor[(e_0, 4), float32], %d: Tensor[(e_0, 4), float32]) -> Tensor[(e_0, 4), float32]"
        ),
        "{module}"
    );
    // An attribute names the symbol, so an input must have it.
    let mut module = parse(text);
    refused(
        &mut module,
        |m| extract(m, "main", &part(&["f"], &["s"])),
        "names a symbolic dimension that none of its inputs has",
        "add `%x` to the inputs",
    );
    extract(&mut module, "main", &part(&["f", "x"], &["s"])).unwrap();
}

#[test]
fn casts_that_bind_a_symbol_stay_with_its_uses() {
    let text = "def @main(%x: Tensor[(?,), float32], %y: float32) {
      let %c = match_cast(%x, to=Tensor[(k,), float32]);
      let %gone = exp(%y);
      let %z = zeros(shape=shape(k), dtype=float32);
      %z
    }";
    let mut module = parse(text);
    extract(&mut module, "main", &Part::default()).unwrap();
    let text = module.to_text();
    assert!(text.contains("let %c = match_cast") && text.contains("def @main(%x: Tensor[(?,), float32])"), "{text}");
    assert!(!text.contains("exp"), "{text}");
}

#[test]
fn mistakes_in_parts_are_told() {
    let mut module = parse(MODEL);
    let mut refuse = |inputs: &[&str], outputs: &[&str], message: &str, help: &str| {
        refused(&mut module, |m| extract(m, "main", &part(inputs, outputs)), message, help);
    };
    refuse(&["b"], &["rihgt"], "there is no value `%rihgt`", "did you mean `%right`?");
    refuse(&["bb"], &["right"], "there is no value `%bb`", "did you mean `%b`?");
    refuse(&["left"], &["y", "z"], "the outputs need the inputs `%x`, `%w` too", "add them to the inputs");
    refuse(&["b", "b"], &["z"], "the input `%b` is given twice", "");
    refuse(&["b"], &["z", "z"], "the output `%z` is given twice", "");
    refuse(&["b"], &[], "the part has no outputs", "name at least one value");
    refused(
        &mut module,
        |m| extract(m, "mian", &Part::default()),
        "there is no function `@mian`",
        "did you mean `@main`?",
    );
    let nested = "def @main(%x: float32, %c: bool) { let %y = if (%c) { let %t = exp(%x); %t } else { %x }; %y }";
    let mut module = parse(nested);
    refused(&mut module, |m| extract(m, "main", &part(&["t"], &["y"])), "`%t` is computed in a branch or `fn`", "");
    let mut module = parse("def @main(%x: float32) { exp(%x) } def @f(%x: float32) { @main(%x) }");
    refused(&mut module, |m| extract(m, "main", &Part::default()), "`@f` uses `@main`", "InlineFunctions");
}

// ---- rename ----

#[test]
fn values_functions_and_dimensions_are_renamed() {
    let mut module = parse(
        "def private @f(%v: Tensor[(n,), float32]) { exp(%v) } def @main(%x: Tensor[(n,), float32], %c: bool) {
      let %a = @f(%x);
      if (%c) { let %a = tanh(%x); %a } else { %a }
    }",
    );
    let renames = Renames {
        values: pairs(&[("%a", "b"), ("x", "c"), ("c", "x")]),
        functions: pairs(&[("f", "g")]),
        symbols: pairs(&[("n", "batch")]),
    };
    rename(&mut module, "main", &renames).unwrap();
    assert_eq!(
        module.to_text(),
        "def private @g(%v: Tensor[(batch,), float32]) -> Tensor[(batch,), float32] {
  exp(%v)
}

def @main(%c: Tensor[(batch,), float32], %x: Tensor[(), bool]) -> Tensor[(batch,), float32] {
  let %b = @g(%c);
  if (%x) {
    let %b$1 = tanh(%c);
    %b$1
  } else { %b }
}
"
    );
}

#[test]
fn the_outputs_and_constants_of_a_model_are_renamed() {
    let mut module = through_onnx(
        "def @main(%x: Tensor[(n, 2), float32]) { let %y = add(%x, dense<Tensor[(2,), float32]>[1, 2]); %y }",
    );
    let before = module.to_text();
    let constant =
        before.split("onnx_inputs=[\"\", \"").nth(1).and_then(|rest| rest.split('"').next()).expect("its name");
    let values = pairs(&[("y", "scores"), ("x", "images"), (constant, "bias")]);
    rename(&mut module, "main", &Renames { values, symbols: pairs(&[("n", "batch")]), ..Renames::default() }).unwrap();
    let model = anfora::onnx::export(&module, &ExportOptions::default()).unwrap();
    assert_eq!(model.nodes.total(), 1, "no node copies a value under another name");
    let text = again(&module).to_text();
    assert!(text.contains("onnx_outputs=[\"scores\"]") && text.contains("onnx_inputs=[\"\", \"bias\"]"), "{text}");
    assert!(text.contains("def @main(%images: Tensor[(batch, 2), float32])") && text.contains("let %scores"), "{text}");
}

#[test]
fn mistakes_in_names_are_told() {
    let mut module = parse(MODEL);
    let values = |list: &[(&str, &str)]| Renames { values: pairs(list), ..Renames::default() };
    let mut refuse = |renames: Renames, message: &str, help: &str| {
        refused(&mut module, |m| rename(m, "main", &renames), message, help);
    };
    refuse(values(&[("rigth", "r")]), "there is no value `%rigth`", "did you mean `%right`?");
    refuse(values(&[("a", "b")]), "cannot be named `%b`: the name is taken", "rename `%b` too");
    refuse(values(&[("a", "c"), ("b", "c")]), "cannot be named `%c`", "");
    refuse(values(&[("a", "")]), "needs a name", "");
    refuse(values(&[("a", "c"), ("a", "d")]), "`%a` is given two names", "");
    refuse(Renames { functions: pairs(&[("man", "x")]), ..Renames::default() }, "no function `@man`", "`@main`");
    refuse(Renames { symbols: pairs(&[("m", "x")]), ..Renames::default() }, "no symbolic dimension `m`", "`n`");
    refuse(Renames { symbols: pairs(&[("n", "1")]), ..Renames::default() }, "cannot be named `1`", "letters");
    let mut module = parse("def @main(%x: Tensor[(n, m), float32]) { %x }");
    let both = Renames { symbols: pairs(&[("n", "m")]), ..Renames::default() };
    refused(&mut module, |m| rename(m, "main", &both), "cannot be named `m`: the name is taken", "");
}

#[test]
fn functions_swap_their_names() {
    let mut module = parse(
        "def private @a(%v: float32) { exp(%v) } def private @b(%v: float32) { tanh(%v) }
        def @main(%x: float32) { (@a(%x), @b(%x)) }",
    );
    let functions = |list: &[(&str, &str)]| Renames { functions: pairs(list), ..Renames::default() };
    rename(&mut module, "main", &functions(&[("a", "@b"), ("@b", "a"), ("main", "entry")])).unwrap();
    let text = module.to_text();
    for wanted in ["@b(%v: Tensor[(), float32]) -> Tensor[(), float32] {\n  exp(%v)", "(@b(%x), @a(%x))", "def @entry("]
    {
        assert!(text.contains(wanted), "{wanted} is missing:\n{text}");
    }
    let mut refuse = |names: &[(&str, &str)], message: &str, help: &str| {
        refused(&mut module, |m| rename(m, "entry", &functions(names)), message, help);
    };
    refuse(&[("a", "b")], "`@a` cannot be named `@b`: the name is taken", "rename `@b` too");
    refuse(&[("a", "c"), ("b", "c")], "`@b` cannot be named `@c`: the name is taken", "another name");
    refuse(&[("a", "c"), ("@a", "d")], "`@a` is given two names", "choose one of `@c` and `@d`");
    refuse(&[("a", "@")], "`@a` needs a name", "at least one character");
}

/// Returns the model of a module.
fn model_of(module: &Module) -> ModelProto {
    let model = anfora::onnx::export(module, &ExportOptions::default()).expect("it can be written");
    ModelProto::decode(&model.bytes[..]).expect("it is a model")
}

/// Returns a model that documents an inner value and its output, which states their types too.
fn documented(text: &str, inner: &str) -> Module {
    let mut model = model_of(&parse(text));
    let graph = model.graph.as_mut().expect("it has a graph");
    let mut stated = graph.output[0].clone();
    stated.name = Some(inner.to_string());
    graph.value_info.retain(|info| info.name() != inner);
    graph.value_info.push(stated);
    for info in graph.value_info.iter_mut().chain(&mut graph.output) {
        info.doc_string = Some("documented".to_string());
    }
    anfora::onnx::import(model.encode_to_vec().into(), &ImportOptions::default()).expect("it is a model").module
}

/// Returns the text of the types that a model states about a value and about its output, which must
/// keep their documentation.
#[track_caller]
fn stated_types(module: &Module, inner: &str) -> [String; 2] {
    let graph = model_of(module).graph.expect("it has a graph");
    let inner = graph.value_info.iter().find(|info| info.name() == inner).expect("the file is about it");
    [inner, &graph.output[0]].map(|info| {
        assert_eq!(info.doc_string(), "documented");
        let Some(Value::TensorType(tensor)) = info.r#type.as_ref().and_then(|ty| ty.value.as_ref()) else {
            return "no type".to_string();
        };
        let dims = tensor.shape.as_ref().expect("it has a shape").dim.iter();
        let extents = dims.map(|dim| match &dim.value {
            Some(Extent::DimValue(number)) => number.to_string(),
            Some(Extent::DimParam(name)) => name.clone(),
            None => "?".to_string(),
        });
        extents.collect::<Vec<_>>().join(", ")
    })
}

#[test]
fn edits_of_a_model_leave_no_stale_types_in_documented_values() {
    let text = "def @main(%x: Tensor[(n, 4), float32]) { let %a = tanh(%x); let %y = exp(%a); %y }";
    let mut module = documented(text, "a");
    assert_eq!(stated_types(&module, "a"), ["n, 4", "n, 4"]);
    rename(&mut module, "main", &Renames { symbols: pairs(&[("n", "batch")]), ..Renames::default() }).unwrap();
    assert_eq!(stated_types(&module, "a"), ["batch, 4", "batch, 4"]);

    let text =
        "def @main(%x: Tensor[(2, 4), float32]) { let %a = sum(%x, axis=[0], keepdims=true); let %y = exp(%a); %y }";
    let mut module = documented(text, "a");
    assert_eq!(stated_types(&module, "a"), ["1, 4", "1, 4"]);
    set_attributes(&mut module, "main", &[AttributeEdit::new("a", "axis", [1])]).unwrap();
    assert_eq!(stated_types(&module, "a"), ["2, 1", "2, 1"]);

    // The new input has an extent that it does not bind, and gets a symbol.
    let text = "def @main(%x: Tensor[(n, 4), float32]) {
      let %d = concat(%x, %x, axis=0); let %a = tanh(%d); let %y = exp(%a); %y
    }";
    let mut module = documented(text, "a");
    assert_eq!(stated_types(&module, "a")[1], "?, 4");
    extract(&mut module, "main", &part(&["d"], &["y"])).unwrap();
    assert_eq!(stated_types(&module, "a"), ["d_0, 4", "d_0, 4"]);
}

// ---- set_shapes ----

#[test]
fn inputs_get_numbers_and_symbols() {
    let shape = |text: &str, input: &str, extents: Vec<NewExtent>| {
        let mut module = parse(text);
        set_shapes(&mut module, "main", &[(input.to_string(), extents)]).map(|()| module.to_text())
    };
    let named = |name: &str| NewExtent::Named(name.to_string());
    let text =
        "def @main(%x: Tensor[(1, 4), float32], %w: Tensor[(4, ?), float32]) { let %y = matmul(%x, %w); tanh(%y) }";
    let batched = shape(text, "x", vec![named("batch"), NewExtent::Kept]).unwrap();
    assert!(
        batched.starts_with(
            "def @main(%x: Tensor[(batch, 4), float32], %w: Tensor[(4, ?), float32]) -> Tensor[(batch, ?), float32]"
        ),
        "{batched}"
    );
    let known = shape(text, "w", vec![NewExtent::Kept, NewExtent::Fixed(7)]).unwrap();
    assert!(known.contains("-> Tensor[(1, 7), float32]"), "{known}");
    let other = shape(text, "x", vec![NewExtent::Fixed(8), NewExtent::Fixed(4)]).unwrap();
    assert!(other.contains("-> Tensor[(8, ?), float32]"), "{other}");
    // A symbol becomes a number, or takes another name; both in the whole function.
    let text = "def @main(%x: Tensor[(n, m), float32], %y: Tensor[(m,), float32]) { add(%x, %y) }";
    let fixed = shape(text, "x", vec![NewExtent::Kept, NewExtent::Fixed(3)]).unwrap();
    assert!(fixed.contains("%y: Tensor[(3,), float32]"), "{fixed}");
    let square = shape(text, "x", vec![NewExtent::Kept, named("n")]).unwrap();
    assert!(square.starts_with("def @main(%x: Tensor[(n, n), float32], %y: Tensor[(n,), float32])"), "{square}");
}

#[test]
fn inputs_get_extents_that_fit_only_together() {
    let shapes = |text: &str, list: &[(&str, &[NewExtent])]| {
        let mut module = parse(text);
        let list: Vec<_> = list.iter().map(|(name, extents)| (name.to_string(), extents.to_vec())).collect();
        set_shapes(&mut module, "main", &list).map(|()| module.to_text())
    };
    let (fixed, kept) = (NewExtent::Fixed, NewExtent::Kept);
    let named = |name: &str| NewExtent::Named(name.to_string());
    let text = "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) { add(%x, %y) }";
    let four = shapes(text, &[("x", &[fixed(4), fixed(3)]), ("y", &[fixed(4), fixed(3)])]).unwrap();
    assert!(four.contains("-> Tensor[(4, 3), float32]"), "{four}");
    let batch = shapes(text, &[("x", &[named("b"), kept.clone()]), ("y", &[named("b"), kept.clone()])]).unwrap();
    assert!(batch.contains("%y: Tensor[(b, 3), float32]) -> Tensor[(b, 3), float32]"), "{batch}");
    // A symbol of one input and a number of another, which meet after another operator.
    let text = "def @main(%x: Tensor[(n, 3), float32], %y: Tensor[(2, 3), float32], %m: Tensor[(m,), float32]) {
      let %t = tanh(%y);
      let %c = concat(%x, %t, axis=1);
      (%c, %m)
    }";
    let all: [(&str, &[NewExtent]); 3] =
        [("x", &[fixed(4), kept.clone()]), ("y", &[fixed(4), kept.clone()]), ("m", &[named("k")])];
    let known = shapes(text, &all).unwrap();
    assert!(known.contains("-> (Tensor[(4, 6), float32], Tensor[(k,), float32])"), "{known}");
    // An extent that is computed from a symbol may be given too, if it is the right one.
    let text = "def @main(%x: Tensor[(n,), float32], %d: Tensor[(2 * n,), float32]) { (%x, %d) }";
    let twice = shapes(text, &[("d", &[fixed(8)]), ("x", &[fixed(4)])]).unwrap();
    assert!(twice.contains("%d: Tensor[(8,), float32]"), "{twice}");
    let errors = shapes(text, &[("d", &[fixed(9)]), ("x", &[fixed(4)])]).expect_err("it is refused");
    assert_eq!(errors[0].message, "the extent 9 is given, and the input has 8");
    // One symbol has one extent, and an input is given once.
    let text = "def @main(%x: Tensor[(n,), float32], %y: Tensor[(n,), float32]) { (%x, %y) }";
    let errors = shapes(text, &[("x", &[fixed(4)]), ("y", &[fixed(5)])]).expect_err("it is refused");
    assert_eq!(errors[0].message, "the extents 4 and 5 are given for `n`");
    let errors = shapes(text, &[("x", &[fixed(4)]), ("%x", &[fixed(4)])]).expect_err("it is refused");
    assert_eq!(errors[0].message, "the input `x` is given twice");
}

#[test]
fn a_model_with_other_shapes_can_be_written() {
    let mut module = through_onnx("def @main(%x: Tensor[(1, 4), float32]) { let %y = tanh(%x); exp(%y) }");
    let extents = vec![NewExtent::Named("batch".to_string()), NewExtent::Kept];
    set_shapes(&mut module, "main", &[("x".to_string(), extents)]).unwrap();
    let text = again(&module).to_text();
    assert!(text.contains("def @main(%x: Tensor[(batch, 4), float32]) -> Tensor[(batch, 4), float32]"), "{text}");
}

#[test]
fn mistakes_in_shapes_are_told() {
    let text = "def @main(%image: Tensor[(1, 4), float32], %n: Tensor[(n, n), float32], %t: (float32,)) {
      let %flat = reshape(%image, dense<Tensor[(1,), int64]>[4]);
      (%flat, %n, %t)
    }";
    let mut module = parse(text);
    let mut refuse = |input: &str, extents: &[NewExtent], message: &str, help: &str| {
        let shapes = [(input.to_string(), extents.to_vec())];
        refused(&mut module, |m| set_shapes(m, "main", &shapes), message, help);
    };
    let fixed = NewExtent::Fixed;
    refuse("imagee", &[fixed(1)], "there is no input `imagee`", "did you mean `image`?");
    refuse("image", &[fixed(1)], "1 extents are given, and the input has 2", "`?` leaves");
    refuse("n", &[fixed(1), fixed(2)], "the extents 1 and 2 are given for `n`", "");
    refuse("t", &[fixed(1)], "the input is no tensor", "");
    refuse("n", &[NewExtent::Named("1a".into()), NewExtent::Named("1a".into())], "`1a` is no extent", "letters");
    refuse("image", &[fixed(2), NewExtent::Kept], "reshape", "");
    let errors = set_shapes(&mut module, "main", &[("image".to_string(), vec![fixed(2), NewExtent::Kept])]);
    assert_eq!(errors.expect_err("it is refused")[0].binding.as_deref(), Some("flat"));
}

// ---- set_attributes ----

/// Sets an attribute to a value of the text format.
fn set_attribute(
    module: &mut Module,
    entry: &str,
    node: &str,
    attribute: &str,
    value: &str,
) -> Result<(), Diagnostics> {
    let value = NewAttribute::Text(value.to_string());
    let edit = AttributeEdit { node: node.to_string(), attribute: attribute.to_string(), value };
    set_attributes(module, entry, &[edit])
}

#[test]
fn attributes_are_set_by_the_name_of_a_value() {
    // The name of any result of a call stands for the call.
    let mut module = parse(MODEL);
    set_attribute(&mut module, "main", "%right", "axis", "7").expect_err("there are two axes");
    let mut module = parse(
        "def @main(%x: Tensor[(2, 3), float32], %c: bool) {
      let %p = if (%c) { let %q = nn.softmax(%x); %q } else { %x };
      let %s = sum(%p, axis=[0]);
      let %k: Tensor[(2,), float32] = onnx.Sharpen(%s, alpha=1);
      (%s, %k)
    }",
    );
    set_attribute(&mut module, "main", "s", "axis", "[1]").unwrap();
    set_attribute(&mut module, "main", "s", "keepdims", "true").unwrap();
    set_attribute(&mut module, "main", "q", "axis", "0").unwrap();
    set_attribute(&mut module, "main", "k", "mode", "\"fast\"").unwrap();
    let text = module.to_text();
    for wanted in [
        "sum(%p, axis=[1], keepdims=true)",
        "nn.softmax(%x, axis=0)",
        "let %k: Tensor[(2,), float32] = onnx.Sharpen(%s, alpha=1, mode=\"fast\")",
        "-> (Tensor[(2, 1), float32], Tensor[(2,), float32])",
    ] {
        assert!(text.contains(wanted), "{wanted} is missing:\n{text}");
    }
}

#[test]
fn attributes_that_fit_only_together_are_set() {
    let text = "def @main(%x: Tensor[(2, 3), float32]) {
      let %a = sum(%x, axis=[0]);
      let %b = sum(%x, axis=[0]);
      add(%a, %b)
    }";
    let edits = [AttributeEdit::new("a", "axis", [1]), AttributeEdit::new("b", "axis", [1])];
    let mut module = parse(text);
    set_attributes(&mut module, "main", &edits).unwrap();
    assert!(module.to_text().contains("-> Tensor[(2,), float32]"), "{module}");
    let mut module = parse(text);
    refused(&mut module, |m| set_attributes(m, "main", &edits[..1]), "add", "");
    let mut module = parse("def @main(%x: float32) { let %c = astype(%x, dtype=int32); %c }");
    set_attributes(&mut module, "main", &[AttributeEdit::new("c", "dtype", "float64")]).unwrap();
    assert!(module.to_text().contains("-> Tensor[(), float64]"), "{module}");
}

#[test]
fn attributes_of_models_are_set_by_the_name_of_a_node_too() {
    let mut module = through_onnx(
        "def @main(%x: Tensor[(2, 3), float32]) {
      #[onnx_name=\"head/softmax\"]
      let %y = nn.softmax(%x);
      %y
    }",
    );
    set_attribute(&mut module, "main", "head/softmax", "axis", "0").unwrap();
    assert!(again(&module).to_text().contains("nn.softmax(%x, axis=0)"), "{module}");
    let edit = |m: &mut Module| set_attribute(m, "main", "head/sofmax", "axis", "0");
    refused(&mut module, edit, "there is no node `head/sofmax`", "did you mean `head/softmax`?");
}

#[test]
fn mistakes_in_attributes_are_told() {
    let mut module =
        parse("def @main(%x: Tensor[(2, 3), float32]) { let %s = sum(%x, axis=[0]); let %t = %s; (%t, %s) }");
    let mut refuse = |node: &str, attribute: &str, value: &str, message: &str, help: &str| {
        refused(&mut module, |m| set_attribute(m, "main", node, attribute, value), message, help);
    };
    refuse("s", "axes", "[1]", "`sum` has no attribute `axes`", "did you mean `axis`?");
    refuse("s", "axis", "[5]", "axis", "");
    refuse("s", "axis", "[", "is not a value of an attribute", "written as in the text format");
    refuse("s", "keepdims", "\"yes\"", "attribute `keepdims` of `sum` must be", "");
    refuse("u", "axis", "[1]", "there is no node `u`", "");
    refuse("t", "axis", "[1]", "`%t` is not the result of an operator", "only calls");
}
