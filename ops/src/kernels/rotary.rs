//! Rotary position embeddings: pairs of elements of a head are rotated by an angle of the position.

use anfora_ir::Literal;

use super::arithmetic::{dispatch, same_dtype};
use super::number::{Calc, FloatNumber, Scalar};
use super::view::{Output, View};
use super::working::{check_steps, product};
use super::{Failure, shape_text};

/// The attributes of a rotary embedding.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Rotary {
    /// True if the elements of a pair are neighbours, and not half of the rotated elements apart.
    pub(crate) interleaved: bool,
    /// The number of heads of an operand of rank 3.
    pub(crate) heads: i64,
    /// The number of elements of a head that are rotated; 0 for all.
    pub(crate) rotated: i64,
}

/// Rotates `x`, of shape `(batch, heads, length, size)` or `(batch, length, heads * size)`. The
/// tables of cosines and sines have a row for each position if `positions` are given, and for each
/// batch and place otherwise.
pub(crate) fn rotary_embedding(
    x: &Literal,
    tables: [&Literal; 2],
    positions: Option<&Literal>,
    how: Rotary,
) -> Result<Literal, Failure> {
    let dtype = same_dtype(&[x, tables[0], tables[1]])?;
    let mismatch = |what: &str| Failure::Mismatch(format!("{what} for heads of shape {}", shape_text(x.shape())));
    let (batch, heads, length, size, by_head) = match *x.shape() {
        [batch, heads, length, size] => (batch, heads, length, size, true),
        [batch, length, width] => {
            let heads = usize::try_from(how.heads).ok().filter(|&h| h > 0 && width.is_multiple_of(h));
            let heads = heads.ok_or_else(|| mismatch("a number of heads"))?;
            (batch, heads, length, width / heads, false)
        }
        _ => return Err(mismatch("a rank")),
    };
    let rotated = usize::try_from(how.rotated).ok().filter(|&r| r <= size).ok_or_else(|| mismatch("a part"))?;
    let rotated = if rotated == 0 { size } else { rotated };
    if rotated % 2 != 0 {
        return Err(mismatch("an odd number of rotated elements"));
    }
    let half = rotated / 2;
    let rows = match positions {
        Some(positions) if positions.shape() == [batch, length] => match *tables[0].shape() {
            [rows, width] if width == half => rows,
            _ => return Err(mismatch("tables")),
        },
        None if tables[0].shape() == [batch, length, half] => 0,
        _ => return Err(mismatch("positions or tables")),
    };
    if tables[0].shape() != tables[1].shape() {
        return Err(mismatch("tables"));
    }
    check_steps(&[x], &[Some(tables[0]), positions], product(&[batch, heads, length, size.max(1)]))?;
    let positions = positions.map(View::<i64>::new);
    let row = |batch: usize, place: usize| -> Result<usize, Failure> {
        let own = batch * length + place;
        let Some(positions) = &positions else { return Ok(own) };
        let index = positions.get(own);
        let counted = if index < 0 { index.checked_add_unsigned(rows as u64) } else { Some(index) };
        let found = counted.and_then(|i| usize::try_from(i).ok()).filter(|&i| i < rows);
        found.ok_or(Failure::Index { index, extent: rows })
    };
    dispatch!(float dtype, T => {
        let mut out = Output::<T>::new(x.shape())?;
        let [x, cos, sin] = [x, tables[0], tables[1]].map(View::<T>::new);
        for (batch, place) in (0..batch).flat_map(|b| (0..length).map(move |p| (b, p))) {
            let table = row(batch, place)? * half;
            for head in 0..heads {
                let outer = if by_head { (batch * heads + head) * length + place } else { (batch * length + place) * heads + head };
                let element = |i: usize| x.get(outer * size + i);
                let raw = &mut out.raw()[outer * size..][..size];
                for (i, o) in raw.iter_mut().enumerate() {
                    *o = if i < rotated {
                        let (pair, second) = if how.interleaved { (i / 2, i % 2 == 1) } else { (i % half, i >= half) };
                        let [a, b] = if how.interleaved { [2 * pair, 2 * pair + 1] } else { [pair, pair + half] };
                        rotate((element(a), element(b)), (cos.get(table + pair), sin.get(table + pair)), second).store()
                    } else {
                        element(i).store()
                    };
                }
            }
        }
        out.finish()
    })
}

/// Returns the first or the second element of a pair, rotated. Each product is rounded.
fn rotate<T: FloatNumber>((a, b): (T, T), (cos, sin): (T, T), second: bool) -> T {
    let times = |x: T, y: T| T::narrow(x.widen().mul(y.widen())).widen();
    T::narrow(if second { times(sin, a).add(times(cos, b)) } else { times(cos, a).sub(times(sin, b)) })
}
