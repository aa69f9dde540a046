//! The beginning of a graph: all values that it computes get names, and the constants that it binds
//! are written.

use anfora_ir::{Attr, AttrsId, Context, Expr, ExprId, LiteralId, NameId, VarId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::graph::{Exporter, InfoType, Output, UnfinishedGraph, View};
use super::graph_meta::GraphMeta;
use super::names::Name;
use super::nodes::Nodes;
use super::options::GraphKind;
use super::slots::{Block, Slot, ValueId};
use crate::attributes::{decoded, str, tensor_attribute};
use crate::convert::constant_attribute;
use crate::error::ExportProblem;
use crate::kept_initializer::is_initializer;
use crate::keys;
use crate::opaque::is_view;
use crate::proto::{ValueInfoProto, node};
use crate::types::{literal_message, proto_of};

impl<'m> Exporter<'m> {
    /// Begins a graph, inside the call `around` if there is one. All values that the graph computes
    /// get names.
    pub(super) fn open(
        &mut self,
        of: Block,
        meta: GraphMeta,
        block: ExprId,
        around: Option<ExprId>,
    ) -> Result<UnfinishedGraph<'m>, ExportProblem> {
        self.names.open();
        self.constants.open();
        let mut graph = UnfinishedGraph {
            block: of,
            meta,
            nodes: Nodes::default(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            output_names: FxHashSet::default(),
            infos: Vec::new(),
            at: block,
            pending: None,
            bound_constants: FxHashMap::default(),
            views: Vec::new(),
            is_tail_done: false,
        };
        // The inputs.
        let body = self.body;
        let params: Vec<VarId> = match of {
            Block::Function => body.params().to_vec(),
            Block::Lambda(e) | Block::Then(e) | Block::Else(e) => match body.expr(e) {
                Expr::Lambda { lambda, .. } => body.lambda_params(lambda).collect(),
                _ => Vec::new(),
            },
        };
        let infos = self.carried_infos(meta, keys::INFOS)?;
        for (i, param) in params.into_iter().enumerate() {
            if let Slot::Value(v) = self.slots.of_atom(param.expr())? {
                let name = self.names.claim(self.wish(v));
                let ty = InfoType::Of(body.ty(param.expr()));
                let info = self.info(&name, self.wish(v), ty, &infos, self.is_main(of))?;
                self.note_param(v, &info, i, of, around);
                graph.inputs.push(info);
                self.value_names[v.index()] = Some(name);
            }
        }
        // The outputs.
        self.forget_names(&mut graph, block);
        let tail = body.tail(block);
        let fields = self.slots.fields(self.slots.of_tail(tail));
        let wishes = self.names_in(meta, keys::OUTPUTS)?.filter(|names| names.len() == fields.len());
        let returned = self.names_in(meta, keys::RETURNED)?.unwrap_or_default();
        for (i, slot) in fields.into_iter().enumerate() {
            let wish = wishes.as_ref().map(|w| w[i]);
            let mut output = self.open_output(&mut graph, slot, wish, i)?;
            // An inner graph cannot return a constant itself, but the constant had this name.
            let own = wish.filter(|_| !self.is_main(of));
            output.hint = returned.get(i).filter(|name| !name.is_empty()).copied().or(own).map(str::to_owned);
            self.return_directly(&mut output, of)?;
            graph.outputs.push(output);
        }
        // The names of all other values.
        let mut at = block;
        while let Expr::Let { var, value, body: rest, .. } = body.expr(at) {
            match body.expr(value) {
                Expr::CallOp { .. } if self.conditions.contains(Some(var)) => {}
                Expr::CallOp { .. } => {
                    self.name_results(&mut graph, value)?;
                    self.note_view(&mut graph, var, value);
                }
                Expr::Call { .. } | Expr::If { .. } => self.name_results(&mut graph, value)?,
                Expr::Literal(id) => self.bind_constant(&mut graph, var, id)?,
                _ => {}
            }
            at = rest;
        }
        if let Expr::CallOp { .. } | Expr::Call { .. } | Expr::If { .. } = body.expr(tail) {
            self.name_results(&mut graph, tail)?;
        }
        Ok(graph)
    }

    /// Removes the names that the values of a block got when it was written before. Finds the
    /// constants that the block binds and the kinds of its values.
    fn forget_names(&mut self, graph: &mut UnfinishedGraph<'m>, block: ExprId) {
        let mut at = block;
        loop {
            let (value, rest) = match self.body.expr(at) {
                Expr::Let { var, value, body, .. } => {
                    if let (Expr::Literal(id), Some(name)) = (self.body.expr(value), self.body.var_name(var))
                        && !(self.kind == GraphKind::Function && graph.block == Block::Function)
                    {
                        graph.bound_constants.entry((id, name)).or_insert(Some(var));
                    }
                    (value, Some(body))
                }
                _ => (at, None),
            };
            let results = self.slots.fields(self.slots.of_call(value));
            for &slot in &results {
                if let Slot::Value(v) = slot {
                    self.value_names[v.index()] = None;
                }
            }
            self.note_results(value, &results);
            match rest {
                Some(rest) => at = rest,
                None => return,
            }
        }
    }

    /// Returns the requested name of a value.
    fn wish(&self, v: ValueId) -> &'m str {
        let cx: &'m Context = self.cx;
        self.slots.value(v).name.map_or("", |n| cx.names.get(n))
    }

    /// Names an output. The value itself takes the name if it can; otherwise a node will copy the
    /// value under that name.
    fn open_output(
        &mut self,
        graph: &mut UnfinishedGraph<'m>,
        slot: Slot,
        wish: Option<&str>,
        i: usize,
    ) -> Result<Output<'m>, ExportProblem> {
        let cx: &'m Context = self.cx;
        let own = match slot {
            Slot::Value(v) => self.wish(v),
            Slot::Literal(_, var) => var.and_then(|v| self.body.var_name(v)).map_or("", |n| cx.names.get(n)),
            Slot::None | Slot::Tuple(..) => {
                return Err(ExportProblem::Unsupported(format!("result {i}, which is not a tensor")));
            }
            Slot::Lambda(_) | Slot::Global(_) | Slot::Other => {
                return Err(ExportProblem::Unsupported(format!("result {i}, which is a function")));
            }
        };
        let is_stated = wish.is_some();
        let wish = match wish.unwrap_or(own) {
            "" => "output",
            wish => wish,
        };
        // An output name is repeated only if it was repeated in the file.
        let may_share = is_stated || graph.output_names.insert(wish.to_owned());
        let ty = InfoType::Of(cx.types.any());
        let mut output =
            Output { slot, name: Name::Made(wish.into()), wish: wish.to_owned(), hint: None, ty, is_direct: true };
        match slot {
            Slot::Value(v) => {
                let data = self.slots.value(v);
                output.ty = InfoType::Of(data.ty);
                match &self.value_names[v.index()] {
                    // The graph of a model may return an input under the same name, and may return
                    // a value twice. Other graphs may not, although checkers accept it: runtimes
                    // reuse the memory of such a result.
                    Some(name) if **name == *wish && may_share && self.is_main(graph.block) => {}
                    None if self.becomes_initializer(graph, data.meta)? => {
                        self.name_value(graph, v)?;
                        output.name = self.names.claim(wish);
                        output.is_direct = false;
                    }
                    None if data.block == graph.block && !data.is_param => {
                        output.name = self.names.claim(wish);
                        self.value_names[v.index()] = Some(output.name.clone());
                    }
                    _ => {
                        output.name = self.names.claim(wish);
                        output.is_direct = false;
                    }
                }
            }
            Slot::Literal(id, _) => {
                output.ty = InfoType::Message(literal_message(cx.literals.get(id)));
                output.name = self.names.claim(wish);
                let bound = cx.names.find(wish).and_then(|w| graph.bound_constants.get(&(id, w)).copied());
                match bound.flatten() {
                    Some(var) if self.is_main(graph.block) || self.is_node(graph, var)? => {
                        self.write_bound(graph, var, id, output.name.clone())?;
                        output.is_direct = true;
                    }
                    _ => output.is_direct = false,
                }
            }
            _ => {}
        }
        Ok(output)
    }

    /// Returns true if a call with this metadata is written as an initializer of the current graph,
    /// so that the graph must return it through a node.
    fn becomes_initializer(&self, graph: &UnfinishedGraph<'m>, meta: Option<AttrsId>) -> Result<bool, ExportProblem> {
        if graph.block == Block::Function {
            return Ok(false);
        }
        let Some(meta) = meta else { return Ok(false) };
        Ok(is_initializer(&self.metadata(GraphMeta::of(meta))?))
    }

    /// Returns true if the binding of a constant comes from a `Constant` node and is written as
    /// one.
    fn is_node(&self, graph: &UnfinishedGraph<'m>, var: VarId) -> Result<bool, ExportProblem> {
        let meta = self.body.meta(var.expr());
        let is_constant = meta.is_some_and(|meta| self.cx.find_attr(meta, keys::CONSTANT).is_some());
        Ok(is_constant && !self.becomes_initializer(graph, meta)?)
    }

    /// Names the results of a call and records what the file stated about them.
    fn name_results(&mut self, graph: &mut UnfinishedGraph<'m>, call: ExprId) -> Result<(), ExportProblem> {
        for slot in self.slots.fields(self.slots.of_call(call)) {
            if let Slot::Value(v) = slot
                && self.value_names[v.index()].is_none()
            {
                self.name_value(graph, v)?;
            }
        }
        Ok(())
    }

    /// Names a value and records what the file stated about it.
    fn name_value(&mut self, graph: &mut UnfinishedGraph<'m>, v: ValueId) -> Result<(), ExportProblem> {
        let name = self.names.claim(self.wish(v));
        let data = self.slots.value(v);
        let stated = data.meta.and_then(|m| self.cx.find_attr(m, keys::INFO));
        if let Some(stated) = stated {
            let own_type = || proto_of(self.cx, &self.symbols, data.ty);
            let info = match self.cx.attrs.get(stated) {
                Attr::Bool(_) => own_type().map(|ty| ValueInfoProto { r#type: Some(ty), ..ValueInfoProto::default() }),
                _ => {
                    let mut info: ValueInfoProto =
                        decoded(self.cx, stated).ok_or(ExportProblem::Damaged(keys::INFO))?;
                    // An empty type stands for that of the module: see `forget_stated_types`.
                    if info.r#type.as_ref().is_some_and(|ty| ty.value.is_none()) {
                        info.r#type = own_type();
                    }
                    Some(info)
                }
            };
            graph.infos.extend(info.map(|i| ValueInfoProto { name: Some(name.to_string()), ..i }));
        }
        self.value_names[v.index()] = Some(name);
        Ok(())
    }

    /// Records a node that reshapes a constant. A use of the reshaped constant under the name of
    /// the node's result is a use of that result.
    fn note_view(&mut self, graph: &mut UnfinishedGraph<'m>, var: VarId, call: ExprId) {
        let (cx, body) = (self.cx, self.body);
        let (Some(name), Expr::CallOp { op, operands, .. }) = (body.var_name(var), body.expr(call)) else { return };
        let source = body.operands(operands).first().and_then(|&o| body.as_literal(o));
        let (Some(source), Slot::Value(value)) = (source, self.slots.of_call(call)) else { return };
        if !is_view(&cx.ops.get(op).name) {
            return;
        }
        let shape = cx.types.static_shape(body.ty(call));
        if let Some(literal) = shape.and_then(|s| cx.literals.get(source).reshaped(&s).ok()) {
            self.views.entry(name).or_default().push(View { literal, id: None, value });
            graph.views.push(name);
        }
    }

    /// Returns the node's result that a use of the constant `id` under the name `hint` refers to.
    pub(super) fn view(&mut self, id: LiteralId, hint: NameId) -> Option<ValueId> {
        let literals = &self.cx.literals;
        let view = self.views.get_mut(&hint)?.last_mut()?;
        if view.id != Some(id) {
            if view.literal != *literals.get(id) {
                return None;
            }
            view.id = Some(id);
        }
        Some(view.value)
    }

    /// Writes a constant that is bound under a name of its own, unless it is already written.
    fn bind_constant(
        &mut self,
        graph: &mut UnfinishedGraph<'m>,
        var: VarId,
        id: LiteralId,
    ) -> Result<(), ExportProblem> {
        let Some(own) = self.body.var_name(var) else { return Ok(()) };
        if graph.bound_constants.get(&(id, own)) != Some(&Some(var)) {
            return Ok(());
        }
        let wish = self.cx.names.get(own);
        let name = if self.versions.initializers_are_inputs {
            self.names.claim_outermost(wish)
        } else {
            self.names.claim(wish)
        };
        self.write_bound(graph, var, id, name)
    }

    fn write_bound(
        &mut self,
        graph: &mut UnfinishedGraph<'m>,
        var: VarId,
        id: LiteralId,
        name: Name<'m>,
    ) -> Result<(), ExportProblem> {
        let Some(own) = self.body.var_name(var) else { return Ok(()) };
        let cx = self.cx;
        let literal = cx.literals.get(id);
        let meta = self.body.meta(var.expr());
        // The constant counts as written from here on.
        graph.bound_constants.insert((id, own), None);
        let Some(attribute) = meta.and_then(|m| cx.find_attr(m, keys::CONSTANT)) else {
            let (doc_string, metadata_props) = match meta {
                Some(meta) => (self.doc(GraphMeta::of(meta))?, self.metadata(GraphMeta::of(meta))?),
                None => (None, Vec::new()),
            };
            return self.constants.bind(&mut self.names, (var, id, own), literal, &name, |tensor| {
                tensor.doc_string = doc_string;
                tensor.metadata_props = metadata_props;
            });
        };
        let attribute = str(cx, attribute).ok_or(ExportProblem::Damaged(keys::CONSTANT))?;
        let attribute = match attribute {
            "value" => tensor_attribute("value", self.constants.tensor(literal)?),
            other => constant_attribute(other, literal)?,
        };
        let mut node = node("", "Constant", Vec::new(), vec![name.to_string()], vec![attribute]);
        self.carry_along(&mut node, meta)?;
        self.constants.bind_node((var, id, own), &name, node);
        Ok(())
    }
}
