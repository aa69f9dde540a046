//! TVM's tests of its pass manager, on its own programs: `docs/peer-cases/pass-manager.md` lists
//! the test for each case.

use std::sync::{Arc, Mutex};

use anfora_interp::Interpreter;
use anfora_ir::{
    DType, Expr, FunctionBuilder, Literal, Module, OperandList, RenderOptions, Source, VarFlags, alpha_equal,
    infer_expr, parse_module, render_module_diagnostics,
};
use anfora_manager::{
    FunctionPass, ModulePass, Outcome, Pass, PassContext, PassError, PassFailure, PassRegistry, PassTiming, PrintIr,
    PrintWhen, Sequential, parse_pipeline,
};
use anfora_visit::{Link, insert_before};

fn parsed(text: &str) -> Module {
    parse_module(Source::new("peer.anf", text), anfora_ops::standard()).unwrap_or_else(|e| panic!("{}\n{text}", e[0]))
}

fn registry() -> Arc<PassRegistry> {
    anfora_passes::registry()
}

fn made(name: &str) -> Arc<dyn Pass> {
    registry().make(name).unwrap()
}

/// A buffer to print to.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Page {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// Returns a tensor of some numbers.
fn tensor(shape: &[usize]) -> Literal {
    let elements: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| i as f32 * 0.5 + 1.0).collect();
    Literal::from_elements(shape, &elements).unwrap()
}

fn run(module: &Module, function: &str, arguments: &[Literal]) -> Vec<f32> {
    let outcome = Interpreter::new(module).run(function, arguments).unwrap();
    outcome.tensor().unwrap().elements::<f32>().unwrap().into_owned()
}

fn sequence(passes: Vec<Arc<dyn Pass>>) -> Sequential {
    Sequential::new(passes).unwrap()
}

fn level(level: u8) -> PassContext {
    PassContext::builder().registry(registry()).opt_level(level).build().unwrap()
}

// ---- Instruments ----

const TEST_MODEL: &str =
    "def @main(%x: Tensor[(3, 4), float32], %y: Tensor[(3, 4), float32], %z: Tensor[(3, 4), float32]) {
  let %e1 = add(%x, %y);
  let %e2 = subtract(%x, %z);
  let %e3 = multiply(%e1, divide(%e1, %e2));
  add(%e3, %e2)
}";

#[test]
fn passes_are_timed_until_other_instruments_take_the_place() {
    let names = ["Normalize", "ToANormalForm", "CanonicalizeBindings"];
    let run_all = || {
        let mut module = parsed(TEST_MODEL);
        names.iter().for_each(|name| drop(made(name).apply(&mut module, &PassContext::current()).unwrap()));
    };
    let timing = Arc::new(PassTiming::new());
    PassContext::current().override_instruments(vec![timing.clone()]).unwrap();
    run_all();
    let profile = timing.to_string();
    assert!(names.iter().all(|name| profile.contains(name)), "{profile}");
    PassContext::current().override_instruments(Vec::new()).unwrap();
    assert!(PassContext::current().instruments().is_empty());
    run_all();
    // Nothing was added. The table can still be read.
    assert_eq!(timing.to_string(), profile);
}

#[test]
fn all_passes_of_a_pipeline_are_printed_before_and_after() {
    let page = Page::default();
    let always = || PrintWhen::Named(vec!["pipeline".to_string()]);
    let cx = PassContext::builder()
        .registry(registry())
        .opt_level(3)
        .instrument(Arc::new(PrintIr::new(PrintWhen::Always, PrintWhen::Always, page.clone())))
        .instrument(Arc::new(PrintIr::new(always(), always(), page.clone())))
        .build()
        .unwrap();
    let mut module = parsed(
        "def @func(%x: Tensor[(16,), float32], %y: Tensor[(16,), float32]) { let %z = add(%x, %y); let %w = %z; %w }",
    );
    let pipeline = parse_pipeline(&registry(), "phase0,phase1,phase2.1").unwrap();
    cx.scope(|| pipeline.apply(&mut module, &cx).unwrap()).unwrap();
    let text = page.text();
    for name in ["pipeline", "ToANormalForm", "LambdaLifting", "FoldConstant", "FuseOps", "ToNonDataflow"] {
        let [before, after] = ["before", "after"].map(|when| text.find(&format!("// {when} {name}\n")));
        assert!(before.is_some() && before < after, "{name}: {text}");
    }
}

// ---- Passes ----

