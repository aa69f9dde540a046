//! The trait [`Mutator`]: rewrites a body in place, in one walk, with memoized results.
//!
//! The walk (`engine`) links each kept Let to the kept Let before it, so inserting and dropping
//! bindings needs no parent links. Nodes that do not change are not written.

use anfora_ir::{BlockKind, Body, ExprId, TypeId, VarId};

use crate::error::RewriteError;
use crate::link::Binding;
use crate::site::Site;

/// The information that a rewrite depends on. It determines whether nodes are overwritten or
/// copied.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Edits {
    /// The node alone: its operator, attributes and operands. The node is overwritten in place,
    /// once, and all its uses get the same result. So a replacement must not use a variable that is
    /// out of scope at one of these uses. Every variable that the node uses is in scope at all of
    /// them, and so is a field of a tuple that such a variable is bound to.
    InPlace,
    /// The node alone, but a node whose operands changed becomes a new node, so that the node of
    /// [`Site::original`] keeps its operands. A node with blocks (an If, a Lambda) has one parent
    /// and is still overwritten.
    Copied,
    /// The place as well: facts and bindings in the enclosing blocks. A changed node becomes a new
    /// node. This result is used until the end of the block or dataflow region in which it was
    /// found. So a shared node is rewritten again in each block that uses it. A shared node that
    /// holds blocks is copied first.
    Scoped,
}

/// The decision about a node.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Rewrite {
    /// The node stays.
    Keep,
    /// This expression replaces the node. Its type must be equal or more specific, unless
    /// [`Mutator::REFUSED`] is [`Refused::Retype`].
    Replace(ExprId),
}

/// The place of a value: a Let or the tail of a block.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Slot {
    /// The Let; for a tail, the tail before its rewrite.
    pub at: ExprId,
    /// The variable that is bound to the value; `None` in a tail.
    pub var: Option<VarId>,
}

impl Slot {
    /// Returns the binding of the slot with the value `value`; `None` in a tail.
    ///
    /// Cost: one node.
    pub fn binding(self, body: &Body, value: ExprId) -> Option<Binding> {
        self.var?;
        Binding::of(body, self.at).map(|binding| Binding { value, ..binding })
    }
}

/// The decision about a value and its binding. In a tail, [`Verdict::Value`] and [`Verdict::Var`]
/// replace the tail by an expression, [`Verdict::Splice`] also inserts bindings before it, and
/// [`Verdict::Drop`] keeps it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The binding stays, with its rewritten value. If [`Mutator::rewrite_expr`] replaced the value
    /// by an atom, the atom replaces the uses of the variable, and the binding is removed.
    Keep,
    /// The binding stays, with this value, even if it is an atom.
    Value(ExprId),
    /// This atom replaces the uses of the variable, and the binding is removed.
    Var(ExprId),
    /// The bindings of this block are inserted before the binding and are not walked. The block's
    /// tail becomes the value of the binding. If the tail is an atom, it replaces the uses of the
    /// variable instead, and the binding is removed. If the block has another parent in the walked
    /// part afterwards, the walk ends with [`RewriteError::SplicedTwice`].
    Splice(ExprId),
    /// The binding is removed. If a remaining expression of the walked part uses its variable, the
    /// walk ends with [`RewriteError::DroppedUsed`].
    Drop,
}

/// A part of a program with a beginning and an end, in which facts may hold.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// A block: a branch, the block of a `fn`, a chain as a value or operand, or the block of the
    /// walk.
    Block(BlockKind),
    /// A dataflow region.
    Region,
}

/// The way to go on if an operator does not accept the types of its new operands, or if the
/// branches of an If have no common type any more.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The walk ends with the type error.
    Error,
    /// The operands (or the results of the branches) are converted back to their old types by
    /// [`Mutator::cast`]. Replacements must still have a type that is equal or more specific.
    CastBack,
    /// As [`Refused::CastBack`], but a replacement may have any type. The new type propagates
    /// through bindings, tuples, branches and functions. A result with a stated type (of a `fn` or
    /// of the function) is converted to that type by [`Mutator::cast`].
    Retype,
}

