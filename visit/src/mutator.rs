//! Mutators: rewriting a body in place, in one walk, memoized.
//!
//! The engine follows the cursor and keeps a stack of results: each operand, value, tail and block leaves the id of what it has become there, and the node
//! around it takes those of its parts. A Let that stays is linked to the one that stayed before it, so that dropped and added bindings
//! need no parent links; what is equal to what it was is not written.

use anfora_ir::{BlockKind, Cursor, Editor, Expr, ExprId, SharedEdits, Step};

use crate::engine::Engine;
use crate::error::RewriteError;
use crate::link::{Binding, Link};
use crate::site::Site;
use crate::visitor::region_ends;

/// What a rewrite may depend on, and so when nodes are overwritten and when copied.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Edits {
    /// On the node alone (its operator, attributes and operands), so that wherever it is used it becomes the same. It is overwritten in place, once. What
    /// replaces a node mentions no variable that the node did not mention.
    InPlace,
    /// Likewise, but a node whose operands changed becomes a new node, so that [`Site::original`] is still as it was. A node
    /// with blocks (an If, a Lambda) has one parent and is overwritten all the same.
    Copied,
    /// On the place as well: on what is known or bound in the enclosing blocks. Changed nodes become new nodes on that path only, and
    /// results are forgotten at the end of the block, and of the dataflow region, that they were found in. A shared node is rewritten again in each block that uses
    /// it; one that holds blocks is copied first.
    Scoped,
}

/// What becomes of a node.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Rewrite {
    /// It stays.
    Keep,
    /// Another expression takes its place, of a type that is equal or more specific.
    Replace(ExprId),
}

/// What becomes of a binding.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BindingRewrite {
    /// It stays, with its rewritten value. If the value was rewritten to an atom, uses of the variable become the atom and the binding
    /// disappears.
    Keep,
    /// It stays, with this value (also if that is an atom).
    Value(ExprId),
    /// Uses of its variable become this atom and the binding disappears.
    Var(ExprId),
    /// The bindings of this block take its place, and the block's tail is the value, as by [`BindingRewrite::Keep`]. If the block
    /// hangs elsewhere in the walked part afterwards, the walk ends with [`RewriteError::SplicedTwice`].
    Splice(ExprId),
    /// It disappears. If what is left of the walked part uses its variable, the walk ends with [`RewriteError::DroppedUsed`].
    Drop,
}

/// A rewrite of a body in program order, operands before nodes; see [`mutate`].
///
/// Both callbacks are given a [`Site`]: the editor, and the place in the program, where further bindings can be put
/// ([`Site::bind`]: that is how a binding becomes several). A callback that is left out keeps what it is given.
///
/// Edits that are legal in the callbacks: making any expressions; editing those that were made since and do not hang anywhere yet; changing names,
/// metadata and flags of variables. Links of the program are changed by what the callbacks return, never by the author, during the walk: a callback
/// that overwrites one ends it with [`RewriteError::OverwrittenLink`].
pub trait Mutator {
    /// The author's error. It ends the walk.
    type Error: From<RewriteError>;

    /// What the rewrites depend on.
    const EDITS: Edits = Edits::InPlace;

    /// A call, tuple, projection, If or Lambda, wherever it stands: as a value, a tail, an operand. Its operands and blocks are rewritten already. Called
    /// once for a shared node (with [`Edits::Scoped`], once for each scope).
    ///
    /// # Errors
    /// The author's.
    #[inline(always)]
    fn rewrite_expr(&mut self, site: &mut Site<'_, '_>, id: ExprId) -> Result<Rewrite, Self::Error> {
        let _ = (site, id);
        Ok(Rewrite::Keep)
    }

    /// A Let, after its value: `binding.value` is what the value has become, and not yet written.
    ///
    /// # Errors
    /// The author's.
    #[inline(always)]
    fn rewrite_binding(&mut self, site: &mut Site<'_, '_>, binding: Binding) -> Result<BindingRewrite, Self::Error> {
        let _ = (site, binding);
        Ok(BindingRewrite::Keep)
    }

    /// A block begins: a branch, that of a Lambda, a chain as a value or operand, or the whole walk's.
    ///
    /// # Errors
    /// The author's.
    #[inline(always)]
    fn enter_block(&mut self, site: &mut Site<'_, '_>, kind: BlockKind) -> Result<(), Self::Error> {
        let _ = (site, kind);
        Ok(())
    }

    /// It ends, after its tail.
    ///
    /// # Errors
    /// The author's.
    #[inline(always)]
    fn exit_block(&mut self, site: &mut Site<'_, '_>, kind: BlockKind) -> Result<(), Self::Error> {
        let _ = (site, kind);
        Ok(())
    }

