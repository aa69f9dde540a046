"""Calls of operators, and the same in JAX. The parameters are named as in the function of JAX.

Those of `p…` are drawn from 0.1 to 0.9, those of `q…` from 1.1 to 1.9, and all others from -0.9 to
0.9. The last expression of a body is its result.
"""

from dataclasses import dataclass
from typing import Callable

import jax
import jax.numpy as jnp
from jax import lax

M = (2, 3)


@dataclass
class Case:
    """A body in the text format, the shapes of its parameters, and the function of JAX."""

    body: str
    shapes: dict
    function: Callable


CASES = []


def case(body, function, **shapes):
    CASES.append(Case(body, shapes, function))


# ---- Elementwise ----

for name, function in [
    ("abs", jnp.abs),
    ("square", jnp.square),
    ("exp", jnp.exp),
    ("reciprocal", lambda x: 1 / x),
    ("tanh", jnp.tanh),
    ("sigmoid", jax.nn.sigmoid),
    ("erf", lax.erf),
    ("sin", jnp.sin),
    ("cos", jnp.cos),
    ("tan", jnp.tan),
    ("asin", jnp.arcsin),
    ("acos", jnp.arccos),
    ("atan", jnp.arctan),
    ("sinh", jnp.sinh),
    ("cosh", jnp.cosh),
    ("asinh", jnp.arcsinh),
    ("atanh", jnp.arctanh),
    ("negative", jnp.negative),
    ("nn.relu", jax.nn.relu),
    ("nn.silu", jax.nn.silu),
    ("nn.softplus", jax.nn.softplus),
    ("nn.softsign", jax.nn.soft_sign),
    ("nn.elu", jax.nn.elu),
    ("nn.mish", jax.nn.mish),
    ("nn.leaky_relu", jax.nn.leaky_relu),
]:
    case(f"{name}(%x)", function, x=M)
# The operator has the constants of ONNX, which are rounded to float32.
case("nn.selu(%x, alpha=1.5, gamma=2.0)", lambda x: 2.0 * jnp.where(x > 0, x, 1.5 * jnp.expm1(x)), x=M)
case("log(%p)", jnp.log, p=M)
case("sqrt(%p)", jnp.sqrt, p=M)
case("rsqrt(%p)", lax.rsqrt, p=M)
case("acosh(%q)", jnp.arccosh, q=M)
case("nn.gelu(%x)", lambda x: jax.nn.gelu(x, approximate=False), x=M)
case('nn.gelu(%x, approximate="tanh")', lambda x: jax.nn.gelu(x, approximate=True), x=M)
case("add(%x, %y)", jnp.add, x=M, y=(3,))
case("subtract(%x, %y)", jnp.subtract, x=(2, 1), y=(1, 3))
case("multiply(%x, %y)", jnp.multiply, x=(3,), y=M)
case("divide(%x, %y)", jnp.divide, x=(), y=M)
case("power(%p, %y)", jnp.power, p=M, y=(3,))
case("floor_mod(%x, %y)", jnp.mod, x=M, y=(3,))
case("maximum(%x, %y)", jnp.maximum, x=M, y=(3,))
case("minimum(%x, %y)", jnp.minimum, x=M, y=(2, 1))
case("let %c = greater(%x, %y); where(%c, %x, %y)", lambda x, y: jnp.where(x > y, x, y), x=M, y=(3,))
case("clip(%x, -0.5f64, 0.5f64)", lambda x: jnp.clip(x, -0.5, 0.5), x=M)

# ---- Reductions and scans ----

case("sum(%x, axis=[0, 2])", lambda x: x.sum((0, 2)), x=(2, 3, 2))
case("mean(%x, axis=[1])", lambda x: x.mean(1), x=(2, 3, 2))
case("max(%x, axis=[0, 2])", lambda x: x.max((0, 2)), x=(2, 3, 2))
case("min(%x)", jnp.min, x=M)
case("prod(%x, axis=[1])", lambda x: x.prod(1), x=M)
case("cumsum(%x, axis=1)", lambda x: jnp.cumsum(x, 1), x=M)
case("l2_norm(%x, axis=[1])", lambda x: jnp.linalg.norm(x, axis=1), x=M)
case("log_sum_exp(%x, axis=[1])", lambda x: jax.nn.logsumexp(x, 1), x=M)

# ---- Layout ----

case("reshape(%x, dense<Tensor[(2,), int64]>[4, 3])", lambda x: x.reshape(4, 3), x=(2, 6))
case("expand_dims(%x, axis=[0, 2])", lambda x: jnp.expand_dims(x, (0, 2)), x=M)
case("squeeze(%x, axis=[1])", lambda x: x.squeeze(1), x=(2, 1, 3))
case("permute_dims(%x, axes=[1, 2, 0])", lambda x: x.transpose(1, 2, 0), x=(2, 3, 4))
case("broadcast_to(%x, dense<Tensor[(2,), int64]>[3, 2])", lambda x: jnp.broadcast_to(x, (3, 2)), x=(3, 1))
case("concat(%x, %y, axis=1)", lambda x, y: jnp.concatenate([x, y], 1), x=M, y=(2, 1))
case(
    "let %s = split(%x, indices=[2, 3]); let %a = %s.0; let %b = %s.2; multiply(%a, %b)",
    lambda x: x[:2] * x[3:],
    x=(5, 2),
)
case("tril(%x)", jnp.tril, x=(3, 3))
case("triu(%x)", jnp.triu, x=(3, 3))
case("tile(%x, dense<Tensor[(2,), int64]>[2, 3])", lambda x: jnp.tile(x, (2, 3)), x=M)

