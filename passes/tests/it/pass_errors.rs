//! Tests of the errors of passes that use `?` on an error of the toolkit.

use anfora_ir::{Cursor, ExprId, Literal, Module, Source, Step, parse_module, verify_module};
use anfora_manager::{
    DataflowBlockPass, FunctionPass, ModulePass, Pass, PassContext, PassError, PassFailure, PassRegistry,
    parse_pipeline,
};
use anfora_visit::pattern::{PatternOptions, Rule, capture, op, rewrite_patterns};
use anfora_visit::{Mutator, Rewrite, RewriteError, Site, copy_function, mutate};

const PROGRAM: &str = "def @side(%x: float32) { exp(%x) }
def @main(%a: Tensor[(2, 3), float32], %b: Tensor[(3,), float32], %c: bool) {
    let %x = exp(%a);
    let %y = if (%c) { let %z = tanh(%x); %z } else { %x };
    dataflow {
        let %p = add(%y, %b);
        let %q = sigmoid(%p);
        output(%q);
    }
    %q
}";

fn module() -> Module {
    parse_module(Source::new("test.anf", PROGRAM), anfora_ops::standard()).unwrap()
}

fn failure(pass: &dyn Pass) -> PassFailure {
    let mut module = module();
    let before = module.to_text();
    let failure = pass.apply(&mut module, &PassContext::new()).unwrap_err();
    assert_eq!(module.to_text(), before);
    failure
}

