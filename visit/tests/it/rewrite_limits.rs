//! The engines count rewrites, name them, and stop at a limit.

use anfora_ir::{
    Body, Context, Editor, Expr, ExprId, Function, LogPosition, MAX_NEAR_MISSES_OF_RUN, NearMisses, RewriteOptions,
    Rewrites, WhyNot, verify_module,
};
use anfora_visit::pattern::{PatternOptions, Rule, StopReason, capture, op, rewrite_patterns, rewrite_rules};
use anfora_visit::{
    BackwardSweep, Mutator, Rewrite, RewriteError, Site, Slot, Verdict, mutate_function, rules, sweep_back,
};

use crate::programs::{edit, first, parse};

/// Replaces `negative(x)` by `x`.
struct Dropper;

impl Mutator for Dropper {
    type Error = RewriteError;
    const REASON: &'static str = "it is dropped";

    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, RewriteError> {
        let is_negative = site.editor.cx.ops.find("negative");
        Ok(match site.editor.body.expr(id) {
            Expr::CallOp { op, .. } if Some(op) == is_negative => Rewrite::Replace(site.editor.body.inputs(id)[0]),
            _ => Rewrite::Keep,
        })
    }
}

/// Replaces the value of each binding by that of `%x`, all together.
struct Together;

impl Mutator for Together {
    type Error = RewriteError;
    const NODES: bool = false;
    const SEPARABLE: bool = false;

    fn rewrite_value(&mut self, site: &mut Site<'_>, slot: Slot, _: ExprId) -> Result<Verdict, RewriteError> {
        let x = site.editor.body.params()[0].expr();
        Ok(if slot.var.is_some() { Verdict::Var(x) } else { Verdict::Keep })
    }
}

struct NothingIsKept;

impl BackwardSweep for NothingIsKept {}

const TEXT: &str = "def @main(%x: float32) {
    let %a = negative(%x);
    let %b = negative(%a);
    let %c = add(%b, %x);
    let %unused = add(%c, %c);
    let %unused2 = add(%unused, %c);
    negative(%c)
}";

/// Runs an edit with a limit. Returns the text of the block, the number of rewrites, and the
/// records as the binding and the reason.
fn limited(limit: u64, edit: impl FnOnce(&mut Context, &mut Function)) -> (String, u64, Vec<String>) {
    let mut module = parse(TEXT);
    let options = RewriteOptions { limit: Some(limit), recorded: Some(1..=u64::MAX), ..RewriteOptions::default() };
    module.cx.rewrites = Rewrites::new(options);
    module.cx.rewrites.enter_function(Some("main"));
    let key = first(&module);
    let (function, cx) = module.get_mut(key).unwrap();
    edit(cx, function);
    verify_module(&module).unwrap();
    let records = module.cx.rewrites.read_records(&mut LogPosition::default()).0;
    assert!(records.iter().all(|r| r.function.as_deref() == Some("main") && r.pass.is_empty() && !r.is_undone));
    // The first record of a rewrite is that of its own binding.
    let mut records = records;
    records.dedup_by_key(|record| record.number);
    assert!(records.iter().map(|r| r.number).eq(1..=records.len() as u64));
    let records = records.iter().map(|r| format!("{}: {}", r.binding.as_deref().unwrap_or("-"), r.why)).collect();
    (module.to_text(), module.cx.rewrites.count(), records)
}

#[test]
fn mutators_are_not_asked_after_the_limit() {
    let run = |limit| limited(limit, |cx, function| mutate_function(cx, function, &mut Dropper).unwrap());
    let (text, count, records) = run(10);
    assert_eq!((count, text.matches("negative").count()), (3, 0));
    assert_eq!(records, ["a: it is dropped", "b: it is dropped", "-: it is dropped"]);
    for limit in 0..=3 {
        let (text, count, records) = run(limit);
        assert_eq!((count, text.matches("negative").count() as u64), (limit, 3 - limit), "{text}");
        assert_eq!(records.len() as u64, limit);
    }
}

#[test]
fn answers_that_belong_together_are_not_counted() {
    let (text, count, _) = limited(0, |cx, function| mutate_function(cx, function, &mut Together).unwrap());
    assert_eq!((count, text.matches("let").count()), (0, 0), "{text}");
}

