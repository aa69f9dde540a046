//! Conversion of calls to nodes.

mod draft;

use anfora_ir::{
    AttrId, AttrReader, AttrsId, Body, Context, DType, Dim, Expr, ExprId, Literal, SymbolId, TensorType, TypeId, VarId,
};
use bytes::Bytes;
use rustc_hash::FxHashMap;

use super::graph::{Call, Exporter};
use super::graph_meta::GraphMeta;
use super::slots::Slot;
use crate::attributes::{decoded, decoded_list, list, message_of, str, strs};
use crate::convert::Conversion;
use crate::convert::element_types::{Place, Since, since};
use crate::error::ExportProblem;
use crate::keys;
use crate::opaque::decode;
use crate::proto::{AttributeProto, AttributeType, NodeDeviceConfigurationProto, NodeProto};

pub(crate) use draft::{Unwritable, check_call};

/// A call of one of our operators, as seen by the conversion that writes it.
pub struct NodeExport<'a> {
    exporter: &'a mut dyn Writer,
    row: &'a Conversion,
    cx: &'a Context,
    call: &'a CallView<'a>,
    opset: i64,
    outputs: Vec<String>,
    /// For each output, true if anything uses it.
    used: Vec<bool>,
    nodes: Vec<NodeProto>,
}

/// The properties of a call that a conversion can read.
struct CallView<'a> {
    operands: Vec<OperandView>,
    attrs: AttrReader<'a>,
    expr: ExprId,
    ty: TypeId,
    hints: Vec<&'a str>,
}

struct OperandView {
    slot: Slot,
    ty: TypeId,
}

/// The services of an export that a conversion can use.
trait Writer {
    fn slot_name(&mut self, slot: Slot, hint: Option<&str>) -> Result<String, ExportProblem>;
    fn own_constant(&mut self, literal: &Literal, wish: &str) -> Result<String, ExportProblem>;
    fn fresh_name(&mut self, wish: &str) -> String;
    fn states_versions(&self) -> bool;
    fn is_consumed(&self, call: ExprId, output: usize) -> bool;
    fn symbol_source(&mut self, symbol: SymbolId) -> Result<Option<(String, SymbolPlace)>, ExportProblem>;
}

/// The position in an input where a symbolic dimension stands alone.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum SymbolPlace {
    /// The extent of this axis.
    Extent(usize),
    /// The element at this index, in row-major order, of a tensor of this rank.
    Element { at: usize, rank: usize },
}

/// Returns the parameters in which a symbol stands alone, with the position: for each symbol the
/// first such parameter.
fn symbol_places(cx: &Context, body: &Body) -> FxHashMap<SymbolId, (ExprId, SymbolPlace)> {
    let mut places = FxHashMap::default();
    for param in body.params().iter().map(|p| p.expr()) {
        let Some(tensor) = cx.types.as_tensor(body.ty(param)) else { continue };
        let rank = tensor.shape.as_ref().map_or(0, |s| s.len());
        let extents = tensor.shape.iter().flatten().enumerate().map(|(axis, &d)| (d, SymbolPlace::Extent(axis)));
        let elements = tensor.elements.iter().flatten().enumerate();
        for (dim, place) in extents.chain(elements.map(|(at, &d)| (d, SymbolPlace::Element { at, rank }))) {
            if let Dim::Symbol(symbol) = *cx.types.dims.get(dim) {
                places.entry(symbol).or_insert((param, place));
            }
        }
    }
    places
}

