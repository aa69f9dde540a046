//! Attention.

use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, AttrReader, DType, DimId, DimOp, KernelCall, KernelError, OpDef, TypeCall,
    TypeError, TypeId,
};

use crate::kernels::Failure;
use crate::kernels::attention::{self, Attention, Operands, Scores};
use crate::kernels::linear_attention::{self, UpdateRule};
use crate::kernels::rotary::{self, Rotary};
use crate::row::row;
use crate::steps::saturated;
use crate::typing::{
    Elements, Extents, RequiredAttrs, differ, given, one, optional, ranked, result, same_elements, tensor, unify,
};

const ATTRS: &[AttrDef] = &[
    AttrDef::optional("q_num_heads", AttrKind::Int, "the number of heads of queries of rank 3"),
    AttrDef::optional("kv_num_heads", AttrKind::Int, "the number of heads of keys and values of rank 3"),
    AttrDef::optional("scale", AttrKind::Float, "the factor of the products; `1 / sqrt(size)` if left out"),
    AttrDef::new("softcap", AttrKind::Float, AttrDefault::Float(0.0), "bounds the products; 0 for no bound"),
    AttrDef::flag("is_causal", "whether a query attends no keys after its own"),
    AttrDef::new(
        "left_window_size",
        AttrKind::Int,
        AttrDefault::Int(-1),
        "how many keys before its own a query attends; -1 for all",
    ),
    AttrDef::new(
        "right_window_size",
        AttrKind::Int,
        AttrDefault::Int(-1),
        "how many keys after its own a query attends; -1 for all",
    ),
    AttrDef::optional("softmax_precision", AttrKind::DType, "the element type of the softmax; T if left out"),
    AttrDef::new("qk_matmul_output_mode", AttrKind::Int, AttrDefault::Int(0), "which scores are the fourth result"),
    AttrDef::new("results", AttrKind::Int, AttrDefault::Int(1), "how many results there are: 1, 3 or 4"),
];

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        row(
            "nn.attention",
            "`softmax(query * key^T + mask) * value` by head; operands query, key, value, optionally mask, past keys, past values, lengths",
            Arity::between(3, 7),
            attention_type,
            |c| Ok(attention::attention(operands(c)?, &attributes(&c.attrs)?)?),
        )
        .steps(|c| {
            let heads = ["q_num_heads", "kv_num_heads"].map(|name| c.attrs.int(name));
            let steps = operands(c).ok().and_then(|x| attention::steps(x, heads)).or(Some(1));
            saturated(steps)
        })
        .attrs(ATTRS),
        row(
            "nn.linear_attention",
            "the tuple of what a state that maps keys to values has for queries, and the last state; operands query, key, value, optionally state, decay, beta",
            Arity::between(3, 6),
            linear_type,
            |c| {
                let attrs = &c.attrs;
                let rule = UpdateRule::from_name(given(attrs.str("update_rule"), "update_rule")?)?;
                let scale = attrs.required_float("scale")?;
                Ok(linear_attention::linear_attention(linear_operands(c)?, linear_heads(attrs)?, rule, scale)?)
            },
        )
        .steps(|c| {
            let steps = match (linear_operands(c), linear_heads(&c.attrs)) {
                (Ok(x), Ok(heads)) => linear_attention::steps(x, heads).or(Some(1)),
                _ => Some(1),
            };
            saturated(steps)
        })
        .attrs(LINEAR_ATTRS),
        row(
            "nn.rotary_embedding",
            "pairs of elements of a head, rotated by the angle of their position; operands x, cosines, sines, optionally positions",
            Arity::between(3, 4),
            rotary_type,
            |c| {
                let how = Rotary {
                    interleaved: c.attrs.required_bool("interleaved")?,
                    heads: c.attrs.required_int("num_heads")?,
                    rotated: c.attrs.required_int("rotary_embedding_dim")?,
                };
                one(rotary::rotary_embedding(c.operand(0)?, [c.operand(1)?, c.operand(2)?], c.optional(3), how))
            },
        )
        .attrs(ROTARY_ATTRS)
        .may_fail(),
    ]
}

const LINEAR_ATTRS: &[AttrDef] = &[
    AttrDef::required("q_num_heads", AttrKind::Int, "the number of heads of queries"),
    AttrDef::required("kv_num_heads", AttrKind::Int, "the number of heads of keys and values"),
    AttrDef::new("scale", AttrKind::Float, AttrDefault::Float(0.0), "the factor of results; 0 for `1 / sqrt(size)`"),
    AttrDef::new(
        "update_rule",
        AttrKind::Str,
        AttrDefault::Str("gated_delta"),
        "the change of the state: `linear`, `gated`, `delta` or `gated_delta`",
    ),
];
const ROTARY_ATTRS: &[AttrDef] = &[
    AttrDef::flag("interleaved", "whether the elements of a pair are neighbours"),
    AttrDef::new("num_heads", AttrKind::Int, AttrDefault::Int(0), "the number of heads of an operand of rank 3"),
    AttrDef::new(
        "rotary_embedding_dim",
        AttrKind::Int,
        AttrDefault::Int(0),
        "how many elements of a head are rotated; 0 for all",
    ),
];

