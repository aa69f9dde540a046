//! The usual mistakes in passes, one after the other. A checked context reports each of them, even
//! without the checks of builds with debug assertions. A plain context of such a build reports all
//! but one. CI runs these tests with debug assertions and without.

use std::sync::Arc;

use anfora::ir::EntityId;
use anfora::manager::{Declare, FunctionEdit, Outcome, PassFailure, Repeat, Verification};
use anfora::prelude::*;
use anfora::visit::pattern::{PatternOptions, Rule, capture, op, rewrite_patterns};
use anfora_testing::guide::parse;
use anfora_testing::programs::Shape;

/// The result of a pass, and the remarks that it left.
struct Run {
    result: Result<Outcome, PassFailure>,
    remarks: Vec<String>,
    /// True if the pass failed and the module is as it was.
    unchanged: bool,
}

fn run(pass: &dyn Pass, text: &str, context: &PassContext) -> Run {
    let mut module = parse(text).unwrap();
    let before = module.to_text();
    let result = pass.apply(&mut module, context);
    let remarks = context.take_remarks().iter().map(|r| format!("{}: {}", r.pass, r.diagnostic)).collect();
    // An ill-formed module may not be printable.
    let unchanged = result.is_err() && module.to_text() == before;
    Run { result, remarks, unchanged }
}

/// Returns a context in which passes run as they do by default in builds with debug assertions.
fn plain() -> PassContext {
    PassContext::builder().verification(Verification::AfterEachPass).build().unwrap()
}

/// Returns a context in which passes run as under `PassContext::checked()` in builds without debug
/// assertions.
fn checked() -> PassContext {
    PassContext::checked().derive().verification(Verification::Off).build().unwrap()
}

type Mistake = fn(&mut FunctionEdit<'_>) -> Result<(), PassError>;

fn mistaken(mistake: Mistake) -> FunctionPass {
    FunctionPass::new("Mistaken", 0, move |function, _, _| match function.name() {
        "main" => mistake(function),
        _ => Ok(()),
    })
}

/// Returns the errors of the pass in the plain context and in the checked one. Asserts that its
/// edits are rolled back in both.
fn errors(text: &str, mistake: Mistake) -> [String; 2] {
    [plain(), checked()].map(|context| {
        let run = run(&mistaken(mistake), text, &context);
        assert!(run.unchanged, "the changes of a failing pass are rolled back");
        let error = run.result.unwrap_err().to_string();
        assert!(
            error.starts_with("pass `Mistaken` failed") || error.starts_with("pass `Mistaken` panicked"),
            "{error}"
        );
        error
    })
}

fn contains_each(errors: &[String; 2], parts: &[&str]) {
    for error in errors {
        for part in parts {
            assert!(error.contains(part), "{part:?} is not in {error:?}");
        }
    }
}

const TEXT: &str = "def @main(%x: Tensor[(2,), float32], %y: Tensor[(2,), float32]) {
    let %a = exp(%x);
    let %b = add(%a, %y);
    let %c = log(%b);
    %c
}
def @other(%p: Tensor[(2,), float32]) {
    let %q = exp(%p); let %r = tanh(%q); let %s = exp(%r); let %t = tanh(%s); let %u = exp(%t); tanh(%u)
}";

/// Returns the Let of a name.
fn binding(function: &FunctionEdit<'_>, name: &str) -> Binding {
    let body = &function.function.body;
    chain(body, body.root()).find(|b| function.binding_name(b.id) == Some(name)).unwrap()
}

#[test]
fn a_plain_context_verifies_where_debug_assertions_are() {
    let wanted = if cfg!(debug_assertions) { Verification::AfterEachPass } else { Verification::Off };
    assert_eq!(PassContext::new().verification(), wanted);
    assert_eq!(PassContext::with_registry(anfora::passes::registry()).verification(), wanted);
    assert_eq!(PassContext::current().verification(), wanted);
    // Without verification the same pass succeeds, so that a measurement of a pass measures nothing
    // else.
    let forgets: Mistake = |function| {
        let value = binding(function, "b").value;
        let error = function.cx.types.error();
        function.function.body.set_type(value, error);
        Ok(())
    };
    let off = PassContext::builder().verification(Verification::Off).build().unwrap();
    assert!(run(&mistaken(forgets), TEXT, &off).result.is_ok());
    assert!(run(&mistaken(forgets), TEXT, &plain()).result.is_err());
}

