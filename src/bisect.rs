//! The search for the first rewrite after which a program is wrong.
//!
//! A context can stop the passes of a pipeline after any number of rewrites
//! ([`limit_rewrites`](anfora_manager::PassContextBuilder::limit_rewrites)). A binary search over
//! this number finds the first wrong one, as `git bisect` finds a commit and LLVM's `opt-bisect` a
//! pass. It goes over the runs of passes first, then over the functions of the wrong run, and then
//! over single rewrites.
//!
//! ```
//! use anfora::bisect::bisect;
//! use anfora::prelude::*;
//!
//! let text = "def @main(%x: float32, %y: float32) {
//!   let %a = add(%x, %y);
//!   let %b = subtract(%a, %y);
//!   multiply(%b, 1f)
//! }";
//! let module = parse_module(Source::new("example", text), anfora::ops::standard())?;
//! // The second rule is wrong.
//! let rules = rules!["multiply(%x, 1)" => "%x", "subtract(%x, %y)" => "add(%y, %x)"];
//! let pass = FunctionPass::from_rules("Simplify", 1, rules);
//! let context = || PassContext::builder().registry(anfora::passes::registry());
//! let mut is_wrong = |module: &Module| !module.to_text().contains("subtract");
//! let found = bisect(&module, &pass, &context, &mut is_wrong, &mut |_| true)?;
//! let rewrite = found.rewrite.expect("a rewrite is wrong");
//! assert_eq!(rewrite.why, "subtract(%x, %y) => add(%y, %x)");
//! assert_eq!(rewrite.binding.as_deref(), Some("b"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use anfora_ir::{LogPosition, Module, RewriteOptions, RewriteRecord, RewriteSpan};
use anfora_manager::{ContextError, LastRun, Pass, PassContextBuilder, PassFailure, RecordedRun};

/// The first wrong rewrite of a pipeline.
#[derive(Debug)]
pub struct FirstWrong {
    /// The wrong rewrite, with its pass, function and binding; `None` if a pass fails although all
    /// rewrites before the failure are right.
    pub rewrite: Option<RewriteRecord>,
    /// The number of rewrites of the whole pipeline, or of its part before the failure.
    pub total: u64,
    /// The run of the pass, with the program before it; `None` if the pipeline fails before any
    /// pass runs.
    pub run: Option<RecordedRun>,
    /// The failure with which the pipeline ends after the wrong rewrite; `None` if only the result
    /// is wrong.
    pub failure: Option<PassFailure>,
    /// The number of times that the pipeline ran.
    pub tries: u64,
}

impl FirstWrong {
    /// Returns the name of the pass; empty if the pipeline fails before any pass runs.
    pub fn pass(&self) -> &str {
        match (&self.rewrite, &self.run, &self.failure) {
            (Some(rewrite), _, _) => &rewrite.pass,
            (None, Some(run), _) => &run.pass,
            (None, None, Some(failure)) => failure.pass(),
            (None, None, None) => "",
        }
    }

    /// Returns the text of a reproducer, which `anfora replay` and
    /// [`ReproducerFile`](anfora_manager::ReproducerFile) run: the pass alone, on the program
    /// before it, up to the wrong rewrite.
    pub fn reproducer(&self) -> Option<String> {
        self.run.as_ref().map(|run| run.reproducer(&run.module, self.failure.as_ref()))
    }
}

/// The reason why no wrong rewrite was found.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BisectError {
    /// The result of the whole pipeline is right.
    #[error("the program is right after the whole pipeline")]
    NeverWrong,
    /// The program is wrong without any rewrite.
    #[error("the program is wrong before any rewrite")]
    WrongBefore,
    /// The caller ended the search.
    #[error("the search was ended")]
    Ended,
    /// A context cannot be built.
    #[error(transparent)]
    Context(#[from] ContextError),
}

/// The unit that a search is narrowed down to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BisectUnit {
    /// The whole pipeline, to begin with.
    Pipeline,
    /// A run of a pass.
    Run,
    /// A function, in a run of a pass.
    Function,
    /// A single rewrite.
    Rewrite,
}

/// A run of the pipeline in a search.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BisectStep {
    /// The unit that is searched for.
    pub unit: BisectUnit,
    /// The number of rewrites after which the pipeline was stopped; `None` if it was not.
    pub limit: Option<u64>,
    /// True if the program was wrong then.
    pub is_wrong: bool,
    /// The number of rewrites after which the program is known to be right.
    pub right: u64,
    /// The number of rewrites after which it is known to be wrong.
    pub wrong: u64,
}

