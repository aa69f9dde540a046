//! Linear attention: a recurrence over the positions, whose state maps keys to values.

use anfora_ir::{DType, Literal};

use super::cast::cast;
use super::view::{Output, View, filled};
use super::working::{Working, check_steps, product, working_type};
use super::{Failure, shape_text};

/// The change of the state at a position.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct UpdateRule {
    /// True if the state decays before the new value is added.
    pub(crate) is_gated: bool,
    /// True if what the state has for the key is subtracted from the new value.
    pub(crate) is_delta: bool,
}

impl UpdateRule {
    /// Returns the rule of this name.
    ///
    /// # Errors
    /// If there is no such rule.
    pub(crate) fn from_name(name: &str) -> Result<UpdateRule, Failure> {
        let (is_gated, is_delta) = match name {
            "linear" => (false, false),
            "gated" => (true, false),
            "delta" => (false, true),
            "gated_delta" => (true, true),
            _ => return Err(Failure::Mismatch(format!("`update_rule` is `{name}`, which is none"))),
        };
        Ok(UpdateRule { is_gated, is_delta })
    }
}

/// The operands of linear attention. All but the state have shape `(batch, positions, width)`.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Operands<'a> {
    pub(crate) query: &'a Literal,
    pub(crate) key: &'a Literal,
    pub(crate) value: &'a Literal,
    /// The state before the first position, `(batch, heads, key size, value size)`.
    pub(crate) state: Option<&'a Literal>,
    pub(crate) decay: Option<&'a Literal>,
    pub(crate) beta: Option<&'a Literal>,
}

/// The extents of a call.
#[derive(Copy, Clone, Debug)]
struct Extents {
    batch: usize,
    positions: usize,
    query_heads: usize,
    heads: usize,
    key_size: usize,
    value_size: usize,
}

impl Extents {
    fn of(x: Operands<'_>, heads: [i64; 2]) -> Result<Extents, Failure> {
        let wrong = || {
            let [q, k, v] = [x.query, x.key, x.value].map(|l| shape_text(l.shape()));
            Failure::Mismatch(format!("{heads:?} heads of queries {q}, keys {k} and values {v}"))
        };
        let count = |heads: i64| usize::try_from(heads).ok().filter(|&h| h > 0).ok_or_else(wrong);
        let (query_heads, heads) = (count(heads[0])?, count(heads[1])?);
        let (&[batch, positions, query_width], &[_, _, key_width], &[_, _, value_width]) =
            (x.query.shape(), x.key.shape(), x.value.shape())
        else {
            return Err(wrong());
        };
        let (key_size, value_size) = (key_width / heads, value_width / heads);
        let fits = query_heads.is_multiple_of(heads)
            && key_size.checked_mul(query_heads) == Some(query_width)
            && key_width == key_size * heads
            && value_width == value_size * heads
            && [x.key, x.value].iter().all(|l| l.shape()[..2] == [batch, positions]);
        if fits { Ok(Extents { batch, positions, query_heads, heads, key_size, value_size }) } else { Err(wrong()) }
    }

    fn steps(&self) -> Option<u128> {
        let group = (self.query_heads / self.heads).checked_add(3)?;
        product(&[self.batch, self.positions.max(1), self.heads, self.key_size.max(1), self.value_size.max(1), group])
    }

    fn state_shape(&self) -> [usize; 4] {
        [self.batch, self.heads, self.key_size, self.value_size]
    }
}

/// Returns the number of steps of a call; `None` if it overflows or the call fails.
pub(crate) fn steps(x: Operands<'_>, heads: [i64; 2]) -> Option<u128> {
    Extents::of(x, heads).ok()?.steps()
}

