//! Results of analyses are valid for exactly the state that they were computed for, and not
//! computed twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anfora_ir::{Body, Context, EntityId, Expr, ExprId, FunctionKey, Module, compact_body};
use anfora_manager::{
    Analyses, Declare, FunctionPass, ModulePass, Outcome, Pass, PassError, PassInfo, Sequential, run_pass,
};

use crate::support::{add_function, idle, module, set_bumps, unverified};

/// The nodes of a body, and the index of its root.
#[derive(PartialEq, Debug)]
struct Shape(Vec<Expr>, usize);

impl Shape {
    fn of(body: &Body) -> Shape {
        Shape(body.exprs().map(|(_, e)| e).collect(), body.root().index())
    }
}

/// The signatures of all globals.
#[derive(PartialEq, Debug)]
struct Signatures(String);

impl Signatures {
    fn of(cx: &Context, _: &Body) -> Signatures {
        Signatures(cx.globals.iter().map(|(_, g)| format!("{:?} ", g.signature)).collect())
    }
}

/// The names, sizes and stated result types of functions, and the attributes of the module.
#[derive(PartialEq, Debug)]
struct Census(Vec<(String, usize, String)>, String);

impl Census {
    fn of(module: &Module) -> Census {
        let row = |key, f: &anfora_ir::Function| (module.name(key).to_string(), f.body.len(), format!("{:?}", f.ret));
        Census(module.functions().map(|(key, f)| row(key, f)).collect(), format!("{:?}", module.attrs()))
    }
}

/// A counter of the runs of analyses.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicUsize>);

impl Counter {
    /// Returns the number of runs since the last call.
    fn take(&self) -> usize {
        self.0.swap(0, Ordering::SeqCst)
    }

    fn shape(&self) -> impl Fn(&Body) -> Shape + Send + Sync + use<> {
        let Counter(count) = self.clone();
        move |body| {
            count.fetch_add(1, Ordering::SeqCst);
            Shape::of(body)
        }
    }

    fn signatures(&self) -> impl Fn(&Context, &Body) -> Signatures + Send + Sync + use<> {
        let Counter(count) = self.clone();
        move |cx, body| {
            count.fetch_add(1, Ordering::SeqCst);
            Signatures::of(cx, body)
        }
    }

    fn census(&self) -> impl Fn(&Module) -> Census + Send + Sync + use<> {
        let Counter(count) = self.clone();
        move |module| {
            count.fetch_add(1, Ordering::SeqCst);
            Census::of(module)
        }
    }

    /// Makes a pass that asks for the shape of each function, and fails if the result is wrong.
    fn ask(&self) -> FunctionPass {
        let counter = self.clone();
        FunctionPass::new("ask", 0, move |func, _, cx| {
            let found = cx.analyses().get(func, counter.shape());
            right(*found == Shape::of(&func.function.body))
        })
    }

    /// Makes a pass that asks for the census of the module, and fails if the result is wrong.
    fn ask_module(&self) -> ModulePass {
        let counter = self.clone();
        ModulePass::new("ask_module", 0, move |module, cx| {
            let found = cx.analyses().of_module(module, counter.census());
            right(*found == Census::of(module))
        })
    }
}

fn right(it_is: bool) -> Result<(), PassError> {
    if it_is { Ok(()) } else { Err("what was found is of something else".into()) }
}

/// Changes a body, whatever it is, so that its shape changes too.
fn poke(body: &mut Body) {
    let ty = body.ty(body.root());
    let list = body.push_operands(&[]);
    let unit = body.push(Expr::Tuple(list), ty, None);
    body.set_root(unit);
}

fn key(module: &Module, name: &str) -> FunctionKey {
    module.find(name).unwrap()
}

fn poke_function(module: &mut Module, name: &str) {
    let key = key(module, name);
    poke(&mut module.get_mut(key).unwrap().0.body);
}

fn run(passes: Vec<Arc<dyn Pass>>, module: &mut Module) -> Outcome {
    Sequential::new(passes).unwrap().apply(module, &unverified().build().unwrap()).unwrap()
}