#[test]
fn rules_are_not_tried_after_the_limit() {
    let rules = rules!["negative(%x)" => "%x"];
    let run = |limit| {
        limited(limit, |cx, function| {
            let mut editor = Editor::new(cx, &mut function.body);
            let outcome = rewrite_rules(&mut editor, &rules, &PatternOptions::default()).unwrap();
            assert_eq!((outcome.stop, outcome.rewrites), (StopReason::Fixpoint, limit.min(3)));
        })
    };
    for limit in 0..=4 {
        let (text, count, records) = run(limit);
        assert_eq!((count, text.matches("negative").count() as u64), (limit.min(3), 3 - limit.min(3)), "{text}");
        let expected = ["a", "b", "-"].map(|at| format!("{at}: negative(%x) => %x"));
        assert_eq!(records, expected[..limit.min(3) as usize]);
    }
}

#[test]
fn rewrites_that_are_rolled_back_are_not_counted() {
    let before = parse(TEXT).to_text();
    // The first rule alone comes to an end.
    let rules = rules!["add(%x, %y)" => "multiply(%x, %y)", "multiply(%x, %y)" => "add(%y, %x)"];
    for limit in [None, Some(0), Some(1), Some(2), Some(3), Some(1000)] {
        let mut module = parse(TEXT);
        let options = RewriteOptions { limit, recorded: Some(1..=9), spans: true, ..RewriteOptions::default() };
        module.cx.rewrites = Rewrites::new(options);
        let key = first(&module);
        let (function, cx) = module.get_mut(key).unwrap();
        let outcome =
            rewrite_rules(&mut Editor::new(cx, &mut function.body), &rules, &PatternOptions::default()).unwrap();
        assert_eq!(outcome.was_taken_back(), limit != Some(0));
        assert_eq!((module.to_text(), module.cx.rewrites.count()), (before.clone(), 0), "{limit:?}");
        assert_eq!(module.cx.rewrites.read_records(&mut LogPosition::default()), (Vec::new(), 0));
        assert!(module.cx.rewrites.spans().is_empty());
    }
}

#[test]
fn all_bindings_that_a_rule_changes_are_recorded() {
    let mut module = parse(
        "def @main(%x: float32) {
            let %a = negative(%x);
            let %b = negative(%a);
            let %c = negative(%b);
            let %d = multiply(%c, %x);
            add(%d, %c)
        }",
    );
    module.cx.rewrites = Rewrites::new(RewriteOptions { recorded: Some(1..=9), ..RewriteOptions::default() });
    let key = first(&module);
    let (function, cx) = module.get_mut(key).unwrap();
    let rules = rules!["negative(negative(negative(%x)))" => "%x"];
    let outcome = rewrite_rules(&mut Editor::new(cx, &mut function.body), &rules, &PatternOptions::default()).unwrap();
    assert_eq!((outcome.rewrites, outcome.erased), (1, 2));
    let (records, _) = module.cx.rewrites.read_records(&mut LogPosition::default());
    assert!(records.iter().all(|record| record.number == 1 && record.why == "negative(negative(negative(%x))) => %x"));
    let names: Vec<Option<&str>> = records.iter().map(|record| record.binding.as_deref()).collect();
    // The rewritten binding, its user, and those that are erased.
    assert_eq!(names, [Some("c"), Some("d"), Some("b"), Some("a")], "{}", module.to_text());
}

#[test]
fn rewrites_that_fail_are_counted_and_marked() {
    let mut module = parse(TEXT);
    module.cx.rewrites = Rewrites::new(RewriteOptions { recorded: Some(1..=9), ..RewriteOptions::default() });
    let key = first(&module);
    let (function, cx) = module.get_mut(key).unwrap();
    let mut rules = [
        Rule::replace("drop", op("negative", [capture("x")]), capture("x")),
        Rule::new("fail", op("add", [capture("x"), capture("y")]), |_, _| Err("no".into())),
    ];
    let options = PatternOptions::default();
    rewrite_patterns(&mut Editor::new(cx, &mut function.body), &mut rules, &options).unwrap_err();
    assert_eq!(module.cx.rewrites.count(), 2);
    let records = module.cx.rewrites.read_records(&mut LogPosition::default()).0;
    assert!(records.iter().all(|record| record.is_undone) && records.len() >= 2, "{records:?}");
}