/// Returns a pass that binds the double of each parameter, and uses it instead of the parameter.
fn double_values(opt_level: u8) -> FunctionPass {
    FunctionPass::new("function_pass_test", opt_level, |func, _, _| {
        let nodes: Vec<(_, Expr)> = func.function.body.exprs().collect();
        let params = func.function.body.params().to_vec();
        let mut editor = func.editor();
        let mut doubles = Vec::new();
        for &param in &params {
            let call = editor.call_named("add", &[param.expr(), param.expr()])?;
            let ty = editor.body.ty(call);
            doubles.push((editor.var(None, VarFlags::PLAIN, ty), call));
        }
        for (_, expr) in nodes {
            let list: OperandList = match expr {
                Expr::CallOp { operands, .. } => operands,
                _ => continue,
            };
            for i in 0..list.len() {
                let operand = editor.body.operand(list, i);
                if let Some(at) = params.iter().position(|p| p.expr() == operand) {
                    editor.body.set_operand(list, i, doubles[at].0.expr());
                }
            }
        }
        insert_before(&mut editor, Link::Root, &doubles);
        Ok(())
    })
}

const MY_ABS: &str = "def @myAbs(%x: Tensor[(5, 10), float32]) { abs(%x) }";

/// Returns a pass that makes a module with `@myAbs` and the functions of its input.
fn add_abs(opt_level: u8) -> ModulePass {
    ModulePass::returning("module_pass_test", opt_level, |module, _| {
        let mut new = parsed(MY_ABS);
        for (key, _) in module.functions() {
            new.take_function(module, key, module.name(key))?;
        }
        Ok(new)
    })
}

/// Returns true if a function of a module equals the function of a text.
fn is_function(module: &Module, name: &str, text: &str) -> bool {
    let wanted = parsed(text);
    let mut alone = Module::new(module.cx.ops.registry().clone());
    alone.take_function(module, module.find(name).unwrap(), name).unwrap();
    alpha_equal(&alone, &wanted)
}

#[test]
fn a_module_pass_returns_a_module_with_one_function_more() {
    let pass = add_abs(0);
    assert_eq!((pass.info().name.as_str(), pass.info().opt_level), ("module_pass_test", 0));
    let my_add = "def @myAdd(%x: Tensor[(5, 10), float32], %y: Tensor[(5, 10), float32]) { add(%x, %y) }";
    let mut module = parsed(my_add);
    assert_eq!(pass.apply(&mut module, &PassContext::new()).unwrap(), Outcome::Changed);
    assert!(is_function(&module, "myAbs", MY_ABS) && is_function(&module, "myAdd", my_add));
    let [x, y] = [tensor(&[5, 10]), tensor(&[5, 10])];
    let sum: Vec<f32> = x.elements::<f32>().unwrap().iter().map(|e| e + e).collect();
    assert_eq!(run(&module, "myAdd", &[x, y]), sum);
}

#[test]
fn a_module_pass_returns_another_module_or_the_one_that_it_was_given() {
    let one = "def @main(%x: Tensor[(10, 20), float32]) { %x }";
    let other = "def @main(%x: Tensor[(10, 20), float32]) { log(%x) }";
    let replace = |replace: bool| {
        ModulePass::returning("TestModulePass", 1, move |module, _| {
            Ok(if replace { parsed(other) } else { module.clone() })
        })
    };
    let mut module = parsed(one);
    assert_eq!(replace(false).apply(&mut module, &PassContext::new()).unwrap(), Outcome::Unchanged);
    assert_eq!(module.to_text(), parsed(one).to_text());
    assert_eq!(replace(true).apply(&mut module, &PassContext::new()).unwrap(), Outcome::Changed);
    assert_eq!(module.to_text(), parsed(other).to_text());
    assert_eq!(replace(true).apply(&mut module, &PassContext::new()).unwrap(), Outcome::Unchanged);
}

#[test]
fn a_function_pass_doubles_what_a_function_is_given() {
    let pass = double_values(1);
    assert_eq!((pass.info().name.as_str(), pass.info().opt_level), ("function_pass_test", 1));
    let mut module = parsed("def @myLog(%x: Tensor[(10,), float32]) { log(%x) }");
    pass.apply(&mut module, &PassContext::new()).unwrap();
    let wanted = "def @myLog(%x: Tensor[(10,), float32]) { let %d = add(%x, %x); log(%d) }";
    assert!(is_function(&module, "myLog", wanted), "{module}");
    let x = tensor(&[10]);
    let logs: Vec<f32> = x.elements::<f32>().unwrap().iter().map(|e| (e * 2.0).ln()).collect();
    let found = run(&module, "myLog", &[x]);
    assert!(found.iter().zip(&logs).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs().max(1.0)), "{found:?} {logs:?}");
}