impl Writer for Exporter<'_> {
    fn symbol_source(&mut self, symbol: SymbolId) -> Result<Option<(String, SymbolPlace)>, ExportProblem> {
        let places = self.symbol_places.get_or_init(|| symbol_places(self.cx, self.body));
        let Some(&(param, place)) = places.get(&symbol) else { return Ok(None) };
        let slot = self.slots.of_atom(param)?;
        Ok(Some((self.slot_name(slot, None)?, place)))
    }

    fn slot_name(&mut self, slot: Slot, hint: Option<&str>) -> Result<String, ExportProblem> {
        Exporter::slot_name(self, slot, hint)
    }

    fn own_constant(&mut self, literal: &Literal, wish: &str) -> Result<String, ExportProblem> {
        let bound = self.cx.names.find(wish).and_then(|wish| self.constants.bound_as(wish));
        match bound.filter(|&(id, _)| self.cx.literals.get(id) == literal) {
            Some((_, name)) => Ok(name.to_owned()),
            None => Ok(self.constants.own(&mut self.names, literal, wish)?.to_string()),
        }
    }

    fn fresh_name(&mut self, wish: &str) -> String {
        self.names.claim(wish).to_string()
    }

    fn states_versions(&self) -> bool {
        self.versions.are_stated
    }

    fn is_consumed(&self, call: ExprId, output: usize) -> bool {
        match self.slots.fields(self.slots.of_call(call)).get(output) {
            Some(Slot::Value(v)) => self.consumed.get_or_init(|| self.slots.consumed())[v.index()],
            _ => false,
        }
    }
}

impl<'a> NodeExport<'a> {
    /// Writes nodes that read the value of a symbolic dimension from an input of the function.
    /// Returns the name of the tensor that holds it, a single int64.
    ///
    /// # Errors
    /// If in no input the symbol stands alone as an extent or, according to the input's type, as an
    /// element.
    pub fn symbol(&mut self, symbol: SymbolId) -> Result<String, ExportProblem> {
        let Some((input, place)) = self.exporter.symbol_source(symbol)? else {
            let name = self.cx.names.get(self.cx.types.dims.symbol_name(symbol));
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
        self.cx
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
        self.exporter.states_versions()
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
        match self.call.operands.get(i) {
            Some(operand) => self.exporter.slot_name(operand.slot, self.call.hints.get(i).copied()),
            None => Ok(String::new()),
        }
    }

    /// Returns the name of operand `i` of the call for use as input `input` of the node. A constant
    /// gets the name that this input had in the file.
    ///
    /// # Errors
    /// If it is not a tensor.
    pub fn operand_as(&mut self, i: usize, input: usize) -> Result<String, ExportProblem> {
        match self.call.operands.get(i) {
            Some(operand) => self.exporter.slot_name(operand.slot, self.call.hints.get(input).copied()),
            None => Ok(String::new()),
        }
    }

    /// Returns the names of all operands, without trailing operands that are left out.
    ///
    /// # Errors
    /// If one is not a tensor.
    pub fn operands(&mut self) -> Result<Vec<String>, ExportProblem> {
        let names: Result<Vec<String>, _> = (0..self.call.operands.len()).map(|i| self.operand(i)).collect();
        let mut names = names?;
        while names.last().is_some_and(String::is_empty) {
            names.pop();
        }
        Ok(names)
    }

    /// Returns true if an operand is left out.
    pub fn is_left_out(&self, i: usize) -> bool {
        self.call.operands.get(i).is_none_or(|o| matches!(o.slot, Slot::None))
    }

    /// Returns the value of an operand that is a constant.
    pub fn literal(&self, i: usize) -> Option<&'a Literal> {
        match self.call.operands.get(i)?.slot {
            Slot::Literal(id, _) => Some(self.cx.literals.get(id)),
            _ => None,
        }
    }

