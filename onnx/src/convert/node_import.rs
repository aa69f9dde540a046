//! A node, as seen by the conversion that imports it.

use std::fmt;

use anfora_ir::{
    Attr, AttrId, Body, Context, DType, Expr, ExprId, FunctionBuilder, Literal, Shape, TensorType, TypeId,
};

use super::{Conversion, Lowered};
use crate::error::{UnsupportedReason, because};
use crate::proto::{AttributeProto, NodeProto};

/// The largest rank that operators other than kept ones may have. Type rules take time linear in
/// the rank at every node.
pub(crate) const MAX_RANK: usize = 64;

/// A check of a call.
type CallCheck<'a> = dyn Fn(&Context, &Body, ExprId) -> Result<(), UnsupportedReason> + 'a;

/// A node, as seen by the conversion of its operator.
pub struct NodeImport<'a, 'm> {
    pub(crate) builder: &'a mut FunctionBuilder<'m>,
    pub(crate) row: &'a Conversion,
    pub(crate) node: &'a NodeProto,
    pub(crate) operands: &'a [ExprId],
    pub(crate) opset: i64,
    /// For each output, true if anything may use it.
    pub(crate) used_outputs: &'a [bool],
    /// Checks that a call with a single result could be written back.
    pub(crate) check: &'a CallCheck<'a>,
}

impl NodeImport<'_, '_> {
    /// Returns the tables of the module.
    pub fn cx(&mut self) -> &mut Context {
        self.builder.cx()
    }

