//! Operators as data: one row for each, in a registry that is a value.

use std::cell::Cell;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{AttrId, AttrsId, DimId, ExprId, LiteralId, OpId, TypeId};
use crate::core::expr::Expr;
use crate::ops::facts::OpFacts;
use crate::ops::op_def::OpDef;
use crate::ops::op_kinds::{Arity, AttrDefault, AttrKind, FusionPattern, OpPurity};
use crate::ops::register_error::RegisterError;
use crate::report::diagnostic::Diagnostic;
use crate::report::diagnostics::{Diagnostics, IntoDiagnostics};
use crate::report::suggest::did_you_mean;
use crate::tables::attrs::Attr;
use crate::tables::dtype::DType;
use crate::tables::literal::Literal;
use crate::tables::parallel::layers::{Layer, Layers};

/// A rule that returns the type of a call's result, from the types (and constant values) of its
/// operands. The type must depend only on the operands and the attributes, since the types of some
/// calls are remembered.
pub type TypeRule = fn(&mut TypeCall<'_>) -> Result<TypeId, TypeError>;

/// A function that returns the purity of the opaque operator with a name.
pub type OpaquePurity = fn(&str) -> OpPurity;

/// A rule that returns the results of a call if they follow from the types of its operands; `None`
/// if they do not. An operand need not be a constant.
pub type KnownByType = fn(&mut TypeCall<'_>) -> Option<Vec<Literal>>;

/// A rule that returns the elements of the results of a call, as far as they are known: for each
/// result (the fields, if the type of the call, which is the second argument, is a tuple) in
/// row-major order. `?` is an unknown element; a result without known elements has an empty list.
/// The rule is called only for small tensors of integers and `bool`. Its answer is passed to
/// [`Types::with_elements`](crate::Types::with_elements).
pub type ElementsRule = fn(&mut TypeCall<'_>, TypeId) -> Option<Vec<Vec<DimId>>>;

/// A rule that returns the fusion pattern of a call from its attributes, for operators whose calls
/// differ.
pub type FusionRule = fn(&AttrReader<'_>) -> FusionPattern;

/// A kernel, which returns the results of a call on constants: one, or the fields of the tuple that
/// the operator returns.
pub type Kernel = fn(&KernelCall<'_>) -> Result<Vec<Literal>, KernelError>;

/// A rule that returns an upper bound of the bytes that all results of a call take in full;
/// `usize::MAX` if it overflows. The bound depends on the operands, not on the type of the call,
/// and is cheap to compute compared with the kernel.
pub type SizeBound = fn(&KernelCall<'_>) -> usize;

/// A rule that returns the approximate number of steps of the kernel for a call: elements that it
/// reads, writes or computes with. The number saturates, and is cheap to compute compared with the
/// kernel.
pub type StepsRule = fn(&KernelCall<'_>) -> u64;

/// An operand as type rules see it.
#[derive(Copy, Clone, Debug)]
pub struct Operand {
    /// The type of the operand.
    pub ty: TypeId,
    /// The value, if the operand is a constant or its type includes all elements.
    pub literal: Option<LiteralId>,
    /// True if the operand is `none`: an optional operand that is left out.
    pub absent: bool,
}

/// A call whose type is to be inferred.
pub struct TypeCall<'a> {
    /// The tables of the module.
    pub cx: &'a mut Context,
    /// The operator.
    pub op: OpId,
    /// The attributes, checked against the row.
    pub attrs: AttrsId,
    /// The operands; their number agrees with the row. Their types include no elements.
    operands: &'a [Operand],
    /// The operands with their full types, elements included.
    operands_with_elements: &'a [Operand],
    /// True once the rule has asked for the value of a constant. Until then its answer depends on
    /// types and attributes alone.
    asked_for_value: Cell<bool>,
}

impl<'a> TypeCall<'a> {
    /// Returns a call. The number of operands must agree with the row of the operator.
    ///
    /// Cost: one entry.
    pub fn new(cx: &'a mut Context, op: OpId, operands: &'a [Operand], attrs: AttrsId) -> TypeCall<'a> {
        TypeCall::with_plain(cx, op, operands, operands, attrs)
    }

    /// Returns a call whose operands are given without their elements (`plain`) and with them.
    pub(crate) fn with_plain(
        cx: &'a mut Context,
        op: OpId,
        plain: &'a [Operand],
        operands_with_elements: &'a [Operand],
        attrs: AttrsId,
    ) -> TypeCall<'a> {
        TypeCall { cx, op, attrs, operands: plain, operands_with_elements, asked_for_value: Cell::new(false) }
    }

    /// Returns the number of operands, with those that are left out.
    pub fn count(&self) -> usize {
        self.operands.len()
    }

    /// Returns the type of an operand, without known elements; `None` if it is left out. See
    /// [`TypeCall::elements`].
    pub fn operand(&self, i: usize) -> Option<TypeId> {
        self.operands.get(i).filter(|o| !o.absent).map(|o| o.ty)
    }

    /// Returns the type of an operand, without known elements: `Any` if it is left out.
    ///
    /// # Panics
    /// If there is no such operand.
    pub fn ty(&self, i: usize) -> TypeId {
        self.operands[i].ty
    }

    /// Returns the type of an operand with known elements: `Any` if it is left out.
    ///
    /// # Panics
    /// If there is no such operand.
    pub fn ty_with_elements(&self, i: usize) -> TypeId {
        self.operands_with_elements[i].ty
    }

    /// Returns the operands, with the values of constants. Their types include no elements. The
    /// type of the call is then inferred again for each call, as it is if [`TypeCall::literal`] is
    /// called, or [`TypeCall::elements`] of an operand whose type includes no elements.
    pub fn operands(&self) -> &'a [Operand] {
        self.asked_for_value.set(true);
        self.operands
    }

    /// Returns the value of an operand, if it is a constant.
    pub fn literal(&self, i: usize) -> Option<&Literal> {
        self.asked_for_value.set(true);
        Some(self.cx.literals.get(self.operands.get(i)?.literal?))
    }

    /// Returns the elements of an operand in row-major order, with `?` for unknown elements; `None`
    /// if no element is known, or if it is not a small tensor of integers or `bool`. The elements
    /// of a constant are constants.
    pub fn elements(&mut self, i: usize) -> Option<SmallVec<[DimId; 8]>> {
        let operand = *self.operands_with_elements.get(i)?;
        let mut ty = operand.ty;
        if !self.cx.types.has_elements(ty) {
            self.asked_for_value.set(true);
            if let Some(literal) = operand.literal {
                ty = self.cx.literal_type(literal);
            }
        }
        match self.cx.types.elements(ty) {
            Some(elements) => Some(elements.into()),
            None => (self.cx.types.element_count(ty) == Some(0)).then(SmallVec::new),
        }
    }

    /// Returns true if the rule has asked for the value of a constant.
    pub(crate) fn has_asked_for_value(&self) -> bool {
        self.asked_for_value.get()
    }

    /// Returns the attributes, with the defaults of the row.
    pub fn attrs(&self) -> AttrReader<'_> {
        AttrReader { cx: self.cx, op: self.op, attrs: self.attrs }
    }
}

/// A call on constant operands.
pub struct KernelCall<'a> {
    /// The operands; `None` for an operand that is left out.
    pub operands: &'a [Option<&'a Literal>],
    /// The attributes, with the defaults of the row.
    pub attrs: AttrReader<'a>,
    /// The inferred type of the call.
    pub ty: TypeId,
}

