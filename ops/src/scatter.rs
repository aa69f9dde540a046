//! Operators that write elements at positions that an operand specifies.

use anfora_ir::{Arity, AttrDef, AttrDefault, AttrKind, OpDef, TypeCall, TypeError, TypeId};

use crate::gather::{along, slices};
use crate::kernels::Failure;
use crate::kernels::scatter::{self, Write};
use crate::row::row;
use crate::typing::{Elements, RequiredAttrs, differ, expect_rank, one, result, same_elements, tensor, unify};

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        row(
            "scatter_elements",
            "with elements written at indices along an axis, each at its own place along the others",
            Arity::exactly(3),
            scatter_elements,
            |c| {
                let (axis, write) = (c.attrs.required_int("axis")?, write(c.attrs.str("reduction"))?);
                one(scatter::scatter_elements(c.operand(0)?, c.operand(1)?, c.operand(2)?, axis, write))
            },
        )
        .attrs(
            const {
                &[
                    AttrDef::new("axis", AttrKind::Int, AttrDefault::Int(0), "the axis that the indices are of"),
                    REDUCTION,
                ]
            },
        )
        .may_fail(),
        row("scatter_nd", "with slices written where lists of indices say", Arity::exactly(3), scatter_nd, |c| {
            let write = write(c.attrs.str("reduction"))?;
            one(scatter::scatter_nd(c.operand(0)?, c.operand(1)?, c.operand(2)?, write))
        })
        .attrs(const { &[REDUCTION] })
        .may_fail(),
    ]
}

const REDUCTION: AttrDef = AttrDef::new(
    "reduction",
    AttrKind::Str,
    AttrDefault::Str("update"),
    "what becomes of what was there: `update`, `add`, `mul`, `max` or `min`",
);

fn write(reduction: Option<&str>) -> Result<Write, Failure> {
    Ok(match reduction {
        Some("update") => Write::Update,
        Some("add") => Write::Add,
        Some("mul") => Write::Multiply,
        Some("max") => Write::Maximum,
        Some("min") => Write::Minimum,
        other => {
            let other = other.unwrap_or_default();
            return Err(Failure::Mismatch(format!(
                "attribute `reduction` is `{other}`, not update, add, mul, max or min"
            )));
        }
    })
}

fn scatter_elements(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    write(call.attrs().str("reduction"))?;
    let x = tensor(call, 0, Elements::Any)?;
    let indices = tensor(call, 1, Elements::Integer)?;
    let updates = tensor(call, 2, Elements::Any)?;
    same_elements(&x, &updates, 2)?;
    along(call, &x, &indices, 1)?;
    along(call, &x, &updates, 2)?;
    if let (Some(i), Some(u)) = (&indices.shape, &updates.shape) {
        expect_rank(&updates, 2, i.len())?;
        for (axis, (&i, &u)) in i.iter().zip(u).enumerate() {
            if unify(call.cx, i, u).is_none() {
                return Err(differ(call.cx, 2, &format!("axis {axis}"), u, i));
            }
        }
    }
    Ok(result(call.cx, x.dtype, x.shape.as_deref()))
}

fn scatter_nd(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    write(call.attrs().str("reduction"))?;
    let x = tensor(call, 0, Elements::Any)?;
    let updates = tensor(call, 2, Elements::Any)?;
    same_elements(&x, &updates, 2)?;
    if let Some(wanted) = slices(call, 0)?
        && let Some(found) = &updates.shape
    {
        expect_rank(&updates, 2, wanted.len())?;
        for (axis, (&w, &f)) in wanted.iter().zip(found).enumerate() {
            if unify(call.cx, w, f).is_none() {
                return Err(differ(call.cx, 2, &format!("axis {axis}"), f, w));
            }
        }
    }
    Ok(result(call.cx, x.dtype, x.shape.as_deref()))
}
