//! The table of conversions between operators of ONNX and operators of ours, with one row each. An
//! embedder may add rows.
//!
//! A row holds for a range of versions of the ONNX operators. Its import rule expresses a node in
//! our operators, or returns the reason why that cannot be done exactly; such a node is kept
//! unchanged. Its export rule writes a call of our operator as nodes.

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
use crate::import::{NodeImport, UnsupportedReason};
use crate::opaque::is_standard;
use crate::proto::{AttributeProto, AttributeType, TensorProto};

/// Converts a node to our operators, or returns the reason why the node has to be kept unchanged.
pub type ImportRule = fn(&mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason>;

/// Writes a call as nodes.
pub type ExportRule = fn(&mut NodeExport<'_>) -> Result<(), ExportProblem>;

/// The result of importing a node.
#[derive(Clone, Debug)]
pub enum Lowered {
    /// A call of one of our operators. If it returns a tuple, the fields are the node's outputs.
    Call {
        /// The operator.
        op: Cow<'static, str>,
        /// Its operands.
        operands: Vec<ExprId>,
        /// Its attributes.
        attrs: Vec<(&'static str, AttrId)>,
    },
    /// An existing value.
    Operand(ExprId),
    /// A constant.
    Constant(Literal),
}

/// The kinds of operands that a row takes.
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
    /// The domain of the ONNX operator; empty for the standard domain.
    pub domain: Cow<'static, str>,
    /// The ONNX operator.
    pub onnx: Cow<'static, str>,
    /// The versions of the domain for which the row holds.
    pub opsets: RangeInclusive<i64>,
    /// The attributes that the import rule understands. A node with any other attribute, or with
    /// one of another type, is kept unchanged.
    pub attributes: &'static [(&'static str, AttributeType)],
    /// Attributes that do not affect the result and are preserved in the metadata.
    pub carried: &'static [&'static str],
    /// The operands that a node must have. A node with other operands is kept unchanged.
    pub operands: Operands,
    /// The rule that imports a node, if nodes are imported.
    pub import: Option<ImportRule>,
    /// Our operator.
    pub native: Cow<'static, str>,
    /// The rule that exports a call, if calls are exported.
    pub export: Option<ExportRule>,
}

impl Conversion {
    /// Returns a row between an operator of the standard domain and one of ours that converts
    /// nothing yet. The methods below add the rules:
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

    /// Sets the domain of the ONNX operator, such as `com.acme`.
    ///
    /// Cost: one node.
    #[must_use]
    pub fn domain(self, domain: impl Into<Cow<'static, str>>) -> Conversion {
        Conversion { domain: domain.into(), ..self }
    }

    /// Sets both rules for an operator that is the same in ONNX and here: operands, results, and
    /// attributes of these names and types, which our operator must have under the same names. An
    /// attribute that is left out has the default of our operator, which must be the default of the
    /// ONNX operator.
    ///
    /// Cost: one node.
    #[must_use]
    pub fn same(self, attributes: &'static [(&'static str, AttributeType)]) -> Conversion {
        self.attributes(attributes).import(same::import).export(same::export)
    }

    /// Sets the import rule.
    #[must_use]
    pub fn import(mut self, rule: ImportRule) -> Conversion {
        self.import = Some(rule);
        self
    }

    /// Sets the export rule.
    #[must_use]
    pub fn export(mut self, rule: ExportRule) -> Conversion {
        self.export = Some(rule);
        self
    }

    /// Sets the attributes that the import rule understands.
    ///
    /// Cost: one node.
    #[must_use]
    pub fn attributes(mut self, attributes: &'static [(&'static str, AttributeType)]) -> Conversion {
        self.attributes = attributes;
        self
    }

    /// Sets the attributes that are preserved in the metadata.
    ///
    /// Cost: one node.
    #[must_use]
    pub fn carried(mut self, carried: &'static [&'static str]) -> Conversion {
        self.carried = carried;
        self
    }

    /// Lets the row take operands of any type.
    #[must_use]
    pub fn any_operands(mut self) -> Conversion {
        self.operands = Operands::Any;
        self
    }
}

