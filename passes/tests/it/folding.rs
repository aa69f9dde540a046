//! Tests of FoldConstant's effect on the arenas of a body, and of its rollback.

use anfora_ir::{Attr, Editor, Expr, Literal, Module, Source, parse_module, verify_module};
use anfora_passes::{FoldBudget, fold_constant};

/// Returns a program with `count` sums of a parameter and a constant that is folded in two steps
/// and returned.
fn module(count: usize) -> Module {
    let mut text = "def @main(%x: float32) {".to_string();
    (0..count).for_each(|i| text += &format!("let %s{i} = add(%x, {i}.5f);"));
    text += "let %a = add(1f, 2f); let %b = multiply(%a, %a); let %c = add(%x, %b); let %d = add(4f, 5f); (%c, %d) }";
    parse_module(Source::new("test", text), anfora_ops::standard()).map_err(|e| e[0].to_string()).unwrap()
}

fn fold(module: &mut Module) -> usize {
    let key = module.find("main").unwrap();
    let (function, cx) = module.get_mut(key).unwrap();
    let done = fold_constant(cx, function, FoldBudget::default()).unwrap();
    verify_module(module).unwrap();
    done.folded
}

/// Returns the number of nodes of the function.
fn nodes(module: &Module) -> usize {
    module.get(module.find("main").unwrap()).unwrap().body.len()
}

#[test]
fn the_call_that_is_folded_becomes_the_constant() {
    for count in [0, 100] {
        let mut module = module(count);
        let before = nodes(&module);
        assert_eq!(fold(&mut module), 3);
        let text = module.to_text();
        assert!(text.contains("let %c = add(%x, 9f);") && text.contains("(%c, 9f)"), "{text}");
        assert_eq!(nodes(&module), before, "nothing is appended");
        let body = &module.get(module.find("main").unwrap()).unwrap().body;
        let nines = body.exprs().filter(|&(id, _)| {
            let literal = body.as_literal(id).map(|l| module.cx.literals.get(l));
            literal == Some(&Literal::scalar(9f32))
        });
        assert_eq!(nines.count(), 1, "equal constants are one node");
    }
}

#[test]
fn a_fold_that_is_taken_back_leaves_no_constant_behind() {
    for count in [0, 100] {
        let mut module = module(count);
        let (before, stamp) = (module.to_text(), module.stamp());
        module.begin_edit();
        fold(&mut module);
        let folded = module.to_text();
        assert_ne!(folded, before);
        module.rollback();
        assert_eq!(module.to_text(), before);
        assert_eq!(module.stamp(), stamp);
        // The nodes of the constants are calls again, and are not returned for new constants.
        let key = module.find("main").unwrap();
        module.begin_edit();
        let (function, cx) = module.get_mut(key).unwrap();
        let mut editor = Editor::new(cx, &mut function.body);
        for value in [3f32, 9f32] {
            let id = editor.literal(Literal::scalar(value));
            assert!(matches!(editor.body.expr(id), Expr::Literal(_)), "{value} is {:?}", editor.body.expr(id));
        }
        module.rollback();
        fold(&mut module);
        assert_eq!(module.to_text(), folded);
    }
}

#[test]
fn metadata_of_a_call_is_not_that_of_the_constant() {
    let mut module = module(0);
    let key = module.find("main").unwrap();
    let (function, cx) = module.get_mut(key).unwrap();
    let meta = cx.attr(Attr::Int(1));
    let meta = cx.named_attrs(&[("seen", meta)]);
    let calls: Vec<_> =
        function.body.exprs().filter(|(_, e)| matches!(e, Expr::CallOp { .. })).map(|(id, _)| id).collect();
    calls.iter().for_each(|&id| function.body.set_meta(id, Some(meta)));
    fold(&mut module);
    let body = &module.get(key).unwrap().body;
    for id in calls {
        assert_eq!(body.meta(id).is_some(), body.as_literal(id).is_none());
    }
}
