//! Recurrent networks, and the convolution that continues a sequence.

use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, AttrReader, DType, KernelCall, KernelError, OpDef, TypeCall, TypeError,
    TypeId,
};

use crate::kernels::Failure;
use crate::kernels::causal_convolution::causal_convolution;
use crate::kernels::recurrent::{self, Cell, Direction, Recurrence, RecurrentOperands};
use crate::row::row;
use crate::steps::{self, saturated};
use crate::typing::{
    Elements, RequiredAttrs, as_extent, differ, given, optional, ranked, result, same_elements, tensor, unify,
};

const DIRECTION: AttrDef = AttrDef::new(
    "direction",
    AttrKind::Str,
    AttrDefault::Str("forward"),
    "how sequences are read: `forward`, `reverse` or `bidirectional`",
);
const LAYOUT: AttrDef =
    AttrDef::new("layout", AttrKind::Int, AttrDefault::Int(0), "the first axis: 0 for the sequence, 1 for the batch");
const CLIP: AttrDef = AttrDef::optional("clip", AttrKind::Float, "the bound of the operands of activations");

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        row(
            "nn.lstm",
            "the tuple of the states of an LSTM, the last states and the last cells; operands x, weights, recurrent weights, optionally bias, lengths, state, cell, peepholes",
            Arity::between(3, 8),
            |call| recurrent_type(call, lstm),
            |c| Ok(recurrent::recurrent(operands(c)?, recurrence(&c.attrs, lstm)?)?),
        )
        .steps(|c| steps_of(c, lstm))
        .attrs(const { &[DIRECTION, LAYOUT, CLIP, AttrDef::flag("input_forget", "whether the forget gate is 1 minus the input gate")] }),
        row(
            "nn.gru",
            "the tuple of the states of a GRU and the last states; operands x, weights, recurrent weights, optionally bias, lengths, state",
            Arity::between(3, 6),
            |call| recurrent_type(call, gru),
            |c| Ok(recurrent::recurrent(operands(c)?, recurrence(&c.attrs, gru)?)?),
        )
        .steps(|c| steps_of(c, gru))
        .attrs(const { &[DIRECTION, LAYOUT, CLIP, AttrDef::flag("linear_before_reset", "whether the reset gate multiplies the product with the state")] }),
        row(
            "nn.rnn",
            "the tuple of the states of a recurrent network with tanh, and the last states; operands x, weights, recurrent weights, optionally bias, lengths, state",
            Arity::between(3, 6),
            |call| recurrent_type(call, plain),
            |c| Ok(recurrent::recurrent(operands(c)?, recurrence(&c.attrs, plain)?)?),
        )
        .steps(|c| steps_of(c, plain))
        .attrs(const { &[DIRECTION, LAYOUT, CLIP] }),
        row(
            "nn.causal_conv1d",
            "the tuple of the convolution of each channel with its kernel, over no later elements, and the end of the sequence; operands x, weight, optionally bias, state",
            Arity::between(2, 4),
            causal_type,
            |c| {
                let silu = is_silu(&c.attrs)?;
                Ok(causal_convolution(c.operand(0)?, c.operand(1)?, c.optional(2), c.optional(3), silu)?)
            },
        )
        .steps(steps::convolution)
        .attrs(const { &[AttrDef::new("activation", AttrKind::Str, AttrDefault::Str("none"), "`none`, or `silu` or `swish` for `y * sigmoid(y)`")] }),
    ]
}