#[test]
fn sweeps_remove_no_more_than_the_limit() {
    let run =
        |limit| limited(limit, |cx, function| _ = sweep_back(cx, &mut function.body, &mut NothingIsKept).unwrap());
    assert_eq!(run(10).2, ["unused2: nothing uses it", "unused: nothing uses it"]);
    for limit in 0..=2 {
        let (text, count, _) = run(limit);
        assert_eq!((count, text.matches("let").count() as u64), (limit, 5 - limit), "{text}");
    }
}

#[test]
fn near_misses_are_recorded_only_when_someone_asks() {
    let mut module = parse(TEXT);
    let key = first(&module);
    let find = |body: &Body, cx: &Context, name: &str| {
        body.exprs().map(|(id, _)| id).find(|&id| body.as_var(id).is_some() && body.binding_name(cx, id) == Some(name))
    };
    let body = &module.get(key).unwrap().body;
    let (a, b) = (find(body, &module.cx, "a").unwrap(), find(body, &module.cx, "b").unwrap());
    let ask = |module: &mut anfora_ir::Module| {
        let (function, cx) = module.get_mut(key).unwrap();
        let editor = Editor::new(cx, &mut function.body);
        editor.nearly(a, "fusion", |_| "it is used elsewhere".to_string());
        editor.nearly(b, "fusion", |_| "it is used in %c".to_string());
        editor.nearly(b, "fold", |_| "it is too large".to_string());
    };
    ask(&mut module);
    let read = |module: &anfora_ir::Module, asked: &WhyNot| {
        module.cx.rewrites.read_near_misses(&mut LogPosition::default(), std::slice::from_ref(asked))
    };
    assert_eq!(read(&module, &WhyNot::default()), NearMisses::default());
    let asked = WhyNot { what: Some("fusion".to_string()), binding: Some("b".to_string()) };
    module.cx.rewrites = Rewrites::new(RewriteOptions { explained: vec![asked.clone()], ..RewriteOptions::default() });
    ask(&mut module);
    let NearMisses { found: misses, left_out, is_cut } = read(&module, &asked);
    assert_eq!((misses.len(), left_out, is_cut), (1, 0, false));
    assert_eq!((misses[0].binding.as_deref(), &*misses[0].why), (Some("b"), "it is used in %c"));
    assert!(module.cx.rewrites.explains("fusion") && !module.cx.rewrites.explains("fold"));
}

#[test]
fn a_full_run_keeps_near_misses_that_are_asked_for_by_name() {
    let mut module = parse("def @main(%x: float32) { let %a = negative(%x); %a }");
    let named = WhyNot { what: Some("named".to_string()), binding: None };
    let asked = [WhyNot::default(), named];
    module.cx.rewrites = Rewrites::new(RewriteOptions { explained: asked.to_vec(), ..RewriteOptions::default() });
    let miss = |module: &mut anfora_ir::Module, what: &str, numbers: std::ops::Range<usize>| {
        edit(module, |editor| {
            let root = editor.body.root();
            numbers.for_each(|i| editor.nearly(root, what, |_| format!("for reason {i}")));
        });
    };
    let mut position = LogPosition::default();
    let mut read = |module: &anfora_ir::Module| {
        let NearMisses { found, left_out, is_cut } = module.cx.rewrites.read_near_misses(&mut position, &asked);
        assert_eq!(left_out, 0);
        (found.len(), is_cut)
    };
    module.cx.rewrites.enter_pass("first");
    miss(&mut module, "rule", 0..MAX_NEAR_MISSES_OF_RUN);
    assert_eq!(read(&module), (MAX_NEAR_MISSES_OF_RUN, false));
    miss(&mut module, "rule", MAX_NEAR_MISSES_OF_RUN..MAX_NEAR_MISSES_OF_RUN + 1);
    miss(&mut module, "named", 0..10);
    assert_eq!(read(&module), (10, true));
    // The next run has room of its own.
    module.cx.rewrites.enter_pass("second");
    miss(&mut module, "rule", MAX_NEAR_MISSES_OF_RUN..MAX_NEAR_MISSES_OF_RUN + 1);
    assert_eq!(read(&module), (1, false));
}