/// The name in the table for our `if`, which is not an operator.
pub(crate) const BRANCHES: &str = "if";

/// The versions of the standard operators that the rows of this crate cover by default. Most rows
/// hold for version 6, too ([`version_6`]).
pub(crate) const OPSETS: RangeInclusive<i64> = 7..=NEWEST;
const NEWEST: i64 = 28;
/// The number of float32 in the format.
const FLOAT: i32 = 1;
/// The number of int64 in the format.
const INT64: i32 = 7;

/// The table of conversions.
#[derive(Clone, Debug)]
pub struct Conversions {
    rows: Vec<Conversion>,
    by_onnx: FxHashMap<String, Vec<usize>>,
    by_native: FxHashMap<String, Vec<usize>>,
}

impl Default for Conversions {
    /// Returns a table with the rows of this crate.
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
    /// Returns a table without rows; it keeps every node unchanged.
    pub fn empty() -> Conversions {
        Conversions { rows: Vec::new(), by_onnx: FxHashMap::default(), by_native: FxHashMap::default() }
    }

    /// Adds a row, which takes precedence over the rows that are already there.
    pub fn register(&mut self, mut row: Conversion) {
        if is_standard(&row.domain) {
            row.domain = Cow::Borrowed("");
        }
        let index = self.rows.len();
        self.by_onnx.entry(row.onnx.to_string()).or_default().push(index);
        self.by_native.entry(row.native.to_string()).or_default().push(index);
        self.rows.push(row);
    }

    /// Returns the rows in the order in which they were added.
    pub fn rows(&self) -> &[Conversion] {
        &self.rows
    }

    /// Returns the row that imports an operator.
    ///
    /// # Errors
    /// If no row does; the error is the reason.
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

