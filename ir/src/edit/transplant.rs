//! Copies of blocks from one body to another, or within one body.
//!
//! [`Graft`] is the only walk that copies. For each node of the source, in program order and parts
//! before wholes, it appends a node to the target, and records the copy of each node in one table.
//! A [`Translate`] maps the ids of the shared tables. There are three: within a module, types
//! change only in their symbols ([`Transplant`]); from another module, all ids change
//! ([`TableMap`]); and when a body is compacted, no id changes.

use bumpalo::Bump;
use smallvec::SmallVec;

use crate::compact::live_nodes;
use crate::core::body::{Body, Span};
use crate::core::context::Context;
use crate::core::entity::{
    AttrsId, ExprId, FunctionKey, GlobalId, LambdaId, LiteralId, NameId, OpId, SideTable, SymbolId, TypeId,
};
use crate::core::expr::{Expr, LambdaData, LetFlags, OperandList, VarFlags, VarId};
use crate::core::function::Function;
use crate::core::module::Module;
use crate::core::translate::{EntryIds, IdMap, Translate, translate_expr, translate_head, translate_lambda};
use crate::edit::editor::Editor;
use crate::edit::substitution::SymbolSubstitution;
use crate::edit::take_over::{TableMap, TakeOverError, TakenOver};
use crate::tables::dim::Dim;

/// The expressions of the target that are copies of those of the source.
#[derive(Clone, Debug)]
pub(crate) struct Copied {
    /// Each copy with the number of the run in which it was made. For an atom that has one node per
    /// body, the entry counts in that run only, since the next run may have another target.
    entries: SideTable<ExprId, (u32, Option<ExprId>)>,
    /// The first run whose entries count.
    first: u32,
    present: u32,
}

/// Marks the number of the run for such an atom.
const LEAF: u32 = 1 << 31;

impl Copied {
    fn with_room(nodes: usize) -> Copied {
        Copied { entries: SideTable::new(nodes, (0, None)), first: 0, present: 0 }
    }

    #[inline(always)]
    pub(crate) fn get(&self, id: ExprId) -> Option<ExprId> {
        let (copy, copied) = self.entries[id];
        copied.filter(|_| copy == self.present | LEAF || copy & LEAF == 0 && copy >= self.first)
    }

    /// Returns the copy of a node that the current run has made, if it has.
    #[inline(always)]
    fn made(&self, id: ExprId) -> Option<ExprId> {
        let (copy, copied) = self.entries[id];
        copied.filter(|_| copy == self.present)
    }

    #[inline(always)]
    fn set(&mut self, id: ExprId, copied: Option<ExprId>) {
        self.entries.set(id, (self.present, copied));
    }

    #[inline(always)]
    fn set_leaf(&mut self, id: ExprId, leaf: ExprId) {
        self.entries.set(id, (self.present | LEAF, Some(leaf)));
    }

    fn begin_copy(&mut self) {
        self.present += 1;
        assert!(self.present < LEAF, "there are fewer than 2^31 copies");
    }

    /// Clears all entries, in constant time.
    fn clear(&mut self) {
        self.begin_copy();
        self.first = self.present;
    }
}

