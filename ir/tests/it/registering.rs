//! Operators that a registry accepts. Programs with any of them parse back from their text.

use std::sync::Arc;

use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, Context, DType, KernelCall, KernelError, Literal, Module, OpDef, OpRegistry,
    RegisterError, Source, TypeCall, TypeError, TypeId, infer_op, parse_module,
};

fn first(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    call.operand(0).ok_or_else(|| TypeError::operand(0, "operand 0 is missing"))
}

fn row(name: impl Into<std::borrow::Cow<'static, str>>) -> OpDef {
    OpDef::new(name, "for tests", Arity::exactly(1), first)
}

fn attr(name: &'static str, kind: AttrKind, default: AttrDefault) -> AttrDef {
    AttrDef::new(name, kind, default, "for tests")
}

fn register(row: OpDef) -> Result<(), String> {
    OpRegistry::new().register(row).map(|_| ()).map_err(|e| e.to_string())
}

#[test]
fn a_name_is_taken_once() {
    let mut registry = OpRegistry::new();
    registry.register(row("acme.f")).unwrap();
    assert_eq!(registry.register(row("acme.f")), Err(RegisterError::Duplicate("acme.f".to_owned())));
    assert_eq!(registry.rows().len(), 1);
    assert_eq!(registry.register(row("")), Err(RegisterError::NoName));
}

#[test]
fn a_namespace_is_described_or_opaque() {
    let mut registry = OpRegistry::new();
    registry.declare_opaque("onnx").unwrap();
    let error = registry.register(row("onnx.Clip")).unwrap_err();
    assert_eq!(error.to_string(), "the operator `onnx.Clip` is in the namespace `onnx`, whose operators are opaque");
    registry.register(row("onnx")).unwrap();
    registry.register(row("acme.f")).unwrap();
    assert!(matches!(registry.declare_opaque("acme"), Err(RegisterError::Opaque { .. })));
    assert!(registry.register(row("acme.g")).is_ok());
}

#[test]
fn rows_that_contradict_themselves_are_refused() {
    use AttrDefault::{Absent, Bool, Float, Int, Ints, Required, Str};
    let rows = [
        (OpDef::new("f", "", Arity::between(2, 1), first), "it takes at least 2 operands and at most 1"),
        (row("f").commutative(), "it is commutative, but does not take just two operands"),
        (
            OpDef::new("f", "", Arity::at_least(2), first).commutative(),
            "it is commutative, but does not take just two operands",
        ),
        (row("f").forwards(&[(0, 0), (1, 1)]), "it forwards operand 1, which it does not take"),
        (
            OpDef::new("f", "", Arity::exactly(0), first).relabels(),
            "it gives its first operand another shape, but takes no operand",
        ),
        (row("f").shape_operands(&[1]), "operand 1 says its shape, but it does not take that one"),
        (row("f").attrs(vec![attr("", AttrKind::Int, Absent)]), "an attribute has no name"),
        (
            row("f").attrs(vec![attr("a", AttrKind::Int, Absent), attr("a", AttrKind::Str, Absent)]),
            "two attributes are called `a`",
        ),
        (row("f").attrs(vec![attr("a", AttrKind::Float, Int(1))]), "the default of attribute `a` is not a number"),
        (row("f").attrs(vec![attr("a", AttrKind::Int, Bool(true))]), "the default of attribute `a` is not an integer"),
        (
            row("f").attrs(vec![attr("a", AttrKind::DType, Str("float32"))]),
            "the default of attribute `a` is not an element type",
        ),
    ];
    for (row, why) in rows {
        assert_eq!(register(row), Err(format!("the row of `f` contradicts itself: {why}")));
    }
    let fine = [
        row("f").forwards(&[(0, 0), (7, 0)]),
        OpDef::new("f", "", Arity::at_least(0), first).forwards(&[(0, 9)]).shape_operands(&[0, 3]),
        row("f").attrs(vec![
            attr("a", AttrKind::Any, Ints(&[1])),
            attr("b", AttrKind::Floats, Absent),
            attr("c", AttrKind::Float, Float(f64::NAN)),
            attr("d", AttrKind::Literal, Required),
        ]),
    ];
    for row in fine {
        assert_eq!(register(row), Ok(()));
    }
}

#[test]
fn programs_with_any_names_are_read_back() {
    let names = [
        "acme.f",
        "f",
        "if",
        "let",
        "fn",
        "op",
        "none",
        "true",
        "output",
        "dataflow",
        "def",
        "declare",
        "private",
        "type",
        "attr",
        "dense",
        "shape",
        "min",
        "floordiv",
        "inf",
        "nanf",
        "inff",
        "bool",
        "float32",
        "float32.x",
        "if.x",
        "x.if",
        "Tensor",
        "Any",
        "a b",
        "a..b",
        ".",
        "a.",
        "1",
        "1x",
        "é",
        "\"",
        "\\",
        "\u{0}",
        "\n",
        "%x",
        "@f",
        "!t",
        "#[",
        "//",
        "/*",
        "a.1",
        "onnx",
        "_",
        "$",
        "a-b",
    ];
    let mut registry = OpRegistry::new();
    for name in names {
        let keys = [attr("if", AttrKind::Int, AttrDefault::Absent), attr(name, AttrKind::Any, AttrDefault::Absent)];
        let keys = if name == "if" { keys[..1].to_vec() } else { keys.to_vec() };
        registry.register(row(name).attrs(keys)).unwrap();
    }
    let registry = Arc::new(registry);
    let mut module = Module::new(registry.clone());
    let mut b = anfora_ir::FunctionBuilder::new(&mut module, "main");
    let ty = b.cx().types.scalar(DType::Float32);
    let mut x = b.param("x", ty);
    for name in names {
        let one = b.cx().attr(anfora_ir::Attr::Int(1));
        let op = b.cx().ops.find(name).unwrap();
        let op = b.cx().attr(anfora_ir::Attr::Op(op));
        let call = b.call_op(name, &[x], &[("if", one)]).unwrap();
        x = b.bind("", call);
        let key = if name == "if" { one } else { op };
        let call = b.call_op(name, &[x], &[(name, key)]).unwrap();
        x = b.bind("", call);
    }
    b.finish(x).unwrap();
    let text = module.to_text();
    let back = parse_module(Source::new("test.anf", text.as_str()), registry).map_err(|e| e[0].to_string()).unwrap();
    assert_eq!(back.to_text(), text);
    assert!(anfora_ir::first_difference(&module, &back).is_none());
}

