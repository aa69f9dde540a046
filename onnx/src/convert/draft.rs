//! A trial run of a conversion that checks whether a call can be written, without an export.

use std::cell::Cell;

use anfora_ir::{AttrReader, Body, Context, EntityId, Expr, ExprId, Literal, LiteralId, SymbolId};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{CallView, Conversions, OperandView, SymbolPlace, Unwritable, Writer, write_call};
use crate::domains::version_of;
use crate::error::ExportProblem;

/// The name used for every constant.
const CONSTANT: &str = "constant";

/// A writer that answers the requests of a conversion and records nothing.
struct Draft<'a> {
    /// The operands. The name of a value is its number.
    operands: &'a [OperandView<'a>],
    used: &'a [bool],
    versions: &'a FxHashMap<String, i64>,
}

impl Writer for Draft<'_> {
    fn operand_name(&mut self, i: usize, _hint: Option<&str>) -> Result<String, ExportProblem> {
        Ok(match &self.operands[i] {
            OperandView { literal: Some(_), .. } => CONSTANT.to_owned(),
            OperandView { is_left_out: true, .. } => String::new(),
            _ => i.to_string(),
        })
    }

    fn is_operand(&self, i: usize, name: &str) -> bool {
        name.parse() == Ok(i)
    }

    fn own_constant(&mut self, _literal: &Literal, _wish: &str) -> Result<String, ExportProblem> {
        Ok(CONSTANT.to_owned())
    }

    fn fresh_name(&mut self, wish: &str) -> String {
        wish.to_owned()
    }

    fn opset(&self, domain: &str) -> i64 {
        version_of(self.versions, domain)
    }

    fn states_versions(&self) -> bool {
        true
    }

    fn is_consumed(&self, output: usize) -> bool {
        self.used.get(output).is_some_and(|&u| u)
    }

    fn symbol_source(&mut self, _symbol: SymbolId) -> Result<Option<(String, SymbolPlace)>, ExportProblem> {
        Ok(Some((CONSTANT.to_owned(), SymbolPlace::Extent(0))))
    }
}

/// The calls that can be written, each as words that stand for all that [`check_call`] looks at:
/// the operator, attributes, types, constants, and the results that are used. A model has many
/// equal calls, but not many different ones. Most conversions do not read constants, which then
/// count as equal.
#[derive(Default)]
pub(crate) struct WritableCalls {
    known: FxHashSet<SmallVec<[u32; 16]>>,
}

/// The word for a constant that the conversion does not read. Words for other constants are larger.
const ANY_CONSTANT: u32 = 2;

/// The greatest number of calls that are known.
const MOST_KNOWN: usize = 1 << 10;

impl WritableCalls {
    /// Checks a call as [`check_call`] does, and remembers the calls that passed. The conversions
    /// and versions are those of the calls before.
    ///
    /// # Errors
    /// Those of [`check_call`].
    pub(crate) fn check(
        &mut self,
        cx: &Context,
        body: &Body,
        call: ExprId,
        used: &[bool],
        table: (&Conversions, &FxHashMap<String, i64>),
    ) -> Result<(), Unwritable> {
        let Expr::CallOp { op, operands, attrs } = body.expr(call) else { return Ok(()) };
        let ty = body.ty(call).index() as u32;
        let words = |constant: fn(LiteralId) -> u32| {
            let mut words = SmallVec::new();
            words.extend_from_slice(&[op.index() as u32, attrs.index() as u32, ty, operands.len() as u32]);
            for &operand in body.operands(operands) {
                let kind = match body.expr(operand) {
                    Expr::Literal(literal) => constant(literal),
                    Expr::None => 1,
                    _ => 0,
                };
                words.extend_from_slice(&[body.ty(operand).index() as u32, kind]);
            }
            words.extend(used.iter().map(|&used| u32::from(used)));
            words
        };
        let with_any = words(|_| ANY_CONSTANT);
        if self.known.contains(&with_any) {
            return Ok(());
        }
        let exact = words(|literal| ANY_CONSTANT + 1 + literal.index() as u32);
        if self.known.contains(&exact) {
            return Ok(());
        }
        let reads_constants = check_call(cx, body, call, used, table)?;
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(if reads_constants { exact } else { with_any });
        Ok(())
    }
}

/// Checks that a call of one of our operators can be written in `versions`, the versions of the
/// operators by domain. A call without a conversion passes. `used` holds, for each result, true if
/// anything may use it. Returns true if the conversion reads a constant operand.
///
/// # Errors
/// If an export would refuse the call; the error is the same.
pub(crate) fn check_call(
    cx: &Context,
    body: &Body,
    call: ExprId,
    used: &[bool],
    (conversions, versions): (&Conversions, &FxHashMap<String, i64>),
) -> Result<bool, Unwritable> {
    let Expr::CallOp { op, operands, attrs } = body.expr(call) else { return Ok(false) };
    let row = match conversions.for_call(&cx.ops.get(op).name, |domain| version_of(versions, domain)) {
        Err(ExportProblem::Operator(_)) => return Ok(false),
        found => found?,
    };
    let operand = |&operand: &ExprId| OperandView {
        ty: body.ty(operand),
        literal: body.as_literal(operand).map(|id| cx.literals.get(id)),
        is_left_out: body.expr(operand) == Expr::None,
    };
    let operands = body.operands(operands).iter().map(operand).collect();
    let ty = body.ty(call);
    let attrs = AttrReader { cx, op, attrs };
    let view = CallView { operands, attrs, ty, hints: Vec::new(), reads_constants: Cell::new(false) };
    let count = cx.types.as_tuple(ty).map_or(1, <[_]>::len);
    let outputs = (0..count).map(|i| format!("result{i}")).collect();
    let mut draft = Draft { operands: &view.operands, used, versions };
    let is_used = (0..count).map(|i| draft.is_consumed(i)).collect();
    write_call(row, &view, (outputs, is_used), &mut draft)?;
    Ok(view.reads_constants.get())
}
