//! Completion of a graph: its message, with the preserved information about its values.

use anfora_ir::{Attr, Literal};
use prost::Message;
use rustc_hash::{FxHashMap, FxHashSet};

use super::graph::{Exporter, InfoType, UnfinishedGraph};
use super::graph_meta::GraphMeta;
use super::nodes::{Nodes, WrittenGraph};
use super::slots::Block;
use crate::attributes::{decoded, decoded_list, list, str};
use crate::error::ExportProblem;
use crate::keys;
use crate::proto::{GraphProto, TensorAnnotation, TensorProto, ValueInfoProto, node};
use crate::types::{proto_of, tensor_info};

impl<'m> Exporter<'m> {
    /// Returns the preserved information of a graph about its inputs and initializers, or about its
    /// outputs, by name.
    pub(super) fn carried_infos(
        &self,
        meta: GraphMeta,
        key: &'static str,
    ) -> Result<FxHashMap<String, ValueInfoProto>, ExportProblem> {
        let infos: Vec<ValueInfoProto> = meta.read(self.cx, key, decoded_list)?.unwrap_or_default();
        Ok(infos.into_iter().map(|i| (i.name().to_owned(), i)).collect())
    }

    /// Returns the message for an input or output.
    pub(super) fn info(
        &self,
        name: &str,
        wish: &str,
        ty: InfoType,
        infos: &FxHashMap<String, ValueInfoProto>,
        is_main: bool,
    ) -> Result<ValueInfoProto, ExportProblem> {
        let carried = infos.get(wish);
        let mut info = carried.cloned().unwrap_or_default();
        info.name = Some(name.to_owned());
        if info.r#type.is_none() {
            info.r#type = match ty {
                InfoType::Message(message) => Some(message),
                InfoType::Of(ty) => match proto_of(self.cx, &self.symbols, ty) {
                    None if is_main && carried.is_none() => return Err(ExportProblem::Type(self.cx.type_text(ty))),
                    message => message,
                },
            };
        }
        Ok(info)
    }

    /// Completes a graph and returns its message.
    pub(super) fn close(&mut self, mut graph: UnfinishedGraph<'m>) -> Result<WrittenGraph, ExportProblem> {
        let is_main = self.is_main(graph.block);
        let cx = self.cx;
        let infos = self.carried_infos(graph.meta, keys::INFOS)?;
        let of_outputs = self.carried_infos(graph.meta, keys::OUTPUT_INFOS)?;
        // The outputs, and `Identity` nodes for those that repeat a value.
        let mut outputs = Vec::with_capacity(graph.outputs.len());
        let mut repeats = Vec::new();
        for output in std::mem::take(&mut graph.outputs) {
            outputs.push(self.info(&output.name, &output.wish, output.ty, &of_outputs, is_main)?);
            if !output.is_direct {
                let input = self.slot_name(output.slot, output.hint.as_deref())?;
                repeats.push(node("", "Identity", vec![input], vec![output.name.to_string()], Vec::new()));
            }
        }
        self.add_nodes(&mut graph, repeats)?;
        // The initializers, and the types and other facts that the file states about them.
        let mut defaults = self.defaults(graph.meta, &graph.inputs)?;
        let mut begin = self.constants.close();
        let mut nodes = Nodes::default();
        let has_initializers = self.has_initializers(graph.block);
        for node in begin.nodes {
            let len = node.encoded_len();
            nodes.push(node, len, has_initializers, &mut self.nodes);
        }
        nodes.append(std::mem::take(&mut graph.nodes));
        begin.initializers.append(&mut nodes.tensors);
        for tensor in &begin.initializers {
            let stated = infos.get(tensor.name());
            if is_main && self.versions.initializers_are_inputs {
                graph.inputs.push(stated.cloned().unwrap_or_else(|| tensor_info(tensor)));
            } else {
                graph.infos.extend(stated.cloned());
            }
        }
        if graph.block == Block::Function {
            self.given = std::mem::take(&mut begin.constants);
        }
        begin.initializers.append(&mut defaults);
        // Close the scopes of names and constants.
        let quantization_annotation = self.quantization(graph.meta)?;
        for ((id, own), var) in &graph.bound_constants {
            if var.is_none() {
                self.constants.unbind(*id, *own);
            }
        }
        for name in graph.views {
            self.views.entry(name).or_default().pop();
        }
        self.names.close();
        let name = graph.meta.read(cx, keys::GRAPH, |cx, v| Some(str(cx, v)))?.flatten().unwrap_or("graph");
        let rest = GraphProto {
            node: Vec::new(),
            name: Some(name.to_owned()),
            initializer: begin.initializers,
            doc_string: self.doc(graph.meta)?,
            input: graph.inputs,
            output: outputs,
            value_info: graph.infos,
            quantization_annotation,
            sparse_initializer: nodes.sparse,
            metadata_props: self.metadata(graph.meta)?,
        };
        Ok(WrittenGraph { nodes: nodes.bytes, rest })
    }

    /// Returns the default values of inputs.
    fn defaults(&mut self, meta: GraphMeta, inputs: &[ValueInfoProto]) -> Result<Vec<TensorProto>, ExportProblem> {
        let defaults = meta.read(self.cx, keys::DEFAULTS, list)?.unwrap_or_default();
        let damaged = || ExportProblem::Damaged(keys::DEFAULTS);
        let names: FxHashSet<&str> = inputs.iter().map(|i| i.name()).collect();
        let mut tensors = Vec::new();
        for &item in defaults {
            let &[name, value] = list(self.cx, item).ok_or_else(damaged)? else { return Err(damaged()) };
            let name = str(self.cx, name).ok_or_else(damaged)?;
            if !names.contains(name) {
                continue;
            }
            let value = match self.cx.attrs.get(value) {
                Attr::Literal(l) => self.cx.literals.get(*l).clone(),
                Attr::Int(i) => Literal::scalar(*i),
                Attr::Float(bits) => Literal::scalar(f64::from_bits(*bits)),
                Attr::Bool(b) => Literal::scalar(*b),
                // A tensor with more than its elements, as an encoded message.
                Attr::List(items) => match **items {
                    [encoded] => {
                        tensors.push(decoded(self.cx, encoded).ok_or_else(damaged)?);
                        continue;
                    }
                    _ => return Err(damaged()),
                },
                _ => return Err(damaged()),
            };
            let mut tensor = self.constants.tensor(&value)?;
            tensor.name = Some(name.to_owned());
            tensors.push(tensor);
        }
        Ok(tensors)
    }

    /// Returns the annotations whose values all still exist.
    fn quantization(&self, meta: GraphMeta) -> Result<Vec<TensorAnnotation>, ExportProblem> {
        let annotations: Option<Vec<TensorAnnotation>> = meta.read(self.cx, keys::QUANTIZATION, decoded_list)?;
        let mut annotations = annotations.unwrap_or_default();
        annotations.retain(|a| {
            let parameters = a.quant_parameter_tensor_names.iter().map(|e| e.value());
            std::iter::once(a.tensor_name()).chain(parameters).all(|n| self.names.is_visible(n))
        });
        Ok(annotations)
    }
}
