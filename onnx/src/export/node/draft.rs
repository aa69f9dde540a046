//! A trial run of a conversion that checks whether a call can be written, without an export.

use anfora_ir::{AttrReader, Body, Context, Expr, ExprId, Literal, SymbolId};
use rustc_hash::FxHashMap;

use super::{CallView, NodeExport, OperandView, SymbolPlace, Writer, check_elements};
use crate::convert::Conversions;
use crate::error::ExportProblem;
use crate::export::graph::version_of;
use crate::export::slots::{Slot, ValueId};

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

/// A writer that answers the requests of a conversion and records nothing.
struct Draft<'a> {
    used: &'a [bool],
}

/// The name used for every constant.
const CONSTANT: &str = "constant";

fn name_of(value: ValueId) -> String {
    value.index().to_string()
}

impl Writer for Draft<'_> {
    fn slot_name(&mut self, slot: Slot, _hint: Option<&str>) -> Result<String, ExportProblem> {
        Ok(match slot {
            Slot::Value(v) => name_of(v),
            Slot::None => String::new(),
            _ => CONSTANT.to_owned(),
        })
    }

    fn own_constant(&mut self, _literal: &Literal, _wish: &str) -> Result<String, ExportProblem> {
        Ok(CONSTANT.to_owned())
    }

    fn fresh_name(&mut self, wish: &str) -> String {
        wish.to_owned()
    }

    fn states_versions(&self) -> bool {
        true
    }

    fn symbol_source(&mut self, _symbol: SymbolId) -> Result<Option<(String, SymbolPlace)>, ExportProblem> {
        Ok(Some((CONSTANT.to_owned(), SymbolPlace::Extent(0))))
    }

    fn is_consumed(&self, _call: ExprId, output: usize) -> bool {
        self.used.get(output).is_some_and(|&u| u)
    }
}

/// Checks that a call of one of our operators can be written in `versions`, the versions of the
/// operators by domain. A call without a conversion passes. `used` holds, for each result, true if
/// anything may use it.
///
/// # Errors
/// If an export would refuse the call; the error is the same.
pub(crate) fn check_call(
    cx: &Context,
    body: &Body,
    call: ExprId,
    used: &[bool],
    conversions: &Conversions,
    versions: &FxHashMap<String, i64>,
) -> Result<(), Unwritable> {
    let Expr::CallOp { op, operands, attrs } = body.expr(call) else { return Ok(()) };
    let name = cx.ops.get(op).name.as_ref();
    let (row, rule) = match conversions.for_call(name, |domain| version_of(versions, domain)) {
        Err(ExportProblem::Operator(_)) => return Ok(()),
        found => found?,
    };
    let operands: Vec<OperandView> = body
        .operands(operands)
        .iter()
        .enumerate()
        .map(|(i, &operand)| {
            let slot = match body.expr(operand) {
                Expr::Literal(l) => Slot::Literal(l, None),
                Expr::None => Slot::None,
                _ => Slot::Value(ValueId::new(i)),
            };
            OperandView { slot, ty: body.ty(operand) }
        })
        .collect();
    let names: Vec<String> = operands
        .iter()
        .map(|o| match o.slot {
            Slot::Value(v) => name_of(v),
            _ => String::new(),
        })
        .collect();
    let ty = body.ty(call);
    let view = CallView { operands, attrs: AttrReader { cx, op, attrs }, expr: call, ty, hints: Vec::new() };
    let count = cx.types.as_tuple(ty).map_or(1, <[_]>::len);
    let outputs: Vec<String> = (0..count).map(|i| format!("result{i}")).collect();
    let result = outputs.first().cloned();
    let is_used = |i| used.get(i).is_some_and(|&u| u);
    let mut export = NodeExport {
        exporter: &mut Draft { used },
        row,
        cx,
        call: &view,
        opset: version_of(versions, &row.domain),
        outputs,
        used: (0..count).map(is_used).collect(),
        nodes: Vec::with_capacity(1),
    };
    rule(&mut export)?;
    let nodes = export.nodes;
    if !row.domain.is_empty() {
        return Ok(());
    }
    let name_of = |slot| match slot {
        Slot::Value(v) => names.get(v.index()).map(String::as_str),
        _ => None,
    };
    let present = version_of(versions, "");
    let checked = nodes.iter().try_for_each(|node| check_elements(node, &view, name_of, result.as_deref(), present));
    checked.map_err(Unwritable::Elements)
}
