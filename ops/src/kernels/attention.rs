//! Scaled dot-product attention.
//!
//! The heads of a query share those of keys and values in groups. For each query, the scores of all
//! keys are computed, masked and turned into weights of the values. Every step is rounded to the
//! element type, and the softmax to its own.

use anfora_ir::{DType, Literal, Shape};
use smallvec::smallvec;

use super::arithmetic::dispatch;
use super::number::{Calc, FloatNumber, Real, Scalar};
use super::strides::broadcast_strides;
use super::view::{Output, View, filled};
use super::working::check_steps;
use super::{Failure, shape_text};

/// The scores that are a result.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Scores {
    /// The products of queries and keys.
    Products,
    /// The products after the soft cap.
    Capped,
    /// The capped products with the mask added.
    Masked,
    /// The weights of the values.
    Weights,
}

impl Scores {
    /// Returns the scores of this number.
    ///
    /// # Errors
    /// If there are no such scores.
    pub(crate) fn from_mode(mode: i64) -> Result<Scores, Failure> {
        Ok(match mode {
            0 => Scores::Products,
            1 => Scores::Capped,
            2 => Scores::Masked,
            3 => Scores::Weights,
            _ => return Err(Failure::Mismatch(format!("`qk_matmul_output_mode` is {mode}, but 0 to 3 is expected"))),
        })
    }
}

/// The attributes of an attention.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Attention {
    /// The numbers of heads of queries, and of keys and values, for operands of rank 3.
    pub(crate) heads: [Option<i64>; 2],
    /// The factor of the products; the reciprocal root of the head size if it is not given.
    pub(crate) scale: Option<f64>,
    /// The bound of the products; 0 for none.
    pub(crate) softcap: f64,
    /// True if a query attends no later keys.
    pub(crate) is_causal: bool,
    /// The numbers of keys before and after its own that a query attends; negative for all.
    pub(crate) window: [i64; 2],
    /// The element type of the softmax.
    pub(crate) precision: Option<DType>,
    pub(crate) scores: Scores,
    /// The number of results: the values; also the keys and values with those of the past; also
    /// the scores.
    pub(crate) results: i64,
}

/// The operands of an attention.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Operands<'a> {
    pub(crate) query: &'a Literal,
    pub(crate) key: &'a Literal,
    pub(crate) value: &'a Literal,
    pub(crate) mask: Option<&'a Literal>,
    pub(crate) past: [Option<&'a Literal>; 2],
    /// The number of keys of each batch that are no padding.
    pub(crate) lengths: Option<&'a Literal>,
}

/// The extents of a tensor of heads, and the distances between its elements.
#[derive(Copy, Clone, Debug)]
struct Layout {
    batch: usize,
    heads: usize,
    length: usize,
    size: usize,
    strides: [usize; 3],
}

impl Layout {
    /// Returns the layout of a tensor of shape `(batch, heads, length, size)`, or `(batch, length,
    /// heads * size)` with a given number of heads.
    fn new(shape: &[usize], heads: Option<i64>) -> Result<Layout, Failure> {
        match *shape {
            [batch, heads, length, size] => {
                let row = length.saturating_mul(size);
                Ok(Layout { batch, heads, length, size, strides: [heads.saturating_mul(row), row, size] })
            }
            [batch, length, width] => {
                let wanted = heads.and_then(|h| usize::try_from(h).ok()).filter(|&h| h > 0 && width.is_multiple_of(h));
                let Some(heads) = wanted else {
                    return Err(Failure::Mismatch(format!("rows of {width} elements for {heads:?} heads")));
                };
                let size = width / heads;
                Ok(Layout { batch, heads, length, size, strides: [length.saturating_mul(width), size, width] })
            }
            _ => Err(Failure::Mismatch(format!("heads of shape {}", shape_text(shape)))),
        }
    }

    fn start(&self, batch: usize, head: usize, row: usize) -> usize {
        batch * self.strides[0] + head * self.strides[1] + row * self.strides[2]
    }

    fn shape(&self) -> [usize; 4] {
        [self.batch, self.heads, self.length, self.size]
    }
}

