//! The state of a rewriting walk: results, open blocks, what variables and nodes have become, and whose types changed.

use std::ops::ControlFlow;

use anfora_ir::{
    BlockKind, Body, Context, Cursor, Editor, Expr, ExprId, IdSet, LetFlags, LinkWatch, OperandList, Step, VarFlags,
    VarId,
};
use smallvec::SmallVec;

use crate::chain::{set_let_flags, set_var_flags};
use crate::copy::copy_fresh;
use crate::error::{RewriteError, check_type, name_for_error};
use crate::link::{Binding, Link};
use crate::memo::Memo;
use crate::mutator::{BindingRewrite, Edits};
use crate::region_outputs::{ChainSoFar, RegionOutputs};
use crate::spliced::Spliced;
use crate::visitor::{Visit, Visitor, walk_from};

/// The state of a rewriting walk.
pub(crate) struct Engine {
    pub(crate) edits: Edits,
    /// What finished operands, values, tails and blocks have become.
    results: Vec<ExprId>,
    blocks: Vec<OpenBlock>,
    /// What uses of variables become.
    vars: Memo<ExprId>,
    has_vars: bool,
    /// What nodes have become, where that is not themselves (with [`Edits::Scoped`], in all cases).
    nodes: Memo<ExprId>,
    /// Expressions whose types are not what they were.
    retyped: IdSet<ExprId>,
    has_retyped: bool,
    /// Nodes with several uses that hold blocks, with [`Edits::Scoped`].
    shared: IdSet<ExprId>,
    /// Copies of such nodes that are being walked, with their originals, innermost last.
    copies: Vec<(ExprId, ExprId)>,
    /// What variables are assumed to be in the open blocks; never in a circle, since what is stored is resolved.
    known: Memo<ExprId>,
    /// Variables whose bindings were dropped.
    dropped: Option<IdSet<ExprId>>,
    /// Lets that were spliced.
    spliced: Option<Box<Spliced>>,
    /// Whether the walk is of the whole body, and so comes to every dataflow region.
    is_whole: bool,
    /// What is known of regions, once one was met.
    regions: Option<Box<RegionOutputs>>,
    /// What the author's callbacks may not overwrite.
    pub(crate) watch: LinkWatch,
}

/// A block that is being rewritten: the chain of what stays, as far as it goes.
struct OpenBlock {
    first: Option<ExprId>,
    /// The last Let, and what its link to the rest holds.
    last: Option<(ExprId, ExprId)>,
    region: Region,
    /// The variable of the Let of a region that the walk came to last.
    own: Option<VarId>,
    /// Whether results are forgotten at the end.
    scoped: bool,
}

#[derive(Copy, Clone, PartialEq)]
enum Region {
    Outside,
    /// In a region of which no Let has stayed yet.
    AtStart,
    Inside,
}

impl Engine {
    pub(crate) fn new(edits: Edits) -> Engine {
        Engine {
            edits,
            results: Vec::new(),
            blocks: Vec::new(),
            vars: Memo::new(),
            has_vars: false,
            nodes: Memo::new(),
            retyped: IdSet::with_capacity(0),
            has_retyped: false,
            shared: IdSet::with_capacity(0),
            copies: Vec::new(),
            known: Memo::new(),
            dropped: None,
            spliced: None,
            is_whole: false,
            regions: None,
            watch: LinkWatch::default(),
        }
    }

    /// Gets ready to walk what is under `start`.
    pub(crate) fn prepare(&mut self, body: &Body, start: ExprId) {
        self.is_whole = start == body.root();
        if self.edits == Edits::Scoped {
            self.nodes = Memo::with_room(body);
            self.find_shared(body, start);
        }
    }

    // ---- Results ----