    /// A dataflow region begins, before its first Let.
    ///
    /// # Errors
    /// The author's.
    #[inline(always)]
    fn enter_region(&mut self, site: &mut Site<'_, '_>) -> Result<(), Self::Error> {
        let _ = site;
        Ok(())
    }

    /// It ends, after its last Let was rewritten.
    ///
    /// # Errors
    /// The author's.
    #[inline(always)]
    fn exit_region(&mut self, site: &mut Site<'_, '_>) -> Result<(), Self::Error> {
        let _ = site;
        Ok(())
    }
}

/// Rewrites the body of a function.
///
/// One walk in program order; nests of any depth take constant stack. Nodes that do not change keep their ids, and if nothing changes, nothing is written
/// ([`Body::is_edited`](anfora_ir::Body::is_edited) is exact). Types stay right: where an operand was replaced by one of more specific type, the node's type is
/// inferred again, and so on to its users until a type stays the same. The signature of the function is not part of its body and stays: where no result type is
/// stated and the body's has become more specific, the author states the old one or sets the new signature. Dataflow regions stay right: a region whose first Let disappears starts
/// with the next, new bindings are in the region that they are put in, and a variable of a region that a replacement uses outside of
/// the region becomes an output of it. What no longer hangs anywhere stays in the arenas until they are compacted.
///
/// # Errors
/// The author's, or a [`RewriteError`] when parts do not fit together after a rewrite. The body is then partly rewritten; with a journal open, the caller can
/// take the edit back.
///
/// `(a, b).0` becomes `a`:
///
/// ```
/// # use anfora_ir::{Editor, Expr, ExprId, FunctionBuilder, Literal, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_visit::{Binding, Mutator, Rewrite, RewriteError, Site, chain, mutate};
///
/// /// Looks through `let`s to the fields of tuples.
/// #[derive(Default)]
/// struct ProjectTuples(anfora_visit::Memo<ExprId>);
///
/// impl Mutator for ProjectTuples {
///     type Error = RewriteError;
///
///     fn rewrite_expr(&mut self, site: &mut Site, id: ExprId) -> Result<Rewrite, RewriteError> {
///         let body = &site.editor.body;
///         if let Expr::Proj { tuple, index } = body.expr(id)
///             && let Some(value) = self.0.get(tuple)
///             && let Some(&field) = body.operands_of(value).get(index as usize)
///         {
///             return Ok(Rewrite::Replace(field));
///         }
///         Ok(Rewrite::Keep)
///     }
///
///     fn rewrite_binding(&mut self, site: &mut Site, binding: Binding) -> Result<anfora_visit::BindingRewrite, RewriteError> {
///         if matches!(site.editor.body.expr(binding.value), Expr::Tuple(_)) {
///             self.0.insert(binding.var.expr(), binding.value);
///         }
///         Ok(anfora_visit::BindingRewrite::Keep)
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
/// mutate(&mut Editor::new(cx, &mut function.body), &mut ProjectTuples::default())?;
/// // let %x = (%a, %a); %a
/// let body = &function.body;
/// assert_eq!(chain(body, body.root()).count(), 1);
/// assert_eq!(body.tail(body.root()), body.params()[0].expr());
/// # Ok::<(), RewriteError>(())
/// ```
pub fn mutate<M: Mutator>(editor: &mut Editor<'_>, mutator: &mut M) -> Result<(), M::Error> {
    mutate_at(editor, Link::Root, mutator)
}

/// Rewrites what hangs at a link, and hangs there what it has become. See [`mutate`]. The type of what is around it is not inferred again.
///
/// Only a walk from the root makes a variable of a dataflow region, which a replacement uses outside
/// of the region, an output of it. In a walk of another part, the author makes that variable plain
/// ([`set_var_flags`](crate::set_var_flags)), or the body is ill-formed.
///
/// A call keeps tables up to the largest id that it meets (with [`Edits::Scoped`], of the whole body): rewrite many small parts of one body in one walk of it.
///
/// # Errors
/// As [`mutate`].
pub fn mutate_at<M: Mutator>(editor: &mut Editor<'_>, at: Link, mutator: &mut M) -> Result<(), M::Error> {
    run(editor, at, mutator, Engine::new(M::EDITS))
}

pub(crate) fn run<M: Mutator>(
    editor: &mut Editor<'_>,
    at: Link,
    mutator: &mut M,
    mut engine: Engine,
) -> Result<(), M::Error> {
    let start = at.target(editor.body);
    engine.prepare(editor.body, start);
    engine.watch = editor.body.new_watch();
    editor.body.note_stop(None);
    let before = editor.body.shared_edits(SharedEdits::Meant);
    let result = run_watched(editor, start, mutator, &mut engine);
    editor.body.shared_edits(before);
    let result = result?;
    engine.check_spliced(editor, result)?;
    engine.check_dropped(editor, result)?;
    if result != start {
        at.set(editor.body, result);
    }
    Ok(())
}

