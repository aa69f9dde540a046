//! The block that a walk rewrites: the chain of the Lets kept so far.

use anfora_ir::{BlockKind, Expr, ExprId, LetFlags, RegionWriter, TypeId, VarFlags, VarId};

use crate::chain::set_var_flags;
use crate::engine::spliced::spliced_twice;
use crate::error::RewriteError;
use crate::link::{Binding, Link};
use crate::site::Site;

/// An open block.
#[derive(Copy, Clone)]
pub(crate) struct Block {
    /// The Let or tail that the walk is at.
    pub(crate) at: ExprId,
    pub(crate) kind: BlockKind,
    /// The start of the block before the walk.
    pub(crate) start: ExprId,
    /// The first kept Let; before there is one, the start of the block.
    pub(crate) head: ExprId,
    /// The last kept Let.
    last: Option<ExprId>,
    /// True if something was removed after `last`, whose link is then out of date.
    gap: bool,
    pub(crate) regions: RegionWriter,
    /// The number of open nodes that belong to the blocks around this one.
    pub(crate) nodes: u32,
    /// The number of type changes when the If or the `fn` of the block was entered.
    pub(crate) entered: u32,
    /// The type of the block before the walk, if the block is a value or an operand.
    pub(crate) ty_before: Option<TypeId>,
}

/// A node with operands that are nodes and are being walked.
#[derive(Copy, Clone)]
pub(crate) struct OpenNode {
    pub(crate) id: ExprId,
    /// The number of the next operand.
    pub(crate) next: u32,
}

impl Block {
    pub(crate) fn new(start: ExprId, kind: BlockKind, nodes: usize, entered: u32) -> Block {
        Block {
            at: start,
            kind,
            start,
            head: start,
            last: None,
            gap: false,
            regions: RegionWriter::default(),
            nodes: nodes as u32,
            entered,
            ty_before: None,
        }
    }

    #[inline(always)]
    pub(crate) fn in_region(&self) -> bool {
        self.regions.is_open()
    }

    /// Removes the current Let and continues with the rest.
    #[inline(always)]
    pub(crate) fn leave_out(&mut self, rest: ExprId) {
        self.gap = true;
        self.at = rest;
    }
}

impl Site<'_> {
    /// Links a Let or a tail to the last kept Let.
    #[inline]
    fn hang(&mut self, id: ExprId) {
        match self.block.last {
            Some(last) => self.editor.body.set_let_body(last, id),
            None => self.block.head = id,
        }
    }

    /// Keeps the current Let, which has these flags, and continues with the rest.
    #[inline(always)]
    pub(crate) fn keep(&mut self, flags: LetFlags, rest: ExprId) {
        let at = self.block.at;
        if self.block.gap {
            self.hang(at);
            self.block.gap = false;
        }
        if self.block.in_region() {
            self.set_flags_in_region(at, flags);
        }
        self.block.last = Some(at);
        self.block.at = rest;
    }

    /// Sets the flags of a Let to make it the next of the current region. `flags` are its present
    /// flags.
    #[inline]
    fn set_flags_in_region(&mut self, id: ExprId, flags: LetFlags) {
        let wanted = self.block.regions.next_flags();
        if flags != wanted {
            self.editor.body.set_let_flags(id, wanted);
        }
    }

    /// Inserts a new Let before the current Let or tail, which is its rest.
    pub(crate) fn emit(&mut self, id: ExprId, var: VarId) {
        self.hang(id);
        self.block.gap = false;
        if self.block.in_region() {
            self.set_flags_in_region(id, LetFlags::PLAIN);
            self.bind_in_region(var);
        } else {
            set_var_flags(self.editor.body, var, VarFlags::PLAIN);
        }
        self.block.last = Some(id);
    }

    /// Makes an expression the tail of the block.
    #[inline]
    pub(crate) fn set_tail(&mut self, tail: ExprId) {
        if tail != self.block.at || self.block.gap {
            self.hang(tail);
            self.block.gap = false;
            self.block.at = tail;
        }
    }

    /// Moves the Lets of a block before the current Let or tail, without walking them. Returns the
    /// block's tail. With a reason, the Lets are recorded as parts of the last rewrite.
    pub(crate) fn splice_walked(&mut self, block: ExprId, reason: Option<&str>) -> Result<ExprId, RewriteError> {
        self.let_out(block);
        self.note_made();
        let before = self.block.last;
        let mut at = block;
        while let Some(b) = Binding::of(self.editor.body, at) {
            // If a Let of this block is reached, the last kept one is reached too.
            if Some(b.id) == before {
                return Err(spliced_twice(&self.editor, b.var));
            }
            self.spliced_mut().insert(b.id);
            self.record(b.id, reason);
            self.hang(b.id);
            if self.block.in_region() {
                self.set_flags_in_region(b.id, b.flags);
                set_var_flags(self.editor.body, b.var, VarFlags::DATAFLOW);
                self.bind_in_region(b.var);
            }
            self.block.last = Some(b.id);
            at = b.rest;
        }
        // The last Let links to the tail of the block.
        self.block.gap = true;
        Ok(at)
    }

    /// Replaces the value of the current Let, or the tail, by a block, and goes to the start of
    /// that block. The walk of the block makes the variables that it uses outputs of their regions
    /// where that is needed, so the block is not searched for them here. With a reason, the Lets of
    /// the block are recorded as parts of the last rewrite.
    pub(crate) fn expand_into(&mut self, block: ExprId, reason: Option<&str>) -> Result<(), RewriteError> {
        self.retypes += 1;
        self.has_expanded = true;
        self.note_made();
        let at = self.block.at;
        let Expr::Let { var, flags, .. } = self.editor.body.expr(at) else {
            self.block.leave_out(block);
            return Ok(());
        };
        let mut last = None;
        let mut tail = block;
        while let Some(b) = Binding::of(self.editor.body, tail) {
            if self.was_walked(b.var) || b.id == at {
                return Err(spliced_twice(&self.editor, b.var));
            }
            if self.block.in_region() {
                self.editor.body.set_let_flags(b.id, LetFlags::DATAFLOW);
                set_var_flags(self.editor.body, b.var, VarFlags::DATAFLOW);
            }
            self.record(b.id, reason);
            last = Some(b.id);
            tail = b.rest;
        }
        if flags.starts_region() {
            self.editor.body.set_let_flags(at, LetFlags::DATAFLOW);
        }
        Link::Value(at).set(self.editor.body, tail);
        self.expanded_mut().insert(var.expr());
        if let Some(last) = last {
            self.hang(block);
            self.block.gap = false;
            self.editor.body.set_let_body(last, at);
            self.block.at = block;
        }
        Ok(())
    }

    /// Records a Let that the last rewrite has put into the program, if there is a reason.
    #[inline]
    fn record(&self, at: ExprId, reason: Option<&str>) {
        if let Some(reason) = reason {
            self.editor.cx.rewrote_also(self.editor.body, at, reason);
        }
    }
}
