//! Reading the text format: every production, every kind of error with its place, deep nesting, and
//! invalid texts.

mod deep;
mod dims;
mod errors;
mod inference;
mod mutations;
mod productions;
mod sketches;

use std::sync::Arc;

use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, DType, Diagnostic, Diagnostics, FusionPattern, Module, OpDef, OpRegistry,
    Source, TypeCall, TypeError, TypeId, TypeRule, parse_module,
};

fn row(name: &'static str, arity: Arity, infer: TypeRule) -> OpDef {
    OpDef::new(name, "for tests", arity, infer).fusion(FusionPattern::ElemWise)
}

fn like_first(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let first = call.operand(0).ok_or_else(|| TypeError::operand(0, "the first operand is missing"))?;
    for i in 1..call.count() {
        if let Some(other) = call.operand(i)
            && other != first
        {
            let (wanted, found) = (call.cx.type_text(first), call.cx.type_text(other));
            return Err(TypeError::operand(i, format!("operand {i} is {found}, not {wanted}")));
        }
    }
    Ok(first)
}

fn boolean(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    Ok(call.cx.types.scalar(DType::Bool))
}

fn nothing(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    Ok(call.cx.types.unit())
}

fn stated(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    call.attrs().ty("to").ok_or_else(|| TypeError::new("`to` is missing"))
}

const TO: &[AttrDef] = &[AttrDef { name: "to", kind: AttrKind::Type, default: AttrDefault::Required, doc: "" }];

const ANY: &[AttrDef] = &[
    AttrDef { name: "axis", kind: AttrKind::Int, default: AttrDefault::Int(0), doc: "" },
    AttrDef { name: "value", kind: AttrKind::Any, default: AttrDefault::Absent, doc: "" },
    AttrDef { name: "let", kind: AttrKind::Any, default: AttrDefault::Absent, doc: "" },
];

fn registry() -> Arc<OpRegistry> {
    let mut r = OpRegistry::new();
    for name in ["add", "subtract", "multiply"] {
        r.register(row(name, Arity::exactly(2), like_first)).unwrap();
    }
    for name in ["exp", "nn.relu", "odd name!", "max"] {
        r.register(row(name, Arity::exactly(1), like_first)).unwrap();
    }
    r.register(row("less", Arity::exactly(2), boolean)).unwrap();
    r.register(row("concat", Arity::at_least(1), like_first)).unwrap();
    r.register(row("note", Arity::between(1, 3), like_first).attrs(ANY)).unwrap();
    r.register(row("match_cast", Arity::exactly(1), stated).attrs(TO)).unwrap();
    r.register(row("print", Arity::at_least(0), nothing).impure()).unwrap();
    r.declare_opaque("onnx").unwrap();
    Arc::new(r)
}

fn parse(text: &str) -> Result<Module, Diagnostics> {
    parse_module(Source::new("test.anf", text), registry())
}

/// Returns the module of a text without errors.
#[track_caller]
fn module(text: &str) -> Module {
    match parse(text) {
        Ok(module) => module,
        Err(errors) => panic!("{}", shown(text, &errors)),
    }
}

/// Returns errors, one on each line: the underlined bytes, the message, the help.
fn shown(text: &str, errors: &[Diagnostic]) -> String {
    let mut out = String::new();
    for e in errors {
        let place = e.span.clone().map_or("-", |s| &text[s]);
        let place: String = if place.is_empty() { "(the end)".into() } else { place.chars().take(60).collect() };
        out += &format!("{place} | {}", e.message);
        for (span, label) in &e.related {
            out += &format!(" ({}: {label})", &text[span.clone()]);
        }
        if let Some(help) = &e.help {
            out += &format!(" | {help}");
        }
        out.push('\n');
    }
    out
}

/// Returns the errors of a text that has errors.
#[track_caller]
fn errors(text: &str) -> String {
    match parse(text) {
        Ok(module) => panic!("no error in\n{module}"),
        Err(errors) => shown(text, &errors),
    }
}

/// Checks the printed form of a text, and that it parses and prints as itself.
#[track_caller]
fn prints(text: &str, expected: &expect_test::Expect) {
    let printed = module(text).to_string();
    expected.assert_eq(&printed);
    assert_eq!(module(&printed).to_string(), printed, "printing is not stable");
}

/// Checks the errors of a text.
#[track_caller]
fn fails(text: &str, expected: &expect_test::Expect) {
    expected.assert_eq(&errors(text));
}

/// Checks the errors in the block of a function with two vectors `%x`, `%y` and a flag `%c` as
/// parameters.
#[track_caller]
fn fails_in(block: &str, expected: &expect_test::Expect) {
    let text =
        format!("def @f(%x: Tensor[(8,), float32], %y: Tensor[(8,), float32], %c: bool) -> Any {{\n{block}\n}}\n");
    fails(&text, expected);
}
