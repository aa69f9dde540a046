//! The engines count rewrites, name them, and stop at a limit.

use anfora_ir::{Body, Context, Editor, Expr, ExprId, Function, RewriteOptions, Rewrites, WhyNot, verify_module};
use anfora_visit::pattern::{PatternOptions, StopReason, rewrite_rules};
use anfora_visit::{
    BackwardSweep, Mutator, Rewrite, RewriteError, Site, Slot, Verdict, mutate_function, rules, sweep_back,
};

use crate::programs::{first, parse};

/// Replaces `negative(x)` by `x`.
struct Dropper;

impl Mutator for Dropper {
    type Error = RewriteError;

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
    let records = module.cx.rewrites.take_records();
    assert!(records.iter().all(|r| r.function.as_deref() == Some("main") && r.pass.is_empty() && !r.is_undone));
    assert!(records.iter().map(|r| r.number).eq(1..=records.len() as u64));
    let records = records.iter().map(|r| format!("{}: {}", r.binding.as_deref().unwrap_or("-"), r.why)).collect();
    (module.to_text(), module.cx.rewrites.count(), records)
}

#[test]
fn mutators_are_not_asked_after_the_limit() {
    let run = |limit| limited(limit, |cx, function| mutate_function(cx, function, &mut Dropper).unwrap());
    let (text, count, records) = run(10);
    assert_eq!((count, text.matches("negative").count()), (3, 0));
    assert_eq!(records, ["a: replaced", "b: replaced", "-: replaced"]);
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
fn rewrites_that_are_rolled_back_are_counted_and_marked() {
    let mut module = parse(TEXT);
    module.cx.rewrites = Rewrites::new(RewriteOptions { recorded: Some(2..=3), ..RewriteOptions::default() });
    let key = first(&module);
    let (function, cx) = module.get_mut(key).unwrap();
    let rules = rules!["add(%x, %y)" => "add(%y, %x)"];
    let outcome = rewrite_rules(&mut Editor::new(cx, &mut function.body), &rules, &PatternOptions::default()).unwrap();
    assert!(outcome.was_taken_back());
    let records = module.cx.rewrites.take_records();
    assert!(records.iter().all(|record| record.is_undone) && records.len() == 2, "{records:?}");
    assert!(module.cx.rewrites.count() > 100);
}

#[test]
fn sweeps_remove_no_more_than_the_limit() {
    let run =
        |limit| limited(limit, |cx, function| _ = sweep_back(cx, &mut function.body, &mut NothingIsKept).unwrap());
    assert_eq!(run(10).2, ["unused2: removed", "unused: removed"]);
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
    assert_eq!(module.cx.rewrites.take_near_misses(), (Vec::new(), 0));
    let asked = WhyNot { what: Some("fusion".to_string()), binding: Some("b".to_string()) };
    module.cx.rewrites = Rewrites::new(RewriteOptions { explained: vec![asked], ..RewriteOptions::default() });
    ask(&mut module);
    let (misses, unkept) = module.cx.rewrites.take_near_misses();
    assert_eq!((misses.len(), unkept), (1, 0));
    assert_eq!((misses[0].binding.as_deref(), &*misses[0].why), (Some("b"), "it is used in %c"));
    assert!(module.cx.rewrites.explains("fusion") && !module.cx.rewrites.explains("fold"));
}
