//! Tests of passes, on text: what a pass makes of a program, whether it is well-formed, means the
//! same, and stays as it is.
//!
//! ```
//! use anfora::check::check_pass;
//!
//! let dce = anfora::passes::registry().make("DeadCodeElimination")?;
//! check_pass(
//!     &*dce,
//!     "def @main(%x: float32) { let %unused = exp(%x); tanh(%x) }",
//!     "def @main(%x: float32) { tanh(%x) }",
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use anfora_ir::{Module, OpRegistry, Source, parse_module};
use anfora_manager::{Outcome, Pass, PassContext, PassContextBuilder, VerifyEach, unified_diff};

/// Runs `pass` on `before` and compares the result with `after`, using the defaults of
/// [`PassCheck`].
///
/// # Panics
/// If the check fails, with the reason: the function is for tests.
#[track_caller]
pub fn check_pass(pass: &dyn Pass, before: &str, after: &str) {
    if let Err(failure) = PassCheck::new(pass).check(before, after) {
        panic!("{failure}");
    }
}

/// A check of a pass on text.
///
/// The pass is run on a program and has to make another one, which is compared in the printed form,
/// so that the expected text may state types or leave them out. What it makes has to be
/// well-formed, to compute the same on arguments that are drawn (with the feature `interp`; within
/// the [tolerance](Pass::tolerance) of the pass), and to be left as it is by a second run. A pass
/// that changes a program of which no run can be compared fails the check, unless it is declared to
/// [change the meaning](PassCheck::changing_meaning).
pub struct PassCheck<'p> {
    pass: &'p dyn Pass,
    context: Option<PassContext>,
    operators: Arc<OpRegistry>,
    runs: Runs,
    meaning: Meaning,
}

#[derive(Copy, Clone, PartialEq)]
enum Runs {
    Once,
    Twice,
}

#[derive(Copy, Clone, PartialEq)]
enum Meaning {
    Kept,
    Changed,
}

impl fmt::Debug for PassCheck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassCheck").field("pass", &self.pass.info().name).finish_non_exhaustive()
    }
}

impl<'p> PassCheck<'p> {
    /// A check on the standard operators, under a context of level 3 with the passes of this
    /// toolkit.
    pub fn new(pass: &'p dyn Pass) -> PassCheck<'p> {
        let (runs, meaning) = (Runs::Twice, Meaning::Kept);
        PassCheck { pass, context: None, operators: anfora_ops::standard(), runs, meaning }
    }

    /// Under another context: its settings, registry and instruments.
    #[must_use]
    pub fn under(self, context: &PassContext) -> PassCheck<'p> {
        PassCheck { context: Some(context.clone()), ..self }
    }

    /// On other operators.
    #[must_use]
    pub fn operators(self, operators: Arc<OpRegistry>) -> PassCheck<'p> {
        PassCheck { operators, ..self }
    }

    /// Of a pass that a second run may go on with.
    #[must_use]
    pub fn once(self) -> PassCheck<'p> {
        PassCheck { runs: Runs::Once, ..self }
    }

    /// Of a pass that is meant to change what the program computes, or on a program that cannot be
    /// interpreted.
    #[must_use]
    pub fn changing_meaning(self) -> PassCheck<'p> {
        PassCheck { meaning: Meaning::Changed, ..self }
    }

    /// Runs the check.
    ///
    /// # Errors
    /// If a text is no program, the pass fails or is skipped, or its result is not what is
    /// expected: with a diff.
    pub fn check(&self, before: &str, after: &str) -> Result<(), CheckFailure> {
        let name = self.pass.info().name.clone();
        let read = |name: &str, text: &str| -> Result<Module, CheckFailure> {
            parse_module(Source::new(name, text), self.operators.clone())
                .map_err(|errors| CheckFailure(format!("the program is refused\n{errors}")))
        };
        let mut module = read("before", before)?;
        let wanted = read("after", after)?.to_text();
        let builder = match &self.context {
            Some(context) => context.derive(),
            None => PassContext::builder().registry(anfora_passes::registry()).opt_level(3),
        };
        let builder = builder.instrument(Arc::new(VerifyEach::with_input()));
        let meanings = MeaningCheck::new(self.meaning);
        let context = meanings
            .watch(builder)
            .build()
            .map_err(|error| CheckFailure(format!("no context can be made: {error}")))?;
        self.run(&mut module, &context)?;
        let found = module.to_text();
        if found != wanted {
            let diff = unified_diff(["expected", "found"], &wanted, &found);
            return Err(CheckFailure(format!("`{name}` makes something else than is expected\n{diff}\n{found}")));
        }
        if self.runs == Runs::Twice {
            self.run(&mut module, &context)?;
            let again = module.to_text();
            if again != found {
                let diff = unified_diff(["first run", "second run"], &found, &again);
                return Err(CheckFailure(format!("a second run of `{name}` changes what the first one made\n{diff}")));
            }
        }
        meanings.verdict(&name)
    }

    fn run(&self, module: &mut Module, context: &PassContext) -> Result<(), CheckFailure> {
        let outcome = self.pass.apply(module, context).map_err(|failure| {
            let all: Vec<String> = failure.to_diagnostics().iter().map(ToString::to_string).collect();
            CheckFailure(all.join("\n"))
        })?;
        match outcome {
            Outcome::Skipped(reason) => Err(CheckFailure(format!("`{}` was not run: {reason}", self.pass.info().name))),
            Outcome::Changed | Outcome::Unchanged => Ok(()),
        }
    }
}

