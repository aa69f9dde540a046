//! Tests of copies within a function and from one function to another.

use anfora_ir::{
    Dim, Editor, Expr, ExprId, LetFlags, Module, SymbolId, SymbolSubstitution, Transplant, VarFlags, alpha_equal_exprs,
    verify_module,
};
use anfora_testing::{depth, on_small_stack};
use anfora_visit::{CopyError, chain, copy_between, copy_function};

use crate::programs::{SHAPES, deep, first, parse};

const SYMBOLIC: &str = r#"
def @main(%x: Tensor[(n, m), float32], %c: bool) -> Tensor[(n, m), float32] {
    #[name="first"] let %a = add(%x, %x);
    let %f = fn(%y: Tensor[(k, n), float32]) { let %z = negative(%y); %z };
    let %w = if (%c) { let %t = negative(%a); %t } else { %x };
    %w
}

def @other(%p: Tensor[(n, m), float32], %d: bool) -> Tensor[(n, m), float32] {
    %p
}
"#;

fn verified(module: &Module) {
    if let Err(errors) = verify_module(module) {
        panic!("{errors:?}\n{module}");
    }
}

/// Returns the text of one function, under the name `@f`.
fn text_of(module: &Module, name: &str) -> String {
    let text = module.to_string();
    let start = text.find(&format!("def @{name}(")).unwrap();
    let end = text[start..].find("\n}\n").unwrap();
    text[start..start + end].replacen(&format!("@{name}("), "@f(", 1)
}

#[test]
fn renamed_symbols_of_a_fn_stay_its_own() {
    let text = "def @main(%x: Tensor[(n,), float32]) -> Tensor[(n,), float32] {
        let %f = fn(%v: Tensor[(k,), float32]) { negative(%v) };
        %f(%x)
    }";
    let mut module = parse(text);
    let before = module.to_text();
    let key = module.find("main").unwrap();
    SymbolSubstitution::renaming().in_function(&mut module, key, &[]).unwrap();
    verified(&module);
    assert_eq!(module.to_text(), before);
}

#[test]
fn a_function_is_copied_with_symbols_of_its_own() {
    let mut module = parse(SYMBOLIC);
    let key = module.find("main").unwrap();
    let copy = copy_function(&mut module, key, "copy").unwrap();
    // The verifier refuses a symbol that two functions bind.
    verified(&module);
    assert_eq!(text_of(&module, "copy"), text_of(&module, "main"));
    assert!(text_of(&module, "copy").contains("#[name=\"first\"]"));
    assert_eq!(*module.order().last().unwrap(), copy);
    // Copy the copy under a third name.
    copy_function(&mut module, copy, "again").unwrap();
    module.remove(&[copy]);
    verified(&module);
    assert_eq!(text_of(&module, "again"), text_of(&module, "main"));

    assert_eq!(copy_function(&mut module, key, "other"), Err(CopyError::Duplicate("other".to_string())));
    assert_eq!(copy_function(&mut module, copy, "new"), Err(CopyError::NotTwoFunctions));
}

/// Returns the symbols of the first parameter's dimensions.
fn symbols(module: &Module, name: &str) -> Vec<SymbolId> {
    let body = &module.get(module.find(name).unwrap()).unwrap().body;
    let types = &module.cx.types;
    let shape = types.as_tensor(body.ty(body.params()[0].expr())).unwrap().shape.clone().unwrap();
    let symbol = |d| match *types.dims.get(d) {
        Dim::Symbol(s) => s,
        _ => panic!("a symbol"),
    };
    shape.iter().map(|&d| symbol(d)).collect()
}

/// Returns a transplant that maps the parameters and symbols of `from` to those of `to`.
fn between(module: &mut Module, from: &str, to: &str) -> Transplant<'static> {
    let mut transplant = Transplant::between_functions();
    let (olds, news) = (symbols(module, from), symbols(module, to));
    for (old, new) in olds.into_iter().zip(news) {
        transplant.symbols.set(old, module.cx.types.dims.symbol(new));
    }
    let params = |name| module.get(module.find(name).unwrap()).unwrap().body.params().to_vec();
    for (old, new) in params(from).into_iter().zip(params(to)) {
        transplant.replace(old.expr(), new.expr());
    }
    transplant
}

#[test]
fn an_expression_goes_to_another_function_and_back() {
    let mut module = parse(SYMBOLIC);
    let (main, other) = (module.find("main").unwrap(), module.find("other").unwrap());
    let root = module.get(main).unwrap().body.root();

    let there = copy_between(&mut between(&mut module, "main", "other"), &mut module, main, root, other).unwrap();
    module.get_mut(other).unwrap().0.body.set_root(there);
    verified(&module);
    let text = text_of(&module, "other");
    assert!(text.contains("#[name=\"first\"]") && text.contains("(k, n)"), "{text}");

    let back = copy_between(&mut between(&mut module, "other", "main"), &mut module, other, there, main).unwrap();
    let body = &module.get(main).unwrap().body;
    assert_ne!(back, root);
    assert!(alpha_equal_exprs(&module.cx, body, root, back));
    // The variable keeps its metadata.
    let var = chain(body, back).next().unwrap().var;
    assert_eq!(body.meta(var.expr()), body.meta(chain(body, root).next().unwrap().var.expr()));
    assert!(body.meta(var.expr()).is_some());
    module.get_mut(main).unwrap().0.body.set_root(back);
    verified(&module);
}

