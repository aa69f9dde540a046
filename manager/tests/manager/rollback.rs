//! A pass that fails leaves nothing behind.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use anfora_ir::Module;
use anfora_manager::{
    FailureKind, FunctionPass, Instrument, ModulePass, Outcome, Pass, PassContext, PassError, PassRun, Repeat,
    Sequential,
};

use crate::support::{Log, Recorder, bump, bumps, idle, module, set_bumps, snapshot, unverified, wreck};

/// Runs a pass that fails, and compares the module with its state before.
fn fails_without_trace(pass: &dyn Pass, cx: &PassContext) -> anfora_manager::PassFailure {
    let mut module = module();
    let before = snapshot(&module);
    let failure = pass.apply(&mut module, cx).unwrap_err();
    assert_eq!(snapshot(&module), before);
    assert!(!module.has_edit());
    failure
}

#[test]
fn an_error_is_taken_back() {
    let failure = fails_without_trace(&wreck("w", || Err("no".into())), &unverified().build().unwrap());
    assert_eq!(*failure.kind(), FailureKind::Error);
    assert_eq!(failure.to_string(), "pass `w` failed: no");
}

#[test]
fn a_panic_is_taken_back() {
    let failure = fails_without_trace(&wreck("w", || panic!("at {}", 7)), &unverified().build().unwrap());
    assert_eq!(*failure.kind(), FailureKind::Panic);
    assert_eq!(failure.to_string(), "pass `w` panicked: at 7");
}

#[test]
fn a_panic_with_a_payload_that_panics_is_taken_back() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("again");
        }
    }
    let failure = fails_without_trace(&wreck("w", || std::panic::panic_any(Bomb)), &unverified().build().unwrap());
    assert_eq!(failure.to_string(), "pass `w` panicked: it panicked with something that is not a text");
}

#[test]
fn a_panic_with_payloads_in_payloads_is_taken_back() {
    struct Bomb(usize);
    impl Drop for Bomb {
        fn drop(&mut self) {
            if let Some(n) = self.0.checked_sub(1) {
                std::panic::panic_any(Bomb(n));
            }
        }
    }
    fails_without_trace(&wreck("w", || std::panic::panic_any(Bomb(3))), &unverified().build().unwrap());
}

/// The ways for a pass to end.
const ENDS: [fn() -> Result<(), PassError>; 3] = [|| Ok(()), || Err("no".into()), || panic!("no")];

/// Runs a pass, and returns true if it changed the module.
fn leaves_trace(pass: &dyn Pass, succeeds: bool) -> bool {
    let mut module = module();
    let before = snapshot(&module);
    let result = pass.apply(&mut module, &unverified().build().unwrap());
    assert_eq!(result.is_ok(), succeeds);
    assert!(!module.has_edit() && module.functions().all(|(_, f)| !f.body.has_journal()));
    let changed = snapshot(&module) != before;
    assert_eq!(result.is_ok_and(|o| o.is_changed()), changed, "it says whether it changed anything");
    changed
}

#[test]
fn edits_that_a_pass_leaves_open_end_with_it() {
    for (i, end) in ENDS.into_iter().enumerate() {
        for late in [false, true] {
            let pass = ModulePass::new("p", 0, move |module, _| {
                set_bumps(module, 1);
                module.begin_edit();
                module.begin_edit();
                if late {
                    wreck_a_little(module);
                }
                end()
            });
            assert_eq!(leaves_trace(&pass, i == 0), i == 0);
        }
    }
}

