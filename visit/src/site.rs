//! The place of a rewrite, and the state of the walk that reached it.

use std::ops::ControlFlow;

use anfora_ir::bumpalo::Bump;
use anfora_ir::{
    BlockKind, Body, Context, Editor, EntityId, Expr, ExprId, IdSet, LetFlags, LinkWatch, LiteralId, NameId,
    OperandList, Scratch, ScratchVec, SideTable, TypeId, VarId,
};
use rustc_hash::FxHashMap;

use crate::analysis::link_counts;
use crate::chain::tail_link;
use crate::copy::copy_fresh;
use crate::engine::block::{Block, OpenNode};
use crate::engine::regions::Regions;
use crate::engine::sharing::Scoped;
use crate::engine::spliced::{Spliced, spliced_twice};
use crate::error::{RewriteError, check_type, name_for_error};
use crate::link::{Binding, Link};
use crate::mutator::{Edits, Mutator, Refused};
use crate::visitor::{Visit, Visitor, walk_from};

/// The place of a [`Mutator`](crate::Mutator) in the program, with the editor of the body.
///
/// ```
/// # use anfora_ir::{Editor, Expr, ExprId, FunctionBuilder, Literal, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_visit::{Mutator, Rewrite, RewriteError, Site, chain, mutate};
///
/// /// Names operands that are tuples: the heart of ToANormalForm, for tuples.
/// struct BindTuples;
///
/// impl Mutator for BindTuples {
///     type Error = RewriteError;
///     const EDITS: anfora_visit::Edits = anfora_visit::Edits::Scoped;
///
///     fn rewrite_expr(&mut self, site: &mut Site, id: ExprId) -> Result<Rewrite, RewriteError> {
///         match site.editor.body.expr(id) {
///             Expr::Tuple(_) => Ok(Rewrite::Replace(site.bind(None, id))),
///             _ => Ok(Rewrite::Keep),
///         }
///     }
/// }
///
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let a = f.param("a", unit);
/// # let inner = f.tuple(&[a, a]);
/// # let outer = f.tuple(&[inner, inner]);
/// # let key = f.finish(outer).unwrap();
/// // ((%a, %a), (%a, %a)), the inner tuple shared
/// let (function, cx) = module.get_mut(key).unwrap();
/// mutate(&mut Editor::new(cx, &mut function.body), &mut BindTuples)?;
/// // let %0 = (%a, %a); let %1 = (%0, %0); %1
/// assert_eq!(chain(&function.body, function.body.root()).count(), 2);
/// # Ok::<(), RewriteError>(())
/// ```
pub struct Site<'e> {
    /// The editor of the body.
    pub editor: Editor<'e>,
    pub(crate) original: ExprId,
    /// The links that the walk itself overwrote.
    pub(crate) heard: LinkWatch,
    /// True once the limit of rewrites is reached: the author is not asked any more.
    pub(crate) is_at_limit: bool,

    /// The arena of the stacks and tables.
    scratch: &'e Bump,

    // ---- The stacks ----
    /// The innermost open block, and those around it.
    pub(crate) block: Block,
    pub(crate) blocks: ScratchVec<'e, Block>,
    /// The nodes that are open in the blocks, innermost last.
    pub(crate) nodes: ScratchVec<'e, OpenNode>,
    /// The results of the finished operands of the open nodes.
    pub(crate) results: ScratchVec<'e, ExprId>,

    // ---- The tables ----
    /// The replacement of each variable and of each walked node.
    pub(crate) current: ScratchVec<'e, Option<ExprId>>,
    is_whole: bool,
    /// The values of variables, with [`Mutator::VALUES`](crate::Mutator::VALUES).
    values: ScratchVec<'e, Option<ExprId>>,
    /// The types before the walk of expressions whose type changed.
    pub(crate) retyped: FxHashMap<ExprId, TypeId>,
    /// The number of changes of types, and of edits that may change types.
    pub(crate) retypes: u32,
    /// The type that the result had before the walk.
    pub(crate) result_before: Option<TypeId>,
    pub(crate) scoped: Option<Box<Scoped>>,
    regions: Option<Regions<'e>>,

    /// The bindings that [`Mutator::cast`](crate::Mutator::cast) inserts, while it runs.
    pub(crate) of_cast: Option<Vec<(VarId, ExprId)>>,
    /// The variables of the `fn`s that were entered. `calls_itself` holds those that are used
    /// inside.
    open_fns: IdSet<ExprId>,
    pub(crate) calls_itself: IdSet<ExprId>,

    // ---- Moved blocks and dropped bindings ----
    pub(crate) has_expanded: bool,
    /// Variables that authors replaced.
    given: IdSet<ExprId>,
    links: Option<SideTable<ExprId, u32>>,
    /// Variables whose values were expanded.
    expanded: IdSet<ExprId>,
    /// Lets that were spliced, and are not walked.
    spliced: Option<Box<Spliced>>,
    dropped: Option<IdSet<ExprId>>,
    /// True if the current value uses a variable whose binding was dropped.
    met_dropped: bool,
    /// True if a remaining expression may use such a variable.
    uses_dropped: bool,
}

