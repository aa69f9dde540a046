//! Rewriting node by node. The author sees each node before and after its operands were rewritten.

use std::marker::PhantomData;

use anfora_ir::{Editor, ExprId};

use crate::error::RewriteError;
use crate::link::Link;
use crate::mutate::mutate_at;
use crate::mutator::{Edits, Mutator, Rewrite};
use crate::site::Site;

struct Adapter<'r, F, E> {
    rewrite: &'r mut F,
    error: PhantomData<E>,
}

impl<F, E> Mutator for Adapter<'_, F, E>
where
    F: FnMut(&mut Editor<'_>, ExprId, ExprId) -> Result<ExprId, E>,
    E: From<RewriteError>,
{
    type Error = E;
    const EDITS: Edits = Edits::Copied;

    #[inline]
    fn rewrite_expr(&mut self, site: &mut Site<'_>, post: ExprId) -> Result<Rewrite, E> {
        let pre = site.original();
        let result = (self.rewrite)(&mut site.editor, pre, post)?;
        Ok(if result == post { Rewrite::Keep } else { Rewrite::Replace(result) })
    }
}

/// Rewrites the expression at a link, each node after its operands, in graphs and in A-normal form.
/// A shared node is rewritten once.
///
/// `rewrite` is called for calls, tuples, projections, Ifs and Lambdas, and returns the replacement
/// of the node, or `post` if the node stays. `pre` is the node before its operands were rewritten,
/// and `post` is the node after it. If no operand changed, `post` is `pre`.
///
/// A node whose operands changed becomes a new node, so that `pre` can be compared with `post`. An
/// If or a Lambda, which has one parent, is rewritten in place, and there `pre` is `post`. If the
/// value of a Let becomes an atom, that atom replaces the uses of its variable, and the Let is
/// removed. A node that stays keeps its id; if all nodes stay, nothing is written. Expressions of
/// any depth take constant stack.
///
/// In the rewriter, the only legal edit is to make expressions. Types and dataflow regions are kept
/// right as by [`mutate_at`](crate::mutate_at).
///
/// # Errors
/// The errors of `rewrite`, and a [`RewriteError`] if a replacement has the wrong type.
///
/// ```
/// # use anfora_ir::{Editor, Expr, FunctionBuilder, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_visit::{Link, RewriteError, post_order_rewrite};
///
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let a = f.param("a", unit);
/// # let pair = f.tuple(&[a, a]);
/// # let first = f.proj(pair, 0).unwrap();
/// # let key = f.finish(first).unwrap();
/// let (function, cx) = module.get_mut(key).unwrap();
/// // (%a, %a).0
/// let mut editor = Editor::new(cx, &mut function.body);
/// post_order_rewrite(&mut editor, Link::Root, &mut |editor: &mut Editor, _pre, post| {
///     let body = &editor.body;
///     Ok::<_, RewriteError>(match body.expr(post) {
///         Expr::Proj { tuple, index } => {
///             body.operands_of(tuple).get(index as usize).copied().unwrap_or(post)
///         }
///         _ => post,
///     })
/// })?;
/// // %a
/// assert_eq!(function.body.root(), function.body.params()[0].expr());
/// # Ok::<(), RewriteError>(())
/// ```
pub fn post_order_rewrite<E: From<RewriteError>>(
    editor: &mut Editor<'_>,
    at: Link,
    rewrite: &mut impl FnMut(&mut Editor<'_>, ExprId, ExprId) -> Result<ExprId, E>,
) -> Result<(), E> {
    mutate_at(editor, at, &mut Adapter { rewrite, error: PhantomData })
}
