//! Contexts that detect every pass that breaks a program.

use std::sync::Arc;

use anfora_manager::{PassContext, PassContextBuilder, VerifyEach};

use crate::catalogue::registry;
#[cfg(feature = "interp")]
use crate::check_meaning::CheckMeaning;

/// A context that checks each pass, in any build.
pub trait CheckedContext {
    /// Makes a context of level 2 with the passes of this crate. The module is verified before the
    /// first pass and after each pass that changed it ([`VerifyEach`]), and interpreted then
    /// (`CheckMeaning`, with the feature `interp`). A pass fails and its changes are rolled back if
    /// it makes an ill-formed module, or one that computes something else.
    ///
    /// It is meant for tests: interpreting a program takes far longer than most passes do.
    ///
    /// ```
    /// use anfora_ir::{Source, parse_module};
    /// use anfora_manager::{FunctionPass, Pass, PassContext};
    /// use anfora_passes::CheckedContext;
    ///
    /// let wrong = FunctionPass::new("Wrong", 0, |function, _, _| {
    ///     let x = function.function.body.params()[0].expr();
    ///     function.function.body.set_root(x);
    ///     Ok(())
    /// });
    /// let source = Source::new("example", "def @main(%x: float32) { exp(%x) }");
    /// let mut module =
    ///     parse_module(source, anfora_ops::standard()).expect("the program is right");
    /// let failure = wrong.apply(&mut module, &PassContext::checked()).unwrap_err();
    /// assert!(failure.to_string().contains("`@main` computes something else"));
    /// ```
    fn checked() -> PassContext;
}

impl CheckedContext for PassContext {
    fn checked() -> PassContext {
        PassContext::with_registry(registry()).derive().checked().build().expect("instruments make no context invalid")
    }
}

/// A builder of contexts that check each pass.
pub trait CheckedContextBuilder: Sized {
    /// Adds the instruments of [`PassContext::checked()`](CheckedContext::checked) to a context of
    /// any registry, level and settings, after its own instruments.
    #[must_use]
    fn checked(self) -> Self;
}

impl CheckedContextBuilder for PassContextBuilder {
    fn checked(self) -> PassContextBuilder {
        let builder = self.instrument(Arc::new(VerifyEach::with_input()));
        #[cfg(feature = "interp")]
        let builder = builder.instrument(Arc::new(CheckMeaning::new()));
        builder
    }
}