impl<'e> Site<'e> {
    pub(crate) fn new(editor: Editor<'e>, start: ExprId, scratch: &'e Bump) -> Site<'e> {
        let is_whole = start == editor.body.root();
        Site {
            editor,
            original: start,
            heard: LinkWatch::default(),
            is_at_limit: false,
            block: Block::new(start, BlockKind::Root, 0, 0),
            scratch,
            // Usually few are open at a time. This memory lies before the tables.
            blocks: ScratchVec::with_capacity_in(8, scratch),
            nodes: ScratchVec::with_capacity_in(8, scratch),
            results: ScratchVec::with_capacity_in(8, scratch),
            current: ScratchVec::new_in(scratch),
            is_whole,
            values: ScratchVec::new_in(scratch),
            retyped: FxHashMap::default(),
            retypes: 0,
            result_before: None,
            scoped: None,
            regions: None,
            of_cast: None,
            open_fns: IdSet::with_capacity(0),
            given: IdSet::with_capacity(0),
            links: None,
            calls_itself: IdSet::with_capacity(0),
            has_expanded: false,
            expanded: IdSet::with_capacity(0),
            spliced: None,
            dropped: None,
            met_dropped: false,
            uses_dropped: false,
        }
    }

    /// Returns the scratch arena for a walk from `start`. It has room for the stacks. If the walk
    /// covers the whole body, it also has room for the tables: replacements of nodes, values of
    /// variables, and regions.
    pub(crate) fn scratch<M: Mutator>(cx: &Context, body: &Body, start: ExprId) -> Scratch {
        const STACKS: usize = 1 << 10;
        let tables = if start == body.root() { 2 + usize::from(M::VALUES) } else { 0 };
        cx.scratch_with_room(STACKS + body.len() * tables * size_of::<ExprId>())
    }

    // ---- For authors ----

    /// Returns the node, Let or start of a block that the walk reached, before it was rewritten.
    /// With [`Edits::Copied`](crate::Edits::Copied) and [`Edits::Scoped`](crate::Edits::Scoped), a
    /// node still has its old operands.
    pub fn original(&self) -> ExprId {
        self.original
    }

    /// Returns the replacement of the uses of a variable, or of a node that was walked before; the
    /// id itself if it was not replaced.
    #[inline]
    pub fn resolve(&self, id: ExprId) -> ExprId {
        let id = self.current_of(id).unwrap_or(id);
        match &self.scoped {
            Some(scoped) => scoped.follow(id),
            None => id,
        }
    }

    /// Returns the current value of a variable whose binding the walk has left. Returns `None` for
    /// a parameter, and for a variable whose binding an author inserted. Needs
    /// [`Mutator::VALUES`](crate::Mutator::VALUES).
    #[inline]
    pub fn value_of(&self, var: ExprId) -> Option<ExprId> {
        *self.values.get(var.index())?
    }

    /// Returns the field of a tuple, if the tuple's value is known and the field is an atom. If the
    /// walk inserts a variable of an ended dataflow region, the variable becomes an output of the
    /// region. Needs [`Mutator::VALUES`](crate::Mutator::VALUES).
    #[inline]
    pub fn field(&mut self, tuple: ExprId, index: u32) -> Option<ExprId> {
        let Expr::Tuple(fields) = self.editor.body.expr(self.value_of(tuple)?) else { return None };
        if index as usize >= fields.len() {
            return None;
        }
        let field = self.editor.body.operand(fields, index as usize);
        self.editor.body.expr(field).is_atom().then_some(field)
    }

    /// Binds a value to a new variable in the innermost open block, before the current binding or
    /// tail, and returns the variable as an expression. In a dataflow region, the binding is part
    /// of the region and the variable is visible only in it.
    ///
    /// The value is not walked. In [`Mutator::rewrite_expr`](crate::Mutator::rewrite_expr) of a
    /// node that may be shared, use it with [`Edits::Scoped`](crate::Edits::Scoped), since other
    /// blocks do not see the variable.
    pub fn bind(&mut self, name: Option<NameId>, value: ExprId) -> ExprId {
        let ty = self.editor.body.type_of(value);
        let var = self.editor.var(name, self.block.regions.var_flags(), ty);
        self.push(var, value);
        var.expr()
    }

    /// Binds a value to an existing variable that nothing binds yet, like [`Site::bind`]. Outside a
    /// dataflow region, the variable becomes plain.
    pub fn push(&mut self, var: VarId, value: ExprId) {
        if let Some(bindings) = &mut self.of_cast {
            bindings.push((var, value));
            return;
        }
        if self.block.in_region() {
            self.bind_in_region(var);
        }
        self.let_out(value);
        self.note_made();
        let at = self.block.at;
        let id = self.editor.let_(var, value, at, LetFlags::PLAIN);
        self.unwatched(|site| site.emit(id, var));
    }

    /// Moves all bindings of a block before the current binding or tail, and returns the block's
    /// tail. In a dataflow region, the bindings become part of it. If the block has another parent
    /// in the walked part afterwards, the walk ends with [`RewriteError::SplicedTwice`].
    ///
    /// # Errors
    /// If the block belongs to the chain that it is moved into.
    pub fn splice(&mut self, block: ExprId) -> Result<ExprId, RewriteError> {
        self.unwatched(|site| site.splice_walked(block, None))
    }

    /// Returns an If with the condition and the blocks of the If `branches`, whose tails become
    /// `tails`. The walk has left both blocks, and `branches` is the value of the current slot,
    /// which the new If must replace. Variables of dataflow regions that a tail uses become outputs
    /// of their regions.
    ///
    /// # Errors
    /// If the tails have no common type.
    ///
    /// # Panics
    /// If `branches` is no If.
    pub fn with_tails(&mut self, branches: ExprId, tails: [ExprId; 2]) -> Result<ExprId, RewriteError> {
        self.note_made();
        for (link, tail) in [Link::Then(branches), Link::Else(branches)].into_iter().zip(tails) {
            self.let_out(tail);
            self.unwatched(|site| tail_link(site.editor.body, link).set(site.editor.body, tail));
        }
        let [cond, then_block, else_block] = [Link::Cond(branches), Link::Then(branches), Link::Else(branches)]
            .map(|link| link.target(self.editor.body));
        self.editor.if_(cond, then_block, else_block).map_err(RewriteError::Type)
    }

    /// Replaces the following uses of `var` by `atom`. This can also replace a variable that is
    /// bound in a block returned by [`Mutator::expand`](crate::Mutator::expand).
    ///
    /// Cost: one entry.
    ///
    /// # Errors
    /// If `atom` is not an atom, or the variable's type does not accept its type.
    pub fn replace_var(&mut self, var: VarId, atom: ExprId) -> Result<(), RewriteError> {
        check_atom(&self.editor, var, atom)?;
        self.let_out(atom);
        self.note_made();
        self.given.insert(var.expr());
        self.set_current(var.expr(), atom);
        Ok(())
    }

    /// Replaces the uses of `var` by `atom`, from here to the end of the innermost open block or
    /// dataflow region; for example, a condition by its value in a branch. In
    /// [`Mutator::enter`](crate::Mutator::enter) of a block, it holds for that block. Needs
    /// [`Edits::Scoped`](crate::Edits::Scoped).
    ///
    /// # Errors
    /// If `atom` is not an atom, or the variable's type does not accept its type.
    ///
    /// # Panics
    /// Without [`Edits::Scoped`](crate::Edits::Scoped).
    pub fn assume(&mut self, var: VarId, atom: ExprId) -> Result<(), RewriteError> {
        assert!(self.scoped.is_some(), "what is assumed in a block needs Edits::Scoped");
        let (var, atom) = (self.resolve(var.expr()), self.resolve(atom));
        let Some(var) = self.editor.body.as_var(var) else { return Ok(()) };
        check_atom(&self.editor, var, atom)?;
        self.let_out(atom);
        self.note_made();
        if var.expr() != atom
            && let Some(scoped) = &mut self.scoped
        {
            scoped.assume(var.expr(), atom);
        }
        Ok(())
    }

    /// Returns a node for a constant of the type `ty` that will replace the value `of`. If the body
    /// has no such node, `of` itself is overwritten, so that the body does not grow. Nothing else
    /// may use that node.
    ///
    /// Cost: one node.
    pub fn literal_in_place(&mut self, of: ExprId, literal: LiteralId, ty: TypeId) -> ExprId {
        self.unwatched(|site| site.editor.body.literal_in_place(of, literal, ty))
    }

    /// Returns true if the place is in a dataflow region of the innermost open block.
    pub fn in_region(&self) -> bool {
        self.block.in_region()
    }

    /// Returns the number of open blocks around the place, including the block of the walk itself.
    pub fn depth(&self) -> usize {
        self.blocks.len() + 1
    }

    /// Runs an edit of the engine, which may overwrite links between callbacks.
    fn unwatched<T>(&mut self, edit: impl FnOnce(&mut Self) -> T) -> T {
        let has_heard = self.editor.body.has_heard();
        let result = edit(self);
        if !has_heard {
            self.forget_heard();
        }
        result
    }

    /// Records that the walk itself overwrote the links since the last call.
    #[cold]
    pub(crate) fn forget_heard(&mut self) {
        self.editor.body.forget_heard(&mut self.heard);
    }

    // ---- For the walk ----

    pub(crate) fn prepare(&mut self, edits: Edits, start: ExprId) {
        if edits == Edits::Scoped {
            self.scoped = Some(Box::new(Scoped::new(self.editor.body, start)));
        }
    }

    /// Returns true if several links lead to a node. The first call counts the links of the whole
    /// body.
    #[cold]
    pub(crate) fn is_shared(&mut self, node: ExprId) -> bool {
        let body = &*self.editor.body;
        self.links.get_or_insert_with(|| link_counts(body))[node] > 1
    }

    /// Returns the innermost Let that the walk is at, or whose value it is in.
    pub(crate) fn binding(&self) -> Option<ExprId> {
        let mut open = std::iter::once(&self.block).chain(self.blocks.iter().rev());
        open.find_map(|block| Binding::of(self.editor.body, block.at)).map(|b| b.id)
    }

    pub(crate) fn not_a_normal_form(&self) -> RewriteError {
        RewriteError::not_a_normal_form(self.editor.cx, self.editor.body, self.block.at)
    }

    /// Returns true if the expression being finished is the value of the current Let, or the tail.
    #[inline(always)]
    pub(crate) fn is_at_slot(&self) -> bool {
        self.nodes.len() == self.block.nodes as usize
    }

    #[inline]
    pub(crate) fn leave_block<M: Mutator>(&mut self) {
        self.end_scope::<M>();
        self.block = self.blocks.pop().expect("a block is around every block but the first");
    }

    // ---- Replacements ----

    #[inline(always)]
    pub(crate) fn current_of(&self, id: ExprId) -> Option<ExprId> {
        self.current.get(id.index()).copied().flatten()
    }

    #[inline(always)]
    pub(crate) fn set_current(&mut self, id: ExprId, by: ExprId) {
        *self.entry(id) = Some(by);
    }

    /// Returns the table entry for a node's replacement.
    #[inline(always)]
    fn entry(&mut self, id: ExprId) -> &mut Option<ExprId> {
        let i = id.index();
        if i >= self.current.len() {
            self.make_room(i);
        }
        &mut self.current[i]
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, i: usize) {
        let room = if self.is_whole { self.editor.body.len() } else { 2 * self.current.len() };
        self.current.resize(room.max(i + 1), None);
    }

    /// Maps a variable to itself, unless the author replaced it.
    #[inline(always)]
    pub(crate) fn bind_itself(&mut self, var: ExprId) {
        self.entry(var).get_or_insert(var);
    }

    /// Returns the result of a node that was walked before, unless it was dropped.
    #[inline(always)]
    pub(crate) fn seen(&mut self, id: ExprId) -> Option<ExprId> {
        let result = self.current_of(id)?;
        if result != id && self.editor.body.expr(result).binds() {
            // A node with blocks has one parent: the second use gets a copy.
            return Some(copy_fresh(&mut self.editor, result));
        }
        Some(result)
    }

    /// Returns the replacement of an atom.
    #[inline(always)]
    pub(crate) fn resolve_atom<M: Mutator>(&mut self, id: ExprId) -> ExprId {
        let by = match self.current_of(id) {
            Some(by) => by,
            None => self.first_use(id),
        };
        self.follow::<M>(by)
    }

    /// Returns the replacement of an operand; `None` if it is a node that was not walked.
    #[inline(always)]
    pub(crate) fn resolve_operand<M: Mutator>(&mut self, id: ExprId) -> Option<ExprId> {
        match self.current_of(id) {
            Some(by) => Some(self.follow::<M>(by)),
            None if self.editor.body.expr(id).is_atom() => {
                let by = self.first_use(id);
                Some(self.follow::<M>(by))
            }
            None => None,
        }
    }

    /// Follows the assumptions about an atom in the open blocks.
    #[inline(always)]
    fn follow<M: Mutator>(&self, id: ExprId) -> ExprId {
        match &self.scoped {
            Some(scoped) if M::EDITS == Edits::Scoped => scoped.follow(id),
            _ => id,
        }
    }

    /// Records that a `fn` will be bound to a variable, which it may use itself.
    pub(crate) fn open_fn(&mut self, var: VarId) {
        self.open_fns.insert(var.expr());
    }

    /// Returns true if the walk has reached the binding of a variable.
    pub(crate) fn was_walked(&self, var: VarId) -> bool {
        self.current_of(var.expr()).is_some() && !self.given.contains(var.expr())
    }

    /// Returns the replacement of an atom that the walk has not reached, or that is not bound yet.
    fn first_use(&mut self, atom: ExprId) -> ExprId {
        if self.dropped.as_ref().is_some_and(|dropped| dropped.contains(atom)) {
            self.met_dropped = true;
        } else if self.open_fns.contains(atom) {
            self.calls_itself.insert(atom);
        } else {
            self.set_current(atom, atom);
        }
        atom
    }

    #[inline(always)]
    pub(crate) fn is_flat_operand(&self, id: ExprId) -> bool {
        self.current_of(id) == Some(id) || self.editor.body.expr(id).is_atom()
    }

    #[inline(always)]
    pub(crate) fn is_flat(&self, list: OperandList) -> bool {
        self.editor.body.operands(list).iter().all(|&o| self.is_flat_operand(o))
    }

    #[inline]
    pub(crate) fn set_value(&mut self, var: VarId, value: ExprId) {
        let i = var.index();
        if i >= self.values.len() {
            let room = if self.is_whole { self.editor.body.len() } else { 2 * self.values.len() };
            self.values.resize(room.max(i + 1), None);
        }
        self.values[i] = Some(value);
    }

    // ---- Regions ----

    pub(crate) fn begin_region(&mut self) {
        let room = if self.is_whole { self.editor.body.len() } else { 0 };
        self.regions.get_or_insert_with(|| Regions::with_room(room, self.scratch)).begin();
    }

    pub(crate) fn end_region(&mut self) {
        if let Some(regions) = &mut self.regions {
            regions.end();
        }
    }

    /// Records that a variable is bound in the innermost region.
    #[inline(always)]
    pub(crate) fn bind_in_region(&mut self, var: VarId) {
        if let Some(regions) = &mut self.regions {
            regions.bind(var);
        }
    }

    /// Makes variables of ended dataflow regions outputs of their regions, if an expression that is
    /// inserted here uses them.
    #[inline]
    pub(crate) fn let_out(&mut self, id: ExprId) {
        if let Some(regions) = &mut self.regions {
            regions.let_out(self.editor.body, id);
        }
    }

    /// Makes variables of ended dataflow regions outputs of their regions, if they are operands of
    /// a node that is about to be walked. An expanded block may have such nodes.
    pub(crate) fn let_out_atoms(&mut self, id: ExprId) {
        if self.regions.is_none() {
            return;
        }
        let expr = self.editor.body.expr(id);
        match expr {
            Expr::Proj { tuple: operand, .. } | Expr::If { cond: operand, .. } => self.let_out_operand(operand),
            _ => {
                let list = expr.operand_list().unwrap_or(OperandList::EMPTY);
                for i in 0..list.len() {
                    self.let_out_operand(self.editor.body.operand(list, i));
                }
            }
        }
    }

    /// Does so for an operand that is an atom or a node that was walked before, perhaps in a region
    /// that has ended. Other nodes are about to be walked.
    fn let_out_operand(&mut self, operand: ExprId) {
        if self.current_of(operand).is_some() || self.editor.body.expr(operand).is_atom() {
            let result = self.resolve(operand);
            self.let_out(result);
        }
    }

    // ---- Checks ----

    /// Checks that an atom may replace the uses of a variable.
    #[inline]
    pub(crate) fn check_atom<M: Mutator>(&self, var: VarId, atom: ExprId) -> Result<(), RewriteError> {
        if M::REFUSED == Refused::Retype && self.editor.body.expr(atom).is_atom() {
            return Ok(());
        }
        check_atom(&self.editor, var, atom)
    }

    pub(crate) fn spliced_mut(&mut self) -> &mut Spliced {
        self.spliced.get_or_insert_default()
    }

    pub(crate) fn expanded_mut(&mut self) -> &mut IdSet<ExprId> {
        &mut self.expanded
    }

    #[inline(always)]
    pub(crate) fn was_expanded(&self, var: VarId) -> bool {
        self.has_expanded && self.expanded.contains(var.expr())
    }

    /// Checks that a kept Let was not spliced elsewhere before.
    #[inline(always)]
    pub(crate) fn check_in_place(&self, at: ExprId, var: VarId) -> Result<(), RewriteError> {
        match &self.spliced {
            Some(spliced) if spliced.contains(at) => Err(spliced_twice(&self.editor, var)),
            _ => Ok(()),
        }
    }

    /// Checks that no spliced block has two parents under `root`. Walks the result if a block was
    /// spliced.
    pub(crate) fn check_spliced(&self, root: ExprId) -> Result<(), RewriteError> {
        match &self.spliced {
            Some(spliced) => spliced.check(&self.editor, root),
            None => Ok(()),
        }
    }

    /// Records that the binding of a variable is dropped.
    pub(crate) fn drop_var(&mut self, var: VarId) {
        self.dropped.get_or_insert_with(|| IdSet::with_capacity(self.editor.body.len())).insert(var.expr());
        if let Some(entry) = self.current.get_mut(var.index()) {
            *entry = None;
        }
    }

    /// Records that an expression made by the author stays. It may use a variable whose binding was
    /// dropped, at any depth.
    #[inline(always)]
    pub(crate) fn note_made(&mut self) {
        self.uses_dropped |= self.dropped.is_some();
    }

    /// Records that the current value stays.
    #[inline(always)]
    pub(crate) fn note_kept(&mut self) {
        self.uses_dropped |= self.met_dropped;
    }

    /// Records that the current value is dropped; nodes in it may stay elsewhere.
    #[inline(always)]
    pub(crate) fn note_gone<M: Mutator>(&mut self) {
        self.uses_dropped |= self.met_dropped && M::NODES;
        self.met_dropped = false;
    }

    /// Checks that the result under `root` uses no variable whose binding was dropped. Walks the
    /// result if it may use one.
    pub(crate) fn check_dropped(&self, root: ExprId) -> Result<(), RewriteError> {
        struct Uses<'a>(&'a IdSet<ExprId>);
        impl Visitor for Uses<'_> {
            type Break = VarId;
            #[inline(always)]
            fn visit_use(&mut self, _: &Body, var: VarId) -> Visit<VarId> {
                if self.0.contains(var.expr()) { Visit::Stop(var) } else { Visit::Continue }
            }
        }
        let Some(dropped) = self.dropped.as_ref().filter(|_| self.uses_dropped) else { return Ok(()) };
        match walk_from(self.editor.body, root, &mut Uses(dropped)) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(var) => {
                Err(RewriteError::DroppedUsed { name: name_for_error(self.editor.cx, self.editor.body, var) })
            }
        }
    }
}

/// Checks that an atom may replace the uses of a variable.
pub(crate) fn check_atom(editor: &Editor<'_>, var: VarId, atom: ExprId) -> Result<(), RewriteError> {
    if !editor.body.expr(atom).is_atom() {
        return Err(RewriteError::NotAnAtom);
    }
    check_type(editor.cx, editor.body.ty(var.expr()), editor.body.ty(atom))
}

anfora_ir::brief_debug! { Site<'_> { original, depth }; }
