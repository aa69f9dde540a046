//! The reasons why signatures were not changed.

use crate::ops::op::TypeError;
use crate::report::diagnostic::Diagnostic;
use crate::report::diagnostics::{Diagnostics, IntoDiagnostics};

/// The reason why a signature was not changed. The module is as it was.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The function was removed, has no name, or is named twice.
    #[error("a function whose signature is to change is not one of the module, or is given twice")]
    NotAFunction,
    /// The function is used other than by calling it.
    #[error("`@{name}` is used {}, and its signature would change", use_text(.binding.as_deref(), .function.is_some()))]
    UsedAsValue {
        /// The function that is used.
        name: String,
        /// The function that uses it; `None` for an attribute of the module's tables.
        function: Option<String>,
        /// The binding that contains the use.
        binding: Option<String>,
    },
    /// There is no parameter at a position that is to be kept, or it is kept twice.
    #[error("`@{name}` has {count} parameters, and {position} cannot be kept, or is kept twice")]
    NoParameter {
        /// The function.
        name: String,
        /// The position, from 0.
        position: usize,
        /// The number of its parameters.
        count: usize,
    },
    /// A removed parameter is used.
    #[error("the parameter `%{parameter}` of `@{name}` is removed, but it is used")]
    ParameterUsed {
        /// The function.
        name: String,
        /// The parameter.
        parameter: String,
        /// The binding that contains the use.
        binding: Option<String>,
    },
    /// A removed parameter is the only one to bind a symbolic dimension that the function names, or
    /// a new parameter names a symbolic dimension that no parameter binds.
    #[error("no remaining parameter of `@{name}` binds the symbolic dimension `{symbol}`, which it uses")]
    SymbolNotBound {
        /// The function.
        name: String,
        /// The symbol.
        symbol: String,
        /// The binding that names the symbol.
        binding: Option<String>,
    },
    /// The stated result of a function does not accept the type of its block.
    #[error("`@{name}` returns {found}, but {stated} is stated")]
    Result {
        /// The function.
        name: String,
        /// The stated type.
        stated: String,
        /// The type of the block.
        found: String,
    },
    /// An expression has no type any more, or an argument cannot be made.
    #[error("an expression loses its type: {error}")]
    Mistyped {
        /// The function that contains the expression.
        name: String,
        /// The binding that contains the expression.
        binding: Option<String>,
        /// The reason.
        error: Box<TypeError>,
    },
    /// The types of mutually recursive functions keep changing.
    #[error("the type of the result of `@{name}` does not settle")]
    Unsettled {
        /// One of the functions.
        name: String,
    },
}

fn use_text(binding: Option<&str>, in_function: bool) -> String {
    match (binding, in_function) {
        (_, false) => "by an attribute".to_string(),
        (Some(binding), true) => format!("as a value at `%{binding}`"),
        (None, true) => "as a value".to_string(),
    }
}

impl IntoDiagnostics for SignatureError {
    fn into_diagnostics(self) -> Diagnostics {
        let mut diagnostic = Diagnostic::error(self.to_string());
        match self {
            SignatureError::NotAFunction => {}
            SignatureError::UsedAsValue { name, function, binding } => {
                let help = match function {
                    Some(_) => "call it directly: CanonicalizeBindings replaces variables that stand for it",
                    None => "remove the attribute first",
                };
                diagnostic.function = Some(function.unwrap_or(name));
                diagnostic.binding = binding;
                diagnostic.help = Some(help.to_string());
            }
            SignatureError::ParameterUsed { name, binding, .. } => {
                diagnostic.function = Some(name);
                diagnostic.binding = binding;
                diagnostic.help = Some("put something else in its place first".to_string());
            }
            SignatureError::SymbolNotBound { name, symbol, binding } => {
                diagnostic.function = Some(name);
                diagnostic.binding = binding;
                diagnostic.help = Some(format!("keep a parameter of which `{symbol}` by itself is an extent"));
            }
            SignatureError::Mistyped { name, binding, error } => {
                diagnostic.function = Some(name);
                diagnostic.binding = binding;
                diagnostic.help = error.help;
            }
            SignatureError::NoParameter { name, .. }
            | SignatureError::Result { name, .. }
            | SignatureError::Unsettled { name } => diagnostic.function = Some(name),
        }
        diagnostic.into()
    }
}