#[test]
fn journals_that_a_pass_leaves_open_end_with_it() {
    for (i, end) in ENDS.into_iter().enumerate() {
        for (early, late) in [(false, false), (true, false), (false, true), (true, true)] {
            let pass = FunctionPass::new("p", 0, move |func, _, _| {
                let body = &mut func.function.body;
                let params = body.params().to_vec();
                if early {
                    body.set_params([params.clone(), params.clone()].concat());
                }
                body.begin_journal();
                body.begin_journal();
                if late {
                    body.set_params(Vec::new());
                }
                end()
            });
            assert_eq!(leaves_trace(&pass, i == 0), i == 0 && (early || late), "{early} {late}");
        }
    }
    // If the pass runs inside of another pass, the failure of that pass rolls everything back.
    let pass = ModulePass::new("outer", 0, |module, cx| {
        wreck_a_little(module);
        replace_bodies(module);
        let inner = FunctionPass::new("inner", 0, |func, _, _| {
            func.function.body.begin_journal();
            let new = anfora_ir::Body::new(&func.cx.types);
            func.function.body.replace(new);
            func.function.body.begin_journal();
            Ok(())
        });
        assert!(inner.apply(module, cx)?.is_changed());
        Err("no".into())
    });
    fails_without_trace(&pass, &unverified().build().unwrap());
}

#[test]
fn a_module_that_is_put_in_the_place_of_that_of_a_pass_is_an_error() {
    let swaps = ModulePass::new("swaps", 0, |module, _| {
        *module = crate::support::module_of(&["other"]);
        Ok(())
    });
    let failure = swaps.apply(&mut module(), &unverified().build().unwrap()).unwrap_err();
    assert!(failure.to_string().contains("another module"), "{failure}");

    // A pass that ends the edit of its own run, but not that of the pass around it.
    let outer = ModulePass::new("outer", 0, |module, cx| {
        let ends = ModulePass::new("ends", 0, |module, _| {
            wreck_a_little(module);
            module.commit();
            Ok(())
        });
        wreck_a_little(module);
        ends.apply(module, cx).map(|_| ()).map_err(PassError::from)
    });
    let failure = fails_without_trace(&outer, &unverified().build().unwrap());
    assert!(failure.to_string().contains("outer"), "{failure}");
    // A copy of the module has the edit too, and may replace the module.
    let tries = |end: fn() -> Result<(), PassError>| {
        ModulePass::new("tries", 0, move |module, _| {
            let mut copy = module.clone();
            set_bumps(&mut copy, 7);
            *module = copy;
            end()
        })
    };
    fails_without_trace(&tries(|| Err("no".into())), &unverified().build().unwrap());
    let mut tried = module();
    assert!(tries(|| Ok(())).apply(&mut tried, &unverified().build().unwrap()).unwrap().is_changed());
    assert_eq!(bumps(&tried), 7);
}

#[test]
fn a_function_that_was_removed_is_not_found_until_it_is_brought_back() {
    let pass = ModulePass::new("p", 0, |module, cx| {
        let [f, g, _] = module.order()[..] else { return Err("three functions".into()) };
        module.remove(&[f, f]);
        assert!(module.get(f).is_none() && module.get_mut(f).is_none() && module.get_pair(f, g).is_none());
        assert_eq!(module.name(f), "");
        let inner = ModulePass::new("inner", 0, move |module, _| {
            assert!(module.get(f).is_none());
            module.remove(&[f, g]);
            assert!(module.get(g).is_none() && module.get_pair(f, g).is_none());
            Err("no".into())
        });
        inner.apply(module, cx).unwrap_err();
        assert!(module.get(f).is_none() && module.get(g).is_some());
        crate::support::add_function(module, "f");
        Err("no".into())
    });
    fails_without_trace(&pass, &unverified().build().unwrap());
}

#[test]
fn what_succeeds_stays() {
    let mut module = module();
    assert!(wreck("w", || Ok(())).apply(&mut module, &unverified().build().unwrap()).unwrap().is_changed());
    assert_eq!(bumps(&module), 1000);
    assert!(module.find("f").is_none() && module.find("renamed").is_some() && module.find("added").is_some());
}

#[test]
fn an_instrument_that_rejects_the_result_takes_it_back() {
    struct Reject;
    impl Instrument for Reject {
        fn name(&self) -> &str {
            "Reject"
        }
        fn run_after(&self, module: &Module, _: &PassRun<'_>, outcome: &Outcome) -> Result<(), PassError> {
            assert!(outcome.is_changed());
            assert_eq!(bumps(module), 1000);
            Err(PassError::new("ugly").in_function("added").on_binding("a"))
        }
    }
    let cx = unverified().instrument(Arc::new(Reject)).build().unwrap();
    let failure = fails_without_trace(&wreck("w", || Ok(())), &cx);
    assert_eq!(failure.to_string(), "pass `w` failed in Reject (run_after): ugly (in @added, at %a)");
}