/// Computes an attention.
pub(crate) fn attention(x: Operands<'_>, how: &Attention) -> Result<Vec<Literal>, Failure> {
    let dtype = x.query.dtype();
    let others = [Some(x.key), Some(x.value), x.past[0], x.past[1]];
    let mask = x.mask.filter(|m| m.dtype() != DType::Bool);
    if let Some(other) = others.into_iter().chain([mask]).flatten().find(|o| o.dtype() != dtype) {
        let other = other.dtype();
        return Err(Failure::Mismatch(format!("operands of element types {dtype} and {other}")));
    }
    let softmax: fn(&mut [f64]) = dispatch!(float how.precision.unwrap_or(dtype), P => Ok(softmax_in::<P> as _))?;
    dispatch!(float dtype, T => attend::<T>(x, how, softmax))
}

/// Returns the keys or values with those of the past before them, in the layout of rank 4.
fn joined<T: FloatNumber>(
    x: &Literal,
    layout: Layout,
    past: Option<&Literal>,
) -> Result<(Literal, Layout, usize), Failure> {
    let before = past.map(|p| Layout::new(p.shape(), None)).transpose()?;
    if let Some(before) = before {
        let differs = |f: fn(&Layout) -> usize| f(&before) != f(&layout);
        if past.is_some_and(|p| p.rank() != 4) || differs(|l| l.batch) || differs(|l| l.heads) || differs(|l| l.size) {
            let (past, present) = (shape_text(&before.shape()), shape_text(&layout.shape()));
            return Err(Failure::Mismatch(format!("heads of shape {past} before heads of shape {present}")));
        }
    }
    let count = before.map_or(0, |b| b.length);
    let length = count.checked_add(layout.length).ok_or(Failure::TooLarge)?;
    let shape = [layout.batch, layout.heads, length, layout.size];
    let new = Layout::new(&shape, None)?;
    if before.is_none() && x.rank() == 4 {
        return Ok((x.clone(), new, 0));
    }
    let mut out = Output::<T>::new(&shape)?;
    let (present, past) = (View::<T>::new(x), past.map(View::<T>::new));
    let raw = out.raw();
    if !raw.is_empty() {
        for (at, row) in raw.chunks_exact_mut(layout.size).enumerate() {
            let (i, outer) = (at % length, at / length);
            let (head, batch) = (outer % layout.heads, outer / layout.heads);
            let (view, start) = match (&past, before) {
                (Some(past), Some(before)) if i < count => (past, before.start(batch, head, i)),
                _ => (&present, layout.start(batch, head, i - count)),
            };
            for (k, o) in row.iter_mut().enumerate() {
                *o = view.get(start + k).store();
            }
        }
    }
    Ok((out.finish()?, new, count))
}

/// The keys that the attributes and lengths let a query attend.
struct Attended<'a> {
    how: &'a Attention,
    lengths: Option<View<'a, i64>>,
    queries: usize,
    past: usize,
}

impl Attended<'_> {
    /// Returns the first and the last key that the attributes let a query attend, and the number
    /// of keys that are no padding.
    fn bounds(&self, batch: usize, query: usize) -> (i128, i128, i128) {
        let length = self.lengths.as_ref().map(|l| i128::from(l.get(batch)));
        let offset = length.map_or(self.past as i128, |l| l - self.queries as i128);
        let own = query as i128 + offset;
        let [before, after] = self.how.window.map(i128::from);
        let first = if before < 0 { i128::MIN } else { own - before };
        let mut last = if after < 0 { i128::MAX } else { own + after };
        if self.how.is_causal {
            last = last.min(own);
        }
        (first, last, length.unwrap_or(i128::MAX))
    }
}

/// A mask, whose last axis may be shorter than the keys.
enum Mask<'a, T: Scalar> {
    Flags(View<'a, bool>),
    Terms(View<'a, T>),
}

struct MaskRows<'a, T: Scalar> {
    mask: Mask<'a, T>,
    /// The distances between batches, heads, queries and keys.
    strides: [usize; 4],
    /// The number of keys that the mask has, or 1 for all.
    keys: usize,
}