#[test]
fn results_last_from_pass_to_pass() {
    let counter = Counter::default();
    let ask: Arc<dyn Pass> = Arc::new(counter.ask());
    run(vec![ask.clone(), Arc::new(idle("idle", 0)), ask.clone(), ask.clone()], &mut module());
    assert_eq!(counter.take(), 3, "each of three functions once");
    // No result is kept after the outermost pass.
    run(vec![ask], &mut module());
    assert_eq!(counter.take(), 3);
}

#[test]
fn a_pass_alone_has_results_for_its_run() {
    let counter = Counter::default();
    let inner = counter.clone();
    let pass = ModulePass::new("twice", 0, move |module, cx| {
        for &key in module.order() {
            let one = cx.analyses().of_function(module, key, inner.shape()).unwrap();
            let other = cx.analyses().of_function(module, key, inner.shape()).unwrap();
            right(Arc::ptr_eq(&one, &other))?;
        }
        right(cx.analyses().of_function(module, FunctionKey::default(), inner.shape()).is_none())
    });
    pass.apply(&mut module(), &unverified().build().unwrap()).unwrap();
    assert_eq!(counter.take(), 3);
    pass.apply(&mut module(), &unverified().build().unwrap()).unwrap();
    assert_eq!(counter.take(), 3);
}

#[test]
fn what_a_pass_changes_is_worked_out_again_and_the_rest_is_not() {
    let counter = Counter::default();
    let ask: Arc<dyn Pass> = Arc::new(counter.ask());
    let change = FunctionPass::new("change", 0, |func, _, _| {
        if func.name() == "g" {
            poke(&mut func.function.body);
        }
        Ok(())
    });
    run(vec![ask.clone(), Arc::new(change), ask], &mut module());
    assert_eq!(counter.take(), 4);
}

#[test]
fn within_a_pass_every_edit_counts() {
    let counter = Counter::default();
    let inner = counter.clone();
    let edits: [fn(&mut Body); 7] = [
        |_| {},
        |body| body.set_root(ExprId::from_index(0)),
        |body| _ = body.push(Expr::None, body.ty(body.root()), None),
        |body| _ = body.push_operands(&[body.root()]),
        |body| body.set_params(Vec::new()),
        |body| body.replace(body.clone()),
        |body| *body = body.clone(),
    ];
    let pass = FunctionPass::new("edit", 0, move |func, _, cx| {
        for edit in edits {
            edit(&mut func.function.body);
            let found = cx.analyses().get(func, inner.shape());
            right(*found == Shape::of(&func.function.body))?;
            cx.analyses().get(func, inner.shape());
        }
        Ok(())
    });
    pass.apply(&mut module(), &unverified().build().unwrap()).unwrap();
    assert_eq!(counter.take(), 3 * 7);
}

#[test]
fn a_rollback_brings_back_what_was_right_before() {
    let counter = Counter::default();
    let inner = counter.clone();
    // Asks before an edit, after it, and after another edit that gives the body the same length
    // once the first is rolled back.
    let pass = ModulePass::new("outer", 0, move |module, cx| {
        let first = key(module, "f");
        let ask = |module: &Module| {
            let found = cx.analyses().of_function(module, first, inner.shape()).unwrap();
            right(*found == Shape::of(&module.get(first).unwrap().body))?;
            cx.analyses().of_module(module, inner.census());
            right(*cx.analyses().of_module(module, inner.census()) == Census::of(module)).map(|()| inner.take())
        };
        right(ask(module)? == 2)?;
        for expr in [Expr::None, Expr::Tuple(anfora_ir::OperandList::EMPTY)] {
            module.begin_edit();
            right(ask(module)? == 0)?;
            let body = &mut module.get_mut(first).unwrap().0.body;
            let node = body.push(expr, body.ty(body.root()), None);
            body.set_root(node);
            right(ask(module)? == 2)?;
            module.rollback();
            right(ask(module)? == 0)?;
        }
        Ok(())
    });
    pass.apply(&mut module(), &unverified().build().unwrap()).unwrap();
}