#[test]
fn a_function_pass_that_fails_is_taken_back_in_all_functions() {
    let pass = FunctionPass::new("p", 0, |func, _, _| {
        let root = func.function.body.root();
        let mut editor = func.editor();
        let pair = editor.tuple(&[root, root]);
        editor.body.set_root(pair);
        match func.name() {
            "g" => Err(func.error_at(root, "not this one")),
            _ => Ok(()),
        }
    });
    let failure = fails_without_trace(&pass, &unverified().build().unwrap());
    assert_eq!(failure.to_string(), "pass `p` failed: not this one (in @g, at %a)");
}

#[test]
fn a_function_pass_that_panics_names_the_function() {
    let pass = FunctionPass::new("p", 0, |func, _, _| {
        let root = func.function.body.root();
        let pair = func.editor().tuple(&[root]);
        func.function.body.set_root(pair);
        assert_ne!(func.name(), "h", "boom");
        Ok(())
    });
    let failure = fails_without_trace(&pass, &unverified().build().unwrap());
    assert_eq!(*failure.kind(), FailureKind::Panic);
    assert_eq!((failure.pass(), failure.function()), ("p", Some("h")));
}

#[test]
fn what_a_failing_pass_had_run_is_taken_back_with_it() {
    let pass = ModulePass::new("outer", 0, |module, cx| {
        bump("inner").apply(module, cx)?;
        wreck("wreck", || Ok(())).apply(module, cx)?;
        Err("no".into())
    });
    fails_without_trace(&pass, &unverified().build().unwrap());
}

#[test]
fn a_failing_pass_in_a_pass_is_taken_back_by_itself() {
    let pass = ModulePass::new("outer", 0, |module, cx| {
        set_bumps(module, 5);
        crate::support::add_function(module, "new");
        let before = snapshot(module);
        let failure = wreck("wreck", || Err("no".into())).apply(module, cx).unwrap_err();
        assert_eq!((failure.pass(), failure.path()), ("wreck", &["outer".to_string()][..]));
        assert_eq!(snapshot(module), before);
        Ok(())
    });
    let mut tried = module();
    assert!(pass.apply(&mut tried, &unverified().build().unwrap()).unwrap().is_changed());

    let mut expected = module();
    set_bumps(&mut expected, 5);
    crate::support::add_function(&mut expected, "new");
    assert_eq!(snapshot(&tried), snapshot(&expected));
}

#[test]
fn an_outer_failure_takes_back_an_inner_failure_and_an_inner_success() {
    let pass = ModulePass::new("outer", 0, |module, cx| {
        crate::support::add_function(module, "new");
        wreck("wreck", || Err("no".into())).apply(module, cx).unwrap_err();
        wreck("wreck", || Ok(())).apply(module, cx)?;
        panic!("late");
    });
    fails_without_trace(&pass, &unverified().build().unwrap());
}

#[test]
fn a_sequence_keeps_what_came_before_the_failure() {
    let passes: Vec<Arc<dyn Pass>> =
        vec![Arc::new(bump("a")), Arc::new(bump("b")), Arc::new(wreck("w", || panic!("no"))), Arc::new(bump("c"))];
    let mut module = module();
    let failure = Sequential::new(passes).unwrap().apply(&mut module, &unverified().build().unwrap()).unwrap_err();
    assert_eq!(failure.to_string(), "pass `w` panicked: no [sequential]");
    assert_eq!(bumps(&module), 2);
    assert!(!module.has_edit());
}

