//! The search for the smallest program that shows a fault.
//!
//! [`reduce`] makes a program smaller as long as a test holds, and [`reduce_failure`] as long as a
//! pipeline fails in the same way.
//!
//! The search is delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating
//! Failure-Inducing Input", 2002) over the structure of programs, in passes as those of C-Reduce
//! (Regehr et al., "Test-Case Reduction for C Compiler Bugs", 2012). Each pass knows a kind of
//! *site*, such as the calls of a program, and a way to make the program smaller at any range of
//! sites. It is tried on all sites at once, then on halves, quarters and so on down to single
//! sites, from the end of the program to its beginning: what only removed code used is then gone
//! before it is looked at. A program of n bindings of which k are needed takes about k log n tests
//! of programs whose sizes shrink by half, so the time is close to linear in n for small k.
//!
//! ```
//! use anfora::prelude::*;
//! use anfora::reduce::{ReduceOptions, reduce};
//!
//! let text = "def @main(%x: Tensor[(64,), float32]) {
//!   let %a = exp(%x);
//!   let %b = tanh(%a);
//!   let %c = if (less(sum(%b), 1f)) { subtract(%b, %x) } else { %b };
//!   multiply(%c, %a)
//! }";
//! let module = parse_module(Source::new("example", text), anfora::ops::standard())?;
//! let mut has_tanh = |module: &Module| module.to_text().contains("tanh");
//! let reduced = reduce(&module, &mut has_tanh, &ReduceOptions::default(), &mut |_| true)
//!     .expect("the test holds");
//! assert_eq!(
//!     reduced.module.to_text(),
//!     "def @main() -> Tensor[(1,), float32] {\n  tanh(dense<Tensor[(1,), float32]>[0])\n}\n"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod constants;
mod expressions;
mod extents;
mod failing;
mod functions;
mod results;
mod size;

use std::ops::Range;
use std::sync::Arc;

use anfora_ir::{Counts, Form, Module, Purity, verify_module};
use anfora_manager::{Pass, PassContext, Verification, parse_pipeline};
use anfora_passes::eliminate_dead_code;

pub use failing::{FailingRun, ReduceError, ReducedFailure, reduce_failure};

use constants::Splats;
use expressions::{Cuts, Operands, Substitute, TakenBranches, UnusedBindings};
use extents::Extents;
use functions::{Attributes, Calls, Parameters};
use results::{Fields, Tails};
use size::ProgramSize;

/// The options of [`reduce`].
#[derive(Copy, Clone)]
pub struct ReduceOptions<'a> {
    /// The number of smaller programs that are tried before the search ends. Not all of them are
    /// well-formed and tested.
    pub most_tries: u64,
    /// Returns true for the programs that may be the result: for example, those that can be written
    /// as ONNX. Others are not tested.
    pub is_allowed: &'a dyn Fn(&Module) -> bool,
}

impl Default for ReduceOptions<'_> {
    fn default() -> Self {
        ReduceOptions { most_tries: 100_000, is_allowed: &|_| true }
    }
}

impl std::fmt::Debug for ReduceOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReduceOptions").field("most_tries", &self.most_tries).finish_non_exhaustive()
    }
}

/// The result of a reduction.
#[derive(Clone, Debug)]
pub struct Reduced {
    /// The smallest program that was found.
    pub module: Arc<Module>,
    /// The counts of the program that was given.
    pub before: Counts,
    /// The counts of the smallest program.
    pub after: Counts,
    /// The number of tests.
    pub tests: u64,
    /// True if nothing gets smaller any more; false if the search ended before.
    pub is_minimal: bool,
}

/// The state of a reduction, after a test.
#[derive(Debug)]
pub struct ReduceProgress<'a> {
    /// The kind of parts that are being removed.
    pub part: &'static str,
    /// The smallest program so far. It shows the fault, so a caller that may be interrupted keeps
    /// it.
    pub best: &'a Arc<Module>,
    /// True if the last test made the program smaller.
    pub is_smaller: bool,
    /// The number of tests so far.
    pub tests: u64,
    /// The run of the pipeline that fails on `best`, in [`reduce_failure`]; `None` in [`reduce`].
    pub failing: Option<&'a FailingRun>,
}