/// Copies blocks, bindings and functions from one body to another, or within one body: to inline,
/// to outline, or to move a block to a function of its own.
///
/// Each variable that is bound in a copy is a new variable with the same name, so a copy can be
/// used beside the original. A variable that is free in it is replaced as [`Transplant::replace`]
/// says or, within one body, stays itself. Sharing inside of the copied expression is kept. The
/// copy shares only atoms with the original, which is not edited. Metadata is copied, and so are
/// source positions, except from another module.
///
/// [`Transplant::symbols`] determines the replacements of symbolic dimensions.
///
/// | made by | a `fn`'s own symbols | other symbols | for |
/// |---|---|---|---|
/// | [`new`] | are renamed | stay | copies within a function |
/// | [`between_functions`] | are renamed | are renamed | copies from one function to another |
/// | [`moving`] | stay | stay | blocks whose original goes |
/// | [`from_module`] | are made anew | are made anew | copies from another module |
///
/// [`new`]: Transplant::new
/// [`between_functions`]: Transplant::between_functions
/// [`moving`]: Transplant::moving
/// [`from_module`]: Transplant::from_module
///
/// A copy takes time linear in the copied expression and constant stack. The table of copies has
/// room up to the largest id in the expression. For many small copies, use one `Transplant`, which
/// keeps the table, and empty it with [`Transplant::begin`].
///
/// ```
/// # use anfora_ir::{FunctionBuilder, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_ir::{Editor, Transplant};
///
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "callee");
/// # let x = f.param("x", unit);
/// # let pair = f.tuple(&[x, x]);
/// # let callee = f.finish(pair).unwrap();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let y = f.param("y", unit);
/// # let main = f.finish(y).unwrap();
/// // @callee(%x) { (%x, %x) }, @main(%y) { %y }
/// let (callee, main, cx) = module.get_pair(callee, main).expect("both are there");
/// let (callee, y) = (&callee.body, main.body.params()[0].expr());
/// let mut transplant = Transplant::between_functions();
/// transplant.replace(callee.params()[0].expr(), y);
/// let mut editor = Editor::new(cx, &mut main.body);
/// let inlined = transplant.copy(&mut editor, Some(callee), callee.root());
/// assert_eq!(main.body.operands_of(inlined), [y, y]);
/// ```
pub struct Transplant<'m> {
    copied: Copied,
    /// The replacements of symbols. For symbols that a parameter or `match_cast` outside of a copy
    /// binds, callers set the replacements; the verifier refuses symbols that nothing binds.
    pub symbols: SymbolSubstitution,
    renames_own: bool,
    foreign: Option<TableMap<'m>>,
}

impl<'m> Transplant<'m> {
    fn with(symbols: SymbolSubstitution, renames_own: bool, foreign: Option<TableMap<'m>>) -> Transplant<'m> {
        Transplant { copied: Copied::with_room(0), symbols, renames_own, foreign }
    }

    /// Returns a `Transplant` for copies within a function.
    pub fn new() -> Transplant<'m> {
        Transplant::with(SymbolSubstitution::new(), true, None)
    }

