//! A repeated pass visits again what changed, and what reaches it.

use std::sync::{Arc, Mutex};

use anfora_ir::{DType, Expr, FunctionBuilder, Module};
use anfora_manager::{FunctionPass, ModulePass, Outcome, Pass, PassContext, Repeat, Sequential};

use crate::support::{Log, add_function, bump, empty_module, module, set_bumps, snapshot};

fn repeat(passes: Vec<Arc<dyn Pass>>) -> Repeat {
    Repeat::new(passes, 8).unwrap()
}

/// A pass that notes whom it visits and changes nothing.
fn visit(name: &str, log: &Log) -> Arc<FunctionPass> {
    Arc::new(visiting(name, log))
}

fn visiting(name: &str, log: &Log) -> FunctionPass {
    let (log, pass) = (log.clone(), name.to_string());
    FunctionPass::new(name, 0, move |func, _, _| {
        log.note(format!("{pass} {}", func.name()));
        Ok(())
    })
}

/// A pass that does something to the module the first time it runs, and nothing later.
fn once(work: impl Fn(&mut Module) + Send + Sync + 'static) -> Arc<ModulePass> {
    let done = Mutex::new(false);
    Arc::new(ModulePass::new("once", 0, move |module, _| {
        if !std::mem::replace(&mut *done.lock().unwrap(), true) {
            work(module);
        }
        Ok(())
    }))
}

fn poke(module: &mut Module, name: &str) {
    let key = module.find(name).unwrap();
    let body = &mut module.get_mut(key).unwrap().0.body;
    let ty = body.ty(body.root());
    let list = body.push_operands(&[]);
    let unit = body.push(Expr::Tuple(list), ty, None);
    body.set_root(unit);
}

/// So many functions, `@f0` on: every tenth calls the one that is ten before it.
fn callers(n: usize) -> Module {
    let mut module = empty_module();
    let ty = module.cx.types.static_tensor(DType::Float32, &[8]);
    for i in 0..n {
        let mut f = FunctionBuilder::new(&mut module, &format!("f{i}"));
        let x = f.param("x", ty);
        let value = if i % 10 == 0 && i > 0 {
            let callee = f.global(&format!("f{}", i - 10));
            f.call(callee, &[x]).unwrap()
        } else {
            f.call_op("negate", &[x], &[]).unwrap()
        };
        let y = f.bind("y", value);
        f.finish(y).unwrap();
    }
    module
}

fn rounds_of(pass: &Repeat, module: &mut Module) {
    pass.apply(module, &PassContext::new()).unwrap();
}

#[test]
fn only_what_changed_and_what_calls_it_is_visited_again() {
    let log = Log::default();
    let mut module = callers(1000);
    let passes = repeat(vec![visit("a", &log), once(|m| poke(m, "f960"))]);
    rounds_of(&passes, &mut module);
    let visits = log.take();
    let expected: Vec<String> =
        (0..1000).map(|i| i.to_string()).chain((96..100).map(|i| format!("{}", i * 10))).collect();
    assert_eq!(visits, expected.iter().map(|i| format!("a f{i}")).collect::<Vec<_>>());
}

#[test]
fn each_pass_has_what_it_left_itself() {
    let log = Log::default();
    let passes = repeat(vec![visit("a", &log), once(|m| poke(m, "g")), visit("b", &log)]);
    rounds_of(&passes, &mut module());
    assert_eq!(log.take(), ["a f", "a g", "a h", "b f", "b g", "b h", "a g"]);
}

#[test]
fn a_pass_that_changes_a_function_visits_it_again() {
    let log = Log::default();
    let inner = log.clone();
    let passes = repeat(vec![Arc::new(FunctionPass::new("shrink", 0, move |func, _, _| {
        inner.note(func.name());
        let body = &mut func.function.body;
        if body.params().len() == 1 {
            body.set_params(Vec::new());
        }
        Ok(())
    }))]);
    let mut module = module();
    poke(&mut module, "g");
    module.get_mut(module.find("g").unwrap()).unwrap().0.body.set_params(Vec::new());
    rounds_of(&passes, &mut module);
    assert_eq!(log.take(), ["f", "g", "h", "f", "h"]);
}

#[test]
fn whatever_a_module_pass_changes_counts() {
    type Change = fn(&mut Module);
    let changes: [(&str, Change, &[&str]); 7] = [
        ("an attribute of the module, which a function pass does not see", |m| set_bumps(m, 1), &[]),
        (
            "the stated result of a function",
            |m| {
                let any = m.cx.types.any();
                m.get_mut(m.find("f0").unwrap()).unwrap().0.ret = Some(any);
            },
            &["f0", "f10", "f20"],
        ),
        (
            "a signature",
            |m| {
                let any = m.cx.types.any();
                let global = m.cx.find_global("f10").unwrap();
                m.set_signature(global, any);
            },
            &["f10", "f20"],
        ),
        ("a function less", |m| m.remove(&[m.find("f10").unwrap()]), &["f20"]),
        (
            "a name",
            |m| {
                let global = m.cx.find_global("f10").unwrap();
                let name = m.cx.names.intern("other");
                m.rename(global, name);
            },
            &["other", "f20"],
        ),
        ("a function more", |m| add_function(m, "more"), &["more"]),
        (
            "another order",
            |m| {
                let mut order = m.order().to_vec();
                order.reverse();
                m.set_order(order);
            },
            &[],
        ),
    ];
    for (what, change, visited) in changes {
        let log = Log::default();
        let mut module = callers(30);
        rounds_of(&repeat(vec![visit("a", &log), once(change)]), &mut module);
        let visits = log.take();
        let expected: Vec<String> = visited.iter().map(|f| format!("a {f}")).collect();
        assert_eq!(visits[30..], expected, "{what}");
    }
}