/// The borrow checker refuses such edits in read-only walks, which the guide tests.
#[test]
fn editing_while_walking() {
    struct Relinks;
    impl Mutator for Relinks {
        type Error = RewriteError;
        fn rewrite_value(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
            let Some(b) = slot.binding(site.editor.body, value) else { return Ok(Verdict::Keep) };
            let after = site.editor.body.tail(b.id);
            site.editor.body.set_let_body(b.id, after);
            Ok(Verdict::Keep)
        }
    }
    let found = errors(TEXT, |function| {
        mutate(&mut function.editor(), &mut Relinks).map_err(|e| PassError::from_error(e).in_function("main"))
    });
    contains_each(&found, &["a link of the program was overwritten during the walk", "@main"]);
}

#[test]
fn a_forgotten_type() {
    let found = errors(TEXT, |function| {
        let value = binding(function, "b").value;
        let editor = function.editor();
        // A sum of scalars has another type, but the stored type stays.
        let scalar = editor.cx.literals.intern(Literal::scalar(1f32));
        let ty = editor.cx.literal_type(scalar);
        let one = editor.body.literal(scalar, ty);
        let Expr::CallOp { operands, .. } = editor.body.expr(value) else { return Ok(()) };
        editor.body.set_operand(operands, 0, one);
        editor.body.set_operand(operands, 1, one);
        Ok(())
    });
    contains_each(&found, &["the stored type is Tensor[(2,), float32], but its parts give", "in @main, at %b"]);
}

#[test]
fn a_wrong_region_flag() {
    let found = errors(TEXT, |function| {
        let id = binding(function, "b").id;
        function.function.body.set_let_flags(id, LetFlags::DATAFLOW);
        Ok(())
    });
    contains_each(&found, &["a let of a dataflow region follows none that starts the region", "in @main, at %b"]);
    // A binding in the middle of a region leaves the region, which then ends before it.
    let region = "def @main(%x: float32) {
        dataflow { let %a = exp(%x); let %b = log(%a); let %c = tanh(%b); output(%b, %c); }
        %c
    }";
    let found = errors(region, |function| {
        let id = binding(function, "b").id;
        function.function.body.set_let_flags(id, LetFlags::PLAIN);
        Ok(())
    });
    contains_each(&found, &["`%a` is visible only in its dataflow region, but used outside", "in @main, at %b"]);
}

#[test]
fn a_dangling_id() {
    let root = errors(TEXT, |function| {
        function.function.body.set_root(ExprId::from_index(1_000_000));
        Ok(())
    });
    let operand = errors(TEXT, |function| {
        let value = binding(function, "b").value;
        let body = &mut function.function.body;
        let Expr::CallOp { operands, .. } = body.expr(value) else { return Ok(()) };
        body.set_operand(operands, 0, ExprId::from_index(1_000_000));
        Ok(())
    });
    if cfg!(debug_assertions) {
        for found in [root, operand] {
            contains_each(&found, &["is not an expression of this body, which has", "@main"]);
        }
    } else {
        contains_each(&root, &["pass `Mistaken` panicked: index out of bounds", "@main"]);
        contains_each(&operand, &["a part of it does not exist", "@main"]);
    }
}

/// Returns a pass that uses an expression of another function in the function that it works on.
fn of_other(find: impl Fn(&Body) -> ExprId + Send + Sync + 'static) -> ModulePass {
    ModulePass::new("Mistaken", 0, move |module, _| {
        let other = module.find("other").and_then(|key| module.get(key)).map(|f| find(&f.body)).unwrap();
        let main = module.find("main").unwrap();
        let (function, cx) = module.get_mut(main).unwrap();
        let editor = Editor::new(cx, &mut function.body);
        let first = Binding::of(editor.body, editor.body.root()).unwrap().value;
        let Expr::CallOp { operands, .. } = editor.body.expr(first) else { return Ok(()) };
        editor.body.set_operand(operands, 0, other);
        Ok(())
    })
}