/// A rewrite of a body in program order, operands before nodes; see [`mutate`](crate::mutate()).
///
/// All callbacks get a [`Site`]: the editor, and the place in the program. [`Site::bind`] inserts
/// further bindings at that place, so one binding can become several. The default of each callback
/// changes nothing.
///
/// Callbacks may make any expressions. They may edit expressions that were made during the walk and
/// have no parent yet, and change names, metadata and flags of variables. Implementors must change
/// links of the program only through the results of callbacks. If a callback overwrites a link of a
/// node that existed before the walk, the walk ends with [`RewriteError::OverwrittenLink`].
pub trait Mutator {
    /// The author's error. It ends the walk.
    type Error: From<RewriteError>;

    /// The information that the rewrites depend on.
    const EDITS: Edits = Edits::InPlace;

    /// False if the body is in A-normal form and [`Mutator::rewrite_expr`] is not needed. The walk
    /// then keeps no results of nodes, and ends with [`RewriteError::NotANormalForm`] if an operand
    /// is not an atom.
    const NODES: bool = true;

    /// True if the mutator uses the values of variables: [`Site::value_of`], [`Site::field`].
    const VALUES: bool = false;

    /// The way to go on if types no longer fit.
    const REFUSED: Refused = Refused::Error;

    /// False if the answers of one walk only make sense together, such as those of a plan. By
    /// default, the walk counts each answer that changes the program as a rewrite
    /// ([`Rewrites`](anfora_ir::Rewrites)), and asks the author for no further answers once the
    /// limit is reached. With false, the walk counts nothing and always asks. The author then
    /// counts ([`Editor::rewrote`](anfora_ir::Editor::rewrote)), or leaves that to the manager,
    /// which counts one rewrite for each function that a pass changed without counting.
    const SEPARABLE: bool = true;

    /// The reason for the rewrites of the mutator in the ledger and in reports, such as `an earlier
    /// binding has the same value`. If it is empty, the kind of answer is the reason. The bindings
    /// of a block that an answer puts into the program are recorded with it as parts of the last
    /// rewrite. If the author counts the rewrites, they are recorded only if it is not empty.
    const REASON: &'static str = "";

    /// Visits a value or tail, before its operands are rewritten. A returned block (or value)
    /// replaces it and is walked next, in the current block: for example, the taken branch of an
    /// If, or the body of a called function. Its bindings must have no other parent afterwards.
    ///
    /// # Errors
    /// The author's errors.
    #[inline(always)]
    fn expand(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Option<ExprId>, Self::Error> {
        let _ = (site, slot, value);
        Ok(None)
    }

    /// Visits a call, tuple, projection, If or Lambda that is a value, a tail or an operand. Its
    /// operands and blocks are rewritten already. It is called once for a shared node (with
    /// [`Edits::Scoped`], once for each scope).
    ///
    /// # Errors
    /// The author's errors.
    #[inline(always)]
    fn rewrite_expr(&mut self, site: &mut Site<'_>, id: ExprId) -> Result<Rewrite, Self::Error> {
        let _ = (site, id);
        Ok(Rewrite::Keep)
    }

    /// Visits the value of a Let, or a tail that is not an atom, after [`Mutator::rewrite_expr`].
    /// `value` is the result so far and is not written to the Let yet. For a Let it may be an atom.
    ///
    /// # Errors
    /// The author's errors.
    #[inline(always)]
    fn rewrite_value(&mut self, site: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, Self::Error> {
        let _ = (site, slot, value);
        Ok(Verdict::Keep)
    }

    /// Enters a block or a dataflow region, before its first Let.
    ///
    /// # Errors
    /// The author's errors.
    #[inline(always)]
    fn enter(&mut self, site: &mut Site<'_>, scope: Scope) -> Result<(), Self::Error> {
        let _ = (site, scope);
        Ok(())
    }

    /// Leaves a block after its tail, or a region after its last Let.
    ///
    /// # Errors
    /// The author's errors.
    #[inline(always)]
    fn exit(&mut self, site: &mut Site<'_>, scope: Scope) -> Result<(), Self::Error> {
        let _ = (site, scope);
        Ok(())
    }

    /// Makes a value of the type `to` from an atom that has another type now. The default is a
    /// `match_cast`. Bindings that it inserts are placed before the Let or tail in which the new
    /// value is used. See [`Refused`].
    ///
    /// # Errors
    /// The author's errors, or if the value cannot be made.
    fn cast(&mut self, site: &mut Site<'_>, atom: ExprId, to: TypeId) -> Result<ExprId, Self::Error> {
        Ok(site.editor.match_cast(atom, to).map_err(RewriteError::Type)?)
    }
}
