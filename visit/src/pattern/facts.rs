//! What matching has to know of a body: definitions and uses, effects, blocks and regions.

use anfora_ir::{
    Attr, AttrsId, BlockKind, Body, BodyPurity, Context, Cursor, EntityId, Expr, ExprId, IdSet, OpPurity, Purity, Step,
    VarId,
};

use crate::analysis::{DefUse, Definition};

/// Where an expression is evaluated.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Place {
    /// The innermost block, numbered from 1.
    pub(crate) block: u32,
    /// The dataflow region of that block; 0 outside of any.
    pub(crate) region: u32,
}

/// What is known of a body, kept up to date while it is rewritten.
pub(crate) struct Facts {
    pub(crate) def_use: DefUse,
    /// Calls, tuples and projections that can be observed when they are evaluated.
    impure: IdSet<ExprId>,
    /// Places of Lets and of what is not an atom.
    places: Vec<Place>,
    /// What stands in a `fn` with the attribute `Primitive=1`.
    closed: IdSet<ExprId>,
    /// Whether operands are atoms, and blocks stand only where they are the block of something.
    pub(crate) is_anf: bool,
    purity: Option<Purity>,
    attrs_carry_functions: bool,
    /// How many nodes there are that a rewrite can begin at.
    pub(crate) node_count: usize,
}

impl Facts {
    /// Looks at a body. One walk, and one more for the definitions and uses.
    pub(crate) fn new(cx: &Context, body: &Body, purity: Option<&Purity>) -> Facts {
        let mut facts = Facts {
            def_use: DefUse::new(body),
            impure: IdSet::with_capacity(0),
            places: vec![Place::default(); body.len()],
            closed: IdSet::with_capacity(0),
            is_anf: true,
            purity: purity.cloned(),
            attrs_carry_functions: !cx.function_attrs.is_empty()
                || cx.attrs.iter().any(|(_, a)| matches!(a, Attr::Global(_))),
            node_count: 0,
        };
        let calls = purity.map(|purity| BodyPurity::new(cx, body, purity));
        facts.walk(cx, body, calls.as_ref());
        facts
    }

