//! Free and bound variables, uses, substitution and copies.

use anfora_ir::{Editor, EntityId, ExprId, Transplant, VarId};
use anfora_visit::{
    Binding, Link, RewriteError, bound_variables, chain, copy_fresh, free_variables, link_counts, substitute,
};
use expect_test::expect;

use crate::programs::{body, edited, first, float, parse, var};

const NESTED: &str = "def @main(%x: float32, %c: bool) {
    let %f = fn(%p: float32) -> float32 { let %q = add(%p, %x); if (%c) { %f(%q) } else { %q } };
    let %v = { let %i = %f(%x); %i };
    %v
}";

fn names(module: &anfora_ir::Module, vars: &[VarId]) -> String {
    let body = body(module);
    vars.iter().map(|&v| module.cx.names.get(body.var_name(v).unwrap())).collect::<Vec<_>>().join(" ")
}

#[test]
fn free_and_bound_variables_in_order() {
    let module = parse(NESTED);
    let body = body(&module);
    assert_eq!(names(&module, &free_variables(body, body.root())), "x c");
    assert_eq!(names(&module, &bound_variables(body, body.root())), "p q f i v");
    let lambda = Binding::of(body, body.root()).unwrap().value;
    // The enclosing Let binds the name of a recursive function.
    assert_eq!(names(&module, &free_variables(body, lambda)), "x c f");
    assert_eq!(names(&module, &bound_variables(body, lambda)), "p q");
}

#[test]
fn uses_are_counted_once_for_a_shared_node() {
    let module = parse("def @main(%x: float32) { %g = add(%x, %x); let %a = (%g, %g); let %b = %a; %b }");
    let body = body(&module);
    let uses = link_counts(body);
    assert_eq!(uses[body.params()[0].expr()], 2);
    for b in chain(body, body.root()) {
        assert_eq!(uses[b.var.expr()], 1);
    }
}