    /// Returns a call of the operator that the row names.
    ///
    /// Cost: one node.
    ///
    /// # Errors
    /// Never fails; the type is that of an import rule's result.
    pub fn call(
        &self,
        operands: Vec<ExprId>,
        attrs: Vec<(&'static str, AttrId)>,
    ) -> Result<Lowered, UnsupportedReason> {
        Ok(Lowered::Call { op: self.row.native.clone(), operands, attrs })
    }

    /// Returns our operator that the row names.
    pub fn native(&self) -> &str {
        &self.row.native
    }

    /// Returns the row of the conversion.
    pub fn row(&self) -> &Conversion {
        self.row
    }

    /// Returns the version of the operator's domain.
    pub fn opset(&self) -> i64 {
        self.opset
    }

    /// Returns the number of operands, including those that are left out.
    pub fn operand_count(&self) -> usize {
        self.operands.len()
    }

    /// Returns an operand; `None` if it is left out.
    pub fn operand(&mut self, i: usize) -> Option<ExprId> {
        let operand = *self.operands.get(i)?;
        (self.builder.body().expr(operand) != Expr::None).then_some(operand)
    }

    /// Returns an operand, which is `none` if it is left out.
    pub fn operand_or_none(&mut self, i: usize) -> ExprId {
        match self.operands.get(i) {
            Some(&operand) => operand,
            None => self.builder.editor().none(),
        }
    }

    /// Returns an operand that the operator requires.
    ///
    /// # Errors
    /// If it is left out.
    pub fn required(&mut self, i: usize) -> Result<ExprId, UnsupportedReason> {
        self.operand(i).ok_or_else(|| because(format!("input {i} is left out")))
    }

    /// Returns true if the node names an operand. A named operand is still left out if it is a
    /// parameter of the surrounding function that the call does not give.
    pub(crate) fn is_named(&self, i: usize) -> bool {
        self.node.input.get(i).is_some_and(|name| !name.is_empty())
    }

    /// Returns all operands, including those that are left out.
    pub fn operands(&self) -> Vec<ExprId> {
        self.operands.to_vec()
    }

    /// Returns all operands.
    ///
    /// # Errors
    /// If one is left out.
    pub fn all_operands(&mut self) -> Result<Vec<ExprId>, UnsupportedReason> {
        let mut operands = Vec::with_capacity(self.operands.len());
        for i in 0..self.operands.len() {
            operands.push(self.required(i)?);
        }
        Ok(operands)
    }

    /// Returns the type of an operand.
    ///
    /// # Errors
    /// If it is left out.
    pub fn ty(&mut self, i: usize) -> Result<TypeId, UnsupportedReason> {
        let operand = self.required(i)?;
        Ok(self.builder.body().ty(operand))
    }

    /// Returns the tensor type of an operand.
    ///
    /// # Errors
    /// If it is not known to be a tensor.
    pub fn tensor(&mut self, i: usize) -> Result<&TensorType, UnsupportedReason> {
        let ty = self.ty(i)?;
        let tensor = self.builder.cx().types.as_tensor(ty);
        tensor.ok_or_else(|| because(format!("input {i} is not known to be a tensor")))
    }

    /// Returns the element type of an operand.
    ///
    /// # Errors
    /// If it is not known to be a tensor.
    pub fn dtype(&mut self, i: usize) -> Result<DType, UnsupportedReason> {
        Ok(self.tensor(i)?.dtype)
    }

    /// Returns the element type of an operand, which must be a floating-point type.
    ///
    /// # Errors
    /// If it is not a floating-point type, or the operand is not known to be a tensor.
    pub fn float_dtype(&mut self, i: usize) -> Result<DType, UnsupportedReason> {
        match self.dtype(i)? {
            dtype if dtype.is_float() => Ok(dtype),
            dtype => Err(because(format!("input {i} has elements of {dtype}"))),
        }
    }

    /// Returns the number of extents of an operand.
    ///
    /// # Errors
    /// If it is not known.
    pub fn rank(&mut self, i: usize) -> Result<usize, UnsupportedReason> {
        let shape = self.tensor(i)?.shape.as_ref();
        shape.map(|s| s.len()).ok_or_else(|| because(format!("the rank of input {i} is not known")))
    }

    /// Returns the extents of an operand, each if it is known.
    ///
    /// # Errors
    /// If the rank is not known.
    pub fn extents(&mut self, i: usize) -> Result<Vec<Option<i64>>, UnsupportedReason> {
        self.rank(i)?;
        let shape = self.tensor(i)?.shape.clone().unwrap_or_default();
        let dims = &self.builder.cx().types.dims;
        Ok(shape.iter().map(|&d| dims.as_constant(d)).collect())
    }

    /// Returns the extents of an operand.
    ///
    /// # Errors
    /// If an extent is not known.
    pub fn static_shape(&mut self, i: usize) -> Result<Shape, UnsupportedReason> {
        let ty = self.ty(i)?;
        let shape = self.builder.cx().types.static_shape(ty);
        shape.ok_or_else(|| because(format!("not all extents of input {i} are known")))
    }

    /// Returns the value of an operand that is a constant.
    ///
    /// # Errors
    /// If it is not a constant.
    pub fn literal(&mut self, i: usize) -> Result<&Literal, UnsupportedReason> {
        let operand = self.required(i)?;
        let id = self.builder.body().as_literal(operand);
        let id = id.ok_or_else(|| because(format!("input {i} is not a constant")))?;
        Ok(self.builder.cx().literals.get(id))
    }

    /// Returns the value of an operand that is a constant list of at most as many integers as a
    /// tensor may have extents.
    ///
    /// # Errors
    /// If it is not such a list.
    pub fn ints_operand(&mut self, i: usize) -> Result<Vec<i64>, UnsupportedReason> {
        let literal = self.literal(i)?;
        let is_list = literal.rank() <= 1 && literal.element_count() <= MAX_RANK;
        let list = if is_list { literal.to_i64s() } else { None };
        list.ok_or_else(|| because(format!("input {i} is not a list of at most {MAX_RANK} integers")))
    }

    /// Returns a constant as an operand.
    pub fn constant(&mut self, literal: Literal) -> ExprId {
        self.builder.literal(literal)
    }

    /// Binds a call of one of our operators before the node's own binding and returns the variable.
    /// The binding stays, unused, if the node is kept unchanged in the end.
    ///
    /// Cost: one node.
    ///
    /// # Errors
    /// If the registry has no such operator, the operator does not take these operands, or the call
    /// could not be written back.
    pub fn step(
        &mut self,
        op: &str,
        operands: &[ExprId],
        attrs: &[(&str, AttrId)],
    ) -> Result<ExprId, UnsupportedReason> {
        let id = self.builder.cx().ops.find(op);
        let id = id.ok_or_else(|| because(format!("the registry has no `{op}`")))?;
        let attrs = self.builder.named_attrs(attrs);
        let editor = &mut self.builder.editor();
        let call = editor.call_op(id, operands, attrs).map_err(|e| because(e.to_string()))?;
        (self.check)(editor.cx, editor.body, call)?;
        Ok(self.builder.bind("", call))
    }

    /// Returns the expression for an operand that is left out.
    pub fn none(&mut self) -> ExprId {
        self.builder.editor().none()
    }

    /// Returns the number of outputs that the node lists.
    pub fn output_count(&self) -> usize {
        self.node.output.len()
    }

    /// Returns true if the node has an output of this number and anything may use it.
    pub fn is_output_used(&self, i: usize) -> bool {
        self.used_outputs.get(i).is_some_and(|&u| u)
    }

    /// Returns the attributes of the node.
    pub fn node_attributes(&self) -> &[AttributeProto] {
        &self.node.attribute
    }

    /// Returns an attribute of the node. It has the type that the row states.
    ///
    /// Cost: one node.
    pub fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.node.attribute.iter().find(|a| a.name() == name)
    }

