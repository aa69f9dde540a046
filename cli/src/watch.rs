//! The options of `anfora opt` that watch passes, and the reports that they print.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anfora::ir::{Module, PrintLiterals, PrintOptions};
use anfora::manager::{
    Bisect, DumpIr, Instrument, Memory, PassContext, PassError, PassRegistry, PassRun, PassTiming, PrintIr, PrintWhen,
    Reproducer, RunLog, Unchanged, UnknownName, VerifyEach,
};
use anfora::passes::{CheckMeaning, Checked};
use anfora::report::Recorder;
use clap::{Args, ValueEnum};

use crate::command_line::CommandLine;
use crate::file;
use crate::page::{self, PageFacts};
use crate::report::{self, Failure};

/// The options that print, write and check programs around passes.
#[derive(Args)]
pub(crate) struct Watch {
    /// Prints the time of each pass
    #[arg(long, value_name = "FORM", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    timing: Option<Form>,
    /// Writes each run of a pass with its time into a file, for a viewer of Chrome traces
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Prints the counts of the passes
    #[arg(long, value_name = "FORM", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    stats: Option<Form>,
    /// Prints how many bytes the program held before and after each pass
    #[arg(long, value_name = "FORM", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    memory: Option<Form>,
    /// Writes a page of HTML that shows the passes, what each changed, and the history of each
    /// binding; it needs no network. The passes run on one thread
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Prints the program before a pass, or before each (`*`), to standard error
    #[arg(long, value_name = "PASS")]
    print_ir_before: Vec<String>,
    /// Prints the program after a pass, or after each (`*`), to standard error
    #[arg(long, value_name = "PASS")]
    print_ir_after: Vec<String>,
    /// Prints the program, or its changes, to standard error after each pass that changed it
    #[arg(long, value_name = "FORM", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    print_changed: Option<Changed>,
    /// Prints only these functions of the input before and after passes
    #[arg(long, value_name = "FUNCTION", value_delimiter = ',')]
    print_functions: Vec<String>,
    /// Prints constants of up to this many elements in full before and after passes, or `all`
    #[arg(long, value_name = "ELEMENTS", default_value = "16", value_parser = literals)]
    print_literals: PrintLiterals,
    /// Writes the program before the first pass and after each into a folder, as numbered files, in
    /// place of those of an earlier run
    #[arg(long, value_name = "DIR")]
    dump_dir: Option<PathBuf>,
    /// Runs only the first N passes, or those from A to B (`A-B`), to find the one that breaks a
    /// program
    #[arg(long, value_name = "N", value_parser = interval)]
    bisect_limit: Option<RangeInclusive<u64>>,
    /// Verifies the program after each pass
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    verify_each: bool,
    /// Interprets the program before the first pass and after each pass that changed it, and stops
    /// at the first pass that changes its results
    #[arg(long)]
    check_meaning: bool,
    /// Before each pass, writes a file from which the command `replay` can run the pass again; the
    /// file stays if the pass fails or ends the process
    #[arg(long, value_name = "FILE")]
    reproducer: Option<PathBuf>,
}

/// The form in which a report is printed.
#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A table
    Text,
    /// JSON, on one line
    Json,
}

/// The form in which a changed program is printed.
#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
enum Changed {
    /// The whole program
    Text,
    /// The changed lines, function by function
    Diff,
}

fn literals(text: &str) -> Result<PrintLiterals, String> {
    match text {
        "all" => Ok(PrintLiterals::Full),
        _ => match text.parse() {
            Ok(more_than) => Ok(PrintLiterals::Elided { more_than }),
            Err(_) => Err("a number of elements or `all` is expected".to_string()),
        },
    }
}

fn interval(text: &str) -> Result<RangeInclusive<u64>, String> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let runs = match text.split_once('-') {
        None => number(text).map(|n| 1..=n),
        Some((from, to)) => {
            number(from).zip(number(to)).map(|(from, to)| from..=to).filter(|r| *r.start() >= 1 && !r.is_empty())
        }
    };
    runs.ok_or_else(|| {
        "a number of passes, or the numbers of the first and the last one (`3-5`), is expected".to_string()
    })
}

