//! The times of passes, as a tree, a table, JSON and a trace.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anfora_manager::{
    Instrument, MAX_TIMED_RUNS, ModulePass, Outcome, Pass, PassContext, PassError, PassFailure, PassRun, PassTiming,
    Repeat, Sequential,
};
use expect_test::expect;

use crate::support::{Log, Mischief, Recorder, bump, empty_module, idle, module};

fn with(instruments: Vec<Arc<dyn Instrument>>) -> PassContext {
    instruments.into_iter().fold(PassContext::builder(), |b, i| b.instrument(i)).build().unwrap()
}

fn spin(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {}
}

fn busy(name: &str) -> ModulePass {
    ModulePass::new(name, 0, |_, _| {
        spin(Duration::from_micros(200));
        Ok(())
    })
}

/// Returns the names with their depth, runs and failures.
fn tree(timing: &PassTiming) -> Vec<(String, usize, u64, u64)> {
    timing.rows().into_iter().map(|r| (r.name, r.depth, r.runs, r.failed)).collect()
}

fn row(name: &str, depth: usize, runs: u64, failed: u64) -> (String, usize, u64, u64) {
    (name.to_string(), depth, runs, failed)
}

/// Returns the table without the figures that differ from run to run, and with a mark at the
/// beginning of each line, since lines begin with blanks.
fn masked(timing: &PassTiming) -> String {
    let text = timing.to_string();
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    let lines = text.lines().enumerate().map(|(i, line)| match i {
        0 => format!("|{line}\n"),
        _ => format!("|{:>10} {:>10} {:>5} {:>5}{}\n", "#", "#", "#", "#", &line[33..]),
    });
    lines.collect()
}

