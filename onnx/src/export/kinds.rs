//! Values that are not tensors. Old versions of `Identity` do not take them.

use anfora_ir::{Attr, Expr, ExprId};

use super::graph::{Exporter, Output};
use super::slots::{Block, Slot, ValueId};
use crate::attributes::decoded;
use crate::domains::is_standard;
use crate::error::ExportProblem;
use crate::keys;
use crate::opaque::decode;
use crate::proto::type_proto::Value;
use crate::proto::{TypeProto, ValueInfoProto};

/// The first versions of the operators in which `Identity` takes sequences and optional values.
const SEQUENCE: i64 = 14;
const OPTIONAL: i64 = 16;

/// The longest operator name that is decoded to find the kind of a value. Longer names do not
/// belong to the standard domain.
const LONGEST_NAME: usize = 100;

/// The operators of the standard domain that return a sequence.
const GIVE_SEQUENCES: &[&str] =
    &["SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceMap", "SplitToSequence"];

/// Returns the first version of the operators in which `Identity` takes values of a type; `None` if
/// that is the first version of all.
fn identity_since(ty: &TypeProto) -> Option<i64> {
    match ty.value {
        Some(Value::SequenceType(_)) => Some(SEQUENCE),
        Some(Value::OptionalType(_)) => Some(OPTIONAL),
        _ => None,
    }
}

fn stated(info: &ValueInfoProto) -> Option<i64> {
    info.r#type.as_ref().and_then(identity_since)
}

impl<'m> Exporter<'m> {
    /// Records the kind of a parameter: from its stated type, or from the initial value of the loop
    /// around it.
    pub(super) fn note_param(
        &mut self,
        v: ValueId,
        info: &ValueInfoProto,
        i: usize,
        of: Block,
        around: Option<ExprId>,
    ) {
        if self.versions.opset("") >= OPTIONAL {
            return;
        }
        self.identity_since[v.index()] = match (&info.r#type, around) {
            (None, Some(call)) if matches!(of, Block::Lambda(_)) && self.is_loop(call) => self.of_operand(call, i),
            _ => stated(info),
        };
    }

    /// Records the kinds of the results of a call: from their stated types, or from the operator.
    pub(super) fn note_results(&mut self, call: ExprId, results: &[Slot]) {
        if self.versions.opset("") >= OPTIONAL {
            return;
        }
        let operator = self.standard_operator(call);
        for (i, &result) in results.iter().enumerate() {
            if let Slot::Value(v) = result {
                self.note_result(v, call, operator.as_deref(), i);
            }
        }
    }

    fn note_result(&mut self, v: ValueId, call: ExprId, operator: Option<&str>, i: usize) {
        let cx = self.cx;
        let meta = self.slots.value(v).meta;
        let info = meta.and_then(|meta| cx.find_attr(meta, keys::INFO));
        let info: Option<ValueInfoProto> = match info {
            Some(info) if !matches!(cx.attrs.get(info), Attr::Bool(_)) => decoded(cx, info),
            _ => None,
        };
        self.identity_since[v.index()] = match (info, operator) {
            (Some(info), _) if info.r#type.is_some() => stated(&info),
            (_, Some("Optional")) => Some(OPTIONAL),
            // A loop returns its final state. The operands of the state follow the count and the
            // condition.
            (_, Some("Loop")) => self.of_operand(call, i + 2),
            (_, Some(operator)) if GIVE_SEQUENCES.contains(&operator) => Some(SEQUENCE),
            _ => None,
        };
    }

    /// Makes an output refer to the value directly if `Identity` does not take the value.
    ///
    /// # Errors
    /// If the graph cannot return the value itself.
    pub(super) fn return_directly(&self, output: &mut Output<'m>, of: Block) -> Result<(), ExportProblem> {
        let (Slot::Value(v), false) = (output.slot, output.is_direct) else { return Ok(()) };
        let present = self.versions.opset("");
        let Some(needed) = self.identity_since[v.index()].filter(|&needed| needed > present) else { return Ok(()) };
        match &self.value_names[v.index()] {
            // The outputs of a model have names of their own.
            Some(name) if !self.is_main(of) => {
                output.name = name.clone();
                output.is_direct = true;
                Ok(())
            }
            _ => {
                let operator = "Identity".to_owned();
                Err(ExportProblem::Opset { operator, domain: String::new(), needed, present })
            }
        }
    }

    fn is_loop(&self, call: ExprId) -> bool {
        self.standard_operator(call).is_some_and(|operator| operator == "Loop")
    }

    /// Returns the kind of an operand of a call.
    fn of_operand(&self, call: ExprId, i: usize) -> Option<i64> {
        let Expr::CallOp { operands, .. } = self.body.expr(call) else { return None };
        match self.slots.of_atom(*self.body.operands(operands).get(i)?) {
            Ok(Slot::Value(v)) => self.identity_since[v.index()],
            _ => None,
        }
    }

    /// Returns the operator of a call that was kept unchanged, if it is of the standard domain.
    fn standard_operator(&self, call: ExprId) -> Option<String> {
        let Expr::CallOp { op, .. } = self.body.expr(call) else { return None };
        let name = &self.cx.ops.get(op).name;
        if name.len() > LONGEST_NAME {
            return None;
        }
        let (domain, operator) = decode(name)?;
        is_standard(domain).then_some(operator)
    }
}