#[test]
fn a_pass_can_run_again_after_it_failed() {
    let mut module = module();
    let cx = unverified().build().unwrap();
    for _ in 0..3 {
        wreck("w", || Err("no".into())).apply(&mut module, &cx).unwrap_err();
        assert!(bump("b").apply(&mut module, &cx).unwrap().is_changed());
    }
    assert_eq!(bumps(&module), 3);
}

#[test]
fn causes_are_chained() {
    let pass = ModulePass::new("p", 0, |_, _| {
        Err(PassError::new("outer").with_cause(PassError::new("middle").with_cause(PassError::new("inner"))))
    });
    let failure = fails_without_trace(&pass, &unverified().build().unwrap());
    let mut said = vec![failure.to_string()];
    let mut next = std::error::Error::source(&failure);
    while let Some(e) = next {
        said.push(e.to_string());
        next = e.source();
    }
    assert_eq!(said, ["pass `p` failed: outer", "middle", "inner"]);
    assert_eq!(failure.to_diagnostics()[0].message, "pass `p` failed: outer: middle: inner");
}

#[test]
fn a_million_causes_are_cut_short() {
    let mut error = PassError::new("first");
    for i in 0..1_000_000 {
        error = PassError::new(format!("cause {i}")).with_cause(error);
    }
    let mut length = 0;
    let mut next: Option<&dyn std::error::Error> = Some(&error);
    while let Some(e) = next {
        length += 1;
        next = e.source();
    }
    assert!(length <= anfora_manager::MAX_NESTING + 1, "{length}");
    assert_eq!(error.message(), "cause 999999");
}

#[test]
fn unchanged_is_exact() {
    let cx = unverified().build().unwrap();
    let mut module = module();
    let before = snapshot(&module);
    let writes_the_same = ModulePass::new("same", 0, |module, _| {
        let attrs = module.attrs();
        module.set_attrs(attrs);
        for key in module.order().to_vec() {
            let (f, _) = module.get_mut(key).unwrap();
            let root = f.body.root();
            f.body.set_root(root);
        }
        Ok(())
    });
    assert_eq!(writes_the_same.apply(&mut module, &cx).unwrap(), Outcome::Unchanged);
    assert_eq!(idle("idle", 0).apply(&mut module, &cx).unwrap(), Outcome::Unchanged);
    let repeat = Repeat::new(vec![Arc::new(idle("idle", 0))], 3).unwrap();
    assert_eq!(repeat.apply(&mut module, &cx).unwrap(), Outcome::Unchanged);
    assert_eq!(snapshot(&module), before);
    for change in [
        |m: &mut Module| crate::support::add_function(m, "new"),
        |m: &mut Module| m.remove(&[m.order()[0]]),
        |m: &mut Module| m.set_order(m.order().iter().rev().copied().collect()),
        |m: &mut Module| {
            let (f, _) = m.get_mut(m.order()[0]).unwrap();
            f.body.set_params(Vec::new());
        },
    ] {
        let pass = ModulePass::new("change", 0, move |module, _| {
            change(module);
            Ok(())
        });
        assert_eq!(pass.apply(&mut module, &cx).unwrap(), Outcome::Changed);
    }
}

#[test]
fn contexts_are_left_in_order_when_a_closure_panics() {
    let log = Log::default();
    let contexts = ["a", "b", "c"].map(|name| {
        let recorder = Recorder::new(name, &log);
        unverified().opt_level(7).instrument(recorder).build().unwrap()
    });
    let result = catch_unwind(AssertUnwindSafe(|| {
        contexts[0]
            .scope(|| {
                contexts[1].scope(|| contexts[2].scope(|| panic!("deep inside")).unwrap()).unwrap();
            })
            .unwrap();
    }));
    assert!(result.is_err());
    assert_eq!(log.take(), ["a enter", "b enter", "c enter", "c exit", "b exit", "a exit"]);
    assert_eq!(PassContext::current().opt_level(), 2);
}

/// Replaces the body of each function by a new body that returns a tuple.
fn replace_bodies(module: &mut Module) {
    for key in module.order().to_vec() {
        let (f, cx) = module.get_mut(key).unwrap();
        let new = anfora_ir::Body::new(&cx.types);
        f.body.replace(new);
        let mut editor = anfora_ir::Editor::new(cx, &mut f.body);
        let root = editor.body.root();
        let pair = editor.tuple(&[root, root]);
        editor.body.set_root(pair);
    }
}

