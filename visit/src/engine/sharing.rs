//! Rewrites that depend on the place: results that are dropped at the end of a scope, and copies of
//! shared nodes.

use anfora_ir::{Body, Cursor, EntityId, ExprId, IdSet, Step};

use crate::copy::copy_fresh;
use crate::memo::Memo;
use crate::mutator::{Edits, Mutator};
use crate::site::Site;

/// The state of a walk with [`Edits::Scoped`].
pub(crate) struct Scoped {
    /// The earlier results of nodes that got new ones in the open scopes, oldest first.
    log: Vec<(ExprId, Option<ExprId>)>,
    /// The lengths of the log at the start of the open scopes.
    scopes: Vec<usize>,
    /// The atoms that variables are assumed to equal in the open scopes. They never form a cycle,
    /// since the stored atoms are resolved.
    known: Memo<ExprId>,
    has_known: bool,
    /// Nodes with several uses that hold blocks.
    shared: IdSet<ExprId>,
    /// Copies of shared nodes that are being walked, with their originals, innermost last.
    copies: Vec<(ExprId, ExprId)>,
}

impl Scoped {
    pub(crate) fn new(body: &Body, start: ExprId) -> Scoped {
        let mut scoped = Scoped {
            log: Vec::new(),
            scopes: Vec::new(),
            known: Memo::new(),
            has_known: false,
            shared: IdSet::with_capacity(0),
            copies: Vec::new(),
        };
        scoped.find_shared(body, start);
        if start != body.root() {
            // A node may also be used outside of the walk.
            scoped.find_shared(body, body.root());
        }
        scoped
    }

    /// Finds the nodes under `start` that have several users and hold blocks.
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

    /// Follows the assumptions about an atom to its end.
    pub(crate) fn follow(&self, mut id: ExprId) -> ExprId {
        if self.has_known {
            while let Some(known) = self.known.get(id) {
                id = known;
            }
        }
        id
    }

    pub(crate) fn assume(&mut self, var: ExprId, atom: ExprId) {
        self.has_known = true;
        self.known.insert(var, atom);
    }
}

impl Site<'_> {
    pub(crate) fn begin_scope<M: Mutator>(&mut self) {
        if M::EDITS == Edits::Scoped
            && let Some(scoped) = &mut self.scoped
        {
            scoped.scopes.push(scoped.log.len());
            scoped.known.begin_scope();
        }
    }

    /// Drops the results of the innermost scope.
    pub(crate) fn end_scope<M: Mutator>(&mut self) {
        if M::EDITS == Edits::Scoped
            && let Some(scoped) = &mut self.scoped
            && let Some(mark) = scoped.scopes.pop()
        {
            for (id, old) in scoped.log.drain(mark..).rev() {
                self.current[id.index()] = old;
            }
            scoped.known.end_scope();
        }
    }

    /// Stores the result of a node.
    #[inline(always)]
    pub(crate) fn set_node<M: Mutator>(&mut self, pre: ExprId, result: ExprId) {
        if M::EDITS == Edits::Scoped {
            return self.set_node_in_scope(pre, result);
        }
        self.set_current(pre, result);
    }

    fn set_node_in_scope(&mut self, pre: ExprId, result: ExprId) {
        let Some(mut scoped) = self.scoped.take() else { return };
        scoped.log.push((pre, self.current_of(pre)));
        self.set_current(pre, result);
        if let Some(&(copy, original)) = scoped.copies.last()
            && copy == pre
        {
            scoped.copies.pop();
            scoped.log.push((original, self.current_of(original)));
            self.set_current(original, result);
        }
        self.scoped = Some(scoped);
    }

    /// Returns true if a node must be copied before it is rewritten for this scope, since rewriting
    /// its blocks would change it for other users.
    #[inline]
    pub(crate) fn must_copy(&self, id: ExprId) -> bool {
        self.scoped.as_ref().is_some_and(|scoped| scoped.shared.contains(id))
    }

    /// Copies a shared node and returns the copy, which is walked in its place.
    pub(crate) fn copy_for_scope(&mut self, id: ExprId) -> ExprId {
        let copy = copy_fresh(&mut self.editor, id);
        if let Some(scoped) = &mut self.scoped {
            scoped.find_shared(self.editor.body, copy);
            scoped.copies.push((copy, id));
        }
        copy
    }
}
