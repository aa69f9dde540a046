//! Conversion of calls to nodes.

use std::cell::Cell;

use anfora_ir::{
    AttrId, AttrReader, AttrsId, Body, Context, Dim, Expr, ExprId, Literal, SymbolId, TypeId, Types, VarId,
};
use bytes::Bytes;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::graph::{Call, Exporter, FileName};
use super::graph_meta::GraphMeta;
use super::layouts::has_another_layout;
use super::slots::Slot;
use crate::attributes::{decoded, decoded_list, list, message_of, no_value, str};
use crate::convert::{CallView, OperandView, SymbolPlace, Writer, write_call};
use crate::error::ExportProblem;
use crate::keys;
use crate::opaque::decode;
use crate::proto::{AttributeProto, AttributeType, NodeProto, node};

impl<'m> Exporter<'m> {
    /// Returns the names of the results of a call and, for each, whether anything uses it.
    pub(super) fn results(&mut self, call: ExprId) -> Result<(Vec<String>, SmallVec<[bool; 8]>), ExportProblem> {
        let fields = self.slots.fields(self.slots.of_call(call));
        let mut names = Vec::with_capacity(fields.len());
        let mut used = SmallVec::new();
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
        if has_another_layout(cx, self.body, call.expr) {
            return Err(ExportProblem::Unsupported(format!("`{name}` in another layout than that of ONNX")));
        }
        let row = self.options.conversions.for_call(name, |domain| self.versions.opset(domain))?;
        let mut slots: SmallVec<[Slot; 4]> = SmallVec::with_capacity(call.operands.len());
        for &operand in call.operands {
            slots.push(self.slots.of_atom(operand)?);
        }
        let operand = |(&operand, slot): (&ExprId, &Slot)| OperandView {
            ty: self.body.ty(operand),
            literal: match *slot {
                Slot::Literal(id, _) => Some(cx.literals.get(id)),
                _ => None,
            },
            is_left_out: matches!(slot, Slot::None),
        };
        let operands = call.operands.iter().zip(&slots).map(operand).collect();
        let attrs = AttrReader { cx, op: call.op, attrs: call.attrs };
        let hints = self.hints(call.meta)?;
        let view = CallView { operands, attrs, ty: call.ty, hints, reads_constants: Cell::new(false) };
        let results = self.results(call.expr)?;
        let mut writer = CallWriter { exporter: self, call: call.expr, operands: slots };
        let mut nodes = write_call(row, &view, results, &mut writer)?;
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
        let labels = self.names_in(GraphMeta::of(call.attrs), keys::SUBGRAPHS)?.unwrap_or_default();
        for (label, graph) in labels.into_iter().zip(graphs) {
            add_graph(&mut node, label, graph);
        }
        self.carry_along(&mut node, call.meta)?;
        Ok(node)
    }

    /// Returns the node for a call of a function.
    pub(super) fn function_call(&mut self, call: ExprId, var: Option<VarId>) -> Result<NodeProto, ExportProblem> {
        let (cx, body, functions) = (self.cx, self.body, self.functions);
        let Expr::Call { operands, attrs } = body.expr(call) else {
            unreachable!("the caller saw that it is a call of a function")
        };
        if attrs != cx.attrs.empty() {
            return Err(ExportProblem::Unsupported("an attribute of a call of a function".to_owned()));
        }
        let operands = body.operands(operands);
        let callee = match self.slots.of_atom(operands[0])? {
            Slot::Global(callee) => functions.get(&callee),
            _ => None,
        };
        let callee = callee.ok_or_else(|| ExportProblem::Unsupported("a call of this function".to_owned()))?;
        let meta = var.and_then(|v| body.meta(v.expr()));
        let hints = self.hints(meta)?;
        let mut input = Vec::with_capacity(operands.len() - 1 + callee.given.len());
        for (i, &operand) in operands[1..].iter().enumerate() {
            let slot = self.slots.of_atom(operand)?;
            input.push(self.slot_name(slot, hints.get(i).copied())?);
        }
        for constant in &callee.given {
            let name = match constant.id {
                Some(id) => {
                    let hint = cx.names.find(&constant.name).map(|n| (n, &*constant.name));
                    self.constants.name(&mut self.names, (id, &constant.literal), None, hint)?
                }
                None => self.constants.own(&mut self.names, &constant.literal, &constant.name)?,
            };
            input.push(name.to_string());
        }
        let (output, _) = self.results(call)?;
        let FileName { domain, name, overload } = &callee.name;
        let mut node = node(domain, name, input, output, Vec::new());
        node.overload = Some(overload.clone()).filter(|o| !o.is_empty());
        self.carry_along(&mut node, meta)?;
        Ok(node)
    }