#[test]
fn an_id_of_another_function() {
    // The first id is out of range. The second is of another kind: a variable of one function that
    // has the number of an expression that is not a variable in the other.
    let far = of_other(|body| body.tail(body.root()));
    let other_kind = ModulePass::new("Mistaken", 0, |module, _| {
        let [main, other] = ["main", "other"].map(|name| module.find(name).unwrap());
        let (other, function, _) = module.get_pair(other, main).unwrap();
        let body = &mut function.body;
        let foreign = other.body.exprs().filter_map(|(id, _)| other.body.as_var(id));
        let of_no_variable = |v: &VarId| v.index() < body.len() && body.as_var(v.expr()).is_none();
        let var = foreign.into_iter().find(of_no_variable).unwrap();
        let Binding { id, value, rest, flags, .. } = Binding::of(body, body.root()).unwrap();
        body.set_expr(id, Expr::Let { var, value, body: rest, flags });
        Ok(())
    });
    for context in [plain(), checked()] {
        for pass in [&far, &other_kind] {
            let found = run(pass, TEXT, &context);
            let error = found.result.unwrap_err().to_string();
            assert!(found.unchanged && error.starts_with("pass `Mistaken` "), "{error}");
            if cfg!(debug_assertions) {
                assert!(error.contains("is it an id of another function?"), "{error}");
            }
        }
    }
    // A variable in both functions, of different types.
    let text = "def @main(%x: Tensor[(3,), float32], %y: Tensor[(2,), float32]) { let %a = exp(%y); %a }
        def @other(%p: Tensor[(2,), float32]) { %p }";
    let param = of_other(|body| body.params()[0].expr());
    for context in [plain(), checked()] {
        let found = run(&param, text, &context);
        let error = found.result.unwrap_err().to_string();
        let says = "the stored type is Tensor[(2,), float32], but its parts give Tensor[(3,), float32]";
        assert!(found.unchanged && error.contains(says) && error.contains("in @main, at %a"), "{error}");
    }
    // With a variable of the right type in both, the program is well-formed, and only its meaning
    // shows the mistake.
    let text = "def @main(%x: float32, %y: float32) { let %a = exp(%y); %a } def @other(%p: float32) { %p }";
    assert!(run(&param, text, &plain()).result.is_ok());
    let meant = run(&param, text, &checked());
    let error = meant.result.unwrap_err().to_string();
    assert!(meant.unchanged && error.contains("`@main` computes something else on ordinary numbers"), "{error}");
}

const SHARED: &str = "def @main(%x: float32) { %0 = exp(%x); let %a = negative(%0); add(%a, %0) }";

#[test]
fn editing_a_shared_node() {
    // The operand of the negation is to be a logarithm, but the sum uses the same node.
    let shared: Mistake = |function| {
        let value = binding(function, "a").value;
        let editor = function.editor();
        let exp = editor.body.operands_of(value)[0];
        let Expr::CallOp { operands, attrs, .. } = editor.body.expr(exp) else { return Ok(()) };
        let log = editor.cx.ops.find("log").unwrap();
        editor.body.set_expr(exp, Expr::CallOp { op: log, operands, attrs });
        Ok(())
    };
    let is_remark = |remarks: &[String]| {
        let [remark] = remarks else { return false };
        remark.contains("Mistaken: ") && remark.contains("a node with 2 uses was overwritten, so all of them changed")
    };
    let plainly = run(&mistaken(shared), SHARED, &plain());
    assert!(plainly.result.is_ok());
    assert_eq!(is_remark(&plainly.remarks), cfg!(debug_assertions), "{:?}", plainly.remarks);
    let meant = run(&mistaken(shared), SHARED, &checked());
    let error = meant.result.unwrap_err().to_string();
    assert!(meant.unchanged && error.contains("`@main` computes something else"), "{error}");

    // An operand of the shared node; and a constant, for which a function has one node.
    let operand: Mistake = |function| {
        let value = binding(function, "a").value;
        let mut editor = function.editor();
        let one = editor.literal(Literal::scalar(1f32));
        let exp = editor.body.operands_of(value)[0];
        let Expr::CallOp { operands, .. } = editor.body.expr(exp) else { return Ok(()) };
        editor.body.set_operand(operands, 0, one);
        Ok(())
    };
    let constant: Mistake = |function| {
        let editor = function.editor();
        let named = editor.body.exprs().find(|(_, expr)| matches!(expr, Expr::Literal(_)));
        let three = editor.cx.literals.intern(Literal::scalar(3f32));
        editor.body.set_expr(named.unwrap().0, Expr::Literal(three));
        Ok(())
    };
    let constants = "def @main(%x: float32) { let %a = add(%x, 2f); multiply(%a, 2f) }";
    for (mistake, text) in [(operand, SHARED), (constant, constants)] {
        let plainly = run(&mistaken(mistake), text, &plain());
        assert_eq!(is_remark(&plainly.remarks), cfg!(debug_assertions), "{:?}", plainly.remarks);
        let meant = run(&mistaken(mistake), text, &checked());
        let error = meant.result.unwrap_err().to_string();
        assert!(meant.unchanged && error.contains("`@main` computes something else"), "{error}");
    }

    // A pass that means to change all uses declares it. A node with one link has no other use.
    let meant: Mistake = |function| {
        let editor = function.editor();
        let before = editor.body.shared_edits(anfora::ir::SharedEdits::Meant);
        let root = editor.body.root();
        let exp = editor.body.operands_of(Binding::of(editor.body, root).unwrap().value)[0];
        let Expr::CallOp { operands, attrs, .. } = editor.body.expr(exp) else { return Ok(()) };
        let log = editor.cx.ops.find("log").unwrap();
        editor.body.set_expr(exp, Expr::CallOp { op: log, operands, attrs });
        editor.body.shared_edits(before);
        Ok(())
    };
    assert_eq!(run(&mistaken(meant), SHARED, &plain()).remarks, Vec::<String>::new());
    let rules = FunctionPass::new("Rules", 0, |function, _, _| {
        let mut rules = [Rule::replace("exp", op("exp", [capture("x")]), op("tanh", [capture("x")]))];
        let _ = rewrite_patterns(&mut function.editor(), &mut rules, &PatternOptions::default())?;
        Ok(())
    });
    assert_eq!(run(&rules, SHARED, &plain()).remarks, Vec::<String>::new());
    assert_eq!(
        run(&mistaken(constant), "def @main(%x: float32) { let %a = add(%x, 2f); %a }", &plain()).remarks,
        Vec::<String>::new()
    );
}

