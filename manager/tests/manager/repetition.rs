//! A repeated pass visits functions again that have changed, and functions that reach those.

use std::sync::{Arc, Mutex};

use anfora_ir::{Attr, Body, DType, EntityId, Expr, FunctionBuilder, Module};
use anfora_manager::{
    FunctionEdit, FunctionPass, ModulePass, Outcome, Pass, PassContext, PassFailure, PassInfo, PassKind, Repeat,
    Sequential,
};
use fastrand::Rng;

use crate::support::{Log, add_function, bump, empty_module, idle, module, set_bumps, snapshot, unverified};

fn repeat(passes: Vec<Arc<dyn Pass>>) -> Repeat {
    Repeat::new(passes, 8).unwrap()
}

/// Makes a pass that logs the functions that it visits and changes nothing.
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

/// Makes a pass that changes the module the first time it runs, and does nothing later.
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

/// Returns a module with `n` functions, from `@f0` on. Every tenth function calls the tenth
/// function before it.
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
    pass.apply(module, &unverified().build().unwrap()).unwrap();
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
    // A repetition in a repetition, and a sequence in a repetition, share one record.
    let nested =
        repeat(vec![Arc::new(repeat(vec![a.clone()])), Arc::new(bump_once()), Arc::new(twice(vec![a.clone()]))]);
    rounds_of_any(&nested);
    assert_eq!(log.take().len(), 3);
}

fn bump_once() -> impl Pass {
    let done = Mutex::new(false);
    ModulePass::new("bump once", 0, move |module, cx| {
        if !std::mem::replace(&mut *done.lock().unwrap(), true) {
            bump("bump").apply(module, cx)?;
        }
        Ok(())
    })
}

fn rounds_of_any(pass: &dyn Pass) {
    pass.apply(&mut module(), &unverified().build().unwrap()).unwrap();
}

#[test]
fn the_result_is_the_same() {
    // Each pass removes marks that other passes leave for it, so the result of the rounds depends
    // on each visit that matters.
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
        let outcome = passes(all).apply(&mut module, &unverified().build().unwrap()).unwrap();
        (outcome, snapshot(&module))
    };
    assert_eq!(run(false), run(true));
    assert_eq!(run(false).0, Outcome::Changed);
}

/// A sequence that continues after a pass fails, and logs that.
struct Forgiving(Arc<dyn Pass>, PassInfo, Log);

impl Pass for Forgiving {
    fn info(&self) -> &PassInfo {
        &self.1
    }
    fn run(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        match self.0.apply(module, cx) {
            Err(failure) => {
                self.2.note(failure.to_string());
                Ok(Outcome::Unchanged)
            }
            done => done,
        }
    }
    fn kind(&self) -> PassKind {
        PassKind::Sequence
    }
}

#[test]
fn what_was_reported_is_reported_again() {
    let log = Log::default();
    let complain = FunctionPass::new("complain", 0, |func, _, _| {
        if func.name() == "g" {
            let root = func.function.body.root();
            func.error(root, "wrong");
        }
        Ok(())
    });
    let forgiving = Forgiving(Arc::new(complain), PassInfo::new("forgiving", 0), log.clone());
    let passes = repeat(vec![Arc::new(forgiving), once(|module| poke(module, "f"))]);
    rounds_of(&passes, &mut module());
    assert_eq!(log.take().len(), 2, "in both rounds");
}

#[test]
fn a_body_that_was_assigned_is_another() {
    for threads in [1, 2] {
        let cx = unverified().threads(threads).worth_sharing(0).build().unwrap();
        let log = Log::default();
        let rebuild = FunctionPass::new("rebuild", 0, |func, _, _| {
            if func.name() == "g" && func.function.body.params().len() == 1 {
                func.function.body = Body::new(&func.cx.types);
            }
            Ok(())
        });
        let passes = repeat(vec![visit("look", &log), Arc::new(rebuild)]);
        let mut m = module();
        assert_eq!(passes.apply(&mut m, &cx).unwrap(), Outcome::Changed);
        let mut seen = log.take();
        seen.sort();
        assert_eq!(seen, ["look f", "look g", "look g", "look h"].map(String::from));
        assert!(!m.has_edit() && m.functions().all(|(_, f)| !f.body.has_journal()));
    }
}

