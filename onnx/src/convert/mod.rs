//! Which operator of ONNX is which operator of ours: a table, one row each, open to the embedder.
//!
//! A row says for which versions of the operators it holds. Its import rule gives the meaning of a node in our operators, or `None` where that
//! cannot be said exactly; the node is then kept as it is. Its export rule writes the call of an operator of ours as nodes.

mod activation;
mod cast;
mod constant;
mod control;
pub(crate) mod element_types;
mod elementwise;
mod extents;
mod image;
mod index;
mod loss;
mod matrix;
mod normalization;
mod order;
mod pad;
mod pooling;
mod quantization;
mod reduction;
mod same;
mod scan;
mod scatter;
mod shape;
mod softmax;
mod version_6;
mod window;

use std::borrow::Cow;
use std::ops::RangeInclusive;

use anfora_ir::{AttrId, DType, ExprId, Literal};
use bytes::Bytes;
use rustc_hash::FxHashMap;

pub(crate) use constant::{FILL_SINCE, constant_attribute};

use crate::error::ExportProblem;
use crate::export::NodeExport;
use crate::import::{Kept, NodeImport};
use crate::opaque::is_standard;
use crate::proto::{AttributeProto, AttributeType, TensorProto};

/// The meaning of a node, or why it has to be kept as it is.
pub type ImportRule = fn(&mut NodeImport<'_, '_>) -> Result<Lowered, Kept>;

/// Writes a call as nodes.
pub type ExportRule = fn(&mut NodeExport<'_>) -> Result<(), ExportProblem>;

/// What a node becomes.
#[derive(Clone, Debug)]
pub enum Lowered {
    /// A call of an operator of ours. If it returns a tuple, the fields are the node's outputs.
    Call {
        /// The operator.
        op: Cow<'static, str>,
        /// Its operands.
        operands: Vec<ExprId>,
        /// Its attributes.
        attrs: Vec<(&'static str, AttrId)>,
    },
    /// A value that there is already.
    Operand(ExprId),
    /// A constant.
    Constant(Literal),
}

/// What operands a row takes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Operands {
    /// Tensors of element types that the kernels compute with.
    Computed,
    /// Any values.
    Any,
}

/// One row of the table.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// Domain of the ONNX operator; empty for the standard one.
    pub domain: Cow<'static, str>,
    /// The ONNX operator.
    pub onnx: Cow<'static, str>,
    /// Versions of the domain for which the row holds.
    pub opsets: RangeInclusive<i64>,
    /// Attributes that the import rule understands. A node with another one, or one of another type, is kept as it is.
    pub attributes: &'static [(&'static str, AttributeType)],
    /// Attributes that do not change the result, and are carried along.
    pub carried: &'static [&'static str],
    /// What operands a node must have; one with others is kept as it is.
    pub operands: Operands,
    /// From a node.
    pub import: Option<ImportRule>,
    /// Our operator.
    pub native: Cow<'static, str>,
    /// To nodes.
    pub export: Option<ExportRule>,
}

impl Conversion {
    /// A row between an operator of the standard domain and one of ours that does nothing yet. The methods below say the rest:
    ///
    /// Cost: one node.
    ///
    /// ```
    /// use anfora_onnx::convert::{Conversion, Conversions};
    /// use anfora_onnx::proto::AttributeType;
    ///
    /// let mut table = Conversions::default();
    /// let row = Conversion::new("Squareplus", 1..=3, "acme.squareplus");
    /// table.register(row.domain("com.acme").same(&[("b", AttributeType::Float)]));
    /// ```
    pub const fn new(onnx: &'static str, opsets: RangeInclusive<i64>, native: &'static str) -> Conversion {
        Conversion {
            domain: Cow::Borrowed(""),
            onnx: Cow::Borrowed(onnx),
            opsets,
            attributes: &[],
            carried: &[],
            operands: Operands::Computed,
            import: None,
            native: Cow::Borrowed(native),
            export: None,
        }
    }

    /// Of an operator of another domain, such as `com.acme`.
    ///
    /// Cost: one node.
    #[must_use]
    pub fn domain(self, domain: impl Into<Cow<'static, str>>) -> Conversion {
        Conversion { domain: domain.into(), ..self }
    }

    /// For operators that are the same on both sides: operands, results, and the attributes of these names and types, of which the row of
    /// our operator has those names too. An attribute that is left out has the default that our row gives it, which has to be the one of
    /// the ONNX operator.
    ///
    /// Cost: one node.
    #[must_use]
    pub fn same(self, attributes: &'static [(&'static str, AttributeType)]) -> Conversion {
        self.attributes(attributes).import(same::import).export(same::export)
    }

    /// With an import rule.
    #[must_use]
    pub fn import(mut self, rule: ImportRule) -> Conversion {
        self.import = Some(rule);
        self
    }

    /// With an export rule.
    #[must_use]
    pub fn export(mut self, rule: ExportRule) -> Conversion {
        self.export = Some(rule);
        self
    }

    /// With attributes that the import rule understands.
    ///
    /// Cost: one node.
    #[must_use]
    pub fn attributes(mut self, attributes: &'static [(&'static str, AttributeType)]) -> Conversion {
        self.attributes = attributes;
        self
    }

    /// With attributes that are carried along.
    ///
    /// Cost: one node.
    #[must_use]
    pub fn carried(mut self, carried: &'static [&'static str]) -> Conversion {
        self.carried = carried;
        self
    }

    /// With operands of any type.
    #[must_use]
    pub fn any_operands(mut self) -> Conversion {
        self.operands = Operands::Any;
        self
    }
}

