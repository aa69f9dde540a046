//! Reproducers: files with everything that is needed to run a pass again.
//!
//! ```text
//! // anfora reproducer 1
//! // pass: FuseOps
//! // within: O3              one line for each sequence around it
//! // pipeline: FuseOps
//! // level: 3
//! // threads: 2              where it is not 1
//! // require: PASS           one line each
//! // disable: PASS           one line each
//! // config: KEY=VALUE       one line each, where it is not the default
//! // rewrites: 17            where only so many rewrites are made
//! // instrument: VerifyEach  one line each
//! // failure: pass `FuseOps` failed: …
//! // place: @main, %x
//! // ----
//! def @main …
//! ```
//! In a value, `\\` is a backslash, `\n` the end of a line and `\r` a carriage return. The pass,
//! the failure and its place are absent if they are not known; the pipeline and the level are
//! always present.

use std::fmt::Display;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use anfora_ir::{Diagnostic, Diagnostics, Module, OpRegistry, Source, did_you_mean, parse_module};

use crate::context::{ContextError, PassContext, PassContextBuilder};
use crate::error::PassFailure;
use crate::info::Outcome;
use crate::instrument::{Instrument, PassRun};
use crate::instruments::{LAST_RUN, VerifyEach};
use crate::parallel::MAX_THREADS;
use crate::pass::Pass;
use crate::pipeline::{PipelineError, parse_pipeline};
use crate::registry::PassRegistry;
use crate::sequential::Sequential;

/// The beginning of the first line, up to the version.
pub(crate) const MAGIC: &str = "// anfora reproducer ";
const VERSION: &str = "1";
/// The last line before the program.
const END: &str = "// ----";

/// The keys of the values, in their order, with the greatest number of times that each may occur.
const KEYS: [(&str, usize); 12] = [
    ("pass", 1),
    ("within", usize::MAX),
    ("pipeline", 1),
    ("level", 1),
    ("threads", 1),
    ("require", usize::MAX),
    ("disable", usize::MAX),
    ("config", usize::MAX),
    ("rewrites", 1),
    ("instrument", usize::MAX),
    ("failure", 1),
    ("place", 1),
];

/// The keys that every reproducer has.
const NEEDED: [&str; 2] = ["pipeline", "level"];

// ---- Writing ----

/// Returns the lines before the program, for a run of a pass that may have failed.
pub(crate) fn header(run: &PassRun<'_>, failure: Option<&PassFailure>) -> String {
    let mut out = lines_of_run(run);
    end_header(&mut out, failure);
    out
}

fn write_line(out: &mut String, key: &str, value: &str) {
    let value = value.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r");
    out.push_str(&format!("// {key}: {value}\n"));
}

/// Returns the lines about a run that is about to begin.
pub(crate) fn lines_of_run(run: &PassRun<'_>) -> String {
    let cx = run.context();
    let mut out = format!("{MAGIC}{VERSION}\n");
    let mut line = |key: &str, value: &str| write_line(&mut out, key, value);
    line("pass", run.name());
    run.path().iter().for_each(|name| line("within", name));
    line("pipeline", &run.pipeline_text());
    line("level", &cx.opt_level().to_string());
    if cx.threads() != 1 {
        line("threads", &cx.threads().to_string());
    }
    cx.required().iter().for_each(|name| line("require", name));
    cx.disabled().iter().for_each(|name| line("disable", name));
    cx.changed_config().for_each(|(def, value)| line("config", &format!("{}={value}", def.key)));
    if let Some(limit) = cx.rewrites().limit() {
        line("rewrites", &limit.saturating_sub(cx.rewrites().count()).to_string());
    }
    let instruments = cx.instruments();
    instruments.iter().map(|i| i.name()).filter(|&name| name != LAST_RUN).for_each(|name| line("instrument", name));
    out
}

/// Adds the lines about a failure, and the last line before the program.
pub(crate) fn end_header(out: &mut String, failure: Option<&PassFailure>) {
    if let Some(failure) = failure {
        let mut line = |key: &str, value: &str| write_line(out, key, value);
        line("failure", &message_of(failure));
        let function = failure.function().map(|name| format!("@{name}"));
        let place: Vec<String> = function.into_iter().chain(failure.binding().map(|name| format!("%{name}"))).collect();
        if !place.is_empty() {
            line("place", &place.join(", "));
        }
    }
    out.push_str(END);
    out.push('\n');
}