impl KernelCall<'_> {
    /// Returns a required operand.
    ///
    /// # Errors
    /// If the operand is left out.
    pub fn operand(&self, i: usize) -> Result<&Literal, KernelError> {
        self.optional(i).ok_or_else(|| KernelError::new(format!("operand {i} is missing")))
    }

    /// Returns an optional operand; `None` if it is left out.
    pub fn optional(&self, i: usize) -> Option<&Literal> {
        self.operands.get(i).copied().flatten()
    }
}

/// Reads attributes, with the defaults of the operator's row.
#[derive(Copy, Clone)]
pub struct AttrReader<'a> {
    /// The tables of the module.
    pub cx: &'a Context,
    /// The operator.
    pub op: OpId,
    /// The attributes.
    pub attrs: AttrsId,
}

impl<'a> AttrReader<'a> {
    fn default(&self, name: &str) -> Option<AttrDefault> {
        self.cx.ops.get(self.op).attrs.iter().find(|a| a.name == name).map(|a| a.default)
    }

    /// Returns the value of an attribute as given; `None` if it is left out.
    ///
    /// Cost: one entry.
    pub fn raw(&self, name: &str) -> Option<&'a Attr> {
        self.cx.find_attr(self.attrs, name).map(|id| self.cx.attrs.get(id))
    }

    /// Returns a boolean attribute.
    ///
    /// Cost: one entry.
    pub fn bool(&self, name: &str) -> Option<bool> {
        match self.raw(name) {
            Some(Attr::Bool(b)) => Some(*b),
            Some(_) => None,
            None => match self.default(name)? {
                AttrDefault::Bool(b) => Some(b),
                _ => None,
            },
        }
    }

    /// Returns an integer attribute.
    ///
    /// Cost: one entry.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.raw(name) {
            Some(Attr::Int(i)) => Some(*i),
            Some(_) => None,
            None => match self.default(name)? {
                AttrDefault::Int(i) => Some(i),
                _ => None,
            },
        }
    }

    /// Returns a float64 attribute; an integer is converted.
    ///
    /// Cost: one entry.
    pub fn float(&self, name: &str) -> Option<f64> {
        match self.raw(name) {
            Some(Attr::Float(bits)) => Some(f64::from_bits(*bits)),
            Some(Attr::Int(i)) => Some(*i as f64),
            Some(_) => None,
            None => match self.default(name)? {
                AttrDefault::Float(f) => Some(f),
                AttrDefault::Int(i) => Some(i as f64),
                _ => None,
            },
        }
    }

    /// Returns a string attribute.
    ///
    /// Cost: one entry.
    pub fn str(&self, name: &str) -> Option<&'a str> {
        match self.raw(name) {
            Some(Attr::Str(s)) => Some(self.cx.names.get(*s)),
            Some(_) => None,
            None => match self.default(name)? {
                AttrDefault::Str(s) => Some(s),
                _ => None,
            },
        }
    }

    /// Returns an attribute that is a list of integers.
    ///
    /// Cost: one entry.
    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        match self.cx.find_attr(self.attrs, name) {
            Some(id) => self.cx.attr_ints(id),
            None => match self.default(name)? {
                AttrDefault::Ints(i) => Some(i.to_vec()),
                _ => None,
            },
        }
    }

    /// Returns an attribute that is an element type.
    ///
    /// Cost: one entry.
    pub fn dtype(&self, name: &str) -> Option<DType> {
        match self.raw(name) {
            Some(Attr::DType(d)) => Some(*d),
            Some(_) => None,
            None => match self.default(name)? {
                AttrDefault::DType(d) => Some(d),
                _ => None,
            },
        }
    }

    /// Returns an attribute that is a type. An element type is returned only if it was interned as
    /// a rank-0 tensor type.
    ///
    /// Cost: one entry.
    pub fn ty(&self, name: &str) -> Option<TypeId> {
        match self.raw(name) {
            Some(Attr::Type(t)) => Some(*t),
            _ => None,
        }
    }

    /// Returns an attribute that is a constant tensor; scalars are rank-0 tensors.
    ///
    /// Cost: one entry.
    pub fn literal(&self, name: &str) -> Option<Literal> {
        Some(match self.raw(name)? {
            Attr::Literal(l) => self.cx.literals.get(*l).clone(),
            Attr::Int(i) => Literal::scalar(*i),
            Attr::Float(f) => Literal::scalar(f64::from_bits(*f)),
            Attr::Bool(b) => Literal::scalar(*b),
            _ => return None,
        })
    }
}

