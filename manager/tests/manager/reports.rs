//! The instruments that come with the manager.

use std::sync::Arc;

use anfora_manager::{Instrument, ModulePass, Pass, PassContext, RunLog, Sequential, VerifyEach};

use crate::support::{bump, empty_module, idle, unverified};

fn with(instrument: Arc<dyn Instrument>) -> PassContext {
    unverified().instrument(instrument).build().unwrap()
}

#[test]
fn the_log_says_what_ran_and_what_it_did() {
    let log = Arc::new(RunLog::new());
    let cx = with(log.clone());
    let fails = ModulePass::new("fails", 0, |_, _| Err("no".into()));
    let passes = Sequential::new(vec![Arc::new(bump("a")), Arc::new(idle("b", 0)), Arc::new(fails)]).unwrap();
    passes.apply(&mut empty_module(), &cx).unwrap_err();
    let records = log.records();
    let seen: Vec<_> = records.iter().map(|r| (r.pass.as_str(), r.depth, r.changed)).collect();
    assert_eq!(seen, [("a", 1, Some(true)), ("b", 1, Some(false)), ("fails", 1, None)]);
}

/// Makes the last binding of @g use a variable before it is bound.
fn breaks(name: &str) -> ModulePass {
    ModulePass::new(name, 0, |module, _| {
        let key = module.find("g").expect("there is a @g");
        let (f, _) = module.get_mut(key).expect("it was just found");
        let body = &mut f.body;
        let anfora_ir::Expr::Let { value, .. } = body.expr(body.root()) else { return Err("no bindings".into()) };
        let anfora_ir::Expr::CallOp { operands, .. } = body.expr(value) else { return Err("no call".into()) };
        let last = body.tail(body.root());
        body.set_operand(operands, 0, last);
        Ok(())
    })
}

#[test]
fn an_ill_formed_result_is_taken_back_and_names_pass_function_and_binding() {
    let cx = with(Arc::new(VerifyEach::new()));
    let mut module = crate::support::module();
    let passes = Sequential::new(vec![Arc::new(bump("good")), Arc::new(breaks("bad"))]).unwrap();
    let failure = passes.apply(&mut module, &cx).unwrap_err();
    assert_eq!((failure.pass(), failure.function(), failure.binding()), ("bad", Some("g"), Some("a")));
    let said = failure.to_string();
    assert!(
        said.starts_with("pass `bad` failed in VerifyEach (run_after): the pass made an ill-formed module: "),
        "{said}"
    );
    assert!(anfora_ir::verify_module(&module).is_ok());
    assert_eq!(crate::support::bumps(&module), 1);
}

#[test]
fn an_ill_formed_input_is_not_the_fault_of_the_pass() {
    let mut module = crate::support::module();
    breaks("bad").apply(&mut module, &unverified().build().unwrap()).unwrap();
    let passes = Sequential::new(vec![Arc::new(bump("good"))]).unwrap();
    let failure = passes.apply(&mut module, &with(Arc::new(VerifyEach::with_input()))).unwrap_err();
    assert!(failure.error().message().starts_with("the module was ill-formed before the pass: "), "{failure}");
    assert_eq!(crate::support::bumps(&module), 0);
}
