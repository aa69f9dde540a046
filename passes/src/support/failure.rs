//! Why a pass could not do its work.

use anfora_ir::{Body, Context, ExprId, TypeError};
use anfora_manager::PassError;
use anfora_visit::RewriteError;

/// Why a pass could not do its work on a body. The body may be half rewritten then: whoever runs the pass takes the edit back, as the
/// pass manager does.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// A walk refused the body or a rewrite: the body is not in A-normal form, say.
    #[error(transparent)]
    Rewrite(#[from] RewriteError),
    /// An expression has no type after the rewrite, and nothing could be put in to keep its old one.
    #[error("an expression loses its type: {error}")]
    Type {
        /// What the type rule says.
        error: TypeError,
        /// The binding, if it has a name.
        binding: Option<String>,
    },
    /// Something that the options name is not there.
    #[error("{message}")]
    Option {
        /// What is wrong.
        message: String,
        /// What to do about it.
        help: Option<String>,
    },
}

impl Failure {
    /// Returns the error of a pass over a module, with the function that the failure is about.
    pub(crate) fn in_function(self, function: Option<String>) -> PassError {
        let error = PassError::from(self);
        function.into_iter().fold(error, PassError::in_function)
    }
}

impl From<Failure> for PassError {
    fn from(failure: Failure) -> PassError {
        let message = failure.to_string();
        let (error, binding) = match failure {
            Failure::Rewrite(error) => (PassError::from(error), None),
            // A type error may be that of a walk, which knows its place.
            Failure::Type { error, binding } => (PassError::from(error).with_message(message), binding),
            Failure::Option { help, .. } => {
                let error = PassError::new(message);
                (help.into_iter().fold(error, PassError::with_help), None)
            }
        };
        binding.into_iter().fold(error, PassError::on_binding)
    }
}

/// Returns the name of the variable that a Let binds, for messages.
pub(crate) fn binding_name(cx: &Context, body: &Body, at: ExprId) -> Option<String> {
    body.binding_name(cx, at).map(str::to_string)
}

#[cold]
pub(crate) fn not_a_normal_form(cx: &Context, body: &Body, at: ExprId) -> Failure {
    Failure::Rewrite(RewriteError::NotANormalForm { name: binding_name(cx, body, at).unwrap_or_default() })
}