#[test]
fn a_replaced_body_comes_back() {
    let pass = |end: fn() -> Result<(), PassError>| {
        ModulePass::new("p", 0, move |module, _| {
            wreck_a_little(module);
            replace_bodies(module);
            replace_bodies(module);
            end()
        })
    };
    fails_without_trace(&pass(|| Err("no".into())), &unverified().build().unwrap());
    let mut replaced = module();
    assert!(pass(|| Ok(())).apply(&mut replaced, &unverified().build().unwrap()).unwrap().is_changed());
    assert!(replaced.functions().all(|(_, f)| f.body.params().is_empty()));
}

fn wreck_a_little(module: &mut Module) {
    let key = module.order()[0];
    module.get_mut(key).unwrap().0.body.set_params(Vec::new());
}

#[test]
fn a_replaced_body_comes_back_through_two_passes() {
    for (inner_end, outer_end) in [(true, false), (false, false), (false, true)] {
        let pass = ModulePass::new("outer", 0, move |module, cx| {
            wreck_a_little(module);
            replace_bodies(module);
            let before = snapshot(module);
            let inner = ModulePass::new("inner", 0, move |module, _| {
                wreck_a_little(module);
                replace_bodies(module);
                wreck_a_little(module);
                if inner_end { Ok(()) } else { Err("no".into()) }
            });
            let done = inner.apply(module, cx);
            assert_eq!(done.is_ok(), inner_end);
            assert_eq!(snapshot(module) == before, !inner_end);
            wreck_a_little(module);
            if outer_end { Ok(()) } else { Err("no".into()) }
        });
        if outer_end {
            let mut module = module();
            assert!(pass.apply(&mut module, &unverified().build().unwrap()).unwrap().is_changed());
            assert!(module.functions().all(|(_, f)| f.body.params().is_empty() && !f.body.has_journal()));
        } else {
            fails_without_trace(&pass, &unverified().build().unwrap());
        }
    }
}

#[test]
fn what_was_appended_and_not_linked_is_not_kept() {
    let pass = ModulePass::new("p", 0, |module, _| {
        let key = module.order()[0];
        let (f, cx) = module.get_mut(key).unwrap();
        let mut editor = anfora_ir::Editor::new(cx, &mut f.body);
        let meta = editor.cx.attrs.empty();
        for _ in 0..100 {
            let root = editor.body.root();
            let pair = editor.tuple(&[root]);
            editor.body.set_meta(pair, Some(meta));
        }
        Ok(())
    });
    let mut module = module();
    let before = snapshot(&module);
    assert_eq!(pass.apply(&mut module, &unverified().build().unwrap()).unwrap(), Outcome::Unchanged);
    assert_eq!(snapshot(&module), before);
}

#[test]
fn sparse_bodies_are_compacted_between_passes() {
    let grow = ModulePass::new("grow", 0, |module, _| {
        let key = module.order()[0];
        let (f, cx) = module.get_mut(key).unwrap();
        let mut editor = anfora_ir::Editor::new(cx, &mut f.body);
        let x = editor.body.params()[0].expr();
        for _ in 0..100 {
            let call = editor.call_named("negate", &[x])?;
            editor.body.set_root(call);
        }
        Ok(())
    });
    let mut module = module();
    let generation = module.functions().next().unwrap().1.body.generation();
    grow.apply(&mut module, &unverified().build().unwrap()).unwrap();
    let sizes: Vec<usize> = module.functions().map(|(_, f)| f.body.len()).collect();
    assert_eq!(sizes[0], 2, "a parameter and a call");
    assert!(sizes[1] > 2, "the others were not touched");
    let body = &module.functions().next().unwrap().1.body;
    assert_ne!(body.generation(), generation);
    assert_eq!(body.operands_of(body.root()), [body.params()[0].expr()]);
}