    /// Returns an integer attribute.
    ///
    /// Cost: one node.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.attribute(name).map(|a| a.i.unwrap_or(0))
    }

    /// Returns a float attribute.
    ///
    /// Cost: one node.
    pub fn float(&self, name: &str) -> Option<f32> {
        self.attribute(name).map(|a| a.f.unwrap_or(0.0))
    }

    /// Returns an attribute that is a list of integers.
    ///
    /// Cost: one node.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        self.attribute(name).map(|a| a.ints.as_slice())
    }

    /// Returns the value of an attribute that the operator requires.
    ///
    /// Cost: one node.
    ///
    /// # Errors
    /// If it is `None`.
    pub fn needed<T>(&self, name: &str, value: Option<T>) -> Result<T, UnsupportedReason> {
        value.ok_or_else(|| because(format!("the attribute `{name}` is missing")))
    }

    /// Returns the error for an attribute with a value that our operators do not support.
    ///
    /// Cost: one node.
    ///
    /// # Errors
    /// Always.
    pub fn unknown_value(&self, name: &str, value: impl fmt::Display) -> Result<Lowered, UnsupportedReason> {
        Err(because(format!("the attribute `{name}` is `{value}`")))
    }

    /// Returns the error for an operand whose element type our operator treats differently or not
    /// at all.
    ///
    /// # Errors
    /// Always.
    pub fn unknown_elements(&mut self, i: usize) -> Result<Lowered, UnsupportedReason> {
        let dtype = self.dtype(i)?;
        Err(because(format!("input {i} has elements of {dtype}")))
    }

    /// Returns a string attribute; `None` also if it is not UTF-8.
    ///
    /// Cost: one node.
    pub fn str(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.attribute(name)?.s.as_deref().unwrap_or_default()).ok()
    }

    /// Returns a float attribute for one of our operators. For elements of at most 32 bits it is
    /// the shortest decimal number that rounds to the same `f32`, which gives the same bits. For
    /// `float64` it is exactly the `f32`.
    pub fn float_attr(&mut self, value: f32, dtype: DType) -> AttrId {
        self.cx().float_attr(float_meant(value, dtype))
    }

    /// Returns a boolean attribute for one of our operators.
    pub fn bool_attr(&mut self, value: bool) -> AttrId {
        self.cx().attr(Attr::Bool(value))
    }
}

/// Returns the number that a float attribute of a file stands for, given the element type of the
/// operands.
pub(crate) fn float_meant(value: f32, dtype: DType) -> f64 {
    let exact = f64::from(value);
    let short = value.to_string().parse().unwrap_or(exact);
    let same = (short as f32).to_bits() == value.to_bits();
    if dtype == DType::Float64 || !same { exact } else { short }
}

anfora_ir::brief_debug! { NodeImport<'_, '_>; }
