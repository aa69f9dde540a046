//! Tests of passes on text. A test compares the result of a pass with the expected program, and
//! checks that the result is well-formed, has the same meaning, and is left as it is by a second
//! run.
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
//!
//! The macro of the same name takes the contents of a function's block. Locals that nothing binds
//! are the parameters of the function:
//!
//! ```
//! use anfora::check::check_pass;
//! use anfora::prelude::*;
//!
//! let pass = FunctionPass::from_rules("Simplify", 1, rules!["multiply(%x, 1)" => "%x"]);
//! check_pass!(pass, "let %a = multiply(%x, 1f); tanh(%a)" => "tanh(%x)");
//! check_pass!(pass, "%x: Tensor[(n, 4), int8]", "abs(multiply(%x, 1i8))" => "abs(%x)");
//! ```
//!
//! [`check_files`] runs a test for each file in a folder.

mod files;

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use anfora_ir::{Module, OpRegistry, Source, VarId, alpha_equal, parse_fragment, parse_module, unified_diff};
use anfora_manager::{Outcome, Pass, PassContext, PassContextBuilder, VerifyEach};

pub use files::check_files;

/// Runs `pass` on `before` and compares the result with `after`, using the defaults of
/// [`PassCheck`].
///
/// # Panics
/// If the check fails, with the reason. The function is meant for tests.
#[track_caller]
pub fn check_pass(pass: &dyn Pass, before: &str, after: &str) {
    if let Err(failure) = PassCheck::new(pass).check(before, after) {
        panic!("{failure}");
    }
}

/// Runs a pass on the contents of a function's block and compares the result with the expected
/// contents, up to the names of bindings: `check_pass!(pass, "before" => "after")`. Locals that
/// nothing binds are parameters of type float32, unless
/// `check_pass!(pass, "%x: Tensor[(4,), int8], …", "before" => "after")` states their types.
///
/// # Panics
/// If the check fails, like the function [`check_pass`](fn@crate::check::check_pass).
#[macro_export]
macro_rules! check_pass {
    ($pass:expr, $before:literal => $after:literal $(,)?) => {
        $crate::check_pass!($pass, "", $before => $after)
    };
    ($pass:expr, $params:literal, $before:literal => $after:literal $(,)?) => {
        if let Err(failure) = $crate::check::PassCheck::new(&$pass).check_block($params, $before, $after) {
            panic!("{failure}");
        }
    };
}
#[doc(inline)]
pub use crate::check_pass;

