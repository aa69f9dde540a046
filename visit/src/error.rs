//! Why a rewrite was refused.

use anfora_ir::{
    Body, Context, Cursor, Diagnostic, Diagnostics, ExprId, IntoDiagnostics, RegionSteps, Step, TypeError, TypeId,
    VarId,
};

/// Why a rewrite was refused. The body is then half rewritten: the caller takes the edit back
/// ([`Module::rollback`](anfora_ir::Module::rollback)), as the pass manager does for every failing
/// pass.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RewriteError {
    /// The parts of an expression do not fit together after the rewrite.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// An expression has no type after the rewrite, and nothing could be put in to keep its old
    /// one.
    #[error("an expression loses its type: {error}")]
    Untyped {
        /// The error of the type rule.
        error: TypeError,
        /// The name of the variable whose binding it is in; empty if it has none.
        name: String,
    },
    /// The body is not in A-normal form, which the walk needs.
    #[error("the program is not in A-normal form")]
    NotANormalForm {
        /// The name of the variable whose binding or tail is not; empty if it has none.
        name: String,
    },
    /// A replacement has a type that the replaced expression's type does not accept.
    #[error("a value of type {found} cannot replace one of type {wanted}")]
    LessSpecific {
        /// The type of what was to be replaced.
        wanted: String,
        /// The type of the replacement.
        found: String,
    },
    /// A variable was to be replaced by something that is evaluated.
    #[error("a variable can be replaced only by an atom: a variable, literal, global, operator or none")]
    NotAnAtom,
    /// A binding was dropped, and its variable is used in what is left.
    #[error("the binding of `%{name}` was dropped, and `%{name}` is used")]
    DroppedUsed {
        /// The name of the variable; empty if it has none.
        name: String,
    },
    /// A block was spliced, and hangs elsewhere in the program too.
    #[error("{}", spliced_twice(.name))]
    SplicedTwice {
        /// The name of a variable that is bound in it; empty if it has none.
        name: String,
    },
    /// A callback overwrote a link of the program that was being walked.
    #[error(
        "a link of the program was overwritten during the walk; a rewrite returns what becomes of a node or binding, and the walk hangs it in its place"
    )]
    OverwrittenLink,
    /// A callback took out, moved or put in Lets before its own, in a walk down a chain and back
    /// up.
    #[error(
        "a let of the chain is not where the walk left it; a callback may take out its own let, and edit what comes after it, but not what comes before"
    )]
    MovedLet,
}

impl RewriteError {
    /// Returns the error for a Let or tail that is not in A-normal form.
    ///
    /// Cost: one node.
    #[cold]
    pub fn not_a_normal_form(cx: &Context, body: &Body, at: impl Into<Option<ExprId>>) -> RewriteError {
        let name = at.into().and_then(|at| body.binding_name(cx, at)).unwrap_or_default();
        RewriteError::NotANormalForm { name: name.to_string() }
    }

    /// Returns an error if a walk of a body has come to a step that breaks A-normal form.
    ///
    /// Cost: one node.
    #[inline(always)]
    pub fn unless_anf<R: RegionSteps>(
        cx: &Context,
        body: &Body,
        cursor: &Cursor<R>,
        step: Step<R>,
    ) -> Result<(), RewriteError> {
        if step.breaks_anf(body) { Err(RewriteError::not_a_normal_form(cx, body, cursor.binding())) } else { Ok(()) }
    }

    /// Returns the error for an expression without a type, in the binding of this name.
    ///
    /// Cost: linear in the text.
    #[cold]
    pub fn untyped(error: TypeError, binding: Option<&str>) -> RewriteError {
        RewriteError::Untyped { error, name: binding.unwrap_or_default().to_string() }
    }
}

impl IntoDiagnostics for RewriteError {
    const MAY_END_WALK: bool = true;

    fn into_diagnostics(self) -> Diagnostics {
        let mut diagnostic = Diagnostic::from_error(&self);
        let name = match self {
            RewriteError::Type(error) => return error.into_diagnostics(),
            RewriteError::Untyped { error, name } => {
                diagnostic = error.help.into_iter().fold(diagnostic, Diagnostic::with_help);
                name
            }
            RewriteError::NotANormalForm { name } => {
                diagnostic = diagnostic.with_help("run ToANormalForm first");
                name
            }
            RewriteError::DroppedUsed { name } | RewriteError::SplicedTwice { name } => name,
            _ => String::new(),
        };
        if name.is_empty() { diagnostic.into() } else { diagnostic.on_binding(name).into() }
    }
}

fn spliced_twice(name: &str) -> String {
    let binding =
        if name.is_empty() { "a binding without a name".to_string() } else { format!("the binding of `%{name}`") };
    format!("{binding} was spliced, and hangs at another place of the program too; splice a copy: `copy_fresh`")
}

/// Returns the name of a variable for an error; nothing if it has none.
pub(crate) fn name_for_error(cx: &Context, body: &Body, var: VarId) -> String {
    body.binding_name(cx, var.expr()).unwrap_or_default().to_string()
}

/// Checks that a value of type `found` may stand where one of type `wanted` did.
#[inline]
pub(crate) fn check_type(cx: &Context, wanted: TypeId, found: TypeId) -> Result<(), RewriteError> {
    if wanted == found || cx.types.accepts(wanted, found) {
        return Ok(());
    }
    Err(RewriteError::LessSpecific { wanted: cx.type_text(wanted), found: cx.type_text(found) })
}