#[test]
fn a_failing_pass_leaves_what_was_right_before() {
    let counter = Counter::default();
    let inner = counter.clone();
    let ask = counter.ask();
    let ask_module = counter.ask_module();
    let fails = ModulePass::new("fails", 0, |module, cx| {
        poke_function(module, "f");
        set_bumps(module, 7);
        run_pass(&idle("inner", 0), module, cx)?;
        Err("no".into())
    });
    let tries = ModulePass::new("tries", 0, move |module, cx| {
        for (pass, runs) in [(&ask as &dyn Pass, 3), (&ask_module, 1)] {
            run_pass(pass, module, cx)?;
            right(inner.take() == runs)?;
            right(run_pass(&fails, module, cx).is_err())?;
            run_pass(pass, module, cx)?;
            right(inner.take() == 0)?;
        }
        Ok(())
    });
    tries.apply(&mut module(), &unverified().build().unwrap()).unwrap();
}

#[test]
fn a_result_about_the_module_goes_when_anything_of_it_changes() {
    type Change = fn(&mut Module);
    let changes: [(&str, Change); 9] = [
        ("a body", |m| poke_function(m, "h")),
        ("a head", |m| {
            let any = m.cx.types.any();
            let key = key(m, "g");
            m.get_mut(key).unwrap().0.ret = Some(any);
        }),
        ("an attribute of the module", |m| set_bumps(m, 3)),
        ("a function more", |m| add_function(m, "more")),
        ("a function less", |m| m.remove(&[key(m, "g")])),
        ("the order", |m| {
            let mut order = m.order().to_vec();
            order.reverse();
            m.set_order(order);
        }),
        ("a signature", |m| {
            let (key, any) = (key(m, "f"), m.cx.types.any());
            let global = m.get(key).unwrap().global().unwrap();
            m.set_signature(global, any);
        }),
        ("a name", |m| {
            let global = m.get(key(m, "f")).unwrap().global().unwrap();
            let name = m.cx.names.intern("other");
            assert!(m.rename(global, name));
        }),
        ("a body put in place of another", |m| {
            let key = key(m, "f");
            let body = &mut m.get_mut(key).unwrap().0.body;
            body.replace(body.clone());
        }),
    ];
    for (what, change) in changes {
        let counter = Counter::default();
        let ask: Arc<dyn Pass> = Arc::new(counter.ask_module());
        let change: Arc<dyn Pass> = Arc::new(ModulePass::new("change", 0, move |m, _| {
            change(m);
            Ok(())
        }));
        run(vec![ask.clone(), ask.clone(), Arc::new(idle("idle", 0)), ask.clone()], &mut module());
        assert_eq!(counter.take(), 1, "nothing changed");
        run(vec![ask.clone(), change, ask], &mut module());
        assert_eq!(counter.take(), 2, "{what} changed");
    }
}

#[test]
fn an_analysis_that_reads_the_tables_sees_signatures_as_they_are() {
    let counter = Counter::default();
    let inner = counter.clone();
    let ask: Arc<dyn Pass> = Arc::new(FunctionPass::new("ask", 0, move |func, _, cx| {
        let found = cx.analyses().get(func, inner.signatures());
        right(*found == Signatures::of(func.cx, &func.function.body))
    }));
    let change = ModulePass::new("change", 0, |m, _| {
        let any = m.cx.types.any();
        let global = m.get(key(m, "f")).unwrap().global().unwrap();
        m.set_signature(global, any);
        Ok(())
    });
    run(vec![ask.clone(), ask.clone(), Arc::new(change), ask], &mut module());
    assert_eq!(counter.take(), 6);
}