/// A check of a pass on text.
///
/// The pass is run on a program. Its result is compared with the expected program in printed form,
/// so the expected text may state types or leave them out. The result must be well-formed, and a
/// second run must leave it as it is. With the feature `interp`, it must also compute the same on
/// random arguments, within the [tolerance](crate::manager::PassInfo::tolerance) of the pass. If a
/// pass changes a program and none of its runs can be compared, the check fails, unless the pass is
/// declared to [change the meaning](PassCheck::changing_meaning).
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
    /// Makes a check on the standard operators, under a context of level 3 with the passes of this
    /// toolkit.
    pub fn new(pass: &'p dyn Pass) -> PassCheck<'p> {
        let (runs, meaning) = (Runs::Twice, Meaning::Kept);
        PassCheck { pass, context: None, operators: anfora_ops::standard(), runs, meaning }
    }

    /// Uses another context, with its settings, registry and instruments.
    #[must_use]
    pub fn under(self, context: &PassContext) -> PassCheck<'p> {
        PassCheck { context: Some(context.clone()), ..self }
    }

    /// Uses other operators.
    #[must_use]
    pub fn operators(self, operators: Arc<OpRegistry>) -> PassCheck<'p> {
        PassCheck { operators, ..self }
    }

    /// Runs the pass only once, for a pass whose second run may change its result.
    #[must_use]
    pub fn once(self) -> PassCheck<'p> {
        PassCheck { runs: Runs::Once, ..self }
    }

    /// Turns the comparison of meanings off. Use it for a pass that changes the results of
    /// programs, or for a program that cannot be interpreted.
    #[must_use]
    pub fn changing_meaning(self) -> PassCheck<'p> {
        PassCheck { meaning: Meaning::Changed, ..self }
    }

    /// Runs the check.
    ///
    /// # Errors
    /// If a text is not a program, the pass fails or is skipped, or its result is not as expected.
    /// An error about an unexpected result has a diff.
    pub fn check(&self, before: &str, after: &str) -> Result<(), CheckFailure> {
        let read = |name: &str, text: &str| {
            parse_module(Source::new(name, text), self.operators.clone())
                .map_err(|errors| CheckFailure(format!("the program is refused\n{errors}")))
        };
        let (before, after) = (read("before", before)?, read("after", after)?);
        self.compare(before, &after, |found, wanted| found.to_text() == wanted.to_text())
    }

    /// Runs the check on the contents of a function's block, up to the names in it. `params` are
    /// parameters as in a signature; locals that nothing binds are further parameters, of type
    /// float32.
    ///
    /// # Errors
    /// In the same cases as [`check`](PassCheck::check).
    pub fn check_block(&self, params: &str, before: &str, after: &str) -> Result<(), CheckFailure> {
        let read = |params: &str, text: &str| {
            parse_fragment(params, text, self.operators.clone())
                .map_err(|errors| CheckFailure(format!("the program is refused\n{errors}")))
        };
        let before = read(params, before)?;
        // The result may use fewer of the parameters, so it is read with all of them.
        let after = read(&params_of(&before), after)?;
        self.compare(before, &after, alpha_equal)
    }

    fn compare(
        &self,
        mut module: Module,
        wanted: &Module,
        is_wanted: impl Fn(&Module, &Module) -> bool,
    ) -> Result<(), CheckFailure> {
        let name = self.pass.info().name.clone();
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
        if !is_wanted(&module, wanted) {
            let wanted = wanted.to_text();
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

/// Returns the parameters of the function of a fragment, as its signature lists them.
fn params_of(module: &Module) -> String {
    let Some((_, function)) = module.functions().next() else { return String::new() };
    let (cx, body) = (&module.cx, &function.body);
    let param = |var: &VarId| {
        let name = body.var_name(*var).map_or("", |name| cx.names.get(name));
        format!("%{name}: {}", cx.type_text(body.type_of(var.expr())))
    };
    body.params().iter().map(param).collect::<Vec<_>>().join(", ")
}

/// The comparison of meanings, if the pass keeps them and this build has the interpreter.
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

    /// Checks that meanings were compared, if the program was changed.
    ///
    /// # Errors
    /// If the pass changed something, and nothing could be compared.
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

/// The reason why a check failed, as text.
#[derive(Clone, PartialEq, Eq)]
pub struct CheckFailure(String);

impl fmt::Display for CheckFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.trim_end())
    }
}

/// Prints the same text as [`Display`](fmt::Display), because `unwrap` prints the `Debug` form.
impl fmt::Debug for CheckFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for CheckFailure {}

/// Checks that two modules compute the same, bit for bit, with the same effects. Runs the external
/// functions of the first module on random arguments.
///
/// # Errors
/// If the modules differ, or nothing could be compared.
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
    use anfora_manager::FunctionPass;
    use anfora_passes::FromRules;

    use super::*;

    const BEFORE: &str = "declare @far(%x: float32) -> float32;
        def @main(%x: float32) { let %unused = tanh(%x); @far(%x) }";
    const AFTER: &str = "declare @far(%x: float32) -> float32;
        def @main(%x: float32) { @far(%x) }";

    #[test]
    fn a_block_is_compared_up_to_names_and_a_difference_is_shown() {
        let rules = anfora_visit::rules!["multiply(%x, 1)" => "%x"];
        let pass = FunctionPass::from_rules("Simplify", 1, rules);
        let check =
            |after| PassCheck::new(&pass).check_block("%y: int8", "let %a = multiply(%x, 1f); exp(tanh(%a))", after);
        check("let %z = tanh(%x); exp(%z)").expect_err("the tail is nested");
        check("exp(tanh(%x))").expect("names do not count");
        let failure = check("exp(sin(%x))").expect_err("it is another operator").to_string();
        for part in ["`Simplify` makes something else", "-  exp(sin(%x))", "+  exp(tanh(%x))"] {
            assert!(failure.contains(part), "{failure}");
        }
        let failure = check("exp(tanh(%x)").expect_err("it is not closed").to_string();
        assert!(failure.contains("expected `,` or `)`"), "{failure}");
    }

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