    fn walk(&mut self, cx: &Context, body: &Body, known: Option<&BodyPurity>) {
        struct Open {
            block: u32,
            running: u32,
            current: u32,
        }
        let (mut blocks, mut regions) = (0u32, 0u32);
        let mut open: Vec<Open> = Vec::new();
        let mut primitive = 0u32;
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            match step {
                Step::EnterBlock(_, kind) => {
                    if let BlockKind::Lambda(id) = kind {
                        primitive += u32::from(is_primitive(cx, body, id));
                    }
                    blocks += 1;
                    open.push(Open { block: blocks, running: 0, current: 0 });
                    self.is_anf &= !matches!(kind, BlockKind::Value(_) | BlockKind::Operand(_));
                }
                Step::ExitBlock(_, kind) => {
                    if let BlockKind::Lambda(id) = kind {
                        primitive -= u32::from(is_primitive(cx, body, id));
                    }
                    open.pop();
                }
                Step::Let(id) => {
                    let Some(top) = open.last_mut() else { continue };
                    if let Expr::Let { flags, .. } = body.expr(id) {
                        if flags.starts_region() || flags.is_dataflow() && top.running == 0 {
                            regions += 1;
                            top.running = regions;
                        } else if !flags.is_dataflow() {
                            top.running = 0;
                        }
                        top.current = top.running;
                        self.places[id.index()] = Place { block: top.block, region: top.current };
                    }
                }
                Step::Bound(_) => {
                    if let Some(top) = open.last_mut() {
                        // What comes next is a Let, which says so itself, or the tail, which is in no region.
                        top.current = 0;
                    }
                }
                Step::Flat(id) | Step::Enter(id) => {
                    self.node_count += 1;
                    if primitive > 0 {
                        self.closed.insert(id);
                    }
                    if let Some(top) = open.last() {
                        self.places[id.index()] = Place { block: top.block, region: top.current };
                    }
                    match step {
                        Step::Flat(_) => self.note_effects(cx, body, id, known),
                        _ => self.is_anf &= parts_are_atoms(body, id),
                    }
                }
                Step::Exit(id) => self.note_effects(cx, body, id, known),
                Step::Seen(_) => self.is_anf = false,
                Step::Atom(_) => {}
            }
        }
    }

    fn note_effects(&mut self, cx: &Context, body: &Body, id: ExprId, known: Option<&BodyPurity>) {
        let own = match known {
            Some(known) => known.is_impure_call(id),
            None => self.call_is_impure(cx, body, id),
        };
        if own || self.parts_are_impure(body, id) {
            self.impure.insert(id);
        }
    }

    fn parts_are_impure(&self, body: &Body, id: ExprId) -> bool {
        match body.expr(id) {
            Expr::Proj { tuple, .. } => self.impure.contains(tuple),
            Expr::Lambda { .. } => false,
            // What is in blocks is not looked at.
            Expr::If { .. } | Expr::Let { .. } => true,
            _ => body.operands_of(id).iter().any(|&o| self.impure.contains(o)),
        }
    }

    fn call_is_impure(&self, cx: &Context, body: &Body, id: ExprId) -> bool {
        match body.expr(id) {
            Expr::CallOp { op, attrs, .. } => {
                cx.ops.get(op).purity == OpPurity::Impure
                    || (self.attrs_carry_functions && attrs != cx.attrs.empty() && !self.attrs_are_pure(cx, attrs))
            }
            Expr::Call { operands, .. } => match body.operands(operands).first().map(|&f| body.expr(f)) {
                Some(Expr::Global(g)) => !self.purity.as_ref().is_some_and(|p| p.global_is_pure(g)),
                Some(Expr::Op(op)) => cx.ops.get(op).purity == OpPurity::Impure,
                _ => true,
            },
            _ => false,
        }
    }

    fn attrs_are_pure(&self, cx: &Context, attrs: AttrsId) -> bool {
        if let Some(purity) = &self.purity {
            return purity.attrs_are_pure(cx, attrs);
        }
        let mut stack: Vec<_> = cx.attrs.list(attrs).iter().map(|&(_, value)| value).collect();
        while let Some(value) = stack.pop() {
            match cx.attrs.get(value) {
                Attr::Function(_) | Attr::Global(_) => return false,
                Attr::List(items) => stack.extend(items.iter()),
                _ => {}
            }
        }
        true
    }

    /// Takes in a node that was appended, evaluated at `place`. Its parts come first.
    pub(crate) fn add(&mut self, cx: &Context, body: &Body, id: ExprId, place: Place) {
        if id.index() >= self.places.len() {
            self.places.resize(id.index() + 1, Place::default());
        }
        self.places[id.index()] = place;
        if !matches!(body.expr(id), Expr::Let { .. })
            && (self.call_is_impure(cx, body, id) || self.parts_are_impure(body, id))
        {
            self.impure.insert(id);
        }
    }

    /// Says that the nodes of these numbers stand in a `fn` with the attribute `Primitive=1`.
    pub(crate) fn close(&mut self, range: std::ops::Range<usize>) {
        range.for_each(|i| {
            self.closed.insert(ExprId::from_index(i));
        });
    }

    /// Whether a node stands in a `fn` with the attribute `Primitive=1`.
    pub(crate) fn is_closed(&self, id: ExprId) -> bool {
        self.closed.contains(id)
    }

    pub(crate) fn place(&self, id: ExprId) -> Place {
        self.places.get(id.index()).copied().unwrap_or_default()
    }

    pub(crate) fn set_place(&mut self, id: ExprId, place: Place) {
        if id.index() >= self.places.len() {
            self.places.resize(id.index() + 1, Place::default());
        }
        self.places[id.index()] = place;
    }

    /// Whether evaluating a node can be observed, or is not known not to be.
    #[inline]
    pub(crate) fn is_impure(&self, id: ExprId) -> bool {
        self.impure.contains(id)
    }

    /// What a variable is bound to, if that can be looked at in its place. Outside of A-normal form its operands have to be atoms: a node that is nested in
    /// the value of one Let does not become part of another.
    #[inline]
    pub(crate) fn visible_value(&self, body: &Body, var: VarId) -> Option<ExprId> {
        let value = self.def_use.value(body, var)?;
        let expr = body.expr(value);
        let may_be_seen = !matches!(expr, Expr::Let { .. } | Expr::If { .. }) && !self.impure.contains(value);
        (may_be_seen && (self.is_anf || operands_are_atoms(body, expr))).then_some(value)
    }

    /// Whether an expression may be an operand that a pattern matches: evaluating it somewhere else, once more or not at all makes no difference, and
    /// it holds no block that has to stay where it is.
    #[inline]
    pub(crate) fn may_be_operand(&self, body: &Body, id: ExprId) -> bool {
        self.is_anf || !body.expr(id).binds() && !self.impure.contains(id)
    }

    /// The place where the value of a variable is computed; `None` for a parameter.
    pub(crate) fn place_of_definition(&self, body: &Body, var: VarId) -> Option<Place> {
        match self.def_use.definition(body, var)? {
            Definition::Let(id) => Some(self.place(id)),
            Definition::Param | Definition::LambdaParam(_) => None,
        }
    }
}

fn operands_are_atoms(body: &Body, expr: Expr) -> bool {
    match expr {
        Expr::Proj { tuple, .. } => body.expr(tuple).is_atom(),
        _ => expr.operand_list().is_none_or(|list| body.operands(list).iter().all(|&o| body.expr(o).is_atom())),
    }
}

/// Whether the operands of a node, or the condition of an If, are atoms.
fn parts_are_atoms(body: &Body, id: ExprId) -> bool {
    match body.expr(id) {
        Expr::If { cond, .. } => body.expr(cond).is_atom(),
        Expr::Lambda { .. } => true,
        _ => false,
    }
}

/// Whether an expression is a `fn` with the attribute `Primitive=1`, which is not looked into.
pub(crate) fn is_primitive(cx: &Context, body: &Body, id: ExprId) -> bool {
    let Expr::Lambda { lambda, .. } = body.expr(id) else { return false };
    let attrs = body.lambda(lambda).attrs;
    attrs != cx.attrs.empty()
        && cx.find_attr(attrs, "Primitive").is_some_and(|v| matches!(cx.attrs.get(v), Attr::Int(1) | Attr::Bool(true)))
}