/// A pass with a type of its own. It replaces each function by the function that it was made with.
struct TestReplaceFunc {
    info: anfora_manager::PassInfo,
    new_func: Module,
}

impl Pass for TestReplaceFunc {
    fn info(&self) -> &anfora_manager::PassInfo {
        &self.info
    }

    fn run(&self, module: &mut Module, _: &PassContext) -> Result<Outcome, PassFailure> {
        for key in module.order().to_vec() {
            let name = module.name(key).to_string();
            module.remove(&[key]);
            module.take_function(&self.new_func, self.new_func.order()[0], &name).map_err(PassError::from)?;
        }
        Ok(Outcome::Changed)
    }
}

#[test]
fn a_pass_of_ones_own_type_replaces_every_function() {
    let identity = "def @main(%x: Tensor[(10, 20), float32]) { %x }";
    let info = anfora_manager::PassInfo::new("TestReplaceFunc", 1);
    let pass = TestReplaceFunc { info, new_func: parsed(identity) };
    assert_eq!((pass.info().name.as_str(), pass.info().opt_level), ("TestReplaceFunc", 1));
    let mut module = parsed("def @main(%x: Tensor[(10, 20), float32]) { log(%x) }");
    pass.apply(&mut module, &PassContext::new()).unwrap();
    assert!(is_function(&module, "main", identity));
}

#[test]
fn sequences_of_module_and_function_passes_do_what_each_does() {
    let of =
        |name: &str, body: &str| format!("def @{name}(%x: Tensor[(10,), float32], %y: Tensor[(10,), float32]) {body}");
    let (sub, log) = (of("mySub", "{ subtract(%x, %y) }"), "def @myLog(%z: Tensor[(10,), float32]) { log(%z) }");
    let doubled_sub = of("mySub", "{ let %a = add(%x, %x); let %b = add(%y, %y); subtract(%a, %b) }");
    let doubled_log = "def @myLog(%z: Tensor[(10,), float32]) { let %a = add(%z, %z); log(%a) }";
    let doubled_abs = "def @myAbs(%x: Tensor[(5, 10), float32]) { let %a = add(%x, %x); abs(%a) }";
    let after = |passes: Vec<Arc<dyn Pass>>| {
        let mut module = parsed(&format!("{sub}\n{log}"));
        sequence(passes).apply(&mut module, &PassContext::new()).unwrap();
        module
    };
    assert!(is_function(&after(Vec::new()), "mySub", &sub));
    let module = after(vec![Arc::new(add_abs(1))]);
    assert!(is_function(&module, "mySub", &sub) && is_function(&module, "myAbs", MY_ABS));
    let module = after(vec![Arc::new(double_values(2))]);
    assert!(is_function(&module, "mySub", &doubled_sub) && is_function(&module, "myLog", doubled_log));
    let module = after(vec![Arc::new(add_abs(1)), Arc::new(double_values(2))]);
    assert!(is_function(&module, "mySub", &doubled_sub) && is_function(&module, "myLog", doubled_log));
    assert!(is_function(&module, "myAbs", doubled_abs));
    let (x, y) = (tensor(&[10]), tensor(&[10]));
    assert_eq!(run(&module, "mySub", &[x, y]), [0.0; 10]);
    let x = tensor(&[5, 10]);
    let doubles: Vec<f32> = x.elements::<f32>().unwrap().iter().map(|e| e * 2.0).collect();
    assert_eq!(run(&module, "myAbs", &[x]), doubles);
}

