//! A call, as seen by the conversion that writes it.

use std::cell::Cell;

use anfora_ir::{AttrReader, Context, DType, Literal, SymbolId, TensorType, TypeId};
use smallvec::SmallVec;

use super::element_types::{Side, Since, rows_of, since};
use super::{Conversion, ExportRule};
use crate::error::ExportProblem;
use crate::proto::{AttributeProto, NodeProto, node};

/// A call of one of our operators, as seen by the conversion that writes it.
pub struct NodeExport<'a> {
    writer: &'a mut dyn Writer,
    row: &'a Conversion,
    call: &'a CallView<'a>,
    opset: i64,
    outputs: Vec<String>,
    /// For each output, true if anything uses it.
    used: SmallVec<[bool; 8]>,
    nodes: Vec<NodeProto>,
}

/// The properties of a call that a conversion can read.
pub(crate) struct CallView<'a> {
    pub(crate) operands: Vec<OperandView<'a>>,
    pub(crate) attrs: AttrReader<'a>,
    pub(crate) ty: TypeId,
    /// The names that the inputs of the node had in the file.
    pub(crate) hints: Vec<&'a str>,
    /// Set when a conversion reads the value of a constant operand.
    pub(crate) reads_constants: Cell<bool>,
}

/// An operand of a call.
pub(crate) struct OperandView<'a> {
    pub(crate) ty: TypeId,
    /// The value of a constant.
    pub(crate) literal: Option<&'a Literal>,
    pub(crate) is_left_out: bool,
}

/// The services of an export for the conversion of a call.
pub(crate) trait Writer {
    /// Returns the name of an operand; the empty string if it is left out. `hint` is its name in
    /// the file.
    fn operand_name(&mut self, i: usize, hint: Option<&str>) -> Result<String, ExportProblem>;
    /// Returns true if an operand is the value of this name, and no constant.
    fn is_operand(&self, i: usize, name: &str) -> bool;
    /// Returns the name of a constant that the conversion adds.
    fn own_constant(&mut self, literal: &Literal, wish: &str) -> Result<String, ExportProblem>;
    /// Returns a name that no value has: `wish`, with a number if needed.
    fn fresh_name(&mut self, wish: &str) -> String;
    /// Returns the version of a domain's operators.
    fn opset(&self, domain: &str) -> i64;
    /// Returns true if the module states its versions.
    fn states_versions(&self) -> bool;
    /// Returns true if a node takes an output of the call, or a graph returns it.
    fn is_consumed(&self, output: usize) -> bool;
    /// Returns the input in which a symbol stands alone, with the position.
    fn symbol_source(&mut self, symbol: SymbolId) -> Result<Option<(String, SymbolPlace)>, ExportProblem>;
}

/// The position in an input where a symbolic dimension stands alone.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum SymbolPlace {
    /// The extent of this axis.
    Extent(usize),
    /// The element at this index, in row-major order, of a tensor of this rank.
    Element { at: usize, rank: usize },
}

/// The reason why a call cannot be written.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub(crate) enum Unwritable {
    /// The version of the operators does not take the element types.
    #[error(transparent)]
    Elements(ExportProblem),
    /// Anything else.
    #[error(transparent)]
    Other(#[from] ExportProblem),
}

impl From<Unwritable> for ExportProblem {
    fn from(reason: Unwritable) -> ExportProblem {
        let (Unwritable::Elements(problem) | Unwritable::Other(problem)) = reason;
        problem
    }
}

/// Returns the nodes that a row writes for a call. `outputs` are the names of the results, `used`
/// the flags of those that anything uses.
pub(crate) fn write_call(
    (row, rule): (&Conversion, ExportRule),
    call: &CallView<'_>,
    (outputs, used): (Vec<String>, SmallVec<[bool; 8]>),
    writer: &mut dyn Writer,
) -> Result<Vec<NodeProto>, Unwritable> {
    let result = outputs.first().cloned();
    let opset = writer.opset(&row.domain);
    let mut export = NodeExport { writer, row, call, opset, outputs, used, nodes: Vec::with_capacity(1) };
    rule(&mut export)?;
    let NodeExport { writer, nodes, .. } = export;
    if row.domain.is_empty() {
        let check = |node| check_elements(node, call, writer, result.as_deref());
        nodes.iter().try_for_each(check).map_err(Unwritable::Elements)?;
    }
    Ok(nodes)
}

impl<'a> NodeExport<'a> {
    /// Writes nodes that read the value of a symbolic dimension from an input of the function.
    /// Returns the name of the tensor that holds it, a single int64.
    ///
    /// # Errors
    /// If in no input the symbol stands alone as an extent or, according to the input's type, as an
    /// element.
    pub fn symbol(&mut self, symbol: SymbolId) -> Result<String, ExportProblem> {
        let Some((input, place)) = self.writer.symbol_source(symbol)? else {
            let name = self.cx().names.get(self.cx().types.dims.symbol_name(symbol));
            return Err(ExportProblem::Unsupported(format!(
                "the extent `{name}`, which no input of the function has,"
            )));
        };
        let index = |n: &mut Self, at: i64| n.own_constant(&Literal::splat(&[1], at));
        let (list, at) = match place {
            SymbolPlace::Extent(axis) => (self.step("Shape", vec![input], Vec::new()), axis),
            SymbolPlace::Element { at, rank: 1 } => (input, at),
            SymbolPlace::Element { at, .. } => {
                let flat = index(self, -1)?;
                (self.step("Reshape", vec![input, flat], Vec::new()), at)
            }
        };
        let at = index(self, at as i64)?;
        Ok(self.step("Gather", vec![list, at], Vec::new()))
    }

