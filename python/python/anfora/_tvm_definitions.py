"""Definitions of operators that Relax does not have, in operators that it has.

They are the operators that FuseStandardOps makes of their parts, in the pipelines ``O3`` and
``slim``.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from ._anfora import Literal, Match, Module, Rule, RuleSet
from .pattern import op, rest, rewrite

#: The attributes of attention besides the scale, as FuseStandardOps leaves them.
_PLAIN_ATTENTION = {
    "softcap": 0.0,
    "is_causal": False,
    "left_window_size": -1,
    "right_window_size": -1,
    "qk_matmul_output_mode": 0,
    "results": 1,
}


def _number(m: Match, value: float) -> Literal:
    """Returns a number of the element type of the result."""
    return Literal(value, str(m.root.type.dtype))


def _scaled(m: Match, expr: Any, factor: float) -> Any:
    """Returns the product of an expression and a number."""
    return expr if factor == 1 else m.emit("multiply", expr, _number(m, factor))


def _gemm(m: Match) -> Any:
    attrs = m.root.attrs
    a, b, *bias = m.root.args
    left = m.emit("permute_dims", a, axes=[1, 0]) if attrs["trans_a"] else a
    right = m.emit("permute_dims", b, axes=[1, 0]) if attrs["trans_b"] else b
    product = _scaled(m, m.emit("matmul", left, right), attrs["alpha"])
    return m.emit("add", product, _scaled(m, bias[0], attrs["beta"])) if bias else product


def _attention(m: Match) -> Any:
    """Returns attention over heads of their own keys, with a scale, and a mask that is added."""
    attrs = dict(m.root.attrs)
    scale = attrs.pop("scale", None)
    query, key, value, *mask = m.root.args
    heads = [arg.type.shape[1] if arg.type.ndim == 4 and arg.type.shape else None for arg in (query, key)]
    is_added = not mask or len(mask) == 1 and mask[0].type.dtype == query.type.dtype
    if scale is None or attrs != _PLAIN_ATTENTION or None in heads or heads[0] != heads[1] or not is_added:
        return None
    scores = m.emit("matmul", query, m.emit("permute_dims", key, axes=[0, 1, 3, 2]))
    scores = _scaled(m, scores, scale)
    if mask:
        scores = m.emit("add", scores, mask[0])
    return m.emit("matmul", m.emit("nn.softmax", scores, axis=-1), value)


def _layer_norm(m: Match) -> Any:
    """Returns a normalisation without a bias as one with zeros."""
    x, scale, *bias = m.root.args
    extents = scale.type.shape
    if bias or extents is None or not all(isinstance(extent, int) for extent in extents):
        return None
    zeros = m.emit("broadcast_to", _number(m, 0), np.array(extents, "int64"))
    return m.emit("nn.layer_norm", x, scale, zeros, **m.root.attrs)


def _silu(m: Match) -> Any:
    (x,), alpha = m.root.args, m.root.attrs["alpha"]
    # Relax has the operator without a factor.
    return None if alpha == 1 else m.emit("multiply", x, m.emit("sigmoid", _scaled(m, x, alpha)))


def _tanh_gelu(m: Match) -> Any:
    if m.root.attrs["approximate"] != "tanh":
        return None
    (x,) = m.root.args
    cube = m.emit("multiply", m.emit("square", x), x)
    inner = _scaled(m, m.emit("add", x, _scaled(m, cube, 0.044715)), math.sqrt(2 / math.pi))
    return m.emit("multiply", _scaled(m, x, 0.5), m.emit("add", m.emit("tanh", inner), _number(m, 1)))


_DEFINITIONS = RuleSet(
    [
        Rule("gemm", op("nn.gemm", rest()), _gemm),
        Rule("attention", op("nn.attention", rest()), _attention),
        Rule("layer_norm", op("nn.layer_norm", rest()), _layer_norm),
        Rule("silu", op("nn.silu", rest()), _silu),
        Rule("gelu", op("nn.gelu", rest()), _tanh_gelu),
        Rule("mish", "nn.mish(%x)", "multiply(%x, tanh(nn.softplus(%x)))"),
        # The exponential of a large number is infinite.
        Rule("softplus", "nn.softplus(%x)", "add(nn.relu(%x), log(add(exp(negative(abs(%x))), 1)))"),
    ]
)


def by_definitions(mod: Module) -> Module:
    """Returns a module in which the operators with a definition are written by it."""
    return rewrite(copy.copy(mod), _DEFINITIONS)
