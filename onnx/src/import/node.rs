//! Nodes: a call of an operator of ours where one means the same, else a call that is kept as it is.

use anfora_ir::{
    Attr, AttrId, Context, DType, Expr, ExprId, FunctionBuilder, Literal, OpPurity, Shape, TensorType, TypeId,
};
use rustc_hash::FxHashSet;

use super::graph::{Importer, OpenGraph, PendingNode, Settings, Stated, doc_of};
use super::hints_attr;
use super::result_types::result_type;
use crate::attributes::{encoded_attr, encoded_list, has_only_its_value, strs_attr, value_of};
use crate::convert::{Conversion, Lowered, Operands};
use crate::error::ImportProblem;
use crate::keys;
use crate::opaque::{encode, is_standard, is_view, purity};
use crate::proto::{AttributeProto, AttributeType, NodeProto};

/// Types of more extents than these are left to operators that are kept as they are: type rules are linear in them at every node.
const MAX_RANK: usize = 64;
/// Constants of at most this many bytes are printed where they are computed as well as where they are used.
const SMALL_CONSTANT: usize = 1024;

/// A node, as the conversion of its operator sees it.
pub struct NodeImport<'a, 'm> {
    builder: &'a mut FunctionBuilder<'m>,
    row: &'a Conversion,
    node: &'a NodeProto,
    operands: &'a [ExprId],
    opset: i64,
    /// For each output, whether anything may use it.
    used_outputs: &'a [bool],
}

impl NodeImport<'_, '_> {
    /// The tables of the module.
    pub fn cx(&mut self) -> &mut Context {
        self.builder.cx()
    }

    /// A call of the operator that the conversion's row names.
    pub fn call(&self, operands: Vec<ExprId>, attrs: Vec<(&'static str, AttrId)>) -> Option<Lowered> {
        Some(Lowered::Call { op: self.row.native.clone(), operands, attrs })
    }

    /// The operator of ours that the conversion's row names.
    pub fn native(&self) -> &str {
        &self.row.native
    }

    /// The version of the operator's domain.
    pub fn opset(&self) -> i64 {
        self.opset
    }

    /// The number of operands, those that are left out included.
    pub fn operand_count(&self) -> usize {
        self.operands.len()
    }

    /// An operand, unless it is left out.
    pub fn operand(&mut self, i: usize) -> Option<ExprId> {
        let operand = *self.operands.get(i)?;
        (self.builder.body().expr(operand) != Expr::None).then_some(operand)
    }

    /// All operands; `None` if one is left out.
    pub fn all_operands(&mut self) -> Option<Vec<ExprId>> {
        (0..self.operands.len()).map(|i| self.operand(i)).collect()
    }

    /// The type of an operand.
    pub fn ty(&mut self, i: usize) -> Option<TypeId> {
        let operand = self.operand(i)?;
        Some(self.builder.body().ty(operand))
    }

    /// Element type and extents of an operand that is a tensor.
    pub fn tensor(&mut self, i: usize) -> Option<&TensorType> {
        let ty = self.ty(i)?;
        self.builder.cx().types.as_tensor(ty)
    }

    /// The element type of an operand.
    pub fn dtype(&mut self, i: usize) -> Option<DType> {
        Some(self.tensor(i)?.dtype)
    }

    /// The number of extents of an operand, if it is known.
    pub fn rank(&mut self, i: usize) -> Option<usize> {
        Some(self.tensor(i)?.shape.as_ref()?.len())
    }

    /// The extents of an operand, each if it is known; `None` if not even their number is.
    pub fn extents(&mut self, i: usize) -> Option<Vec<Option<i64>>> {
        let shape = self.tensor(i)?.shape.clone()?;
        let dims = &self.builder.cx().types.dims;
        Some(shape.iter().map(|&d| dims.as_constant(d)).collect())
    }

    /// The extents of an operand, if all are known.
    pub fn static_shape(&mut self, i: usize) -> Option<Shape> {
        let ty = self.ty(i)?;
        self.builder.cx().types.static_shape(ty)
    }

    /// The value of an operand that is a constant.
    pub fn literal(&mut self, i: usize) -> Option<&Literal> {
        let operand = self.operand(i)?;
        let id = self.builder.body().as_literal(operand)?;
        Some(self.builder.cx().literals.get(id))
    }

    /// The value of an operand that is a constant list of integers. It has at most as many as there can be extents.
    pub fn ints_operand(&mut self, i: usize) -> Option<Vec<i64>> {
        let literal = self.literal(i)?;
        (literal.rank() <= 1 && literal.element_count() <= MAX_RANK).then(|| literal.to_i64s())?
    }

    /// A constant as an operand.
    pub fn constant(&mut self, literal: Literal) -> ExprId {
        self.builder.literal(literal)
    }

    /// The number of outputs that the node lists.
    pub fn output_count(&self) -> usize {
        self.node.output.len()
    }

    /// Whether the node has an output of that number, and anything may use it.
    pub fn is_output_used(&self, i: usize) -> bool {
        self.used_outputs.get(i).is_some_and(|&u| u)
    }

    /// The attributes of the node.
    pub fn node_attributes(&self) -> &[AttributeProto] {
        &self.node.attribute
    }

    /// An attribute of the node; its type is the one that the conversion's row says.
    pub fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.node.attribute.iter().find(|a| a.name() == name)
    }