#[test]
fn it_is_a_tree() {
    let timing = Arc::new(PassTiming::new());
    let cx = with(vec![timing.clone()]);
    let inner = Repeat::new(vec![Arc::new(bump("a")), Arc::new(busy("b"))], 3).unwrap();
    let passes = Sequential::new(vec![Arc::new(busy("b")), Arc::new(inner), Arc::new(busy("c"))]).unwrap();
    cx.scope(|| {
        passes.apply(&mut empty_module(), &cx).unwrap();
        busy("alone").apply(&mut empty_module(), &cx).unwrap();
        assert_eq!(tree(&timing).len(), 7);
    })
    .unwrap();
    // The times are kept after the context is left.
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
    expect![[r#"
        |  total ms    self ms     %  % up     runs  pass
        |         #          #     #     #        1  sequential
        |         #          #     #     #        1    b
        |         #          #     #     #        1    fixpoint<3>
        |         #          #     #     #        3      a
        |         #          #     #     #        3      b
        |         #          #     #     #        1    c
        |         #          #     #     #        1  alone
    "#]]
    .assert_eq(&masked(&timing));
    let json = timing.to_json();
    let shares: f64 = [0, 6].iter().map(|&i| json["passes"][i]["percent"].as_f64().unwrap()).sum();
    assert!((shares - 100.0).abs() < 1e-6, "{json}");
    let shares: f64 = [1, 2, 5].iter().map(|&i| json["passes"][i]["percent_of_parent"].as_f64().unwrap()).sum();
    assert!(shares > 0.0 && shares <= 100.0, "{json}");
    timing.clear();
    assert_eq!(tree(&timing), []);
    assert_eq!(timing.to_string(), "no pass ran\n");
}

#[test]
fn it_holds_when_passes_fail() {
    let timing = Arc::new(PassTiming::new());
    let cx = with(vec![timing.clone()]);
    let fails: [ModulePass; 2] =
        [ModulePass::new("fails", 0, |_, _| Err("no".into())), ModulePass::new("panics", 0, |_, _| panic!("no"))];
    for pass in fails {
        let inner = Repeat::new(vec![Arc::new(bump("ok")), Arc::new(pass)], 4).unwrap();
        let passes = Sequential::new(vec![Arc::new(inner), Arc::new(idle("never", 0))]).unwrap();
        passes.apply(&mut empty_module(), &cx).unwrap_err();
    }
    idle("after", 0).apply(&mut empty_module(), &cx).unwrap();
    expect![[r#"
        |  total ms    self ms     %  % up     runs  pass
        |         #          #     #     #        2  sequential (failed)
        |         #          #     #     #        2    fixpoint<4> (failed)
        |         #          #     #     #        2      ok
        |         #          #     #     #        1      fails (failed)
        |         #          #     #     #        1      panics (failed)
        |         #          #     #     #        1  after
    "#]]
    .assert_eq(&masked(&timing));
}

#[test]
fn it_holds_when_instruments_fail_on_either_side_of_it() {
    for mischief in
        [Mischief::Fail("before"), Mischief::Panic("before"), Mischief::Fail("after"), Mischief::Panic("after")]
    {
        let before = matches!(mischief, Mischief::Fail("before") | Mischief::Panic("before"));
        for first in [false, true] {
            let timing = Arc::new(PassTiming::new());
            let bad = Recorder::with("bad", &Log::default(), mischief);
            let cx = match first {
                true => with(vec![timing.clone(), bad]),
                false => with(vec![bad, timing.clone()]),
            };
            bump("pass").apply(&mut empty_module(), &cx).unwrap_err();
            // A timing that comes first sees the end of the pass before the other instrument fails.
            // A timing that comes after an instrument that fails before the pass does not see its
            // beginning.
            match (first, before) {
                (true, true) | (false, false) => assert_eq!(tree(&timing), [row("pass", 0, 1, 1)]),
                (true, false) => assert_eq!(tree(&timing), [row("pass", 0, 1, 0)]),
                (false, true) => assert_eq!(tree(&timing), []),
            }
            // No run is left open.
            cx.override_instruments(vec![timing.clone()]).unwrap();
            idle("next", 0).apply(&mut empty_module(), &cx).unwrap();
            assert_eq!(timing.rows().last().map(|r| (r.name.as_str(), r.depth)), Some(("next", 0)));
        }
    }
}

/// An instrument whose hooks take time.
struct Slow;

const SLOW: Duration = Duration::from_millis(5);

impl Instrument for Slow {
    fn name(&self) -> &str {
        "Slow"
    }
    fn should_run(&self, _: &anfora_ir::Module, _: &PassRun<'_>) -> Result<bool, PassError> {
        spin(SLOW);
        Ok(true)
    }
    fn run_before(&self, _: &anfora_ir::Module, _: &PassRun<'_>) -> Result<(), PassError> {
        spin(SLOW);
        Ok(())
    }
    fn run_after(&self, _: &anfora_ir::Module, _: &PassRun<'_>, _: &Outcome) -> Result<(), PassError> {
        spin(SLOW);
        Ok(())
    }
    fn on_error(&self, _: &anfora_ir::Module, _: &PassRun<'_>, _: &PassFailure) {
        spin(SLOW);
    }
}

#[test]
fn what_instruments_do_is_not_counted_wherever_they_stand() {
    for order in 0..2 {
        let timing = Arc::new(PassTiming::new());
        let mut instruments: Vec<Arc<dyn Instrument>> = vec![timing.clone(), Arc::new(Slow)];
        instruments.rotate_left(order);
        let cx = with(instruments);
        let inner = Sequential::new(vec![Arc::new(busy("a")), Arc::new(busy("b"))]).unwrap();
        let fails = ModulePass::new("fails", 0, |_, _| Err("no".into()));
        let passes = Sequential::new(vec![Arc::new(inner), Arc::new(fails)]).unwrap();
        passes.apply(&mut empty_module(), &cx).unwrap_err();
        let trace = timing.to_chrome_trace();
        let hooks: Vec<f64> = trace["traceEvents"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|e| e["ph"] == "X")
            .map(|e| e["dur"].as_f64().unwrap() - e["args"]["time_us"].as_f64().unwrap())
            .collect();
        // Each pass inside of another has three hooks. The outer sequence has four passes inside,
        // the inner one two, and the others none.
        let slow = SLOW.as_secs_f64() * 1e6;
        assert!(hooks[0] >= 12.0 * slow && hooks[1] >= 6.0 * slow, "{trace}");
        assert_eq!(hooks[2..], [0.0; 3]);
    }
}

#[test]
fn it_reads_well_however_long_names_are_and_deep_sequences_nest() {
    let timing = Arc::new(PassTiming::new());
    let cx = with(vec![timing.clone()]);
    let mut pass: Arc<dyn Pass> = Arc::new(ModulePass::new("x".repeat(100), 0, |_, _| Err("no".into())));
    for _ in 0..30 {
        pass = Arc::new(Sequential::new(vec![pass]).unwrap());
    }
    pass.apply(&mut empty_module(), &cx).unwrap_err();
    let text = masked(&timing);
    assert_eq!(text.lines().count(), 1 + 31);
    let lines: Vec<&str> = text.lines().collect();
    expect![[r#"
        |         #          #     #     #        1                  sequential (failed)
        |         #          #     #     #        1                  9: sequent… (failed)
        |         #          #     #     #        1                  30: xxxxxx… (failed)"#]]
    .assert_eq(&[lines[9], lines[10], lines[31]].join("\n"));
    let json = timing.to_json();
    assert_eq!(json["passes"].as_array().unwrap().len(), 31);
    assert_eq!(json["passes"][0]["percent"], 100.0);
    assert_eq!(json["passes"][30]["failed"], 1);
}

#[test]
fn threads_do_not_mix() {
    let timing = Arc::new(PassTiming::new());
    let cx = with(vec![timing.clone()]);
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
fn a_trace_has_every_run_inside_of_the_one_around_it() {
    let timing = Arc::new(PassTiming::new());
    let cx = with(vec![timing.clone()]);
    let fails = ModulePass::new("fails", 0, |_, _| Err("no".into()));
    let rounds = Repeat::new(vec![Arc::new(bump("a")), Arc::new(busy("b"))], 2).unwrap();
    let passes = Sequential::new(vec![Arc::new(rounds), Arc::new(fails)]).unwrap();
    passes.apply(&mut module(), &cx).unwrap_err();
    let trace = timing.to_chrome_trace();
    let events: Vec<_> = trace["traceEvents"].as_array().unwrap().iter().filter(|e| e["ph"] == "X").collect();
    let said: Vec<String> = events
        .iter()
        .map(|e| format!("{} {} {} {}", e["name"], e["args"]["outcome"], e["args"]["functions"], e["tid"]))
        .collect();
    assert_eq!(
        said,
        [
            r#""sequential" "failed" 3 0"#,
            r#""fixpoint<2>" "changed" 3 0"#,
            r#""a" "changed" 3 0"#,
            r#""b" "unchanged" 3 0"#,
            r#""a" "changed" 3 0"#,
            r#""b" "unchanged" 3 0"#,
            r#""fails" "failed" 3 0"#
        ]
    );
    let span = |i: usize| {
        let (ts, dur) = (events[i]["ts"].as_f64().unwrap(), events[i]["dur"].as_f64().unwrap());
        (ts, ts + dur)
    };
    assert_eq!(span(0).0, 0.0);
    for (outer, inner) in [(0, 1), (1, 2), (1, 5), (0, 6)] {
        let ((a, b), (c, d)) = (span(outer), span(inner));
        assert!(a <= c && d <= b + 1e-3, "{trace}");
    }
    assert_eq!(trace["otherData"]["runs_left_out"], 0);
    assert_eq!(events[0]["args"]["time_us"], timing.to_json()["passes"][0]["total_us"]);
}

#[test]
fn a_trace_is_bounded() {
    let timing = Arc::new(PassTiming::new());
    let cx = with(vec![timing.clone()]);
    let (pass, mut module) = (idle("pass", 0), empty_module());
    for _ in 0..MAX_TIMED_RUNS + 3 {
        pass.apply(&mut module, &cx).unwrap();
    }
    let trace = timing.to_chrome_trace();
    assert_eq!(trace["traceEvents"].as_array().unwrap().len(), 1 + MAX_TIMED_RUNS);
    assert_eq!(trace["otherData"]["runs_left_out"], 3);
    assert_eq!(timing.rows()[0].runs as usize, MAX_TIMED_RUNS + 3);
}