    /// Returns the row that exports an operator of ours to the model's version of a domain, with
    /// its export rule.
    ///
    /// # Errors
    /// If there is no such row, or none for that version.
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

/// Returns a call on the same operands, without attributes.
fn import_direct(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    n.call(operands, Vec::new())
}

/// Writes a node on the same operands, without attributes.
fn export_direct(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let inputs = n.operands()?;
    n.emit(n.onnx(), inputs, Vec::new());
    Ok(())
}

/// Returns the name of operand `i`, an integer tensor, cast to int64 if needed.
fn as_int64(n: &mut NodeExport<'_>, i: usize) -> Result<String, ExportProblem> {
    let name = n.operand(i)?;
    match n.dtype(i) {
        Some(DType::Int64) => Ok(name),
        _ => Ok(n.step("Cast", vec![name], vec![int_attribute("to", i64::from(INT64))])),
    }
}

/// Returns the name of operand `i`, a tensor of indices. Integers other than int32 and int64 are
/// cast to int64.
fn as_indices(n: &mut NodeExport<'_>, i: usize) -> Result<String, ExportProblem> {
    if n.dtype(i) == Some(DType::Int32) { n.operand(i) } else { as_int64(n, i) }
}

/// Returns the names of all operands. The second operand, if there is one, is cast to int64 if
/// needed.
fn with_int64(n: &mut NodeExport<'_>) -> Result<Vec<String>, ExportProblem> {
    let mut inputs = n.operands()?;
    if let Some(second) = inputs.get_mut(1) {
        *second = as_int64(n, 1)?;
    }
    Ok(inputs)
}

/// Returns the names of all operands. The second operand, if there is one, holds indices (see
/// [`as_indices`]).
fn with_indices(n: &mut NodeExport<'_>) -> Result<Vec<String>, ExportProblem> {
    let mut inputs = n.operands()?;
    if let Some(indices) = inputs.get_mut(1) {
        *indices = as_indices(n, 1)?;
    }
    Ok(inputs)
}

/// Returns the name of an operand of one element, reshaped to `rank` if needed.
fn with_rank(n: &mut NodeExport<'_>, i: usize, name: String, rank: usize) -> Result<String, ExportProblem> {
    if n.partial_extents(i).is_some_and(|e| e.len() == rank) {
        return Ok(name);
    }
    let shape = n.ints_constant(&vec![1; rank], usize::MAX)?;
    Ok(n.step("Reshape", vec![name, shape], Vec::new()))
}

/// Returns a float attribute of a call as an attribute of a node. The format stores it as float32.
/// On elements of float64 the float32 must equal the value, unless the value is the default of our
/// operator: the default stands for the float32 of the format.
fn exact_float(n: &NodeExport<'_>, name: &'static str, value: f64) -> Result<AttributeProto, ExportProblem> {
    let held = f64::from(value as f32);
    // Attributes that equal their default are not stated.
    let is_default = n.attrs().raw(name).is_none() && n.attrs().float(name) == Some(value);
    let is_rounded = held.to_bits() != value.to_bits() && !value.is_nan();
    if n.dtype(0) == Some(DType::Float64) && is_rounded && !is_default {
        return Err(ExportProblem::Rounded { operator: n.native().to_owned(), name, value, held });
    }
    Ok(float_attribute(name, value))
}

/// Returns an attribute that is an integer.
///
/// Cost: one node.
pub fn int_attribute(name: &str, value: i64) -> AttributeProto {
    let mut a = AttributeProto { name: Some(name.to_owned()), i: Some(value), ..AttributeProto::default() };
    a.set_type(AttributeType::Int);
    a
}

/// Returns an attribute that is a float.
///
/// Cost: one node.
pub fn float_attribute(name: &str, value: f64) -> AttributeProto {
    let mut a = AttributeProto { name: Some(name.to_owned()), f: Some(value as f32), ..AttributeProto::default() };
    a.set_type(AttributeType::Float);
    a
}

/// Returns an attribute that is a list of floats.
///
/// Cost: one loop.
pub fn floats_attribute(name: &str, values: &[f64]) -> AttributeProto {
    let floats = values.iter().map(|&v| v as f32).collect();
    let mut a = AttributeProto { name: Some(name.to_owned()), floats, ..AttributeProto::default() };
    a.set_type(AttributeType::Floats);
    a
}

/// Returns an attribute that is a list of integers.
///
/// Cost: one loop.
pub fn ints_attribute(name: &str, values: &[i64]) -> AttributeProto {
    let mut a = AttributeProto { name: Some(name.to_owned()), ints: values.to_vec(), ..AttributeProto::default() };
    a.set_type(AttributeType::Ints);
    a
}

/// Returns an attribute that is a string.
///
/// Cost: one node.
pub fn str_attribute(name: &str, value: &str) -> AttributeProto {
    let s = Some(Bytes::copy_from_slice(value.as_bytes()));
    let mut a = AttributeProto { name: Some(name.to_owned()), s, ..AttributeProto::default() };
    a.set_type(AttributeType::String);
    a
}

/// Returns an attribute that is a list of strings.
///
/// Cost: one loop.
pub fn strs_attribute(name: &str, values: &[&str]) -> AttributeProto {
    let strings = values.iter().map(|v| Bytes::copy_from_slice(v.as_bytes())).collect();
    let mut a = AttributeProto { name: Some(name.to_owned()), strings, ..AttributeProto::default() };
    a.set_type(AttributeType::Strings);
    a
}

/// Returns an attribute that is a tensor.
///
/// Cost: one node.
pub fn tensor_attribute(name: &str, value: TensorProto) -> AttributeProto {
    let mut a = AttributeProto { name: Some(name.to_owned()), t: Some(Box::new(value)), ..AttributeProto::default() };
    a.set_type(AttributeType::Tensor);
    a
}
