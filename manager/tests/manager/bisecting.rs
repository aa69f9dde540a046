//! Finding the run of a pass that breaks a program, and the files that each pass leaves.

use std::path::PathBuf;
use std::sync::Arc;

use crate::support::{bump, bumps, empty_module, idle, module};
use anfora_manager::{
    Bisect, Declare, DumpIr, ModulePass, Pass, PassContext, PassEntry, PassError, PassInfo, PassRegistry, Repeat,
    Sequential, Unchanged,
};

fn passes(names: &[&str]) -> Sequential {
    Sequential::new(names.iter().map(|n| Arc::new(bump(n)) as Arc<dyn Pass>).collect()).unwrap()
}

fn ran(bisect: &Bisect) -> Vec<(u64, String, bool)> {
    bisect.runs().into_iter().map(|r| (r.number, r.pass, r.ran)).collect()
}

#[test]
fn only_the_first_runs_run() {
    for limit in 0..=4 {
        let bisect = Arc::new(Bisect::limit(limit));
        let cx = PassContext::builder().instrument(bisect.clone()).build().unwrap();
        let mut module = empty_module();
        passes(&["a", "b", "c"]).apply(&mut module, &cx).unwrap();
        assert_eq!(bumps(&module), limit.min(3) as i64);
        let expected: Vec<_> = ["a", "b", "c"].iter().zip(1..).map(|(p, n)| (n, p.to_string(), n <= limit)).collect();
        assert_eq!(ran(&bisect), expected);
    }
}

#[test]
fn runs_are_counted_across_sequences_and_rounds() {
    let bisect = Arc::new(Bisect::interval(2..=3));
    let cx = PassContext::builder().instrument(bisect.clone()).build().unwrap();
    let rounds = Repeat::new(vec![Arc::new(passes(&["a"])), Arc::new(bump("b"))], 2).unwrap();
    let mut module = empty_module();
    rounds.apply(&mut module, &cx).unwrap();
    let expected = [(1, "a", false), (2, "b", true), (3, "a", true), (4, "b", false)];
    assert_eq!(ran(&bisect), expected.map(|(n, p, r)| (n, p.to_string(), r)));
    assert_eq!(bumps(&module), 2);
}

#[test]
fn a_pass_that_is_let_has_what_it_depends_on() {
    let mut registry = PassRegistry::new();
    registry
        .register(PassEntry {
            name: "below",
            doc: "what the other needs",
            opt_level: 0,
            options: &[],
            configs: &[],
            make: |_| Ok(Arc::new(bump("below"))),
        })
        .unwrap();
    for (limit, count) in [(0, 0), (1, 1)] {
        let bisect = Arc::new(Bisect::limit(limit));
        let cx =
            PassContext::builder().registry(Arc::new(registry.clone())).instrument(bisect.clone()).build().unwrap();
        let above = Sequential::named(
            PassInfo::new("sequence", 0),
            vec![Arc::new(ModulePass::new("above", 0, |_, _| Ok(())).requiring(["below"]))],
        )
        .unwrap();
        let mut module = empty_module();
        above.apply(&mut module, &cx).unwrap();
        assert_eq!(bumps(&module), count);
        assert_eq!(ran(&bisect), [(1, "above".to_string(), limit > 0)]);
    }
}

#[test]
fn a_required_pass_is_counted_and_runs() {
    let bisect = Arc::new(Bisect::limit(0));
    let cx = PassContext::builder().knowing("b").require("b").instrument(bisect.clone()).build().unwrap();
    let mut module = empty_module();
    passes(&["a", "b", "c"]).apply(&mut module, &cx).unwrap();
    assert_eq!(bumps(&module), 1);
    let expected = [(1, "a", false), (2, "b", true), (3, "c", false)];
    assert_eq!(ran(&bisect), expected.map(|(n, p, r)| (n, p.to_string(), r)));
}

/// A folder of its own, which is removed when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("anfora-manager-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).into_iter().flatten();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn each_pass_leaves_a_file() {
    let folder = Folder::new("dump");
    let cx = PassContext::builder().instrument(Arc::new(DumpIr::new(&folder.0, Unchanged::Dumped))).build().unwrap();
    let mut module = module();
    let before = module.to_string();
    passes(&["first", "odd / name"]).apply(&mut module, &cx).unwrap();
    idle("nothing", 0).apply(&mut module, &cx).unwrap();
    assert_eq!(folder.files(), ["000_input.anf", "001_first.anf", "002_odd___name.anf", "003_nothing.anf"]);
    assert_eq!(std::fs::read_to_string(folder.0.join("000_input.anf")).unwrap(), before);
    assert_eq!(std::fs::read_to_string(folder.0.join("003_nothing.anf")).unwrap(), module.to_string());
    // The name is longer than that of a file may be.
    bump(&"long".repeat(100)).apply(&mut module, &cx).unwrap();
    assert_eq!(folder.files().last(), Some(&format!("004_{}.anf", "long".repeat(25))));
}