/// Makes a program smaller as long as a test holds, and returns the smallest program. Returns
/// `None` if the test does not hold for the program itself, or the program is not allowed.
///
/// The test gets well-formed programs. It should hold for programs that show one fault, and may
/// hold for others. `progress` is called after each test, and ends the search if it returns false.
/// The external functions of the program may get other parameters and results.
pub fn reduce(
    module: &Module,
    test: &mut dyn FnMut(&Module) -> bool,
    options: &ReduceOptions<'_>,
    progress: &mut dyn FnMut(&ReduceProgress<'_>) -> bool,
) -> Option<Reduced> {
    if !(options.is_allowed)(module) || !test(module) {
        return None;
    }
    let before = Counts::of_module(module);
    let mut best = module.clone();
    best.set_source(None);
    // The sites of a program are those of its compacted form.
    while best.has_edit() {
        best.commit();
    }
    best.compact().ok()?;
    let size = ProgramSize::of(&best);
    let mut search = Reduction {
        best: Arc::new(best),
        size,
        is_anf: false,
        test,
        progress,
        tests: 1,
        tries: 0,
        options: *options,
        is_over: false,
    };
    search.normalize();
    let is_minimal = search.run();
    let Reduction { best, tests, .. } = search;
    Some(Reduced { before, after: Counts::of_module(&best), module: best, tests, is_minimal })
}

/// A way to make programs smaller.
trait Shrink {
    /// The name of the parts that it removes.
    const PART: &'static str;

    /// Returns the number of sites of a program.
    fn sites(&self, module: &Module) -> usize;

    /// Makes a program smaller at a range of its sites. Returns false if there is nothing to
    /// change, also at any part of the range, and `None` if the change is not possible. The caller
    /// removes what nothing uses then, and checks whether the program is well-formed.
    fn apply(&self, module: &mut Module, sites: Range<usize>) -> Option<bool>;
}

/// The end of a try to make the program smaller.
enum Offer {
    /// The smaller program is kept.
    Kept,
    /// There is nothing to change.
    Nothing,
    /// The program is not smaller or not well-formed, or does not show the fault.
    Refused,
}

/// The state of a search.
struct Reduction<'a> {
    best: Arc<Module>,
    size: ProgramSize,
    /// True if the smallest program is in A-normal form.
    is_anf: bool,
    test: &'a mut dyn FnMut(&Module) -> bool,
    progress: &'a mut dyn FnMut(&ReduceProgress<'_>) -> bool,
    tests: u64,
    tries: u64,
    options: ReduceOptions<'a>,
    /// True if the search ends before nothing gets smaller.
    is_over: bool,
}

