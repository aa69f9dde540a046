//! Function passes that look at other functions see them as they were before the pass.

use std::fmt::Write;

use anfora_ir::{Body, Expr, Module, parse_module};
use anfora_manager::{FunctionEdit, FunctionPass, Outcome, Pass, PassContext, PassError, Repeat};

use crate::support::{module, module_of, ops, snapshot};

/// Returns a context that distributes work for modules of any size.
fn context(threads: usize) -> PassContext {
    PassContext::builder().threads(threads).worth_sharing(0).build().unwrap()
}

/// Adds a binding at the beginning of a function.
fn prepend(func: &mut FunctionEdit<'_>) {
    let ty = func.cx.types.unit();
    let body = &mut func.function.body;
    let root = body.root();
    let nothing = body.push_operands(&[]);
    let value = body.push(Expr::Tuple(nothing), ty, None);
    let name = func.cx.names.intern("more");
    let var = body.push_var(Some(name), Default::default(), ty, None);
    let result = body.type_of(root);
    let first = body.push(Expr::Let { var, value, body: root, flags: Default::default() }, result, None);
    body.set_root(first);
}

fn bindings(body: &Body) -> usize {
    let next = |&id: &anfora_ir::ExprId| match body.expr(id) {
        Expr::Let { body, .. } => Some(body),
        _ => None,
    };
    std::iter::successors(Some(body.root()), next).count() - 1
}

/// Makes a pass that records in each function how many bindings each function has before the pass,
/// and then adds a binding.
fn census() -> FunctionPass {
    FunctionPass::new("Census", 0, |func, view, _| {
        let mut seen = String::new();
        for (_, other) in view.functions()?.iter() {
            let name = func.cx.global_name(other.global().unwrap());
            write!(seen, "{name}:{} ", bindings(&other.body)).unwrap();
        }
        let seen = func.cx.str_attr(seen.trim_end());
        func.function.attrs = func.cx.with_attr(func.function.attrs, "seen", Some(seen));
        prepend(func);
        Ok(())
    })
    .seeing_functions()
}

#[test]
fn all_functions_are_seen_as_they_were() {
    for threads in [1, 4] {
        let mut module = module();
        assert_eq!(census().apply(&mut module, &context(threads)).unwrap(), Outcome::Changed);
        for (_, f) in module.functions() {
            let seen = module.cx.find_attr(f.attrs, "seen").unwrap();
            let anfora_ir::Attr::Str(seen) = *module.cx.attrs.get(seen) else { panic!("a text") };
            assert_eq!(module.cx.names.get(seen), "f:3 g:3 h:3");
            assert_eq!(bindings(&f.body), 4);
        }
    }
}

#[test]
fn the_function_itself_is_seen_as_it_was_and_found_by_name() {
    let pass = FunctionPass::new("Twice", 0, |func, view, _| {
        prepend(func);
        prepend(func);
        let name = func.name().to_string();
        let itself = view.functions()?.find(func.cx, &name).ok_or("it is there")?;
        assert_eq!((bindings(&itself.body), bindings(&func.function.body)), (3, 5));
        assert!(view.functions()?.find(func.cx, "nowhere").is_none());
        Ok(())
    })
    .seeing_functions();
    for threads in [1, 4] {
        pass.apply(&mut module(), &context(threads)).unwrap();
    }
}

