//! The search for the first rewrite after which a program is wrong.
//!
//! A context can stop the passes of a pipeline after any number of rewrites
//! ([`limit_rewrites`](anfora_manager::PassContextBuilder::limit_rewrites)). A binary search over
//! this number finds the first wrong one, as `git bisect` finds a commit and LLVM's `opt-bisect` a
//! pass. It goes over the runs of passes first, then over the functions of the wrong run, and then
//! over single rewrites.
//!
//! ```
//! use anfora::bisect::{Judgement, bisect};
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
//! let mut judge = |module: &Module| match module.to_text().contains("subtract") {
//!     true => Judgement::Right,
//!     false => Judgement::Wrong,
//! };
//! let found = bisect(&module, &pass, &context, &mut judge, &mut |_| true)?;
//! let rewrite = found.rewrite.expect("a rewrite is wrong");
//! assert_eq!(rewrite.why, "subtract(%x, %y) => add(%y, %x)");
//! assert_eq!(rewrite.binding.as_deref(), Some("b"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ops::Range;
use std::sync::Arc;

use anfora_ir::{LogPosition, Module, RewriteOptions, RewriteRecord, RewriteSpan};
use anfora_manager::{ContextError, LastRun, Pass, PassContextBuilder, PassFailure, RecordedRun};
use rustc_hash::FxHashSet;

/// The answer of a test of a program.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Judgement {
    /// The program is right.
    Right,
    /// The program is wrong.
    Wrong,
    /// The test cannot tell. The search looks at a neighbouring state instead, as `git bisect skip`
    /// does.
    Undecided,
}

/// The first wrong rewrite of a pipeline.
#[derive(Clone, Debug)]
pub struct FirstWrong {
    /// The wrong rewrite, with its pass, function and binding; `None` if a pass fails although all
    /// rewrites before the failure are right. If [`FirstWrong::is_exact`] is false, the last of the
    /// rewrites that may be the wrong one.
    pub rewrite: Option<RewriteRecord>,
    /// The number of rewrites of the whole pipeline, or of its part before the failure.
    pub total: u64,
    /// The number of rewrites after which the program is known to be right.
    pub right: u64,
    /// The number of rewrites after which the program is known to be wrong; one more than `total`
    /// for a failure after all of them.
    pub wrong: u64,
    /// The run of the pass, with the program before it; `None` if the pipeline fails before any
    /// pass runs.
    pub run: Option<Arc<RecordedRun>>,
    /// The failure with which the pipeline ends after the wrong rewrite; `None` if only the result
    /// is wrong.
    pub failure: Option<Arc<PassFailure>>,
    /// The number of times that the pipeline ran.
    pub tries: u64,
    /// The number of states that the test could not decide.
    pub undecided: u64,
}

impl FirstWrong {
    /// Returns true if the wrong rewrite is known. Otherwise it is one of those after the first
    /// [`right`](FirstWrong::right), up to number [`wrong`](FirstWrong::wrong): the test could not
    /// decide between them, or the search was interrupted.
    pub fn is_exact(&self) -> bool {
        self.wrong == self.right + 1
    }

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
        self.run.as_ref().map(|run| run.reproducer(&run.module, self.failure.as_deref()))
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
    /// The test cannot tell whether the result of the whole pipeline is right.
    #[error("the result of the whole pipeline cannot be judged")]
    ResultUndecided,
    /// The test cannot tell whether the program is right before any rewrite.
    #[error("the program before any rewrite cannot be judged")]
    StartUndecided,
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
#[derive(Copy, Clone, Debug)]
pub struct BisectStep<'a> {
    /// The unit that is searched for.
    pub unit: BisectUnit,
    /// The number of rewrites after which the pipeline was stopped; `None` if it was not.
    pub limit: Option<u64>,
    /// The answer of the test for the program then.
    pub judgement: Judgement,
    /// The nearest wrong state so far, for a caller that may be interrupted; `None` if no state was
    /// wrong so far.
    pub found: Option<&'a FirstWrong>,
}