impl Reduction<'_> {
    /// Brings the program into A-normal form, in which unused bindings can be removed, if the test
    /// still holds then.
    fn normalize(&mut self) {
        let is_anf = |module: &Module| verify_module(module).is_ok_and(|report| report.form() == Form::Anf);
        self.is_anf = is_anf(&self.best);
        if self.is_anf {
            return;
        }
        let mut module = Module::clone(&self.best);
        let registry = anfora_passes::registry();
        let cx = PassContext::builder().registry(registry.clone()).verification(Verification::Off).build();
        let (Ok(cx), Ok(passes)) = (cx, parse_pipeline(&registry, "ToANormalForm")) else { return };
        if passes.apply(&mut module, &cx).is_ok() && is_anf(&module) {
            self.is_anf = self.try_module(module, "graphs");
        }
    }

    /// Removes parts until nothing gets smaller. Returns false if the search ended before.
    fn run(&mut self) -> bool {
        loop {
            let before = self.size;
            // Large parts first: functions by halves, before each of the rest is searched.
            self.shrink(&Calls);
            self.shorten_results();
            self.shrink(&Fields);
            self.shrink(&TakenBranches { takes_else: false });
            self.shrink(&TakenBranches { takes_else: true });
            for by in [Substitute::Parameter, Substitute::Operand, Substitute::Zero] {
                self.shrink(&Cuts { by });
            }
            self.shrink(&UnusedBindings);
            if self.size == before {
                self.shrink(&Tails);
                self.shrink(&Parameters);
                self.shrink(&Attributes);
                for by in [Substitute::Parameter, Substitute::Zero] {
                    self.shrink(&Operands { by });
                }
                self.shrink(&Splats { one: false });
                self.shrink(&Splats { one: true });
                self.shrink(&Extents);
            }
            if self.is_over || self.size == before {
                return !self.is_over;
            }
        }
    }

    /// Applies one way to all sites, then to halves, and so on down to single sites.
    fn shrink<S: Shrink>(&mut self, way: &S) {
        let all = 0..way.sites(&self.best);
        let mut level: Vec<Range<usize>> = if all.is_empty() { Vec::new() } else { vec![all] };
        while !level.is_empty() && !self.is_over {
            // The halves of the ranges that stay, from the last to the first.
            let mut next: Vec<Range<usize>> = Vec::new();
            let mut sites = way.sites(&self.best);
            for range in level.into_iter().rev() {
                // What only removed sites used went with them, so there may be fewer sites.
                let range = range.start..range.end.min(sites);
                if range.is_empty() {
                    continue;
                }
                match self.offer(way, range.clone()) {
                    _ if self.is_over => return,
                    Offer::Kept => {
                        // The sites behind the removed ones have lower numbers now.
                        let before = std::mem::replace(&mut sites, way.sites(&self.best));
                        let gone = before.saturating_sub(sites);
                        for later in &mut next {
                            *later = later.start.saturating_sub(gone)..later.end.saturating_sub(gone);
                        }
                    }
                    Offer::Nothing => {}
                    Offer::Refused if range.len() == 1 => {}
                    Offer::Refused => {
                        let middle = range.start + range.len() / 2;
                        next.extend([middle..range.end, range.start..middle]);
                    }
                }
            }
            next.reverse();
            level = next;
        }
    }

    fn count_try(&mut self) {
        self.tries += 1;
        self.is_over |= self.tries >= self.options.most_tries;
    }

    /// Keeps the program that a way makes of the smallest one, if it is smaller and the test holds.
    fn offer<S: Shrink>(&mut self, way: &S, sites: Range<usize>) -> Offer {
        self.count_try();
        let mut module = Module::clone(&self.best);
        match way.apply(&mut module, sites) {
            Some(true) => {}
            Some(false) => return Offer::Nothing,
            None => return Offer::Refused,
        }
        let is_kept = self.tidy(&mut module).is_some()
            && ProgramSize::of(&module) < self.size
            && self.try_module(module, S::PART);
        if is_kept { Offer::Kept } else { Offer::Refused }
    }

    /// Removes what nothing uses. Returns `None` if the program is not well-formed.
    fn tidy(&self, module: &mut Module) -> Option<()> {
        functions::update_signatures(module)?;
        if self.is_anf {
            let purity = Purity::of_module(module);
            eliminate_dead_code(module, &purity, &[], &PassContext::new()).ok()?;
        }
        module.compact().ok()?;
        verify_module(module).ok().map(|_| ())
    }

    /// Keeps a program if the test holds for it, and reports the progress.
    fn try_module(&mut self, module: Module, part: &'static str) -> bool {
        self.tests += 1;
        let is_smaller = (self.options.is_allowed)(&module) && (self.test)(&module);
        if is_smaller {
            self.size = ProgramSize::of(&module);
            self.best = Arc::new(module);
        }
        let progress = ReduceProgress { part, best: &self.best, is_smaller, tests: self.tests, failing: None };
        self.is_over |= !(self.progress)(&progress);
        is_smaller
    }
}

#[cfg(test)]
mod tests {
    use anfora_testing::programs::Shape;
    use anfora_testing::{depth, on_small_stack};

    use super::*;

    /// Applies a way to all sites of a program, and to the second half of them.
    fn apply<S: Shrink>(way: &S, module: &Module) {
        let sites = way.sites(module);
        for range in [0..sites, sites / 2..sites] {
            let mut smaller = module.clone();
            if way.apply(&mut smaller, range).is_some() && functions::update_signatures(&mut smaller).is_some() {
                smaller.compact().expect("no edit is open");
                // A change may be refused here, but nothing overflows.
                let _ = verify_module(&smaller);
            }
        }
    }

    /// Applies every way to a deep program of a shape, on a small stack.
    fn make_smaller(shape: Shape) {
        on_small_stack(move || {
            let size = depth(1_500).min(shape.max_size().unwrap_or(usize::MAX));
            let module = shape.build(size, 1).expect("a program");
            for by in [Substitute::Parameter, Substitute::Operand, Substitute::Zero] {
                apply(&Cuts { by }, &module);
                apply(&Operands { by }, &module);
            }
            for takes_else in [false, true] {
                apply(&TakenBranches { takes_else }, &module);
            }
            apply(&UnusedBindings, &module);
            apply(&Fields, &module);
            apply(&Tails, &module);
            apply(&Calls, &module);
            apply(&Parameters, &module);
            apply(&Attributes, &module);
            apply(&Splats { one: true }, &module);
            let site = 0..Extents.sites(&module).min(1);
            let _ = Extents.apply(&mut module.clone(), site);
        });
    }

    #[test]
    fn deep_programs_are_made_smaller_on_a_small_stack() {
        // Two threads take the next shape in turn: this test takes most of the time of the unit
        // tests.
        let shapes = std::sync::Mutex::new(Shape::all());
        let next = || shapes.lock().expect("no thread panics while it holds the lock").next();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| std::iter::from_fn(&next).for_each(make_smaller));
            }
        });
    }
}
