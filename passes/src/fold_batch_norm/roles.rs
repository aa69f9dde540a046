//! The roles of operators in the pass: linear in a constant weight, or a scale and a shift by
//! channel.

use anfora_ir::{AttrReader, AttrsId, Body, Context, DTypeClass, Expr, ExprId, Literal, OpId};
use smallvec::SmallVec;

use super::channels::PerChannel;

/// The role of an operator.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Nothing,
    Convolution,
    TransposedConvolution,
    Gemm,
    Matmul,
    BatchNorm,
    Multiply,
    Divide,
    Add,
    Subtract,
    Negative,
    /// It commutes with positive scales.
    Homogeneous,
}

impl Role {
    /// Returns true if the operator is linear in a weight.
    #[inline]
    pub(super) fn is_linear(self) -> bool {
        matches!(self, Role::Convolution | Role::TransposedConvolution | Role::Gemm | Role::Matmul)
    }

    /// Returns true if the bias has one number per channel, and is not broadcast.
    pub(super) fn is_convolution(self) -> bool {
        matches!(self, Role::Convolution | Role::TransposedConvolution)
    }
}

/// The role of each operator of the registry.
pub(super) struct Roles(Vec<Role>);

impl Roles {
    pub(super) fn new(cx: &Context) -> Roles {
        let role = |name: &str| match name {
            "nn.conv1d" | "nn.conv2d" | "nn.conv3d" => Role::Convolution,
            "nn.conv1d_transpose" | "nn.conv2d_transpose" | "nn.conv3d_transpose" => Role::TransposedConvolution,
            "nn.gemm" => Role::Gemm,
            "matmul" => Role::Matmul,
            "nn.batch_norm" => Role::BatchNorm,
            "multiply" => Role::Multiply,
            "divide" => Role::Divide,
            "add" => Role::Add,
            "subtract" => Role::Subtract,
            "negative" => Role::Negative,
            "nn.relu" | "nn.leaky_relu" => Role::Homogeneous,
            _ => Role::Nothing,
        };
        Roles(cx.ops.registry().rows().map(|(_, row)| role(&row.name)).collect())
    }

    #[inline]
    pub(super) fn of(&self, op: OpId) -> Role {
        self.0.get(op.index()).copied().unwrap_or(Role::Nothing)
    }

    /// Returns true if a function has a call that is linear in a weight.
    pub(super) fn any_linear(&self, body: &Body) -> bool {
        body.exprs().any(|(_, e)| matches!(e, Expr::CallOp { op, .. } if self.of(op).is_linear()))
    }
}

/// The channels of the operand or of the result of a linear call.
#[derive(Copy, Clone, Debug)]
pub(super) struct Side {
    /// The axis of the value for the channels.
    pub(super) axis: usize,
    pub(super) channels: usize,
    /// The axis of the weight for the channels of one group.
    pub(super) weight_axis: usize,
}

/// A call whose result is its first operand times a weight, plus a bias.
#[derive(Copy, Clone, Debug)]
pub(super) struct Shape {
    /// The operand that is the weight.
    pub(super) weight: ExprId,
    /// The operand that is the bias, if there is one.
    pub(super) bias: Option<ExprId>,
    /// True if the call can take a bias.
    pub(super) takes_bias: bool,
    pub(super) output: Side,
    pub(super) input: Side,
}

/// Returns the shape of a call that is linear in its weight, if it is known.
pub(super) fn linear(cx: &Context, body: &Body, call: ExprId, role: Role) -> Option<Shape> {
    let Expr::CallOp { op, operands, attrs } = body.expr(call) else { return None };
    let operands = body.operands(operands);
    let weight = *operands.get(1)?;
    let literal = cx.literals.get(body.as_literal(weight)?);
    let result = cx.types.as_tensor(body.ty(call))?;
    let rank = result.shape.as_ref()?.len();
    if literal.dtype().class() != DTypeClass::Float || literal.dtype() != result.dtype {
        return None;
    }
    let bias = operands.get(2).copied().filter(|&b| body.expr(b) != Expr::None);
    if bias.is_some_and(|b| body.as_literal(b).is_none()) {
        return None;
    }
    let attrs = AttrReader { cx, op, attrs };
    let extents = literal.shape();
    if extents.len() < 2 {
        return None;
    }
    let side = |axis, weight_axis| Side { axis, channels: extents[weight_axis], weight_axis };
    let (output, input) = match role {
        Role::Convolution | Role::TransposedConvolution => {
            let groups = usize::try_from(attrs.int("groups")?).ok().filter(|&g| g > 0)?;
            let place = |layout: &str, letter: char| attrs.str(layout)?.find(letter);
            let (axis, kernel) = (place("data_layout", 'C')?, |letter| place("kernel_layout", letter));
            // A weight has an axis with all channels of the result, or of the operand of a
            // transposed convolution. The other axis has those of one group. Groups are runs of
            // elements if the first axis is the one with all channels.
            let (first, second) = if role == Role::Convolution { ('O', 'I') } else { ('I', 'O') };
            let (whole_axis, grouped_axis) = (kernel(first)?, kernel(second)?);
            if groups > 1 && whole_axis != 0 || !extents[whole_axis].is_multiple_of(groups) {
                return None;
            }
            let whole = side(axis, whole_axis);
            let grouped = Side { channels: extents[grouped_axis].checked_mul(groups)?, ..side(axis, grouped_axis) };
            if role == Role::Convolution { (whole, grouped) } else { (grouped, whole) }
        }
        Role::Gemm if attrs.float("beta")? == 1.0 => {
            let [trans_a, trans_b] = [attrs.bool("trans_a")?, attrs.bool("trans_b")?];
            let (k, n) = if trans_b { (1, 0) } else { (0, 1) };
            (side(1, n), side(usize::from(!trans_a), k))
        }
        Role::Matmul if extents.len() == 2 => {
            let of_operand = cx.types.as_tensor(body.ty(operands[0]))?.shape.as_ref()?.len();
            (side(rank.checked_sub(1)?, 1), side(of_operand.checked_sub(1)?, 0))
        }
        _ => return None,
    };
    if output.axis >= rank || literal.element_count() == 0 {
        return None;
    }
    Some(Shape { weight, bias, takes_bias: role != Role::Matmul, output, input })
}