/// Returns the part of a failure that is compared. The place is not part of it, since variables
/// without a name get one when a program is printed.
fn message_of(failure: &PassFailure) -> String {
    failure.to_diagnostics().swap_remove(0).message
}

// ---- Reading ----

/// A reproducer: a pass, the context that it runs under, and a program.
/// [`Reproducer`](crate::Reproducer) writes them.
#[derive(Clone, Debug)]
pub struct ReproducerFile {
    source: Arc<Source>,
    values: Vec<Value>,
    opt_level: u8,
    threads: usize,
    rewrites: Option<u64>,
}

#[derive(Clone, Debug)]
struct Value {
    key: &'static str,
    text: String,
    /// The place in the source.
    span: Range<usize>,
}

impl ReproducerFile {
    /// Reads the values before the program.
    ///
    /// # Errors
    /// If the source is not a reproducer, or one of another version. The errors have places in the
    /// source.
    pub fn parse(source: impl Into<Arc<Source>>) -> Result<ReproducerFile, Diagnostics> {
        let source: Arc<Source> = source.into();
        let refused = |found| Err(Diagnostics::in_source(found, Some(Arc::clone(&source))));
        let mut lines = lines_of(source.text());
        let mut at = lines.next().unwrap_or(0..0);
        match source.text()[at.clone()].strip_prefix(MAGIC) {
            Some(VERSION) => {}
            Some(version) => {
                let message =
                    format!("this reproducer is of version {version}, and only version {VERSION} can be read");
                return refused(vec![Diagnostic::error(message).at(at)]);
            }
            None => {
                let help = format!("its first line would be `{MAGIC}{VERSION}`");
                return refused(vec![Diagnostic::error("this is not a reproducer").at(at).with_help(help)]);
            }
        }
        let (mut values, mut found) = (Vec::new(), Vec::new());
        let mut ended = false;
        for line in lines {
            at = line;
            let text = &source.text()[at.clone()];
            ended = text == END;
            if ended {
                break;
            }
            match read_line(text, &at) {
                Ok(value) => values.push(value),
                Err(error) => found.push(*error),
            }
            // The program has begun.
            if !text.starts_with("//") {
                break;
            }
        }
        if !ended && found.is_empty() {
            let message = format!("there is no line `{END}` between the reproducer's values and its program");
            found.push(Diagnostic::error(message).at(at.clone()));
        }
        for (key, most) in KEYS {
            let of_key: Vec<&Value> = values.iter().filter(|v| v.key == key).collect();
            if of_key.is_empty() && NEEDED.contains(&key) && found.is_empty() {
                found.push(Diagnostic::error(format!("the reproducer has no `{key}`")).at(at.clone()));
            } else if of_key.len() > most {
                found.push(Diagnostic::error(format!("`{key}` is given twice")).at(of_key[1].span.clone()));
            }
        }
        let opt_level = number(&values, "level", 0, u8::MAX, &mut found).unwrap_or(0);
        let threads = number(&values, "threads", 1, MAX_THREADS, &mut found).unwrap_or(1);
        let rewrites = number(&values, "rewrites", 0, u64::MAX, &mut found);
        match found.is_empty() {
            true => Ok(ReproducerFile { source, values, opt_level, threads, rewrites }),
            false => refused(found),
        }
    }

    /// Returns the whole file.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Returns the name of the pass that was about to run; empty if the file has none.
    pub fn pass(&self) -> &str {
        self.first("pass").unwrap_or_default()
    }

    /// Returns the sequences that the pass was part of, outermost first.
    pub fn within(&self) -> impl Iterator<Item = &str> {
        self.all("within").map(|v| v.text.as_str())
    }

    /// Returns the pass with its options, as a pipeline.
    pub fn pipeline_text(&self) -> &str {
        self.first("pipeline").unwrap_or_default()
    }

    /// Returns the level of the context.
    pub fn opt_level(&self) -> u8 {
        self.opt_level
    }

    /// Returns the number of threads that the context distributes function passes over.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Returns the number of rewrites after which the pass stopped; `None` if there was no limit.
    pub fn rewrites(&self) -> Option<u64> {
        self.rewrites
    }