#[test]
fn compaction_makes_another_body() {
    let counter = Counter::default();
    let analyses = Analyses::new();
    let mut module = module();
    let key = key(&module, "f");
    let ask = |module: &Module| {
        let found = analyses.of_function(module, key, counter.shape()).unwrap();
        assert_eq!(*found, Shape::of(&module.get(key).unwrap().body));
        counter.take()
    };
    assert_eq!((ask(&module), ask(&module)), (1, 0));
    compact_body(&mut module.get_mut(key).unwrap().0.body).unwrap();
    assert_eq!((ask(&module), ask(&module)), (1, 0));
}

#[test]
fn functions_of_other_modules_are_others() {
    let counter = Counter::default();
    let analyses = Analyses::new();
    let mut one = module();
    let mut two = one.clone();
    poke_function(&mut one, "f");
    let list = {
        let key = key(&two, "f");
        let body = &mut two.get_mut(key).unwrap().0.body;
        let node = body.push(Expr::None, body.ty(body.root()), None);
        body.set_root(node);
        key
    };
    for module in [&one, &two, &one] {
        let found = analyses.of_function(module, list, counter.shape()).unwrap();
        assert_eq!(*found, Shape::of(&module.get(list).unwrap().body));
        assert_eq!(*analyses.of_module(module, counter.census()), Census::of(module));
    }
}

/// The number of parameters of a function.
#[derive(PartialEq, Debug)]
struct Params(usize);

/// The number of functions of a module.
#[derive(PartialEq, Debug)]
struct Functions(usize);

/// Runs passes that ask, change and ask again. Returns the number of runs of the analyses of
/// functions and of the module.
fn around(change: impl Pass + 'static) -> Result<(usize, usize), String> {
    let (bodies, modules) = (Counter::default(), Counter::default());
    let (b, m) = (bodies.clone(), modules.clone());
    let ask: Arc<dyn Pass> = Arc::new(ModulePass::new("ask", 0, move |module, cx| {
        for &key in module.order() {
            let Counter(count) = b.clone();
            cx.analyses().of_function(module, key, move |body: &Body| {
                count.fetch_add(1, Ordering::SeqCst);
                Params(body.params().len())
            });
        }
        let Counter(count) = m.clone();
        cx.analyses().of_module(module, move |module: &Module| {
            count.fetch_add(1, Ordering::SeqCst);
            Functions(module.order().len())
        });
        Ok(())
    }));
    let passes = Sequential::new(vec![ask.clone(), Arc::new(change), ask]).unwrap();
    let mut module = module();
    let before = crate::support::snapshot(&module);
    match passes.apply(&mut module, &unverified().build().unwrap()) {
        Ok(_) => Ok((bodies.take(), modules.take())),
        Err(failure) => {
            assert_eq!(crate::support::snapshot(&module), before, "the changes are rolled back");
            Err(failure.to_string())
        }
    }
}

fn poke_all() -> ModulePass {
    ModulePass::new("poke", 0, |module, _| {
        ["f", "g", "h"].iter().for_each(|name| poke_function(module, name));
        Ok(())
    })
}

#[test]
fn what_a_pass_preserves_is_not_worked_out_again() {
    assert_eq!(around(poke_all()), Ok((6, 2)));
    // Builds with debug assertions check preserved results.
    let checks = usize::from(cfg!(debug_assertions));
    assert_eq!(around(poke_all().preserving::<Params>()), Ok((3 + 3 * checks, 2)));
    assert_eq!(around(poke_all().preserving::<Functions>()), Ok((6, 1 + checks)));
    let function_pass = FunctionPass::new("poke", 0, |func, _, _| {
        poke(&mut func.function.body);
        Ok(())
    });
    assert_eq!(
        around(function_pass.preserving::<Params>().preserving::<Functions>()),
        Ok((3 + 3 * checks, 1 + checks))
    );
    assert_eq!(PassInfo::new("p", 0).preserving::<Params>().preserved.len(), 1);
}