    #[inline]
    pub(crate) fn push(&mut self, result: ExprId) {
        self.results.push(result);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> ExprId {
        self.results.pop().expect("every operand, value and tail leaves its result on the stack")
    }

    /// What a variable or node of the program as it was has become. What it returns is not resolved again: after a substitution, it may mention
    /// variables that are substituted.
    #[inline]
    pub(crate) fn resolve(&self, mut id: ExprId) -> ExprId {
        if self.has_vars {
            id = self.vars.get(id).unwrap_or(id);
            while let Some(known) = self.known.get(id) {
                id = known;
            }
        }
        self.nodes.get(id).unwrap_or(id)
    }

    /// Leaves the result of a node.
    #[inline]
    pub(crate) fn finish(&mut self, pre: ExprId, result: ExprId) {
        if result != pre || self.edits == Edits::Scoped {
            self.nodes.insert(pre, result);
            if let Some(&(copy, original)) = self.copies.last()
                && copy == pre
            {
                self.copies.pop();
                self.nodes.insert(original, result);
            }
        }
        self.results.push(result);
    }

    /// The result of a node that was walked before, unless it was forgotten.
    pub(crate) fn seen(&mut self, editor: &mut Editor<'_>, id: ExprId) -> Option<ExprId> {
        match self.nodes.get(id) {
            // What binds has one parent: the second use gets a copy.
            Some(result) if result != id && editor.body.expr(result).binds() => Some(copy_fresh(editor, result)),
            Some(result) => Some(result),
            None if self.edits == Edits::Scoped => None,
            None => Some(id),
        }
    }

    // ---- Types ----

    #[inline]
    fn is_retyped(&self, body: &Body, id: ExprId) -> bool {
        self.has_retyped && self.retyped.contains(body.tail(id))
    }

    fn note_retyped(&mut self, id: ExprId) {
        self.has_retyped = true;
        self.retyped.insert(id);
    }

    /// Whether a node must be inferred again when `old` became `new` in it.
    fn needs_inference(&self, body: &Body, old: ExprId, new: ExprId) -> bool {
        if self.is_retyped(body, new) {
            return true;
        }
        old != new
            && (matches!(body.expr(new), Expr::Literal(_) | Expr::None)
                || matches!(body.expr(old), Expr::Literal(_) | Expr::None)
                || body.type_of(old) != body.type_of(new))
    }

    fn infer_again(&mut self, editor: &mut Editor<'_>, id: ExprId) -> Result<(), RewriteError> {
        let old = editor.body.ty(id);
        if editor.refresh_type(id)? {
            check_type(editor.cx, old, editor.body.ty(id))?;
            self.note_retyped(id);
        }
        Ok(())
    }

    /// The result of a node (`post`, as it is with its parts rewritten) that the author replaced.
    pub(crate) fn replaced(
        &mut self,
        editor: &mut Editor<'_>,
        post: ExprId,
        new: ExprId,
    ) -> Result<ExprId, RewriteError> {
        let new = self.resolve(new);
        if new != post {
            let (wanted, found) = (editor.body.type_of(post), editor.body.type_of(new));
            check_type(editor.cx, wanted, found)?;
            self.let_out(editor.body, new, None);
            if wanted != found || self.is_retyped(editor.body, post) {
                self.note_retyped(editor.body.tail(new));
            }
        }
        Ok(new)
    }

    // ---- Nodes ----

    /// Rewrites the operands of a node whose operands are all atoms, and returns what it is then.
    #[inline]
    pub(crate) fn rewrite_atoms(&mut self, editor: &mut Editor<'_>, id: ExprId) -> Result<ExprId, RewriteError> {
        if !self.has_vars && !self.has_retyped {
            return Ok(id);
        }
        let (mut changed, mut infer) = (false, false);
        let body = &*editor.body;
        let mut look = |operand: ExprId| {
            let new = self.resolve(operand);
            changed |= new != operand;
            infer |= self.needs_inference(body, operand, new);
            new
        };
        match body.expr(id) {
            Expr::Proj { tuple, .. } => {
                let new = look(tuple);
                self.rewrite_node(editor, id, &[new], changed, infer)
            }
            expr => {
                let Some(list) = expr.operand_list() else { return Ok(id) };
                for i in 0..list.len() {
                    look(body.operand(list, i));
                }
                if !changed && !infer {
                    return Ok(id);
                }
                let operands: SmallVec<[ExprId; 8]> = body.operands(list).iter().map(|&o| self.resolve(o)).collect();
                self.rewrite_node(editor, id, &operands, changed, infer)
            }
        }
    }

    /// Rewrites a node that was entered, with the results of its parts, and returns what it is then.
    pub(crate) fn rewrite_parts(&mut self, editor: &mut Editor<'_>, id: ExprId) -> Result<ExprId, RewriteError> {
        let expr = editor.body.expr(id);
        let mut old: SmallVec<[ExprId; 8]> = SmallVec::new();
        match expr {
            Expr::Proj { tuple, .. } => old.push(tuple),
            Expr::If { cond, then_block, else_block } => old.extend([cond, then_block, else_block]),
            Expr::Lambda { body: block, .. } => old.push(block),
            _ => old.extend_from_slice(editor.body.operands_of(id)),
        }
        let start = self.results.len() - old.len();
        let new: SmallVec<[ExprId; 8]> = SmallVec::from_slice(&self.results[start..]);
        self.results.truncate(start);
        let changed = old != new;
        let infer = old.iter().zip(&new).enumerate().any(|(i, (&o, &n))| match expr {
            // The old block was relinked, so its type is that of the new one; what matters is whether that is another.
            Expr::If { .. } | Expr::Lambda { .. } if i > 0 || matches!(expr, Expr::Lambda { .. }) => {
                self.is_retyped(editor.body, n) || (o != n && editor.body.type_of(o) != editor.body.type_of(n))
            }
            _ => self.needs_inference(editor.body, o, n),
        });
        self.rewrite_node(editor, id, &new, changed, infer)
    }

    fn rewrite_node(
        &mut self,
        editor: &mut Editor<'_>,
        id: ExprId,
        parts: &[ExprId],
        changed: bool,
        infer: bool,
    ) -> Result<ExprId, RewriteError> {
        let body = &mut *editor.body;
        let mut post = id;
        if changed {
            let expr = body.expr(id);
            let in_place = self.edits == Edits::InPlace;
            let new = match expr {
                Expr::If { .. } => Expr::If { cond: parts[0], then_block: parts[1], else_block: parts[2] },
                Expr::Lambda { lambda, .. } => Expr::Lambda { lambda, body: parts[0] },
                Expr::Proj { index, .. } => Expr::Proj { tuple: parts[0], index },
                Expr::CallOp { op, operands, attrs } => {
                    Expr::CallOp { op, operands: overwrite(body, operands, parts, in_place), attrs }
                }
                Expr::Call { operands, attrs } => {
                    Expr::Call { operands: overwrite(body, operands, parts, in_place), attrs }
                }
                Expr::Tuple(operands) => Expr::Tuple(overwrite(body, operands, parts, in_place)),
                other => other,
            };
            if in_place || expr.binds() {
                body.set_expr(id, new);
            } else {
                post = body.push(new, body.ty(id), body.span(id));
                if let Some(meta) = body.meta(id) {
                    body.set_meta(post, Some(meta));
                }
            }
        }
        if infer {
            self.infer_again(editor, post)?;
        }
        Ok(post)
    }

    // ---- Shared nodes with blocks ----

    /// Finds the nodes under `start` that several others refer to and that hold blocks.
    fn find_shared(&mut self, body: &Body, start: ExprId) {
        let mut cursor = Cursor::at(body, start);
        let mut open: Vec<bool> = Vec::new();
        let mut holds_blocks = IdSet::with_capacity(0);
        while let Some(step) = cursor.next(body) {
            match step {
                Step::Enter(id) => open.push(body.expr(id).binds()),
                Step::EnterBlock(..) => {
                    if let Some(holds) = open.last_mut() {
                        *holds = true;
                    }
                }
                Step::Exit(id) => {
                    let holds = open.pop();
                    if holds == Some(true) {
                        holds_blocks.insert(id);
                        if let Some(holds) = open.last_mut() {
                            *holds = true;
                        }
                    }
                }
                Step::Seen(id) if holds_blocks.contains(id) => {
                    self.shared.insert(id);
                    if let Some(holds) = open.last_mut() {
                        *holds = true;
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether a node has to be copied before it is rewritten for this scope, since rewriting its blocks would change it for others.
    #[inline]
    pub(crate) fn must_copy(&self, id: ExprId) -> bool {
        self.edits == Edits::Scoped && self.shared.contains(id)
    }

    /// A copy of such a node, to be walked in its place.
    pub(crate) fn copy_for_scope(&mut self, editor: &mut Editor<'_>, id: ExprId) -> ExprId {
        let copy = copy_fresh(editor, id);
        self.find_shared(editor.body, copy);
        self.copies.push((copy, id));
        copy
    }

    // ---- Blocks and regions ----

    pub(crate) fn begin_block(&mut self, kind: BlockKind) {
        let scoped = self.edits == Edits::Scoped && kind != BlockKind::Root;
        if scoped {
            self.nodes.begin_scope();
            self.known.begin_scope();
        }
        self.blocks.push(OpenBlock { first: None, last: None, region: Region::Outside, own: None, scoped });
    }

    /// Links the tail, and leaves the block's beginning as the result in its place.
    pub(crate) fn end_block(&mut self, body: &mut Body) {
        let Some(block) = self.blocks.pop() else { return };
        if block.scoped {
            self.nodes.end_scope();
            self.known.end_scope();
        }
        if let (Some(first), Some((last, rest))) = (block.first, block.last) {
            let tail = self.pop();
            if rest != tail {
                if body.type_of(rest) != body.type_of(tail) {
                    self.note_retyped(body.tail(tail));
                }
                body.set_let_body(last, tail);
            }
            self.results.push(first);
        }
    }

    #[inline]
    fn block(&mut self) -> &mut OpenBlock {
        self.blocks.last_mut().expect("a walk begins by entering a block")
    }

    #[inline]
    pub(crate) fn in_region(&self) -> bool {
        self.blocks.last().is_some_and(|b| b.region != Region::Outside)
    }

    /// How many blocks are open.
    pub(crate) fn depth(&self) -> usize {
        self.blocks.len()
    }

    /// Comes to a Let of a region that binds `var`.
    #[inline]
    pub(crate) fn at_let_of_region(&mut self, var: VarId) {
        self.block().own = Some(var);
    }

    /// Begins the region of a Let with these flags; a walk may begin in the middle of a region.
    pub(crate) fn begin_region(&mut self, flags: LetFlags) {
        if self.is_whole {
            let (block, after) = (self.blocks.len() - 1, self.block().last.map(|(last, _)| last));
            self.regions.get_or_insert_default().begin(block, after);
        }
        self.block().region = if flags.starts_region() { Region::AtStart } else { Region::Inside };
        if self.edits == Edits::Scoped {
            self.nodes.begin_scope();
        }
    }

    pub(crate) fn end_region(&mut self) {
        self.block().region = Region::Outside;
        if let Some(regions) = &mut self.regions {
            regions.end();
        }
        if self.edits == Edits::Scoped {
            self.nodes.end_scope();
        }
    }

    /// Puts a Let at the end of what stays of the innermost block. It has `flags`, and `rest` as its link to the rest.
    #[inline]
    pub(crate) fn emit(&mut self, body: &mut Body, id: ExprId, flags: LetFlags, rest: ExprId) {
        let block = self.block();
        let wanted = match block.region {
            Region::Outside => LetFlags::PLAIN,
            Region::AtStart => {
                block.region = Region::Inside;
                LetFlags::REGION_START
            }
            Region::Inside => LetFlags::DATAFLOW,
        };
        let last = block.last.replace((id, rest));
        match last {
            Some((_, rest)) if rest == id => {}
            Some((last, _)) => body.set_let_body(last, id),
            None => block.first = Some(id),
        }
        if flags != wanted {
            set_let_flags(body, id, wanted);
        }
    }

    /// Moves the Lets of a block to the end of what stays of the innermost block; returns the block's tail.
    pub(crate) fn splice(&mut self, cx: &Context, body: &mut Body, block: ExprId) -> Result<ExprId, RewriteError> {
        self.let_out(body, block, None);
        let inside = self.in_region();
        // From a Let that stays in this block already, its last one is come to.
        let last_before = self.block().last.map(|(last, _)| last);
        let mut at = block;
        while let Some(b) = Binding::of(body, at) {
            if Some(b.id) == last_before {
                return Err(RewriteError::SplicedTwice { name: name_for_error(cx, body, b.var) });
            }
            self.spliced.get_or_insert_default().insert(b.id);
            if inside {
                self.emit(body, b.id, b.flags, b.rest);
                set_var_flags(body, b.var, VarFlags::DATAFLOW);
            } else {
                // The block's own regions stay.
                let open = self.block();
                match open.last.replace((b.id, b.rest)) {
                    Some((_, rest)) if rest == b.id => {}
                    Some((last, _)) => body.set_let_body(last, b.id),
                    None => open.first = Some(b.id),
                }
            }
            at = b.rest;
        }
        Ok(at)
    }

    /// Checks that no block which hangs in what is left under `root` was spliced out of it. A walk, if one was.
    pub(crate) fn check_spliced(&self, editor: &Editor<'_>, root: ExprId) -> Result<(), RewriteError> {
        match &self.spliced {
            Some(spliced) => spliced.check(editor, root),
            None => Ok(()),
        }
    }

    /// Makes variables of other dataflow regions, which an expression that comes to stand here uses, outputs of theirs.
    /// `own` is the variable that the expression is going to be the value of, if it is one.
    #[inline]
    pub(crate) fn let_out(&mut self, body: &mut Body, id: ExprId, own: Option<VarId>) {
        if let Some(mut regions) = self.regions.take() {
            regions.let_out(body, id, own, |block| {
                let block = &self.blocks[block];
                ChainSoFar { first: block.first, last: block.last.map(|(last, _)| last), own: block.own }
            });
            self.regions = Some(regions);
        }
    }

    // ---- Bindings ----

    /// Does with a binding what the author decided. `new` is `old` with its rewritten value.
    #[inline]
    pub(crate) fn finish_binding(
        &mut self,
        editor: &mut Editor<'_>,
        old: Binding,
        new: Binding,
        verdict: BindingRewrite,
    ) -> Result<(), RewriteError> {
        self.check_in_place(editor, old)?;
        let value = match verdict {
            BindingRewrite::Keep if new.value == old.value => old.value,
            BindingRewrite::Keep if editor.body.expr(new.value).is_atom() => {
                return self.replace_var(editor, old.var, new.value);
            }
            BindingRewrite::Keep => new.value,
            BindingRewrite::Value(value) => {
                self.let_out(editor.body, value, Some(old.var));
                value
            }
            BindingRewrite::Var(atom) => {
                let atom = self.resolve(atom);
                self.let_out(editor.body, atom, None);
                return self.replace_var(editor, old.var, atom);
            }
            BindingRewrite::Splice(block) => {
                let tail = self.splice(editor.cx, editor.body, block)?;
                if editor.body.expr(tail).is_atom() {
                    return self.replace_var(editor, old.var, tail);
                }
                tail
            }
            BindingRewrite::Drop => {
                self.dropped.get_or_insert_with(|| IdSet::with_capacity(editor.body.len())).insert(old.var.expr());
                return Ok(());
            }
        };
        if value != old.value || self.is_retyped(editor.body, value) {
            let (wanted, found) = (editor.body.ty(old.var.expr()), editor.body.type_of(value));
            if wanted != found {
                check_type(editor.cx, wanted, found)?;
                editor.body.set_type(old.var.expr(), found);
                self.note_retyped(old.var.expr());
            }
            Link::Value(old.id).set(editor.body, value);
        }
        self.check_in_place(editor, old)?;
        self.emit(editor.body, old.id, old.flags, old.rest);
        Ok(())
    }

    /// Checks that a Let which the walk comes to is not one that was spliced elsewhere before.
    #[inline]
    fn check_in_place(&self, editor: &Editor<'_>, at: Binding) -> Result<(), RewriteError> {
        match &self.spliced {
            Some(spliced) if spliced.contains(at.id) => {
                Err(RewriteError::SplicedTwice { name: name_for_error(editor.cx, editor.body, at.var) })
            }
            _ => Ok(()),
        }
    }

    /// From here on, uses of a variable become an atom, which is visible where it was.
    pub(crate) fn replace_var(
        &mut self,
        editor: &mut Editor<'_>,
        var: VarId,
        atom: ExprId,
    ) -> Result<(), RewriteError> {
        check_atom(editor, var, atom)?;
        if let Some(by) = editor.body.as_var(atom)
            && editor.body.is_dataflow_var(by)
            && !editor.body.is_dataflow_var(var)
        {
            // An output of the region: what replaces it becomes one.
            set_var_flags(editor.body, by, VarFlags::PLAIN);
        }
        self.bind_var(editor.body, var, atom);
        Ok(())
    }

    /// Checks that what is left under `root` uses no variable whose binding was dropped. A walk, if one was.
    pub(crate) fn check_dropped(&self, editor: &Editor<'_>, root: ExprId) -> Result<(), RewriteError> {
        struct Uses<'a>(&'a IdSet<ExprId>);
        impl Visitor for Uses<'_> {
            type Break = VarId;
            #[inline(always)]
            fn visit_use(&mut self, _: &Body, var: VarId) -> Visit<VarId> {
                if self.0.contains(var.expr()) { Visit::Stop(var) } else { Visit::Continue }
            }
        }
        let Some(dropped) = &self.dropped else { return Ok(()) };
        match walk_from(editor.body, root, &mut Uses(dropped)) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(var) => {
                Err(RewriteError::DroppedUsed { name: name_for_error(editor.cx, editor.body, var) })
            }
        }
    }

    fn bind_var(&mut self, body: &Body, var: VarId, by: ExprId) {
        if var.expr() != by {
            if !self.has_vars {
                self.has_vars = true;
                self.vars = Memo::with_room(body);
            }
            self.vars.insert(var.expr(), by);
        }
    }

    /// From here to the end of the innermost open block, uses of `var` become `atom`.
    pub(crate) fn assume(&mut self, editor: &mut Editor<'_>, var: VarId, atom: ExprId) -> Result<(), RewriteError> {
        let (var, atom) = (self.resolve(var.expr()), self.resolve(atom));
        let Some(var) = editor.body.as_var(var) else { return Ok(()) };
        check_atom(editor, var, atom)?;
        self.let_out(editor.body, atom, None);
        if var.expr() != atom {
            self.has_vars = true;
            self.known.insert(var.expr(), atom);
        }
        Ok(())
    }
}

/// Checks that uses of a variable may become this.
pub(crate) fn check_atom(editor: &Editor<'_>, var: VarId, atom: ExprId) -> Result<(), RewriteError> {
    if !editor.body.expr(atom).is_atom() {
        return Err(RewriteError::NotAnAtom);
    }
    check_type(editor.cx, editor.body.ty(var.expr()), editor.body.ty(atom))
}

/// The operand list with `parts` as its operands: overwritten, or a new one.
fn overwrite(body: &mut Body, list: OperandList, parts: &[ExprId], in_place: bool) -> OperandList {
    if !in_place {
        return body.push_operands(parts);
    }
    for (i, &part) in parts.iter().enumerate() {
        body.set_operand(list, i, part);
    }
    list
}
