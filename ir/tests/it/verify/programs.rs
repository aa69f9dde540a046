//! Small programs, and edits that break them.

use anfora_ir::{Body, Context, Expr, ExprId, Form, LetFlags, Module, Source, VarId, parse_module, verify_module};

use crate::tiny::registry;

pub(super) fn parse(text: &str) -> Module {
    parse_module(Source::new("test.anf", text), registry()).unwrap_or_else(|e| {
        let all: Vec<String> = e.iter().map(ToString::to_string).collect();
        panic!("{}", all.join("\n"))
    })
}

pub(super) fn errors(m: &Module) -> Vec<String> {
    verify_module(m).err().unwrap_or_default().iter().map(|d| d.to_string()).collect()
}

pub(super) fn assert_fine(m: &Module, form: Form) {
    assert_eq!(verify_module(m).map(|r| r.form()), Ok(form));
}

/// Returns the module of a text after an edit of its `@main`.
pub(super) fn edited(text: &str, edit: impl FnOnce(&mut Body, &mut Context)) -> Module {
    let mut m = parse(text);
    assert_eq!(errors(&m), Vec::<String>::new(), "the program is in order before the edit");
    edit_main(&mut m, edit);
    m
}

pub(super) fn edit_main(m: &mut Module, edit: impl FnOnce(&mut Body, &mut Context)) {
    let main = m.find("main").unwrap();
    let (f, cx) = m.get_mut(main).unwrap();
    edit(&mut f.body, cx);
}

pub(super) fn find(body: &Body, mut f: impl FnMut(&Expr) -> bool) -> ExprId {
    body.exprs().find(|(_, e)| f(e)).unwrap().0
}

/// Returns the Let of a variable.
pub(super) fn link(body: &Body, cx: &Context, name: &str) -> ExprId {
    let name = cx.names.find(name).unwrap();
    find(body, |e| matches!(e, Expr::Let { var, .. } if body.var_name(*var) == Some(name)))
}

pub(super) fn parts(body: &Body, link: ExprId) -> (VarId, ExprId, ExprId, LetFlags) {
    match body.expr(link) {
        Expr::Let { var, value, body, flags } => (var, value, body, flags),
        other => panic!("{other:?} is not a Let"),
    }
}

pub(super) fn var(body: &Body, cx: &Context, name: &str) -> ExprId {
    let name = cx.names.find(name);
    find(body, |e| matches!(e, Expr::Var { name: n, .. } if *n == name))
}

pub(super) const CHAIN: &str = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
    let %a = negative(%x);
    let %b = add(%a, %x);
    let %c = add(%b, %a);
    %c
}";

pub(super) const REGION: &str = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
    dataflow {
        let %a = negative(%x);
        let %b = add(%a, %x);
        output(%b);
    }
    let %c = add(%b, %x);
    %c
}";

pub(super) const BRANCH: &str = "def @main(%x: Tensor[(8,), float32], %p: bool) -> Tensor[(8,), float32] {
    let %r = if (%p) { let %i = negative(%x); %i } else { %x };
    let %s = add(%r, %r);
    %s
}";

pub(super) const LAMBDA: &str = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
    let %f = fn (%y: Tensor[(8,), float32]) { let %n = negative(%y); %n };
    let %r = %f(%x);
    %r
}";
