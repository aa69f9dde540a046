//! The arguments of a function pass: a function to edit, and a view of its module.

use anfora_ir::{Context, Diagnostic, Editor, ExprId, Function, Functions, Purity, Severity, VarId};

use crate::error::{PassError, caught};
use crate::messages::Messages;

/// One function, or one dataflow region of it, for editing, with the tables of its module.
pub struct FunctionEdit<'a> {
    /// The tables of the module. The signatures of all functions are in its globals.
    pub cx: &'a mut Context,
    /// The function; for a region, a function of the same head whose body is the region.
    pub function: &'a mut Function,
    /// For a dataflow region, the variables that are used outside of it.
    outputs: &'a [VarId],
    /// The messages so far, including those about its regions.
    pub(crate) messages: Messages,
}

impl<'a> FunctionEdit<'a> {
    /// Makes an edit of a function, or of a dataflow region that is given as a function.
    pub(crate) fn new(cx: &'a mut Context, function: &'a mut Function, outputs: &'a [VarId]) -> FunctionEdit<'a> {
        FunctionEdit { cx, function, outputs, messages: Messages::default() }
    }

    /// Ends the work on the body, and returns the messages about it, with their bindings.
    ///
    /// # Errors
    /// If the body is so ill-formed that a walk of it panics. The messages have no bindings then.
    pub(crate) fn end(self) -> (Messages, Result<(), PassError>) {
        let FunctionEdit { cx, function, mut messages, .. } = self;
        if messages.is_empty() && !function.body.has_remarks() {
            return (messages, Ok(()));
        }
        let named = caught(|| {
            let name = function.global().map_or("", |g| cx.global_name(g));
            messages.end_body(cx, &mut function.body, name);
            Ok(())
        });
        (messages, named)
    }
}

/// Messages about expressions. A message names the function, the bytes of the expression in the
/// source, and the binding whose value contains the expression. The expression may be any that the
/// body has now. If it is not linked any more when the pass is done with the function, the message
/// names only the function. The context has the messages when the pass ends, those of a function in
/// the order in which they were reported.
impl<'a> FunctionEdit<'a> {
    /// Reports why something was not done.
    pub fn remark(&mut self, expr: ExprId, message: impl Into<String>) {
        self.report(expr, Diagnostic::remark(message));
    }

    /// Reports something to know.
    pub fn note(&mut self, expr: ExprId, message: impl Into<String>) {
        self.report(expr, Diagnostic::note(message));
    }

    /// Reports something that is probably wrong.
    pub fn warn(&mut self, expr: ExprId, message: impl Into<String>) {
        self.report(expr, Diagnostic::warning(message));
    }

    /// Reports an error. The pass continues, to find more, in this function and in others. When it
    /// ends, it fails with all of its errors, and its changes are rolled back. To end the pass at
    /// once, return [`error_at`](FunctionEdit::error_at).
    pub fn error(&mut self, expr: ExprId, message: impl Into<String>) {
        self.report(expr, Diagnostic::error(message));
    }

    /// Reports messages about expressions, such as those of rewriting by rules about the rules
    /// (`anfora_visit::pattern::Outcome::remarks`).
    pub fn report_all(&mut self, messages: impl IntoIterator<Item = (ExprId, Diagnostic)>) {
        messages.into_iter().for_each(|(expr, diagnostic)| self.report(expr, diagnostic));
    }

    /// Reports any message about an expression, such as one with help or a label.
    pub fn report(&mut self, expr: ExprId, diagnostic: Diagnostic) {
        let name = self.function.global().map_or("", |g| self.cx.global_name(g));
        self.messages.report((self.cx, &self.function.body), (name, None), expr, diagnostic);
    }
}

impl<'a> FunctionEdit<'a> {
    /// Returns an editor of the body.
    pub fn editor(&mut self) -> Editor<'_> {
        Editor::new(self.cx, &mut self.function.body)
    }

    /// Returns the name of the function, without `@`.
    pub fn name(&self) -> &str {
        self.function.global().map_or("", |g| self.cx.global_name(g))
    }

    /// Returns the variables that a dataflow region binds and that are used outside of it, or might
    /// be, in the order of their bindings. There are none unless a
    /// [`DataflowBlockPass`](crate::DataflowBlockPass) gives a region.
    pub fn outputs(&self) -> &'a [VarId] {
        self.outputs
    }

    /// Returns the name of a variable, without `%`; for a Let, the name of the variable that it
    /// binds.
    ///
    /// Cost: one entry.
    pub fn binding_name(&self, expr: ExprId) -> Option<&str> {
        self.function.body.binding_name(self.cx, expr)
    }

    /// Makes an error about a variable or a Let, for the pass to return. For another expression it
    /// has only the place in the source.
    pub fn error_at(&self, expr: ExprId, message: impl Into<String>) -> PassError {
        PassError::from(self.diagnostic(Severity::Error, expr, message))
    }

    /// Makes a message about a variable or a Let. For another expression it has only the place in
    /// the source; [`report`](FunctionEdit::report) adds the binding that contains the expression.
    pub fn diagnostic(&self, severity: Severity, expr: ExprId, message: impl Into<String>) -> Diagnostic {
        let mut d = Diagnostic::new(severity, message).in_function(self.name());
        if let Some(binding) = self.binding_name(expr) {
            d = d.on_binding(binding);
        }
        match self.function.body.span(expr) {
            Some(start) => d.at(start as usize..start as usize + 1),
            None => d,
        }
    }
}

/// A function pass's view of the rest of the module, as it was before the pass.
#[derive(Copy, Clone)]
pub struct ModuleView<'a> {
    purity: &'a Purity,
    functions: Option<Functions<'a>>,
}

impl<'a> ModuleView<'a> {
    pub(crate) fn new(purity: &'a Purity) -> ModuleView<'a> {
        ModuleView { purity, functions: None }
    }

    /// Returns a view that also has the functions.
    pub(crate) fn with_functions(self, functions: Functions<'a>) -> ModuleView<'a> {
        ModuleView { functions: Some(functions), ..self }
    }

    /// Returns which functions are pure.
    ///
    /// Cost: one entry.
    pub fn purity(&self) -> &'a Purity {
        self.purity
    }

    /// Returns the functions of the module as they were before the pass, including the one that the
    /// pass is working on. Their ids mean the same in [`FunctionEdit::cx`] as before the pass.
    ///
    /// # Errors
    /// If the pass was not made [`seeing_functions`](crate::FunctionPass::seeing_functions).
    pub fn functions(&self) -> Result<Functions<'a>, PassError> {
        let undeclared = "it looks at other functions, and was not made with `.seeing_functions()`";
        self.functions.ok_or_else(|| PassError::new(undeclared))
    }
}

anfora_ir::brief_debug! { FunctionEdit<'_> { name }; ModuleView<'_>; }