#[test]
fn a_pass_that_fails_leaves_its_message_and_one_that_changes_nothing_may_leave_nothing() {
    let folder = Folder::new("dump-failure");
    let dump = Arc::new(DumpIr::new(&folder.0, Unchanged::LeftOut));
    let cx = PassContext::builder().instrument(dump.clone()).build().unwrap();
    let mut module = module();
    idle("nothing", 0).apply(&mut module, &cx).unwrap();
    bump("first").apply(&mut module, &cx).unwrap();
    ModulePass::new("second", 0, |_, _| Err(PassError::new("it does not like it")))
        .apply(&mut module, &cx)
        .unwrap_err();
    assert_eq!(dump.folder(), folder.0);
    assert_eq!(folder.files(), ["000_input.anf", "001_first.anf", "002_second.error.txt"]);
    let message = std::fs::read_to_string(folder.0.join("002_second.error.txt")).unwrap();
    assert!(message.contains("it does not like it"), "{message}");
}

#[test]
fn a_folder_that_cannot_be_written_is_a_failure_of_the_instrument() {
    let folder = Folder::new("dump-file");
    std::fs::write(&folder.0, "a file, not a folder").unwrap();
    let cx = PassContext::builder().instrument(Arc::new(DumpIr::new(&folder.0, Unchanged::Dumped))).build().unwrap();
    let mut module = module();
    let before = module.to_string();
    let failure = bump("first").apply(&mut module, &cx).unwrap_err();
    assert!(failure.to_string().contains("DumpIr"), "{failure}");
    assert_eq!(module.to_string(), before);
    std::fs::remove_file(&folder.0).unwrap();
}

#[test]
fn dependencies_sequences_and_rounds_have_files_by_pass_in_the_order_in_which_they_end() {
    let mut registry = PassRegistry::new();
    registry.register_pass(bump("below"), "what the other needs").unwrap();
    let folder = Folder::new("dump-order");
    let cx = PassContext::builder()
        .registry(Arc::new(registry))
        .instrument(Arc::new(DumpIr::new(&folder.0, Unchanged::Dumped)))
        .build()
        .unwrap();
    let above = ModulePass::new("above", 0, |_, _| Ok(())).requiring(["below"]);
    let rounds = Repeat::new(vec![Arc::new(passes(&["a"])), Arc::new(idle("b", 0))], 2).unwrap();
    let fails = ModulePass::new("fails", 0, |_, _| panic!("it does not like it"));
    let all =
        Sequential::new(vec![Arc::new(above), Arc::new(rounds), Arc::new(fails), Arc::new(bump("never"))]).unwrap();
    all.apply(&mut module(), &cx).unwrap_err();
    assert_eq!(
        folder.files(),
        [
            "000_input.anf",
            "001_below.anf",
            "002_above.anf",
            "003_a.anf",
            "004_b.anf",
            "005_a.anf",
            "006_b.anf",
            "007_fails.error.txt"
        ]
    );
}

#[test]
fn the_files_of_an_earlier_run_may_be_replaced_and_no_others_are() {
    let folder = Folder::new("dump-again");
    let run = |dump: DumpIr, names: &[&str]| {
        let cx = PassContext::builder().instrument(Arc::new(dump)).build().unwrap();
        passes(names).apply(&mut module(), &cx).unwrap();
    };
    run(DumpIr::new(&folder.0, Unchanged::Dumped), &["a", "b", "c"]);
    for name in ["notes.txt", "12_short.anf", "001_other.txt"] {
        std::fs::write(folder.0.join(name), "mine").unwrap();
    }
    run(DumpIr::new(&folder.0, Unchanged::Dumped), &["d"]);
    assert_eq!(folder.files().len(), 8);
    run(DumpIr::new(&folder.0, Unchanged::Dumped).replacing_earlier(), &["e"]);
    assert_eq!(folder.files(), ["000_input.anf", "001_e.anf", "001_other.txt", "12_short.anf", "notes.txt"]);
}
