//! Calls of pools and of the inverses of windows.

use super::A::*;
use super::O::*;
use super::{Case, by_row, case};

/// Returns calls of an operator of this family; `None` for other operators.
pub(super) fn cases(op: &str) -> Option<Vec<Case>> {
    if op == "col2im" {
        let lists: fn() -> Vec<super::O> = || vec![Int64(&[2], &[3, 4]), Int64(&[2], &[2, 2])];
        let with = |x, attrs| by_row(&[0], [vec![X(x)], lists()].concat(), attrs);
        return Some(vec![
            with(&[1, 8, 6], vec![]),
            with(
                &[2, 4, 6],
                vec![("strides", Ints(&[1, 2])), ("padding", Ints(&[0, 1, 0, 1])), ("dilation", Ints(&[1, 1]))],
            ),
        ]);
    }
    let name = op.trim_end_matches("_transpose");
    let spatial = name.strip_suffix('d')?.chars().last()?.to_digit(10)?;
    let (x, w, pool): (&[usize], &[usize], &[i64]) = match spatial {
        1 => (&[1, 4, 7], &[4, 3, 3], &[3]),
        2 => (&[1, 4, 4, 5], &[4, 3, 3, 2], &[3, 2]),
        _ => (&[1, 4, 3, 4, 3], &[4, 3, 2, 1, 2], &[2, 1, 2]),
    };
    let (strides, padding): (&[i64], &[i64]) = match spatial {
        1 => (&[2], &[1, 0]),
        2 => (&[2, 1], &[1, 0, 1, 1]),
        _ => (&[1, 2, 1], &[0, 1, 0, 1, 0, 1]),
    };
    let common = vec![("strides", Ints(strides)), ("padding", Ints(padding))];
    let pooled = [common.clone(), vec![("pool_size", Ints(pool))]].concat();
    let with = |more: &[(&'static str, super::A)]| [pooled.clone(), more.to_vec()].concat();
    Some(if op.starts_with("nn.lp_pool") {
        vec![by_row(&[0], vec![X(x)], pooled.clone()), by_row(&[0], vec![X(x)], with(&[("p", Int(3))]))]
    } else if op.starts_with("nn.global_lp") {
        vec![by_row(&[0], vec![X(x)], vec![]), by_row(&[0], vec![X(x)], vec![("p", Int(1))])]
    } else if op.starts_with("nn.max_pool_with_indices") {
        vec![
            by_row(&[0], vec![X(x)], pooled.clone()),
            by_row(&[0], vec![X(x)], with(&[("column_major", Bool(true)), ("ceil_mode", Bool(true))])),
        ]
    } else if op.starts_with("nn.max_unpool") {
        let (shape, places, larger): (&[usize], &[i64], super::O) = match spatial {
            1 => (&[1, 1, 3], &[0, 3, 4], Int64(&[3], &[1, 1, 9])),
            2 => (&[1, 1, 1, 3], &[0, 2, 1], Int64(&[4], &[1, 1, 4, 7])),
            _ => (&[1, 1, 3, 1, 1], &[0, 2, 1], Int64(&[5], &[1, 2, 5, 5, 5])),
        };
        let attrs = || vec![("strides", Ints(strides)), ("pool_size", Ints(pool))];
        vec![
            case(vec![X(shape), Int64(shape, places)], attrs()),
            case(vec![X(shape), Int64(shape, places), larger], attrs()),
        ]
    } else if op.ends_with("_transpose") {
        let grouped = [common, vec![("groups", Int(2))]].concat();
        vec![by_row(&[0], vec![X(x), X(w), X(&[6])], grouped.clone()), by_row(&[0], vec![X(x), X(w)], grouped)]
    } else {
        return None;
    })
}