/// The passes of anfora overwrite shared nodes only where they mean to change all uses, and declare
/// it.
// Only builds with debug assertions look for such edits.
#[cfg(debug_assertions)]
#[test]
fn no_pass_of_anfora_edits_a_shared_node_by_mistake() {
    let registry = anfora::passes::registry();
    let random: Shape = "random".parse().unwrap();
    let names: Vec<String> = registry.passes().iter().map(|pass| pass.name().to_string()).collect();
    // Applies a pipeline, and returns true if it succeeds. Passes that need options are left out.
    let apply = |pipeline: &str, module: &mut Module, place: &str| {
        let Ok(passes) = parse_pipeline(&registry, pipeline) else { return false };
        let context = PassContext::builder().registry(Arc::clone(&registry)).opt_level(3);
        let context = context.verification(Verification::AfterEachPass).print_to(std::io::sink());
        let context = context.build().unwrap();
        let is_done = passes.apply(module, &context).is_ok();
        for remark in context.take_remarks() {
            let message = &remark.diagnostic.message;
            assert!(!message.contains("uses was overwritten"), "{place}, {pipeline}: {}: {message}", remark.pass);
        }
        is_done
    };
    // Returns the number of runs that succeeded on programs of these seeds.
    let run_all = |seeds: std::ops::Range<u64>| -> usize {
        let mut ran = 0;
        for seed in seeds {
            let original = random.build(40, seed).unwrap();
            for before in ["", "ToANormalForm", "ToANormalForm,ToGraphNormalForm", "InlineFunctions"] {
                let mut prepared = original.clone();
                assert!(parse_pipeline(&registry, before).is_ok(), "{before}");
                // InlineFunctions needs a form that not every program has.
                if !apply(before, &mut prepared, &format!("seed {seed}")) {
                    assert_eq!(before, "InlineFunctions", "seed {seed}");
                    continue;
                }
                for pipeline in names.iter().map(String::as_str).chain(["O3"]) {
                    ran += usize::from(apply(pipeline, &mut prepared.clone(), &format!("seed {seed}, {before}")));
                }
            }
        }
        ran
    };
    let ran: usize = std::thread::scope(|scope| {
        let run_all = &run_all;
        let halves = [0..30, 30..60].map(|seeds| scope.spawn(move || run_all(seeds)));
        halves.into_iter().map(|half| half.join().expect("no run panics")).sum()
    });
    assert!(ran > 4000, "{ran}");
}