fn linear_operands<'a>(c: &'a KernelCall<'_>) -> Result<linear_attention::Operands<'a>, KernelError> {
    Ok(linear_attention::Operands {
        query: c.operand(0)?,
        key: c.operand(1)?,
        value: c.operand(2)?,
        state: c.optional(3),
        decay: c.optional(4),
        beta: c.optional(5),
    })
}

/// Returns the numbers of heads of queries, and of keys and values.
fn linear_heads(attrs: &AttrReader<'_>) -> Result<[i64; 2], Failure> {
    let heads = [attrs.required_int("q_num_heads")?, attrs.required_int("kv_num_heads")?];
    match heads {
        [queries, keys] if queries > 0 && keys > 0 && queries % keys == 0 => Ok(heads),
        [queries, keys] => Err(Failure::Mismatch(format!("{queries} heads of queries for {keys} heads of keys"))),
    }
}

fn linear_type(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let attrs = call.attrs();
    let rule = UpdateRule::from_name(given(attrs.str("update_rule"), "update_rule")?)?;
    let [query_heads, heads] = linear_heads(&attrs)?;
    let query = tensor(call, 0, Elements::Float)?;
    let mut shapes = vec![ranked(call.cx, &query, 0, 3)?];
    for i in [1, 2] {
        let other = tensor(call, i, Elements::Float)?;
        same_elements(&query, &other, i)?;
        shapes.push(ranked(call.cx, &other, i, 3)?);
    }
    let state = optional(call, 3, Elements::Float)?;
    for (i, is_needed) in [(4, rule.is_gated), (5, rule.is_delta)] {
        match optional(call, i, Elements::Float)? {
            Some(_) if !is_needed => return Err(TypeError::operand(i, format!("the update rule has no operand {i}"))),
            Some(other) => same_elements(&query, &other, i)?,
            None if is_needed => return Err(TypeError::operand(i, format!("the update rule needs operand {i}"))),
            None => {}
        }
    }
    let (batch, length) = (shapes[0][0], shapes[0][1]);
    let [query_count, count] = [query_heads, heads].map(|h| call.cx.types.dims.constant(h));
    let dims = &mut call.cx.types.dims;
    let key_size = dims.op(DimOp::FloorDiv, shapes[0][2], query_count);
    let value_size = dims.op(DimOp::FloorDiv, shapes[2][2], count);
    let width = dims.mul(query_count, value_size);
    let y = result(call.cx, query.dtype, Some(&[batch, length, width]));
    let dtype = state.map_or(query.dtype, |s| s.dtype);
    let state = result(call.cx, dtype, Some(&[batch, count, key_size, value_size]));
    Ok(call.cx.types.tuple(&[y, state]))
}

fn rotary_type(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    for i in [1, 2] {
        let table = tensor(call, i, Elements::Float)?;
        same_elements(&x, &table, i)?;
    }
    if let Some(found) = optional(call, 3, Elements::Integer)?.map(|p| p.dtype).filter(|&d| d != DType::Int64) {
        return Err(TypeError::operand(3, format!("operand 3 has elements of {found}, but int64 is expected")));
    }
    match x.shape.as_ref().map(|s| s.len()) {
        None | Some(4) => {}
        Some(3) if call.attrs().required_int("num_heads")? > 0 => {}
        Some(3) => return Err(TypeError::operand(0, "operand 0 has rank 3, but the number of its heads is not given")),
        Some(rank) => {
            return Err(TypeError::operand(0, format!("operand 0 has rank {rank}, but rank 3 or 4 is expected")));
        }
    }
    Ok(call.ty(0))
}

fn operands<'a>(c: &'a KernelCall<'_>) -> Result<Operands<'a>, KernelError> {
    Ok(Operands {
        query: c.operand(0)?,
        key: c.operand(1)?,
        value: c.operand(2)?,
        mask: c.optional(3),
        past: [c.optional(4), c.optional(5)],
        lengths: c.optional(6),
    })
}

fn attributes(attrs: &AttrReader<'_>) -> Result<Attention, Failure> {
    let results = attrs.required_int("results")?;
    if !matches!(results, 1 | 3 | 4) {
        return Err(Failure::Mismatch(format!("`results` is {results}, but 1, 3 or 4 is expected")));
    }
    let window = [attrs.required_int("left_window_size")?, attrs.required_int("right_window_size")?];
    if window.iter().any(|&w| w < -1) {
        return Err(Failure::Mismatch(format!("a window of {} and {} keys", window[0], window[1])));
    }
    Ok(Attention {
        heads: ["q_num_heads", "kv_num_heads"].map(|name| attrs.int(name)),
        scale: attrs.float("scale"),
        softcap: attrs.required_float("softcap")?,
        is_causal: attrs.required_bool("is_causal")?,
        window,
        precision: attrs.dtype("softmax_precision"),
        scores: Scores::from_mode(attrs.required_int("qk_matmul_output_mode")?)?,
        results,
    })
}