impl<'a, T: FloatNumber> MaskRows<'a, T> {
    fn new(mask: &'a Literal, [batch, heads, queries, keys]: [usize; 4]) -> Result<MaskRows<'a, T>, Failure> {
        let own = mask.shape().last().copied().unwrap_or(1);
        let result: Shape = smallvec![batch, heads, queries, own.min(keys)];
        let fits = mask.rank() <= 4 && own <= keys.max(1) && {
            let added = 4 - mask.rank();
            mask.shape().iter().enumerate().all(|(i, &e)| e == 1 || e == result[added + i])
        };
        if !fits {
            let (mask, scores) = (shape_text(mask.shape()), shape_text(&[batch, heads, queries, keys]));
            return Err(Failure::Mismatch(format!("a mask of shape {mask} for scores of shape {scores}")));
        }
        let strides = broadcast_strides(mask.shape(), &result, mask.as_splat().is_some());
        let values = match mask.dtype() {
            DType::Bool => Mask::Flags(View::new(mask)),
            _ => Mask::Terms(View::new(mask)),
        };
        Ok(MaskRows { mask: values, strides: std::array::from_fn(|i| strides[i] as usize), keys: own })
    }

    /// Returns what is added to the score of a key.
    fn term(&self, row: usize, key: usize) -> T::Calc {
        let low = T::Calc::from_f64(f64::NEG_INFINITY);
        if key >= self.keys {
            return low;
        }
        match &self.mask {
            Mask::Flags(flags) if flags.get(row + key * self.strides[3]) => T::Calc::ZERO,
            Mask::Flags(_) => low,
            Mask::Terms(terms) => terms.get(row + key * self.strides[3]).widen(),
        }
    }
}

fn rounded<T: FloatNumber>(value: T::Calc) -> T::Calc {
    T::narrow(value).widen()
}

/// Turns scores into weights, in the arithmetic of `P`. Scores that are all minus infinity have
/// weights of 0.
fn softmax_in<P: FloatNumber>(row: &mut [f64]) {
    let mut most = P::Calc::from_f64(f64::NEG_INFINITY);
    for score in &mut *row {
        let value = P::nearest(*score).widen();
        most = most.larger(value);
        *score = value.into();
    }
    if most == P::Calc::from_f64(f64::NEG_INFINITY) {
        most = P::Calc::ZERO;
    }
    let mut sum = P::Calc::ZERO;
    for score in &mut *row {
        let difference = rounded::<P>(P::nearest(*score).widen().sub(most));
        let power = rounded::<P>(difference.exp());
        sum = sum.add(power);
        *score = power.into();
    }
    let sum = rounded::<P>(sum);
    let sum = if sum == P::Calc::ZERO { P::Calc::ONE } else { sum };
    for score in row {
        *score = rounded::<P>(P::nearest(*score).widen().div(sum)).into();
    }
}

/// Returns the number of steps of an attention: a product for each element of each key and value,
/// for each query.
pub(crate) fn steps(x: Operands<'_>, heads: [Option<i64>; 2]) -> Option<u128> {
    let q = Layout::new(x.query.shape(), heads[0]).ok()?;
    let (k, v) = (Layout::new(x.key.shape(), heads[1]).ok()?, Layout::new(x.value.shape(), heads[1]).ok()?);
    let past = x.past[0].and_then(|p| p.shape().get(2).copied()).unwrap_or(0);
    let keys = k.length as u128 + past as u128;
    let row = keys.saturating_mul(q.size as u128 + v.size as u128 + 1);
    [q.batch, q.heads, q.length].iter().try_fold(row, |n, &e| n.checked_mul(e as u128))
}

fn attend<T: FloatNumber>(x: Operands<'_>, how: &Attention, softmax: fn(&mut [f64])) -> Result<Vec<Literal>, Failure> {
    // Check that the extents fit each other.
    let q = Layout::new(x.query.shape(), how.heads[0])?;
    let (k, v) = (Layout::new(x.key.shape(), how.heads[1])?, Layout::new(x.value.shape(), how.heads[1])?);
    let fits = x.query.rank() == x.key.rank()
        && x.key.rank() == x.value.rank()
        && [k.batch, v.batch] == [q.batch; 2]
        && (k.heads, k.length, k.size) == (v.heads, v.length, q.size)
        && if k.heads == 0 { q.heads == 0 } else { q.heads.is_multiple_of(k.heads) }
        && x.past[0].is_some() == x.past[1].is_some()
        && x.lengths.is_none_or(|l| l.shape() == [q.batch] && x.past[0].is_none());
    if !fits {
        let [q, k, v] = [q, k, v].map(|l| shape_text(&l.shape()));
        return Err(Failure::Mismatch(format!("queries of shape {q}, keys of shape {k} and values of shape {v}")));
    }
    let others = [x.past[0], x.past[1], x.mask, x.lengths];
    check_steps(&[x.query, x.key, x.value], &others, steps(x, how.heads))?;
    let (keys, k, past) = joined::<T>(x.key, k, x.past[0])?;
    let (values, v, past_values) = joined::<T>(x.value, v, x.past[1])?;
    if past != past_values {
        return Err(Failure::Mismatch(format!("{past} keys and {past_values} values of the past")));
    }

    // Allocate the results.
    let y = Layout::new(&[q.batch, q.heads, q.length, v.size], None)?;
    let y = match x.query.rank() {
        3 => {
            let width = q.heads.checked_mul(v.size).ok_or(Failure::TooLarge)?;
            let strides = [q.length.saturating_mul(width), v.size, width];
            (Layout { strides, ..y }, Output::<T>::new(&[q.batch, q.length, width])?)
        }
        _ => (y, Output::<T>::new(&y.shape())?),
    };
    let (layout, mut out) = y;
    let score_shape = [q.batch, q.heads, q.length, k.length];
    let mut scores = (how.results > 3).then(|| Output::<T>::new(&score_shape)).transpose()?;
    let mask = x.mask.map(|m| MaskRows::<T>::new(m, score_shape)).transpose()?;
    let attended = Attended { how, lengths: x.lengths.map(View::new), queries: q.length, past };

    // Compute the heads.
    let scale = how.scale.unwrap_or(1.0 / (q.size as f64).sqrt()).sqrt();
    let scale = T::nearest(scale).widen();
    let (queries, key_view, value_view) = (View::<T>::new(x.query), View::<T>::new(&keys), View::<T>::new(&values));
    if q.batch == 0 || q.heads == 0 || q.length == 0 {
        return results(out.finish()?, keys, values, scores, how);
    }
    let mut scaled = filled(k.length.checked_mul(k.size).ok_or(Failure::TooLarge)?, T::Calc::ZERO)?;
    let mut query_row = filled(q.size, T::Calc::ZERO)?;
    let mut row = filled(k.length, 0f64)?;
    let mut sums = filled(v.size, T::Calc::ZERO)?;
    let group = q.heads / k.heads.max(1);
    for (batch, head) in (0..q.batch).flat_map(|b| (0..q.heads).map(move |h| (b, h))) {
        let shared = head / group.max(1);
        if head % group.max(1) == 0 {
            let start = k.start(batch, shared, 0);
            for (i, s) in scaled.iter_mut().enumerate() {
                *s = rounded::<T>(key_view.get(start + i).widen().mul(scale));
            }
        }
        for query in 0..q.length {
            let start = q.start(batch, head, query);
            for (i, e) in query_row.iter_mut().enumerate() {
                *e = rounded::<T>(queries.get(start + i).widen().mul(scale));
            }
            let at = ((batch * q.heads + head) * q.length + query) * k.length;
            let report = scores.as_mut().map(|s| &mut s.raw()[at..at + k.length]);
            let terms = mask.as_ref().map(|m| (m, batch * m.strides[0] + head * m.strides[1] + query * m.strides[2]));
            weights::<T>((&query_row, &scaled), terms, attended.bounds(batch, query), how, softmax, &mut row, report);
            sums.fill(T::Calc::ZERO);
            for (key, &weight) in row.iter().enumerate() {
                let weight = T::nearest(weight).widen();
                let start = v.start(batch, shared, key);
                for (i, s) in sums.iter_mut().enumerate() {
                    *s = s.add(weight.mul(value_view.get(start + i).widen()));
                }
            }
            let start = layout.start(batch, head, query);
            for (o, &s) in out.raw()[start..start + v.size].iter_mut().zip(&sums) {
                *o = T::narrow(s).store();
            }
        }
    }
    results(out.finish()?, keys, values, scores, how)
}

/// Computes the weights of the values for a query.
fn weights<T: FloatNumber>(
    (query, keys): (&[T::Calc], &[T::Calc]),
    mask: Option<(&MaskRows<'_, T>, usize)>,
    (first, last, length): (i128, i128, i128),
    how: &Attention,
    softmax: fn(&mut [f64]),
    row: &mut [f64],
    report: Option<&mut [T::Raw]>,
) {
    let low = T::Calc::from_f64(f64::NEG_INFINITY);
    let cap = T::nearest(how.softcap).widen();
    let mut reported = report;
    let mut note = |key: usize, which: Scores, value: T::Calc| {
        if let Some(report) = &mut reported
            && which == how.scores
        {
            report[key] = T::narrow(value).store();
        }
    };
    let mut is_masked = true;
    for (key, score) in row.iter_mut().enumerate() {
        let elements = &keys[key * query.len()..][..query.len()];
        let mut product = T::Calc::ZERO;
        for (&a, &b) in query.iter().zip(elements) {
            product = product.add(a.mul(b));
        }
        let mut value = rounded::<T>(product);
        note(key, Scores::Products, value);
        if how.softcap > 0.0 {
            value = rounded::<T>(rounded::<T>(rounded::<T>(value.div(cap)).tanh()).mul(cap));
        }
        note(key, Scores::Capped, value);
        let is_attended = (first..=last).contains(&(key as i128)) && (key as i128) < length;
        let mut bias = mask.map_or(T::Calc::ZERO, |(mask, start)| mask.term(start, key));
        if !is_attended {
            bias = bias.add(low);
        }
        is_masked &= bias == low;
        value = rounded::<T>(value.add(bias));
        note(key, Scores::Masked, value);
        *score = value.into();
    }
    if is_masked {
        row.fill(0.0);
    } else {
        softmax(row);
    }
    for (key, &weight) in row.iter().enumerate() {
        note(key, Scores::Weights, T::nearest(weight).widen());
    }
}

fn results<T: Scalar>(
    y: Literal,
    keys: Literal,
    values: Literal,
    scores: Option<Output<T>>,
    how: &Attention,
) -> Result<Vec<Literal>, Failure> {
    if how.results < 3 {
        return Ok(vec![y]);
    }
    let mut all = vec![y, keys, values];
    if let Some(scores) = scores {
        all.push(scores.finish()?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lit(shape: &[usize], values: &[f32]) -> Literal {
        Literal::from_elements(shape, values).unwrap()
    }

    fn how(is_causal: bool) -> Attention {
        Attention {
            heads: [None; 2],
            scale: Some(1.0),
            softcap: 0.0,
            is_causal,
            window: [-1; 2],
            precision: None,
            scores: Scores::Weights,
            results: 4,
        }
    }

    fn operands<'a>(query: &'a Literal, key: &'a Literal, value: &'a Literal) -> Operands<'a> {
        Operands { query, key, value, mask: None, past: [None; 2], lengths: None }
    }

    #[test]
    fn a_query_attends_the_keys_that_its_mask_allows() {
        let (q, k) = (lit(&[1, 1, 2, 1], &[0., 0.]), lit(&[1, 1, 3, 1], &[1., 2., 3.]));
        let v = lit(&[1, 1, 3, 1], &[2., 4., f32::NAN]);
        let mask = Literal::from_elements(&[2, 3], &[true, true, false, false, false, false]).unwrap();
        let x = Operands { mask: Some(&mask), ..operands(&q, &k, &v) };
        let all = attention(x, &how(false)).unwrap();
        assert_eq!(all[3], lit(&[1, 1, 2, 3], &[0.5, 0.5, 0., 0., 0., 0.]));
        let causal = attention(operands(&q, &k, &k), &how(true)).unwrap();
        assert_eq!(causal[0], lit(&[1, 1, 2, 1], &[1., 1.5]));
        assert_eq!(causal[3], lit(&[1, 1, 2, 3], &[1., 0., 0., 0.5, 0.5, 0.]));
    }

    #[test]
    fn the_past_precedes_and_padding_is_not_attended() {
        let (q, k) = (lit(&[1, 1, 1, 1], &[0.]), lit(&[1, 1, 1, 1], &[7.]));
        let past = lit(&[1, 1, 1, 1], &[5.]);
        let x = Operands { past: [Some(&past); 2], ..operands(&q, &k, &k) };
        let all = attention(x, &how(true)).unwrap();
        assert_eq!((&all[0], &all[1]), (&lit(&[1, 1, 1, 1], &[6.]), &lit(&[1, 1, 2, 1], &[5., 7.])));
        let (cache, lengths) = (lit(&[1, 1, 3, 1], &[1., 2., 9.]), Literal::splat(&[1], 2i64));
        let x = Operands { lengths: Some(&lengths), ..operands(&q, &cache, &cache) };
        assert_eq!(attention(x, &how(false)).unwrap()[0], lit(&[1, 1, 1, 1], &[1.5]));
        // No key precedes the query.
        let none = Literal::splat(&[1], 0i64);
        let x = Operands { lengths: Some(&none), ..operands(&q, &cache, &cache) };
        assert_eq!(attention(x, &how(true)).unwrap()[0], lit(&[1, 1, 1, 1], &[0.]));
    }
}