/// What stands for our `if`, which is no operator.
pub(crate) const BRANCHES: &str = "if";

/// The versions of the standard operators of which the rows of this crate know the meaning, unless they say otherwise. Most hold for version 6 too
/// ([`version_6`]).
pub(crate) const OPSETS: RangeInclusive<i64> = 7..=NEWEST;
const NEWEST: i64 = 28;
/// The format's number of float32.
const FLOAT: i32 = 1;
/// The format's number of int64.
const INT64: i32 = 7;

/// The table.
#[derive(Clone, Debug)]
pub struct Conversions {
    rows: Vec<Conversion>,
    by_onnx: FxHashMap<String, Vec<usize>>,
    by_native: FxHashMap<String, Vec<usize>>,
}

impl Default for Conversions {
    /// The rows of this crate.
    fn default() -> Conversions {
        let mut table = Conversions::empty();
        elementwise::register(&mut table);
        extents::register(&mut table);
        activation::register(&mut table);
        cast::register(&mut table);
        reduction::register(&mut table);
        scan::register(&mut table);
        order::register(&mut table);
        shape::register(&mut table);
        index::register(&mut table);
        image::register(&mut table);
        scatter::register(&mut table);
        pad::register(&mut table);
        constant::register(&mut table);
        control::register(&mut table);
        matrix::register(&mut table);
        window::register(&mut table);
        pooling::register(&mut table);
        quantization::register(&mut table);
        normalization::register(&mut table);
        softmax::register(&mut table);
        loss::register(&mut table);
        version_6::register(&mut table);
        table
    }
}

impl Conversions {
    /// A table without rows: every node is kept as it is.
    pub fn empty() -> Conversions {
        Conversions { rows: Vec::new(), by_onnx: FxHashMap::default(), by_native: FxHashMap::default() }
    }

    /// Adds a row, which counts before those that are there.
    pub fn register(&mut self, mut row: Conversion) {
        if is_standard(&row.domain) {
            row.domain = Cow::Borrowed("");
        }
        let index = self.rows.len();
        self.by_onnx.entry(row.onnx.to_string()).or_default().push(index);
        self.by_native.entry(row.native.to_string()).or_default().push(index);
        self.rows.push(row);
    }

    /// The rows in the order in which they were added.
    pub fn rows(&self) -> &[Conversion] {
        &self.rows
    }

    /// The row that imports an operator.
    ///
    /// # Errors
    /// If there is none; with the reason.
    pub(crate) fn for_node(&self, domain: &str, op_type: &str, opset: i64) -> Result<&Conversion, String> {
        let indices = self.by_onnx.get(op_type).map_or(&[][..], Vec::as_slice);
        let mut rows =
            indices.iter().rev().map(|&i| &self.rows[i]).filter(|r| r.import.is_some() && r.domain == domain);
        let Some(first) = rows.clone().next() else { return Err("there is no operator of ours for it".to_owned()) };
        rows.find(|r| r.opsets.contains(&opset)).ok_or_else(|| {
            let rows = rows.clone().chain([first]);
            let (from, to) =
                rows.fold((i64::MAX, i64::MIN), |(from, to), r| (from.min(*r.opsets.start()), to.max(*r.opsets.end())));
            format!("its meaning is known in versions {from} to {to}")
        })
    }

    /// The row that exports an operator of ours to a version of the standard ones.
    ///
    /// # Errors
    /// If there is none, or none for that version.
    pub(crate) fn for_call(
        &self,
        native: &str,
        opset_of: impl Fn(&str) -> i64,
    ) -> Result<(&Conversion, ExportRule), ExportProblem> {
        let indices = self.by_native.get(native).map_or(&[][..], Vec::as_slice);
        let rows = indices.iter().rev().map(|&i| &self.rows[i]);
        let mut other = None;
        for row in rows {
            let Some(rule) = row.export else { continue };
            let present = opset_of(&row.domain);
            if row.opsets.contains(&present) {
                return Ok((row, rule));
            }
            other = Some((row, present));
        }
        let operator = native.to_owned();
        Err(match other {
            Some((row, present)) => {
                let domain = row.domain.to_string();
                ExportProblem::Opset { operator, domain, needed: *row.opsets.start(), present }
            }
            None => ExportProblem::Operator(operator),
        })
    }
}

/// The operands as they are, no attributes.
fn import_direct(n: &mut NodeImport<'_, '_>) -> Result<Lowered, Kept> {
    let operands = n.all_operands()?;
    n.call(operands, Vec::new())
}

/// The operands as they are, no attributes.
fn export_direct(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let inputs = n.operands()?;
    n.emit(n.onnx(), inputs, Vec::new());
    Ok(())
}