/// Returns a function of a constant vector, which stands for the peer's `c`.
fn of_constant(build: impl FnOnce(&mut FunctionBuilder<'_>, [anfora_ir::ExprId; 2]) -> anfora_ir::ExprId) -> Module {
    let mut module = Module::new(anfora_ops::standard());
    let ty = module.cx.types.static_tensor(DType::Float32, &[1, 2, 3]);
    let mut f = FunctionBuilder::new(&mut module, "main");
    let x = f.param("x", ty);
    let c = f.literal(tensor(&[1, 2, 3]));
    let result = build(&mut f, [x, c]);
    f.finish(result).unwrap();
    module
}

#[test]
fn a_sequence_in_the_scope_of_a_context_folds_and_merges() {
    let mut module = of_constant(|f, [x, c]| {
        let mut bound = |name: &str, op: &str, operands: &[anfora_ir::ExprId]| {
            let call = f.call_op(op, operands, &[]).unwrap();
            f.bind(name, call)
        };
        let y = bound("y", "add", &[c, c]);
        let doubled = bound("doubled", "add", &[y, y]);
        let y = bound("y1", "add", &[x, doubled]);
        let z = bound("z", "add", &[y, c]);
        let z1 = bound("z1", "add", &[y, c]);
        bound("z2", "add", &[z, z1])
    });
    let folded: Vec<f32> = tensor(&[1, 2, 3]).elements::<f32>().unwrap().iter().map(|e| 4.0 * e).collect();
    let expected = of_constant(|f, [x, c]| {
        let folded = f.literal(Literal::from_elements(&[1, 2, 3], &folded).unwrap());
        let mut bound = |name: &str, operands: &[anfora_ir::ExprId]| {
            let call = f.call_op("add", operands, &[]).unwrap();
            f.bind(name, call)
        };
        let y = bound("y1", &[x, folded]);
        let z = bound("z", &[y, c]);
        bound("z2", &[z, z])
    });
    let passes = sequence(vec![made("Normalize"), made("FoldConstant"), made("EliminateCommonSubexpr")]);
    level(3).scope(|| passes.apply(&mut module, &PassContext::current()).unwrap()).unwrap();
    made("DeadCodeElimination").apply(&mut module, &level(3)).unwrap();
    assert!(alpha_equal(&module, &expected), "{module}\n{expected}");
}

/// Returns a pass that replaces a reshape of a reshape by a single one, like the peer's
/// SimplifyExpr in this case.
fn merge_reshapes() -> FunctionPass {
    FunctionPass::new("SimplifyExpr", 0, |func, _, _| {
        let cx = &func.cx;
        let body = &mut func.function.body;
        let reshape = |expr: Expr| match expr {
            Expr::CallOp { op, operands, .. } if cx.ops.get(op).name == "reshape" => Some(operands),
            _ => None,
        };
        let lets: Vec<_> = anfora_visit::bindings(body, body.root()).collect();
        for b in &lets {
            let Some(outer) = reshape(body.expr(b.value)) else { continue };
            let operand = body.operand(outer, 0);
            let Some(inner) = lets.iter().find(|l| l.var.expr() == operand) else { continue };
            if let Some(list) = reshape(body.expr(inner.value)) {
                let first = body.operand(list, 0);
                body.set_operand(outer, 0, first);
            }
        }
        Ok(())
    })
}

#[test]
fn a_sequence_in_a_sequence_runs_at_the_level_of_the_context() {
    let program = |reshapes: &str| {
        parsed(&format!(
            "def @main(%x: Tensor[(1, 16, 16, 16), float32], %w: Tensor[(32, 16, 3, 3), float32]) {{
               let %y = nn.conv2d(%x, %w, padding=[1, 1, 1, 1]);
               {reshapes}
               %r
             }}"
        ))
    };
    let before = "let %a = reshape(%y, dense<Tensor[(3,), int64]>[1, 16, 512]); let %b = reshape(%a, dense<Tensor[(4,), int64]>[4, 8, 16, 16]); let %r = reshape(%b, dense<Tensor[(3,), int64]>[32, 16, 16]);";
    let mut module = program(before);
    let skipped = ModulePass::new("AboveTheLevel", 2, |_, _| Err("it is not to run".into()));
    let inner = sequence(vec![Arc::new(merge_reshapes()), Arc::new(skipped), made("DeadCodeElimination")]);
    let outer = sequence(vec![Arc::new(inner)]);
    level(1).scope(|| outer.apply(&mut module, &PassContext::current()).unwrap()).unwrap();
    let expected = program("let %r = reshape(%y, dense<Tensor[(3,), int64]>[32, 16, 16]);");
    assert!(alpha_equal(&module, &expected), "{module}\n{expected}");
}

#[test]
fn the_module_is_printed_in_the_middle_of_a_sequence() {
    let text = "def @main(%x: Tensor[(1, 2, 3), float32]) { let %y = add(%x, %x); let %z = multiply(%y, 2f); %z }";
    let page = Page::default();
    let cx = PassContext::builder().registry(registry()).opt_level(3).print_to(page.clone()).build().unwrap();
    let passes = sequence(vec![made("Normalize"), made("FoldConstant"), made("PrintIR"), made("DeadCodeElimination")]);
    passes.apply(&mut parsed(text), &cx).unwrap();
    let printed = page.text();
    assert!(printed.contains("PrintIR") && printed.contains("multiply"), "{printed}");
}