#[test]
fn using_a_later_definition() {
    let found = errors(TEXT, |function| {
        let (value, later) = (binding(function, "a").value, binding(function, "c").var);
        let body = &mut function.function.body;
        let Expr::CallOp { operands, .. } = body.expr(value) else { return Ok(()) };
        body.set_operand(operands, 0, later.expr());
        Ok(())
    });
    contains_each(&found, &["`%c` is used where nothing has bound it", "in @main, at %a"]);
}

#[test]
fn a_rewrite_that_loops() {
    for context in [plain(), checked()] {
        // Rules that match their own results.
        let rules = FunctionPass::new("Rules", 0, |function, _, _| {
            let wrap = op("exp", [op("log", [op("exp", [capture("x")])])]);
            let mut rules = [Rule::replace("exp again", op("exp", [capture("x")]), wrap)];
            let _ = rewrite_patterns(&mut function.editor(), &mut rules, &PatternOptions::default())?;
            Ok(())
        });
        let went_round = run(&rules, TEXT, &context);
        assert!(matches!(went_round.result, Ok(Outcome::Unchanged)), "{:?}", went_round.result);
        let named = went_round.remarks.iter().filter(|r| r.contains("the rule `exp again` still applies after"));
        assert_eq!(named.count(), 2, "one for each function: {:?}", went_round.remarks);
        assert!(went_round.remarks.iter().any(|r| r.contains("%a")), "{:?}", went_round.remarks);

        // Passes that are repeated, and change the program each time.
        let flips = FunctionPass::new("Flips", 0, |function, _, _| {
            let b = binding(function, if function.name() == "main" { "b" } else { "q" });
            let renamed = function.cx.names.intern(if function.name() == "main" { "b" } else { "q" });
            let body = &mut function.function.body;
            let fresh = body.push_var(Some(renamed), VarFlags::PLAIN, body.ty(b.var.expr()), None);
            let tail = body.push(
                Expr::Let { var: fresh, value: b.var.expr(), body: b.rest, flags: LetFlags::PLAIN },
                body.ty(b.id),
                None,
            );
            body.set_let_body(b.id, tail);
            Ok(())
        });
        let repeated = run(&Repeat::new(vec![Arc::new(flips)], 3).unwrap(), TEXT, &context);
        assert!(repeated.result.is_ok(), "{:?}", repeated.result);
        let remark = "fixpoint<3>: remark: still changing after 3 rounds: `Flips`";
        assert!(repeated.remarks.iter().any(|r| r.contains(remark)), "{:?}", repeated.remarks);

        // A mutator is not called again for its own results, even if it returns ever more work. A
        // mutator that splices a value that also stays in its place fails.
        struct Grows;
        impl Mutator for Grows {
            type Error = RewriteError;
            fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, RewriteError> {
                let log = site.editor.call_named("exp", &[id])?;
                Ok(Rewrite::Replace(site.editor.call_named("log", &[log])?))
            }
        }
        let grows = FunctionPass::new("Grows", 0, |function, _, _| Ok(mutate(&mut function.editor(), &mut Grows)?));
        assert!(run(&grows.with_tolerance(1e-3), TEXT, &context).result.is_ok());
        let block = "def @main(%x: float32) { let %y = { let %i = exp(%x); tanh(%i) }; log(%y) }";
        struct Twice;
        impl Mutator for Twice {
            type Error = RewriteError;
            fn rewrite_value(
                &mut self,
                site: &mut Site<'_>,
                slot: Slot,
                value: ExprId,
            ) -> Result<Verdict, RewriteError> {
                let Some(b) = slot.binding(site.editor.body, value) else { return Ok(Verdict::Keep) };
                if Binding::of(site.editor.body, b.value).is_none() {
                    return Ok(Verdict::Keep);
                }
                site.splice(b.value)?;
                Ok(Verdict::Splice(b.value))
            }
        }
        let twice = FunctionPass::new("Twice", 0, |function, _, _| Ok(mutate(&mut function.editor(), &mut Twice)?));
        let error = run(&twice, block, &context).result.unwrap_err().to_string();
        assert!(error.contains("pass `Twice` failed: the binding of `%i` was spliced"), "{error}");
    }
}

#[test]
fn a_panic() {
    let found = errors(TEXT, |function| {
        let nothing = Binding::of(&function.function.body, function.function.body.params()[0].expr());
        nothing.expect("a parameter is no let");
        Ok(())
    });
    contains_each(&found, &["panicked", "a parameter is no let", "@main"]);
}