    /// Returns the tables of the module.
    pub fn cx(&self) -> &'a Context {
        self.call.attrs.cx
    }

    /// Returns the row of the conversion.
    pub fn row(&self) -> &'a Conversion {
        self.row
    }

    /// Returns the ONNX operator that the row names.
    pub fn onnx(&self) -> &'a str {
        &self.row.onnx
    }

    /// Returns our operator that the row names.
    pub fn native(&self) -> &'a str {
        &self.row.native
    }

    /// Returns the version of the ONNX operator's domain.
    pub fn opset(&self) -> i64 {
        self.opset
    }

    /// Returns true if the module states its versions, as modules from files do.
    pub fn states_versions(&self) -> bool {
        self.writer.states_versions()
    }

    /// Checks that the model has at least a version of the operators.
    ///
    /// # Errors
    /// If the version of the model is older.
    pub fn needs_opset(&self, needed: i64) -> Result<(), ExportProblem> {
        if self.opset >= needed {
            return Ok(());
        }
        let (operator, domain) = (self.native().to_owned(), self.row.domain.to_string());
        Err(ExportProblem::Opset { operator, domain, needed, present: self.opset })
    }

    /// Returns the attributes of the call, with the defaults of our operator.
    pub fn attrs(&self) -> AttrReader<'a> {
        self.call.attrs
    }

    /// Returns the name of an operand; the empty string if it is left out.
    ///
    /// # Errors
    /// If it is not a tensor.
    pub fn operand(&mut self, i: usize) -> Result<String, ExportProblem> {
        self.operand_as(i, i)
    }

    /// Returns the name of operand `i` of the call for use as input `input` of the node. A constant
    /// gets the name that this input had in the file.
    ///
    /// # Errors
    /// If it is not a tensor.
    pub fn operand_as(&mut self, i: usize, input: usize) -> Result<String, ExportProblem> {
        match self.call.operands.get(i) {
            Some(_) => self.writer.operand_name(i, self.call.hints.get(input).copied()),
            None => Ok(String::new()),
        }
    }

    /// Returns the names of all operands, without trailing operands that are left out.
    ///
    /// # Errors
    /// If one is not a tensor.
    pub fn operands(&mut self) -> Result<Vec<String>, ExportProblem> {
        let mut names = Vec::with_capacity(self.call.operands.len());
        for i in 0..self.call.operands.len() {
            names.push(self.operand(i)?);
        }
        while names.last().is_some_and(String::is_empty) {
            names.pop();
        }
        Ok(names)
    }

    /// Returns true if an operand is left out.
    pub fn is_left_out(&self, i: usize) -> bool {
        self.call.operands.get(i).is_none_or(|o| o.is_left_out)
    }

    /// Returns the value of an operand that is a constant.
    pub fn literal(&self, i: usize) -> Option<&'a Literal> {
        let literal = self.call.operands.get(i)?.literal?;
        self.call.reads_constants.set(true);
        Some(literal)
    }

    /// Returns the type of an operand that is a tensor.
    pub fn tensor(&self, i: usize) -> Option<&'a TensorType> {
        self.cx().types.as_tensor(self.call.operands.get(i)?.ty)
    }

    /// Returns the element type of an operand.
    pub fn dtype(&self, i: usize) -> Option<DType> {
        Some(self.tensor(i)?.dtype)
    }

    /// Returns the extents of an operand, if all are known.
    pub fn extents(&self, i: usize) -> Option<Vec<i64>> {
        self.partial_extents(i)?.into_iter().collect()
    }

    /// Returns the extents of an operand, each if it is known; `None` if the rank is not known.
    pub fn partial_extents(&self, i: usize) -> Option<Vec<Option<i64>>> {
        let shape = self.tensor(i)?.shape.as_ref()?;
        Some(shape.iter().map(|&d| self.cx().types.dims.as_constant(d)).collect())
    }

    /// Returns the extents of the result, if it is a tensor and all are known.
    pub fn result_shape(&self) -> Option<Vec<i64>> {
        let shape = self.cx().types.as_tensor(self.call.ty)?.shape.as_ref()?;
        shape.iter().map(|&d| self.cx().types.dims.as_constant(d)).collect()
    }

    /// Returns the element type of the result, if it is a tensor.
    pub fn result_dtype(&self) -> Option<DType> {
        Some(self.cx().types.as_tensor(self.call.ty)?.dtype)
    }

    /// Returns the extents of all results along an axis, if the result is a tuple of tensors and
    /// these extents are known.
    pub fn result_extents(&self, axis: i64) -> Option<Vec<i64>> {
        let fields = self.cx().types.as_tuple(self.call.ty)?;
        let extent = |&field: &TypeId| {
            let shape = self.cx().types.as_tensor(field)?.shape.as_ref()?;
            let axis = if axis < 0 { axis + shape.len() as i64 } else { axis };
            self.cx().types.dims.as_constant(*shape.get(usize::try_from(axis).ok()?)?)
        };
        fields.iter().map(extent).collect()
    }

    /// Returns a rank-1 tensor of a single zero of an operand's element type.
    ///
    /// # Errors
    /// If the operand is not a tensor of a known element type.
    pub fn zero_like(&self, i: usize) -> Result<Literal, ExportProblem> {
        let dtype = self.dtype(i).filter(|d| d.has_kernels());
        let dtype = dtype.ok_or_else(|| ExportProblem::Unsupported(format!("`{}` of this type", self.native())))?;
        Ok(Literal::splat_bytes(dtype, &[1], &[0; 8]))
    }

    /// Returns the name of a constant.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn own_constant(&mut self, literal: &Literal) -> Result<String, ExportProblem> {
        self.named_constant(literal, usize::MAX)
    }

    /// Returns the name of a constant that becomes operand `i` of the node. A new constant gets the
    /// name that this operand had in the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn named_constant(&mut self, literal: &Literal, i: usize) -> Result<String, ExportProblem> {
        self.writer.own_constant(literal, self.call.hints.get(i).copied().unwrap_or_default())
    }

    /// Returns the name of a constant list of integers that becomes operand `i` of the node.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn ints_constant(&mut self, values: &[i64], i: usize) -> Result<String, ExportProblem> {
        let literal = Literal::from_elements(&[values.len()], values).map_err(crate::tensor::TensorError::from)?;
        self.named_constant(&literal, i)
    }

    /// Returns true if a node takes an output, or a graph returns it. A name alone is not a use.
    pub fn is_output_used(&self, i: usize) -> bool {
        self.writer.is_consumed(i)
    }

    /// Removes trailing outputs that nothing uses, but keeps the first `keep`.
    pub fn drop_unused_outputs(&mut self, keep: usize) {
        while self.outputs.len() > keep && self.used.last() == Some(&false) {
            self.outputs.pop();
            self.used.pop();
        }
    }

    /// Leaves out the outputs that nothing uses, but keeps the first `keep`, and one in any case.
    pub fn omit_unused_outputs(&mut self, keep: usize) {
        self.drop_unused_outputs(keep.max(1));
        if self.outputs.len() > 1 {
            let unused = self.outputs.iter_mut().zip(&self.used).skip(keep).filter(|(_, used)| !**used);
            unused.for_each(|(name, _)| name.clear());
        }
    }

    /// Writes a node that computes an intermediate value and returns the value's name.
    ///
    /// Cost: one node.
    pub fn step(&mut self, op_type: &str, inputs: Vec<String>, attributes: Vec<AttributeProto>) -> String {
        let wish = format!("{}_{}", self.outputs.first().map_or("", String::as_str), op_type.to_ascii_lowercase());
        let name = self.writer.fresh_name(&wish);
        self.nodes.push(node(&self.row.domain, op_type, inputs, vec![name.clone()], attributes));
        name
    }

    /// Writes the node that computes the results.
    ///
    /// Cost: one node.
    pub fn emit(&mut self, op_type: &str, inputs: Vec<String>, attributes: Vec<AttributeProto>) {
        let outputs = std::mem::take(&mut self.outputs);
        self.nodes.push(node(&self.row.domain, op_type, inputs, outputs, attributes));
    }
}