/// Finds the first rewrite of a pipeline after which a program is wrong: the pipeline fails, or
/// `judge` says so of its result.
///
/// `context` returns a new builder for each run, with the settings and instruments under which the
/// pipeline runs. With the instrument [`CheckMeaning`](anfora_passes::CheckMeaning), the pipeline
/// fails at the pass that changes what a program computes. `progress` is called after each run,
/// and ends the search if it returns false.
///
/// If the program is wrong after some number of rewrites and right after more, the result is one of
/// the rewrites after which it becomes wrong. Cost: the pipeline runs once for each halving of the
/// number of rewrites, and a few times more for each halving in which `judge` cannot tell.
///
/// # Errors
/// If the program is wrong before the pipeline or right after it, if `judge` cannot tell one of
/// these, if `progress` ends the search, or if a context cannot be built.
pub fn bisect(
    module: &Module,
    passes: &dyn Pass,
    context: &dyn Fn() -> PassContextBuilder,
    judge: &mut dyn FnMut(&Module) -> Judgement,
    progress: &mut dyn FnMut(&BisectStep<'_>) -> bool,
) -> Result<FirstWrong, BisectError> {
    let mut search = BisectSearch {
        module,
        passes,
        context,
        judge,
        progress,
        unit: BisectUnit::Pipeline,
        total: None,
        right: 0,
        wrong: u64::MAX,
        found: None,
        tries: 0,
        undecided: FxHashSet::default(),
    };
    let (judgement, spans) = search.try_once(None)?;
    match judgement {
        Judgement::Right => return Err(BisectError::NeverWrong),
        Judgement::Undecided => return Err(BisectError::ResultUndecided),
        Judgement::Wrong => {}
    }
    match search.try_once(Some(0))?.0 {
        Judgement::Right => {}
        Judgement::Undecided => return Err(BisectError::StartUndecided),
        Judgement::Wrong => return Err(BisectError::WrongBefore),
    }
    let total = search.total.unwrap_or_default();
    let ends = |differs: &dyn Fn(&RewriteSpan, &RewriteSpan) -> bool| -> Vec<u64> {
        let borders = spans.windows(2).filter(|pair| differs(&pair[0], &pair[1]));
        borders.map(|pair| pair[1].first - 1).chain([total]).collect()
    };
    search.unit = BisectUnit::Run;
    search.narrow(&ends(&|a, b| a.run != b.run))?;
    search.unit = BisectUnit::Function;
    search.narrow(&ends(&|_, _| true))?;
    search.unit = BisectUnit::Rewrite;
    search.narrow_to(|search| search.right + 1..search.wrong, |point| point)?;
    search.found().ok_or(BisectError::NeverWrong)
}

/// The state of a search.
struct BisectSearch<'a> {
    module: &'a Module,
    passes: &'a dyn Pass,
    context: &'a dyn Fn() -> PassContextBuilder,
    judge: &'a mut dyn FnMut(&Module) -> Judgement,
    progress: &'a mut dyn FnMut(&BisectStep<'_>) -> bool,
    unit: BisectUnit,
    /// The number of rewrites of the whole pipeline, once it has run.
    total: Option<u64>,
    right: u64,
    wrong: u64,
    /// The state after `wrong` rewrites.
    found: Option<WrongState>,
    tries: u64,
    /// The numbers of rewrites after which the program cannot be judged.
    undecided: FxHashSet<u64>,
}

/// The end of a run of the pipeline after which the program is wrong.
struct WrongState {
    rewrite: Option<RewriteRecord>,
    run: Option<Arc<RecordedRun>>,
    failure: Option<Arc<PassFailure>>,
}