// ---- Errors with their places ----

/// Returns a pass that infers the type of each binding again, like the peer's Normalize.
fn infer_again() -> Arc<dyn Pass> {
    Arc::new(FunctionPass::new("Normalize", 0, |func, _, _| {
        let bindings: Vec<_> = anfora_visit::bindings(&func.function.body, func.function.body.root()).collect();
        for b in bindings {
            if let Err(error) = infer_expr(func.cx, &func.function.body, b.value) {
                return Err(func.error_at(b.id, error.to_string()));
            }
        }
        Ok(())
    }))
}

/// Returns a product of matrices that do not fit, which no constructor would make.
fn bad_matmul() -> Module {
    let mut module = Module::new(anfora_ops::standard());
    let types = &mut module.cx.types;
    let [left, right, wrong] = [[3, 4], [5, 6], [3, 6]].map(|shape| types.static_tensor(DType::Float32, &shape));
    let mut f = FunctionBuilder::new(&mut module, "main");
    let x = f.param("x", left);
    let y = f.param("y", right);
    let sum = f.call_op("add", &[x, x], &[]).unwrap();
    let lv = f.bind("lv", sum);
    let key = f.finish(lv).unwrap();
    let (function, cx) = module.get_mut(key).unwrap();
    let op = cx.ops.find("matmul").unwrap();
    let body = &mut function.body;
    let operands = body.push_operands(&[x, y]);
    let Expr::Let { value, .. } = body.expr(body.root()) else { panic!("a binding") };
    let empty = cx.attrs.empty();
    body.set_expr(value, Expr::CallOp { op, operands, attrs: empty });
    body.set_type(value, wrong);
    body.set_type(lv, wrong);
    module
}

fn shown(failure: &PassFailure, module: &Module) -> String {
    render_module_diagnostics(&failure.to_diagnostics(), module, &RenderOptions::default())
}

#[test]
fn an_error_names_the_pass_and_underlines_the_binding() {
    let mut module = bad_matmul();
    let failure = infer_again().apply(&mut module, &PassContext::new()).unwrap_err();
    let text = shown(&failure, &module);
    for part in ["pass `Normalize` failed", "the summed extent", "let %lv = matmul(%x, %y", "^^^"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn an_error_in_a_sequence_has_its_place_once() {
    let mut module = bad_matmul();
    let failure = sequence(vec![infer_again()]).apply(&mut module, &PassContext::new()).unwrap_err();
    let text = shown(&failure, &module);
    assert_eq!(text.matches("matmul(%x, %y").count(), 1, "{text}");
    assert_eq!(text.matches("pass `Normalize` failed").count(), 1, "{text}");
}

#[test]
fn an_error_without_a_place_is_told_as_it_is() {
    let message = "deliberate failure with no resolvable location";
    let pass = ModulePass::new("ThrowUnresolvable", 0, move |_, _| Err(message.into()));
    let mut module = bad_matmul();
    let failure = pass.apply(&mut module, &PassContext::new()).unwrap_err();
    let text = shown(&failure, &module);
    assert!(text.contains(message) && !text.contains("-->") && !text.contains('^'), "{text}");
    assert_eq!((failure.function(), failure.binding()), (None, None));
}

#[test]
fn an_external_function_keeps_what_others_know_of_it() {
    // It returns a constant of another shape, and no result type is stated.
    let pass = FunctionPass::new("Other", 0, |function, _, _| {
        let mut editor = function.editor();
        if editor.body.params().len() == 1 {
            let vector = editor.literal(Literal::from_elements(&[2], &[1f32, 2.0]).expect("two elements"));
            editor.body.set_root(vector);
        }
        Ok(())
    });
    let run = |callee: &str| {
        let text = format!("def @main() {{ @g(1f) }} {callee} {{ exp(%y) }}");
        let mut module = parse_module(Source::new("test", text), anfora_ops::standard()).unwrap();
        let cx = PassContext::builder().verification(anfora_manager::Verification::AfterEachPass).build().unwrap();
        pass.apply(&mut module, &cx).map(|_| module.to_string()).map_err(|e| e.to_string())
    };
    let private = run("def private @g(%y: float32)").unwrap();
    assert!(private.contains("def @main() -> Tensor[(2,), float32]"), "{private}");
    for external in ["def @g(%y: float32)", "def private @g(%y: float32, global_symbol=\"g\")"] {
        let error = run(external).unwrap_err();
        assert!(error.contains("ill-formed") && error.contains("@g"), "{external}: {error}");
    }
}