/// The extents of a tensor of heads.
#[derive(Copy, Clone)]
struct Heads {
    batch: DimId,
    heads: DimId,
    length: DimId,
    size: DimId,
}

/// Returns the extents of operand `i`; `None` if its rank is not known.
fn heads_of(
    call: &mut TypeCall<'_>,
    i: usize,
    shape: Option<&Extents>,
    heads: Option<i64>,
) -> Result<Option<Heads>, TypeError> {
    let Some(shape) = shape else { return Ok(None) };
    match shape.as_slice() {
        &[batch, heads, length, size] => Ok(Some(Heads { batch, heads, length, size })),
        &[batch, length, width] => {
            let count = heads.filter(|&h| h > 0).ok_or_else(|| {
                TypeError::operand(i, format!("operand {i} has rank 3, but the number of its heads is not given"))
            })?;
            let dims = &mut call.cx.types.dims;
            if dims.as_constant(width).is_some_and(|w| w % count != 0) {
                let width = call.cx.dim_text(width);
                return Err(TypeError::operand(i, format!("{width} elements of operand {i} are no {count} heads")));
            }
            let heads = dims.constant(count);
            let size = dims.op(DimOp::FloorDiv, width, heads);
            Ok(Some(Heads { batch, heads, length, size }))
        }
        other => {
            Err(TypeError::operand(i, format!("operand {i} has rank {}, but rank 3 or 4 is expected", other.len())))
        }
    }
}

fn attention_type(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let how = attributes(&call.attrs())?;
    let query = tensor(call, 0, Elements::Float)?;
    let mut shapes = vec![query.shape.clone()];
    for i in [1, 2] {
        let other = tensor(call, i, Elements::Float)?;
        same_elements(&query, &other, i)?;
        shapes.push(other.shape);
    }
    if let Some(mask) = optional(call, 3, Elements::Any)?.filter(|m| m.dtype != DType::Bool) {
        same_elements(&query, &mask, 3)?;
    }
    let mut past = Vec::new();
    for i in [4, 5] {
        let state = optional(call, i, Elements::Float)?;
        if let Some(state) = &state {
            same_elements(&query, state, i)?;
        }
        past.push(state.map(|s| s.shape));
    }
    if past[0].is_some() != past[1].is_some() {
        return Err(TypeError::new("past keys and past values are given together"));
    }
    if let Some(lengths) = optional(call, 6, Elements::Integer)?.filter(|l| l.dtype != DType::Int64) {
        let found = lengths.dtype;
        return Err(TypeError::operand(6, format!("operand 6 has elements of {found}, but int64 is expected")));
    }
    let q = heads_of(call, 0, shapes[0].as_ref(), how.heads[0])?;
    let k = heads_of(call, 1, shapes[1].as_ref(), how.heads[1])?;
    let v = heads_of(call, 2, shapes[2].as_ref(), how.heads[1])?;
    let unknown = call.cx.types.dims.unknown();
    let nothing = Heads { batch: unknown, heads: unknown, length: unknown, size: unknown };
    let (known_q, known_k, known_v) = (q.unwrap_or(nothing), k.unwrap_or(nothing), v.unwrap_or(nothing));

    // Extents that must be equal.
    let same = |call: &mut TypeCall<'_>, i: usize, what: &str, found: DimId, wanted: DimId| {
        unify(call.cx, wanted, found).ok_or_else(|| differ(call.cx, i, what, found, wanted))
    };
    let batch = same(call, 1, "the batch", known_k.batch, known_q.batch)?;
    let batch = same(call, 2, "the batch", known_v.batch, batch)?;
    let size = same(call, 1, "the head size", known_k.size, known_q.size)?;
    let heads = same(call, 2, "the number of heads", known_v.heads, known_k.heads)?;
    let length = same(call, 2, "the length", known_v.length, known_k.length)?;
    let total = match &past[0] {
        None => length,
        Some(shape) => {
            let before = shape.as_ref().and_then(|s| s.get(2).copied()).unwrap_or(unknown);
            call.cx.types.dims.add(before, length)
        }
    };

    // The results.
    let y = match (&shapes[0], q) {
        (Some(shape), Some(_)) if shape.len() == 3 => {
            let width = call.cx.types.dims.mul(known_q.heads, known_v.size);
            result(call.cx, query.dtype, Some(&[batch, known_q.length, width]))
        }
        (_, Some(_)) => result(call.cx, query.dtype, Some(&[batch, known_q.heads, known_q.length, known_v.size])),
        (_, None) => result(call.cx, query.dtype, None),
    };
    if how.results == 1 {
        return Ok(y);
    }
    let mut all = vec![y];
    for size in [size, known_v.size] {
        all.push(result(call.cx, query.dtype, Some(&[batch, heads, total, size])));
    }
    if how.results == 4 {
        all.push(result(call.cx, query.dtype, Some(&[batch, known_q.heads, known_q.length, total])));
    }
    Ok(call.cx.types.tuple(&all))
}
