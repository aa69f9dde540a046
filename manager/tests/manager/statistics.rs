//! The counts of passes.

use std::sync::Arc;

use anfora_manager::{ModulePass, Pass, PassContext, PassError, Sequential, Statistics};
use expect_test::expect;

use crate::support::empty_module;

/// Returns a text with a mark at the beginning of each line, since lines begin with blanks.
fn edged(text: &str) -> String {
    text.lines().map(|l| format!("|{l}\n")).collect()
}

/// Makes a pass that counts, and ends with the result of `end`.
fn counting(name: &str, end: fn() -> Result<(), PassError>) -> ModulePass {
    ModulePass::new(name, 0, move |_, cx| {
        cx.count("folded", 3);
        cx.count("kept", 1);
        cx.count("folded", 4);
        end()
    })
}

#[test]
fn counters_add_up_by_pass_and_what_a_failing_pass_counted_is_forgotten() {
    let ends: [fn() -> Result<(), PassError>; 2] = [|| Err("no".into()), || panic!("no")];
    for end in ends {
        let cx = PassContext::new();
        let ok = |name: &str| Arc::new(counting(name, || Ok(()))) as Arc<dyn Pass>;
        let passes =
            Sequential::new(vec![ok("a"), ok("b"), ok("a"), Arc::new(counting("a", end)), ok("never")]).unwrap();
        passes.apply(&mut empty_module(), &cx).unwrap_err();
        let statistics: Statistics = cx.statistics();
        expect![[r#"
            |     value  pass  counter
            |        14  a     folded
            |         2        kept
            |         7  b     folded
            |         1        kept
        "#]]
        .assert_eq(&edged(&statistics.to_string()));
        assert_eq!(statistics.to_json()[2], serde_json::json!({ "pass": "b", "counter": "folded", "value": 7 }));
        assert_eq!((statistics.get("a", "folded"), statistics.get("never", "folded")), (14, 0));
    }
}

#[test]
fn what_a_pass_counted_is_forgotten_when_an_instrument_does_not_let_it_pass() {
    let log = crate::support::Log::default();
    let cx =
        crate::support::context(&[crate::support::Recorder::with("i", &log, crate::support::Mischief::Fail("after"))]);
    counting("a", || Ok(())).apply(&mut empty_module(), &cx).unwrap_err();
    assert!(cx.statistics().is_empty());
    assert_eq!(cx.statistics().to_string(), "nothing was counted\n");
}

#[test]
fn it_fits_80_columns_and_keeps_the_counters_of_a_pass_together() {
    const LONG: &str = "a counter whose name is a whole sentence that says what was counted";
    let cx = PassContext::new();
    let pass = |name: &str, counter: &'static str| {
        let pass = ModulePass::new(name, 0, move |_, cx| {
            cx.count(counter, u64::MAX);
            Ok(())
        });
        pass.apply(&mut empty_module(), &cx).unwrap();
    };
    pass("short", "first");
    pass(&"x".repeat(50), LONG);
    pass("short", LONG);
    let text = cx.statistics().to_string();
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    expect![[r#"
        |     value  pass                              counter
        |  1.845e19  short                             first
        |  1.845e19                                    a counter whose name is a whole s…
        |  1.845e19  xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…  a counter whose name is a whole s…
    "#]]
    .assert_eq(&edged(&text));
}