    /// Returns the names of the instruments of the context.
    pub fn instruments(&self) -> impl Iterator<Item = &str> {
        self.all("instrument").map(|v| v.text.as_str())
    }

    /// Returns the recorded failure; `None` if the process ended in the pass.
    pub fn failure(&self) -> Option<&str> {
        self.first("failure")
    }

    /// Returns the place of the failure: `@function, %binding`, or one of them.
    pub fn place(&self) -> Option<&str> {
        self.first("place")
    }

    fn all(&self, key: &str) -> impl Iterator<Item = &Value> {
        self.values.iter().filter(move |v| v.key == key)
    }

    fn first(&self, key: &str) -> Option<&str> {
        self.all(key).next().map(|v| v.text.as_str())
    }

    /// Returns diagnostics about the file.
    fn refused(&self, found: Vec<Diagnostic>) -> Diagnostics {
        Diagnostics::in_source(found, Some(Arc::clone(&self.source)))
    }

    /// Parses the program.
    ///
    /// # Errors
    /// If the program cannot be parsed.
    pub fn module(&self, ops: Arc<OpRegistry>) -> Result<Module, Diagnostics> {
        parse_module(Arc::clone(&self.source), ops)
    }

    /// Makes the pass, as the sequence of its pipeline.
    ///
    /// # Errors
    /// If the pipeline names something that is not in the registry.
    pub fn pipeline(&self, registry: &PassRegistry) -> Result<Sequential, Diagnostics> {
        let value = self.all("pipeline").next().expect("a reproducer that was read has a pipeline");
        parse_pipeline(registry, &value.text).map_err(|error| self.refused(vec![value.pipeline_error(&error)]))
    }

    /// Returns a builder of the context that the pass ran under, without instruments.
    ///
    /// # Errors
    /// If the file names something that is not in the registry, or a setting does not take its
    /// value.
    pub fn context(&self, registry: &Arc<PassRegistry>) -> Result<PassContextBuilder, Diagnostics> {
        let begin = || PassContext::builder().registry(Arc::clone(registry)).opt_level(self.opt_level);
        let add = |builder: PassContextBuilder, value: &Value| match value.key {
            "require" => builder.require(value.text.clone()),
            "disable" => builder.disable(value.text.clone()),
            "config" => builder.config_text(value.text.clone()),
            _ => builder,
        };
        // Each value is tried separately, so that the error is at its line.
        let tried = self.values.iter().filter_map(|v| Some(v.error(&add(begin(), v).build().err()?)));
        let found: Vec<Diagnostic> = tried.collect();
        if !found.is_empty() {
            return Err(self.refused(found));
        }
        let builder = self.values.iter().fold(begin().threads(self.threads), add);
        Ok(match self.rewrites {
            Some(limit) => builder.limit_rewrites(limit),
            None => builder,
        })
    }

    /// Runs the pass again, under the context that it ran under, with these instruments, and
    /// [`VerifyEach`] before them.
    ///
    /// If the pass ends the process, this call does so too; see the option `--child` of
    /// `anfora replay`.
    ///
    /// # Errors
    /// If the file names passes, settings or operators that do not exist, or the program cannot be
    /// parsed. A failure of the pass is not an error, but part of the result.
    pub fn run(
        &self,
        registry: &Arc<PassRegistry>,
        ops: Arc<OpRegistry>,
        instruments: &[Arc<dyn Instrument>],
    ) -> Result<Replay, Diagnostics> {
        let passes = self.pipeline(registry)?;
        let mut builder = self.context(registry)?.instrument(Arc::new(VerifyEach::new()));
        for instrument in instruments {
            builder = builder.instrument(Arc::clone(instrument));
        }
        // The pass may have run because another pass depends on it, and dependencies run at any
        // level.
        for pass in passes.passes().iter().filter(|p| p.info().opt_level > self.opt_level) {
            builder = builder.require(pass.info().name.clone());
        }
        let cx = builder.build().map_err(|error| {
            // Each setting on its own was valid, so a setting is given twice.
            self.refused(self.all("config").last().map(|value| value.error(&error)).into_iter().collect())
        })?;
        let mut module = self.module(ops)?;
        let result = cx.scope(|| passes.apply(&mut module, &cx)).and_then(|done| done);
        let verdict = match (&result, self.failure()) {
            (Ok(_), _) => Verdict::Passed,
            (Err(failure), Some(recorded)) if message_of(failure) == recorded => Verdict::FailedAsRecorded,
            (Err(_), Some(_)) => Verdict::FailedOtherwise,
            (Err(_), None) => Verdict::Failed,
        };
        Ok(Replay { module, context: cx, result, verdict })
    }
}

