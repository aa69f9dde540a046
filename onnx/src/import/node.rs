//! Import of nodes. A node becomes a call of one of our operators with the same meaning, or else a
//! call that keeps it unchanged.

use anfora_ir::{Attr, AttrId, Body, Expr, ExprId, NameId, OpPurity, Operand, TypeId};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::importer::{Importer, NodeNames, OpenGraph, PendingNode, Settings, node_meta};
use super::warnings::Warning;
use crate::attributes::{encoded_attr, encoded_list, has_only_its_value, no_value, strs_attr, value_of};
use crate::convert::{Conversion, Lowered, MAX_RANK, NodeImport, Operands, Unwritable, check_call};
use crate::domains::is_standard;
use crate::error::{ImportProblem, UnsupportedReason, because};
use crate::keys;
use crate::opaque::{encode, is_view, purity};
use crate::proto::{AttributeProto, AttributeType, NodeProto};
use crate::signatures::{ResultType, parameter_types, purity_of, result_types};
use crate::tensor::SMALL_CONSTANT;
use crate::types::refined;

impl<'a> Importer<'_, 'a> {
    /// Imports a node whose subgraphs are imported. Keeps it unchanged if `kept` is a reason.
    pub(super) fn node(
        &mut self,
        graph: &mut OpenGraph,
        pending: &mut PendingNode,
        kept: Option<UnsupportedReason>,
    ) -> Result<(), ImportProblem> {
        // Check the node.
        pending.calls_function = kept.is_some();
        let PendingNode { node, names, .. } = &*pending;
        if node.op_type().is_empty() {
            return Err(ImportProblem::Missing("op_type"));
        }
        if let Some(name) = repeated_name(&node.attribute) {
            return Err(ImportProblem::DuplicateAttribute(name.to_owned()));
        }
        // Resolve the operands.
        let mut operands = Vec::with_capacity(node.input.len() + pending.subgraphs.len());
        let mut hints: SmallVec<[Option<NameId>; 4]> = SmallVec::with_capacity(names.inputs.len());
        for &input in &names.inputs {
            let Some(name) = input else {
                operands.push(self.builder.editor().none());
                hints.push(None);
                continue;
            };
            let operand = self.use_value(graph, Some(node), name)?.expr;
            operands.push(operand);
            hints.push(input.filter(|_| self.builder.body().as_literal(operand).is_some()));
        }

        // Collect the metadata.
        let mut meta = node_meta(self.builder.cx(), node, &hints);

        // Translate the node, if it is not kept unchanged.
        let used_outputs = used_outputs(graph, &names.outputs);
        let lowered = match self.branches(graph, pending, &operands) {
            Ok(value) => {
                graph.is_impure |= pending.is_impure;
                return self.bind_branches(graph, pending, value, meta);
            }
            Err(why) => match kept {
                Some(why) => Err(why),
                None if !pending.subgraphs.is_empty() => Err(why),
                None => self.lower(node, &operands, &used_outputs),
            },
        };
        let lowered = match lowered {
            Ok((row, lowered)) => self.native_value(lowered, &used_outputs).map(|native| (row, native)),
            Err(why) => Err(why),
        };
        // Bind the result.
        match lowered {
            Ok((row, native)) => {
                let carried = row.carried;
                let carried: Vec<&AttributeProto> =
                    node.attribute.iter().filter(|a| carried.contains(&a.name())).collect();
                if !carried.is_empty() {
                    let cx = self.builder.cx();
                    let mut items = vec![cx.str_attr(node.op_type())];
                    items.extend(carried.into_iter().map(|a| encoded_attr(cx, a)));
                    meta.push((keys::CARRIED, cx.attr(Attr::List(items.into()))));
                }
                self.bind_native(graph, pending, native, meta)
            }
            Err(why) => {
                let domain = standard_domain(node);
                let version = self.settings.opsets.get(domain).copied();
                if self.settings.differing.contains(domain) {
                    return Err(ImportProblem::DifferentOpset(node.op_type().to_owned()));
                }
                if why.is_misfit() {
                    self.warnings.push(Warning::misfit(why.reason().to_owned()));
                }
                self.settings.notes.keep(node, domain, version, &why);
                self.bind_opaque(graph, pending, operands, meta)
            }
        }
    }

    /// Converts a node by the row of its operator.
    fn lower(
        &mut self,
        node: &NodeProto,
        operands: &[ExprId],
        used_outputs: &[bool],
    ) -> Result<(&'a Conversion, Lowered), UnsupportedReason> {
        let domain = standard_domain(node);
        let settings: &'a Settings<'a> = self.settings;
        let opset = settings.opsets.get(domain).copied();
        let opset = opset.ok_or_else(|| because("the file imports no version of its domain"))?;
        let row = settings.conversions.for_node(domain, node.op_type(), opset);
        let row = row.map_err(UnsupportedReason::because)?;
        let rule = row.import.ok_or_else(|| because("there is no operator of ours for it"))?;
        if !node.overload().is_empty() {
            return Err(because("it names an overload"));
        }
        for a in node.attribute.iter().filter(|a| !row.carried.contains(&a.name())) {
            match row.attributes.iter().find(|&&(name, _)| name == a.name()) {
                None => return Err(because(format!("the attribute `{}` is not known", a.name()))),
                Some(&(_, ty)) if a.r#type() != ty || !has_only_its_value(a) => {
                    return Err(because(format!("the attribute `{}` is not of the type {ty:?}", a.name())));
                }
                Some(_) => {}
            }
        }
        if row.operands != Operands::Any {
            for (i, &operand) in operands.iter().enumerate() {
                self.check_operand(i, operand, row.operands)?;
            }
        }
        let mut import = NodeImport {
            builder: &mut self.builder,
            row,
            node,
            operands,
            opset,
            used_outputs,
            check: &|cx, body, call| {
                let table = (settings.conversions, &*settings.written);
                check_call(cx, body, call, &[true], table).map(drop).map_err(|e| because(e.to_string()))
            },
        };
        Ok((row, rule(&mut import)?))
    }

    /// Checks that an operand is left out, or is a tensor that the kernels of a row take.
    fn check_operand(&mut self, i: usize, operand: ExprId, taken: Operands) -> Result<(), UnsupportedReason> {
        if self.builder.body().expr(operand) == Expr::None {
            return Ok(());
        }
        let ty = self.builder.body().ty(operand);
        match self.builder.cx().types.as_tensor(ty) {
            None => Err(because(format!("input {i} is not known to be a tensor"))),
            Some(t) if !(t.dtype.has_kernels() || taken == Operands::Numbers && t.dtype.is_small_number()) => {
                Err(because(format!("input {i} has elements of {}, with which nothing is computed", t.dtype)))
            }
            Some(t) if t.shape.as_ref().is_some_and(|s| s.len() > MAX_RANK) => {
                Err(because(format!("input {i} has more than {MAX_RANK} extents")))
            }
            Some(_) => Ok(()),
        }
    }

    /// Returns the value that a conversion asks for. It must provide all of the node's outputs, and
    /// export must be able to write it.
    fn native_value(&mut self, lowered: Lowered, used_outputs: &[bool]) -> Result<Native, UnsupportedReason> {
        let outputs = used_outputs.len();
        let has = |results: usize, native: Native| match outputs <= results {
            true => Ok(native),
            false => Err(because(format!("it has {outputs} outputs"))),
        };
        let (op, operands, attrs) = match lowered {
            Lowered::Operand(value) => return has(1, Native::Alias(value)),
            Lowered::Constant(literal) => {
                let is_small = literal.stored_bytes() <= SMALL_CONSTANT;
                let value = self.builder.literal(literal);
                return has(1, Native::Constant { value, is_small });
            }
            Lowered::Call { op, mut operands, attrs } => {
                // Trailing operands that are left out have a single form: they are removed.
                let body = self.builder.body();
                let given = operands.iter().rposition(|&o| body.expr(o) != Expr::None);
                operands.truncate(given.map_or(0, |last| last + 1));
                (op, operands, attrs)
            }
        };
        let Some(op) = self.builder.cx().ops.find(&op) else {
            return Err(because(format!("the registry has no `{op}`")));
        };
        let attrs = self.builder.named_attrs(&attrs);
        let value = self.builder.editor().call_op(op, &operands, attrs).map_err(|e| {
            // If an extent is not known, the type rule may require more than the operator does.
            match operands.iter().all(|&o| self.is_static(o)) {
                true => UnsupportedReason::misfit(e.to_string()),
                false => because(e.to_string()),
            }
        })?;
        let table = (self.settings.conversions, &*self.settings.written);
        let editor = &mut self.builder.editor();
        let writable = &mut self.state.writable;
        writable.check(editor.cx, editor.body, value, used_outputs, table).map_err(|e| match e {
            Unwritable::Elements(_) => UnsupportedReason::misfit(e.to_string()),
            _ => because(e.to_string()),
        })?;
        let ty = self.builder.body().ty(value);
        let cx = self.builder.cx();
        let results = cx.types.as_tuple(ty).map_or(1, <[TypeId]>::len);
        let is_impure = cx.ops.facts(op).is_impure();
        has(results, Native::Call { value, is_impure })
    }

    fn is_static(&mut self, operand: ExprId) -> bool {
        let ty = self.builder.body().ty(operand);
        self.builder.body().expr(operand) == Expr::None || self.builder.cx().types.static_shape(ty).is_some()
    }

    fn bind_native(
        &mut self,
        graph: &mut OpenGraph,
        pending: &PendingNode,
        native: Native,
        mut meta: Vec<(&str, AttrId)>,
    ) -> Result<(), ImportProblem> {
        let PendingNode { node, names, .. } = pending;
        let name = names.outputs.first().copied().flatten();
        let (value, is_impure) = match native {
            Native::Alias(value)
                if self.builder.body().as_literal(value).is_some() || self.builder.body().expr(value) == Expr::None =>
            {
                self.define_output(name, value)?;
                self.note_alias(names, value);
                return Ok(());
            }
            Native::Alias(value) => {
                self.bind_output(graph, name, value, meta)?;
                if let Some(&elements) = self.state.elements.get(&value) {
                    self.note_elements(name, elements);
                }
                return Ok(());
            }
            Native::Constant { value, is_small } => {
                // Uses refer to a constant directly, so that types can depend on it. The binding
                // only preserves what the file states.
                let has_more = meta.iter().any(|&(key, _)| key != keys::NAME);
                if (is_small || has_more) && name.is_some() {
                    let attribute = node.attribute.first().map_or("value", |a| a.name());
                    meta.push((keys::CONSTANT, self.builder.cx().str_attr(attribute)));
                    self.push_stated(graph, name, value, &mut meta);
                    let var = self.bind(name, value);
                    self.set_meta(var, &meta);
                }
                return self.define_output(name, value);
            }
            Native::Call { value, is_impure } => (value, is_impure),
        };
        graph.is_impure |= is_impure;
        self.bind_results(graph, &names.outputs, value, meta)?;
        match (self.constant_view(value), name) {
            // The binding of a reshaped constant, like that of a constant, only preserves what the
            // file states.
            (Some(constant), Some(name)) => {
                self.state.scope.replace_operand(name, constant);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns the value of a call that reshapes a constant.
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

    /// Binds the results of a node: a single one, or a tuple and its named fields.
    pub(super) fn bind_results(
        &mut self,
        graph: &mut OpenGraph,
        names: &[Option<NameId>],
        value: ExprId,
        meta: Vec<(&str, AttrId)>,
    ) -> Result<(), ImportProblem> {
        let ty = self.builder.body().ty(value);
        if self.builder.cx().types.as_tuple(ty).is_none() {
            return self.bind_output(graph, names.first().copied().flatten(), value, meta);
        }
        let tuple = self.bind(None, value);
        self.set_meta(tuple, &meta);
        for (i, &name) in names.iter().enumerate().filter(|(_, name)| name.is_some()) {
            let field = self.builder.proj(tuple, i as u32).map_err(|e| ImportProblem::Other(e.to_string()))?;
            self.bind_output(graph, name, field, Vec::new())?;
        }
        Ok(())
    }

    /// Binds the single result of a node, or one of several.
    fn bind_output(
        &mut self,
        graph: &mut OpenGraph,
        name: Option<NameId>,
        value: ExprId,
        mut meta: Vec<(&str, AttrId)>,
    ) -> Result<(), ImportProblem> {
        self.push_stated(graph, name, value, &mut meta);
        let var = self.bind(name, value);
        self.set_meta(var, &meta);
        self.define_output(name, var)
    }

    fn define_output(&mut self, name: Option<NameId>, value: ExprId) -> Result<(), ImportProblem> {
        name.map_or(Ok(()), |name| self.define(name, value))
    }

    /// Records which operand of a node its first output is an alias of.
    fn note_alias(&mut self, names: &NodeNames, value: ExprId) {
        let mut inputs = names.inputs.iter().flatten();
        let origin = inputs.find(|&&i| self.state.scope.get(i).is_some_and(|v| v.expr == value));
        if let (Some(&origin), Some(&Some(name))) = (origin, names.outputs.first()) {
            self.state.scope.alias(name, origin);
        }
    }

    /// Keeps a node unchanged, with its subgraphs as its last operands.
    fn bind_opaque(
        &mut self,
        graph: &mut OpenGraph,
        pending: &mut PendingNode,
        mut operands: Vec<ExprId>,
        meta: Vec<(&str, AttrId)>,
    ) -> Result<(), ImportProblem> {
        operands.extend(self.bound_subgraphs(pending));
        let node = &pending.node;
        let labels: Vec<&str> = pending.subgraphs.iter().map(|(label, _)| label.as_str()).collect();

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

        // A function may do other things than the known operator that has its name.
        let is_other = pending.calls_function && purity_of(node.domain(), node.op_type()).is_some();
        let subgraphs = if pending.is_impure || is_other { OpPurity::Impure } else { OpPurity::Pure };
        let op_name = encode(node.domain(), node.op_type(), subgraphs);
        let is_impure = purity(&op_name);
        graph.is_impure |= is_impure == OpPurity::Impure;
        let op = cx.ops.opaque(&op_name, is_impure).map_err(ImportProblem::Type)?;

        let found = self.kept_types(pending, &operands);
        let names = &pending.names.outputs;
        let types = names.iter().zip(&found).map(|(&name, found)| match *found {
            ResultType::Known(ty) => match self.stated_output(graph, name) {
                Some(stated) => refined(self.builder.cx(), ty, stated),
                None => ty,
            },
            ResultType::NoTensor(_) => self.builder.cx().types.any(),
        });
        let types: Vec<TypeId> = types.collect();
        let ty = if is_single { types[0] } else { self.builder.cx().types.tuple(&types) };
        let value = self.builder.editor().call_opaque(op, &operands, attrs, ty);
        self.bind_results(graph, names, value, meta)?;
        for (&name, found) in names.iter().zip(found) {
            if let ResultType::NoTensor(Some(elements)) = found {
                self.note_elements(name, elements);
            }
        }
        Ok(())
    }

    /// Returns the types of the results of a node that is kept unchanged, as the row of its
    /// operator says.
    fn kept_types(&mut self, pending: &PendingNode, operands: &[ExprId]) -> Vec<ResultType> {
        let node = &pending.node;
        let version = self.settings.opsets.get(standard_domain(node)).copied().filter(|_| !pending.calls_function);
        let (operands, elements) = self.typed_operands(operands);
        result_types(self.builder.cx(), node, version, &operands, &elements)
    }

    /// Returns the types that the inputs of a node's subgraphs have in every call.
    pub(super) fn parameters_of_subgraphs(&mut self, node: &NodeProto) -> Vec<TypeId> {
        let version = self.settings.opsets.get(standard_domain(node)).copied();
        let mut operands = Vec::with_capacity(node.input.len());
        for input in &node.input {
            let name = self.builder.cx().names.intern(input);
            match self.state.scope.get(name) {
                Some(value) => operands.push(value.expr),
                None if input.is_empty() => operands.push(self.builder.editor().none()),
                // The error is reported when the node is imported.
                None => return Vec::new(),
            }
        }
        let (operands, elements) = self.typed_operands(&operands);
        parameter_types(self.builder.cx(), node, version, &operands, &elements)
    }

    /// Returns operands as type rules see them, and the types of their elements if they are
    /// sequences.
    fn typed_operands(&mut self, operands: &[ExprId]) -> (Vec<Operand>, Vec<Option<TypeId>>) {
        let elements = operands.iter().map(|o| self.state.elements.get(o).copied()).collect();
        let body = self.builder.body();
        (operands.iter().map(|&o| operand_of(body, o)).collect(), elements)
    }

    /// Records the type of the elements of a named value.
    fn note_elements(&mut self, name: Option<NameId>, elements: TypeId) {
        if let Some(value) = name.and_then(|name| self.state.scope.get(name)) {
            self.state.elements.insert(value.expr, elements);
        }
    }
}

/// The value of a node that was converted.
enum Native {
    /// A call that is not bound yet.
    Call { value: ExprId, is_impure: bool },
    /// An existing value.
    Alias(ExprId),
    /// A constant. If it is small, it may be printed twice.
    Constant { value: ExprId, is_small: bool },
}

/// Returns, for each output, true if anything may use it.
fn used_outputs(graph: &OpenGraph, outputs: &[Option<NameId>]) -> SmallVec<[bool; 8]> {
    outputs.iter().map(|o| o.is_some_and(|name| graph.may_use(name))).collect()
}

/// Returns true if an attribute, from which the graphs were taken, has nothing else.
pub(super) fn is_empty_graph_attribute(attribute: &AttributeProto) -> bool {
    let holds_only = |ty| *attribute == AttributeProto { name: attribute.name.clone(), ..no_value("", ty) };
    holds_only(AttributeType::Graph) || holds_only(AttributeType::Graphs)
}

/// Returns the domain of a node's operator; empty for the standard domain.
pub(super) fn standard_domain(node: &NodeProto) -> &str {
    if is_standard(node.domain()) { "" } else { node.domain() }
}

/// Returns an operand as type rules see it.
fn operand_of(body: &Body, operand: ExprId) -> Operand {
    Operand { ty: body.type_of(operand), literal: body.as_literal(operand), absent: body.expr(operand) == Expr::None }
}

/// Returns a name that two attributes have.
fn repeated_name(attributes: &[AttributeProto]) -> Option<&str> {
    let mut seen = FxHashSet::default();
    attributes.iter().map(AttributeProto::name).find(|&name| !seen.insert(name))
}