/// The reason why a call has no type.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{message}", prefix(.op.as_deref(), .message))]
pub struct TypeError {
    /// The message.
    pub message: String,
    /// The operator that is called, if it is a call of an operator.
    pub op: Option<Box<str>>,
    /// The number of the operand at fault, if there is one.
    pub operand: Option<u32>,
    /// A suggestion to the user.
    pub help: Option<String>,
}

impl TypeError {
    /// Returns an error about the call as a whole.
    ///
    /// Cost: linear in the text.
    pub fn new(message: impl Into<String>) -> TypeError {
        TypeError { message: message.into(), op: None, operand: None, help: None }
    }

    /// Returns an error about one operand.
    ///
    /// Cost: linear in the text.
    pub fn operand(operand: usize, message: impl Into<String>) -> TypeError {
        TypeError { message: message.into(), op: None, operand: u32::try_from(operand).ok(), help: None }
    }

    /// Returns the error with a suggestion.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> TypeError {
        self.help = Some(help.into());
        self
    }

    /// Returns the error as one of a call of this operator.
    ///
    /// Cost: one entry.
    #[must_use]
    pub fn of_op(mut self, op: impl Into<Box<str>>) -> TypeError {
        self.op = Some(op.into());
        self
    }
}

/// Returns the prefix with the operator, for a message that does not name it.
fn prefix(op: Option<&str>, message: &str) -> String {
    match op {
        Some(op) if !message.contains(&format!("`{op}`")) => format!("`{op}`: "),
        _ => String::new(),
    }
}

