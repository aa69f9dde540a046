//! What a function pass holds in its hands.

use anfora_ir::{Context, Diagnostic, Editor, ExprId, Function, Functions, Purity, Severity};

use crate::context::PassContext;
use crate::error::{PassError, caught};
use crate::reports::Reports;

/// One function, for editing, beside the tables of its module.
pub struct FunctionEdit<'a> {
    /// The tables of the module. The signatures of all functions are in its globals.
    pub cx: &'a mut Context,
    /// The function.
    pub function: &'a mut Function,
    reports: Reports,
}

impl<'a> FunctionEdit<'a> {
    /// A function of which nothing is reported yet.
    pub(crate) fn new(cx: &'a mut Context, function: &'a mut Function) -> FunctionEdit<'a> {
        FunctionEdit { cx, function, reports: Reports::default() }
    }

    /// Leaves what was reported in the context, with the bindings that it is about.
    ///
    /// # Errors
    /// If the body is so ill-formed that a walk of it panics. What was reported is in the context
    /// then too, without the bindings.
    pub(crate) fn leave_reports(&mut self, context: &PassContext) -> Result<(), PassError> {
        if self.reports.is_empty() && !self.function.body.has_remarks() {
            return Ok(());
        }
        let mut reports = std::mem::take(&mut self.reports);
        let named = caught(|| {
            reports.name_bindings(self.cx, &self.function.body);
            let name = self.function.global().map_or("", |g| self.cx.global_name(g));
            reports.take_noted(self.cx, &mut self.function.body, name);
            Ok(())
        });
        reports.leave(context);
        named
    }

    /// Adds what was reported of a part of the body.
    pub(crate) fn append_reports(&mut self, part: Reports) {
        self.reports.append(part);
    }
}

/// Messages about expressions. A message names the function, the bytes of the expression in the source, and the binding whose value the expression stands
/// in. The expression may be any that the body has now; if it is not linked any more when the pass is done with the function, the
/// function alone is the place. The context has the messages when the pass is over, those of a function in the order in which they were reported.
impl FunctionEdit<'_> {
    /// Says why something was not done.
    pub fn remark(&mut self, expr: ExprId, message: impl Into<String>) {
        self.report(expr, Diagnostic::remark(message));
    }

    /// Says something to know.
    pub fn note(&mut self, expr: ExprId, message: impl Into<String>) {
        self.report(expr, Diagnostic::note(message));
    }

    /// Says that something is probably wrong.
    pub fn warn(&mut self, expr: ExprId, message: impl Into<String>) {
        self.report(expr, Diagnostic::warning(message));
    }

    /// Says that something is wrong. The pass goes on, to find more, in this function and in others; when it is over it has failed with all that it
    /// found, and what it did is taken back. To end the pass at once, return [`error_at`](FunctionEdit::error_at).
    pub fn error(&mut self, expr: ExprId, message: impl Into<String>) {
        self.report(expr, Diagnostic::error(message));
    }

    /// Leaves messages about expressions, such as what rewriting by rules has to say of the rules
    /// (`anfora_visit::pattern::Outcome::remarks`).
    pub fn report_all(&mut self, messages: impl IntoIterator<Item = (ExprId, Diagnostic)>) {
        messages.into_iter().for_each(|(expr, diagnostic)| self.report(expr, diagnostic));
    }

    /// Leaves any message about an expression, such as one with help or a label.
    pub fn report(&mut self, expr: ExprId, diagnostic: Diagnostic) {
        let name = self.function.global().map_or("", |g| self.cx.global_name(g));
        self.reports.push(self.cx, &self.function.body, name, expr, diagnostic);
    }
}

impl FunctionEdit<'_> {
    /// An editor of the body.
    pub fn editor(&mut self) -> Editor<'_> {
        Editor::new(self.cx, &mut self.function.body)
    }

    /// The name, without `@`.
    pub fn name(&self) -> &str {
        self.function.global().map_or("", |g| self.cx.global_name(g))
    }

    /// The name of a variable, without `%`; of a Let, that of the variable that it binds.
    ///
    /// Cost: one entry.
    pub fn binding_name(&self, expr: ExprId) -> Option<&str> {
        self.function.body.binding_name(self.cx, expr)
    }

    /// An error to return, about a variable or a Let. Of another expression it names only its place in the source.
    pub fn error_at(&self, expr: ExprId, message: impl Into<String>) -> PassError {
        PassError::from(self.diagnostic(Severity::Error, expr, message))
    }

    /// A message about a variable or a Let. Of another expression it names only its place in the source; what
    /// [`report`](FunctionEdit::report) leaves names the binding that this stands in, too.
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

/// What a function pass sees of the rest of the module: how it was before the pass.
#[derive(Copy, Clone)]
pub struct ModuleView<'a> {
    purity: &'a Purity,
    functions: Option<Functions<'a>>,
}

impl<'a> ModuleView<'a> {
    pub(crate) fn new(purity: &'a Purity) -> ModuleView<'a> {
        ModuleView { purity, functions: None }
    }

    /// A view that has the functions, too.
    pub(crate) fn with_functions(self, functions: Functions<'a>) -> ModuleView<'a> {
        ModuleView { functions: Some(functions), ..self }
    }

    /// Which functions are pure.
    ///
    /// Cost: one entry.
    pub fn purity(&self) -> &'a Purity {
        self.purity
    }

    /// Returns the functions of the module as they were before the pass, the one that the pass is working on included. Their ids
    /// mean in [`FunctionEdit::cx`] what they meant before the pass.
    ///
    /// # Errors
    /// If the pass was not made [`seeing_functions`](crate::FunctionPass::seeing_functions).
    pub fn functions(&self) -> Result<Functions<'a>, PassError> {
        let undeclared = "it looks at other functions, and was not made with `.seeing_functions()`";
        self.functions.ok_or_else(|| PassError::new(undeclared))
    }
}