impl Watch {
    /// Checks the options that can be checked before the program is read. `result` is the path of
    /// the optimised program, if it is written.
    ///
    /// # Errors
    /// If there is no pass or pipeline of a given name, a reproducer, a folder or a page is to go
    /// to standard output, or both the trace and the program are to go there.
    pub(crate) fn check(&self, registry: &PassRegistry, result: Option<&Path>) -> Result<(), Failure> {
        let to_standard_output = |path: &Option<PathBuf>| path.clone().filter(|p| file::is_standard_output(p));
        for (option, path) in
            [("--reproducer", &self.reproducer), ("--dump-dir", &self.dump_dir), ("--report", &self.report)]
        {
            if let Some(path) = to_standard_output(path) {
                let path = path.display();
                return Err(Failure::Usage(format!(
                    "{option} {path}: this cannot be written to standard output; give a path"
                )));
            }
        }
        if let Some(trace) = to_standard_output(&self.trace)
            && result.is_some_and(file::is_standard_output)
        {
            let trace = trace.display();
            return Err(Failure::Usage(format!(
                "--trace {trace}: the program goes to standard output too; give one of them a path, or --emit none"
            )));
        }
        for name in self.print_ir_before.iter().chain(&self.print_ir_after).filter(|n| *n != ANY) {
            if !registry.contains(name) {
                let passes = registry.passes().iter().map(|p| p.name());
                let known = passes.chain(registry.pipelines().iter().map(|p| p.name.as_str())).chain([ANY]);
                return Err(Failure::Usage(UnknownName::new("pass", name, known).to_string()));
            }
        }
        Ok(())
    }

    /// Returns the instruments that were requested.
    ///
    /// # Errors
    /// If the program has no function of a given name.
    pub(crate) fn instruments(&self, module: &Module) -> Result<Watching<'_>, Failure> {
        let functions: Vec<&str> = self.print_functions.iter().map(|f| f.strip_prefix('@').unwrap_or(f)).collect();
        if let Some(name) = functions.iter().find(|name| module.find(name).is_none()) {
            let known: Vec<&str> = module.order().iter().map(|&key| module.name(key)).collect();
            return Err(Failure::Usage(UnknownName::new("function", name, known).to_string()));
        }
        Ok(Watching {
            asked: self,
            functions: (!functions.is_empty()).then(|| functions.into_iter().map(str::to_string).collect()),
            bisect: self.bisect_limit.clone().map(|runs| Arc::new(Bisect::interval(runs))),
            timing: (self.timing.is_some() || self.trace.is_some()).then(|| Arc::new(PassTiming::new())),
            memory: self.memory.map(|_| Arc::new(Memory::new())),
            check: self.check_meaning.then(|| Arc::new(CheckMeaning::new())),
            reproducer: self.reproducer.as_ref().map(|file| Arc::new(Reproducer::new(file))),
            unseen: Arc::new(Unseen::new(&self.print_ir_before, &self.print_ir_after)),
            recorder: self.report.as_ref().map(|_| Arc::new(Recorder::new())),
            log: Arc::new(RunLog::new()),
        })
    }
}

/// The name that stands for every pass.
const ANY: &str = "*";

/// The instruments that watch a run of a pipeline.
pub(crate) struct Watching<'a> {
    asked: &'a Watch,
    functions: Option<Vec<String>>,
    bisect: Option<Arc<Bisect>>,
    timing: Option<Arc<PassTiming>>,
    memory: Option<Arc<Memory>>,
    check: Option<Arc<CheckMeaning>>,
    reproducer: Option<Arc<Reproducer>>,
    unseen: Arc<Unseen>,
    recorder: Option<Arc<Recorder>>,
    log: Arc<RunLog>,
}

/// The passes around which the program is to be printed and that have not run yet.
struct Unseen(Mutex<BTreeSet<String>>);

impl Unseen {
    fn new(before: &[String], after: &[String]) -> Unseen {
        Unseen(Mutex::new(before.iter().chain(after).filter(|name| *name != ANY).cloned().collect()))
    }

