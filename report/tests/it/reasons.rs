//! The reasons of rewrites in recordings.

use std::sync::Arc;

use anfora_ir::Editor;
use anfora_manager::{FunctionPass, Pass, PassContext, Sequential};
use anfora_report::Recorder;

use crate::support::{module, once};

/// Makes a pass that reports two rewrites of each function, with their reason.
fn make_two() -> FunctionPass {
    FunctionPass::new("two", 0, |edit, _, _| {
        for _ in 0..2 {
            let root = edit.function.body.root();
            let editor = Editor::new(edit.cx, &mut edit.function.body);
            if editor.may_rewrite() {
                editor.rewrote(root, "one of two");
            }
        }
        Ok(())
    })
}

fn sequence(passes: Vec<Arc<dyn Pass>>) -> Sequential {
    Sequential::new(passes).unwrap()
}

#[test]
fn each_recorder_has_the_reasons_of_its_runs() {
    let recorders = [Arc::new(Recorder::new()), Arc::new(Recorder::new())];
    let builder = recorders.iter().fold(PassContext::builder(), |builder, r| builder.instrument(r.clone()));
    let cx = builder.build().unwrap();
    let mut module = module();
    sequence(vec![Arc::new(once()), Arc::new(make_two())]).apply(&mut module, &cx).unwrap();
    for recorder in &recorders {
        let recording = recorder.recording();
        let reasons: Vec<Vec<&str>> = recording
            .runs
            .iter()
            .map(|run| run.rewrites.iter().map(|rewrite| &*recording.reasons[rewrite.why]).collect())
            .collect();
        assert_eq!(reasons, [vec![], vec!["changed the function"; 3], vec!["one of two"; 6]]);
    }
}

#[test]
fn each_run_has_room_for_records() {
    let busy = |name: &str| {
        FunctionPass::new(name, 0, |edit, _, _| {
            let root = edit.function.body.root();
            let editor = Editor::new(edit.cx, &mut edit.function.body);
            (0..10_000).for_each(|i| editor.rewrote(root, i));
            Ok(())
        })
    };
    let recorder = Arc::new(Recorder::new());
    let cx = PassContext::builder().instrument(recorder.clone()).build().unwrap();
    sequence(vec![Arc::new(busy("a")), Arc::new(busy("b"))]).apply(&mut module(), &cx).unwrap();
    let recording = recorder.recording();
    let sizes: Vec<(usize, u64)> = recording.runs.iter().map(|r| (r.rewrites.len(), r.rewrites_left_out)).collect();
    assert_eq!(sizes, [(0, 0), (20_000, 10_000), (20_000, 10_000)]);
}
