"""The operators that TVM and anfora both have, with their attributes in both languages.

Operators with the same meaning and no attributes need only their name. The others have a ``Row``.
An operator that is in no table, or whose attributes have a value that anfora does not have, is kept
unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

#: Operators of the same name, with no attributes on either side, and the number of operands.
PLAIN: dict[str, int] = {
    **dict.fromkeys(
        "abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh erf exp floor log logical_not negative "
        "rsqrt sigmoid sign sin sinh sqrt square tan tanh nn.relu nn.silu nn.gelu".split(),
        1,
    ),
    **dict.fromkeys(
        "add subtract multiply divide floor_divide maximum minimum less less_equal greater greater_equal equal "
        "not_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor".split(),
        2,
    ),
    "where": 3,
}


class Field(NamedTuple):
    """An attribute with the same name on both sides: the conversion to anfora, and its default
    there."""

    to_anfora: Callable[[Any], Any]
    default: Any = None


class Fixed(NamedTuple):
    """An attribute of TVM: the values that have the meaning of anfora's operator, first the one
    that a new call gets. If anfora has the attribute too, it has one of these values."""

    values: tuple[Any, ...]


class Letters(NamedTuple):
    """A layout with the same name on both sides: the letters of the default, in any order. TVM also
    has layouts in blocks."""

    default: str


class SameAs(NamedTuple):
    """An attribute of TVM that has the value of another one, which comes before it."""

    other: str


class OfResult(NamedTuple):
    """An attribute of TVM alone: none, or the element type of the result, the same in all calls of
    the operator."""


class Parts(NamedTuple):
    """An attribute of TVM that is ``sections`` or ``indices`` of anfora: the number of parts, or
    the positions to cut at."""


class Row(NamedTuple):
    """An operator with attributes: the class of TVM's attributes, and the attributes by name."""

    attributes: str | None
    fields: dict[str, Field | Fixed | Letters | SameAs | OfResult | Parts]
    operands: int
    #: The operands of anfora are the fields of a tuple in TVM.
    spread: bool = False
    #: The last operand is a shape.
    shape: bool = False


def _ints(value: Any) -> list[int] | None:
    return None if value is None else [int(v) for v in value]


def _dtype(value: Any) -> str:
    return str(value)


_REDUCTION = Row(
    "relax.attrs.StatisticalAttrs", {"axis": Field(_ints), "keepdims": Field(bool, False)}, 1
)
_WINDOW: dict[str, Field] = {
    "strides": Field(_ints, [1, 1]),
    "padding": Field(_ints, [0, 0, 0, 0]),
    "dilation": Field(_ints, [1, 1]),
}
_POOLING: dict[str, Field | Letters | SameAs] = {
    "pool_size": Field(_ints),
    **_WINDOW,
    "ceil_mode": Field(bool, False),
    "layout": Letters("NCHW"),
    "out_layout": SameAs("layout"),
}

ROWS: dict[str, Row] = {
    **dict.fromkeys(("sum", "mean", "max", "min", "prod"), _REDUCTION),
    "astype": Row("relax.attrs.AstypeAttrs", {"dtype": Field(_dtype)}, 1),
    "broadcast_to": Row(None, {}, 2, shape=True),
    "concat": Row("relax.attrs.ConcatAttrs", {"axis": Field(int, 0)}, 1, spread=True),
    "expand_dims": Row("relax.attrs.ExpandDimsAttrs", {"axis": Field(_ints)}, 1),
    "matmul": Row("relax.attrs.MatmulAttrs", {"out_dtype": OfResult()}, 2),
    "permute_dims": Row("relax.attrs.PermuteDimsAttrs", {"axes": Field(_ints)}, 1),
    "reshape": Row(None, {}, 2, shape=True),
    "split": Row("relax.attrs.SplitAttrs", {"axis": Field(int, 0), "indices_or_sections": Parts()}, 1),
    "squeeze": Row("relax.attrs.SqueezeAttrs", {"axis": Field(_ints)}, 1),
    "nn.softmax": Row("relax.attrs.SoftmaxAttrs", {"axis": Field(int, -1)}, 1),
    "nn.log_softmax": Row("relax.attrs.SoftmaxAttrs", {"axis": Field(int, -1)}, 1),
    "nn.layer_norm": Row(
        "relax.attrs.LayerNormAttrs",
        {
            "axes": Field(_ints, [-1]),
            "epsilon": Field(float, 1e-5),
            "center": Fixed((True,)),
            "scale": Fixed((True,)),
        },
        3,
    ),
    "nn.rms_norm": Row(
        "relax.attrs.RMSNormAttrs", {"axes": Field(_ints, [-1]), "epsilon": Field(float, 1e-5)}, 2
    ),
    "nn.conv2d": Row(
        "relax.attrs.Conv2DAttrs",
        {
            **_WINDOW,
            "groups": Field(int, 1),
            "data_layout": Letters("NCHW"),
            "kernel_layout": Letters("OIHW"),
            "out_layout": SameAs("data_layout"),
            "out_dtype": OfResult(),
        },
        2,
    ),
    "nn.max_pool2d": Row(
        "relax.attrs.Pool2DAttrs", {**_POOLING, "count_include_pad": Fixed((False,))}, 1
    ),
    "nn.avg_pool2d": Row(
        "relax.attrs.Pool2DAttrs", {**_POOLING, "count_include_pad": Field(bool, False)}, 1
    ),
}