    /// Returns the type of an operand that is a tensor.
    pub fn tensor(&self, i: usize) -> Option<&'a TensorType> {
        self.cx.types.as_tensor(self.call.operands.get(i)?.ty)
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
        Some(shape.iter().map(|&d| self.cx.types.dims.as_constant(d)).collect())
    }

    /// Returns the extents of the result, if it is a tensor and all are known.
    pub fn result_shape(&self) -> Option<Vec<i64>> {
        let shape = self.cx.types.as_tensor(self.call.ty)?.shape.as_ref()?;
        shape.iter().map(|&d| self.cx.types.dims.as_constant(d)).collect()
    }

    /// Returns the element type of the result, if it is a tensor.
    pub fn result_dtype(&self) -> Option<DType> {
        Some(self.cx.types.as_tensor(self.call.ty)?.dtype)
    }

    /// Returns the extents of all results along an axis, if the result is a tuple of tensors and
    /// these extents are known.
    pub fn result_extents(&self, axis: i64) -> Option<Vec<i64>> {
        let fields = self.cx.types.as_tuple(self.call.ty)?;
        let extent = |&field: &TypeId| {
            let shape = self.cx.types.as_tensor(field)?.shape.as_ref()?;
            let axis = if axis < 0 { axis + shape.len() as i64 } else { axis };
            self.cx.types.dims.as_constant(*shape.get(usize::try_from(axis).ok()?)?)
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
        self.exporter.own_constant(literal, self.call.hints.get(i).copied().unwrap_or_default())
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
        self.exporter.is_consumed(self.call.expr, i)
    }

    /// Removes trailing outputs that nothing uses, but keeps the first `keep`.
    pub fn drop_unused_outputs(&mut self, keep: usize) {
        while self.outputs.len() > keep && self.used.last() == Some(&false) {
            self.outputs.pop();
            self.used.pop();
        }
    }

    /// Writes a node that computes an intermediate value and returns the value's name.
    ///
    /// Cost: one node.
    pub fn step(&mut self, op_type: &str, inputs: Vec<String>, attributes: Vec<AttributeProto>) -> String {
        let wish = format!("{}_{}", self.outputs.first().map_or("", String::as_str), op_type.to_ascii_lowercase());
        let name = self.exporter.fresh_name(&wish);
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

pub(super) fn node(
    domain: &str,
    op_type: &str,
    input: Vec<String>,
    output: Vec<String>,
    attribute: Vec<AttributeProto>,
) -> NodeProto {
    let domain = (!domain.is_empty()).then(|| domain.to_owned());
    NodeProto { input, output, op_type: Some(op_type.to_owned()), domain, attribute, ..NodeProto::default() }
}

impl<'m> Exporter<'m> {
    /// Returns the names of the results of a call and, for each, whether anything uses it.
    pub(super) fn results(&mut self, call: ExprId) -> Result<(Vec<String>, Vec<bool>), ExportProblem> {
        let fields = self.slots.fields(self.slots.of_call(call));
        let mut names = Vec::with_capacity(fields.len());
        let mut used = Vec::with_capacity(fields.len());
        for slot in fields {
            names.push(self.slot_name(slot, None)?);
            used.push(matches!(slot, Slot::Value(v) if self.slots.value(v).is_used));
        }
        Ok((names, used))
    }

    pub(super) fn hints(&self, meta: Option<AttrsId>) -> Result<Vec<&'m str>, ExportProblem> {
        let names = meta.map(|meta| self.names_in(GraphMeta::of(meta), keys::INPUTS)).transpose()?;
        Ok(names.flatten().unwrap_or_default())
    }

    /// Returns the nodes for a call of one of our operators.
    pub(super) fn native_nodes(&mut self, call: Call<'m>) -> Result<Vec<NodeProto>, ExportProblem> {
        let cx: &'m Context = self.cx;
        let name = cx.ops.get(call.op).name.as_ref();
        let options = self.options;
        let (row, rule) = options.conversions.for_call(name, |domain| self.versions.opset(domain))?;
        let mut operands = Vec::with_capacity(call.operands.len());
        for &o in call.operands {
            operands.push(OperandView { slot: self.slots.of_atom(o)?, ty: self.body.ty(o) });
        }
        let attrs = AttrReader { cx, op: call.op, attrs: call.attrs };
        let view = CallView { operands, attrs, expr: call.expr, ty: call.ty, hints: self.hints(call.meta)? };
        let (outputs, used) = self.results(call.expr)?;
        let result = outputs.first().cloned();
        let opset = self.versions.opset(&row.domain);
        let mut export =
            NodeExport { exporter: self, row, cx, call: &view, opset, outputs, used, nodes: Vec::with_capacity(1) };
        rule(&mut export)?;
        let mut nodes = export.nodes;
        if row.domain.is_empty() {
            let name_of = |slot| match slot {
                Slot::Value(v) => self.value_names[v.index()].as_deref(),
                _ => None,
            };
            for node in &nodes {
                check_elements(node, &view, name_of, result.as_deref(), self.versions.opset(""))?;
            }
        }
        if let Some(last) = nodes.last_mut() {
            self.carry_along(last, call.meta)?;
        }
        Ok(nodes)
    }

    /// Returns the node for a call that was kept unchanged. `graphs` are its subgraphs, already
    /// written.
    pub(super) fn opaque_node(&mut self, call: Call<'m>, graphs: Vec<Bytes>) -> Result<NodeProto, ExportProblem> {
        let cx: &'m Context = self.cx;
        let name = cx.ops.get(call.op).name.as_ref();
        let (domain, op_type) = decode(name).ok_or_else(|| ExportProblem::Operator(name.to_owned()))?;
        let hints = self.hints(call.meta)?;
        let mut input = Vec::with_capacity(call.operands.len() - graphs.len());
        for (i, &operand) in call.operands[..call.operands.len() - graphs.len()].iter().enumerate() {
            let slot = self.slots.of_atom(operand)?;
            input.push(self.slot_name(slot, hints.get(i).copied())?);
        }
        let (output, _) = self.results(call.expr)?;
        let mut node = node(domain, &op_type, input, output, Vec::new());
        for &(key, value) in cx.attrs.list(call.attrs) {
            match cx.names.get(key) {
                keys::RAW => {
                    let raw: Vec<AttributeProto> = decoded_list(cx, value).ok_or(ExportProblem::Damaged(keys::RAW))?;
                    node.attribute.extend(raw);
                }
                keys::OVERLOAD => {
                    let overload = str(cx, value).ok_or(ExportProblem::Damaged(keys::OVERLOAD))?;
                    node.overload = Some(overload.to_owned());
                }
                keys::SUBGRAPHS | keys::PRESENT => {}
                name => node.attribute.extend(message_of(cx, name, value)?),
            }
        }
        if let Some(value) = cx.find_attr(call.attrs, keys::SUBGRAPHS) {
            let labels = list(cx, value).and_then(|l| strs(cx, l)).ok_or(ExportProblem::Damaged(keys::SUBGRAPHS))?;
            for (label, graph) in labels.into_iter().zip(graphs) {
                add_graph(&mut node, label, graph);
            }
        }
        self.carry_along(&mut node, call.meta)?;
        Ok(node)
    }

    /// Returns the node for an `if`. `graphs` are its branches, already written.
    pub(super) fn if_node(
        &mut self,
        expr: ExprId,
        var: Option<VarId>,
        graphs: Vec<Bytes>,
    ) -> Result<NodeProto, ExportProblem> {
        let Expr::If { cond, .. } = self.body.expr(expr) else { unreachable!("the caller saw that it is an `if`") };
        let meta = var.and_then(|v| self.body.meta(v.expr()));
        let tensor = self.conditions.tensor(self.body, cond);
        let slot = self.slots.of_atom(tensor.unwrap_or(cond))?;
        let hint = self.hints(meta)?.first().copied();
        let cond = self.slot_name(slot, hint)?;
        let (output, _) = self.results(expr)?;
        if output.is_empty() {
            return Err(ExportProblem::Unsupported("an `if` without a result".to_owned()));
        }
        let mut node = node("", "If", vec![cond], output, Vec::new());
        for (label, graph) in ["then_branch", "else_branch"].into_iter().zip(graphs) {
            add_graph(&mut node, label, graph);
        }
        self.carry_along(&mut node, meta)?;
        Ok(node)
    }

    /// Adds the metadata of a binding to its node.
    pub(super) fn carry_along(&self, node: &mut NodeProto, meta: Option<AttrsId>) -> Result<(), ExportProblem> {
        let cx = self.cx;
        let Some(meta) = meta else { return Ok(()) };
        let find = |key| cx.find_attr(meta, key);
        if let Some(value) = find(keys::NAME) {
            node.name = Some(str(cx, value).ok_or(ExportProblem::Damaged(keys::NAME))?.to_owned());
        }
        node.doc_string = self.doc(GraphMeta::of(meta))?;
        node.metadata_props = self.metadata(GraphMeta::of(meta))?;
        if let Some(value) = find(keys::DEVICES) {
            let devices: Option<Vec<NodeDeviceConfigurationProto>> = decoded_list(cx, value);
            node.device_configurations = devices.ok_or(ExportProblem::Damaged(keys::DEVICES))?;
        }
        if let Some(value) = find(keys::CARRIED) {
            self.carry_attributes(node, value).ok_or(ExportProblem::Damaged(keys::CARRIED))?;
        }
        Ok(())
    }

    /// Adds the attributes that have no meaning here, if the node is still of the operator that
    /// they belong to.
    fn carry_attributes(&self, node: &mut NodeProto, carried: AttrId) -> Option<()> {
        let (&op_type, attributes) = list(self.cx, carried)?.split_first()?;
        if str(self.cx, op_type)? == node.op_type() {
            for &a in attributes {
                let attribute: AttributeProto = decoded(self.cx, a)?;
                if !node.attribute.iter().any(|b| b.name() == attribute.name()) {
                    node.attribute.push(attribute);
                }
            }
        }
        Some(())
    }
}

/// Checks that the version of the operators lets a node take elements of the types of the call.
fn check_elements<'n>(
    node: &NodeProto,
    call: &CallView<'_>,
    name_of: impl Fn(Slot) -> Option<&'n str>,
    result: Option<&str>,
    present: i64,
) -> Result<(), ExportProblem> {
    let cx = call.attrs.cx;
    let types = &cx.types;
    let first_input = node.input.first().map(String::as_str);
    let input = call.operands.iter().find(|o| first_input.is_some() && name_of(o.slot) == first_input).map(|o| o.ty);
    let is_result = result.is_some() && node.output.first().map(String::as_str) == result;
    let first = types.as_tuple(call.ty).map_or(Some(call.ty), |fields| fields.first().copied());
    for (place, ty) in [(Place::Input, input), (Place::Output, first.filter(|_| is_result))] {
        let Some(dtype) = ty.and_then(|ty| types.as_tensor(ty)).map(|t| t.dtype) else { continue };
        match since(node.op_type(), place, dtype) {
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

/// Puts a graph into the attribute that its label names: `name`, or `name[i]` for an element of a
/// list.
fn add_graph(node: &mut NodeProto, label: &str, graph: Bytes) {
    let (name, is_listed) = match label.split_once('[') {
        Some((name, _)) => (name, true),
        None => (label, false),
    };
    let position = node.attribute.iter().position(|a| a.name() == name);
    let i = position.unwrap_or_else(|| {
        let ty = if is_listed { AttributeType::Graphs } else { AttributeType::Graph };
        let mut attribute = AttributeProto { name: Some(name.to_owned()), ..AttributeProto::default() };
        attribute.set_type(ty);
        node.attribute.push(attribute);
        node.attribute.len() - 1
    });
    let attribute = &mut node.attribute[i];
    if is_listed {
        attribute.graphs.push(graph);
    } else {
        attribute.g = Some(graph);
    }
}

anfora_ir::brief_debug! { NodeExport<'_>; }
