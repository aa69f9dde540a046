//! The spans and events of the feature `tracing`.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use anfora::ir::{Module, Source, parse_module};
use anfora::manager::{FunctionPass, ModulePass, Pass, PassContext, PassRegistry, parse_pipeline};
use tracing::Level;
use tracing_subscriber::fmt::format::FmtSpan;

const TEXT: &str = "
def @main(%x: float32) -> float32 { let %a = @twice(%x); let %dead = exp(%a); %a }
def private @twice(%x: float32) -> float32 { let %y = add(%x, %x); %y }
";

fn module() -> Module {
    parse_module(Source::new("test.anf", TEXT), anfora::ops::standard()).expect("it is well-formed")
}

/// The text that a subscriber has collected.
#[derive(Default)]
struct Collected(Mutex<Vec<u8>>);

impl Write for &Collected {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a pipeline of these passes on the module. Returns a line for each beginning of a span and
/// for each event, after the spans around it.
fn traced(passes: Vec<ModulePass>, functions: Vec<FunctionPass>, pipeline: &str, threads: usize) -> Vec<String> {
    let mut registry = PassRegistry::new();
    anfora::passes::register(&mut registry).unwrap();
    for pass in passes {
        registry.register_pass(pass, "").unwrap();
    }
    for pass in functions {
        registry.register_pass(pass, "").unwrap();
    }
    let context = PassContext::builder().registry(Arc::new(registry)).opt_level(1).threads(threads).worth_sharing(0);
    let context = context.build().unwrap();
    let pipeline = parse_pipeline(context.registry(), pipeline).unwrap();
    let collected = Arc::new(Collected::default());
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::DEBUG)
        .with_span_events(FmtSpan::NEW)
        .with_ansi(false)
        .without_time()
        .with_writer(collected.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        let _ = pipeline.apply(&mut module(), &context);
    });
    let text = String::from_utf8(collected.0.lock().unwrap().clone()).unwrap();
    text.lines().map(|line| line.trim().to_string()).collect()
}

#[test]
fn each_run_has_a_span_and_an_outcome() {
    let pipeline = "pass{name=\"pipeline\" kind=\"sequence\"}";
    let canonicalize = format!("{pipeline}:pass{{name=\"CanonicalizeBindings\" kind=\"function\"}}");
    let eliminate = format!("{pipeline}:pass{{name=\"DeadCodeElimination\" kind=\"module\"}}");
    let skipped = "outcome=\"skipped\" pass=\"FoldConstant\" reason=it runs from level 2, and the level is 1";
    assert_eq!(
        traced(vec![], vec![], "CanonicalizeBindings,DeadCodeElimination,FoldConstant", 1),
        [
            format!("INFO {pipeline}: anfora: new"),
            format!("INFO {canonicalize}: anfora: new"),
            format!("DEBUG {canonicalize}:function{{name=\"main\"}}: anfora: new"),
            format!("DEBUG {canonicalize}:function{{name=\"twice\"}}: anfora: new"),
            format!("INFO {canonicalize}: anfora: outcome=\"unchanged\""),
            format!("INFO {eliminate}: anfora: new"),
            format!("INFO {eliminate}: anfora: outcome=\"changed\""),
            format!("INFO {pipeline}: anfora: {skipped}"),
            format!("INFO {pipeline}: anfora: outcome=\"changed\""),
        ]
    );
}

#[test]
fn a_failure_says_why() {
    let failing = ModulePass::new("Failing", 0, |_, _| Err("out of paper".into()));
    let lines = traced(vec![failing], vec![], "Failing", 1);
    let why = "anfora: outcome=\"failed\" error=pass `Failing` failed: out of paper [pipeline]";
    let pipeline = "ERROR pass{name=\"pipeline\" kind=\"sequence\"}";
    assert_eq!(
        lines[2..],
        [format!("{pipeline}:pass{{name=\"Failing\" kind=\"module\"}}: {why}"), format!("{pipeline}: {why}")]
    );
}

#[test]
fn functions_on_other_threads_are_in_the_span_of_their_pass() {
    let lines_of = |threads| {
        let speaking = FunctionPass::new("Speaking", 0, |_, _, _| {
            // The other thread gets functions too.
            std::thread::sleep(std::time::Duration::from_millis(50));
            tracing::info!("hello");
            Ok(())
        });
        let mut lines = traced(vec![], vec![speaking], "Speaking", threads);
        lines.sort();
        lines
    };
    let one = lines_of(1);
    let of_main = "pass{name=\"Speaking\" kind=\"function\"}:function{name=\"main\"}: tracing: hello";
    assert_eq!(one.iter().filter(|line| line.ends_with(of_main)).count(), 1, "{one:#?}");
    assert_eq!(lines_of(2), one);
}