/// A function that returns the kind of a network from the attributes of a call.
type CellOf = fn(&AttrReader<'_>) -> Result<Cell, Failure>;

fn lstm(attrs: &AttrReader<'_>) -> Result<Cell, Failure> {
    Ok(Cell::Lstm { input_forget: attrs.required_bool("input_forget")? })
}

fn gru(attrs: &AttrReader<'_>) -> Result<Cell, Failure> {
    Ok(Cell::Gru { linear_before_reset: attrs.required_bool("linear_before_reset")? })
}

fn plain(_: &AttrReader<'_>) -> Result<Cell, Failure> {
    Ok(Cell::Plain)
}

fn recurrence(attrs: &AttrReader<'_>, cell: CellOf) -> Result<Recurrence, Failure> {
    let batch_first = match attrs.required_int("layout")? {
        bit @ (0 | 1) => bit == 1,
        other => return Err(Failure::Mismatch(format!("`layout` is {other}, but 0 or 1 is expected"))),
    };
    let direction = Direction::from_name(given(attrs.str("direction"), "direction")?)?;
    Ok(Recurrence { cell: cell(attrs)?, direction, clip: attrs.float("clip"), batch_first })
}

fn operands<'a>(c: &'a KernelCall<'_>) -> Result<RecurrentOperands<'a>, KernelError> {
    Ok(RecurrentOperands {
        x: c.operand(0)?,
        weights: c.operand(1)?,
        recurrent: c.operand(2)?,
        bias: c.optional(3),
        lengths: c.optional(4),
        initial: [c.optional(5), c.optional(6)],
        peepholes: c.optional(7),
    })
}

fn steps_of(c: &KernelCall<'_>, cell: CellOf) -> u64 {
    match (operands(c), recurrence(&c.attrs, cell)) {
        (Ok(x), Ok(how)) => saturated(recurrent::steps(x, how).or(Some(1))),
        _ => 1,
    }
}

fn recurrent_type(call: &mut TypeCall<'_>, cell: CellOf) -> Result<TypeId, TypeError> {
    let how = recurrence(&call.attrs(), cell)?;
    let x = tensor(call, 0, Elements::Float)?;
    let mut shapes = vec![ranked(call.cx, &x, 0, 3)?];
    for i in [1, 2] {
        let weights = tensor(call, i, Elements::Float)?;
        same_elements(&x, &weights, i)?;
        shapes.push(ranked(call.cx, &weights, i, 3)?);
    }
    for i in [3, 5, 6, 7] {
        if let Some(other) = optional(call, i, Elements::Float)? {
            same_elements(&x, &other, i)?;
        }
    }
    if let Some(found) = optional(call, 4, Elements::Integer)?.map(|l| l.dtype).filter(|&d| d != DType::Int32) {
        return Err(TypeError::operand(4, format!("operand 4 has elements of {found}, but int32 is expected")));
    }
    let directions = call.cx.types.dims.constant(how.direction.count() as i64);
    for i in [1, 2] {
        let found = shapes[i][0];
        unify(call.cx, directions, found)
            .ok_or_else(|| differ(call.cx, i, "the number of directions", found, directions))?;
    }
    let (input, of_input) = (shapes[0][2], shapes[1][2]);
    unify(call.cx, input, of_input).ok_or_else(|| differ(call.cx, 1, "axis 2", of_input, input))?;
    let hidden = shapes[2][2];
    let gates = call.cx.types.dims.constant(how.cell.gates() as i64);
    let rows = call.cx.types.dims.mul(gates, hidden);
    for i in [1, 2] {
        let found = shapes[i][1];
        unify(call.cx, rows, found).ok_or_else(|| differ(call.cx, i, "axis 1", found, rows))?;
    }
    let (first, second) = (shapes[0][0], shapes[0][1]);
    let (states, last) = match how.batch_first {
        true => ([first, second, directions, hidden], [first, directions, hidden]),
        false => ([first, directions, second, hidden], [directions, second, hidden]),
    };
    let mut all = vec![result(call.cx, x.dtype, Some(&states))];
    let kept = if matches!(how.cell, Cell::Lstm { .. }) { 2 } else { 1 };
    for _ in 0..kept {
        all.push(result(call.cx, x.dtype, Some(&last)));
    }
    Ok(call.cx.types.tuple(&all))
}

fn is_silu(attrs: &AttrReader<'_>) -> Result<bool, Failure> {
    match given(attrs.str("activation"), "activation")? {
        "none" => Ok(false),
        "silu" | "swish" => Ok(true),
        other => {
            Err(Failure::Mismatch(format!("`activation` is `{other}`, but `none`, `silu` or `swish` is expected")))
        }
    }
}

fn causal_type(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    is_silu(&call.attrs())?;
    let (x, weight) = (tensor(call, 0, Elements::Float)?, tensor(call, 1, Elements::Float)?);
    same_elements(&x, &weight, 1)?;
    for i in [2, 3] {
        if let Some(other) = optional(call, i, Elements::Float)? {
            same_elements(&x, &other, i)?;
        }
    }
    let (shape, kernels) = (ranked(call.cx, &x, 0, 3)?, ranked(call.cx, &weight, 1, 3)?);
    let (channels, found) = (shape[1], kernels[0]);
    let channels = unify(call.cx, channels, found).ok_or_else(|| differ(call.cx, 1, "axis 0", found, channels))?;
    if as_extent(call.cx, kernels[2]) == Some(0) {
        return Err(TypeError::operand(1, "the kernels have no elements"));
    }
    let one = call.cx.types.dims.constant(1);
    let kept = call.cx.types.dims.sub(kernels[2], one);
    let y = result(call.cx, x.dtype, Some(&[shape[0], channels, shape[2]]));
    let state = result(call.cx, x.dtype, Some(&[shape[0], channels, kept]));
    Ok(call.cx.types.tuple(&[y, state]))
}
