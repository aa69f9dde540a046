//! Facts about a body for matching: definitions and uses, effects, blocks and regions.

use std::borrow::Cow;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use anfora_ir::work::tick;
use anfora_ir::{
    Attr, BlockKind, Body, BodyPurity, Context, Cursor, EntityId, Expr, ExprId, GlobalId, IdSet, PerBlock, Purity,
    Step, VarId,
};

use crate::analysis::{DefUse, Definition};
use crate::link::{Binding, Link};
use crate::order::program_order;
use crate::pattern::illegal_edit::IllegalEdit;
use crate::pattern::scopes::{END, GAP, Place, Scopes};

const NO_ALIAS: u32 = u32::MAX;

/// Facts about a body, kept up to date while it is rewritten.
pub(crate) struct Facts<'p> {
    pub(crate) def_use: DefUse,
    /// Calls, tuples and projections with observable effects.
    impure: IdSet<ExprId>,
    /// The places of Lets and of nodes that are not atoms, and the nesting of blocks.
    pub(crate) scopes: Scopes,
    /// Functions that the program calls in regions, or that have no observable effects.
    pure_functions: IdSet<ExprId>,
    pure_globals: IdSet<GlobalId>,
    /// By variable: the atom that it is bound to or was replaced by. Rows of aliases are shortened
    /// when they are followed.
    aliases: Vec<AtomicU32>,
    /// The nodes in a `fn` with the attribute `Primitive=1`.
    closed: IdSet<ExprId>,
    /// True if the program is in A-normal form: operands and conditions are atoms, and no block is
    /// a value or operand.
    pub(crate) is_anf: bool,
    purity: Cow<'p, Purity>,
    /// The number of nodes at which a rewrite can begin.
    pub(crate) node_count: usize,
}

