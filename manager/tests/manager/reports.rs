//! The instruments that come with the manager.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anfora_manager::{
    Instrument, ModulePass, Pass, PassContext, PassTiming, PrintIr, PrintWhen, Repeat, RunLog, Sequential, VerifyEach,
};

use crate::support::{bump, empty_module, idle};

fn with(instrument: Arc<dyn Instrument>) -> PassContext {
    PassContext::builder().instrument(instrument).build().unwrap()
}

fn busy(name: &str) -> ModulePass {
    ModulePass::new(name, 0, |_, _| {
        let began = Instant::now();
        while began.elapsed() < Duration::from_micros(200) {}
        Ok(())
    })
}

/// Names with their depth, runs and failures.
fn tree(timing: &PassTiming) -> Vec<(String, usize, u64, u64)> {
    timing.rows().into_iter().map(|r| (r.name, r.depth, r.runs, r.failed)).collect()
}

fn row(name: &str, depth: usize, runs: u64, failed: u64) -> (String, usize, u64, u64) {
    (name.to_string(), depth, runs, failed)
}

#[test]
fn timing_is_a_tree() {
    let timing = Arc::new(PassTiming::new());
    let cx = with(timing.clone());
    let inner = Repeat::new(vec![Arc::new(bump("a")), Arc::new(busy("b"))], 3).unwrap();
    let passes = Sequential::new(vec![Arc::new(busy("b")), Arc::new(inner), Arc::new(busy("c"))]).unwrap();
    passes.apply(&mut empty_module(), &cx).unwrap();
    busy("alone").apply(&mut empty_module(), &cx).unwrap();
    assert_eq!(
        tree(&timing),
        [
            row("sequential", 0, 1, 0),
            row("b", 1, 1, 0),
            row("fixpoint<3>", 1, 1, 0),
            row("a", 2, 3, 0),
            row("b", 2, 3, 0),
            row("c", 1, 1, 0),
            row("alone", 0, 1, 0)
        ]
    );
    let rows = timing.rows();
    assert!(rows[0].total >= rows[1].total + rows[2].total + rows[5].total);
    assert_eq!(rows[0].own, rows[0].total - rows[1].total - rows[2].total - rows[5].total);
    assert_eq!(rows[1].own, rows[1].total);
    assert!(rows[4].total >= Duration::from_micros(600));
    assert_eq!(timing.total(), rows[0].total + rows[6].total);
    timing.clear();
    assert_eq!(tree(&timing), []);
}

#[test]
fn timing_holds_when_passes_fail() {
    let timing = Arc::new(PassTiming::new());
    let cx = with(timing.clone());
    let fails: [ModulePass; 2] =
        [ModulePass::new("fails", 0, |_, _| Err("no".into())), ModulePass::new("panics", 0, |_, _| panic!("no"))];
    for pass in fails {
        let passes = Sequential::new(vec![Arc::new(idle("ok", 0)), Arc::new(pass)]).unwrap();
        passes.apply(&mut empty_module(), &cx).unwrap_err();
    }
    idle("after", 0).apply(&mut empty_module(), &cx).unwrap();
    assert_eq!(
        tree(&timing),
        [
            row("sequential", 0, 2, 2),
            row("ok", 1, 2, 0),
            row("fails", 1, 1, 1),
            row("panics", 1, 1, 1),
            row("after", 0, 1, 0)
        ]
    );
}

#[test]
fn timing_reads_well_in_80_columns() {
    let timing = Arc::new(PassTiming::new());
    let cx = with(timing.clone());
    let mut pass: Arc<dyn Pass> = Arc::new(ModulePass::new("x".repeat(100), 0, |_, _| Err("no".into())));
    for _ in 0..30 {
        pass = Arc::new(Sequential::new(vec![pass]).unwrap());
    }
    pass.apply(&mut empty_module(), &cx).unwrap_err();
    let text = timing.to_string();
    assert_eq!(text.lines().count(), 1 + 31);
    assert_eq!(text.lines().next(), Some("  total ms    self ms      %   runs  pass"));
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    assert!(text.lines().last().unwrap().ends_with("x… (failed)"), "{text}");
    let json = timing.to_json();
    assert_eq!(json["passes"].as_array().unwrap().len(), 31);
    assert_eq!(json["passes"][0]["percent"], 100.0);
    assert_eq!(json["passes"][30]["failed"], 1);
}

#[test]
fn timing_of_several_threads_does_not_mix() {
    let timing = Arc::new(PassTiming::new());
    let cx = with(timing.clone());
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                let passes = Sequential::new(vec![Arc::new(busy("a")), Arc::new(busy("b"))]).unwrap();
                passes.apply(&mut empty_module(), &cx).unwrap();
            });
        }
    });
    assert_eq!(tree(&timing), [row("sequential", 0, 4, 0), row("a", 1, 4, 0), row("b", 1, 4, 0)]);
}

