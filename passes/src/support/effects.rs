//! What passes ask about operators and calls at every binding, kept where it is answered fast.

use anfora_ir::{AttrsId, Body, BodyPurity, Context, EntityId, Expr, ExprId, OpDef, OpId, OpPurity, Purity};

/// The properties of each operator, one byte each.
pub(crate) struct OpFlags(Vec<u8>);

const IMPURE: u8 = 1;
const MATCH_CAST: u8 = 2;
const COMMUTATIVE: u8 = 4;
const FORWARDS: u8 = 8;
const KERNEL: u8 = 16;
const KNOWN_BY_TYPE: u8 = 32;

fn flags_of(row: &OpDef) -> u8 {
    let mut flags = 0;
    if row.purity == OpPurity::Impure {
        flags |= IMPURE;
    }
    if row.name == "match_cast" {
        flags |= MATCH_CAST;
    }
    if row.commutative {
        flags |= COMMUTATIVE;
    }
    if !row.forwards.is_empty() {
        flags |= FORWARDS;
    }
    if row.kernel.is_some() {
        flags |= KERNEL;
    }
    if row.known_by_type.is_some() && row.purity == OpPurity::Pure {
        flags |= KNOWN_BY_TYPE;
    }
    flags
}

impl OpFlags {
    /// The properties of the operators of a registry. Those of opaque operators are looked up when asked for.
    pub(crate) fn new(cx: &Context) -> OpFlags {
        OpFlags(cx.ops.registry().rows().map(|(_, row)| flags_of(row)).collect())
    }

    #[inline]
    fn get(&self, cx: &Context, op: OpId) -> u8 {
        match self.0.get(op.index()) {
            Some(&flags) => flags,
            None => flags_of(cx.ops.get(op)),
        }
    }

    /// Whether DeadCodeElimination keeps a call of it whether or not the result is used.
    #[inline]
    pub(crate) fn is_kept(&self, cx: &Context, op: OpId) -> bool {
        self.get(cx, op) & (IMPURE | MATCH_CAST) != 0
    }

    /// Whether a call of it can be observed, whatever its attributes are.
    #[inline]
    pub(crate) fn is_impure(&self, cx: &Context, op: OpId) -> bool {
        self.get(cx, op) & IMPURE != 0
    }

    /// Whether it is `match_cast`.
    #[inline]
    pub(crate) fn is_match_cast(&self, cx: &Context, op: OpId) -> bool {
        self.get(cx, op) & MATCH_CAST != 0
    }

    /// Whether its operands may be exchanged.
    #[inline]
    pub(crate) fn is_commutative(&self, cx: &Context, op: OpId) -> bool {
        self.get(cx, op) & COMMUTATIVE != 0
    }

    /// Whether one of its results is just an operand.
    #[inline]
    pub(crate) fn forwards(&self, cx: &Context, op: OpId) -> bool {
        self.get(cx, op) & FORWARDS != 0
    }

    /// Whether a call of it on constants can be evaluated, unseen.
    #[cfg(feature = "interp")]
    #[inline]
    pub(crate) fn is_foldable(&self, cx: &Context, op: OpId) -> bool {
        self.get(cx, op) & (KERNEL | IMPURE) == KERNEL
    }

    /// Whether the results of a call of it may be known by the types of its operands.
    #[cfg(feature = "interp")]
    #[inline]
    pub(crate) fn known_by_type(&self, cx: &Context, op: OpId) -> bool {
        self.get(cx, op) & KNOWN_BY_TYPE != 0
    }
}

/// Whether evaluating an expression can be observed. What is known of a body is found out when it is first asked for, or before it is rewritten
/// ([`Effects::before_rewriting`]): programs of nothing but operators never do.
pub(crate) struct Effects<'a> {
    purity: &'a Purity,
    body: Option<BodyPurity>,
}

impl<'a> Effects<'a> {
    pub(crate) fn new(purity: &'a Purity) -> Effects<'a> {
        Effects { purity, body: None }
    }

    /// Finds out now what will be asked for later, when aliases of functions may have been replaced.
    pub(crate) fn before_rewriting(cx: &Context, body: &Body, purity: &'a Purity) -> Effects<'a> {
        let calls_variable = |id| match body.expr(id) {
            Expr::Call { operands, .. } => {
                body.operands(operands).first().is_none_or(|&callee| !matches!(body.expr(callee), Expr::Global(_)))
            }
            _ => false,
        };
        let needed = (0..body.len()).map(ExprId::from_index).any(calls_variable);
        Effects { purity, body: needed.then(|| BodyPurity::new(cx, body, purity)) }
    }

    /// Whether the attributes of a call of an operator hold a function that can be observed.
    #[inline]
    pub(crate) fn attrs_are_pure(&self, cx: &Context, attrs: AttrsId) -> bool {
        attrs == cx.attrs.empty() || self.purity.attrs_are_pure(cx, attrs)
    }

    /// Whether evaluating a call of a function value, an If or any other expression can be observed. That of a lambda cannot.
    pub(crate) fn is_impure(&mut self, cx: &Context, body: &Body, id: ExprId) -> bool {
        if let Expr::Call { operands, .. } = body.expr(id)
            && let Some(&callee) = body.operands(operands).first()
            && let Expr::Global(g) = body.expr(callee)
        {
            return !self.purity.global_is_pure(g);
        }
        self.body.get_or_insert_with(|| BodyPurity::new(cx, body, self.purity)).is_impure(id)
    }
}
