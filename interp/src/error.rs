//! The errors of a run.

use anfora_ir::{Diagnostic, Diagnostics, IntoDiagnostics, StorageError};

/// The kind of an error.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvalErrorKind {
    /// The module has no function of that name.
    #[error("there is no function `@{0}`")]
    NoFunction(String),
    /// A function without a body is called.
    #[error("`@{0}` is declared, not defined: it cannot be interpreted")]
    External(String),
    /// The closure of a function without a body fails, or gives what the function does not return.
    #[error("`@{function}` fails: {message}")]
    ExternalFailed {
        /// Name of the function.
        function: String,
        /// The message of the closure.
        message: String,
    },
    /// A call has the wrong number of arguments.
    #[error("the function takes {wanted} arguments, not {found}")]
    ArgumentCount {
        /// The number of parameters.
        wanted: usize,
        /// The number of arguments.
        found: usize,
    },
    /// An argument is not of the parameter's type.
    #[error("argument {index} is {found}, but {wanted} is expected")]
    Argument {
        /// The index of the argument, counted from 0.
        index: usize,
        /// The parameter's type.
        wanted: String,
        /// A description of the argument.
        found: String,
    },
    /// A `match_cast` does not hold.
    #[error("the value is {found}, not {wanted}")]
    MatchCast {
        /// The type that the value is matched with.
        wanted: String,
        /// A description of the value.
        found: String,
    },
    /// An `assert` does not hold.
    #[error("assertion failed{}{}", if .0.is_empty() { "" } else { ": " }, .0)]
    Assert(String),
    /// An operator cannot be interpreted.
    #[error("`{0}` has no kernel")]
    NoKernel(String),
    /// An operator fails on these operands.
    #[error("`{op}` fails: {message}")]
    Operator {
        /// Name of the operator.
        op: String,
        /// The message of its kernel or its type rule.
        message: String,
    },
    /// A constant cannot be read from its file.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// More steps than allowed.
    #[error("the program takes more than {0} steps")]
    Steps(u64),
    /// More steps of kernels than allowed.
    #[error("the operators of the program take more than {0} steps")]
    Work(u64),
    /// More memory than allowed.
    #[error("the program takes more than {0} bytes")]
    Memory(usize),
    /// The mirror of the run ends it.
    #[error("{0}")]
    Mirror(String),
    /// The program is not well-formed. A verified program does not get here.
    #[error("the program is ill-formed: {0}")]
    IllFormed(&'static str),
}

/// An error of a run, and its place in the program.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{kind}{}", place(.function, .binding))]
pub struct EvalError {
    /// The kind of error.
    pub kind: EvalErrorKind,
    /// The function that was being evaluated, without `@`.
    pub function: Option<String>,
    /// The binding that was being evaluated, without `%`.
    pub binding: Option<String>,
    /// The byte offset in the source, if there is one.
    pub span: Option<u32>,
}

fn place(function: &Option<String>, binding: &Option<String>) -> String {
    match (function, binding) {
        (Some(function), Some(binding)) => format!(" (in @{function}, at %{binding})"),
        (Some(function), None) => format!(" (in @{function})"),
        (None, _) => String::new(),
    }
}

impl From<EvalErrorKind> for EvalError {
    fn from(kind: EvalErrorKind) -> EvalError {
        EvalError { kind, function: None, binding: None, span: None }
    }
}

impl EvalError {
    /// Returns the error as a diagnostic.
    pub fn diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Diagnostic::error(self.kind.to_string());
        diagnostic.function = self.function.clone();
        diagnostic.binding = self.binding.clone();
        diagnostic.span = self.span.map(|s| s as usize..s as usize);
        diagnostic
    }
}

impl IntoDiagnostics for EvalError {
    fn into_diagnostics(self) -> Diagnostics {
        self.diagnostic().into()
    }
}