#[test]
fn the_log_says_what_ran_and_what_it_did() {
    let log = Arc::new(RunLog::new());
    let cx = with(log.clone());
    let fails = ModulePass::new("fails", 0, |_, _| Err("no".into()));
    let passes = Sequential::new(vec![Arc::new(bump("a")), Arc::new(idle("b", 0)), Arc::new(fails)]).unwrap();
    passes.apply(&mut empty_module(), &cx).unwrap_err();
    let records = log.records();
    let seen: Vec<_> = records.iter().map(|r| (r.pass.as_str(), r.depth, r.changed)).collect();
    assert_eq!(seen, [("a", 1, Some(true)), ("b", 1, Some(false)), ("fails", 1, None)]);
}

/// A place to print to.
#[derive(Clone, Default)]
struct Page(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Page {
    /// The headings.
    fn headings(&self) -> Vec<String> {
        let text = String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap();
        text.lines().filter(|l| l.starts_with("// ")).map(str::to_string).collect()
    }
}

#[test]
fn modules_are_printed_around_passes() {
    let page = Page::default();
    let named = |name: &str| PrintWhen::Named(vec![name.to_string()]);
    for (print, headings) in [
        (PrintIr::changed(page.clone()), vec!["// after a", "// after c"]),
        (PrintIr::new(named("b"), named("c"), page.clone()), vec!["// before b", "// after c"]),
        (PrintIr::new(PrintWhen::Never, named("sequential"), page.clone()), vec!["// after sequential"]),
        (
            PrintIr::new(PrintWhen::Always, PrintWhen::Never, page.clone()),
            vec!["// before a", "// before b", "// before c"],
        ),
    ] {
        let cx = with(Arc::new(print));
        let passes = Sequential::new(vec![Arc::new(bump("a")), Arc::new(idle("b", 0)), Arc::new(bump("c"))]).unwrap();
        passes.apply(&mut empty_module(), &cx).unwrap();
        assert_eq!(page.headings(), headings);
    }
}

#[test]
fn a_page_that_cannot_be_written_fails_the_pass() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is full"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let cx = with(Arc::new(PrintIr::changed(Full)));
    let mut module = empty_module();
    let failure = bump("a").apply(&mut module, &cx).unwrap_err();
    assert_eq!(
        failure.to_diagnostics()[0].message,
        "pass `a` failed in PrintIr (run_after): the module cannot be printed: the disk is full"
    );
    assert_eq!(crate::support::bumps(&module), 0);
}

/// Makes the last binding of @g use a variable before it is bound.
fn breaks(name: &str) -> ModulePass {
    ModulePass::new(name, 0, |module, _| {
        let key = module.find("g").expect("there is a @g");
        let (f, _) = module.get_mut(key).expect("it was just found");
        let body = &mut f.body;
        let anfora_ir::Expr::Let { value, .. } = body.expr(body.root()) else { return Err("no bindings".into()) };
        let anfora_ir::Expr::CallOp { operands, .. } = body.expr(value) else { return Err("no call".into()) };
        let last = body.tail(body.root());
        body.set_operand(operands, 0, last);
        Ok(())
    })
}

#[test]
fn an_ill_formed_result_is_taken_back_and_names_pass_function_and_binding() {
    let cx = with(Arc::new(VerifyEach::new()));
    let mut module = crate::support::module();
    let passes = Sequential::new(vec![Arc::new(bump("good")), Arc::new(breaks("bad"))]).unwrap();
    let failure = passes.apply(&mut module, &cx).unwrap_err();
    assert_eq!((failure.pass(), failure.function(), failure.binding()), ("bad", Some("g"), Some("a")));
    let said = failure.to_string();
    assert!(
        said.starts_with("pass `bad` failed in VerifyEach (run_after): the pass made an ill-formed module: "),
        "{said}"
    );
    assert!(anfora_ir::verify_module(&module).is_ok());
    assert_eq!(crate::support::bumps(&module), 1);
}

#[test]
fn an_ill_formed_input_is_not_the_fault_of_the_pass() {
    let mut module = crate::support::module();
    breaks("bad").apply(&mut module, &PassContext::new()).unwrap();
    let passes = Sequential::new(vec![Arc::new(bump("good"))]).unwrap();
    let failure = passes.apply(&mut module, &with(Arc::new(VerifyEach::with_input()))).unwrap_err();
    assert!(failure.error().message().starts_with("the module was ill-formed before the pass: "), "{failure}");
    assert_eq!(crate::support::bumps(&module), 0);
}