    /// Returns the node for an `if`. `graphs` are its branches, already written.
    pub(super) fn if_node(
        &mut self,
        expr: ExprId,
        var: Option<VarId>,
        graphs: Vec<Bytes>,
    ) -> Result<NodeProto, ExportProblem> {
        let Expr::If { cond, then_block, else_block } = self.body.expr(expr) else {
            unreachable!("the caller saw that it is an `if`")
        };
        if !have_same_kind(&self.cx.types, self.body.type_of(then_block), self.body.type_of(else_block)) {
            return Err(ExportProblem::Unsupported(
                "an `if` whose branches have results of different kinds".to_owned(),
            ));
        }
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
        let meta = GraphMeta::of(meta);
        if let Some(name) = meta.read(cx, keys::NAME, str)? {
            node.name = Some(name.to_owned());
        }
        node.doc_string = self.doc(meta)?;
        node.metadata_props = self.metadata(meta)?;
        node.device_configurations = meta.read(cx, keys::DEVICES, decoded_list)?.unwrap_or_default();
        meta.read(cx, keys::CARRIED, |_, carried| self.carry_attributes(node, carried))?;
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
        node.attribute.push(no_value(name, ty));
        node.attribute.len() - 1
    });
    let attribute = &mut node.attribute[i];
    if is_listed {
        attribute.graphs.push(graph);
    } else {
        attribute.g = Some(graph);
    }
}

/// Writes a call for the conversion of its operator.
struct CallWriter<'e, 'm> {
    exporter: &'e mut Exporter<'m>,
    call: ExprId,
    operands: SmallVec<[Slot; 4]>,
}

impl Writer for CallWriter<'_, '_> {
    fn operand_name(&mut self, i: usize, hint: Option<&str>) -> Result<String, ExportProblem> {
        self.exporter.slot_name(self.operands[i], hint)
    }

    fn is_operand(&self, i: usize, name: &str) -> bool {
        match self.operands[i] {
            Slot::Value(v) => self.exporter.value_names[v.index()].as_deref() == Some(name),
            _ => false,
        }
    }

    fn own_constant(&mut self, literal: &Literal, wish: &str) -> Result<String, ExportProblem> {
        let Exporter { cx, constants, names, .. } = &mut *self.exporter;
        let bound = cx.names.find(wish).and_then(|wish| constants.bound_as(wish));
        match bound.filter(|&(id, _)| cx.literals.get(id) == literal) {
            Some((_, name)) => Ok(name.to_owned()),
            None => Ok(constants.own(names, literal, wish)?.to_string()),
        }
    }

    fn fresh_name(&mut self, wish: &str) -> String {
        self.exporter.names.claim(wish).to_string()
    }

    fn opset(&self, domain: &str) -> i64 {
        self.exporter.versions.opset(domain)
    }

    fn states_versions(&self) -> bool {
        self.exporter.versions.are_stated
    }

    fn is_consumed(&self, output: usize) -> bool {
        let Exporter { slots, consumed, .. } = &*self.exporter;
        match slots.fields(slots.of_call(self.call)).get(output) {
            Some(Slot::Value(v)) => consumed.get_or_init(|| slots.consumed())[v.index()],
            _ => false,
        }
    }

    fn symbol_source(&mut self, symbol: SymbolId) -> Result<Option<(String, SymbolPlace)>, ExportProblem> {
        let Exporter { cx, body, slots, symbol_places: places, .. } = &*self.exporter;
        let Some(&(param, place)) = places.get_or_init(|| symbol_places(cx, body)).get(&symbol) else {
            return Ok(None);
        };
        let slot = slots.of_atom(param)?;
        Ok(Some((self.exporter.slot_name(slot, None)?, place)))
    }
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

/// Returns true if the results of two branches may be the results of one node: tensors of the same
/// element type, or equal types. The type of a condition may select a branch, so that the other one
/// has any type.
fn have_same_kind(types: &Types, a: TypeId, b: TypeId) -> bool {
    let fields = |ty| types.as_tuple(ty).map_or_else(|| vec![ty], <[TypeId]>::to_vec);
    let (a, b) = (fields(a), fields(b));
    let is_same = |(&a, &b): (&TypeId, &TypeId)| match (types.as_tensor(a), types.as_tensor(b)) {
        (Some(a), Some(b)) => a.dtype == b.dtype,
        _ => types.accepts(a, b) || types.accepts(b, a),
    };
    a.len() == b.len() && a.iter().zip(&b).all(is_same)
}
