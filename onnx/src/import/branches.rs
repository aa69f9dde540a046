//! Import of `If`. Its subgraphs are blocks, which become the branches of an `if` where possible.

use anfora_ir::{Attr, AttrId, DType, ExprId, Literal, TypeId};

use super::importer::{Importer, OpenGraph, PendingNode, Subgraph};
use super::node::{is_empty_graph_attribute, standard_domain};
use crate::convert::BRANCHES;
use crate::error::{ImportProblem, UnsupportedReason, because};
use crate::keys;
use crate::proto::{AttributeType, NodeProto};

const THEN: &str = "then_branch";
const ELSE: &str = "else_branch";
/// The operator that extracts the single element of a condition that is not of rank 0.
const AS_CONDITION: &str = "reshape";

impl Importer<'_, '_> {
    /// Checks that a node may become an `if`, so that its subgraphs are imported as blocks.
    /// Otherwise returns the reason.
    pub(super) fn may_be_if(&mut self, node: &NodeProto) -> Result<(), UnsupportedReason> {
        let domain = standard_domain(node);
        let opset = self.settings.opsets.get(domain).copied();
        let opset = opset.ok_or_else(|| because("it has subgraphs"))?;
        match self.settings.conversions.for_node(domain, node.op_type(), opset) {
            Ok(row) if row.native == BRANCHES => {}
            Ok(_) => return Err(because("it has subgraphs")),
            Err(why) => return Err(because(why)),
        }
        if !node.overload().is_empty() {
            return Err(because("it names an overload"));
        }
        let are_branches = |name| {
            let mut found = node.attribute.iter().filter(|a| a.name() == name);
            matches!((found.next(), found.next()), (Some(a), None) if a.r#type() == AttributeType::Graph && a.g.is_some())
        };
        if node.attribute.len() != 2 || !are_branches(THEN) || !are_branches(ELSE) {
            return Err(because(format!("its attributes are not just `{THEN}` and `{ELSE}`")));
        }
        match node.input.as_slice() {
            [condition] if !condition.is_empty() => Ok(()),
            _ => Err(because("its input is not just a condition")),
        }
    }

    /// Returns the `if` that a node becomes. It is not bound yet.
    pub(super) fn branches(
        &mut self,
        graph: &OpenGraph,
        pending: &PendingNode,
        operands: &[ExprId],
    ) -> Result<ExprId, UnsupportedReason> {
        pending.branches.clone()?;
        if !pending.node.attribute.iter().all(is_empty_graph_attribute) {
            return Err(because("an attribute says more than its graph"));
        }
        let [(label, Subgraph::Block(first, _)), (_, Subgraph::Block(second, _))] = pending.subgraphs.as_slice() else {
            return Err(because("a branch has inputs"));
        };
        let (then_block, else_block) = if label == THEN { (*first, *second) } else { (*second, *first) };
        let outputs = pending.node.output.len();
        for block in [then_block, else_block] {
            let results = self.results_of(block).len();
            if results != outputs || outputs == 0 {
                return Err(because(format!("a branch has {results} outputs, and the node {outputs}")));
            }
        }
        let condition = self.condition(operands[0])?;
        let value = self.builder.if_(condition, then_block, else_block).map_err(|e| because(e.to_string()))?;
        if self.knows_less(graph, &pending.names.outputs, value) {
            return Err(because("its branches do not show the types of its outputs"));
        }
        Ok(value)
    }

    /// Returns the types of the results of a block.
    fn results_of(&mut self, block: ExprId) -> Vec<TypeId> {
        let ty = self.builder.body().type_of(block);
        self.builder.cx().types.as_tuple(ty).map_or_else(|| vec![ty], <[TypeId]>::to_vec)
    }

    /// Returns the single element of a condition.
    fn condition(&mut self, operand: ExprId) -> Result<ExprId, UnsupportedReason> {
        let ty = self.builder.body().ty(operand);
        match self.builder.cx().types.as_tensor(ty) {
            Some(t) if t.dtype == DType::Bool => {
                if t.shape.as_ref().is_some_and(|s| s.is_empty()) {
                    return Ok(operand);
                }
            }
            _ => return Err(because("the condition is not known to be a tensor of bool")),
        }
        let fails = |e: &dyn std::fmt::Display| because(format!("the condition is not known to be one element: {e}"));
        if let Some(literal) = self.builder.body().as_literal(operand) {
            let scalar = self.builder.cx().literals.get(literal).reshaped(&[]).map_err(|e| fails(&e))?;
            return Ok(self.builder.literal(scalar));
        }
        let no_extents = Literal::from_elements::<i64>(&[0], &[]).expect("there are no elements");
        let no_extents = self.builder.literal(no_extents);
        let scalar = self.builder.call_op(AS_CONDITION, &[operand, no_extents], &[]).map_err(|e| fails(&e))?;
        let scalar = self.builder.bind("", scalar);
        let yes = self.builder.cx().attr(Attr::Bool(true));
        self.set_meta(scalar, &[(keys::CONDITION, yes)]);
        Ok(scalar)
    }

    /// Binds the results of an `if`, with the metadata of its branches.
    pub(super) fn bind_branches(
        &mut self,
        graph: &mut OpenGraph,
        pending: &PendingNode,
        value: ExprId,
        meta: Vec<(&str, AttrId)>,
    ) -> Result<(), ImportProblem> {
        let cx = self.builder.cx();
        let mut of_branches: Vec<(String, AttrId)> = Vec::new();
        for (label, subgraph) in &pending.subgraphs {
            let Subgraph::Block(_, attrs) = *subgraph else { continue };
            let branch = if label == THEN { keys::THEN } else { keys::ELSE };
            let list = cx.attrs.list(attrs).iter();
            of_branches.extend(list.map(|&(key, value)| (keys::of_branch(branch, cx.names.get(key)), value)));
        }
        let mut meta: Vec<(&str, AttrId)> = meta;
        meta.extend(of_branches.iter().map(|(key, value)| (key.as_str(), *value)));
        self.bind_results(graph, &pending.names.outputs, value, meta)
    }

    /// Returns the subgraphs of a node as bound `fn`s, in order.
    pub(super) fn bound_subgraphs(&mut self, pending: &PendingNode) -> Vec<ExprId> {
        let mut bound = Vec::with_capacity(pending.subgraphs.len());
        for (label, subgraph) in &pending.subgraphs {
            bound.push(match *subgraph {
                Subgraph::Fn(var) => var,
                Subgraph::Block(block, meta) => {
                    let none = self.builder.cx().attrs.empty();
                    let lambda = self.builder.body().push_lambda(&[], None, none);
                    let lambda = self.builder.editor().lambda(lambda, block);
                    self.bind_subgraph(label, lambda, meta)
                }
            });
        }
        bound
    }
}
