//! anfora: the program through every stage. Passes that need other programs run on the shapes on
//! which they are compared.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anfora::ir::{
    Body, Counts, DType, Editor, ExprId, FunctionBuilder, Literal, Module, Source, parse_module, verify_module,
};
use anfora::manager::{Pass, PassContext, PassRegistry, VerifyEach, parse_pipeline};
use anfora::visit::{Binding, Mutator, RewriteError, Visit, Visitor, mutate, walk};

use crate::program::{Op, Program, main_body, module};
use crate::stage::Report;

/// The stages that are pipelines. The program is verified after each pass if the name of the stage
/// says so.
const PIPELINES: [(&str, &str, Verified); 10] = [
    ("cse", "EliminateCommonSubexpr", Verified::No),
    ("cse-dce", "EliminateCommonSubexpr,DeadCodeElimination", Verified::No),
    ("dce", "DeadCodeElimination", Verified::No),
    ("fold", "FoldConstant", Verified::No),
    ("fold-dce", "FoldConstant,DeadCodeElimination", Verified::No),
    ("canonicalize", "CanonicalizeBindings", Verified::No),
    ("fold-canonicalize", "FoldConstant,CanonicalizeBindings", Verified::No),
    ("cse-canonicalize-dce", "EliminateCommonSubexpr,CanonicalizeBindings,DeadCodeElimination", Verified::No),
    ("pipeline", "FoldConstant,EliminateCommonSubexpr,DeadCodeElimination", Verified::No),
    ("pipeline-verified", "FoldConstant,EliminateCommonSubexpr,DeadCodeElimination", Verified::AfterEach),
];

#[derive(Copy, Clone, PartialEq)]
enum Verified {
    No,
    AfterEach,
}

/// Times all stages.
pub(crate) fn time(report: &mut Report<impl Write>) {
    let registry = anfora::passes::registry();
    let n = report.n();
    let chain = module("chain", n);
    let text = chain.to_text();
    let program = Program::new(n);
    report.stage("build", || (), |()| build(&program), bindings);
    report.stage("parse", || (), |()| parse(&text), bindings);
    let parse_and_verify = |()| {
        let module = parse(&text);
        verify(&module);
        module
    };
    report.stage("parse-verify", || (), parse_and_verify, bindings);
    report.stage("print", || (), |()| chain.to_text(), |text| Some(text.matches(" let ").count()));
    report.stage("verify", || (), |()| verify(&chain), |()| None);
    report.stage("visit", || (), |()| count_bindings(main_body(&chain)), |&count| Some(count));
    report.stage("mutate", || chain.clone(), change_nothing, bindings);
    for (stage, pipeline, verified) in PIPELINES {
        report.stage(stage, || chain.clone(), |m| run(&registry, pipeline, verified, m), bindings);
    }
    report.stage("fuse", || chain.clone(), |m| run(&registry, "FuseOps", Verified::No, m), main_bindings);
    for (stage, shape) in [("lift-siblings", "siblings"), ("lift-nested", "nested-fn")] {
        let module = module(shape, n);
        report.stage(stage, || module.clone(), |m| run(&registry, "LambdaLifting", Verified::No, m), functions);
    }
}

/// Reads a program, runs a pipeline, and writes the result, each once and timed.
///
/// # Errors
/// If a file cannot be read or written.
pub(crate) fn process(
    report: &mut Report<impl Write>,
    stage: &str,
    pipeline: &str,
    input: &Path,
    output: &Path,
) -> std::io::Result<()> {
    let text = std::fs::read_to_string(input)?;
    let (mut module, mut printed) = (None, String::new());
    report.stage("parse", || (), |()| module = Some(parse(&text)), |_| None);
    let registry = anfora::passes::registry();
    let make = || module.take().expect("each stage runs once");
    let mut done = None;
    let work = |m| done = Some(run(&registry, pipeline, Verified::No, m));
    report.stage(stage, make, work, |_| None);
    let done = done.expect("each stage runs once");
    report.stage("print", || (), |()| printed = done.to_text(), |_| bindings(&done));
    std::fs::write(output, printed)
}

/// Builds the program. As in the other systems, each constant is made once, and values have no
/// names.
fn build(program: &Program) -> Module {
    let mut module = Module::new(anfora::ops::standard());
    let [add, multiply, subtract] =
        ["add", "multiply", "subtract"].map(|op| module.cx.ops.resolve(op).expect("a standard operator"));
    let no_attrs = module.cx.attrs.empty();
    let mut builder = FunctionBuilder::new(&mut module, "main");
    let ty = builder.cx().types.static_tensor(DType::Float32, &[8]);
    let x = builder.param("x", ty);
    builder.begin_dataflow();
    let constants: Vec<ExprId> = program.constants.iter().map(|&c| builder.literal(Literal::splat(&[8], c))).collect();
    let mut results: Vec<ExprId> = Vec::with_capacity(program.operations.len());
    for &(op, lhs, rhs) in &program.operations {
        let operands = [lhs, rhs].map(|operand| operand.value(x, &results, &constants));
        let op = match op {
            Op::Add => add,
            Op::Multiply => multiply,
            Op::Subtract => subtract,
        };
        let call = builder.editor().call_op(op, &operands, no_attrs).expect("the operands are tensors of one type");
        results.push(builder.bind("", call));
    }
    let last = *results.last().expect("the program has an operation");
    builder.end_dataflow(&[last]);
    builder.finish(last).expect("all blocks are closed");
    module
}

fn bindings(module: &Module) -> Option<usize> {
    Some(Counts::of_module(module).bindings)
}

fn functions(module: &Module) -> Option<usize> {
    Some(Counts::of_module(module).functions)
}

fn main_bindings(module: &Module) -> Option<usize> {
    Some(count_bindings(main_body(module)))
}

fn parse(text: &str) -> Module {
    match parse_module(Source::new("chain.anf", text), anfora::ops::standard()) {
        Ok(module) => module,
        Err(errors) => panic!("{}", errors[0]),
    }
}

fn verify(module: &Module) {
    if let Err(errors) = verify_module(module) {
        panic!("{}", errors[0]);
    }
}

fn run(registry: &Arc<PassRegistry>, pipeline: &str, verified: Verified, mut module: Module) -> Module {
    let context = PassContext::builder().registry(Arc::clone(registry)).opt_level(3);
    let context = match verified {
        Verified::No => context,
        Verified::AfterEach => context.instrument(Arc::new(VerifyEach::new())),
    };
    let context = context.build().expect("an empty configuration is valid");
    let pipeline = parse_pipeline(registry, pipeline).expect("a pipeline of registered passes");
    if let Err(failure) = pipeline.apply(&mut module, &context) {
        panic!("{failure}");
    }
    module
}

/// A visitor that counts bindings, so that the walk has a result.
struct CountBindings(usize);

impl Visitor for CountBindings {
    type Break = std::convert::Infallible;

    fn visit_binding(&mut self, _: &Body, _: Binding) -> Visit<Self::Break> {
        self.0 += 1;
        Visit::Continue
    }
}

fn count_bindings(body: &Body) -> usize {
    let mut visitor = CountBindings(0);
    let ControlFlow::Continue(()) = walk(body, &mut visitor);
    visitor.0
}

struct ChangeNothing;

impl Mutator for ChangeNothing {
    type Error = RewriteError;
}

fn change_nothing(mut module: Module) -> Module {
    let main = module.find("main").expect("the program has a main");
    let (function, cx) = module.get_mut(main).expect("it is defined");
    mutate(&mut Editor::new(cx, &mut function.body), &mut ChangeNothing).expect("nothing is rewritten");
    module
}
