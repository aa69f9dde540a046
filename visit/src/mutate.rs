//! Runs of a [`Mutator`] over a body, a part of it, or a function.

use anfora_ir::{Context, Editor, Function};

use crate::engine::run;
use crate::link::Link;
use crate::mutator::{Mutator, Refused};
use crate::site::Site;

/// Rewrites the body of a function.
///
/// One walk in program order; nested expressions of any depth take constant stack. Nodes that do
/// not change keep their ids, and if nothing changes, nothing is written
/// ([`Body::is_edited`](anfora_ir::Body::is_edited) is exact).
///
/// Types stay right: if an operand was replaced by one of a more specific type, the node's type is
/// inferred again, and so on to its users until a type stays the same. The signature of the
/// function is not part of its body and is not changed. If no result type is stated and the type of
/// the result became more specific, the author must state the old type or set the new signature
/// ([`mutate_function`] states the old type).
///
/// Dataflow regions stay right: if the first Let of a region is removed, the region starts with the
/// next; new bindings are in the region in which they are inserted; and if a replacement uses a
/// variable of a region outside of the region, the variable becomes an output. Unreachable
/// expressions stay in the arenas until they are compacted.
///
/// # Errors
/// The author's errors, or a [`RewriteError`] if parts do not fit together after a rewrite. The
/// body is partly rewritten then; with a journal open, the caller can roll the edit back.
///
/// `(a, b).0` becomes `a`:
///
/// ```
/// # use anfora_ir::{Editor, Expr, ExprId, FunctionBuilder, Literal, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_visit::{Mutator, Rewrite, RewriteError, Site, chain, mutate};
///
/// /// Looks through `let`s to the fields of tuples.
/// struct ProjectTuples;
///
/// impl Mutator for ProjectTuples {
///     type Error = RewriteError;
///     const VALUES: bool = true;
///
///     fn rewrite_expr(&mut self, site: &mut Site, id: ExprId) -> Result<Rewrite, RewriteError> {
///         if let Expr::Proj { tuple, index } = site.editor.body.expr(id)
///             && let Some(field) = site.field(tuple, index)
///         {
///             return Ok(Rewrite::Replace(field));
///         }
///         Ok(Rewrite::Keep)
///     }
/// }
///
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let a = f.param("a", unit);
/// # let pair = f.tuple(&[a, a]);
/// # let x = f.bind("x", pair);
/// # let first = f.proj(x, 0).unwrap();
/// # let y = f.bind("y", first);
/// # let key = f.finish(y).unwrap();
/// // let %x = (%a, %a); let %y = %x.0; %y
/// let (function, cx) = module.get_mut(key).unwrap();
/// mutate(&mut Editor::new(cx, &mut function.body), &mut ProjectTuples)?;
/// // let %x = (%a, %a); %a
/// let body = &function.body;
/// assert_eq!(chain(body, body.root()).count(), 1);
/// assert_eq!(body.tail(body.root()), body.params()[0].expr());
/// # Ok::<(), RewriteError>(())
/// ```
///
/// [`RewriteError`]: crate::RewriteError
pub fn mutate<M: Mutator>(editor: &mut Editor<'_>, mutator: &mut M) -> Result<(), M::Error> {
    mutate_at(editor, Link::Root, mutator)
}

/// Rewrites the expression at a link and stores the result there. See [`mutate`]. The types of the
/// expressions around it are not inferred again.
///
/// If a replacement uses a variable of a dataflow region outside of the region, the walk makes the
/// variable an output only if it has reached the variable's Let. Any other such variable must be
/// made an output by the author ([`set_var_flags`](crate::set_var_flags)), or the body is
/// ill-formed.
///
/// Each call allocates tables up to the largest id that it reaches (with [`Edits::Scoped`], for the
/// whole body). To rewrite many small parts of one body, walk the whole body once instead.
///
/// # Errors
/// As [`mutate`].
///
/// [`Edits::Scoped`]: crate::Edits::Scoped
pub fn mutate_at<M: Mutator>(editor: &mut Editor<'_>, at: Link, mutator: &mut M) -> Result<(), M::Error> {
    let start = at.target(editor.body);
    let scratch = Site::scratch::<M>(editor.cx, editor.body, start);
    let mut site = Site::new(Editor::new(editor.cx, editor.body), start, &scratch);
    rewrite_at(&mut site, at, mutator)
}

/// Rewrites the expression at a link with a prepared site.
pub(crate) fn rewrite_at<M: Mutator>(site: &mut Site<'_>, at: Link, mutator: &mut M) -> Result<(), M::Error> {
    let start = at.target(site.editor.body);
    let result = run(site, mutator, start, None)?;
    if result != start {
        at.set(site.editor.body, result);
    }
    Ok(())
}

/// Rewrites the body of a function and keeps its signature: if the result gets a more specific type
/// and no result type is stated, the old type is stated. With [`Refused::Retype`], a result that
/// does not have the stated type is converted; if no type is stated, the signature changes.
///
/// # Errors
/// As [`mutate`].
pub fn mutate_function<M: Mutator>(cx: &mut Context, function: &mut Function, mutator: &mut M) -> Result<(), M::Error> {
    let start = function.body.root();
    let scratch = Site::scratch::<M>(cx, &function.body, start);
    let mut site = Site::new(Editor::new(cx, &mut function.body), start, &scratch);
    let result = run(&mut site, mutator, start, function.ret)?;
    let (changes, before) = (site.retypes, site.result_before);
    drop(site);
    if result != start {
        function.body.set_root(result);
    }
    if changes > 0
        && M::REFUSED != Refused::Retype
        && function.ret.is_none()
        && let Some(before) = before
        && function.body.type_of(result) != before
    {
        function.ret = Some(before);
    }
    Ok(())
}
