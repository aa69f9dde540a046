//! Mutators: rewriting a body in place, in one walk, memoized.
//!
//! A Let that stays is linked to the one that stayed before it, so that dropped and added bindings
//! need no parent links; what is equal to what it was is not written.

use anfora_ir::{BlockKind, Body, Context, Editor, ExprId, Function, TypeId, VarId};

use crate::engine::run;
use crate::error::RewriteError;
use crate::link::{Binding, Link};
use crate::site::Site;

/// The things that a rewrite may depend on, and so when nodes are overwritten and when copied.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Edits {
    /// On the node alone (its operator, attributes and operands), so that wherever it is used it
    /// becomes the same. It is overwritten in place, once. What replaces a node mentions no
    /// variable that the node did not mention.
    InPlace,
    /// Likewise, but a node whose operands changed becomes a new node, so that [`Site::original`]
    /// is still as it was. A node with blocks (an If, a Lambda) has one parent and is overwritten
    /// all the same.
    Copied,
    /// On the place as well: on what is known or bound in the enclosing blocks. Changed nodes
    /// become new nodes on that path only, and results are forgotten at the end of the block, and
    /// of the dataflow region, that they were found in. A shared node is rewritten again in each
    /// block that uses it; one that holds blocks is copied first.
    Scoped,
}

/// The decision about a node.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Rewrite {
    /// It stays.
    Keep,
    /// Another expression takes its place, of a type that is equal or more specific.
    Replace(ExprId),
}

/// The place of a value: a Let or the tail of a block.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Slot {
    /// The Let; in a tail, the tail itself, before it was rewritten.
    pub at: ExprId,
    /// The variable that is bound to the value; `None` in a tail.
    pub var: Option<VarId>,
}

impl Slot {
    /// Returns the Let with `value` for its value; `None` in a tail.
    ///
    /// Cost: one node.
    pub fn binding(self, body: &Body, value: ExprId) -> Option<Binding> {
        self.var?;
        Binding::of(body, self.at).map(|binding| Binding { value, ..binding })
    }
}

/// The decision about a value and its binding. In a tail, [`Verdict::Value`] and [`Verdict::Var`]
/// put an expression in its place, [`Verdict::Splice`] also the bindings before it, and
/// [`Verdict::Drop`] keeps it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The binding stays, with its rewritten value. If [`Mutator::rewrite_expr`] replaced the value
    /// by an atom, uses of the variable become the atom and the binding disappears.
    Keep,
    /// It stays, with this value (also if that is an atom).
    Value(ExprId),
    /// Uses of its variable become this atom and the binding disappears.
    Var(ExprId),
    /// The bindings of this block, which are not walked, take its place, and the block's tail is
    /// the value, as by [`Verdict::Keep`]. If the block hangs elsewhere in the walked part
    /// afterwards, the walk ends with [`RewriteError::SplicedTwice`].
    Splice(ExprId),
    /// It disappears. If what is left of the walked part uses its variable, the walk ends with
    /// [`RewriteError::DroppedUsed`].
    Drop,
}

/// A part of a program that begins and ends, and in which facts may hold.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// A block: a branch, that of a `fn`, a chain as a value or operand, or the whole walk's.
    Block(BlockKind),
    /// A dataflow region.
    Region,
}

/// The way to go on where an operator refuses the types that its operands have become, or the
/// branches of an If have nothing in common any more.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The walk ends with the type error.
    Error,
    /// The operands (the results of the branches) get the types back that they had, by
    /// [`Mutator::cast`]. What a rewrite puts in the place of another still has a type that is
    /// equal or more specific.
    CastBack,
    /// The same, and types may change to any others, through bindings, tuples, branches and
    /// functions. What is stated to have a type (the result of a `fn` or of the function) is
    /// converted to it by [`Mutator::cast`].
    Retype,
}

/// A rewrite of a body in program order, operands before nodes; see [`mutate`].
///
/// All callbacks are given a [`Site`]: the editor, and the place in the program, where further
/// bindings can be put ([`Site::bind`]: that is how a binding becomes several). A callback that is
/// left out keeps what it is given.
///
/// Edits that are legal in the callbacks: making any expressions; editing those that were made
/// since and do not hang anywhere yet; changing names, metadata and flags of variables. Links of
/// the program are changed by what the callbacks return, never by the author, during the walk: a
/// callback that overwrites one of a node that was there before the walk ends it with
/// [`RewriteError::OverwrittenLink`].
pub trait Mutator {
    /// The author's error. It ends the walk.
    type Error: From<RewriteError>;

    /// The things that the rewrites depend on.
    const EDITS: Edits = Edits::InPlace;

    /// False if the body is in A-normal form and [`Mutator::rewrite_expr`] is not wanted: the walk
    /// then keeps no results of nodes, and ends with [`RewriteError::NotANormalForm`] where an
    /// operand is no atom.
    const NODES: bool = true;

    /// True if the values of variables are asked for: [`Site::value_of`], [`Site::field`].
    const VALUES: bool = false;

    /// The way to go on where types do not fit any more.
    const REFUSED: Refused = Refused::Error;