    /// Returns a `Transplant` for copies from one function to another of the same module.
    pub fn between_functions() -> Transplant<'m> {
        Transplant::with(SymbolSubstitution::renaming(), true, None)
    }

    /// Returns a `Transplant` for blocks that move: the original is no longer used.
    pub fn moving() -> Transplant<'m> {
        Transplant::with(SymbolSubstitution::new(), false, None)
    }

    /// Returns a `Transplant` for copies of a function of another module, or of parts of it, to the
    /// module of `cx`. All entries that the function names are made again in the tables of `cx`:
    /// names, types, attributes, constants, operators, globals and symbols. It is for one function
    /// of `cx`, since all its copies name the same symbols. Signatures of globals are not compared,
    /// as [`Module::take_function`] compares them; the verifier finds calls that do not fit. Linear
    /// in the function, and in its types and attributes.
    ///
    /// # Errors
    /// If the module does not have the function, or `cx` does not know an operator that it calls.
    ///
    /// ```
    /// # use anfora_ir::{FunctionBuilder, Module, OpRegistry};
    /// # use std::sync::Arc;
    /// use anfora_ir::{Editor, Transplant};
    ///
    /// # let mut library = Module::new(Arc::new(OpRegistry::new()));
    /// # let unit = library.cx.types.unit();
    /// # let mut f = FunctionBuilder::new(&mut library, "pair");
    /// # let x = f.param("x", unit);
    /// # let pair = f.tuple(&[x, x]);
    /// # let key = f.finish(pair).unwrap();
    /// # let mut module = Module::new(Arc::new(OpRegistry::new()));
    /// # let unit = module.cx.types.unit();
    /// # let mut f = FunctionBuilder::new(&mut module, "main");
    /// # let y = f.param("y", unit);
    /// # let main = f.finish(y).unwrap();
    /// // `library` has @pair(%x) { (%x, %x) }, `module` has @main(%y) { %y }
    /// let source = &library.get(key).expect("it is there").body;
    /// let (main, cx) = module.get_mut(main).expect("it is there");
    /// let y = main.body.params()[0].expr();
    /// let mut transplant = Transplant::from_module(cx, &library, key)?;
    /// transplant.replace(source.params()[0].expr(), y);
    /// let mut editor = Editor::new(cx, &mut main.body);
    /// let copy = transplant.copy(&mut editor, Some(source), source.root());
    /// assert_eq!(main.body.operands_of(copy), [y, y]);
    /// # Ok::<(), anfora_ir::TakeOverError>(())
    /// ```
    pub fn from_module(
        cx: &mut Context,
        module: &'m Module,
        function: FunctionKey,
    ) -> Result<Transplant<'m>, TakeOverError> {
        let mut tables = TableMap::new(&module.cx);
        tables.parts_of(cx, module.get(function).ok_or(TakeOverError::NoFunction)?)?;
        Ok(Transplant::with(SymbolSubstitution::new(), false, Some(tables)))
    }

    /// Replaces a variable or another atom of the source by `by` in copies. `by` is an expression
    /// of the target, usually an atom.
    ///
    /// Cost: one entry.
    pub fn replace(&mut self, atom: ExprId, by: ExprId) {
        self.copied.set(atom, Some(by));
    }

    /// Removes the replacement of a variable or other atom, which is copied again from here on.
    ///
    /// Cost: one entry.
    pub fn forget(&mut self, atom: ExprId) {
        self.copied.set(atom, None);
    }

    /// Begins copies that are independent of those before, with other symbols: all replacements are
    /// removed.
    ///
    /// Cost: one entry.
    pub fn begin(&mut self, symbols: SymbolSubstitution) {
        self.copied.clear();
        self.symbols = symbols;
    }

    /// Returns the copy or replacement of a variable or node of the source, as of the last copy
    /// that included it.
    ///
    /// Cost: one entry.
    pub fn copied(&self, id: ExprId) -> Option<ExprId> {
        self.copied.get(id)
    }

    /// Copies an expression of `source` (or, if `None`, of the editor's own body) to the end of the
    /// editor's body, and returns the copy, which nothing links to yet. Types are those of the
    /// original with symbols replaced. If a variable was replaced by a variable of a more specific
    /// type, the caller can propagate the type with [`retype_from`](crate::retype_from).
    ///
    /// # Panics
    /// If the source is of another module, and is not the function that the `Transplant` was made
    /// for.
    pub fn copy(&mut self, editor: &mut Editor<'_>, source: Option<&Body>, id: ExprId) -> ExprId {
        self.graft(editor.cx, source, editor.body, |graft| graft.value(id))
    }

    /// Copies the binding of a Let, and returns the new Let. Its body is its variable until
    /// [`Body::set_let_body`] sets another one. The copy has the given flags, which a
    /// [`RegionWriter`](crate::RegionWriter) determines; outside of regions its variable is plain.
    ///
    /// # Panics
    /// In the cases of [`Transplant::copy`]; and if `id` is not a Let.
    pub fn binding(&mut self, editor: &mut Editor<'_>, source: Option<&Body>, id: ExprId, flags: LetFlags) -> ExprId {
        self.graft(editor.cx, source, editor.body, |graft| {
            let Expr::Let { var, value, .. } = graft.from().expr(id) else { panic!("{id:?} is not a Let") };
            let var = graft.var_of(var, flags);
            let value = graft.value(value);
            graft.link(id, var, value, flags)
        })
    }

    /// Copies the bindings from one Let to a later one of its chain, in one copy: a node that
    /// several of them share is shared in the copy. Returns the copies of the two Lets, with
    /// everything between them; the body of the last is its variable until [`Body::set_let_body`]
    /// sets another one. A Let whose variable has a replacement binds that, which must be a
    /// variable.
    ///
    /// # Panics
    /// In the cases of [`Transplant::copy`]; and if the chain ends before `last`.
    pub fn bindings(&mut self, editor: &mut Editor<'_>, source: Option<&Body>, ends: [ExprId; 2]) -> [ExprId; 2] {
        self.graft(editor.cx, source, editor.body, |graft| {
            let [mut at, last] = ends;
            let mut copies: Option<[ExprId; 2]> = None;
            loop {
                let Expr::Let { var, value, body, flags } = graft.from().expr(at) else {
                    panic!("{at:?} is not a Let")
                };
                let given = graft.copied.get(var.expr()).map(VarId::from_expr);
                let var = given.unwrap_or_else(|| graft.var_of(var, flags));
                let value = graft.value(value);
                let copy = graft.link(at, var, value, flags);
                let first = copies.map_or(copy, |[first, before]| {
                    graft.target.set_let_body(before, copy);
                    first
                });
                if at == last {
                    return [first, copy];
                }
                (at, copies) = (body, Some([first, copy]));
            }
        })
    }

    /// Makes a copy of a variable of the source, which replaces it from here on.
    ///
    /// Cost: one node.
    pub fn var(&mut self, editor: &mut Editor<'_>, source: Option<&Body>, var: VarId) -> VarId {
        self.graft(editor.cx, source, editor.body, |graft| VarId::from_expr(graft.var(var.expr())))
    }

    /// Copies a whole function: parameters, block, result type, attributes, metadata and
    /// visibility. The copy is not added to a module, and has no name. Uses of the function itself
    /// still refer to the original.
    ///
    /// # Panics
    /// In the cases of [`Transplant::copy`].
    pub fn function(&mut self, cx: &mut Context, source: &Function) -> Function {
        let (mut function, copied) = rebuild_function(source, &mut self.mapping(cx).1);
        self.copied = copied;
        function.global = None;
        function
    }

    fn mapping<'a>(&'a mut self, cx: &'a mut Context) -> (&'a mut Copied, Mapping<'a>) {
        let Transplant { copied, symbols, renames_own, foreign } = self;
        (
            copied,
            Mapping { cx, symbols, renames_own: *renames_own, foreign: foreign.as_ref().map(|tables| &tables.ids) },
        )
    }

    fn graft<R>(
        &mut self,
        cx: &mut Context,
        source: Option<&Body>,
        target: &mut Body,
        run: impl FnOnce(&mut Graft<'_, Mapping<'_>>) -> R,
    ) -> R {
        let (copied, mut tables) = self.mapping(cx);
        copied.begin_copy();
        run(&mut Graft { copied, tables: &mut tables, source, target, results: SmallVec::new() })
    }
}