#[test]
fn substitution_leaves_what_is_outside_alone() {
    let text = edited(
        "def @main(%x: float32, %y: float32, %c: bool) {
            %g = negative(%x);
            let %a = if (%c) { let %t = add(%g, %x); %t } else { let %e = add(%g, %y); %e };
            add(%a, %g)
        }",
        |editor| {
            let id = Binding::of(editor.body, editor.body.root()).unwrap().value;
            let &[x, y, _] = editor.body.params() else { panic!() };
            substitute(editor, Link::Then(id), &[(x, y.expr()), (y, x.expr())]).unwrap();
        },
    );
    expect![[r#"
        def @main(%x: float32, %y: float32, %c: bool) -> float32 {
          %0 = negative(%x);
          let %a = if (%c) {
            let %t = add(negative(%y), %y);
            %t
          } else {
            let %e = add(%0, %y);
            %e
          };
          add(%a, %0)
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn substitution_of_nothing_writes_nothing() {
    assert_eq!(edited(NESTED, |editor| substitute(editor, Link::Root, &[]).unwrap()), "unchanged\n");
}

#[test]
fn substitution_takes_atoms_of_the_right_type() {
    edited(NESTED, |editor| {
        let &[x, c] = editor.body.params() else { panic!() };
        let value = Binding::of(editor.body, editor.body.root()).unwrap().value;
        assert_eq!(substitute(editor, Link::Root, &[(x, value)]), Err(RewriteError::NotAnAtom));
        assert!(matches!(substitute(editor, Link::Root, &[(x, c.expr())]), Err(RewriteError::LessSpecific { .. })));
    });
    let text = edited(NESTED, |editor| {
        let x = editor.body.params()[0];
        let one = float(editor, 1.0);
        substitute(editor, Link::Root, &[(x, one)]).unwrap();
    });
    expect![[r#"
        def @main(%x: float32, %c: bool) -> float32 {
          let %f = fn (%p: float32) -> float32 {
            let %q = add(%p, 1f);
            if (%c) { %f(%q) } else { %q }
          };
          let %v = {
            let %i = %f(1f);
            %i
          };
          %v
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_copy_has_variables_of_its_own_and_is_equal_otherwise() {
    let mut module = parse(NESTED);
    let key = first(&module);
    let before = module.to_string();
    let (function, cx) = module.get_mut(key).unwrap();
    let mut editor = Editor::new(cx, &mut function.body);
    let root = editor.body.root();
    let limit = editor.body.len();
    let copy = copy_fresh(&mut editor, root);
    let body = &*editor.body;
    assert!(bound_variables(body, copy).iter().all(|v| v.index() >= limit));
    assert_eq!(free_variables(body, copy), free_variables(body, root));
    assert!(bound_variables(body, root).iter().all(|v| v.index() < limit));
    function.body.set_root(copy);
    assert_eq!(module.to_string(), before);
}

#[test]
fn sharing_is_kept_in_a_copy() {
    let mut module = parse("def @main(%x: float32) { %g = negative(%x); (%g, (%g, %g)) }");
    let key = first(&module);
    let before = module.to_string();
    let (function, cx) = module.get_mut(key).unwrap();
    let mut editor = Editor::new(cx, &mut function.body);
    let (root, limit) = (editor.body.root(), editor.body.len());
    let copy = copy_fresh(&mut editor, root);
    assert_eq!(editor.body.len() - limit, 3);
    editor.body.set_root(copy);
    assert_eq!(module.to_string(), before);
}

#[test]
fn a_lambda_that_is_copied_has_symbols_of_its_own() {
    let mut module = parse(
        "def @main(%x: Tensor[(4,), float32]) {
            let %f = fn(%p: Tensor[(n,), float32]) { negative(%p) };
            %f(%x)
        }",
    );
    let before = module.to_string();
    let key = first(&module);
    let (function, cx) = module.get_mut(key).unwrap();
    let mut editor = Editor::new(cx, &mut function.body);
    let root = editor.body.root();
    let old = Binding::of(editor.body, root).unwrap().value;
    let copy = copy_fresh(&mut editor, root);
    let new = Binding::of(editor.body, copy).unwrap().value;
    let parameter_type = |editor: &Editor<'_>, id: ExprId| match editor.body.expr(id) {
        anfora_ir::Expr::Lambda { lambda, .. } => {
            assert_eq!(editor.body.lambda_symbols(lambda).len(), 1);
            editor.body.lambda_params(lambda).next().map(|p| editor.body.ty(p.expr()))
        }
        other => panic!("{other:?}"),
    };
    assert_ne!(parameter_type(&editor, old), parameter_type(&editor, new));
    assert_eq!(editor.body.ty(old), editor.body.ty(new), "function types that differ in names are one type");
    editor.body.set_root(copy);
    assert_eq!(module.to_string(), before);
}

#[test]
fn a_body_is_copied_into_another_with_arguments() {
    let mut module = parse(
        "def @callee(%p: float32, %c: bool) { let %q = add(%p, 2f); if (%c) { %q } else { negative(%p) } }
         def @main(%x: float32, %d: bool) { let %y = negative(%x); %y }",
    );
    let source = body(&module).clone();
    let main = module.find("main").unwrap();
    let (function, cx) = module.get_mut(main).unwrap();
    let mut editor = Editor::new(cx, &mut function.body);
    let d = editor.body.params()[1].expr();
    let y = Binding::of(editor.body, editor.body.root()).unwrap();
    let mut transplant = Transplant::new();
    transplant.replace(source.params()[0].expr(), y.var.expr());
    transplant.replace(source.params()[1].expr(), d);
    let copy = transplant.copy(&mut editor, Some(&source), source.root());
    assert_eq!(transplant.copied(source.params()[1].expr()), Some(d));
    Link::Rest(y.id).set(editor.body, copy);
    expect![[r#"
        def @callee(%p: float32, %c: bool) -> float32 {
          let %q = add(%p, 2f);
          if (%c) { %q } else { negative(%p) }
        }

        def @main(%x: float32, %d: bool) -> float32 {
          let %y = negative(%x);
          let %q = add(%y, 2f);
          if (%d) { %q } else { negative(%y) }
        }
    "#]]
    .assert_eq(&module.to_string().replace("Tensor[(), float32]", "float32").replace("Tensor[(), bool]", "bool"));
}

#[test]
fn variables_of_a_name_are_found() {
    edited(NESTED, |editor| {
        let q = var(editor, "q");
        assert!(q.index() < editor.body.len());
        assert_eq!(ExprId::from_index(q.index()), q.expr());
    });
}

#[test]
fn what_is_substituted_for_an_output_becomes_one() {
    let text = "def @main(%x: float32) {
        dataflow { let %a = negative(%x); let %b = negative(%a); output(%b) }
        negative(%b)
    }";
    let after = edited(text, |editor| {
        let (a, b) = (var(editor, "a"), var(editor, "b"));
        substitute(editor, Link::Root, &[(b, a.expr())]).unwrap();
    });
    expect![[r#"
        def @main(%x: float32) -> float32 {
          dataflow {
            let %a = negative(%x);
            let %b = negative(%a);
            output(%a, %b);
          }
          negative(%a)
        }
    "#]]
    .assert_eq(&after);
}
