//! The errors of rewrites.

use anfora_ir::{
    Body, Context, Cursor, Diagnostic, Diagnostics, ExprId, IntoDiagnostics, RegionSteps, Step, TypeError, TypeId,
    VarId,
};

/// The reason why a rewrite was refused. The body is half rewritten then, and the caller must roll
/// the edit back ([`Module::rollback`](anfora_ir::Module::rollback)), as the pass manager does for
/// every pass that fails.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RewriteError {
    /// The parts of an expression do not fit together after the rewrite.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// An expression has no type after the rewrite, and no conversion could keep its old type.
    #[error("an expression loses its type: {error}")]
    Untyped {
        /// The error of the type rule.
        error: TypeError,
        /// The name of the variable whose binding it is in; empty if it has none.
        name: String,
    },
    /// The body is not in A-normal form, which the walk requires.
    #[error("the program is not in A-normal form")]
    NotANormalForm {
        /// The name of the variable whose binding or tail is not in A-normal form; empty if it has
        /// none.
        name: String,
    },
    /// A replacement has a type that the replaced expression's type does not accept.
    #[error("a value of type {found} cannot replace one of type {wanted}")]
    LessSpecific {
        /// The type of the replaced expression.
        wanted: String,
        /// The type of the replacement.
        found: String,
    },
    /// A variable was to be replaced by an expression that is not an atom.
    #[error("a variable can be replaced only by an atom: a variable, literal, global, operator or none")]
    NotAnAtom,
    /// A binding was dropped, but a remaining expression uses its variable.
    #[error("the binding of `%{name}` was dropped, but `%{name}` is used")]
    DroppedUsed {
        /// The name of the variable; empty if it has none.
        name: String,
    },
    /// A block was spliced, but has another parent in the program too.
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
    /// In a walk down a chain and back up, a callback removed, moved or inserted Lets before its
    /// own.
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

    /// Returns an error if a step of a walk breaks A-normal form.
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
    format!("{binding} was spliced, but is also used at another place of the program; splice a copy: `copy_fresh`")
}

/// Returns the name of a variable for an error; an empty string if it has none.
pub(crate) fn name_for_error(cx: &Context, body: &Body, var: VarId) -> String {
    body.binding_name(cx, var.expr()).unwrap_or_default().to_string()
}

/// Checks that a value of type `found` may replace a value of type `wanted`.
#[inline]
pub(crate) fn check_type(cx: &Context, wanted: TypeId, found: TypeId) -> Result<(), RewriteError> {
    if wanted == found || cx.types.accepts(wanted, found) {
        return Ok(());
    }
    Err(RewriteError::LessSpecific { wanted: cx.type_text(wanted), found: cx.type_text(found) })
}