    fn names(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl Instrument for Unseen {
    fn name(&self) -> &str {
        "Unseen"
    }

    fn run_before(&self, _: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(run.name());
        Ok(())
    }
}

impl Watching<'_> {
    /// Returns the log of the passes that ran.
    pub(crate) fn log(&self) -> &RunLog {
        &self.log
    }

    /// Returns the first instruments, in order: the one that decides whether a pass runs; those
    /// that print and dump, so that ill-formed programs can be read too; the verifier; and the one
    /// that interprets the programs that the verifier accepts.
    pub(crate) fn before_checks(&self) -> Vec<Arc<dyn Instrument>> {
        let asked = self.asked;
        let mut instruments: Vec<Arc<dyn Instrument>> = Vec::new();
        instruments.extend(self.bisect.clone().map(|bisect| bisect as Arc<dyn Instrument>));
        let when = |names: &[String]| match names {
            [] => PrintWhen::Never,
            names if names.iter().any(|n| n == ANY) => PrintWhen::Always,
            names => PrintWhen::Named(names.to_vec()),
        };
        let (before, after) = (when(&asked.print_ir_before), when(&asked.print_ir_after));
        if before != PrintWhen::Never || after != PrintWhen::Never {
            instruments.push(self.print(PrintIr::new(before, after, std::io::stderr())));
            instruments.push(Arc::clone(&self.unseen) as Arc<dyn Instrument>);
        }
        match asked.print_changed {
            Some(Changed::Text) => instruments.push(self.print(PrintIr::changed(std::io::stderr()))),
            Some(Changed::Diff) => instruments.push(self.print(PrintIr::diff(std::io::stderr()))),
            None => {}
        }
        if let Some(folder) = &asked.dump_dir {
            instruments.push(Arc::new(DumpIr::new(folder, Unchanged::Dumped).replacing_earlier()));
        }
        if asked.verify_each {
            instruments.push(Arc::new(VerifyEach::new()));
        }
        instruments.extend(self.check.clone().map(|check| check as Arc<dyn Instrument>));
        instruments
    }

    /// Returns the last instruments. They come after the checks, so that they see a pass as failed
    /// if a check rejects its result.
    pub(crate) fn after_checks(&self) -> Vec<Arc<dyn Instrument>> {
        let mut instruments: Vec<Arc<dyn Instrument>> = Vec::new();
        instruments.extend(self.memory.clone().map(|memory| memory as Arc<dyn Instrument>));
        instruments.extend(self.timing.clone().map(|timing| timing as Arc<dyn Instrument>));
        instruments.extend(self.recorder.clone().map(|recorder| recorder as Arc<dyn Instrument>));
        instruments.push(Arc::clone(&self.log) as Arc<dyn Instrument>);
        instruments.extend(self.reproducer.clone().map(|reproducer| reproducer as Arc<dyn Instrument>));
        instruments
    }

    /// Writes the page that was requested, and returns its path; `None` if there was no request.
    ///
    /// # Errors
    /// If the page cannot be written.
    pub(crate) fn write_page(&self, about: &PageFacts<'_>) -> Result<Option<&Path>, Failure> {
        let (Some(path), Some(recorder)) = (&self.asked.report, &self.recorder) else { return Ok(None) };
        let page = page::of_recording(&recorder.recording(), about);
        file::write_file(path, |out| out.write_all(page.as_bytes()))?;
        Ok(Some(path))
    }

    fn print(&self, print: PrintIr) -> Arc<dyn Instrument> {
        let options = PrintOptions { literals: self.asked.print_literals, ..PrintOptions::default() };
        let print = print.options(options);
        Arc::new(match &self.functions {
            Some(names) => print.functions(names.clone()),
            None => print,
        })
    }

    /// Prints the requested reports at the end of a run, whether it succeeded or failed.
    ///
    /// # Errors
    /// If the trace cannot be written.
    pub(crate) fn report(&self, cli: &CommandLine, context: &PassContext) -> Result<(), Failure> {
        let say = |form: Form, text: &dyn std::fmt::Display, json: serde_json::Value| match form {
            Form::Text => report::say(&text.to_string()),
            Form::Json => report::say(&json.to_string()),
        };
        if let (Some(form), Some(timing)) = (self.asked.timing, &self.timing) {
            say(form, &**timing, timing.to_json());
        }
        if let Some(form) = self.asked.stats {
            let statistics = context.statistics();
            say(form, &statistics, statistics.to_json());
        }
        if let (Some(form), Some(memory)) = (self.asked.memory, &self.memory) {
            say(form, &**memory, memory.to_json());
        }
        for pass in self.unseen.names() {
            report::say(&format!("`{pass}` did not run, so the program was not printed around it"));
        }
        if let Some(bisect) = &self.bisect {
            report::say(&bisected(bisect));
        }
        if let Some(check) = &self.check {
            let Checked { passes, runs, notes } = check.checked();
            report::say(&format!(
                "check-meaning: {runs} runs after {passes} passes that changed something, {notes} notes"
            ));
        }
        if let Some(file) = self.reproducer.as_ref().filter(|r| r.is_written()).map(|r| r.path().display()) {
            report::say(&format!("wrote {file}; `{} replay {file}` runs the pass again", cli.name()));
        }
        match (&self.asked.trace, &self.timing) {
            (Some(file), Some(timing)) => {
                let trace = timing.to_chrome_trace().to_string();
                file::write_file(file, |out| out.write_all(trace.as_bytes()))
            }
            _ => Ok(()),
        }
    }
}

/// Returns a line with the number of passes that ran under a limit, and the last of them.
fn bisected(bisect: &Bisect) -> String {
    let runs = bisect.runs();
    let ran: Vec<_> = runs.iter().filter(|r| r.ran).collect();
    let last = ran.last().map_or_else(String::new, |r| format!("; the last was {}, {}", r.number, r.pass));
    format!("bisect: {} of {} passes ran{last}", ran.len(), runs.len())
}