/// Finds the first rewrite of a pipeline after which a program is wrong: the pipeline fails, or
/// `is_wrong` returns true for its result.
///
/// `context` returns a new builder for each run, with the settings and instruments under which the
/// pipeline runs. With the instrument [`CheckMeaning`](anfora_passes::CheckMeaning), the pipeline
/// fails at the pass that changes what a program computes. `progress` is called after each run,
/// and ends the search if it returns false.
///
/// If the program is wrong after some number of rewrites and right after more, the result is one of
/// the rewrites after which it becomes wrong. Cost: the pipeline runs once for each halving of the
/// number of rewrites.
///
/// # Errors
/// If the program is wrong before the pipeline or right after it, if `progress` ends the search, or
/// if a context cannot be built.
pub fn bisect(
    module: &Module,
    passes: &dyn Pass,
    context: &dyn Fn() -> PassContextBuilder,
    is_wrong: &mut dyn FnMut(&Module) -> bool,
    progress: &mut dyn FnMut(&BisectStep) -> bool,
) -> Result<FirstWrong, BisectError> {
    let mut search = BisectSearch {
        module,
        passes,
        context,
        is_wrong,
        progress,
        unit: BisectUnit::Pipeline,
        right: 0,
        wrong: 0,
        tries: 0,
    };
    let whole = search.try_once(RewriteOptions { spans: true, ..RewriteOptions::default() }, None)?;
    if !whole.is_wrong {
        return Err(BisectError::NeverWrong);
    }
    // A failure may come after the last rewrite: one more than all of them means no limit.
    let total = whole.rewrites;
    search.wrong = total + 1;
    if search.is_wrong_at(0)? {
        return Err(BisectError::WrongBefore);
    }
    let ends = |differs: &dyn Fn(&RewriteSpan, &RewriteSpan) -> bool| -> Vec<u64> {
        let borders = whole.spans.windows(2).filter(|pair| differs(&pair[0], &pair[1]));
        borders.map(|pair| pair[1].first - 1).chain([total]).collect()
    };
    search.unit = BisectUnit::Run;
    search.narrow(&ends(&|a, b| a.run != b.run))?;
    search.unit = BisectUnit::Function;
    search.narrow(&ends(&|_, _| true))?;
    search.unit = BisectUnit::Rewrite;
    while search.wrong - search.right > 1 {
        let middle = search.right + (search.wrong - search.right) / 2;
        search.is_wrong_at(middle)?;
    }
    // Run it once more, to record the rewrite and the program before its pass.
    let number = search.wrong;
    let limit = (number <= total).then_some(number);
    let options = RewriteOptions { limit, recorded: Some(number..=number), ..RewriteOptions::default() };
    let last = Arc::new(LastRun::new());
    let ended = search.try_once(options, Some(&last))?;
    Ok(FirstWrong { rewrite: ended.record, total, run: last.take(), failure: ended.failure, tries: search.tries })
}

/// The state of a search.
struct BisectSearch<'a> {
    module: &'a Module,
    passes: &'a dyn Pass,
    context: &'a dyn Fn() -> PassContextBuilder,
    is_wrong: &'a mut dyn FnMut(&Module) -> bool,
    progress: &'a mut dyn FnMut(&BisectStep) -> bool,
    unit: BisectUnit,
    right: u64,
    wrong: u64,
    tries: u64,
}

/// The end of one run of the pipeline.
struct BisectTry {
    is_wrong: bool,
    failure: Option<PassFailure>,
    rewrites: u64,
    spans: Vec<RewriteSpan>,
    record: Option<RewriteRecord>,
}

impl BisectSearch<'_> {
    /// Runs the pipeline on a copy of the program.
    fn try_once(&mut self, options: RewriteOptions, last: Option<&Arc<LastRun>>) -> Result<BisectTry, BisectError> {
        let limit = options.limit;
        let builder = last.into_iter().fold((self.context)(), |builder, last| builder.instrument(last.clone()));
        let cx = builder.rewrites(options).build()?;
        let mut module = self.module.clone();
        let done = cx.scope(|| self.passes.apply(&mut module, &cx)).and_then(|done| done);
        let failure = done.err();
        let is_wrong = failure.is_some() || (self.is_wrong)(&module);
        self.tries += 1;
        let rewrites = cx.rewrites();
        let step = BisectStep { unit: self.unit, limit, is_wrong, right: self.right, wrong: self.wrong };
        let ended = BisectTry {
            is_wrong,
            failure,
            rewrites: rewrites.count(),
            spans: rewrites.spans(),
            // The records of other bindings that the rewrite changes come after its own.
            record: rewrites.read_records(&mut LogPosition::default()).0.into_iter().next(),
        };
        if (self.progress)(&step) { Ok(ended) } else { Err(BisectError::Ended) }
    }

    /// Returns true if the program is wrong after this number of rewrites, which narrows the
    /// search.
    fn is_wrong_at(&mut self, limit: u64) -> Result<bool, BisectError> {
        let is_wrong =
            self.try_once(RewriteOptions { limit: Some(limit), ..RewriteOptions::default() }, None)?.is_wrong;
        match is_wrong {
            true => self.wrong = self.wrong.min(limit),
            false => self.right = self.right.max(limit),
        }
        Ok(is_wrong)
    }

    /// Narrows the search to the numbers between two neighbours of an ascending list.
    fn narrow(&mut self, points: &[u64]) -> Result<(), BisectError> {
        loop {
            let from = points.partition_point(|&point| point <= self.right);
            let to = points.partition_point(|&point| point < self.wrong);
            if from >= to {
                return Ok(());
            }
            self.is_wrong_at(points[from + (to - from) / 2])?;
        }
    }
}