/// The reason why a kernel returned no result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct KernelError {
    /// The message.
    pub message: String,
    is_fault: bool,
}

impl KernelError {
    /// Returns an error about the operands.
    ///
    /// Cost: linear in the text.
    pub fn new(message: impl Into<String>) -> KernelError {
        KernelError { message: message.into(), is_fault: false }
    }

    /// Returns an error about the operator's row.
    pub(crate) fn fault(message: impl Into<String>) -> KernelError {
        KernelError { message: message.into(), is_fault: true }
    }

    /// Returns true if the operator's row is at fault, and not the operands: its kernel is missing,
    /// or it panicked, or it returned results that are not of the type.
    pub fn is_fault(&self) -> bool {
        self.is_fault
    }
}

/// The operators that programs may use, and the namespaces in which operators are accepted without
/// a row.
#[derive(Clone, Default)]
pub struct OpRegistry {
    rows: Vec<OpDef>,
    /// The facts of each row, kept apart so that a walk reads two bytes for an operator instead of
    /// a row.
    facts: Vec<OpFacts>,
    by_name: FxHashMap<String, OpId>,
    opaque_namespaces: Vec<(String, OpaquePurity)>,
}

impl OpRegistry {
    /// Returns a registry without operators.
    pub fn new() -> OpRegistry {
        OpRegistry::default()
    }

    /// Adds an operator and returns its id. Programs with it are then parsed, typed, printed,
    /// folded, fused and interpreted by its row.
    ///
    /// # Errors
    /// If the name is taken, or in a namespace declared opaque, if the row contradicts itself, or
    /// if there are too many operators.
    pub fn register(&mut self, row: OpDef) -> Result<OpId, RegisterError> {
        row.check()?;
        if let Some((namespace, _)) = row.name.split_once('.')
            && self.opaque_purity(namespace).is_some()
        {
            return Err(RegisterError::Opaque { operator: row.name.to_string(), namespace: namespace.to_string() });
        }
        if self.by_name.contains_key(row.name.as_ref()) {
            return Err(RegisterError::Duplicate(row.name.into_owned()));
        }
        let id = OpId::new(self.rows.len()).ok_or(RegisterError::TooMany)?;
        self.by_name.insert(row.name.to_string(), id);
        self.facts.push(row.facts());
        self.rows.push(row);
        Ok(id)
    }

    /// Accepts operators `namespace.…` without a row. They are kept, typed by annotation and never
    /// folded.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If an operator of the namespace is registered.
    pub fn declare_opaque(&mut self, namespace: &str) -> Result<(), RegisterError> {
        self.declare_opaque_with(namespace, |_| OpPurity::Pure)
    }