/// Replaces each call of an operator by the matrix product of the call and a vector.
struct Multiply(&'static str);

impl Mutator for Multiply {
    type Error = RewriteError;

    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, RewriteError> {
        let wanted = site.editor.cx.ops.find(self.0);
        match site.editor.body.expr(id) {
            anfora_ir::Expr::CallOp { op, .. } if Some(op) == wanted => {}
            _ => return Ok(Rewrite::Keep),
        }
        // Inserting a binding before it does not lose the place.
        let operand = site.editor.body.operands_of(id)[0];
        let bound = site.editor.tuple(&[operand]);
        site.bind(None, bound);
        let vector = site.editor.literal(Literal::from_elements(&[2], &[1f32, 2.0]).expect("two elements"));
        let product = site.editor.call_named("matmul", &[vector, vector])?;
        let product = site.editor.call_named("reshape", &[product])?;
        Ok(Rewrite::Replace(product))
    }
}

#[test]
fn a_mutator_names_function_binding_and_operator() {
    let pass = FunctionPass::new("P", 0, |function, _, _| Ok(mutate(&mut function.editor(), &mut Multiply("tanh"))?));
    let failure = failure(&pass);
    assert_eq!(failure.to_string(), "pass `P` failed: `reshape` takes 2 operands, not 1 (in @main, at %z)");
    assert_eq!((failure.function(), failure.binding()), (Some("main"), Some("z")));
}

#[test]
fn module_passes_and_block_passes_name_the_place_too() {
    let pass = ModulePass::new("P", 0, |module, _| {
        let keys = module.order().to_vec();
        for key in keys {
            let (function, cx) = module.get_mut(key).expect("it is in the order");
            mutate(&mut anfora_ir::Editor::new(cx, &mut function.body), &mut Multiply("tanh"))?;
        }
        Ok(())
    });
    assert_eq!(failure(&pass).to_string(), "pass `P` failed: `reshape` takes 2 operands, not 1 (in @main, at %z)");
    let pass = DataflowBlockPass::new("P", 0, |block, _, _| Ok(mutate(&mut block.editor(), &mut Multiply("sigmoid"))?));
    assert_eq!(failure(&pass).to_string(), "pass `P` failed: `reshape` takes 2 operands, not 1 (in @main, at %q)");
}

#[test]
fn users_that_lose_their_type_are_named() {
    // `%x` becomes a matrix of other extents, to which `%b` cannot be added.
    let pass = FunctionPass::new("P", 0, |function, _, _| {
        let mut retype = anfora_ir::Retype::new(&function.function.body);
        let other = function.cx.types.static_tensor(anfora_ir::DType::Float32, &[2, 5]);
        let Some(&a) = function.function.body.params().first() else { return Ok(()) };
        function.function.body.set_type(a.expr(), other);
        retype.changed(a.expr());
        let root = function.function.body.root();
        retype.sweep(function.cx, &mut function.function.body, root)?;
        Ok(())
    });
    let text = failure(&pass).to_string();
    assert!(text.starts_with("pass `P` failed: `add`: "), "{text}");
    assert!(text.contains("(in @main, at %p)"), "{text}");
}

#[test]
fn rules_name_the_place_of_their_match() {
    let pass = FunctionPass::new("P", 0, |function, _, _| {
        let build = Rule::new("fails", op("tanh", [capture("x")]), |_, _| Err("not today".into()));
        let _ = rewrite_patterns(&mut function.editor(), &mut [build], &PatternOptions::default())?;
        Ok(())
    });
    assert_eq!(failure(&pass).to_string(), "pass `P` failed: the rule `fails` failed: not today (in @main, at %z)");
}

type Work = fn(&mut Module) -> Result<(), PassError>;

/// The kinds of errors of the toolkit: what fails with one, and a part of its message.
const ERRORS: &[(Work, &str)] = &[
    (
        |module| {
            copy_function(module, module.find("side").unwrap(), "main")?;
            Ok(())
        },
        "`@main` is defined already",
    ),
    (
        |module| {
            let other = module.clone();
            module.take_function(&other, other.find("side").unwrap(), "main")?;
            Ok(())
        },
        "`@main` is defined already",
    ),
    (
        |module| {
            module.compact()?;
            Ok(())
        },
        "an edit is open",
    ),
    (
        |_| {
            Literal::from_elements(&[3], &[1f32])?;
            Ok(())
        },
        "3",
    ),
    (
        |module| {
            let mut f = anfora_ir::FunctionBuilder::new(module, "g");
            let one = f.literal(Literal::scalar(1f32));
            f.call_op("matmul", &[one], &[])?;
            Ok(())
        },
        "`matmul` takes 2 operands, not 1",
    ),
    (
        |_| {
            parse_module(Source::new("t", "def @f() { %x }"), anfora_ops::standard())?;
            Ok(())
        },
        "unknown local `%x`",
    ),
    (
        |module| {
            let (function, cx) = module.get_mut(module.find("main").unwrap()).unwrap();
            let bool = cx.types.scalar(anfora_ir::DType::Bool);
            let mut cursor = Cursor::new(&function.body);
            while let Some(step) = cursor.next(&function.body) {
                if let Step::Flat(id) = step {
                    function.body.set_type(id, bool);
                }
            }
            verify_module(module)?;
            Ok(())
        },
        "type",
    ),
    (
        |module| {
            anfora_interp::Interpreter::new(module).run("main", &[])?;
            Ok(())
        },
        "main",
    ),
    (
        |_| {
            parse_pipeline(&PassRegistry::new(), "Nonsense")?;
            Ok(())
        },
        "Nonsense",
    ),
];

#[test]
fn every_error_of_the_toolkit_is_one_of_a_pass() {
    for &(work, said) in ERRORS {
        let pass = ModulePass::new("P", 0, move |module, _| work(module));
        let text = failure(&pass).to_string();
        assert!(text.starts_with("pass `P` failed: ") && text.contains(said), "{text}");
    }
}

#[test]
fn what_a_pass_says_itself_is_not_put_where_an_older_walk_ended() {
    fn fails_in_main(module: &mut Module) -> Result<(), RewriteError> {
        let (function, cx) = module.get_mut(module.find("main").unwrap()).unwrap();
        mutate(&mut anfora_ir::Editor::new(cx, &mut function.body), &mut Multiply("tanh"))
    }
    let said: [fn() -> PassError; 4] = [
        || PassError::new("no"),
        || "no".into(),
        || "no".to_string().into(),
        || anfora_ir::Diagnostic::error("no").into(),
    ];
    for say in said {
        let pass = ModulePass::new("P", 0, move |module, _| {
            let _ = fails_in_main(module);
            Err(say())
        });
        assert_eq!(failure(&pass).to_string(), "pass `P` failed: no");
        let pass = FunctionPass::new("P", 0, move |function, _, _| {
            let _ = mutate(&mut function.editor(), &mut Multiply("tanh"));
            if function.function.body.stop().is_some() { Err(say()) } else { Ok(()) }
        });
        assert_eq!(failure(&pass).to_string(), "pass `P` failed: no (in @main)");
    }
    // Walks ended in two functions: the error may belong to either.
    let text = "def @f(%x: float32) { let %a = tanh(%x); %a } def @g(%x: float32) { let %b = tanh(%x); %b }";
    let mut module = parse_module(Source::new("test", text), anfora_ops::standard()).unwrap();
    let pass = ModulePass::new("P", 0, |module, _| {
        let mut last = Ok(());
        for key in module.order().to_vec() {
            let (function, cx) = module.get_mut(key).unwrap();
            last = mutate(&mut anfora_ir::Editor::new(cx, &mut function.body), &mut Multiply("tanh"));
        }
        Ok(last?)
    });
    let failure = pass.apply(&mut module, &PassContext::new()).unwrap_err();
    assert_eq!(failure.to_string(), "pass `P` failed: `reshape` takes 2 operands, not 1");
}
