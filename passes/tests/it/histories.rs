//! The histories of bindings that a pass makes, moves or removes beside the one that it rewrites.

use std::sync::Arc;

use anfora_ir::{Source, parse_module};
use anfora_manager::{Pass, PassContext, parse_pipeline};
use anfora_report::{BindingEventKind, Recorder};

/// Runs a pipeline, and checks the kind and the reasons of the last event of each listed binding of
/// `@main`.
#[track_caller]
fn check(pipeline: &str, text: &str, wanted: &[(&str, BindingEventKind, &str)]) {
    let mut module = parse_module(Source::new("test", text), anfora_ops::standard()).unwrap();
    let registry = anfora_passes::registry();
    let recorder = Arc::new(Recorder::new());
    let context = PassContext::builder().registry(Arc::clone(&registry)).opt_level(3).instrument(recorder.clone());
    parse_pipeline(&registry, pipeline).unwrap().apply(&mut module, &context.build().unwrap()).unwrap();
    recorder.with_recording(|recording| {
        for &(binding, kind, reason) in wanted {
            let history = recording.history("main", binding);
            let event = history.last().unwrap_or_else(|| panic!("%{binding} has no history: {module}"));
            assert_eq!((event.kind, event.reasons.join("; ").as_str()), (kind, reason), "%{binding}: {module}");
        }
    });
}

#[test]
fn the_bindings_of_a_fused_group() {
    use BindingEventKind::{Changed, Removed};
    let program = "def @main(%x: Tensor[(4,), float32]) {
        dataflow {
            let %a = exp(%x); let %b = negative(%a); let %c = tanh(%b); output(%c)
        }
        %c
    }";
    check("FuseOps", program, &[("a", Removed, "fused"), ("b", Removed, "fused"), ("c", Changed, "fused")]);
    let pattern = "FuseOpsByPattern{patterns=\"both=negative(exp(%x))\", backend=b}";
    check(pattern, program, &[("a", Removed, "both"), ("b", Changed, "both")]);
    let apart = "FuseOpsByPattern{patterns=\"e=exp(%x),n=negative(%x)\", backend=b}, MergeCompositeFunctions";
    check(apart, program, &[("a", Removed, "merged"), ("b", Changed, "merged")]);
}

#[test]
fn the_bindings_of_an_inlined_function() {
    use BindingEventKind::{Made, Removed};
    let program = "def private @twice(%y: Tensor[(4,), float32]) {
        let %sum = add(%y, %y); let %half = divide(%sum, 2f); %half
    }
    def @main(%x: Tensor[(4,), float32]) { let %a = @twice(%x); let %b = tanh(%a); %b }";
    check("InlineFunctions", program, &[("sum", Made, "inlined"), ("a", Removed, "inlined")]);
}

#[test]
fn the_bindings_of_a_decomposed_call_and_of_a_taken_branch() {
    use BindingEventKind::Changed;
    let program = "def @main(%x: Tensor[(4, 4), float32]) {
        let %s = nn.softmax(%x);
        let %t = if (true) { let %u = exp(%s); negative(%u) } else { %s };
        %t
    }";
    let folded = "it follows from constants and types";
    check("FoldConstant", program, &[("u", Changed, folded), ("t", Changed, folded)]);
    let decomposed = "other operators compute it";
    check("DecomposeOps", program, &[("s", Changed, decomposed)]);
}