/// Returns a module of functions that call each other at random, with marks in their attributes.
fn random_module(random: &mut Rng) -> Module {
    let mut module = empty_module();
    let ty = module.cx.types.static_tensor(DType::Float32, &[8]);
    let n = 2 + random.usize(..8);
    for i in 0..n {
        let mut f = FunctionBuilder::new(&mut module, &format!("f{i}"));
        let x = f.param("x", ty);
        let mut value = f.call_op("negate", &[x], &[]).unwrap();
        for _ in 0..random.usize(..3) {
            let callee = f.global(&format!("f{}", random.usize(..i + 1)));
            if let Ok(call) = f.call(callee, &[x]) {
                f.bind("c", call);
            }
        }
        value = f.bind("y", value);
        f.finish(value).unwrap();
    }
    for key in module.order().to_vec() {
        let level = module.cx.int_attr(random.usize(..4) as i64);
        let (f, cx) = module.get_mut(key).unwrap();
        f.attrs = cx.with_attr(f.attrs, "level", Some(level));
    }
    module
}

fn level_of(func: &FunctionEdit<'_>, by: &str) -> i64 {
    match func.cx.find_attr(func.function.attrs, by).map(|a| func.cx.attrs.get(a)) {
        Some(Attr::Int(n)) => *n,
        _ => 0,
    }
}

fn set_level(func: &mut FunctionEdit<'_>, by: &str, n: i64) {
    let value = func.cx.int_attr(n);
    func.function.attrs = func.cx.with_attr(func.function.attrs, by, Some(value));
}

/// Returns a pass whose effect follows from the function and from everything that it reaches.
fn random_function_pass(kind: usize, all: bool) -> FunctionPass {
    let pass = FunctionPass::new(format!("p{kind}"), 0, move |func, view, cx| {
        let mut leaves: Vec<_> = func.function.body.global_leaves().into_iter().map(|(_, g)| g).collect();
        leaves.sort_by_key(|g| func.cx.global_name(*g).to_string());
        match kind {
            0 => {
                let n = level_of(func, "level");
                if n > 0 {
                    set_level(func, "level", n - 1);
                    func.cx.names.intern(&format!("step {n}"));
                }
            }
            // Records in `seen` how many called functions may be impure (counted twice), and
            // how many have a signature.
            1 => {
                let impure = leaves.iter().filter(|&&g| !view.purity().global_is_pure(g)).count() as i64;
                let known = leaves.iter().filter(|&&g| func.cx.globals.get(g).signature.is_some()).count() as i64;
                if level_of(func, "seen") != 2 * impure + known {
                    set_level(func, "seen", 2 * impure + known);
                }
            }
            2 if level_of(func, "level") == 1 => {
                let body = &mut func.function.body;
                let root = body.root();
                let ty = body.type_of(root);
                let list = body.push_operands(&[root]);
                let tuple = func.cx.types.tuple(&[ty]);
                let one = func.function.body.push(Expr::Tuple(list), tuple, None);
                let _ = one.index();
            }
            3 if level_of(func, "level") == 2 && func.function.body.params().len() < 4 => {
                let body = &mut func.function.body;
                let any = func.cx.types.any();
                let var = body.push_var(None, Default::default(), any, None);
                let params = [body.params().to_vec(), vec![var]].concat();
                body.set_params(params);
            }
            _ => cx.count("nothing", 0),
        }
        Ok(())
    });
    if all { pass.visiting_all() } else { pass }
}