/// The name of an operand that is an integer tensor, as int64.
fn as_int64(n: &mut NodeExport<'_>, i: usize) -> Result<String, ExportProblem> {
    let name = n.operand(i)?;
    match n.dtype(i) {
        Some(DType::Int64) => Ok(name),
        _ => Ok(n.step("Cast", vec![name], vec![int_attribute("to", i64::from(INT64))])),
    }
}

/// The name of an operand of indices: int32 and int64 as they are, other integers as int64.
fn as_indices(n: &mut NodeExport<'_>, i: usize) -> Result<String, ExportProblem> {
    if n.dtype(i) == Some(DType::Int32) { n.operand(i) } else { as_int64(n, i) }
}

/// The names of all operands, of which the second, if it is there, has to be of int64.
fn with_int64(n: &mut NodeExport<'_>) -> Result<Vec<String>, ExportProblem> {
    let mut inputs = n.operands()?;
    if let Some(second) = inputs.get_mut(1) {
        *second = as_int64(n, 1)?;
    }
    Ok(inputs)
}

/// The names of all operands, of which the second are indices.
fn with_indices(n: &mut NodeExport<'_>) -> Result<Vec<String>, ExportProblem> {
    let mut inputs = n.operands()?;
    if let Some(indices) = inputs.get_mut(1) {
        *indices = as_indices(n, 1)?;
    }
    Ok(inputs)
}

/// The name of an operand of one element, which has the rank that it should have.
fn with_rank(n: &mut NodeExport<'_>, i: usize, name: String, rank: usize) -> Result<String, ExportProblem> {
    if n.partial_extents(i).is_some_and(|e| e.len() == rank) {
        return Ok(name);
    }
    let shape = n.ints_constant(&vec![1; rank], usize::MAX)?;
    Ok(n.step("Reshape", vec![name, shape], Vec::new()))
}

/// An attribute of a call that is a float. The format has float32 for it: among elements of float64
/// that has to be the very number, but for the default of our operator, which is that of the format:
/// it stands for the float32.
fn exact_float(n: &NodeExport<'_>, name: &'static str, value: f64) -> Result<AttributeProto, ExportProblem> {
    let held = f64::from(value as f32);
    // Attributes that equal their default are left out.
    let is_default = n.attrs().raw(name).is_none() && n.attrs().float(name) == Some(value);
    let is_rounded = held.to_bits() != value.to_bits() && !value.is_nan();
    if n.dtype(0) == Some(DType::Float64) && is_rounded && !is_default {
        return Err(ExportProblem::Rounded { operator: n.native().to_owned(), name, value, held });
    }
    Ok(float_attribute(name, value))
}

/// An attribute that is an integer.
///
/// Cost: one node.
pub fn int_attribute(name: &str, value: i64) -> AttributeProto {
    let mut a = AttributeProto { name: Some(name.to_owned()), i: Some(value), ..AttributeProto::default() };
    a.set_type(AttributeType::Int);
    a
}

/// An attribute that is a float.
///
/// Cost: one node.
pub fn float_attribute(name: &str, value: f64) -> AttributeProto {
    let mut a = AttributeProto { name: Some(name.to_owned()), f: Some(value as f32), ..AttributeProto::default() };
    a.set_type(AttributeType::Float);
    a
}

/// An attribute that is a list of floats.
///
/// Cost: one loop.
pub fn floats_attribute(name: &str, values: &[f64]) -> AttributeProto {
    let floats = values.iter().map(|&v| v as f32).collect();
    let mut a = AttributeProto { name: Some(name.to_owned()), floats, ..AttributeProto::default() };
    a.set_type(AttributeType::Floats);
    a
}

/// An attribute that is a list of integers.
///
/// Cost: one loop.
pub fn ints_attribute(name: &str, values: &[i64]) -> AttributeProto {
    let mut a = AttributeProto { name: Some(name.to_owned()), ints: values.to_vec(), ..AttributeProto::default() };
    a.set_type(AttributeType::Ints);
    a
}

/// An attribute that is a string.
///
/// Cost: one node.
pub fn str_attribute(name: &str, value: &str) -> AttributeProto {
    let s = Some(Bytes::copy_from_slice(value.as_bytes()));
    let mut a = AttributeProto { name: Some(name.to_owned()), s, ..AttributeProto::default() };
    a.set_type(AttributeType::String);
    a
}

/// An attribute that is a list of strings.
///
/// Cost: one loop.
pub fn strs_attribute(name: &str, values: &[&str]) -> AttributeProto {
    let strings = values.iter().map(|v| Bytes::copy_from_slice(v.as_bytes())).collect();
    let mut a = AttributeProto { name: Some(name.to_owned()), strings, ..AttributeProto::default() };
    a.set_type(AttributeType::Strings);
    a
}

/// An attribute that is a tensor.
///
/// Cost: one node.
pub fn tensor_attribute(name: &str, value: TensorProto) -> AttributeProto {
    let mut a = AttributeProto { name: Some(name.to_owned()), t: Some(Box::new(value)), ..AttributeProto::default() };
    a.set_type(AttributeType::Tensor);
    a
}