    /// An integer attribute.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.attribute(name).map(|a| a.i.unwrap_or(0))
    }

    /// A float attribute.
    pub fn float(&self, name: &str) -> Option<f32> {
        self.attribute(name).map(|a| a.f.unwrap_or(0.0))
    }

    /// A list attribute.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        self.attribute(name).map(|a| a.ints.as_slice())
    }

    /// A string attribute; `None` also if it is not UTF-8.
    pub fn str(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.attribute(name)?.s.as_deref().unwrap_or_default()).ok()
    }

    /// A float attribute of an operator of ours. For elements of at most 32 bits this is the shortest decimal that is the same `f32`,
    /// which is what was meant and gives the same bits; for `float64` it is exactly the `f32`.
    pub fn float_attr(&mut self, value: f32, dtype: DType) -> AttrId {
        let exact = f64::from(value);
        let short = value.to_string().parse().unwrap_or(exact);
        let same = (short as f32).to_bits() == value.to_bits();
        let chosen = if dtype == DType::Float64 || !same { exact } else { short };
        self.cx().float_attr(chosen)
    }

    /// A boolean attribute of an operator of ours.
    pub fn bool_attr(&mut self, value: bool) -> AttrId {
        self.cx().attr(Attr::Bool(value))
    }
}

impl<'a> Importer<'_, 'a> {
    /// Imports a node whose subgraphs are imported.
    pub(super) fn node(&mut self, graph: &mut OpenGraph, pending: &PendingNode) -> Result<(), ImportProblem> {
        let node = &pending.node;
        if node.op_type().is_empty() {
            return Err(ImportProblem::Missing("op_type"));
        }
        if let Some(name) = repeated_name(&node.attribute) {
            return Err(ImportProblem::DuplicateAttribute(name.to_owned()));
        }
        let mut operands = Vec::with_capacity(node.input.len() + pending.subgraphs.len());
        let mut hints = Vec::with_capacity(node.input.len());
        for name in &node.input {
            if name.is_empty() {
                operands.push(self.builder.editor().none());
                hints.push("");
                continue;
            }
            let operand = self.use_value(graph, Some(node), name)?.expr;
            let is_constant = self.builder.body().as_literal(operand).is_some();
            operands.push(operand);
            hints.push(if is_constant { name.as_str() } else { "" });
        }

        let mut meta = doc_of(self.builder.cx(), &node.doc_string, &node.metadata_props);
        let cx = self.builder.cx();
        meta.extend(node.name.as_ref().filter(|n| !n.is_empty()).map(|n| (keys::NAME, cx.str_attr(n))));
        meta.extend(encoded_list(cx, &node.device_configurations).map(|d| (keys::DEVICES, d)));
        meta.extend(hints_attr(cx, &hints).map(|h| (keys::INPUTS, h)));

        if let Some((row, lowered)) = self.lower(graph, pending, &operands)
            && let Some(value) = self.native_value(node, lowered)?
        {
            let carried = row.carried;
            let carried: Vec<&AttributeProto> = node.attribute.iter().filter(|a| carried.contains(&a.name())).collect();
            if !carried.is_empty() {
                let cx = self.builder.cx();
                let mut items = vec![cx.str_attr(node.op_type())];
                items.extend(carried.into_iter().map(|a| encoded_attr(cx, a)));
                meta.push((keys::CARRIED, cx.attr(Attr::List(items.into()))));
            }
            return self.bind_native(graph, node, value, meta);
        }
        self.bind_opaque(graph, pending, operands, meta)
    }

    /// What a node becomes by its operator's conversion, if there is one that takes it.
    fn lower(
        &mut self,
        graph: &OpenGraph,
        pending: &PendingNode,
        operands: &[ExprId],
    ) -> Option<(&'a Conversion, Lowered)> {
        let node = &pending.node;
        let domain = if is_standard(node.domain()) { "" } else { node.domain() };
        let settings: &'a Settings<'a> = self.settings;
        let opset = *settings.opsets.get(domain)?;
        let row = settings.conversions.for_node(domain, node.op_type(), opset)?;
        let rule = row.import?;
        let is_known = |a: &AttributeProto| {
            let typed =
                row.attributes.iter().any(|&(name, ty)| name == a.name() && a.r#type() == ty && has_only_its_value(a));
            typed || row.carried.contains(&a.name())
        };
        if !pending.subgraphs.is_empty() || !node.overload().is_empty() || !node.attribute.iter().all(is_known) {
            return None;
        }
        if row.operands == Operands::Computed && !operands.iter().all(|&o| self.is_computed(o)) {
            return None;
        }
        let cx = self.builder.cx();
        let used_outputs: Vec<bool> =
            node.output.iter().map(|o| !o.is_empty() && graph.may_use(cx.names.intern(o))).collect();
        let mut import =
            NodeImport { builder: &mut self.builder, row, node, operands, opset, used_outputs: &used_outputs };
        Some((row, rule(&mut import)?))
    }

    /// Whether an operand is left out, or a tensor that the kernels compute with.
    fn is_computed(&mut self, operand: ExprId) -> bool {
        if self.builder.body().expr(operand) == Expr::None {
            return true;
        }
        let ty = self.builder.body().ty(operand);
        let tensor = self.builder.cx().types.as_tensor(ty);
        tensor.is_some_and(|t| t.dtype.has_kernels() && t.shape.as_ref().is_none_or(|s| s.len() <= MAX_RANK))
    }

    /// The value that a conversion asks for, if it gives all of the node's outputs.
    fn native_value(&mut self, node: &NodeProto, lowered: Lowered) -> Result<Option<Native>, ImportProblem> {
        let (op, operands, attrs) = match lowered {
            Lowered::Operand(value) => return Ok((node.output.len() == 1).then_some(Native::Alias(value))),
            Lowered::Constant(literal) => {
                let is_small = literal.stored_bytes() <= SMALL_CONSTANT;
                let value = self.builder.literal(literal);
                return Ok((node.output.len() == 1).then_some(Native::Constant { value, is_small }));
            }
            Lowered::Call { op, operands, attrs } => (op, operands, attrs),
        };
        let Some(op) = self.builder.cx().ops.find(&op) else { return Ok(None) };
        let attrs = self.builder.named_attrs(&attrs);
        match self.builder.editor().call_op(op, &operands, attrs) {
            Ok(value) => {
                let ty = self.builder.body().ty(value);
                let cx = self.builder.cx();
                let results = cx.types.as_tuple(ty).map_or(1, <[TypeId]>::len);
                let is_impure = cx.ops.get(op).purity == OpPurity::Impure;
                Ok((node.output.len() <= results).then_some(Native::Call { value, is_impure }))
            }
            // Where an extent is not known, the rule may ask for more than the operator does.
            Err(e) if operands.iter().all(|&o| self.is_static(o)) => Err(ImportProblem::Type(e)),
            Err(_) => Ok(None),
        }
    }

    fn is_static(&mut self, operand: ExprId) -> bool {
        let ty = self.builder.body().ty(operand);
        self.builder.body().expr(operand) == Expr::None || self.builder.cx().types.static_shape(ty).is_some()
    }

    fn bind_native(
        &mut self,
        graph: &mut OpenGraph,
        node: &NodeProto,
        native: Native,
        mut meta: Vec<(&'static str, AttrId)>,
    ) -> Result<(), ImportProblem> {
        let name = node.output.first().map_or("", String::as_str);
        let (value, is_impure) = match native {
            Native::Alias(value) if self.builder.body().as_literal(value).is_some() => {
                return self.define_output(name, value);
            }
            Native::Alias(value) => return self.bind_output(graph, name, value, meta),
            Native::Constant { value, is_small } => {
                let has_more = meta.iter().any(|&(key, _)| key != keys::NAME);
                if is_small || has_more {
                    let attribute = node.attribute.first().map_or("value", |a| a.name());
                    meta.push((keys::CONSTANT, self.builder.cx().str_attr(attribute)));
                } else {
                    return self.define_output(name, value);
                }
                (value, false)
            }
            Native::Call { value, is_impure } => (value, is_impure),
        };
        graph.is_impure |= is_impure;
        // Uses of a constant name it directly, so that types can depend on it; the binding only carries along what the file says.
        if self.builder.body().as_literal(value).is_some() {
            if !name.is_empty() {
                self.push_stated(graph, name, value, &mut meta)?;
                let var = self.builder.bind(name, value);
                self.set_meta(var, &meta);
            }
            return self.define_output(name, value);
        }
        let ty = self.builder.body().ty(value);
        if self.builder.cx().types.as_tuple(ty).is_some() {
            return self.bind_outputs(graph, &node.output, value, meta);
        }
        self.bind_output(graph, name, value, meta)?;
        match self.constant_view(value) {
            // Like the binding of a constant, that of the same elements under another shape only carries along what the file says.
            Some(constant) if !name.is_empty() => {
                let name = self.builder.cx().names.intern(name);
                self.scope.replace_operand(name, constant);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The value of a call that gives a constant another shape.
    fn constant_view(&mut self, call: ExprId) -> Option<ExprId> {
        let body = self.builder.body();
        let Expr::CallOp { op, operands, .. } = body.expr(call) else { return None };
        let source = body.as_literal(*body.operands(operands).first()?)?;
        let ty = body.ty(call);
        let cx = self.builder.cx();
        if !is_view(&cx.ops.get(op).name) {
            return None;
        }
        let shape = cx.types.static_shape(ty)?;
        let literal = cx.literals.get(source).reshaped(&shape).ok()?;
        Some(self.builder.literal(literal))
    }

    /// Binds the one result of a node.
    pub(super) fn bind_output(
        &mut self,
        graph: &mut OpenGraph,
        name: &str,
        value: ExprId,
        mut meta: Vec<(&'static str, AttrId)>,
    ) -> Result<(), ImportProblem> {
        self.push_stated(graph, name, value, &mut meta)?;
        let var = self.builder.bind(name, value);
        self.set_meta(var, &meta);
        self.define_output(name, var)
    }

    /// Binds a tuple, and those of its fields that have a name.
    pub(super) fn bind_outputs(
        &mut self,
        graph: &mut OpenGraph,
        names: &[String],
        value: ExprId,
        meta: Vec<(&'static str, AttrId)>,
    ) -> Result<(), ImportProblem> {
        let tuple = self.builder.bind("", value);
        self.set_meta(tuple, &meta);
        for (i, name) in names.iter().enumerate() {
            if !name.is_empty() {
                let field = self.builder.proj(tuple, i as u32).map_err(|e| ImportProblem::Other(e.to_string()))?;
                self.bind_output(graph, name, field, Vec::new())?;
            }
        }
        Ok(())
    }

    fn define_output(&mut self, name: &str, value: ExprId) -> Result<(), ImportProblem> {
        if name.is_empty() {
            return Ok(());
        }
        let name = self.builder.cx().names.intern(name);
        self.define(name, value)
    }

    /// Checks a value against what the file states about it, and notes what has to be carried along.
    fn push_stated(
        &mut self,
        graph: &mut OpenGraph,
        name: &str,
        value: ExprId,
        meta: &mut Vec<(&'static str, AttrId)>,
    ) -> Result<(), ImportProblem> {
        let id = self.builder.cx().names.intern(name);
        let Some(Stated { info, is_output }) = graph.stated.remove(&id) else { return Ok(()) };
        let found = self.builder.body().ty(value);
        let stated = self.stated_type(&info);
        self.check_stated(&info, stated, found)?;
        if !is_output {
            let says_more = self.says_more(&info, found);
            let cx = self.builder.cx();
            let attr = if says_more { encoded_attr(cx, &info) } else { cx.attr(Attr::Bool(true)) };
            meta.push((keys::INFO, attr));
        }
        Ok(())
    }

    /// Keeps a node as it is: its subgraphs are its last operands.
    fn bind_opaque(
        &mut self,
        graph: &mut OpenGraph,
        pending: &PendingNode,
        mut operands: Vec<ExprId>,
        meta: Vec<(&'static str, AttrId)>,
    ) -> Result<(), ImportProblem> {
        let node = &pending.node;
        let labels: Vec<&str> = pending.subgraphs.iter().map(|(label, _)| label.as_str()).collect();
        operands.extend(pending.subgraphs.iter().map(|&(_, value)| value));

        let mut attrs: Vec<(&str, AttrId)> = Vec::with_capacity(node.attribute.len());
        let mut raw = Vec::new();
        let holders: FxHashSet<&str> = labels.iter().map(|l| l.split_once('[').map_or(*l, |(name, _)| name)).collect();
        for attribute in &node.attribute {
            if holders.contains(attribute.name()) && is_empty_graph_attribute(attribute) {
                continue;
            }
            match value_of(self.builder.cx(), attribute)? {
                Some(value) => attrs.push((attribute.name(), value)),
                None => raw.push(attribute.clone()),
            }
        }
        let cx = self.builder.cx();
        attrs.extend(encoded_list(cx, &raw).map(|r| (keys::RAW, r)));
        if !labels.is_empty() {
            attrs.push((keys::SUBGRAPHS, strs_attr(cx, labels.iter().copied())));
        }
        if !node.overload().is_empty() {
            attrs.push((keys::OVERLOAD, cx.str_attr(node.overload())));
        }
        let is_single = matches!(node.output.as_slice(), [one] if !one.is_empty());
        if !is_single {
            let flags = node.output.iter().map(|o| cx.attr(Attr::Bool(!o.is_empty()))).collect();
            attrs.push((keys::PRESENT, cx.attr(Attr::List(flags))));
        }
        let attrs = cx.named_attrs(&attrs);

        let subgraphs = if pending.is_impure { OpPurity::Impure } else { OpPurity::Pure };
        let op_name = encode(node.domain(), node.op_type(), subgraphs);
        let is_impure = purity(&op_name);
        graph.is_impure |= is_impure == OpPurity::Impure;
        let op = cx.ops.opaque(&op_name, is_impure).map_err(ImportProblem::Type)?;

        let operand_types: Vec<TypeId> = operands.iter().map(|&o| self.builder.body().ty(o)).collect();
        let mut types = Vec::with_capacity(node.output.len());
        for (i, name) in node.output.iter().enumerate() {
            types.push(match name.as_str() {
                "" => self.builder.cx().types.unit(),
                name => match self.stated_output(graph, name) {
                    Some(stated) => stated,
                    None if is_standard(node.domain()) => result_type(self.builder.cx(), node, i, &operand_types),
                    None => self.builder.cx().types.any(),
                },
            });
        }
        let ty = if is_single { types[0] } else { self.builder.cx().types.tuple(&types) };
        let value = self.builder.editor().call_opaque(op, &operands, attrs, ty);
        if is_single {
            return self.bind_output(graph, &node.output[0], value, meta);
        }
        self.bind_outputs(graph, &node.output, value, meta)
    }

    /// The type that the file states for a value, if it states one.
    fn stated_output(&mut self, graph: &OpenGraph, name: &str) -> Option<TypeId> {
        let id = self.builder.cx().names.intern(name);
        let info = &graph.stated.get(&id)?.info;
        info.r#type.as_ref()?;
        Some(self.stated_type(info))
    }
}

/// The value of a node of which the meaning is known.
enum Native {
    /// A call, bound by nothing yet.
    Call { value: ExprId, is_impure: bool },
    /// A value that there is already.
    Alias(ExprId),
    /// A constant, and whether it may be printed twice.
    Constant { value: ExprId, is_small: bool },
}

/// Whether an attribute whose graphs were taken out has nothing else to it.
fn is_empty_graph_attribute(attribute: &AttributeProto) -> bool {
    let only = |ty: AttributeType| AttributeProto {
        name: attribute.name.clone(),
        r#type: Some(ty as i32),
        ..AttributeProto::default()
    };
    *attribute == only(AttributeType::Graph) || *attribute == only(AttributeType::Graphs)
}

/// A name that two attributes have.
fn repeated_name(attributes: &[AttributeProto]) -> Option<&str> {
    let mut seen = FxHashSet::default();
    attributes.iter().map(AttributeProto::name).find(|&name| !seen.insert(name))
}