    /// Declares a namespace as [`OpRegistry::declare_opaque`] does, for operators that are not all
    /// pure. `purity` returns the purity for a name, namespace included. Replaces earlier
    /// declarations of the namespace.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If an operator of the namespace is registered.
    pub fn declare_opaque_with(&mut self, namespace: &str, purity: OpaquePurity) -> Result<(), RegisterError> {
        let is_inside = |row: &&OpDef| row.name.split_once('.').is_some_and(|(n, _)| n == namespace);
        if let Some(row) = self.rows.iter().find(is_inside) {
            return Err(RegisterError::Opaque { operator: row.name.to_string(), namespace: namespace.to_string() });
        }
        self.opaque_namespaces.retain(|(n, _)| n != namespace);
        self.opaque_namespaces.push((namespace.to_string(), purity));
        Ok(())
    }

    fn opaque_purity(&self, namespace: &str) -> Option<OpaquePurity> {
        self.opaque_namespaces.iter().find(|(n, _)| n == namespace).map(|&(_, p)| p)
    }

    /// Returns the rows in the order of registration.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (OpId, &OpDef)> {
        self.rows.iter().enumerate().map(|(i, r)| (OpId::new(i).expect("registration bounds the number of rows"), r))
    }

    /// Returns the operator with a name.
    ///
    /// Cost: linear in the text.
    pub fn find(&self, name: &str) -> Option<OpId> {
        self.by_name.get(name).copied()
    }
}

/// The operators of a module: those of the registry, and the opaque operators that the module uses.
#[derive(Clone)]
pub struct OpTable {
    registry: Arc<OpRegistry>,
    pub(crate) opaque: Layers<Opaque>,
}

/// The opaque operators that a module uses.
#[derive(Clone, Default)]
pub(crate) struct Opaque {
    pub(crate) rows: Vec<OpDef>,
    by_name: FxHashMap<String, OpId>,
}

fn opaque_rule(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    Ok(call.cx.types.any())
}

impl OpTable {
    /// Returns a table of the operators of a registry.
    pub fn new(registry: Arc<OpRegistry>) -> OpTable {
        OpTable { registry, opaque: Layers::default() }
    }

    /// Returns the registry.
    pub fn registry(&self) -> &Arc<OpRegistry> {
        &self.registry
    }

    /// Returns the row of an operator.
    #[inline]
    pub fn get(&self, op: OpId) -> &OpDef {
        let i = op.index();
        match self.registry.rows.get(i) {
            Some(row) => row,
            None => self.opaque.entry(i - self.registry.rows.len(), |opaque| &opaque.rows),
        }
    }

    /// Returns the properties of an operator that walks need at every call, in constant time.
    #[inline]
    pub fn facts(&self, op: OpId) -> OpFacts {
        match self.registry.facts.get(op.index()) {
            Some(&facts) => facts,
            None => self.opaque_facts(op),
        }
    }

    #[cold]
    fn opaque_facts(&self, op: OpId) -> OpFacts {
        self.get(op).facts()
    }

    /// Returns the number of operators: rows of the registry, then opaque ones.
    pub fn len(&self) -> usize {
        self.registry.rows.len() + self.opaque.len()
    }

    /// Returns true if there are no operators.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if no row of the registry describes the operator.
    #[inline]
    pub fn is_opaque(&self, op: OpId) -> bool {
        op.index() >= self.registry.rows.len()
    }

    /// Returns the operator with a name: a row of the registry or, in a namespace declared opaque,
    /// an opaque operator. Its purity is that of the declaration, unless [`OpTable::opaque`] made
    /// it before with another one.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If there is no such operator; with a message and a suggestion.
    pub fn resolve(&mut self, name: &str) -> Result<OpId, TypeError> {
        if let Some(id) = self.find(name) {
            return Ok(id);
        }
        if let Some((namespace, _)) = name.split_once('.')
            && let Some(purity) = self.registry.opaque_purity(namespace)
        {
            return self.opaque(name, purity(name));
        }
        let help = did_you_mean(name, self.registry.rows.iter().map(|r| r.name.as_ref()));
        let error = TypeError::new(format!("unknown operator `{name}`"));
        Err(match help {
            Some(h) => error.with_help(format!("did you mean `{h}`?")),
            None => error,
        })
    }

