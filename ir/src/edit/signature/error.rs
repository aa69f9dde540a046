//! Why signatures were not changed.

use crate::ops::op::TypeError;
use crate::report::diagnostic::Diagnostic;
use crate::report::diagnostics::{Diagnostics, IntoDiagnostics};

/// Why a signature was not changed. The module is as it was.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The function was removed, has no name, or is named twice.
    #[error("a function whose signature is to change is not one of the module, or is given twice")]
    NotAFunction,
    /// It is used other than by calling it.
    #[error("`@{name}` is used {}, and its signature would change", use_text(.binding.as_deref(), .function.is_some()))]
    UsedAsValue {
        /// The function that is used.
        name: String,
        /// The function that uses it; `None` for an attribute of the module's tables.
        function: Option<String>,
        /// The binding at which it does.
        binding: Option<String>,
    },
    /// There is no parameter at a position that is to be kept, or it is kept twice.
    #[error("`@{name}` has {count} parameters, and {position} cannot be kept, or is kept twice")]
    NoParameter {
        /// The function.
        name: String,
        /// The position, from 0.
        position: usize,
        /// How many parameters it has.
        count: usize,
    },
    /// A parameter is taken away, and used.
    #[error("the parameter `%{parameter}` of `@{name}` is taken away, and it is used")]
    ParameterUsed {
        /// The function.
        name: String,
        /// The parameter.
        parameter: String,
        /// The binding at which it is used.
        binding: Option<String>,
    },
    /// A parameter is taken away that alone binds a symbolic dimension, or a new one names one that
    /// none binds.
    #[error("no parameter that `@{name}` is left with binds the symbolic dimension `{symbol}`, which it names")]
    SymbolNotBound {
        /// The function.
        name: String,
        /// The symbol.
        symbol: String,
        /// The binding at which it is named.
        binding: Option<String>,
    },
    /// The block of a function has a type that the result that it states does not accept.
    #[error("`@{name}` returns {found}, but {stated} is stated")]
    Result {
        /// The function.
        name: String,
        /// The type that is stated.
        stated: String,
        /// The type of the block.
        found: String,
    },
    /// An expression has no type any more, or an argument cannot be made.
    #[error("an expression loses its type: {error}")]
    Mistyped {
        /// The function that it is in.
        name: String,
        /// The binding that it is at.
        binding: Option<String>,
        /// Why.
        error: Box<TypeError>,
    },
    /// Functions that call each other give each other new types again and again.
    #[error("the type of the result of `@{name}` does not settle")]
    Unsettled {
        /// One of them.
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