    /// A value or tail, before its operands are rewritten. The block (or value) that is returned
    /// takes its place and is walked then, in the present block: the branch of an If that is taken,
    /// the body of a function that is called. Its bindings hang nowhere else afterwards.
    ///
    /// # Errors
    /// The author's.
    #[inline(always)]
    fn expand(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Option<ExprId>, Self::Error> {
        let _ = (site, slot, value);
        Ok(None)
    }

    /// A call, tuple, projection, If or Lambda, wherever it stands: as a value, a tail, an operand.
    /// Its operands and blocks are rewritten already. Called once for a shared node (with
    /// [`Edits::Scoped`], once for each scope).
    ///
    /// # Errors
    /// The author's.
    #[inline(always)]
    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, Self::Error> {
        let _ = (site, id);
        Ok(Rewrite::Keep)
    }

    /// The value of a Let, or a tail that is no atom, as it is after the rewrite: `value` is not
    /// written to the Let yet. Atoms are values of Lets too.
    ///
    /// # Errors
    /// The author's.
    #[inline(always)]
    fn rewrite_value(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, Self::Error> {
        let _ = (site, slot, value);
        Ok(Verdict::Keep)
    }

    /// A block or a dataflow region begins, before its first Let.
    ///
    /// # Errors
    /// The author's.
    #[inline(always)]
    fn enter(&mut self, site: &mut Site<'_>, scope: Scope) -> Result<(), Self::Error> {
        let _ = (site, scope);
        Ok(())
    }

    /// It ends: a block after its tail, a region after its last Let.
    ///
    /// # Errors
    /// The author's.
    #[inline(always)]
    fn exit(&mut self, site: &mut Site<'_>, scope: Scope) -> Result<(), Self::Error> {
        let _ = (site, scope);
        Ok(())
    }

    /// Makes a value of the type `to` from an atom that is of another type now. A `match_cast`,
    /// unless an author says otherwise. Bindings that it puts in stand before the value, wherever
    /// that comes to stand. See [`Refused`].
    ///
    /// # Errors
    /// The author's, or that the value cannot be made.
    fn cast(&mut self, site: &mut Site<'_>, atom: ExprId, to: TypeId) -> Result<ExprId, Self::Error> {
        Ok(site.match_cast(atom, to).map_err(RewriteError::Type)?)
    }
}

/// Rewrites the body of a function.
///
/// One walk in program order; nests of any depth take constant stack. Nodes that do not change keep
/// their ids, and if nothing changes, nothing is written
/// ([`Body::is_edited`](anfora_ir::Body::is_edited) is exact). Types stay right: where an operand
/// was replaced by one of more specific type, the node's type is inferred again, and so on to its
/// users until a type stays the same. The signature of the function is not part of its body and
/// stays: where no result type is stated and the body's has become more specific, the author states
/// the old one or sets the new signature. Dataflow regions stay right: a region whose first Let
/// disappears starts with the next, new bindings are in the region that they are put in, and a
/// variable of a region that a replacement uses outside of the region becomes an output of it. What
/// no longer hangs anywhere stays in the arenas until they are compacted.
///
/// # Errors
/// The author's, or a [`RewriteError`] when parts do not fit together after a rewrite. The body is
/// then partly rewritten; with a journal open, the caller can take the edit back.
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
pub fn mutate<M: Mutator>(editor: &mut Editor<'_>, mutator: &mut M) -> Result<(), M::Error> {
    mutate_at(editor, Link::Root, mutator)
}

/// Rewrites what hangs at a link, and hangs there what it has become. See [`mutate`]. The type of
/// what is around it is not inferred again.
///
/// A variable of a dataflow region that the walk does not come to stays visible in the region only.
/// If a replacement uses it outside, the author makes it plain
/// ([`set_var_flags`](crate::set_var_flags)), or the body is ill-formed.
///
/// A call keeps tables up to the largest id that it meets (with [`Edits::Scoped`], of the whole
/// body): rewrite many small parts of one body in one walk of it.
///
/// # Errors
/// As [`mutate`].
pub fn mutate_at<M: Mutator>(editor: &mut Editor<'_>, at: Link, mutator: &mut M) -> Result<(), M::Error> {
    let start = at.target(editor.body);
    let scratch = Site::scratch::<M>(editor.cx, editor.body, start);
    let mut site = Site::new(Editor::new(editor.cx, editor.body), start, &scratch);
    rewrite_at(&mut site, at, mutator)
}

/// Rewrites what hangs at a link from a site that is ready to begin.
pub(crate) fn rewrite_at<M: Mutator>(site: &mut Site<'_>, at: Link, mutator: &mut M) -> Result<(), M::Error> {
    let start = at.target(site.editor.body);
    let result = run(site, mutator, start, None)?;
    if result != start {
        at.set(site.editor.body, result);
    }
    Ok(())
}

/// Rewrites the body of a function, and keeps its signature: if the result gets a more specific
/// type and none is stated, the function states the one that it had. With [`Refused::Retype`], a
/// result of another type than the stated one is converted, and where none is stated the signature
/// changes.
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