impl<'p> Facts<'p> {
    /// Computes the facts of a body, in one walk and one more for the definitions and uses.
    pub(crate) fn new(cx: &Context, body: &Body, purity: Option<&'p Purity>) -> Facts<'p> {
        let mut facts = Facts {
            def_use: DefUse::new(body),
            impure: IdSet::with_capacity(0),
            scopes: Scopes::new(body.len()),
            pure_functions: IdSet::with_capacity(0),
            pure_globals: IdSet::with_capacity(0),
            aliases: Vec::new(),
            closed: IdSet::with_capacity(0),
            is_anf: true,
            purity: purity.map_or_else(Cow::default, Cow::Borrowed),
            node_count: 0,
        };
        let calls = purity.map(|purity| BodyPurity::new(cx, body, purity));
        facts.def_use.note_losses();
        facts.walk(cx, body, calls.as_ref());
        facts
    }

    fn walk(&mut self, cx: &Context, body: &Body, known: Option<&BodyPurity>) {
        let mut regions = 0u32;
        // The current place in each open block, and the label of its last Let.
        let mut here: PerBlock<(Place, u64)> = PerBlock::default();
        here.0.label = END;
        let mut primitive = 0u32;
        let mut cursor = Cursor::with_regions(body);
        while let Some(step) = cursor.next(body) {
            self.is_anf &= !step.breaks_anf(body);
            match step {
                Step::EnterBlock(_, kind) => {
                    let holder = match kind {
                        BlockKind::Lambda(id) | BlockKind::Then(id) | BlockKind::Else(id) => Some(id),
                        _ => None,
                    };
                    let block = self.scopes.open(here.0, holder);
                    if let BlockKind::Lambda(id) = kind {
                        primitive += u32::from(is_primitive(cx, body, id));
                        self.scopes.block_of.insert(id, block);
                    }
                    here.enter_with((Place { block, region: 0, label: END }, 0));
                }
                Step::ExitBlock(_, kind) => {
                    if let BlockKind::Lambda(id) = kind {
                        primitive -= u32::from(is_primitive(cx, body, id));
                    }
                    here.exit();
                }
                Step::Let(id) => {
                    if let Expr::Let { var, value, .. } = body.expr(id)
                        && body.expr(value).is_atom()
                    {
                        self.set_alias(var, value);
                    }
                    here.1 += GAP;
                    here.0.label = here.1;
                    self.scopes.set(id, here.0);
                }
                Step::Bound(_) => here.0.label = END,
                Step::EnterRegion(_) => {
                    regions += 1;
                    here.0.region = regions;
                }
                Step::ExitRegion(_) => here.0.region = 0,
                Step::Flat(id) | Step::Enter(id) => {
                    self.node_count += 1;
                    if primitive > 0 {
                        self.closed.insert(id);
                    }
                    self.scopes.set(id, here.0);
                    if let Step::Flat(_) = step {
                        self.note_effects(cx, body, id, known);
                    }
                }
                Step::Exit(id) => self.note_effects(cx, body, id, known),
                Step::Seen(id) => _ = self.scopes.meet(id, here.0),
                Step::Atom(_) => {}
            }
        }
        if !self.is_anf {
            // The parts of a node are evaluated at its place. They come before the node in program
            // order.
            let order: Vec<ExprId> = program_order(body, body.root()).collect();
            for &id in order.iter().rev() {
                let place = self.place(id);
                for &part in body.inputs(id) {
                    let expr = body.expr(part);
                    if !expr.is_atom() && !expr.binds() && self.place(part) != place {
                        self.scopes.meet(part, place);
                    }
                }
            }
        }
    }

    fn note_effects(&mut self, cx: &Context, body: &Body, id: ExprId, known: Option<&BodyPurity>) {
        let own = match known {
            Some(known) => known.is_impure_call(id),
            None => self.purity.call_is_impure(cx, body, id),
        };
        if let Expr::Call { operands, .. } = body.expr(id)
            && (!own || self.place(id).region != 0)
            && let Some(&function) = body.operands(operands).first()
        {
            // A well-formed program calls only pure functions in a region.
            self.note_pure(body, function);
        }
        if let (Expr::Lambda { lambda, .. }, Some(known)) = (body.expr(id), known)
            && !known.is_impure_lambda(lambda)
        {
            self.pure_functions.insert(id);
        }
        if own || self.parts_are_impure(body, id) {
            self.impure.insert(id);
        }
    }

    fn parts_are_impure(&self, body: &Body, id: ExprId) -> bool {
        match body.expr(id) {
            // Blocks are not searched.
            Expr::If { .. } | Expr::Let { .. } => true,
            _ => body.inputs(id).iter().any(|&o| self.impure.contains(o)),
        }
    }

    /// Records that calls of a function have no observable effects.
    pub(crate) fn note_pure(&mut self, body: &Body, function: ExprId) {
        match body.expr(function) {
            Expr::Global(global) => {
                self.pure_globals.insert(global);
            }
            _ => {
                self.pure_functions.insert(function);
            }
        }
    }

    pub(crate) fn is_noted_pure(&self, body: &Body, function: ExprId) -> bool {
        match body.expr(function) {
            Expr::Global(global) => self.pure_globals.contains(global),
            _ => self.pure_functions.contains(function),
        }
    }

    /// Returns true if a new node is a call that must not be in a dataflow region.
    pub(crate) fn call_is_barred(&self, cx: &Context, body: &Body, id: ExprId) -> bool {
        if !self.purity.call_is_impure(cx, body, id) {
            return false;
        }
        let Expr::Call { operands, .. } = body.expr(id) else { return true };
        let Some(&function) = body.operands(operands).first() else { return true };
        let value = body.as_var(function).and_then(|var| self.def_use.value(body, var));
        ![Some(function), value].into_iter().flatten().any(|function| self.is_noted_pure(body, function))
    }

    /// Returns the Let whose value is this node, if that is the node's only use.
    pub(crate) fn let_of(&self, body: &Body, id: ExprId) -> Option<Binding> {
        match self.def_use.only_use(body, id)? {
            Link::Value(link) => Binding::of(body, link),
            _ => None,
        }
    }

    /// Returns the label at which a node is evaluated in its block.
    fn label_of_node(&self, body: &Body, id: ExprId) -> u64 {
        if !self.is_anf {
            return self.place(id).label;
        }
        self.let_of(body, id).map_or(END, |binding| self.place(binding.id).label)
    }

    /// Checks that the program binds a variable, and that the variable is visible at a node.
    pub(crate) fn check_visible(&self, body: &Body, var: VarId, at: ExprId) -> Result<(), IllegalEdit> {
        let block = self.place(at).block;
        let (outer, label) = match self.def_use.definition(body, var).ok_or(IllegalEdit::Unbound)? {
            Definition::Param => return Ok(()),
            Definition::LambdaParam(id) => (self.scopes.block_of.get(&id).copied().unwrap_or(0), 0),
            Definition::Let(id) => (self.place(id).block, self.place(id).label),
        };
        // The label in the block of the variable at which the node is evaluated.
        let end = match self.scopes.below(block, outer) {
            _ if outer == block => self.label_of_node(body, at),
            None => return Err(IllegalEdit::NotVisible),
            Some(below) => match self.scopes.blocks[below as usize] {
                (_, Some(holder)) if self.is_anf => self.label_of_node(body, holder),
                (fixed, _) => fixed,
            },
        };
        if label < end { Ok(()) } else { Err(IllegalEdit::NotVisible) }
    }

    /// Gives places to `count` Lets that were inserted at `before`, where `root` is evaluated.
    pub(crate) fn place_inserted(&mut self, body: &Body, before: Link, count: usize, root: ExprId) {
        let place = self.place(root);
        let low = match before {
            Link::Rest(id) => self.place(id).label,
            _ => 0,
        };
        let mut lets: Vec<ExprId> = Vec::with_capacity(count + 1);
        let mut at = before.target(body);
        while let Some(binding) = Binding::of(body, at) {
            if lets.len() < count {
                self.scopes.set(at, place);
            } else {
                let (room, steps) = (self.place(at).label.saturating_sub(low), lets.len() as u64 + 1);
                // Labels near here may be used up: then the following Lets get new labels too.
                let step = if lets.len() == count { room / (4 * steps) } else { room / steps };
                if step >= 1 << 16 || lets.len() == count && step >= 1 {
                    return self.scopes.set_labels(&lets, low, step);
                }
            }
            lets.push(at);
            at = binding.rest;
        }
        self.scopes.set_labels(&lets, low, GAP);
    }

    /// Finds the place of each new node, starting from the place of the replaced node.
    pub(crate) fn add_all(&mut self, cx: &Context, body: &Body, mark: usize, root: ExprId) {
        let place = self.place(root);
        // Parts come before their users.
        for i in mark..body.len() {
            let id = ExprId::from_index(i);
            if body.expr(id).is_atom() {
                continue;
            }
            self.scopes.set(id, place);
            let is_let = matches!(body.expr(id), Expr::Let { .. });
            if !is_let && (self.purity.call_is_impure(cx, body, id) || self.parts_are_impure(body, id)) {
                self.impure.insert(id);
            }
        }
        // A `fn` is made after its nodes.
        for i in (mark..body.len()).rev() {
            let id = ExprId::from_index(i);
            let Expr::Lambda { body: mut at, .. } = body.expr(id) else { continue };
            let block = self.scopes.open(self.place(id), Some(id));
            self.scopes.block_of.insert(id, block);
            let inner = |label: u64| Place { block, region: 0, label };
            let mut label = 0;
            let mut stack: Vec<(ExprId, u64)> = Vec::new();
            while let Some(binding) = Binding::of(body, at).filter(|b| b.id.index() >= mark) {
                label += GAP;
                self.scopes.set(at, inner(label));
                stack.push((binding.value, label));
                at = binding.rest;
            }
            stack.push((at, END));
            while let Some((id, label)) = stack.pop() {
                // Nodes that are shared with the outside were made before and are evaluated there.
                if id.index() < mark || body.expr(id).is_atom() || self.place(id).block == block {
                    continue;
                }
                self.scopes.set(id, inner(label));
                stack.extend(body.inputs(id).iter().map(|&o| (o, label)));
            }
        }
    }

    /// Records that a variable is an alias of an atom.
    pub(crate) fn set_alias(&mut self, var: VarId, atom: ExprId) {
        let end = self.atom(atom);
        if end == var.expr() {
            return;
        }
        if var.index() >= self.aliases.len() {
            self.aliases.resize_with(var.index() + 1, || AtomicU32::new(NO_ALIAS));
        }
        self.aliases[var.index()] = AtomicU32::new(end.index() as u32);
    }

    /// Returns the end of a row of aliases: a variable that is not bound to an atom, or another
    /// atom. Takes near-constant time, since the row is shortened.
    #[inline]
    pub(crate) fn atom(&self, id: ExprId) -> ExprId {
        let next = |id: ExprId| {
            tick();
            let to = self.aliases.get(id.index())?.load(Relaxed);
            (to != NO_ALIAS).then(|| ExprId::from_index(to as usize))
        };
        let Some(mut to) = next(id) else { return id };
        let mut at = id;
        while let Some(end) = next(to) {
            self.aliases[at.index()].store(end.index() as u32, Relaxed);
            (at, to) = (to, end);
        }
        to
    }

    /// Returns the value of an operand, if it is a variable that patterns may look through;
    /// otherwise the operand itself with aliases resolved.
    #[inline]
    pub(crate) fn value(&self, body: &Body, id: ExprId) -> ExprId {
        let atom = self.atom(id);
        body.as_var(atom).and_then(|var| self.visible_value(body, var)).unwrap_or(atom)
    }

    /// Records that the nodes with these numbers are in a `fn` with the attribute `Primitive=1`.
    pub(crate) fn close(&mut self, range: std::ops::Range<usize>) {
        range.for_each(|i| {
            self.closed.insert(ExprId::from_index(i));
        });
    }

    /// Returns true if a node is in a `fn` with the attribute `Primitive=1`.
    pub(crate) fn is_closed(&self, id: ExprId) -> bool {
        self.closed.contains(id)
    }

    pub(crate) fn place(&self, id: ExprId) -> Place {
        self.scopes.place(id)
    }

    /// Returns true if the evaluation of a node has observable effects, or may have.
    #[inline]
    pub(crate) fn is_impure(&self, id: ExprId) -> bool {
        self.impure.contains(id)
    }

    /// Returns the value of a variable, if patterns may look at it instead of the variable. Outside
    /// of A-normal form, the operands of the value must be atoms, so that a node that is nested in
    /// the value of one Let does not become part of another.
    #[inline]
    pub(crate) fn visible_value(&self, body: &Body, var: VarId) -> Option<ExprId> {
        let value = self.def_use.value(body, var)?;
        let may_be_seen =
            !matches!(body.expr(value), Expr::Let { .. } | Expr::If { .. }) && !self.impure.contains(value);
        let is_flat = || body.inputs(value).iter().all(|&o| body.expr(o).is_atom());
        (may_be_seen && (self.is_anf || is_flat())).then_some(value)
    }

    /// Returns true if a pattern may match an expression as an operand: it can be evaluated
    /// elsewhere, again or not at all without a difference, and it has no block that must stay
    /// where it is.
    #[inline]
    pub(crate) fn may_be_operand(&self, body: &Body, id: ExprId) -> bool {
        self.is_anf || !body.expr(id).binds() && !self.impure.contains(id)
    }

    /// Returns the place where the value of a variable is computed; `None` for a parameter.
    pub(crate) fn place_of_definition(&self, body: &Body, var: VarId) -> Option<Place> {
        match self.def_use.definition(body, var)? {
            Definition::Let(id) => Some(self.place(id)),
            Definition::Param | Definition::LambdaParam(_) => None,
        }
    }
}

/// Returns true if an expression is a `fn` with the attribute `Primitive=1`. Rules do not look
/// inside.
pub(crate) fn is_primitive(cx: &Context, body: &Body, id: ExprId) -> bool {
    let Expr::Lambda { lambda, .. } = body.expr(id) else { return false };
    let attrs = body.lambda(lambda).attrs;
    attrs != cx.attrs.empty()
        && cx.find_attr(attrs, "Primitive").is_some_and(|v| matches!(cx.attrs.get(v), Attr::Int(1) | Attr::Bool(true)))
}