/// `scale * x + shift`, by channel.
pub(super) struct Affine {
    pub(super) scale: PerChannel,
    pub(super) shift: PerChannel,
}

/// The scale and shift of a call, and the constants that it uses.
pub(super) type Step = (Affine, SmallVec<[ExprId; 4]>);

/// Returns a call with `value` as its operand `position` as a scale and a shift of the value's
/// channels.
pub(super) fn affine(
    cx: &Context,
    body: &Body,
    (call, role): (ExprId, Role),
    position: usize,
    (side, value): (&Side, ExprId),
) -> Option<Step> {
    let Expr::CallOp { op, operands, attrs } = body.expr(call) else { return None };
    let operands = body.operands(operands);
    let same = PerChannel::Same;
    match role {
        Role::Negative => Some((Affine { scale: same(-1.0), shift: same(-0.0) }, SmallVec::new())),
        Role::BatchNorm if position == 0 => batch_norm(cx, body, (op, attrs), operands, side),
        Role::Multiply | Role::Divide | Role::Add | Role::Subtract => {
            let constant = *operands.get(1 - position)?;
            let by = per_channel(cx, body, cx.literals.get(body.as_literal(constant)?), side, value)?;
            let affine = match (role, position) {
                (Role::Multiply, _) => Affine { scale: by, shift: same(0.0) },
                (Role::Divide, 0) => Affine { scale: by.map(|b| 1.0 / b), shift: same(0.0) },
                (Role::Add, _) => Affine { scale: same(1.0), shift: by },
                (Role::Subtract, 0) => Affine { scale: same(1.0), shift: by.map(|b| -b) },
                (Role::Subtract, _) => Affine { scale: same(-1.0), shift: by },
                _ => return None,
            };
            Some((affine, SmallVec::from_slice(&[constant])))
        }
        _ => None,
    }
}

fn batch_norm(
    cx: &Context,
    body: &Body,
    (op, attrs): (OpId, AttrsId),
    operands: &[ExprId],
    side: &Side,
) -> Option<Step> {
    let attrs = AttrReader { cx, op, attrs };
    let (axis, epsilon) = (attrs.int("axis")?, attrs.float("epsilon")?);
    let rank = cx.types.as_tensor(body.ty(*operands.first()?))?.shape.as_ref()?.len();
    let axis = if axis < 0 { axis + rank as i64 } else { axis };
    let mut constants = SmallVec::new();
    let mut numbers = SmallVec::<[PerChannel; 4]>::new();
    for &o in &operands[1..] {
        let literal = cx.literals.get(body.as_literal(o)?);
        let one = literal.as_splat().is_some();
        if !one && (usize::try_from(axis) != Ok(side.axis) || literal.shape() != [side.channels]) {
            return None;
        }
        constants.push(o);
        numbers.push(PerChannel::of(literal)?);
    }
    let [scale, bias, mean, var] = numbers.as_slice() else { return None };
    let scale = scale.zip(var, |s, v| s / (v + epsilon).sqrt());
    let shift = bias.zip(&mean.zip(&scale, |m, s| m * s), |b, ms| b - ms);
    Some((Affine { scale, shift }, constants))
}

/// Returns the numbers of a constant that is broadcast to a value, if it has one number per channel
/// and does not change the value's extents.
pub(super) fn per_channel(
    cx: &Context,
    body: &Body,
    literal: &Literal,
    side: &Side,
    value: ExprId,
) -> Option<PerChannel> {
    let dims = cx.types.as_tensor(body.ty(value))?.shape.as_ref()?;
    let first = dims.len().checked_sub(literal.rank())?;
    let one = literal.as_splat().is_some();
    for (i, &extent) in literal.shape().iter().enumerate() {
        let fits = extent == 1
            || if first + i == side.axis {
                extent == side.channels
            } else {
                one && cx.types.dims.as_constant(dims[first + i]) == Some(extent as i64)
            };
        if !fits {
            return None;
        }
    }
    PerChannel::of(literal)
}