/// Prints the replacements of symbols.
impl std::fmt::Debug for Transplant<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transplant").field("symbols", &self.symbols).finish_non_exhaustive()
    }
}

impl Default for Transplant<'_> {
    fn default() -> Self {
        Transplant::new()
    }
}

/// Maps the ids of a [`Transplant`]'s source to those of its target.
struct Mapping<'a> {
    cx: &'a mut Context,
    symbols: &'a mut SymbolSubstitution,
    renames_own: bool,
    foreign: Option<&'a EntryIds<TakenOver>>,
}

impl Translate for Mapping<'_> {
    fn name(&mut self, id: NameId) -> NameId {
        self.foreign.map_or(id, |ids| ids.names.translated(id))
    }
    fn ty(&mut self, id: TypeId) -> TypeId {
        match self.foreign {
            Some(ids) => ids.types.translated(id),
            None => self.symbols.ty(self.cx, id),
        }
    }
    fn attrs(&mut self, id: AttrsId) -> AttrsId {
        match self.foreign {
            Some(ids) => ids.lists.translated(id),
            None => self.symbols.attrs(self.cx, id),
        }
    }
    fn literal(&mut self, id: LiteralId) -> LiteralId {
        self.foreign.map_or(id, |ids| ids.literals.translated(id))
    }
    fn global(&mut self, id: GlobalId) -> GlobalId {
        self.foreign.map_or(id, |ids| ids.globals.translated(id))
    }
    fn op(&mut self, id: OpId) -> OpId {
        self.foreign.map_or(id, |ids| ids.ops.translated(id))
    }
    fn symbol(&mut self, id: SymbolId) -> SymbolId {
        if let Some(ids) = self.foreign {
            return ids.symbols.translated(id);
        }
        match self.symbols.get(id).map(|dim| self.cx.types.dims.get(dim)) {
            Some(&Dim::Symbol(symbol)) => symbol,
            _ => id,
        }
    }
    fn span(&mut self, span: Span) -> Span {
        span.filter(|_| self.foreign.is_none())
    }
    fn enter_lambda(&mut self, symbols: &[SymbolId]) {
        if self.renames_own {
            symbols.iter().for_each(|&symbol| _ = self.symbols.rename(self.cx, symbol));
        }
    }
}

