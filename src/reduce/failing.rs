//! Shrinks programs on which a pipeline fails.

use std::cell::RefCell;
use std::sync::Arc;

use anfora_ir::{Counts, Module};
use anfora_manager::{
    ContextError, FailureKind, LastRun, Pass, PassContextBuilder, PassFailure, RecordedRun, parse_pipeline,
};

use super::{ReduceOptions, ReduceProgress, Reduced, reduce};

/// A smallest program on which a pipeline fails.
#[derive(Debug)]
pub struct ReducedFailure {
    /// The program and its counts. `before` has the counts of the program that was given.
    pub reduced: Reduced,
    /// The pipeline that fails: the failing pass alone, if it fails alone.
    pub pipeline: String,
    /// The failure on the smallest program.
    pub failing: FailingRun,
}

/// A run of a pipeline that fails on a program.
#[derive(Clone, Debug)]
pub struct FailingRun {
    /// The failure.
    pub failure: Arc<PassFailure>,
    /// The run of the failing pass; `None` if the pipeline fails before any pass runs.
    pub run: Option<Arc<RecordedRun>>,
}

impl FailingRun {
    /// Returns the text of a reproducer, which `anfora replay` and
    /// [`ReproducerFile`](anfora_manager::ReproducerFile) run.
    pub fn reproducer(&self) -> Option<String> {
        self.run.as_ref().map(|run| run.reproducer(&run.module, Some(&self.failure)))
    }
}

/// The reason why no failure was reduced.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReduceError {
    /// The pipeline does not fail.
    #[error("the pipeline does not fail on the program")]
    NeverFails,
    /// A context cannot be built.
    #[error(transparent)]
    Context(#[from] ContextError),
}

/// Makes a program smaller as long as a pipeline fails on it in the same way: in the same pass, and
/// with the same message but for names, numbers and quoted texts. Then the pipeline is the failing
/// pass alone, if the registry of the context has the pass and it fails alone on the program that
/// it was given.
///
/// `context` returns a new builder for each run, with the settings and instruments under which the
/// pipeline runs. With the instrument [`CheckMeaning`](anfora_passes::CheckMeaning), the pipeline
/// fails at the pass that changes what a program computes.
///
/// # Errors
/// If the pipeline does not fail, or a context cannot be built.
pub fn reduce_failure(
    module: &Module,
    passes: &dyn Pass,
    context: &dyn Fn() -> PassContextBuilder,
    options: &ReduceOptions<'_>,
    progress: &mut dyn FnMut(&ReduceProgress<'_>) -> bool,
) -> Result<ReducedFailure, ReduceError> {
    let mut whole = FailingPipeline { passes, context, required: None };
    let FailingRun { failure, run } = whole.run(module)?.ok_or(ReduceError::NeverFails)?;
    let before = Counts::of_module(module);
    let signature = FailureSignature::of(&failure);
    // Leave out the passes before the failing one, on the program that it was given.
    let alone = run.as_ref().and_then(|run| {
        let cx = (context)().build().ok()?;
        Some((parse_pipeline(cx.registry(), &run.pipeline).ok()?, run))
    });
    let mut start = module;
    if let Some((passes, run)) = &alone {
        let single = FailingPipeline { passes, context, required: Some(&run.pass) };
        if (options.is_allowed)(&run.module) && single.fails_as(&run.module, &signature).is_some() {
            (whole, start) = (single, &run.module);
        }
    }
    // The run on the smallest program so far: a program on which the pipeline fails replaces it.
    let smallest: RefCell<Option<FailingRun>> = RefCell::new(None);
    let mut test = |module: &Module| {
        let failing = whole.fails_as(module, &signature);
        let fails = failing.is_some();
        if fails {
            smallest.replace(failing);
        }
        fails
    };
    let mut progress =
        |step: &ReduceProgress<'_>| progress(&ReduceProgress { failing: smallest.borrow().as_ref(), ..*step });
    let reduced = reduce(start, &mut test, options, &mut progress).ok_or(ReduceError::NeverFails)?;
    let reduced = Reduced { before, ..reduced };
    let pipeline = whole.passes.pipeline_text();
    let failing = smallest.into_inner().ok_or(ReduceError::NeverFails)?;
    Ok(ReducedFailure { reduced, pipeline, failing })
}

/// A pipeline with the context that it runs under.
#[derive(Copy, Clone)]
struct FailingPipeline<'a> {
    passes: &'a dyn Pass,
    context: &'a dyn Fn() -> PassContextBuilder,
    /// A pass that runs whatever its level is.
    required: Option<&'a str>,
}

impl FailingPipeline<'_> {
    /// Runs the pipeline on a copy of a program. Returns the failure and the last run, if it fails.
    fn run(&self, module: &Module) -> Result<Option<FailingRun>, ContextError> {
        let last = Arc::new(LastRun::new());
        let builder = (self.context)().instrument(last.clone());
        let cx = self.required.iter().fold(builder, |builder, &pass| builder.require(pass)).build()?;
        let mut module = module.clone();
        let done = cx.scope(|| self.passes.apply(&mut module, &cx)).and_then(|done| done);
        Ok(done.err().map(|failure| FailingRun { failure: Arc::new(failure), run: last.take().map(Arc::new) }))
    }

    /// Returns the run on a program if it fails in this way.
    fn fails_as(&self, module: &Module, signature: &FailureSignature) -> Option<FailingRun> {
        let failing = self.run(module).ok().flatten()?;
        (FailureSignature::of(&failing.failure) == *signature).then_some(failing)
    }
}

/// The common part of failures that have one cause.
#[derive(Clone, PartialEq, Eq)]
struct FailureSignature {
    pass: String,
    kind: FailureKind,
    message: String,
}

impl FailureSignature {
    fn of(failure: &PassFailure) -> FailureSignature {
        let is_other_meaning =
            matches!(failure.kind(), FailureKind::Instrument { instrument, .. } if instrument == "CheckMeaning");
        // A program may compute something else in many ways.
        let message = if is_other_meaning { String::new() } else { without_names(failure.error().message()) };
        FailureSignature { pass: failure.pass().to_string(), kind: failure.kind().clone(), message }
    }
}

/// Returns a message without names of variables and functions, numbers and quoted texts.
fn without_names(message: &str) -> String {
    let mut out = String::new();
    let mut chars = message.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '`' => {
                for quoted in chars.by_ref() {
                    if quoted == '`' {
                        break;
                    }
                }
            }
            '%' | '@' if chars.next_if_eq(&'"').is_some() => {
                // A name in quotes, in which a backslash escapes the next character.
                while let Some(quoted) = chars.next() {
                    match quoted {
                        '"' => break,
                        '\\' => _ = chars.next(),
                        _ => {}
                    }
                }
            }
            '%' | '@' => while chars.next_if(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '$')).is_some() {},
            c if c.is_ascii_digit() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::without_names;

    #[test]
    fn messages_are_compared_without_names() {
        let message = without_names("`exp` of %a.1 in @main: 12 elements instead of 3");
        assert_eq!(message, " of  in :  elements instead of ");
        let message = without_names(r#"%"/conv1/Conv" and @"a \" b" and %c$1 are 3"#);
        assert_eq!(message, " and  and  are ");
    }
}