/// Returns a pass that edits the module in its run number `after`.
fn random_module_pass(kind: usize, after: usize) -> ModulePass {
    let runs = std::sync::atomic::AtomicUsize::new(0);
    ModulePass::new("m", 0, move |module, _| {
        if runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed) != after {
            return Ok(());
        }
        let keys = module.order().to_vec();
        match (kind, &keys[..]) {
            (0, [first, _, ..]) => module.remove(&[*first]),
            (1, _) if module.find("added").is_none() => add_function(module, "added"),
            (2, [.., last]) => {
                let level = module.cx.int_attr(2);
                let (f, cx) = module.get_mut(*last).unwrap();
                f.attrs = cx.with_attr(f.attrs, "level", Some(level));
            }
            (3, [first, ..]) => {
                let global = module.get(*first).unwrap().global().unwrap();
                let any = module.cx.types.any();
                module.set_signature(global, any);
            }
            (4, [_, second, ..]) => {
                let body = &mut module.get_mut(*second).unwrap().0.body;
                body.replace(body.clone());
            }
            _ => set_bumps(module, 3),
        }
        Ok(())
    })
}

#[test]
fn random_repetitions_are_the_same_with_skipping_and_threads() {
    for seed in 1..=200_u64 {
        let mut random = Rng::with_seed(seed);
        let start = random_module(&mut random);
        let plan: Vec<(usize, usize)> =
            (0..2 + random.usize(..5)).map(|_| (random.usize(..9), random.usize(..3))).collect();
        let nested = random.usize(..3);
        let run = |all: bool, threads: usize| {
            let cx = unverified().threads(threads).worth_sharing(0).build().unwrap();
            let make = |&(kind, after): &(usize, usize)| -> Arc<dyn Pass> {
                match kind {
                    0..4 => Arc::new(random_function_pass(kind, all)),
                    _ => Arc::new(random_module_pass(kind - 4, after)),
                }
            };
            let mut passes: Vec<Arc<dyn Pass>> = plan.iter().map(make).collect();
            if nested < 2 {
                let inner = Repeat::new(passes.split_off(passes.len() / 2), 2).unwrap();
                passes.push(Arc::new(inner));
            }
            let mut module = start.clone();
            let outcome = repeat(passes).apply(&mut module, &cx).map_err(|f| f.to_string());
            (outcome, module.to_text(), snapshot(&module))
        };
        let plain = run(true, 1);
        for (all, threads) in [(false, 1), (true, 2), (false, 2)] {
            let other = run(all, threads);
            assert_eq!((&plain.0, &plain.1), (&other.0, &other.1), "seed {seed}: {all} {threads} {plan:?}");
            if threads == 1 {
                assert_eq!(plain.2, other.2, "seed {seed}");
            }
        }
    }
}

#[test]
fn a_remark_names_each_pass_that_still_changes_once() {
    let named = |name: &str, passes: Vec<Arc<dyn Pass>>| -> Arc<dyn Pass> {
        Arc::new(Sequential::named(PassInfo::new(name, 0), passes).unwrap())
    };
    let remarks = |passes: Vec<Arc<dyn Pass>>| -> Vec<String> {
        let cx = unverified().build().unwrap();
        Repeat::new(passes, 3).unwrap().apply(&mut module(), &cx).unwrap();
        cx.take_remarks().iter().map(|r| r.diagnostic.message.clone()).collect()
    };
    let a: Arc<dyn Pass> = Arc::new(bump("a"));
    let idle: Arc<dyn Pass> = Arc::new(idle("idle", 0));
    let first = once(|module| set_bumps(module, 100));
    let inner = named("inner", vec![idle.clone(), Arc::new(bump("b"))]);
    let passes = vec![a.clone(), first, named("outer", vec![inner.clone(), idle]), a.clone()];
    assert_eq!(remarks(passes), ["still changing after 3 rounds: `b`, `a`"]);
    // A repetition in a repetition names its own passes.
    let nested: Arc<dyn Pass> = Arc::new(Repeat::new(vec![inner], 2).unwrap());
    let within = "still changing after 2 rounds: `b`";
    assert_eq!(remarks(vec![a, nested]), [within, within, within, "still changing after 3 rounds: `a`, `b`"]);
}