#[test]
fn a_missing_function_that_comes_counts() {
    let log = Log::default();
    let mut module = callers(30);
    module.remove(&[module.find("f0").unwrap()]);
    rounds_of(&repeat(vec![visit("a", &log), once(|m| add_function(m, "f0"))]), &mut module);
    assert_eq!(log.take()[29..], ["a f10", "a f20", "a f0"]);
}

#[test]
fn what_a_pass_appends_and_does_not_link_is_no_change() {
    let log = Log::default();
    let inner = log.clone();
    let doodle = FunctionPass::new("doodle", 0, move |func, _, _| {
        inner.note(format!("doodle {}", func.name()));
        let body = &mut func.function.body;
        body.push(Expr::None, body.ty(body.root()), None);
        Ok(())
    });
    let poke_g = || once(|m| poke(m, "g"));
    let passes = repeat(vec![visit("a", &log), Arc::new(doodle), poke_g(), poke_g()]);
    rounds_of(&passes, &mut module());
    let all = ["f", "g", "h"];
    let first: Vec<String> = ["a", "doodle"].iter().flat_map(|p| all.map(|f| format!("{p} {f}"))).collect();
    let visits = log.take();
    assert_eq!(visits[..6], first);
    assert_eq!(visits[6..], ["a g", "doodle g"]);
}

#[test]
fn a_pass_may_ask_for_all() {
    let log = Log::default();
    let passes = repeat(vec![Arc::new(visiting("a", &log).visiting_all()), once(|m| poke(m, "g"))]);
    rounds_of(&passes, &mut module());
    assert_eq!(log.take().len(), 6);
}

#[test]
fn only_in_repetitions_and_only_as_long_as_they_last() {
    let log = Log::default();
    let a: Arc<dyn Pass> = visit("a", &log);
    let twice = |passes: Vec<Arc<dyn Pass>>| Sequential::new(passes).unwrap();
    rounds_of_any(&twice(vec![a.clone(), a.clone()]));
    assert_eq!(log.take().len(), 6);
    rounds_of_any(&twice(vec![Arc::new(repeat(vec![a.clone(), a.clone()])), a.clone()]));
    assert_eq!(log.take().len(), 3 + 3);
    // A repetition in a repetition, and a sequence in one, remember as one.
    let nested =
        repeat(vec![Arc::new(repeat(vec![a.clone()])), Arc::new(bump_once()), Arc::new(twice(vec![a.clone()]))]);
    rounds_of_any(&nested);
    assert_eq!(log.take().len(), 3);
}

fn bump_once() -> impl Pass {
    let done = Mutex::new(false);
    ModulePass::new("bump once", 0, move |module, cx| {
        if !std::mem::replace(&mut *done.lock().unwrap(), true) {
            bump("bump").apply(module, cx).map_err(anfora_manager::PassError::from_error)?;
        }
        Ok(())
    })
}

fn rounds_of_any(pass: &dyn Pass) {
    pass.apply(&mut module(), &PassContext::new()).unwrap();
}

#[test]
fn the_result_is_the_same() {
    // Each pass removes something that the others have left it: what the rounds come to depends on each visit that matters.
    let passes = |all: bool| {
        let make = move |name: &'static str, mark: &'static str, next: &'static str| {
            let pass = FunctionPass::new(name, 0, move |func, _, _| {
                let value = func.cx.int_attr(1);
                if func.cx.find_attr(func.function.attrs, mark).is_some() {
                    let attrs = func.cx.with_attr(func.function.attrs, mark, None);
                    func.function.attrs = func.cx.with_attr(attrs, next, Some(value));
                }
                Ok(())
            });
            let pass: Arc<dyn Pass> = Arc::new(if all { pass.visiting_all() } else { pass });
            pass
        };
        repeat(vec![make("c", "three", "done"), make("b", "two", "three"), make("a", "one", "two")])
    };
    let run = |all| {
        let mut module = module();
        let value = module.cx.int_attr(1);
        let key = module.find("g").unwrap();
        let (f, cx) = module.get_mut(key).unwrap();
        f.attrs = cx.with_attr(f.attrs, "one", Some(value));
        let outcome = passes(all).apply(&mut module, &PassContext::new()).unwrap();
        (outcome, snapshot(&module))
    };
    assert_eq!(run(false), run(true));
    assert_eq!(run(false).0, Outcome::Changed);
}