/// Calls the author, who may overwrite nothing that is being walked.
#[inline(always)]
fn ask<'e, M: Mutator, T>(
    editor: &mut Editor<'e>,
    engine: &mut Engine,
    id: ExprId,
    call: impl FnOnce(&mut Site<'_, 'e>) -> Result<T, M::Error>,
) -> Result<T, M::Error> {
    let outer = editor.body.watch_links(engine.watch);
    let meant = editor.body.shared_edits(SharedEdits::Noted);
    let answer = call(&mut Site::new(editor, engine, id));
    editor.body.shared_edits(meant);
    let trespassed = editor.body.end_watch(outer);
    if trespassed {
        answer?;
        return Err(RewriteError::OverwrittenLink.into());
    }
    answer
}

fn run_watched<M: Mutator>(
    editor: &mut Editor<'_>,
    start: ExprId,
    mutator: &mut M,
    engine: &mut Engine,
) -> Result<ExprId, M::Error> {
    let mut cursor = Cursor::at(editor.body, start);
    let result = step_through(editor, &mut cursor, mutator, engine);
    if result.is_err() {
        editor.body.note_stop(cursor.binding());
    }
    result
}

/// Walks to the end.
#[inline(always)]
fn step_through<M: Mutator>(
    editor: &mut Editor<'_>,
    cursor: &mut Cursor,
    mutator: &mut M,
    engine: &mut Engine,
) -> Result<ExprId, M::Error> {
    while let Some(step) = cursor.next(editor.body) {
        match step {
            Step::Let(id) => {
                let Expr::Let { var, flags, .. } = editor.body.expr(id) else { continue };
                if flags.is_dataflow() {
                    engine.at_let_of_region(var);
                    if flags.starts_region() || !engine.in_region() {
                        engine.begin_region(flags);
                        ask::<M, _>(editor, engine, id, |site| mutator.enter_region(site))?;
                    }
                }
            }
            Step::Flat(id) => {
                let new = engine.rewrite_atoms(editor, id)?;
                finish_node(editor, engine, mutator, id, new)?;
            }
            Step::Bound(id) => {
                let Some(old) = Binding::of(editor.body, id) else { continue };
                let value = engine.pop();
                let binding = Binding { value, ..old };
                let verdict = ask::<M, _>(editor, engine, id, |site| mutator.rewrite_binding(site, binding))?;
                engine.finish_binding(editor, old, binding, verdict)?;
                if old.flags.is_dataflow() && region_ends(editor.body, old.rest) && engine.in_region() {
                    ask::<M, _>(editor, engine, id, |site| mutator.exit_region(site))?;
                    engine.end_region();
                }
            }
            Step::Atom(id) => {
                let new = engine.resolve(id);
                engine.push(new);
            }
            Step::Enter(id) => {
                if engine.must_copy(id) {
                    cursor.skip();
                    let copy = engine.copy_for_scope(editor, id);
                    cursor.enter(copy);
                }
            }
            Step::Exit(id) => {
                let new = engine.rewrite_parts(editor, id)?;
                finish_node(editor, engine, mutator, id, new)?;
            }
            Step::Seen(id) => match engine.seen(editor, id) {
                Some(result) => engine.push(result),
                None => {
                    let again = if engine.must_copy(id) { engine.copy_for_scope(editor, id) } else { id };
                    cursor.enter(again);
                }
            },
            Step::EnterBlock(start, kind) => {
                engine.begin_block(kind);
                ask::<M, _>(editor, engine, start, |site| mutator.enter_block(site, kind))?;
            }
            Step::ExitBlock(start, kind) => {
                ask::<M, _>(editor, engine, start, |site| mutator.exit_block(site, kind))?;
                engine.end_block(editor.body);
            }
        }
    }
    Ok(engine.pop())
}

/// Asks the mutator about a node whose parts are rewritten (`post` is what it is then), and leaves the result.
#[inline]
fn finish_node<M: Mutator>(
    editor: &mut Editor<'_>,
    engine: &mut Engine,
    mutator: &mut M,
    pre: ExprId,
    post: ExprId,
) -> Result<(), M::Error> {
    let verdict = ask::<M, _>(editor, engine, pre, |site| mutator.rewrite_expr(site, post))?;
    let result = match verdict {
        Rewrite::Keep => post,
        Rewrite::Replace(new) => engine.replaced(editor, post, new)?,
    };
    engine.finish(pre, result);
    Ok(())
}