/// Checks that the version of the operators lets a node take elements of the types of the call.
fn check_elements(
    node: &NodeProto,
    call: &CallView<'_>,
    writer: &dyn Writer,
    result: Option<&str>,
) -> Result<(), ExportProblem> {
    let cx = call.attrs.cx;
    let types = &cx.types;
    let present = writer.opset("");
    let input = node.input.first().and_then(|name| {
        let mut operands = call.operands.iter().enumerate();
        operands.find(|&(i, _)| writer.is_operand(i, name)).map(|(_, o)| o.ty)
    });
    let is_result = result.is_some() && node.output.first().map(String::as_str) == result;
    let first = types.as_tuple(call.ty).map_or(Some(call.ty), |fields| fields.first().copied());
    let rows = rows_of(node.op_type());
    for (side, ty) in [(Side::Input, input), (Side::Output, first.filter(|_| is_result))] {
        let Some(dtype) = ty.and_then(|ty| types.as_tensor(ty)).map(|t| t.dtype) else { continue };
        match since(rows, side, dtype) {
            Since::First => {}
            Since::Version(needed) if present < needed => {
                let operator = format!("{} of {dtype}", cx.ops.get(call.attrs.op).name);
                return Err(ExportProblem::Opset { operator, domain: String::new(), needed, present });
            }
            Since::Version(_) => {}
            Since::Never => return Err(ExportProblem::ElementType { onnx: node.op_type().to_owned(), dtype }),
        }
    }
    Ok(())
}

anfora_ir::brief_debug! { NodeExport<'_>; }