#[test]
fn an_element_type_that_is_the_default_is_not_printed() {
    let mut registry = OpRegistry::new();
    let as_float = attr("to", AttrKind::DType, AttrDefault::DType(DType::Float32));
    registry
        .register(
            OpDef::new("f", "", Arity::exactly(1), |call| {
                let to = call.attrs().dtype("to").ok_or_else(|| TypeError::new("`to` has no value"))?;
                Ok(call.cx.types.scalar(to))
            })
            .attrs(vec![as_float]),
        )
        .unwrap();
    let text = "def @main(%x: int32) { let %a = f(%x); let %b = f(%a, to=float32); f(%b, to=float16) }";
    let module = parse_module(Source::new("test.anf", text), Arc::new(registry)).map_err(|e| e[0].to_string()).unwrap();
    let text = "def @main(%x: Tensor[(), int32]) -> Tensor[(), float16] {
  let %a = f(%x);
  let %b = f(%a);
  f(%b, to=float16)
}
";
    assert_eq!(module.to_text(), text);
}

#[test]
fn a_type_rule_that_panics_is_an_error_of_its_operator() {
    let mut registry = OpRegistry::new();
    registry.register(OpDef::new("acme.broken", "", Arity::exactly(1), |_| panic!("of seven"))).unwrap();
    let text = "def @main(%x: float32) {\n  let %y = acme.broken(%x);\n  %y\n}\n";
    let errors = parse_module(Source::new("t.anf", text), Arc::new(registry)).expect_err("it has no type");
    let [error] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!(error.message, "`acme.broken` has no type: its type rule panics: of seven");
}

#[test]
fn results_of_kernels_are_of_the_type_of_the_call() {
    fn run(infer: anfora_ir::TypeRule, kernel: anfora_ir::Kernel) -> Result<Vec<Literal>, KernelError> {
        let mut registry = OpRegistry::new();
        registry.register(OpDef::new("f", "", Arity::exactly(1), infer).kernel(kernel)).unwrap();
        let mut cx = Context::new(Arc::new(registry));
        let x = Literal::from_elements(&[2], &[1f32, 2.0]).unwrap();
        let operand = cx.constant_operand(Some(&x));
        let (op, attrs, any) = (cx.ops.find("f").unwrap(), cx.attrs.empty(), cx.types.any());
        let ty = infer_op(&mut cx, op, &[operand], attrs, any).unwrap();
        KernelCall { operands: &[Some(&x)], attrs: anfora_ir::AttrReader { cx: &cx, op, attrs }, ty }.evaluate()
    }
    fn pair(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
        let x = first(call)?;
        Ok(call.cx.types.tuple(&[x, x]))
    }
    fn unknown(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
        let unknown = call.cx.types.dims.unknown();
        Ok(call.cx.types.tensor(DType::Float32, &[unknown]))
    }
    let x = Literal::from_elements(&[2], &[1f32, 2.0]).unwrap();
    assert_eq!(run(first, |c| Ok(vec![c.operand(0)?.clone()])), Ok(vec![x.clone()]));
    assert_eq!(run(pair, |c| Ok(vec![c.operand(0)?.clone(); 2])), Ok(vec![x.clone(); 2]));
    assert!(run(unknown, |_| Ok(vec![Literal::splat(&[7], 0f32)])).is_ok());
    let fault = |infer, kernel| {
        let error = run(infer, kernel).unwrap_err();
        assert!(error.is_fault());
        error.message
    };
    assert_eq!(fault(first, |_| Ok(Vec::new())), "its kernel gives 0 results, and its type says 1");
    assert_eq!(fault(pair, |c| Ok(vec![c.operand(0)?.clone()])), "its kernel gives 1 results, and its type says 2");
    assert_eq!(
        fault(first, |_| Ok(vec![Literal::splat(&[2], 0i32)])),
        "its kernel gives Tensor[(2,), int32] as result 0, which its type says is Tensor[(2,), float32]"
    );
    assert_eq!(
        fault(pair, |c| Ok(vec![c.operand(0)?.clone(), Literal::splat(&[3, 1], 0f32)])),
        "its kernel gives Tensor[(3, 1), float32] as result 1, which its type says is Tensor[(2,), float32]"
    );
    assert_eq!(
        fault(unknown, |_| Ok(vec![Literal::scalar(0f32)])),
        "its kernel gives Tensor[(), float32] as result 0, which its type says is Tensor[(?,), float32]"
    );
    assert_eq!(fault(first, |_| panic!("no {}", "idea")), "its kernel panics: no idea");
    let failed = run(first, |_| Err(KernelError::new("division by zero"))).unwrap_err();
    assert!(!failed.is_fault());
}
