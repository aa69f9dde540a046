//! Effects of an edit of some functions on others, and on their copies.

#[cfg(debug_assertions)]
use anfora_ir::{Attr, Body, EntityId, LambdaId};
use anfora_ir::{Expr, ExprId, Module, Source, parse_module, verify_functions, verify_module};

use crate::tiny::registry;

fn parsed(text: &str) -> Module {
    parse_module(Source::new("text", text), registry()).unwrap_or_else(|e| panic!("{}\n{text}", e[0]))
}

/// Returns the errors of the verifier for the functions that an open edit affects, and for the
/// whole module.
fn said(module: &Module) -> (Vec<String>, Vec<String>) {
    let affected = verify_functions(module, &module.affected_functions()).err().unwrap_or_default();
    let all = verify_module(module).err().unwrap_or_default();
    (affected.iter().map(ToString::to_string).collect(), all.iter().map(ToString::to_string).collect())
}

fn affected(module: &Module) -> Vec<&str> {
    module.affected_functions().into_iter().map(|key| module.name(key)).collect()
}

const CALLS: &str = "def @main(%x: float32) {
  dataflow { let %a = @middle(%x); let %b = negative(%a); output(%b); }
  %b
}
def private @middle(%x: float32) { let %y = @last(%x); %y }
def private @last(%x: float32) { let %y = negative(%x); %y }
def @other(%x: float32) { let %y = @pure(%x); %y }
def private @pure(%x: float32) { let %y = negative(%x); %y }
";

/// Replaces the operator that a function calls by another one of the same type.
fn call_in_place(module: &mut Module, function: &str, name: &str) {
    let key = module.find(function).unwrap();
    let (f, cx) = module.get_mut(key).unwrap();
    let new = cx.ops.resolve(name).unwrap();
    let call = f.body.exprs().find_map(|(id, expr)| match expr {
        Expr::CallOp { operands, attrs, .. } => Some((id, Expr::CallOp { op: new, operands, attrs })),
        _ => None,
    });
    let (id, call) = call.unwrap();
    f.body.set_expr(id, call);
}

#[test]
fn callers_of_a_function_that_became_impure_are_affected() {
    let mut module = parsed(CALLS);
    verify_module(&module).unwrap();
    module.begin_edit();
    call_in_place(&mut module, "last", "random");
    assert_eq!(affected(&module), ["main", "middle", "last"]);
    let (of_affected, of_all) = said(&module);
    assert_eq!(of_affected, of_all);
    assert!(of_all.len() == 1 && of_all[0].contains("a dataflow region holds no side effect"), "{of_all:?}");
}

#[test]
fn callers_of_a_function_that_stays_pure_are_not() {
    let mut module = parsed(CALLS);
    module.begin_edit();
    call_in_place(&mut module, "pure", "flip");
    assert_eq!(affected(&module), ["pure"]);
    call_in_place(&mut module, "last", "flip");
    assert_eq!(affected(&module), ["last", "pure"]);
    assert_eq!(said(&module), (Vec::new(), Vec::new()));
}

/// Two functions of one parameter each, with a symbol each.
const SYMBOLS: &str = "def @f(%x: Tensor[(n,), float32]) { let %y = negative(%x); %y }
def @h(%x: Tensor[(n,), float32]) { let %y = negative(%x); %y }
";

fn symbolic_types(module: &mut Module) {
    let ty = |m: &Module| {
        let body = &m.get(m.find("h").unwrap()).unwrap().body;
        body.ty(body.params()[0].expr())
    };
    let (ty, key) = (ty(module), module.find("f").unwrap());
    let (f, _) = module.get_mut(key).unwrap();
    let nodes: Vec<ExprId> = f
        .body
        .exprs()
        .filter(|&(id, _)| f.body.ty(id) == f.body.ty(f.body.params()[0].expr()))
        .map(|(id, _)| id)
        .collect();
    nodes.into_iter().for_each(|id| f.body.set_type(id, ty));
}

