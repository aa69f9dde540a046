//! Substitution of variables by atoms.

use anfora_ir::{Editor, ExprId, VarId};

use crate::chain::pass_on_output;
use crate::error::RewriteError;
use crate::link::Link;
use crate::mutate::rewrite_at;
use crate::mutator::{Edits, Mutator};
use crate::site::{Site, check_atom};

struct Nothing;

impl Mutator for Nothing {
    type Error = RewriteError;
    const EDITS: Edits = Edits::Scoped;
}

/// Replaces the uses of variables by atoms in the expression at a link, all at once: the inserted
/// atoms are not substituted again.
///
/// Every binder has a variable of its own, so nothing is captured. Nodes that change become new
/// nodes, since the old ones may also be used outside of the link; branches, lambdas and Lets,
/// which have one parent, are overwritten. A Let whose value becomes an atom is removed. If a
/// variable of a dataflow region replaces one that is visible outside of the region, it becomes an
/// output. Types are inferred again if an atom has a more specific type than the variable.
///
/// Each call allocates a table for the whole body: substitute many variables at once.
///
/// # Errors
/// If a replacement is not an atom, or the variable's type does not accept its type; nothing is
/// changed then. Or if a node's operator does not accept its new operands.
///
/// ```
/// # use anfora_ir::{Editor, FunctionBuilder, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_visit::{Link, RewriteError, substitute};
///
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let (a, b) = (f.param("a", unit), f.param("b", unit));
/// # let pair = f.tuple(&[a, b]);
/// # let key = f.finish(pair).unwrap();
/// let (function, cx) = module.get_mut(key).unwrap();
/// let &[a, b] = function.body.params() else { panic!() };
/// // (%a, %b), with %a and %b exchanged
/// let exchange = [(a, b.expr()), (b, a.expr())];
/// substitute(&mut Editor::new(cx, &mut function.body), Link::Root, &exchange)?;
/// assert_eq!(function.body.operands_of(function.body.root()), [b.expr(), a.expr()]);
/// # Ok::<(), RewriteError>(())
/// ```
pub fn substitute(editor: &mut Editor<'_>, at: Link, replacements: &[(VarId, ExprId)]) -> Result<(), RewriteError> {
    for &(var, atom) in replacements {
        check_atom(editor, var, atom)?;
    }
    let start = at.target(editor.body);
    let scratch = Site::scratch::<Nothing>(editor.cx, editor.body, start);
    let mut site = Site::new(Editor::new(editor.cx, editor.body), start, &scratch);
    for &(var, atom) in replacements {
        pass_on_output(site.editor.body, var, atom);
        site.set_current(var.expr(), atom);
    }
    rewrite_at(&mut site, at, &mut Nothing)
}
