//! The output of the printer.

mod deep;
mod lines;
mod programs;
mod random;
mod values;

use std::sync::Arc;

use anfora_ir::{
    Arity, Attr, AttrDef, AttrId, BuildError, DType, Diagnostic, Editor, ExprId, Function, FunctionBuilder,
    FusionPattern, Literal, Module, OpDef, OpRegistry, Source, TypeCall, TypeError, TypeId, VarFlags, first_difference,
    parse_module,
};
use expect_test::Expect;

fn like_first(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    call.operand(0).ok_or_else(|| TypeError::new("an operand is missing"))
}

fn row(name: &'static str, arity: Arity, attrs: &'static [AttrDef]) -> OpDef {
    OpDef::new(name, "", arity, like_first).attrs(attrs).fusion(FusionPattern::ElemWise)
}

pub(crate) fn registry() -> Arc<OpRegistry> {
    use anfora_ir::{AttrDefault, AttrKind};
    const NOTE: &[AttrDef] = &[
        AttrDef { name: "a", kind: AttrKind::Any, default: AttrDefault::Absent, doc: "" },
        AttrDef { name: "b", kind: AttrKind::Any, default: AttrDefault::Absent, doc: "" },
        AttrDef { name: "c", kind: AttrKind::Any, default: AttrDefault::Absent, doc: "" },
    ];
    let mut registry = OpRegistry::new();
    for op in [
        row("add", Arity::exactly(2), &[]),
        row("exp", Arity::exactly(1), &[]),
        row("nn.note", Arity::at_least(1), NOTE),
        row("if", Arity::at_least(1), &[]),
        row("strange op", Arity::at_least(1), &[]),
    ] {
        registry.register(op).unwrap();
    }
    registry.declare_opaque("onnx").unwrap();
    Arc::new(registry)
}

pub(crate) fn module() -> Module {
    Module::new(registry())
}

/// Compares the printed module. Then parses the text, which must give the same module and print the
/// same.
pub(crate) fn check(module: &Module, expect: Expect) {
    let text = module.to_text();
    expect.assert_eq(&text);
    let parsed = parse(&text);
    if let Some(difference) = first_difference(module, &parsed) {
        panic!("parsing what was printed gives another module: {difference}");
    }
    assert_eq!(parsed.to_text(), text);
}

pub(crate) fn parse(text: &str) -> Module {
    parse_module(Source::new("printed.anf", text), registry()).unwrap_or_else(|errors| {
        panic!("{}\n{}", text.chars().take(5000).collect::<String>(), render_diagnostics(&errors))
    })
}

fn render_diagnostics(errors: &[Diagnostic]) -> String {
    errors.iter().map(|e| format!("{e} at {:?}\n", e.span)).collect()
}

/// Like `check`, for text that is another form of the same program: it must parse, and print as
/// itself.
pub(crate) fn check_text(module: &Module, expect: Expect) {
    let text = module.to_text();
    expect.assert_eq(&text);
    assert_eq!(parse(&text).to_text(), text);
}

pub(crate) fn f32x8(module: &mut Module) -> TypeId {
    module.cx.types.static_tensor(DType::Float32, &[8])
}

/// Returns a module with `def @main(%x: Tensor[(8,), float32])`, whose block `build` makes.
pub(crate) fn main_of(build: impl FnOnce(&mut FunctionBuilder<'_>, ExprId) -> Result<ExprId, BuildError>) -> Module {
    let mut m = module();
    let ty = f32x8(&mut m);
    let mut f = FunctionBuilder::new(&mut m, "main");
    let x = f.param("x", ty);
    let tail = build(&mut f, x).unwrap();
    f.finish(tail).unwrap();
    m
}

pub(crate) fn condition(f: &mut FunctionBuilder<'_>) -> ExprId {
    f.literal(Literal::scalar(true))
}

/// Returns a closed function `fn (%x: …) { body }` as an attribute.
pub(crate) fn function_attr(m: &mut Module, name: &str, attrs: &[(&str, AttrId)]) -> AttrId {
    let ty = f32x8(m);
    let mut function = Function::new(&m.cx.types, m.cx.attrs.empty());
    let name = m.cx.names.intern(name);
    let x = function.body.push_var(Some(name), VarFlags::PLAIN, ty, None);
    function.body.set_params(vec![x]);
    let op = m.cx.ops.resolve("nn.note").unwrap();
    let attrs = m.cx.named_attrs(attrs);
    let call = Editor::new(&mut m.cx, &mut function.body).call_op(op, &[x.expr()], attrs).unwrap();
    function.body.set_root(call);
    let id = m.cx.function_attrs.push(Arc::new(function));
    m.cx.attr(Attr::Function(id))
}
