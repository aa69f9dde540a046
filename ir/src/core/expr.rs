//! Expressions: 16 bytes each, all children by id.

use crate::core::entity::{AttrsId, EntityId, ExprId, GlobalId, LambdaId, LiteralId, NameId, OpId, TypeId};

/// An expression.
///
/// Evaluation order: a [`Let`](Expr::Let) evaluates its value once, then its body with the variable
/// bound; an [`If`](Expr::If) evaluates its condition and then one of its branches; a
/// [`Lambda`](Expr::Lambda) evaluates to a closure, and its body runs at each call; every other
/// expression evaluates its operands in order and then itself. A node with several uses is
/// evaluated once, in the innermost block that encloses its uses; only nodes that bind nothing may
/// be shared in this way.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum Expr {
    /// A variable. The id of this node is the variable at all its uses. It is bound by one Let, or
    /// as a parameter.
    Var {
        /// The name, if the variable has one. Two variables may have the same name.
        name: Option<NameId>,
        /// The flags: whether the variable is visible only in its dataflow region.
        flags: VarFlags,
    },
    /// A constant. A body has one node for each constant.
    Literal(LiteralId),
    /// A global function. A body has one node for each global.
    Global(GlobalId),
    /// An operator as a value. A body has one node for each operator.
    Op(OpId),
    /// `none`: an optional operand that is left out. A body has one node for it.
    None,
    /// A call of an operator.
    CallOp {
        /// The operator.
        op: OpId,
        /// Its operands.
        operands: OperandList,
        /// Its attributes.
        attrs: AttrsId,
    },
    /// A call of a function value.
    Call {
        /// The function, then the arguments.
        operands: OperandList,
        /// Attributes of the call.
        attrs: AttrsId,
    },
    /// A tuple.
    Tuple(OperandList),
    /// A field of a tuple.
    Proj {
        /// The tuple.
        tuple: ExprId,
        /// The index of the field, from 0.
        index: u32,
    },
    /// A Let of a chain.
    Let {
        /// The variable that it binds.
        var: VarId,
        /// The value, which may itself be a chain (a block as a value).
        value: ExprId,
        /// The rest of the chain: another Let, or the tail.
        body: ExprId,
        /// The flags: whether the Let is in a dataflow region.
        flags: LetFlags,
    },
    /// A choice between two blocks.
    If {
        /// A rank-0 boolean tensor.
        cond: ExprId,
        /// The block that is evaluated if the condition is true.
        then_block: ExprId,
        /// The block that is evaluated if the condition is false.
        else_block: ExprId,
    },
    /// A function value.
    Lambda {
        /// Parameters, result annotation and attributes.
        lambda: LambdaId,
        /// Its block.
        body: ExprId,
    },
}

/// A variable: the id of a [`Expr::Var`] node.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub struct VarId(ExprId);

impl VarId {
    /// Returns the variable with the id of an [`Expr::Var`] node.
    /// [`Body::as_var`](crate::Body::as_var) checks that the node is a variable.
    #[inline(always)]
    pub(crate) fn from_expr(id: ExprId) -> VarId {
        VarId(id)
    }

    /// Returns the variable as an expression: its use.
    ///
    /// Cost: one entry.
    #[inline(always)]
    pub fn expr(self) -> ExprId {
        self.0
    }

    /// Returns the position in the arena of expressions.
    ///
    /// Cost: one entry.
    pub fn index(self) -> usize {
        self.0.index()
    }
}

impl From<VarId> for ExprId {
    #[inline(always)]
    fn from(v: VarId) -> ExprId {
        v.0
    }
}

impl std::fmt::Debug for VarId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "v{}", self.0.index())
    }
}

/// Flags of a variable.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct VarFlags(u8);

impl VarFlags {
    /// An ordinary variable.
    pub const PLAIN: VarFlags = VarFlags(0);
    /// A variable that is visible only in its dataflow region.
    pub const DATAFLOW: VarFlags = VarFlags(1);

    /// Returns true if the variable is visible only in its dataflow region.
    #[inline]
    pub fn is_dataflow(self) -> bool {
        self.0 & 1 != 0
    }
}

/// Flags of a Let.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct LetFlags(u8);

impl LetFlags {
    /// Outside of any region.
    pub const PLAIN: LetFlags = LetFlags(0);
    /// In a dataflow region, but not its first Let.
    pub const DATAFLOW: LetFlags = LetFlags(1);
    /// The first Let of a dataflow region.
    pub const REGION_START: LetFlags = LetFlags(3);

    /// Returns true if the Let is in a dataflow region.
    #[inline]
    pub fn is_dataflow(self) -> bool {
        self.0 & 1 != 0
    }

    /// Returns true if the Let starts a dataflow region.
    #[inline]
    pub fn starts_region(self) -> bool {
        self.0 & 2 != 0
    }
}

/// Operands in the pool of a body.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct OperandList {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl OperandList {
    /// No operands.
    pub const EMPTY: OperandList = OperandList { start: 0, len: 0 };

    /// Returns the number of operands.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Returns true if the list has no operands.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// The parts of a `fn` other than its block.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct LambdaData {
    /// Its parameters: variables, in the pool of the body.
    pub params: OperandList,
    /// The annotated result type, if there is one.
    pub ret: Option<TypeId>,
    /// Its attributes.
    pub attrs: AttrsId,
}

impl Expr {
    /// Returns the name of the kind of expression for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Expr::Var { .. } => "a variable",
            Expr::Literal(_) => "a constant",
            Expr::Global(_) => "the name of a global",
            Expr::Op(_) => "the name of an operator",
            Expr::None => "`none`",
            Expr::CallOp { .. } => "a call of an operator",
            Expr::Call { .. } => "a call",
            Expr::Tuple(_) => "a tuple",
            Expr::Proj { .. } => "a projection",
            Expr::Let { .. } => "a `let`",
            Expr::If { .. } => "an `if`",
            Expr::Lambda { .. } => "a `fn`",
        }
    }

    /// Returns true if the expression is an atom: a variable, literal, global, operator or `none`.
    ///
    /// Cost: one entry.
    #[inline]
    pub fn is_atom(&self) -> bool {
        matches!(self, Expr::Var { .. } | Expr::Literal(_) | Expr::Global(_) | Expr::Op(_) | Expr::None)
    }

    /// Returns true if the expression is a Let, an If or a Lambda: those own blocks or bind
    /// variables, and must have exactly one parent.
    ///
    /// Cost: one entry.
    #[inline]
    pub fn binds(&self) -> bool {
        matches!(self, Expr::Let { .. } | Expr::If { .. } | Expr::Lambda { .. })
    }

    /// Returns the operand list, if the expression is a call or a tuple.
    ///
    /// Cost: one entry.
    #[inline]
    pub fn operand_list(&self) -> Option<OperandList> {
        match *self {
            Expr::CallOp { operands, .. } | Expr::Call { operands, .. } | Expr::Tuple(operands) => Some(operands),
            _ => None,
        }
    }
}