/// Compares meanings, if the pass keeps them and this build has the interpreter.
struct MeaningCheck {
    #[cfg(feature = "interp")]
    instrument: Option<Arc<anfora_passes::CheckMeaning>>,
}

#[cfg(feature = "interp")]
impl MeaningCheck {
    fn new(meaning: Meaning) -> MeaningCheck {
        MeaningCheck { instrument: (meaning == Meaning::Kept).then(Arc::default) }
    }

    fn watch(&self, builder: PassContextBuilder) -> PassContextBuilder {
        match &self.instrument {
            Some(instrument) => builder.instrument(instrument.clone()),
            None => builder,
        }
    }

    /// # Errors
    /// If a pass of this name changed something, and nothing could be compared.
    fn verdict(&self, name: &str) -> Result<(), CheckFailure> {
        let Some(instrument) = &self.instrument else { return Ok(()) };
        let checked = instrument.checked();
        if checked.passes == 0 || checked.runs > 0 {
            return Ok(());
        }
        let mut message = format!(
            "`{name}` changed the program, and no run of an external function could be compared with one before it; \
             if that is meant, use `.changing_meaning()`"
        );
        for note in instrument.notes() {
            message.push('\n');
            message.push_str(&note);
        }
        Err(CheckFailure(message))
    }
}

#[cfg(not(feature = "interp"))]
impl MeaningCheck {
    fn new(_: Meaning) -> MeaningCheck {
        MeaningCheck {}
    }

    fn watch(&self, builder: PassContextBuilder) -> PassContextBuilder {
        builder
    }

    fn verdict(&self, _: &str) -> Result<(), CheckFailure> {
        Ok(())
    }
}

/// The reason for which a check failed, in words for its reader.
#[derive(Clone, PartialEq, Eq)]
pub struct CheckFailure(String);

impl fmt::Display for CheckFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.trim_end())
    }
}

/// As [`Display`](fmt::Display), which is what `unwrap` shows.
impl fmt::Debug for CheckFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for CheckFailure {}

/// Checks that two modules compute the same, bit for bit, with the same effects: the external
/// functions of the first, on arguments that are drawn.
///
/// # Errors
/// If they do not, or nothing could be compared.
#[cfg(feature = "interp")]
pub fn same_meaning(first: &Module, second: &Module) -> Result<(), CheckFailure> {
    let checked = anfora_passes::same_meaning(first, second, anfora_interp::Agreement::Exact)
        .map_err(|difference| CheckFailure(difference.to_string()))?;
    match checked.runs {
        0 => Err(CheckFailure("no run of the first could be compared with one of the second".to_string())),
        _ => Ok(()),
    }
}

#[cfg(all(test, feature = "interp"))]
mod tests {
    use super::*;

    const BEFORE: &str = "declare @far(%x: float32) -> float32;
        def @main(%x: float32) { let %unused = tanh(%x); @far(%x) }";
    const AFTER: &str = "declare @far(%x: float32) -> float32;
        def @main(%x: float32) { @far(%x) }";

    #[test]
    fn a_change_of_which_nothing_can_be_told_fails() {
        let pass = anfora_passes::registry().make("DeadCodeElimination").expect("it is registered");
        let failure = PassCheck::new(&*pass).check(BEFORE, AFTER).expect_err("nothing can be compared").to_string();
        for part in ["no run", "`@main` is not checked: `@far` is declared", "`.changing_meaning()`"] {
            assert!(failure.contains(part), "{failure}");
        }
        PassCheck::new(&*pass).changing_meaning().check(BEFORE, AFTER).expect("nothing is asked");
        // A pass that changes nothing has nothing to compare.
        PassCheck::new(&*pass).check(AFTER, AFTER).expect("nothing is changed");
    }
}