#[test]
fn what_is_free_must_have_a_replacement() {
    let mut module = parse(SYMBOLIC);
    let (main, other) = (module.find("main").unwrap(), module.find("other").unwrap());
    let root = module.get(main).unwrap().body.root();
    let len = module.get(other).unwrap().body.len();
    let copied = copy_between(&mut Transplant::between_functions(), &mut module, main, root, other);
    assert_eq!(copied, Err(CopyError::FreeVariable("x".to_string())));
    assert_eq!(module.get(other).unwrap().body.len(), len);
    let copied = copy_between(&mut Transplant::between_functions(), &mut module, main, root, main);
    assert_eq!(copied, Err(CopyError::NotTwoFunctions));
}

#[test]
fn one_transplant_copies_a_fn_with_symbols_several_times() {
    let text = "def @main(%x: Tensor[(n,), float32]) {
        let %f = fn (%v: Tensor[(k, n), float32]) -> Tensor[(k, n), float32] { let %z = negative(%v); %z };
        %f
    }";
    let mut module = parse(text);
    let (function, cx) = module.get_mut(first(&module)).unwrap();
    let mut editor = Editor::new(cx, &mut function.body);
    let root = editor.body.root();
    let value = chain(editor.body, root).next().unwrap().value;
    let mut transplant = Transplant::new();
    let mut block = root;
    for _ in 0..3 {
        let copy = transplant.copy(&mut editor, None, value);
        let ty = editor.body.ty(copy);
        let var = editor.var(None, VarFlags::PLAIN, ty);
        block = editor.let_(var, copy, block, LetFlags::PLAIN);
    }
    editor.body.set_root(block);
    verified(&module);
    let body = &module.get(first(&module)).unwrap().body;
    let fns: Vec<ExprId> = chain(body, body.root()).map(|b| b.value).collect();
    assert_eq!(fns.len(), 4);
    assert!(fns.iter().all(|&copy| alpha_equal_exprs(&module.cx, body, copy, value)));
}

#[test]
fn bindings_are_copied_together_with_what_they_share() {
    let text = "def @main(%x: float32) {
        let %a = negative(%x);
        let %f = fn (%v: float32) -> float32 { let %z = add(%v, %a); %z };
        let %b = negative(%a);
        %b
    }";
    let mut module = parse(text);
    let (function, cx) = module.get_mut(first(&module)).unwrap();
    let mut editor = Editor::new(cx, &mut function.body);
    let root = editor.body.root();
    let lets: Vec<_> = chain(editor.body, root).collect();
    let (a, f, b) = (lets[0], lets[1], lets[2]);
    // Both bindings hold the same node.
    let Expr::Let { var, body, flags, .. } = editor.body.expr(b.id) else { unreachable!("it is a Let") };
    editor.body.set_expr(b.id, Expr::Let { var, value: a.value, body, flags });

    let mut transplant = Transplant::new();
    let given = transplant.var(&mut editor, None, b.var);
    let [start, end] = transplant.bindings(&mut editor, None, [a.id, b.id]);
    let copies: Vec<_> = chain(editor.body, start).collect();
    assert_eq!(copies.len(), 3);
    assert_eq!((copies[0].id, copies[2].id), (start, end));
    assert_eq!(copies[0].value, copies[2].value);
    assert_ne!(copies[0].value, a.value);
    // The last binds the variable that was given, the others bind new ones.
    assert_eq!(copies[2].var, given);
    assert!(copies[0].var != a.var && copies[1].var != f.var);
    assert_eq!(editor.body.tail(start), given.expr());
    assert!(transplant.copied(a.var.expr()) == Some(copies[0].var.expr()));
}

#[test]
fn functions_of_every_shape_are_copied_on_a_small_stack() {
    for shape in SHAPES {
        on_small_stack(move || {
            let mut module = deep(shape, depth(5_000));
            let key = first(&module);
            let live = |body: &anfora_ir::Body| {
                body.exprs().filter(|(_, e)| matches!(e, Expr::CallOp { .. } | Expr::If { .. })).count()
            };
            let copy = copy_function(&mut module, key, "copy").unwrap();
            let (old, new) = (&module.get(key).unwrap().body, &module.get(copy).unwrap().body);
            let root: ExprId = new.root();
            assert!(!new.expr(root).is_atom(), "{shape:?}");
            assert_eq!(live(old), live(new), "{shape:?}");
        });
    }
}