#[test]
fn a_symbol_of_a_function_that_is_not_affected_is_not_to_be_bound() {
    let mut module = parsed(SYMBOLS);
    verify_module(&module).unwrap();
    module.begin_edit();
    symbolic_types(&mut module);
    assert_eq!(affected(&module), ["f"]);
    let (of_affected, of_all) = said(&module);
    assert_eq!((of_affected.len(), of_all.len()), (1, 1));
    assert!(of_all[0].contains("the symbolic dimension `n` is bound in another function too"), "{of_all:?}");
    assert!(of_affected[0].contains("the symbolic dimension `n` is bound in `@h` too"), "{of_affected:?}");
    assert!(of_affected[0].contains("@f"), "{of_affected:?}");
}

#[test]
fn what_nothing_links_to_in_another_function_may_name_any_symbol() {
    let mut module = parsed(SYMBOLS);
    let ty = {
        let body = &module.get(module.find("f").unwrap()).unwrap().body;
        body.ty(body.params()[0].expr())
    };
    let (h, _) = module.get_mut(module.find("h").unwrap()).unwrap();
    h.body.push(Expr::None, ty, None);
    let f = module.find("f").unwrap();
    assert!(verify_module(&module).is_ok() && verify_functions(&module, &[f]).is_ok());
}

#[test]
fn a_rollback_in_a_joined_fork_brings_back_the_state_that_was_there() {
    let mut module = parsed(SYMBOLS);
    let key = module.find("f").unwrap();
    let before = module.get(key).unwrap().stamp();
    module.begin_edit();
    let (f, _) = module.get_mut(key).unwrap();
    let copy = f.body.clone();
    f.body.replace(copy);
    module.begin_edit();
    let (f, _) = module.get_mut(key).unwrap();
    let between = f.stamp();
    let copy = f.body.clone();
    f.body.replace(copy);
    let mut fork = f.fork();
    let param = fork.body.params()[0].expr();
    fork.body.set_root(param);
    let ended = f.end_fork(fork);
    f.join(ended);
    module.rollback();
    assert_eq!(module.get(key).unwrap().stamp(), between);
    module.rollback();
    assert_eq!(module.get(key).unwrap().stamp(), before);
}

/// Returns the message of the panic of an edit of a body of one parameter while an edit is open.
#[cfg(debug_assertions)]
fn refused(edit: impl FnOnce(&mut Body, ExprId)) -> String {
    let mut module = parsed("def @main(%x: float32) { let %f = fn (%y: float32) { %y }; %x }");
    module.begin_edit();
    let (f, _) = module.get_mut(module.find("main").unwrap()).unwrap();
    let outside = ExprId::from_index(f.body.len());
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| edit(&mut f.body, outside)));
    let panic = panic.expect_err("an id of another function is refused");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[cfg(debug_assertions)]
#[test]
fn ids_of_other_functions_are_refused_where_they_are_written() {
    let lambda = LambdaId::from_index(0);
    let other = LambdaId::from_index(1);
    let said = [
        refused(|body, outside| body.set_type(outside, body.ty(body.root()))),
        refused(|body, outside| {
            let mut module = parsed("");
            let meta = module.cx.attr(Attr::Int(1));
            let meta = module.cx.named_attrs(&[("a", meta)]);
            body.set_meta(outside, Some(meta));
        }),
        refused(|body, _| body.set_lambda(other, body.lambda(lambda))),
        refused(|body, _| body.set_lambda_symbols(other, Vec::new())),
        refused(|body, _| {
            let mut data = body.lambda(lambda);
            let call = body.exprs().find(|(_, e)| matches!(e, Expr::Lambda { .. })).unwrap().0;
            data.params = body.push_operands(&[call]);
            body.set_lambda(lambda, data);
        }),
    ];
    for text in said {
        assert!(text.contains("is it an id of another function?"), "{text}");
    }
}
