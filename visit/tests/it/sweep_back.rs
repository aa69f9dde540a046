//! Tests of backward sweeps over bodies in A-normal form.

use anfora_ir::{Body, Expr, ExprId, GlobalId, verify_module};
use anfora_testing::{depth, on_small_stack};
use anfora_visit::{BackwardSweep, Binding, RewriteError, sweep_back};

use crate::programs::{self, Shape, first, parse};

/// Keeps bindings of calls of functions, and records the expressions that stay.
#[derive(Default)]
struct Notes {
    values: Vec<ExprId>,
    globals: Vec<GlobalId>,
}

impl BackwardSweep for Notes {
    fn is_kept(&mut self, body: &Body, binding: Binding) -> bool {
        matches!(body.expr(binding.value), Expr::Call { .. })
    }

    fn live_value(&mut self, _: &Body, value: ExprId) {
        self.values.push(value);
    }

    fn live_global(&mut self, global: GlobalId) {
        self.globals.push(global);
    }
}

/// Sweeps the last function of a text. Returns the number of removed bindings, the new text, and
/// the notes.
fn swept(text: &str) -> Result<(usize, String, Notes), RewriteError> {
    let mut module = parse(text);
    let key = *module.order().last().unwrap();
    let (function, cx) = module.get_mut(key).unwrap();
    let mut notes = Notes::default();
    let removed = sweep_back(cx, &mut function.body, &mut notes)?;
    if let Err(errors) = verify_module(&module) {
        panic!("{errors:?}\n{module}");
    }
    Ok((removed, module.to_text(), notes))
}

#[test]
fn users_go_before_what_they_use() {
    let text = "def @main(%x: float32) { let %a = negative(%x); let %b = negative(%a); let %c = negative(%b); %x }";
    let (removed, after, notes) = swept(text).unwrap();
    assert_eq!(removed, 3);
    assert!(!after.contains("negative"), "{after}");
    assert_eq!(notes.values.len(), 1, "the tail");
}

#[test]
fn kept_bindings_keep_what_they_use() {
    let text = "def @f(%x: float32) -> float32 { %x }
        def @main(%x: float32) { let %a = negative(%x); let %b = negative(%a); let %c = @f(%a); %x }";
    let (removed, after, notes) = swept(text).unwrap();
    assert_eq!((removed, notes.values.len(), notes.globals.len()), (1, 3, 1));
    assert!(after.contains("%a = ") && after.contains("%c = ") && !after.contains("%b = "), "{after}");
}

#[test]
fn blocks_of_dead_values_go_with_them() {
    let text = "def @main(%x: float32, %c: bool) {
            let %dead = if (%c) { let %p = negative(%x); %p } else { %x };
            let %live = if (%c) { let %q = negative(%x); let %r = negative(%x); %r } else { %x };
            let %f = fn (%y: float32) -> float32 { let %s = negative(%y); let %t = negative(%y); %t };
            let %z = %f(%live);
            %z
        }";
    let (removed, after, _) = swept(text).unwrap();
    assert_eq!(removed, 3, "`%dead`, `%q` and `%s`");
    let has = |name: &str| after.contains(&format!("%{name} = "));
    assert!(!has("dead") && !has("p") && !has("q") && !has("s"), "{after}");
    assert!(has("live") && has("r") && has("f") && has("t") && has("z"), "{after}");
}

#[test]
fn a_region_begins_with_the_first_binding_that_stays() {
    let text = "def @main(%x: float32) {
            dataflow { let %a = negative(%x); let %b = negative(%x); output(%b) }
            dataflow { let %c = negative(%b); output(%c) }
            dataflow { let %d = negative(%b); let %e = negative(%d); output(%e) }
            %e
        }";
    let (removed, after, _) = swept(text).unwrap();
    assert_eq!(removed, 2);
    assert_eq!(after.matches("dataflow").count(), 2, "{after}");
}

#[test]
fn other_forms_are_refused_by_name() {
    let text = "def @main(%x: float32) { let %a = negative(negative(%x)); %a }";
    let Err(error) = swept(text) else { panic!("the operand is no atom") };
    assert_eq!(error, RewriteError::NotANormalForm { name: "a".to_string() });
}

#[test]
fn deep_programs_are_swept_on_a_small_stack() {
    for shape in [Shape::Chain, Shape::NestedIf, Shape::NestedFn] {
        on_small_stack(move || {
            let mut module = programs::deep(shape, depth(5_000));
            let key = first(&module);
            let (function, cx) = module.get_mut(key).unwrap();
            let mut notes = Notes::default();
            sweep_back(cx, &mut function.body, &mut notes).unwrap();
            assert!(!notes.values.is_empty() && verify_module(&module).is_ok(), "{shape:?}");
        });
    }
}
