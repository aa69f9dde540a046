//! Reproducers on disk while passes run, and replaying them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use anfora_ir::{Module, Source, parse_module};
use anfora_manager::{
    ConfigDef, Declare, Instrument, ModulePass, OptionDef, Outcome, Pass, PassContext, PassEntry, PassError,
    PassRegistry, PassRun, Reproducer, ReproducerFile, Verdict, VerifyEach, parse_pipeline,
};

use crate::support::{bump, bumps, empty_module, idle, module, ops, set_bumps};

/// Returns the path of a file of a test. The file does not exist.
fn file(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("anfora-reproducers-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    let _ = fs::remove_file(&path);
    path
}

const EXPLODE: PassEntry = PassEntry {
    name: "Explode",
    doc: "Fails on the second bump",
    opt_level: 1,
    options: &[OptionDef::text("message", "it exploded", "What it says")],
    configs: &[],
    make: |options| {
        let message: String = options.get("message")?;
        let pass = ModulePass::new("Explode", 1, move |module, cx| {
            let n = bumps(module);
            set_bumps(module, 1000);
            let limit: i64 = cx.config("Explode.limit")?;
            if n >= limit { Err(PassError::new(message.clone()).in_function("f")) } else { Ok(()) }
        });
        Ok(Arc::new(pass))
    },
};

fn registry() -> Arc<PassRegistry> {
    let mut registry = PassRegistry::new();
    registry.register(EXPLODE).unwrap();
    registry.register_pass(bump("Bump"), "Counts").unwrap();
    registry.register_pass(idle("Idle", 3), "Nothing").unwrap();
    registry.register_pass(ModulePass::new("Abort", 0, |_, _| std::process::abort()), "The end").unwrap();
    registry.register_config(ConfigDef::int("Explode.limit", 0, 100, 50, "How many bumps are right")).unwrap();
    registry.register_pipeline("All", "Bump,Idle", "Both").unwrap();
    Arc::new(registry)
}

fn context(path: &PathBuf, after: &[Arc<dyn Instrument>]) -> PassContext {
    let mut builder = PassContext::builder()
        .registry(registry())
        .opt_level(1)
        .threads(3)
        .require("Bump")
        .disable("Idle")
        .config("Explode.limit", 2)
        .instrument(Arc::new(Reproducer::new(path)));
    for instrument in after {
        builder = builder.instrument(instrument.clone());
    }
    builder.build().unwrap()
}

fn run(pipeline: &str, cx: &PassContext, module: &mut Module) -> Result<Outcome, anfora_manager::PassFailure> {
    parse_pipeline(cx.registry(), pipeline).unwrap().apply(module, cx)
}

fn read(path: &PathBuf) -> ReproducerFile {
    let text = fs::read_to_string(path).unwrap();
    ReproducerFile::parse(Source::new("file", text)).unwrap()
}

#[test]
fn a_failing_pass_leaves_what_it_failed_on() {
    let path = file("failing.anf");
    let mut module = module();
    let failure = run("Bump,fixpoint<3>(Bump,Explode{message=\"a \\\\ b\"})", &context(&path, &[]), &mut module);
    assert_eq!(failure.unwrap_err().path(), ["pipeline", "fixpoint<3>"]);

    let text = fs::read_to_string(&path).unwrap();
    let header: Vec<&str> = text.lines().take_while(|l| l.starts_with("//")).collect();
    assert_eq!(
        header,
        [
            "// anfora reproducer 1",
            "// pass: Explode",
            "// within: pipeline",
            "// within: fixpoint<3>",
            "// pipeline: Explode{message=\"a \\\\\\\\ b\"}",
            "// level: 1",
            "// threads: 3",
            "// require: Bump",
            "// disable: Idle",
            "// config: Explode.limit=2",
            "// instrument: Reproducer",
            "// failure: pass `Explode` failed: a \\\\ b",
            "// place: @f",
            "// ----",
        ]
    );
    // The module before the pass, as any reader of programs reads it.
    assert_eq!(bumps(&module), 2);
    let program = parse_module(Source::new("file", text.clone()), ops()).unwrap();
    assert_eq!(program.to_text(), module.to_text());
    assert!(text.ends_with(&module.to_text()));

    let file = read(&path);
    assert_eq!((file.pass(), file.place(), file.opt_level()), ("Explode", Some("@f"), 1));
    assert_eq!(file.failure(), Some("pass `Explode` failed: a \\ b"));
    let replay = file.run(&registry(), ops(), &[]).unwrap();
    assert_eq!(replay.verdict, Verdict::FailedAsRecorded);
    assert_eq!((file.threads(), replay.context.threads()), (3, 3));
    assert_eq!(replay.module.to_text(), module.to_text());
}

#[test]
fn what_finishes_well_leaves_nothing() {
    let path = file("well.anf");
    let cx = context(&path, &[]);
    let mut module = module();
    run("All,Bump,Explode", &cx, &mut module).unwrap_err();
    assert!(path.exists());
    run("Bump,All", &cx, &mut empty_module()).unwrap();
    assert!(!path.exists());
    assert_eq!(
        fs::read_dir(path.parent().unwrap())
            .unwrap()
            .filter(|f| f.as_ref().unwrap().file_name().to_string_lossy().starts_with("well"))
            .count(),
        0
    );

    // A file that this instrument did not write is kept.
    fs::write(&path, "mine").unwrap();
    run("", &cx, &mut module).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

/// Reads the file while the pass runs.
#[test]
fn the_file_is_there_before_the_pass_runs() {
    let path = file("before.anf");
    let seen = path.clone();
    let look = ModulePass::new("Look", 0, move |module, cx| {
        let file = read(&seen);
        assert_eq!((file.pass(), file.failure()), ("Look", None));
        assert_eq!(file.module(ops()).unwrap().to_text(), module.to_text());
        // A pass that a pass runs itself belongs to that pass.
        bump("Inner").apply(module, cx)?;
        bump("Inner").apply(module, &cx.derive().build().unwrap())?;
        assert_eq!(read(&seen).pass(), "Look");
        Ok(())
    });
    let cx = PassContext::builder().instrument(Arc::new(Reproducer::new(&path))).build().unwrap();
    look.apply(&mut module(), &cx).unwrap();
    assert!(!path.exists());
}

struct Reject;

impl Instrument for Reject {
    fn name(&self) -> &str {
        "Reject"
    }

    fn run_after(&self, _: &Module, run: &PassRun<'_>, _: &Outcome) -> Result<(), PassError> {
        if run.depth() == 0 || run.name() == "Bump" { Err("not this".into()) } else { Ok(()) }
    }
}

#[test]
fn what_a_later_instrument_rejects_stays() {
    let path = file("rejected.anf");
    for (pipeline, pass) in [("Bump", "Bump"), ("", "pipeline")] {
        let mut module = module();
        run(pipeline, &context(&path, &[Arc::new(VerifyEach::new()), Arc::new(Reject)]), &mut module).unwrap_err();
        let file = read(&path);
        assert_eq!(file.pass(), pass);
        assert_eq!(file.failure(), Some(format!("pass `{pass}` failed in Reject (run_after): not this").as_str()));
        assert_eq!(file.instruments().collect::<Vec<_>>(), ["Reproducer", "VerifyEach", "Reject"]);
        // Without the instrument the pass succeeds, and with it the recorded failure occurs again.
        assert_eq!(file.run(&registry(), ops(), &[]).unwrap().verdict, Verdict::Passed);
        if pass == "Bump" {
            let again = file.run(&registry(), ops(), &[Arc::new(Reject)]).unwrap();
            assert_eq!(again.verdict, Verdict::FailedAsRecorded);
        }
    }
    // The same for a pass without a sequence around it.
    bump("Bump").apply(&mut module(), &context(&path, &[Arc::new(Reject)])).unwrap_err();
    assert_eq!(read(&path).failure(), Some("pass `Bump` failed in Reject (run_after): not this"));
}

#[test]
fn a_sequence_that_fails_between_its_passes_is_written_as_a_whole() {
    struct Ask;
    impl Instrument for Ask {
        fn name(&self) -> &str {
            "Ask"
        }
        fn should_run(&self, _: &Module, run: &PassRun<'_>) -> Result<bool, PassError> {
            if run.name() == "Explode" { Err("no answer".into()) } else { Ok(true) }
        }
    }
    let path = file("between.anf");
    let mut module = module();
    run("Bump,Explode", &context(&path, &[Arc::new(Ask)]), &mut module).unwrap_err();
    let file = read(&path);
    assert_eq!((file.pass(), file.pipeline_text()), ("pipeline", "Bump,Explode"));
    assert_eq!(bumps(&file.module(ops()).unwrap()), 1);
}

#[test]
fn a_dependency_of_a_higher_level_runs_again() {
    let path = file("dependency.anf");
    let mut registry = PassRegistry::new();
    let fails = ModulePass::new("High", 3, |_, _| Err("too high".into()));
    registry.register_pass(fails, "Fails").unwrap();
    let registry = Arc::new(registry);
    let reproducer = Arc::new(Reproducer::new(&path));
    let cx = PassContext::builder()
        .registry(registry.clone())
        .opt_level(0)
        .knowing("Low")
        .instrument(reproducer)
        .build()
        .unwrap();
    idle("Low", 0).requiring(["High"]).apply(&mut module(), &cx).unwrap_err();
    assert_eq!(read(&path).run(&registry, ops(), &[]).unwrap().verdict, Verdict::FailedAsRecorded);
}

#[test]
fn a_file_that_cannot_be_written_fails_the_pass() {
    let path = file("no").join("such").join("folder.anf");
    let failure = run("Bump", &context(&path, &[]), &mut module()).unwrap_err();
    assert!(failure.to_string().contains("folder.anf` cannot be written"), "{failure}");
}

#[test]
fn only_reproducers_are_replaced() {
    let path = file("other.anf");
    let refused = |path: &PathBuf| {
        let failure = run("Bump", &context(path, &[]), &mut module()).unwrap_err();
        let said = failure.to_diagnostics().iter().map(ToString::to_string).collect::<String>();
        assert!(said.contains("what is there is not a reproducer, and is left as it is"), "{said}");
    };
    for text in ["def @main() { 1f }", "// anfora", "\u{fe}"] {
        std::fs::write(&path, text).unwrap();
        refused(&path);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
    std::fs::write(&path, "").unwrap();
    run("Bump,Bump,Explode", &context(&path, &[]), &mut module()).unwrap_err();
    assert_eq!(read(&path).pass(), "Explode");
    run("Bump", &context(&path, &[]), &mut module()).unwrap();
    assert!(!path.exists());
    #[cfg(unix)]
    {
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        refused(&path);
        assert!(path.exists());
        std::fs::remove_file(&path).unwrap();
    }
}

/// The variable that makes the test abort in a child process.
const ABORTS: &str = "ANFORA_TEST_ABORTS";

#[test]
fn a_process_that_dies_leaves_a_reproducer() {
    if let Some(path) = std::env::var_os(ABORTS) {
        let cx = context(&PathBuf::from(path), &[]);
        let _ = run("Bump,All,Abort,Bump", &cx, &mut module());
        unreachable!("the process is gone");
    }
    let path = file("died.anf");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "reproducers::a_process_that_dies_leaves_a_reproducer", "--nocapture"])
        .env(ABORTS, &path)
        .output()
        .unwrap();
    assert!(!child.status.success());
    let file = read(&path);
    assert_eq!((file.pass(), file.failure()), ("Abort", None));
    assert_eq!(file.within().collect::<Vec<_>>(), ["pipeline"]);
    assert_eq!(bumps(&file.module(ops()).unwrap()), 2);
    // If the pass is replaced by one that does not abort, the file can be replayed.
    let mut registry = PassRegistry::new();
    registry.register_pass(bump("Bump"), "").unwrap();
    registry.register_pass(idle("Idle", 0), "").unwrap();
    registry.register_pass(ModulePass::new("Abort", 0, |_, _| Err("not so fast".into())), "").unwrap();
    registry.register_config(ConfigDef::int("Explode.limit", 0, 100, 50, "")).unwrap();
    let replay = file.run(&Arc::new(registry), ops(), &[]).unwrap();
    assert_eq!(replay.verdict, Verdict::Failed);
    assert_eq!(replay.result.unwrap_err().to_string(), "pass `Abort` failed: not so fast [pipeline]");
}

#[test]
fn a_pass_that_has_changed_fails_otherwise() {
    let path = file("otherwise.anf");
    run("Bump,Bump,Explode{message=one}", &context(&path, &[]), &mut module()).unwrap_err();
    let text = fs::read_to_string(&path).unwrap().replace("message=one", "message=two");
    let file = ReproducerFile::parse(Source::new("file", text)).unwrap();
    assert_eq!(file.run(&registry(), ops(), &[]).unwrap().verdict, Verdict::FailedOtherwise);
}

/// Returns all errors in a reproducer: line, message, help.
fn wrong(text: &str) -> Vec<String> {
    let source = Source::new("file", text);
    let errors = ReproducerFile::parse(source).and_then(|file| file.run(&registry(), ops(), &[]).map(|_| ()));
    let show = |d: anfora_ir::Diagnostic| {
        let span = d.span.expect("a place");
        let line = text[..span.start].matches('\n').count() + 1;
        let help = d.help.map(|h| format!(" [{h}]")).unwrap_or_default();
        format!("{line} `{}`: {}{help}", &text[span], d.message)
    };
    errors.unwrap_err().into_iter().map(show).collect()
}

#[test]
fn mistakes_in_a_file_are_found_where_they_are() {
    let head = "// anfora reproducer 1\n// pipeline: Bump\n// level: 1\n";
    let cases = [
        ("", "1 ``: this is not a reproducer [its first line would be `// anfora reproducer 1`]"),
        (
            "def @f() { 1 }",
            "1 `def @f() { 1 }`: this is not a reproducer [its first line would be `// anfora reproducer 1`]",
        ),
        (
            "// anfora reproducer 2\nx",
            "1 `// anfora reproducer 2`: this reproducer is of version 2, and only version 1 can be read",
        ),
        ("// anfora reproducer 1\n// level: 1\n// ----\n", "3 `// ----`: the reproducer has no `pipeline`"),
        ("// anfora reproducer 1\n// pipeline: Bump\n// ----\n", "3 `// ----`: the reproducer has no `level`"),
        (head, "3 `// level: 1`: there is no line `// ----` between the reproducer's values and its program"),
        (&format!("{head}// levle: 2\n// ----\n"), "4 `levle`: reproducers have no `levle` [did you mean `level`?]"),
        (&format!("{head}// level: 2\n// ----\n"), "4 `2`: `level` is given twice"),
        (
            &format!("{head}// pass\n// ----\n"),
            "4 `// pass`: there is no `:` in this line [before the line `// ----` there are lines `// KEY: VALUE`]",
        ),
        (&format!("{head}// pass: a\\tb\n// ----\n"), "4 `\\`: a backslash stands before `\\`, `n` or `r`"),
        (
            "// anfora reproducer 1\n// pipeline: Bump\n// level: high\n// ----\n",
            "3 `high`: `level` is a whole number from 0 to 255, not `high`",
        ),
        (&format!("{head}// threads: 0\n// ----\n"), "4 `0`: `threads` is a whole number from 1 to 256, not `0`"),
        (
            &format!("{head}// require: Bmup\n// ----\n"),
            "4 `Bmup`: unknown pass `Bmup`; did you mean `Bump`? (known: Abort, Bump, Explode, Idle)",
        ),
        (
            &format!("{head}// config: Explode.limits=1\n// ----\n"),
            "4 `Explode.limits=1`: unknown config key `Explode.limits`; did you mean `Explode.limit`? (known: Explode.limit)",
        ),
        (
            &format!("{head}// config: Explode.limit=many\n// ----\n"),
            "4 `Explode.limit=many`: `Explode.limit` takes a whole number from 0 to 100, not `many`",
        ),
        (
            &format!("{head}// config: Explode.limit=1\n// config: Explode.limit=2\n// ----\n"),
            "5 `Explode.limit=2`: `Explode.limit` is given more than once",
        ),
        (
            "// anfora reproducer 1\n// pipeline: Bump,Idel\n// level: 1\n// ----\n",
            "2 `Idel`: unknown pass or pipeline `Idel`; did you mean `Idle`? (known: Abort, All, Bump, Explode, Idle)",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(wrong(text), [expected], "{text}");
    }
    let of_the_program = wrong(&format!("{head}// ----\ndef @f(%x: float32) {{ %y }}"));
    assert!(of_the_program[0].starts_with("5 `%y`"), "{of_the_program:?}");
}

#[test]
fn no_prefix_of_a_reproducer_panics() {
    let path = file("prefixes.anf");
    run("Bump,Bump,Explode{message=é}", &context(&path, &[]), &mut module()).unwrap_err();
    let text = fs::read_to_string(&path).unwrap();
    for (end, _) in text.char_indices() {
        if let Ok(file) = ReproducerFile::parse(Source::new("file", &text[..end])) {
            let _ = file.run(&registry(), ops(), &[]);
        }
        // A file with a character in a wrong place does not panic either.
        let broken = format!("{}\u{1F980}{}", &text[..end], &text[end..]);
        let _ = ReproducerFile::parse(Source::new("file", broken));
    }
}