    /// Returns the operator with a name, if it is in the registry or was used before.
    ///
    /// Cost: linear in the text.
    pub fn find(&self, name: &str) -> Option<OpId> {
        self.registry.find(name).or_else(|| {
            let Layers { frozen, own, .. } = &self.opaque;
            let frozen = frozen.as_ref().and_then(|opaque| opaque.by_name.get(name));
            frozen.or_else(|| own.by_name.get(name)).copied()
        })
    }

    /// Returns the opaque operator with a name, made if there is none.
    ///
    /// Cost: one entry.
    ///
    /// # Errors
    /// If there are too many operators.
    pub fn opaque(&mut self, name: &str, purity: OpPurity) -> Result<OpId, TypeError> {
        if let Some(id) = self.find(name) {
            return Ok(id);
        }
        let id = OpId::new(self.len()).ok_or_else(|| TypeError::new(RegisterError::TooMany.to_string()))?;
        let opaque = &mut self.opaque.own;
        let row = OpDef::new(name.to_string(), "kept as it is", Arity::at_least(0), opaque_rule);
        opaque.rows.push(OpDef { purity, may_fail: true, ..row });
        opaque.by_name.insert(name.to_string(), id);
        Ok(id)
    }

    /// Returns the number of frozen operators.
    pub(crate) fn frozen_len(&self) -> usize {
        self.registry.rows.len() + self.opaque.start
    }

    /// Takes the operators that were added since the table was frozen.
    pub(crate) fn take_own(&mut self) -> OpTable {
        OpTable { registry: self.registry.clone(), opaque: self.opaque.take_own() }
    }
}

impl Layer for Opaque {
    fn count(&self) -> usize {
        self.rows.len()
    }

    fn push_all(&mut self, over: Opaque) {
        self.rows.extend(over.rows);
        self.by_name.extend(over.by_name);
    }
}

impl Context {
    /// Checks the attributes of a call against the operator's row and returns them in one form:
    /// attributes that equal their default are removed, and integers are converted where floats are
    /// required. Opaque operators take any attributes.
    ///
    /// Cost: one entry.
    ///
    /// # Errors
    /// If an attribute is unknown, of the wrong kind, or required and missing. The second part is
    /// the name of the attribute at fault, if it was given.
    pub fn check_op_attrs(&mut self, op: OpId, attrs: AttrsId) -> Result<AttrsId, (TypeError, Option<String>)> {
        if attrs == self.attrs.empty() && !self.ops.facts(op).requires_attrs() || self.ops.is_opaque(op) {
            return Ok(attrs);
        }
        let (list, row) = (self.attrs.list(attrs), self.ops.get(op));
        let defs = row.attrs.clone();
        let op_name = row.name.clone();
        let list = list.to_vec();
        let mut out = Vec::with_capacity(list.len());
        for (key, value) in list {
            let name = self.names.get(key).to_string();
            let Some(def) = defs.iter().find(|d| d.name == name) else {
                let mut e = TypeError::new(format!("`{op_name}` has no attribute `{name}`"));
                if let Some(h) = did_you_mean(&name, defs.iter().map(|d| d.name)) {
                    e = e.with_help(format!("did you mean `{h}`?"));
                } else if !defs.is_empty() {
                    let all: Vec<&str> = defs.iter().map(|d| d.name).collect();
                    e = e.with_help(format!("it has {}", all.join(", ")));
                }
                return Err((e, Some(name)));
            };
            let Some(value) = self.coerce_attr(def.kind, value) else {
                let e = TypeError::new(format!("attribute `{name}` of `{op_name}` must be {}", def.kind.describe()));
                return Err((e, Some(name)));
            };
            if !self.is_default(def.default, value) {
                out.push((key, value));
            }
        }
        for def in defs.iter().filter(|d| d.default == AttrDefault::Required) {
            if !out.iter().any(|&(k, _)| self.names.get(k) == def.name) {
                return Err((TypeError::new(format!("`{op_name}` needs the attribute `{}`", def.name)), None));
            }
        }
        Ok(self.attrs(&out))
    }