/// Returns a body with the reachable nodes of `source`, in program order, and the copy of each
/// node. `nodes` is the approximate number of these nodes, for which room is reserved. Linear.
pub(crate) fn rebuild(source: &Body, nodes: usize, tables: &mut impl Translate) -> (Body, Copied) {
    let mut target = Body::hollow(nodes, source.operand_count().min(nodes.saturating_mul(4)));
    let mut copied = Copied::with_room(source.len());
    let results = SmallVec::new();
    let mut graft = Graft { copied: &mut copied, tables, source: Some(source), target: &mut target, results };
    let params = source.params().iter().map(|&param| VarId::from_expr(graft.var(param.expr()))).collect();
    let root = graft.value(source.root());
    target.set_params(params);
    target.set_root(root);
    target.shrink();
    (target, copied)
}

/// Returns a function with a body from [`rebuild`], and the copies of the nodes of the old body.
pub(crate) fn rebuild_function(source: &Function, tables: &mut impl Translate) -> (Function, Copied) {
    let nodes = live_nodes(&source.body, &Bump::new());
    let (body, copied) = rebuild(&source.body, nodes, tables);
    let mut function = source.part(body);
    translate_head(&mut function, tables);
    (function, copied)
}

/// A walk that copies nodes.
struct Graft<'a, T> {
    copied: &'a mut Copied,
    tables: &'a mut T,
    /// The source, if it is not the target.
    source: Option<&'a Body>,
    target: &'a mut Body,
    /// The copies of operands, values and tails that were made and are not used yet.
    results: SmallVec<[ExprId; 8]>,
}

/// A step that waits for the copy of a part.
enum GraftFrame {
    /// The next Let or tail of a chain, with the first and last Let of the copy.
    Block { at: ExprId, ends: Option<(ExprId, ExprId)> },
    /// A Let whose value is being copied.
    Value { at: ExprId, ends: Option<(ExprId, ExprId)> },
    /// A chain whose tail is being copied.
    Tail { ends: Option<(ExprId, ExprId)> },
    /// A node, with the number of its next part.
    Node { id: ExprId, part: usize },
}

