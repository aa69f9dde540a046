//! What a function pass holds in its hands.

use anfora_ir::{Context, Diagnostic, Editor, Expr, ExprId, Function, Purity, Severity};

use crate::error::PassError;

/// One function, for editing, beside the tables of its module.
pub struct FunctionEdit<'a> {
    /// The tables of the module. The signatures of all functions are in its globals.
    pub cx: &'a mut Context,
    /// The function.
    pub function: &'a mut Function,
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
    pub fn binding_name(&self, expr: ExprId) -> Option<&str> {
        let body = &self.function.body;
        let var = match body.expr(expr) {
            Expr::Let { var, .. } => var,
            _ => body.as_var(expr)?,
        };
        Some(self.cx.names.get(body.var_name(var)?))
    }

    /// An error about a variable or a Let.
    pub fn error_at(&self, expr: ExprId, message: impl Into<String>) -> PassError {
        PassError::from(self.diagnostic(Severity::Error, expr, message))
    }

    /// A message about a variable or a Let.
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
pub struct ModuleView<'a> {
    purity: &'a Purity,
}

impl<'a> ModuleView<'a> {
    pub(crate) fn new(purity: &'a Purity) -> ModuleView<'a> {
        ModuleView { purity }
    }

    /// Which functions are pure.
    pub fn purity(&self) -> &Purity {
        self.purity
    }
}