#[test]
fn a_pass_that_was_never_registered() {
    let mut registry = PassRegistry::new();
    anfora::passes::register(&mut registry).unwrap();
    registry.register_pass(mistaken(|_| Ok(())), "does nothing").unwrap();
    let error = parse_pipeline(&registry, "Mistakn").unwrap_err().to_string();
    assert!(error.contains("Mistakn") && error.contains("did you mean `Mistaken`?"), "{error}");
    // The name is misspelt in a context with a registry, and as a dependency of a pass.
    let registry = Arc::new(registry);
    for context in [plain(), checked()] {
        let named = context.derive().registry(Arc::clone(&registry)).require("Mistakn").build();
        assert!(named.is_err_and(|e| e.to_string().contains("did you mean `Mistaken`?")));
        let context = context.derive().registry(Arc::clone(&registry)).build().unwrap();
        let depends = FunctionPass::new("Depends", 0, |_, _, _| Ok(())).requiring(["Mistakn"]);
        let failure = run(&depends, TEXT, &context).result.unwrap_err();
        let error: String = failure.to_diagnostics().iter().map(|d| format!("{d}\n")).collect();
        for part in ["`Depends` depends on `Mistakn`, which cannot be made", "did you mean `Mistaken`?"] {
            assert!(error.contains(part), "{error}");
        }
    }
}

/// A variable of a region may come to be used outside of the region. The guide promises that this
/// is handled, so it is not a mistake.
#[test]
fn regions_stay_right() {
    struct Reuses;
    impl Mutator for Reuses {
        type Error = RewriteError;
        fn rewrite_value(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
            let Some(b) = slot.binding(site.editor.body, value) else { return Ok(Verdict::Keep) };
            if b.flags.is_dataflow() {
                return Ok(Verdict::Keep);
            }
            let first = Binding::of(site.editor.body, site.editor.body.root()).map(|b| b.var.expr());
            let sum = site.editor.call_named("exp", first.as_slice())?;
            Ok(Verdict::Value(sum))
        }
    }
    let pass = FunctionPass::new("Reuses", 0, |function, _, _| Ok(mutate(&mut function.editor(), &mut Reuses)?));
    let text = "def @main(%x: float32) {
        dataflow { let %a = exp(%x); let %b = log(%a); output(%b); }
        let %c = exp(%a_or_b);
        %c
    }"
    .replace("%a_or_b", "%b");
    let mut module = parse(&text).unwrap();
    pass.apply(&mut module, &plain()).unwrap();
    assert!(module.to_text().contains("output(%a, %b)") && module.to_text().contains("let %c = exp(%a)"), "{module}");
}

/// An edit of a body does not change the type that callers see of the function.
#[test]
fn a_root_of_another_type() {
    let returns: Mistake = |function| {
        let mut editor = function.editor();
        let root = editor.literal(Literal::scalar(1i32));
        editor.body.set_root(root);
        Ok(())
    };
    let stated = TEXT.replacen(" {\n    let %a", " -> Tensor[(2,), float32] {\n    let %a", 1);
    for (text, says) in [
        (
            TEXT,
            "Tensor[(), int32, 1], but that of its name is fn(Tensor[(2,), float32], Tensor[(2,), float32]) -> Tensor[(2,), float32]",
        ),
        (&*stated, "the function returns Tensor[(), int32, 1], but Tensor[(2,), float32] is stated"),
    ] {
        for verification in [Verification::Off, Verification::AfterEachPass] {
            let context = PassContext::builder()
                .verification(verification)
                .instrument(Arc::new(anfora::manager::VerifyEach::new()));
            let refused = run(&mistaken(returns), text, &context.build().unwrap());
            let error = refused.result.unwrap_err().to_string();
            assert!(refused.unchanged && error.contains(says), "{error}");
        }
    }
    // Outside of a pass, the verifier reports the mistake.
    let mut module = parse(TEXT).unwrap();
    let key = module.find("main").unwrap();
    let (function, cx) = module.get_mut(key).unwrap();
    let mut editor = Editor::new(cx, &mut function.body);
    let root = editor.literal(Literal::scalar(1i32));
    editor.body.set_root(root);
    let errors = verify_module(&module).unwrap_err();
    assert!(errors[0].to_string().contains("the signature of the function is"), "{errors:?}");
}