# ---- Selected elements ----

case("strided_slice(%x, begin=[1], end=[5], strides=[2])", lambda x: x[1:5:2], x=(6, 2))
case("nn.pad(%x, dense<Tensor[(4,), int64]>[1, 0, 0, 2])", lambda x: jnp.pad(x, ((1, 0), (0, 2))), x=M)
case('nn.pad(%x, dense<Tensor[(2,), int64]>[2, 1], mode="reflect")', lambda x: jnp.pad(x, (2, 1), "reflect"), x=(4,))
INDICES = jnp.array([[0, 2], [2, 1]])
case("take(%x, dense<Tensor[(2, 2), int64]>[0, 2, 2, 1])", lambda x: x[INDICES], x=(3, 2))
case(
    "gather_elements(%x, dense<Tensor[(2, 2), int64]>[0, 2, 2, 1])",
    lambda x: jnp.take_along_axis(x, INDICES, 0),
    x=(3, 2),
)
case("gather_nd(%x, dense<Tensor[(2, 2), int64]>[0, 1, 2, 1])", lambda x: x[jnp.array([0, 2]), jnp.array([1, 1])], x=(3, 2))
case(
    'scatter_nd(%x, dense<Tensor[(3, 1), int64]>[2, 0, 2], %u, reduction="add")',
    lambda x, u: x.at[jnp.array([2, 0, 2])].add(u),
    x=(3, 2),
    u=(3, 2),
)
case("scatter_nd(%x, dense<Tensor[(2, 1), int64]>[2, 0], %u)", lambda x, u: x.at[jnp.array([2, 0])].set(u), x=(3, 2), u=(2, 2))
case(
    "let %t = topk(%x, dense<Tensor[(1,), int64]>[2]); let %v = %t.0; %v",
    lambda x: lax.top_k(x, 2)[0],
    x=(2, 4),
)

# ---- Products ----

case("matmul(%a, %b)", jnp.matmul, a=M, b=(3, 4))
case("matmul(%a, %b)", jnp.matmul, a=(2, 1, 2, 3), b=(2, 3, 2))
case('einsum(%a, %b, subscripts="ij,jk->ki")', lambda a, b: jnp.einsum("ij,jk->ki", a, b), a=M, b=(3, 2))


def conv(rank, **options):
    """Returns a convolution in which the axis of channels is the second one."""
    axes = "DHW"[3 - rank :]
    names = ("NC" + axes, "OI" + axes, "NC" + axes)
    given = {"window_strides": (1,) * rank, "padding": "VALID", "dimension_numbers": names, **options}
    return lambda x, w: lax.conv_general_dilated(x, w, **given)


case("nn.conv1d(%x, %w)", conv(1), x=(2, 2, 5), w=(3, 2, 2))
case(
    "nn.conv2d(%x, %w, strides=[2, 1], padding=[1, 0, 0, 2], dilation=[1, 2])",
    conv(2, window_strides=(2, 1), padding=((1, 0), (0, 2)), rhs_dilation=(1, 2)),
    x=(1, 2, 5, 4),
    w=(3, 2, 2, 3),
)
case("nn.conv2d(%x, %w, groups=2)", conv(2, feature_group_count=2), x=(2, 4, 3, 4), w=(4, 2, 2, 2))
case("nn.conv3d(%x, %w)", conv(3), x=(1, 1, 2, 3, 3), w=(1, 1, 2, 2, 2))


def pool(x, start, function, window, strides):
    return lax.reduce_window(x, start, function, (1, 1, *window), (1, 1, *strides), "VALID")


case(
    "nn.max_pool2d(%x, pool_size=[3, 2], strides=[2, 2])",
    lambda x: pool(x, -jnp.inf, lax.max, (3, 2), (2, 2)),
    x=(1, 2, 5, 4),
)
case(
    "nn.avg_pool2d(%x, pool_size=[3, 2], strides=[2, 2])",
    lambda x: pool(x, 0.0, lax.add, (3, 2), (2, 2)) / 6,
    x=(1, 2, 5, 4),
)

# ---- Softmaxes, normalisations, losses, attention ----

case("nn.softmax(%x)", jax.nn.softmax, x=M)
case("nn.log_softmax(%x, axis=0)", lambda x: jax.nn.log_softmax(x, 0), x=M)


def normal(x, epsilon):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + epsilon)


case("nn.layer_norm(%x, %s, %b, epsilon=0.001)", lambda x, s, b: normal(x, 0.001) * s + b, x=M, s=(3,), b=(3,))
case("nn.lp_norm(%x)", lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True), x=M)
case(
    "let %t = nn.softmax_cross_entropy(%x, dense<Tensor[(2,), int64]>[1, 2]); let %l = %t.0; %l",
    lambda x: -jax.nn.log_softmax(x)[jnp.arange(2), jnp.array([1, 2])].mean(),
    x=M,
)


def attention(q, k, v):
    """Attention with heads as the second axis, in which a query sees the keys up to its own."""
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    sees = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jax.nn.softmax(jnp.where(sees, scores, -jnp.inf)) @ v


HEADS = (1, 2, 3, 4)
case("nn.attention(%q, %k, %v, is_causal=true)", attention, q=HEADS, k=HEADS, v=HEADS)

# ---- Branches ----

case(
    "let %s = sum(%x); let %c = greater(%s, 0f64); if (%c) { let %a = sin(%x); multiply(%a, %y) } else { exp(%y) }",
    lambda x, y: lax.cond(x.sum() > 0, lambda: jnp.sin(x) * y, lambda: jnp.exp(y)),
    x=M,
    y=M,
)