    /// Returns the operands of a call in one form: `none` at the end is removed if the operator
    /// takes fewer operands. The operands of an opaque operator, or of an operator that takes any
    /// number, stay.
    pub(crate) fn given_operands<'a>(&self, body: &Body, op: OpId, operands: &'a [ExprId]) -> &'a [ExprId] {
        if operands.last().is_none_or(|&last| body.expr(last) != Expr::None) || self.ops.is_opaque(op) {
            return operands;
        }
        let Arity { min, max: Some(_) } = self.ops.get(op).arity else { return operands };
        let given = operands.iter().rposition(|&o| body.expr(o) != Expr::None).map_or(0, |last| last + 1);
        &operands[..given.max(min).min(operands.len())]
    }

    fn coerce_attr(&mut self, kind: AttrKind, value: AttrId) -> Option<AttrId> {
        let all = |cx: &Context, ok: fn(&Attr) -> bool| match cx.attrs.get(value) {
            Attr::List(items) => items.iter().all(|&i| ok(cx.attrs.get(i))),
            _ => false,
        };
        let fits = match (kind, self.attrs.get(value)) {
            (AttrKind::Float, &Attr::Int(i)) => return Some(self.float_attr(i as f64)),
            (AttrKind::Type, &Attr::DType(d)) => {
                let ty = self.types.scalar(d);
                return Some(self.attr(Attr::Type(ty)));
            }
            (AttrKind::Any, _)
            | (AttrKind::Bool, Attr::Bool(_))
            | (AttrKind::Int, Attr::Int(_))
            | (AttrKind::Float, Attr::Float(_))
            | (AttrKind::Str, Attr::Str(_))
            | (AttrKind::Shape, Attr::Shape(_))
            | (AttrKind::Literal, Attr::Literal(_) | Attr::Int(_) | Attr::Float(_) | Attr::Bool(_))
            | (AttrKind::DType, Attr::DType(_))
            | (AttrKind::Type, Attr::Type(_)) => true,
            (AttrKind::Ints, _) => all(self, |a| matches!(a, Attr::Int(_))),
            (AttrKind::Floats, _) => all(self, |a| matches!(a, Attr::Float(_) | Attr::Int(_))),
            (AttrKind::Strs, _) => all(self, |a| matches!(a, Attr::Str(_))),
            _ => false,
        };
        fits.then_some(value)
    }

    fn is_default(&self, default: AttrDefault, value: AttrId) -> bool {
        match (default, self.attrs.get(value)) {
            (AttrDefault::Absent, Attr::None) => true,
            (AttrDefault::Bool(d), Attr::Bool(v)) => d == *v,
            (AttrDefault::Int(d), Attr::Int(v)) => d == *v,
            (AttrDefault::Float(d), Attr::Float(v)) => d.to_bits() == *v,
            (AttrDefault::Str(d), Attr::Str(v)) => d == self.names.get(*v),
            (AttrDefault::DType(d), Attr::DType(v)) => d == *v,
            (AttrDefault::Ints(d), Attr::List(_)) => self.attr_ints(value).is_some_and(|v| v == d),
            _ => false,
        }
    }
}

impl IntoDiagnostics for TypeError {
    const MAY_END_WALK: bool = true;

    fn into_diagnostics(self) -> Diagnostics {
        let message = self.to_string();
        Diagnostic { help: self.help, ..Diagnostic::error(message) }.into()
    }
}

impl IntoDiagnostics for KernelError {
    fn into_diagnostics(self) -> Diagnostics {
        Diagnostic::error(format!("a kernel failed: {self}")).into()
    }
}