/// Returns the number that is the value of a key, if it is given; adds an error if it is not a
/// number from `least` to `most`.
fn number<T: FromStr + PartialOrd + Display>(
    values: &[Value],
    key: &str,
    least: T,
    most: T,
    found: &mut Vec<Diagnostic>,
) -> Option<T> {
    let value = values.iter().find(|v| v.key == key)?;
    let number = value.text.parse().ok().filter(|n| (&least..=&most).contains(&n));
    if number.is_none() {
        let message = format!("`{key}` is a whole number from {least} to {most}, not `{}`", value.text);
        found.push(Diagnostic::error(message).at(value.span.clone()));
    }
    number
}

/// The result of running a reproducer.
#[derive(Debug)]
pub struct Replay {
    /// The program after the pass; unchanged if the pass failed.
    pub module: Module,
    /// The context, with remarks and counts.
    pub context: PassContext,
    /// The result of the pass.
    pub result: Result<Outcome, PassFailure>,
    /// The comparison of the failure with the recorded one.
    pub verdict: Verdict,
}

/// The outcome of a replay compared with the recorded failure.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The pass did not fail.
    Passed,
    /// The pass failed with the recorded message.
    FailedAsRecorded,
    /// The pass failed with another message than the recorded one.
    FailedOtherwise,
    /// The pass failed, and no failure was recorded.
    Failed,
}

/// Returns the lines of a text, as ranges in it, without their line ends.
fn lines_of(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        start..start + line.trim_end_matches('\n').trim_end_matches('\r').len()
    })
}

fn read_line(text: &str, at: &Range<usize>) -> Result<Value, Box<Diagnostic>> {
    let expected = |why: &str| {
        let help = format!("before the line `{END}` there are lines `// KEY: VALUE`");
        Box::new(Diagnostic::error(why).at(at.clone()).with_help(help))
    };
    let rest = text.strip_prefix("// ").ok_or_else(|| expected("this is not a line of a reproducer"))?;
    let (key, value) = rest
        .split_once(": ")
        .or_else(|| rest.split_once(':'))
        .ok_or_else(|| expected("there is no `:` in this line"))?;
    let Some(&(known, _)) = KEYS.iter().find(|k| k.0 == key) else {
        let start = at.start + "// ".len();
        let error = Diagnostic::error(format!("reproducers have no `{key}`")).at(start..start + key.len());
        let help = match did_you_mean(key, KEYS.iter().map(|k| k.0)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", KEYS.map(|k| k.0).join(", ")),
        };
        return Err(Box::new(error.with_help(help)));
    };
    let span = at.end - value.len()..at.end;
    let mut unescaped = String::new();
    let mut chars = value.char_indices();
    while let Some((i, c)) = chars.next() {
        unescaped.push(match c {
            '\\' => match chars.next() {
                Some((_, '\\')) => '\\',
                Some((_, 'n')) => '\n',
                Some((_, 'r')) => '\r',
                _ => {
                    let message = "a backslash stands before `\\`, `n` or `r`";
                    return Err(Box::new(Diagnostic::error(message).at(span.start + i..span.start + i + 1)));
                }
            },
            c => c,
        });
    }
    Ok(Value { key: known, text: unescaped, span })
}

impl Value {
    fn error(&self, error: &ContextError) -> Diagnostic {
        Diagnostic::error(error.to_string()).at(self.span.clone())
    }

    fn pipeline_error(&self, error: &PipelineError) -> Diagnostic {
        // Columns refer to the value. It stands in the file unchanged if nothing in it is escaped.
        let is_plain = error.through.is_empty() && self.span.len() == self.text.len();
        let start = self.text.char_indices().nth(error.column - 1).map_or(self.text.len(), |(i, _)| i);
        let span = if is_plain { self.span.start + start..self.span.end } else { self.span.clone() };
        let message = if is_plain { error.message.clone() } else { error.to_string() };
        // A suggestion is part of the message.
        Diagnostic::error(message).at(span)
    }
}
