//! Calls of convolutions and pools of the largest and the mean element.

use super::A::*;
use super::O::*;
use super::{A, Case, by_row};

/// The shapes of the operand and of the weights, the strides, the padding and the size of a window.
type Windows = (&'static [usize], &'static [usize], &'static [i64], &'static [i64], &'static [i64]);

/// Returns what a call over this number of spatial axes is made of.
fn windows(axes: u32) -> Windows {
    match axes {
        1 => (&[1, 4, 7], &[6, 2, 3], &[2], &[1, 0], &[3]),
        2 => (&[1, 4, 7, 6], &[6, 2, 3, 2], &[2, 1], &[1, 0, 1, 1], &[3, 2]),
        _ => (&[1, 4, 3, 4, 3], &[6, 2, 2, 1, 2], &[1, 2, 1], &[0, 1, 0, 1, 0, 1], &[2, 1, 2]),
    }
}

/// Returns calls of an operator of this family; `None` for other operators.
pub(super) fn cases(op: &str) -> Option<Vec<Case>> {
    let axes = op.strip_prefix("nn.")?.strip_suffix('d')?.chars().last()?.to_digit(10)?;
    let (x, w, strides, padding, pool) = windows(axes);
    let common = vec![("strides", Ints(strides)), ("padding", Ints(padding))];
    let pooled = [common.clone(), vec![("pool_size", Ints(pool))]].concat();
    let with = |more: &[(&'static str, A)]| [pooled.clone(), more.to_vec()].concat();
    Some(if op.starts_with("nn.conv") {
        let grouped = [common, vec![("groups", Int(2))]].concat();
        vec![
            by_row(&[0], vec![X(x), X(w), X(&[6])], grouped.clone()),
            by_row(&[0], vec![X(x), X(w), Absent], grouped.clone()),
            by_row(&[0], vec![X(x), X(w)], grouped),
        ]
    } else if op.starts_with("nn.global") {
        vec![by_row(&[0], vec![X(x)], vec![])]
    } else if op.starts_with("nn.max") {
        vec![by_row(&[0], vec![X(x)], pooled.clone()), by_row(&[0], vec![X(x)], with(&[("ceil_mode", Bool(true))]))]
    } else {
        vec![
            by_row(&[0], vec![X(x)], pooled.clone()),
            by_row(&[0], vec![X(x)], with(&[("ceil_mode", Bool(true)), ("count_include_pad", Bool(true))])),
        ]
    })
}