/// Returns the results at all positions, and the last state. A `scale` of 0 is the reciprocal root
/// of the key size.
pub(crate) fn linear_attention(
    x: Operands<'_>,
    heads: [i64; 2],
    rule: UpdateRule,
    scale: f64,
) -> Result<Vec<Literal>, Failure> {
    let extents = Extents::of(x, heads)?;
    let state_shape = extents.state_shape();
    let ends_with = |l: &Literal, widths: &[usize]| {
        l.rank() == 3 && l.shape()[..2] == x.query.shape()[..2] && widths.contains(&l.shape()[2])
    };
    let fits = x.state.is_none_or(|s| s.shape() == state_shape)
        && x.decay.is_none_or(|d| ends_with(d, &[extents.heads, x.key.shape()[2]]))
        && x.beta.is_none_or(|b| ends_with(b, &[extents.heads, 1]))
        && x.decay.is_some() == rule.is_gated
        && x.beta.is_some() == rule.is_delta;
    if !fits {
        return Err(Failure::Mismatch("a state, a decay or an update rate that does not fit".into()));
    }
    check_steps(&[x.query, x.key, x.value], &[x.state, x.decay, x.beta], extents.steps())?;
    let dtype = x.query.dtype();
    let state_dtype = x.state.map_or(dtype, Literal::dtype);
    let work = working_type(dtype)?;
    let own = |l: Option<&Literal>| l.map(|l| cast(l, work)).transpose();
    let (query, key, value) = (cast(x.query, work)?, cast(x.key, work)?, cast(x.value, work)?);
    let (state, decay, beta) = (own(x.state)?, own(x.decay)?, own(x.beta)?);
    let x = Operands {
        query: &query,
        key: &key,
        value: &value,
        state: state.as_ref(),
        decay: decay.as_ref(),
        beta: beta.as_ref(),
    };
    let scale = if scale == 0.0 { 1.0 / (extents.key_size as f64).sqrt() } else { scale };
    let [y, state] = match work {
        DType::Float64 => run::<f64>(x, extents, scale)?,
        _ => run::<f32>(x, extents, scale)?,
    };
    Ok(vec![cast(&y, dtype)?, cast(&state, state_dtype)?])
}

fn run<T: Working>(x: Operands<'_>, e: Extents, scale: f64) -> Result<[Literal; 2], Failure> {
    let scale = T::from_f64(scale);
    let width = e.query_heads.checked_mul(e.value_size).ok_or(Failure::TooLarge)?;
    let mut out = Output::<T>::new(&[e.batch, e.positions, width])?;
    let mut states = Output::<T>::new(&e.state_shape())?;
    let [query, key, value] = [x.query, x.key, x.value].map(View::<T>::new);
    let [before, decay, beta] = [x.state, x.decay, x.beta].map(|l| l.map(View::<T>::new));
    let (decay_width, beta_width) = (x.decay.map_or(0, |d| d.shape()[2]), x.beta.map_or(0, |b| b.shape()[2]));
    let size = e.key_size.checked_mul(e.value_size).ok_or(Failure::TooLarge)?;
    let (mut state, mut new) = (filled(size, T::ZERO)?, filled(e.value_size, T::ZERO)?);
    let group = e.query_heads / e.heads;
    for (batch, head) in (0..e.batch).flat_map(|b| (0..e.heads).map(move |h| (b, h))) {
        let start = (batch * e.heads + head) * size;
        for (i, s) in state.iter_mut().enumerate() {
            *s = before.as_ref().map_or(T::ZERO, |b| b.get(start + i));
        }
        for position in 0..e.positions {
            let at = batch * e.positions + position;
            let key_of = |d: usize| key.get((at * e.heads + head) * e.key_size + d);
            if let Some(decay) = &decay {
                for d in 0..e.key_size {
                    let own = if decay_width == e.heads { head } else { head * e.key_size + d };
                    let factor = decay.get(at * decay_width + own).exp();
                    state[d * e.value_size..][..e.value_size].iter_mut().for_each(|s| *s = s.mul(factor));
                }
            }
            for (m, n) in new.iter_mut().enumerate() {
                *n = value.get((at * e.heads + head) * e.value_size + m);
                if let Some(beta) = &beta {
                    let products = (0..e.key_size).map(|d| state[d * e.value_size + m].mul(key_of(d)));
                    let found = products.fold(T::ZERO, |sum, p| sum.add(p));
                    let rate = beta.get(at * beta_width + if beta_width == 1 { 0 } else { head });
                    *n = rate.mul(n.sub(found));
                }
            }
            for d in 0..e.key_size {
                let row = &mut state[d * e.value_size..][..e.value_size];
                row.iter_mut().zip(&new).for_each(|(s, &n)| *s = s.add(key_of(d).mul(n)));
            }
            for own in head * group..(head + 1) * group {
                let raw = &mut out.raw()[at * width + own * e.value_size..][..e.value_size];
                for (m, o) in raw.iter_mut().enumerate() {
                    let of_query = |d: usize| query.get((at * e.query_heads + own) * e.key_size + d);
                    let products = (0..e.key_size).map(|d| of_query(d).mul(state[d * e.value_size + m]));
                    let sum = products.fold(T::ZERO, |sum, p| sum.add(p));
                    *o = T::narrow(scale.mul(sum)).store();
                }
            }
        }
        for (o, &s) in states.raw()[start..start + size].iter_mut().zip(&state) {
            *o = T::narrow(s).store();
        }
    }
    Ok([out.finish()?, states.finish()?])
}
