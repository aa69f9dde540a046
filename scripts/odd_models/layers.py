"""Models of convolutions and of the layers between them, for passes that change layouts and types.

Each has one or two convolutions around other operators, so that permutations of axes move through
these. The inputs are small, and the weights depend on the seed alone. `LAYERS` has their names.
"""

import numpy as np
from models import FLOAT, MODELS, add, constant, value
from onnx import TensorProto, helper
from onnx.helper import make_node as node

RANDOM = np.random.default_rng(7)
X = value("x", [2, 4, 6, 5])
CONDITION = value("c", [], TensorProto.BOOL)


def weight(name, *extents):
    """A weight that keeps the size of activations."""
    fan = max(1, int(np.prod(extents[1:])))
    return constant(name, RANDOM.standard_normal(extents) / np.sqrt(fan))


def positive(name, *extents):
    return constant(name, 0.5 + RANDOM.random(extents))


def ints(name, *values):
    return constant(name, values, np.int64)


def layer(name, nodes, *initializers, result=("n", "m", "h", "w"), opset=18, **more):
    """A model of a convolution `a` with 4 channels, and nodes that make `b` of it."""
    before = node("Conv", ["x", "w1", "b1"], ["a"], pads=[1, 1, 1, 1])
    weights = [weight("w1", 4, 4, 3, 3), weight("b1", 4)]
    add(
        f"layer: {name}",
        [before, *nodes, node("Neg", ["b"], ["y"])],
        [X, *more.pop("inputs", [])],
        [value("y", list(result), more.pop("dtype", FLOAT))],
        initializers=[*weights, *initializers],
        opset=opset,
        **more,
    )


def between(name, nodes, *initializers, **more):
    """A layer, and a second convolution of its result, which has 4 channels."""
    after = node("Conv", ["z", "w2"], ["b"], strides=[2, 1], pads=[1, 0, 0, 1])
    layer(name, [*nodes, after], *initializers, weight("w2", 6, 4, 2, 2), **more)


def convolutions():
    """Convolutions of one to three dimensions, with all that they can state."""
    for rank, letters in [(1, "one dimension"), (3, "three dimensions")]:
        extents = [6, 5, 4][:rank]
        first = node("Conv", ["x", "w"], ["a"], dilations=[2] * rank, pads=[1] * (2 * rank), group=2)
        steps = [first, node("Relu", ["a"], ["r"]), node("ConvTranspose", ["r", "v"], ["y"], strides=[2] * rank)]
        add(
            f"layer: convolutions over {letters}",
            steps,
            [value("x", [2, 4, *extents])],
            [value("y", ["n", "m", *"hwd"[:rank]])],
            initializers=[weight("w", 6, 2, *[2] * rank), weight("v", 6, 3, *[2] * rank)],
        )
    between(
        "automatic margins",
        [node("Conv", ["a", "v"], ["z"], auto_pad="SAME_UPPER", strides=[2, 2])],
        weight("v", 4, 4, 3, 3),
    )
    between(
        "lower margins",
        [node("Conv", ["a", "v"], ["z"], auto_pad="SAME_LOWER", strides=[1, 2])],
        weight("v", 4, 4, 2, 2),
    )
    between(
        "channel by channel", [node("Conv", ["a", "v", "t"], ["z"], group=4)], weight("v", 4, 1, 2, 3), weight("t", 4)
    )
    between(
        "transposed",
        [node("ConvTranspose", ["a", "v"], ["z"], strides=[2, 3], output_padding=[1, 2], group=2, pads=[0, 1, 1, 0])],
        weight("v", 4, 2, 3, 3),
    )
    between(
        "transposed to a shape",
        [node("ConvTranspose", ["a", "v"], ["z"], strides=[2, 2], output_shape=[12, 11])],
        weight("v", 4, 4, 3, 3),
    )
    given = [value("v", [4, 4, 2, 1])]
    between("a kernel that is given", [node("Conv", ["a", "v"], ["z"])], inputs=given)
    between("a kernel from nodes", [node("Mul", ["v", "v"], ["u"]), node("Conv", ["a", "u"], ["z"])], inputs=given)
    between("a kernel of one element", [node("Conv", ["a", "v"], ["z"])], weight("v", 4, 4, 1, 1))
    squeeze = [
        node("GlobalAveragePool", ["a"], ["g"]),
        node("Conv", ["g", "v"], ["s"]),
        node("Sigmoid", ["s"], ["t"]),
        node("Mul", ["a", "t"], ["z"]),
    ]
    between("squeeze and excite", squeeze, weight("v", 4, 4, 1, 1))