impl<T: Translate> Graft<'_, T> {
    #[inline(always)]
    fn from(&self) -> &Body {
        self.source.unwrap_or(self.target)
    }

    /// Copies an expression. Unfinished blocks and nodes wait on a stack; finished copies are on
    /// top of the results.
    fn value(&mut self, id: ExprId) -> ExprId {
        let mut stack: SmallVec<[GraftFrame; 4]> = SmallVec::new();
        if let Some(frame) = self.enter(id) {
            stack.push(frame);
        }
        while let Some(frame) = stack.pop() {
            match frame {
                GraftFrame::Block { at, ends } => self.chain(&mut stack, at, ends),
                GraftFrame::Value { at, ends } => {
                    let (rest, ends) = self.bound(at, ends);
                    self.chain(&mut stack, rest, Some(ends));
                }
                GraftFrame::Tail { ends } => self.hang_tail(ends),
                GraftFrame::Node { id, part } => match self.part(id, part) {
                    Some(next) => {
                        stack.push(GraftFrame::Node { id, part: part + 1 });
                        stack.extend(self.enter(next));
                    }
                    None => self.node(id),
                },
            }
        }
        self.pop()
    }

    /// Copies a chain from a Let or its tail on, up to the first value that must wait.
    fn chain(&mut self, stack: &mut SmallVec<[GraftFrame; 4]>, mut at: ExprId, mut ends: Option<(ExprId, ExprId)>) {
        while let Expr::Let { value, .. } = self.from().expr(at) {
            self.enter_let(at, value);
            if let Some(value) = self.enter(value) {
                stack.push(GraftFrame::Value { at, ends });
                stack.push(value);
                return;
            }
            let (rest, bound) = self.bound(at, ends);
            (at, ends) = (rest, Some(bound));
        }
        match self.enter(at) {
            Some(tail) => {
                stack.push(GraftFrame::Tail { ends });
                stack.push(tail);
            }
            None => self.hang_tail(ends),
        }
    }

    /// Appends the copy of a Let whose value's copy is on top of the results, and links it to the
    /// last Let of its chain. Returns the rest of the original, and the ends of the copy.
    #[inline]
    fn bound(&mut self, at: ExprId, ends: Option<(ExprId, ExprId)>) -> (ExprId, (ExprId, ExprId)) {
        let Expr::Let { var, value: original, body: rest, flags } = self.from().expr(at) else {
            unreachable!("what has a value is a Let")
        };
        let var = match self.copied.made(var.expr()) {
            Some(made) if matches!(self.from().expr(original), Expr::Lambda { .. }) => VarId::from_expr(made),
            _ => self.var_of(var, flags),
        };
        let value = self.pop();
        let copy = self.link(at, var, value, flags);
        let first = ends.map_or(copy, |(first, last)| {
            self.target.set_let_body(last, copy);
            first
        });
        (rest, (first, copy))
    }

    /// Links the copy of a tail to the last Let of its chain.
    fn hang_tail(&mut self, ends: Option<(ExprId, ExprId)>) {
        if let Some((first, last)) = ends {
            let tail = self.pop();
            self.target.set_let_body(last, tail);
            self.results.push(first);
        }
    }

    /// Copies an expression whose parts are all atoms, or that was copied before. Returns a frame
    /// for any other expression.
    #[inline]
    fn enter(&mut self, id: ExprId) -> Option<GraftFrame> {
        match self.from().expr(id) {
            Expr::Let { .. } => return Some(GraftFrame::Block { at: id, ends: None }),
            expr if expr.is_atom() => {
                let atom = self.atom(id);
                self.results.push(atom);
            }
            expr => match self.copied.made(id) {
                Some(copied) => self.results.push(copied),
                None if self.from().is_flat(id) => self.flat(id),
                None => {
                    if let Expr::Lambda { lambda, .. } = expr {
                        self.enter_lambda(lambda);
                    }
                    return Some(GraftFrame::Node { id, part: 0 });
                }
            },
        }
        None
    }

    /// Copies a call, tuple or projection of atoms.
    #[inline]
    fn flat(&mut self, id: ExprId) {
        let expr = self.from().expr(id);
        if let Some(list) = expr.operand_list() {
            for i in 0..list.len() {
                let atom = self.atom(self.from().operand(list, i));
                self.results.push(atom);
            }
        } else if let Expr::Proj { tuple, .. } = expr {
            let atom = self.atom(tuple);
            self.results.push(atom);
        }
        self.node(id);
    }

    /// Returns a part of a node by its number among the [parts](Body::parts), in constant time.
    #[inline]
    fn part(&self, id: ExprId, i: usize) -> Option<ExprId> {
        let from = self.from();
        match from.expr(id) {
            Expr::CallOp { operands, .. } | Expr::Call { operands, .. } | Expr::Tuple(operands) => {
                (i < operands.len()).then(|| from.operand(operands, i))
            }
            Expr::If { cond, then_block, else_block } => [cond, then_block, else_block].get(i).copied(),
            Expr::Proj { tuple: only, .. } | Expr::Lambda { body: only, .. } => (i == 0).then_some(only),
            _ => None,
        }
    }

    /// Makes the copy of a node whose parts' copies are on top of the results, and replaces these
    /// by it.
    #[inline]
    fn node(&mut self, id: ExprId) {
        let expr = match translate_expr(self.from().expr(id), self.tables) {
            Expr::CallOp { op, operands, attrs } => Expr::CallOp { op, operands: self.operands(operands.len()), attrs },
            Expr::Call { operands, attrs } => Expr::Call { operands: self.operands(operands.len()), attrs },
            Expr::Tuple(operands) => Expr::Tuple(self.operands(operands.len())),
            Expr::Proj { index, .. } => Expr::Proj { tuple: self.pop(), index },
            Expr::If { .. } => {
                let (else_block, then_block) = (self.pop(), self.pop());
                Expr::If { cond: self.pop(), then_block, else_block }
            }
            Expr::Lambda { lambda, .. } => Expr::Lambda { lambda: self.lambda(lambda), body: self.pop() },
            other => other,
        };
        let copy = self.push_like(expr, id);
        self.results.push(copy);
    }

    fn operands(&mut self, count: usize) -> OperandList {
        let start = self.results.len() - count;
        let operands = self.target.push_operands(&self.results[start..]);
        self.results.truncate(start);
        operands
    }

    /// Appends the copy of a node, with its type, source position and metadata.
    #[inline]
    fn push_like(&mut self, expr: Expr, id: ExprId) -> ExprId {
        let from = self.from();
        let (ty, span, meta) = (from.ty(id), from.span(id), from.meta(id));
        let (ty, span) = (self.tables.ty(ty), self.tables.span(span));
        let copy = self.target.push(expr, ty, span);
        if let Some(meta) = meta {
            let meta = self.tables.attrs(meta);
            self.target.set_meta(copy, Some(meta));
        }
        self.copied.set(id, Some(copy));
        copy
    }

    #[inline]
    fn atom(&mut self, id: ExprId) -> ExprId {
        if let Some(copied) = self.copied.get(id) {
            return copied;
        }
        if self.source.is_none() {
            return id;
        }
        let (expr, ty) = (self.from().expr(id), self.from().ty(id));
        if let Expr::Var { .. } = expr {
            // Nothing binds this variable, which the verifier reports.
            return self.var(id);
        }
        let ty = self.tables.ty(ty);
        let leaf = match translate_expr(expr, self.tables) {
            Expr::Literal(literal) => self.target.literal(literal, ty),
            Expr::Global(global) => self.target.global(global, ty),
            Expr::Op(op) => self.target.op(op, ty),
            _ => self.target.none(ty),
        };
        self.copied.set_leaf(id, leaf);
        leaf
    }

    fn var(&mut self, id: ExprId) -> ExprId {
        let var = translate_expr(self.from().expr(id), self.tables);
        self.push_like(var, id)
    }

    /// Makes the variable of a Let whose value is a `fn`, since the `fn` may use it before it is
    /// bound.
    #[inline]
    fn enter_let(&mut self, id: ExprId, value: ExprId) {
        if let (Expr::Lambda { .. }, Expr::Let { var, flags, .. }) = (self.from().expr(value), self.from().expr(id)) {
            self.var_of(var, flags);
        }
    }

    /// Makes the variable of a Let whose copy has these flags.
    #[inline]
    fn var_of(&mut self, var: VarId, flags: LetFlags) -> VarId {
        let mut copy = translate_expr(self.from().expr(var.expr()), self.tables);
        if let (Expr::Var { flags, .. }, false) = (&mut copy, flags.is_dataflow()) {
            *flags = VarFlags::PLAIN;
        }
        VarId::from_expr(self.push_like(copy, var.expr()))
    }

    /// Appends the copy of a Let.
    #[inline]
    fn link(&mut self, id: ExprId, var: VarId, value: ExprId, flags: LetFlags) -> ExprId {
        self.push_like(Expr::Let { var, value, body: var.expr(), flags }, id)
    }

    /// Makes the parameters of a `fn`, and renames its symbols if this copy renames.
    fn enter_lambda(&mut self, lambda: LambdaId) {
        let from = self.source.unwrap_or(self.target);
        self.tables.enter_lambda(from.lambda_symbols(lambda));
        for i in 0..from.lambda(lambda).params.len() {
            let from = self.from();
            let param = from.operand(from.lambda(lambda).params, i);
            self.var(param);
        }
    }

    /// Makes the parameters, result annotation and attributes of a `fn`.
    fn lambda(&mut self, of: LambdaId) -> LambdaId {
        let from = self.source.unwrap_or(self.target);
        let LambdaData { ret, attrs, .. } = translate_lambda(from.lambda(of), self.tables);
        let params =
            from.lambda_params(of).map(|param| VarId::from_expr(self.copied.get(param.expr()).unwrap_or(param.expr())));
        let params: SmallVec<[VarId; 8]> = params.collect();
        let symbols = from.lambda_symbols(of).iter().map(|&symbol| self.tables.symbol(symbol)).collect();
        let copy = self.target.push_lambda(&params, ret, attrs);
        self.target.set_lambda_symbols(copy, symbols);
        copy
    }

    fn pop(&mut self) -> ExprId {
        self.results.pop().expect("every operand, value and tail leaves its result on the stack")
    }
}