#[test]
fn the_result_is_the_same_on_all_numbers_of_threads() {
    let names: Vec<String> = (0..200).map(|i| format!("f{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // Each function takes over the text of the one before it, as it was before the pass. Every
    // thread adds new entries to the tables.
    let pass = || {
        FunctionPass::new("Chain", 0, |func, view, cx| {
            let functions = view.functions()?;
            let before = functions.iter().take_while(|(_, f)| f.global() != func.function.global()).last();
            if let Some((_, f)) = before {
                let name = func.cx.names.intern(&format!("size{}", f.body.len()));
                let mut body = f.body.clone();
                let param = body.params()[0];
                body.set_expr(param.expr(), Expr::Var { name: Some(name), flags: Default::default() });
                func.function.body.replace(body);
                cx.count("taken", 1);
            }
            Ok(())
        })
        .seeing_functions()
    };
    let run = |threads| {
        let mut module = module_of(&names);
        let cx = context(threads);
        pass().apply(&mut module, &cx).unwrap();
        (snapshot(&module), module.to_string(), cx.statistics())
    };
    let one = run(1);
    assert_eq!(one.2.get("Chain", "taken"), 199);
    for threads in [2, 4, 8] {
        assert!(run(threads) == one, "{threads} threads");
    }
}

#[test]
fn a_failure_takes_everything_back() {
    for threads in [1, 4] {
        for panics in [false, true] {
            let mut module = module();
            let before = (snapshot(&module), module.stamp());
            let pass = FunctionPass::new("Fails", 0, move |func, view, _| {
                prepend(func);
                assert!(view.functions()?.iter().all(|(_, f)| bindings(&f.body) == 3));
                match func.name() {
                    "h" if panics => panic!("no"),
                    "h" => Err(PassError::new("no")),
                    _ => Ok(()),
                }
            })
            .seeing_functions();
            let failure = pass.apply(&mut module, &context(threads)).unwrap_err();
            assert_eq!(failure.function(), Some("h"));
            assert!(snapshot(&module) == before.0, "{threads} threads");
            assert!(module.stamp() == before.1, "the states are those from before");
            // Later states differ from those that were rolled back.
            census().apply(&mut module, &context(threads)).unwrap();
            assert!(module.stamp() != before.1);
        }
    }
}

#[test]
fn what_is_left_as_it_was_is_unchanged() {
    for threads in [1, 4] {
        let mut module = module();
        let before = (snapshot(&module), module.stamp());
        // Nodes that are appended and not linked do not stay.
        let pass = FunctionPass::new("Looks", 0, |func, view, _| {
            let ty = func.cx.types.unit();
            let list = func.function.body.push_operands(&[]);
            func.function.body.push(Expr::Tuple(list), ty, None);
            view.functions().map(drop)
        })
        .seeing_functions();
        assert_eq!(pass.apply(&mut module, &context(threads)).unwrap(), Outcome::Unchanged);
        assert!(snapshot(&module) == before.0 && module.stamp() == before.1);
    }
}

#[test]
fn a_change_of_the_head_alone_counts() {
    for threads in [1, 4] {
        let mut module = module();
        let pass = FunctionPass::new("Marks", 0, |func, view, _| {
            let n = func.cx.int_attr(view.functions()?.iter().len() as i64);
            func.function.attrs = func.cx.with_attr(func.function.attrs, "n", Some(n));
            Ok(())
        })
        .seeing_functions();
        assert_eq!(pass.apply(&mut module, &context(threads)).unwrap(), Outcome::Changed);
        assert!(module.functions().all(|(_, f)| module.cx.find_attr(f.attrs, "n").is_some()));
        assert_eq!(pass.apply(&mut module, &context(threads)).unwrap(), Outcome::Unchanged);
    }
}

#[test]
fn a_pass_that_did_not_say_that_it_looks_is_told() {
    let pass = FunctionPass::new("Peeks", 0, |_, view, _| view.functions().map(drop));
    for threads in [1, 4] {
        let failure = pass.apply(&mut module(), &context(threads)).unwrap_err();
        assert!(failure.to_string().contains("made with `.seeing_functions()`"), "{failure}");
    }
}

/// The result for @f depends on @last, which @f does not name.
#[test]
fn repetition_visits_functions_whose_surroundings_changed() {
    let pass = FunctionPass::new("Follow", 0, |func, view, _| {
        let functions = view.functions()?;
        let after = functions.iter().skip_while(|(_, f)| f.global() != func.function.global()).nth(1);
        let wanted = after.map_or(6, |(_, f)| bindings(&f.body));
        if bindings(&func.function.body) < wanted {
            prepend(func);
        }
        Ok(())
    })
    .seeing_functions();
    let mut module = module();
    Repeat::new(vec![std::sync::Arc::new(pass)], 100).unwrap().apply(&mut module, &context(1)).unwrap();
    assert!(module.functions().all(|(_, f)| bindings(&f.body) == 6));
}

/// A pass runs inside of an open edit, on functions that this edit changed before.
#[test]
fn forks_are_made_inside_of_other_edits() {
    for threads in [1, 4] {
        let mut module = module();
        let text = module.to_string();
        module.begin_edit();
        let ordinary = FunctionPass::new("Prepend", 0, |func, _, _| {
            prepend(func);
            Ok(())
        });
        ordinary.apply(&mut module, &context(threads)).unwrap();
        let once = module.to_string();
        module.begin_edit();
        census().apply(&mut module, &context(threads)).unwrap();
        assert_ne!(module.to_string(), once);
        module.rollback();
        assert_eq!(module.to_string(), once);
        census().apply(&mut module, &context(threads)).unwrap();
        module.rollback();
        assert_eq!(module.to_string(), text);
    }
}

/// Declarations and functions that no pass works on are visible, too.
#[test]
fn what_no_pass_works_on_is_seen() {
    let text = "declare @far(%x: float32) -> float32;\n\ndef @f(%x: float32) { negate(%x) }";
    let module = parse_module(anfora_ir::Source::new("seen", text), ops());
    let mut module: Module = module.unwrap_or_else(|e| panic!("{}", e[0]));
    let pass = FunctionPass::new("Declared", 0, |func, view, _| {
        let far = view.functions()?.find(func.cx, "far").ok_or("it is declared")?;
        assert!(!far.is_definition());
        Ok(())
    })
    .seeing_functions();
    pass.apply(&mut module, &context(1)).unwrap();
}