def windows():
    """Pools."""
    for name, operator, attributes in [
        ("a pool that rounds up", "MaxPool", dict(kernel_shape=[2, 3], strides=[2, 2], ceil_mode=1)),
        ("a dilated pool", "MaxPool", dict(kernel_shape=[2, 2], dilations=[2, 1], pads=[1, 1, 0, 0])),
        ("an average with margins", "AveragePool", dict(kernel_shape=[3, 2], pads=[1, 1, 1, 0], count_include_pad=1)),
        ("an average without margins", "AveragePool", dict(kernel_shape=[3, 2], pads=[1, 1, 1, 0], strides=[1, 2])),
        ("an automatic pool", "AveragePool", dict(kernel_shape=[2, 2], auto_pad="SAME_UPPER", strides=[1, 1])),
        ("a pool of powers", "LpPool", dict(kernel_shape=[2, 2], p=2)),
    ]:
        between(name, [node(operator, ["a"], ["z"], **attributes)])
    for operator in ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"]:
        layer(
            f"{operator} and Flatten", [node(operator, ["a"], ["g"]), node("Flatten", ["g"], ["b"])], result=["n", "m"]
        )
    indices = [
        node("MaxPool", ["a"], ["m", "i"], kernel_shape=[2, 2], strides=[2, 2]),
        node("MaxUnpool", ["m", "i", "e"], ["z"], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    between("a pool with indices", indices, ints("e", 2, 4, 6, 5))


def normalizations():
    scale, bias = positive("s", 4), weight("t", 4)
    mean, variance = weight("e", 4), positive("v", 4)
    between(
        "a norm of the batch",
        [node("BatchNormalization", ["a", "s", "t", "e", "v"], ["z"], epsilon=1e-3)],
        scale,
        bias,
        mean,
        variance,
    )
    between("a norm of instances", [node("InstanceNormalization", ["a", "s", "t"], ["z"])], scale, bias)
    between(
        "a norm of groups", [node("GroupNormalization", ["a", "s", "t"], ["z"], num_groups=2)], scale, bias, opset=21
    )
    between("a local response", [node("LRN", ["a"], ["z"], size=3, alpha=0.5)])
    between("a norm of vectors", [node("LpNormalization", ["a"], ["z"], axis=1)])
    between("a norm of mean and variance", [node("MeanVarianceNormalization", ["a"], ["z"])])
    between(
        "a norm of the last axis",
        [node("LayerNormalization", ["a", "s", "t"], ["z"])],
        positive("s", 5),
        weight("t", 5),
    )
    channels = [
        node("Transpose", ["a"], ["p"], perm=[0, 2, 3, 1]),
        node("LayerNormalization", ["p", "s", "t"], ["q"]),
        node("Transpose", ["q"], ["z"], perm=[0, 3, 1, 2]),
    ]
    between("a norm of channels", channels, scale, bias)


def resizes():
    for name, attributes, lists in [
        ("scales", dict(mode="nearest"), dict(scales=constant("f", [1, 1, 2, 1.5]))),
        (
            "extents",
            dict(mode="linear", coordinate_transformation_mode="align_corners"),
            dict(sizes=ints("k", 2, 4, 9, 3)),
        ),
        ("channels too", dict(mode="linear"), dict(sizes=ints("k", 2, 4, 3, 8), roi=None)),
        ("some axes", dict(mode="cubic", axes=[3, 2]), dict(scales=constant("f", [1.5, 2]))),
        ("shrinks", dict(mode="linear", antialias=1), dict(sizes=ints("k", 2, 4, 4, 2))),
        (
            "a crop",
            dict(mode="linear", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=2.0),
            dict(roi=constant("o", [0, 0, 0.1, 0.2, 1, 1, 0.9, 1.2]), sizes=ints("k", 2, 4, 5, 7)),
        ),
    ]:
        given = [lists.get("roi"), lists.get("scales"), lists.get("sizes")]
        operands = ["a", *(tensor.name if tensor is not None else "" for tensor in given)]
        while not operands[-1]:
            operands.pop()
        between(
            f"resize by {name}", [node("Resize", operands, ["z"], **attributes)], *(t for t in given if t is not None)
        )
    by_shape = [node("Resize", ["a", "", "", "k"], ["z"], mode="nearest")]
    between(
        "resize to a list from nodes",
        [node("Identity", ["k0"], ["k"]), *by_shape],
        constant("k0", [2, 4, 7, 6], np.int64),
    )


def others():
    """Operators that compute on any order of axes, and some that do not."""
    between("margins", [node("Pad", ["a", "p"], ["z"], mode="reflect")], ints("p", 0, 0, 1, 2, 0, 0, 0, 1))
    between(
        "margins of some axes",
        [node("Pad", ["a", "p", "f", "x3"], ["z"])],
        ints("p", 1, 2),
        constant("f", 0.5),
        ints("x3", 3),
    )
    between(
        "a slice",
        [node("Slice", ["a", "s", "e", "i", "t"], ["z"])],
        ints("s", -1, 1),
        ints("e", -100, 5),
        ints("i", 1, 2),
        ints("t", -1, 2),
    )
    between(
        "a split and a concatenation",
        [node("Split", ["a"], ["l", "r"], axis=1, num_outputs=2), node("Concat", ["r", "l"], ["z"], axis=-3)],
    )
    between("a softmax of channels", [node("Softmax", ["a"], ["z"], axis=1)])
    between("a softmax of columns", [node("LogSoftmax", ["a"], ["z"], axis=-1)])
    between("a slope by channel", [node("PRelu", ["a", "s"], ["z"])], weight("s", 4, 1, 1))
    between("a sum with columns", [node("Add", ["s", "a"], ["z"])], weight("s", 6, 1))
    between(
        "a choice", [node("Greater", ["a", "s"], ["g"]), node("Where", ["g", "a", "s"], ["z"])], weight("s", 1, 4, 1, 1)
    )
    between(
        "repeated channels",
        [node("Tile", ["a", "r"], ["t"]), node("Conv", ["t", "v"], ["z"])],
        ints("r", 1, 2, 1, 2),
        weight("v", 4, 8, 1, 1),
    )
    between("a running sum", [node("CumSum", ["a", "i"], ["z"], reverse=1)], constant("i", 1, np.int64))
    between("a selection of rows", [node("Gather", ["a", "i"], ["z"], axis=2)], ints("i", 3, 0, -1))
    between(
        "a selection of elements",
        [node("GatherElements", ["a", "i"], ["z"], axis=1)],
        constant("i", RANDOM.integers(0, 4, (2, 4, 6, 5)), np.int64),
    )
    between(
        "depth to space",
        [node("DepthToSpace", ["a"], ["d"], blocksize=2), node("Conv", ["d", "v"], ["z"])],
        weight("v", 4, 1, 2, 2),
    )
    between("a view", [node("Reshape", ["a", "s"], ["z"])], ints("s", 2, 4, 5, 6))
    between("a permutation", [node("Transpose", ["a"], ["z"], perm=[0, 1, 3, 2])])
    between(
        "two permutations",
        [
            node("Transpose", ["a"], ["p"], perm=[0, 2, 3, 1]),
            node("Relu", ["p"], ["q"]),
            node("Transpose", ["q"], ["z"], perm=[0, 3, 1, 2]),
        ],
    )
    between(
        "removed and added axes",
        [
            node("ReduceMax", ["a", "i"], ["m"], keepdims=0),
            node("Unsqueeze", ["m", "i"], ["n"]),
            node("Mul", ["a", "n"], ["z"]),
        ],
        ints("i", 3),
    )
    layer(
        "a mean of rows and columns",
        [node("ReduceMean", ["a", "i"], ["b"], keepdims=0)],
        ints("i", -1, -2),
        result=["n", "m"],
    )
    layer(
        "the greatest channel",
        [node("ArgMax", ["a"], ["i"], axis=1, keepdims=0), node("Cast", ["i"], ["b"], to=FLOAT)],
        result=["n", "h", "w"],
    )
    layer(
        "one channel", [node("Gather", ["a", "i"], ["b"], axis=1)], constant("i", 2, np.int64), result=["n", "h", "w"]
    )
    parts = [
        helper.make_graph([node(operator, ["a"], ["o"])], operator, [], [value("o", [2, 4, 6, 5])])
        for operator in ["Relu", "Tanh"]
    ]
    between("branches", [node("If", ["c"], ["z"], then_branch=parts[0], else_branch=parts[1])], inputs=[CONDITION])


convolutions()
windows()
normalizations()
resizes()
others()
LAYERS = [name for name in MODELS if name.startswith("layer: ")]