impl BisectSearch<'_> {
    /// Runs the pipeline on a copy of the program, up to a number of rewrites or to its end, and
    /// narrows the search. Returns the spans of a run without a limit too.
    fn try_once(&mut self, limit: Option<u64>) -> Result<(Judgement, Vec<RewriteSpan>), BisectError> {
        let recorded = limit.map(|last| last..=last);
        let options = RewriteOptions { limit, recorded, spans: limit.is_none(), ..RewriteOptions::default() };
        let last = Arc::new(LastRun::new());
        let cx = (self.context)().instrument(last.clone()).rewrites(options).build()?;
        let mut module = self.module.clone();
        let done = cx.scope(|| self.passes.apply(&mut module, &cx)).and_then(|done| done);
        let failure = done.err().map(Arc::new);
        let judgement = if failure.is_some() { Judgement::Wrong } else { (self.judge)(&module) };
        self.tries += 1;
        let rewrites = cx.rewrites();
        let total = *self.total.get_or_insert(rewrites.count());
        match (judgement, limit) {
            // A failure may come after the last rewrite: one more than all of them means no limit.
            (Judgement::Wrong, _) if limit.unwrap_or(total + 1) < self.wrong => {
                self.wrong = limit.unwrap_or(total + 1);
                // The records of other bindings that the rewrite changes come after its own.
                let rewrite = rewrites.read_records(&mut LogPosition::default()).0.into_iter().next();
                let run = last.take().map(Arc::new);
                self.found = Some(WrongState { rewrite, run, failure });
            }
            (Judgement::Right, Some(limit)) => self.right = self.right.max(limit),
            (Judgement::Undecided, Some(limit)) => _ = self.undecided.insert(limit),
            _ => {}
        }
        let found = self.found();
        let step = BisectStep { unit: self.unit, limit, judgement, found: found.as_ref() };
        if (self.progress)(&step) { Ok((judgement, rewrites.spans())) } else { Err(BisectError::Ended) }
    }

    /// Returns the nearest wrong state so far.
    fn found(&self) -> Option<FirstWrong> {
        let WrongState { rewrite, run, failure } = self.found.as_ref()?;
        Some(FirstWrong {
            rewrite: rewrite.clone(),
            total: self.total?,
            right: self.right,
            wrong: self.wrong,
            run: run.clone(),
            failure: failure.clone(),
            tries: self.tries,
            undecided: self.undecided.len() as u64,
        })
    }

    /// Narrows the search to the numbers between two neighbours of an ascending list.
    fn narrow(&mut self, points: &[u64]) -> Result<(), BisectError> {
        let between = |search: &Self| {
            let from = points.partition_point(|&point| point <= search.right);
            let to = points.partition_point(|&point| point < search.wrong);
            from as u64..to as u64
        };
        self.narrow_to(between, |index| points[index as usize])
    }

    /// Halves a range of points until none is between the right and the wrong ones, or none of
    /// those that are tried can be judged. `between` returns the indices of the points between
    /// them.
    fn narrow_to(
        &mut self,
        between: impl Fn(&Self) -> Range<u64>,
        point: impl Fn(u64) -> u64,
    ) -> Result<(), BisectError> {
        loop {
            let range = between(self);
            let mut is_decided = false;
            for index in from_the_middle(range) {
                let point = point(index);
                if self.undecided.contains(&point) {
                    continue;
                }
                if self.try_once(Some(point))?.0 != Judgement::Undecided {
                    is_decided = true;
                    break;
                }
            }
            if !is_decided {
                return Ok(());
            }
        }
    }
}

/// Returns the middle of a range, and then its neighbours on both sides: the nearest, and from then
/// on at distances that double. So a range takes a logarithmic number of tries.
fn from_the_middle(range: Range<u64>) -> impl Iterator<Item = u64> {
    /// Up to this distance, all neighbours are tried.
    const NEAR: u64 = 4;
    let middle = range.start + range.end.saturating_sub(range.start) / 2;
    let distances = std::iter::successors(Some(0u64), |&d| if d < NEAR { Some(d + 1) } else { d.checked_mul(2) });
    let both = distances.take_while({
        let range = range.clone();
        move |&d| d <= range.end.saturating_sub(range.start)
    });
    let both = both.flat_map(move |d| {
        let left = middle.checked_sub(d).filter(|_| d > 0);
        [middle.checked_add(d), left].into_iter().flatten()
    });
    both.filter(move |index| range.contains(index))
}