#[test]
fn a_pass_that_does_not_preserve_what_it_says_fails_under_debug_assertions() {
    let drop_params = || {
        ModulePass::new("drops", 0, |module, _| {
            let key = key(module, "g");
            module.get_mut(key).unwrap().0.body.set_params(Vec::new());
            Ok(())
        })
    };
    let said = around(drop_params().preserving::<Params>());
    match said {
        Err(message) if cfg!(debug_assertions) => {
            assert!(message.contains("drops") && message.contains("Params") && message.contains("g"), "{message}");
        }
        said => assert_eq!(said, Ok((3, 2))),
    }
}

#[test]
fn an_analysis_that_panics_leaves_no_result() {
    let pass = FunctionPass::new("asks", 0, |func, _, cx| {
        let attempt = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            cx.analyses().get(func, |body: &Body| -> Shape { panic!("{}", body.len()) })
        }));
        right(attempt.is_err() && *cx.analyses().get(func, Shape::of) == Shape::of(&func.function.body))
    });
    pass.apply(&mut module(), &unverified().build().unwrap()).unwrap();
}

#[test]
fn threads_share_results() {
    let counter = Counter::default();
    let inner = counter.clone();
    let pass = ModulePass::new("threads", 0, move |module, cx| {
        let module = &*module;
        let first = key(module, "f");
        cx.analyses().of_function(module, first, inner.shape());
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| cx.analyses().of_function(module, first, inner.shape()));
            }
        });
        right(inner.take() == 1)
    });
    pass.apply(&mut module(), &unverified().build().unwrap()).unwrap();
}

#[test]
fn passes_on_other_modules_do_not_take_results_away() {
    let counter = Counter::default();
    let inner = counter.clone();
    let pass = ModulePass::new("outer", 0, move |module, cx| {
        set_bumps(module, 1);
        let mut other = crate::support::module_of(&["f", "other"]);
        for _ in 0..5 {
            let here = cx.analyses().of_module(module, inner.census());
            right(*here == Census::of(module))?;
            inner.ask_module().apply(&mut other, cx)?;
        }
        right(inner.take() == 2)
    });
    pass.apply(&mut module(), &unverified().build().unwrap()).unwrap();
}

#[test]
fn results_that_are_preserved_do_not_pile_up() {
    let pass = ModulePass::new("outer", 0, |module, cx| {
        let first = key(module, "f");
        let params = |body: &Body| Params(body.params().len());
        let functions = |module: &Module| Functions(module.order().len());
        let of_body = cx.analyses().of_function(module, first, params).unwrap();
        let of_module = cx.analyses().of_module(module, functions);
        for _ in 0..50 {
            poke_all().preserving::<Params>().preserving::<Functions>().apply(module, cx)?;
        }
        let again = cx.analyses().of_function(module, first, params).unwrap();
        right(Arc::ptr_eq(&again, &of_body) && Arc::ptr_eq(&cx.analyses().of_module(module, functions), &of_module))?;
        // The results for the states that a rollback can restore, and those that this pass holds.
        right(Arc::strong_count(&of_body) <= 5 && Arc::strong_count(&of_module) <= 5)
    });
    pass.apply(&mut module(), &unverified().build().unwrap()).unwrap();
}

#[test]
fn what_panics_when_preserved_results_are_compared_is_a_failure() {
    struct Odd;
    impl PartialEq for Odd {
        fn eq(&self, _: &Odd) -> bool {
            panic!("odd");
        }
    }
    let ask: Arc<dyn Pass> = Arc::new(FunctionPass::new("ask", 0, |func, _, cx| {
        cx.analyses().get(func, |_: &Body| Odd);
        Ok(())
    }));
    let mut module = module();
    let passes = Sequential::new(vec![ask.clone(), Arc::new(poke_all().preserving::<Odd>()), ask]).unwrap();
    let before = crate::support::snapshot(&module);
    let result = passes.apply(&mut module, &unverified().build().unwrap());
    assert!(!module.has_edit());
    if cfg!(debug_assertions) {
        assert!(result.unwrap_err().to_string().contains("odd"));
        assert_eq!(crate::support::snapshot(&module), before);
    }
}
