"""Models with one function as several nodes, before and since the version with an operator for it.

They are added to `MODELS` (see models.py).
"""

import numpy as np
from onnx import TensorProto
from onnx.helper import make_node as node

from models import add, constant, value

FLOAT = TensorProto.FLOAT


def softplus(opset):
    nodes = [node("Exp", ["x"], ["e"]), node("Add", ["e", "one"], ["s"]), node("Log", ["s"], ["y"])]
    add(f"softplus {opset}", nodes, [value("x")], [value("y")], opset=opset, initializers=[constant("one", 1)])


def group_norm(opset):
    """As PyTorch writes it: two groups of four channels."""
    nodes = [
        node("Reshape", ["x", "groups"], ["r"]),
        node("InstanceNormalization", ["r", "ones", "zeros"], ["i"], epsilon=1e-5),
        node("Shape", ["x"], ["s"]),
        node("Reshape", ["i", "s"], ["b"]),
        node("Mul", ["b", "scale"], ["m"]),
        node("Add", ["m", "bias"], ["y"]),
    ]
    constants = [
        constant("groups", [0, 2, -1], np.int64),
        constant("ones", [1, 1]),
        constant("zeros", [0, 0]),
        constant("scale", np.reshape([1, 2, 3, 4], (4, 1, 1))),
        constant("bias", np.reshape([5, 6, 7, 8], (4, 1, 1))),
    ]
    extents = ["n", 4, 3, 5]
    inputs, outputs = [value("x", extents)], [value("y", extents)]
    add(f"group normalization {opset}", nodes, inputs, outputs, opset=opset, initializers=constants)


def attention(opset, perm, mask):
    """Scaled products of queries and keys, with the heads as an axis, and a mask of these extents."""
    scores = [node("Transpose", ["k"], ["t"], perm=perm), node("MatMul", ["q", "t"], ["s"])]
    nodes = [*scores, node("Div", ["s", "root"], ["d"])]
    if mask:
        nodes.append(node("Add", ["d", "mask"], ["a"]))
    nodes += [node("Softmax", ["a" if mask else "d"], ["w"], axis=-1), node("MatMul", ["w", "v"], ["y"])]
    extents = {(0, 1, 3, 2): ["n", 2, 5, 4], (0, 2, 3, 1): ["n", 5, 2, 4]}[tuple(perm)]
    inputs = [value("q", ["n", 2, 3, 4]), value("k", extents), value("v", ["n", 2, 5, 6])]
    if mask:
        inputs.append(value("mask", mask))
    name = f"attention {opset} of {perm} with mask {mask}" if mask else f"attention {opset} of {perm}"
    outputs = [value("y", ["n", 2, 3, 6])]
    add(name, nodes, inputs, outputs, opset=opset, initializers=[constant("root", 2)])


def transposed_convolution():
    nodes = [
        node("ConvTranspose", ["x", "w"], ["c"], strides=[2, 1], group=2, output_padding=[1, 0], pads=[0, 1, 1, 0]),
        node("BatchNormalization", ["c", "scale", "bias", "mean", "variance"], ["y"]),
    ]
    random = np.random.default_rng(0)
    names = ["scale", "bias", "mean", "variance"]
    constants = [constant(name, np.abs(random.standard_normal(6)) + 0.1) for name in names]
    constants.append(constant("w", random.standard_normal((4, 3, 2, 3))))
    inputs, outputs = [value("x", ["n", 4, 5, 5])], [value("y", ["n", 6, None, None])]
    add("transposed convolution", nodes, inputs, outputs, initializers=constants)


def pools():
    """Margins that a pool adds itself."""
    lowest, relu = np.finfo(np.float32).min, node("Relu", ["x"], ["r"])
    for name, x, number, pool in [
        ("largest of -inf", "x", -np.inf, node("MaxPool", ["p"], ["y"], kernel_shape=[3, 3], strides=[2, 2])),
        ("largest of the lowest", "x", lowest, node("MaxPool", ["p"], ["y"], kernel_shape=[3, 3])),
        ("largest of 0", "r", 0, node("MaxPool", ["p"], ["y"], kernel_shape=[2, 2])),
        ("mean of 0", "x", 0, node("AveragePool", ["p"], ["y"], kernel_shape=[3, 3], strides=[2, 2])),
        (
            "mean with a margin",
            "x",
            0,
            node("AveragePool", ["p"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
        ),
    ]:
        constants = [constant("m", [0, 0, 1, 1, 0, 0, 0, 1], np.int64), constant("z", number)]
        nodes = [relu] * (x == "r") + [node("Pad", [x, "m", "z"], ["p"]), pool]
        inputs, outputs = [value("x", ["n", 2, 6, 7])], [value("y", ["n", 2, None, None])]
        add(f"pool: {name}", nodes, inputs, outputs, initializers=constants)


for version in [9, 17, 21]:
    softplus(version)
for version in [9, 17, 18, 20, 21, 23]:
    group_norm(version)
for version in [11, 17, 22, 23, 24]:
    for transposition in [[0, 1, 3, 2], [0, 2, 3, 1]]:
        for extents_of_mask in [[], ["n", 1, 1, 5], ["n", 1, 3, 5], [2, 3, 5], [3, 5]]:
            attention(version, transposition, extents_of_mask)
transposed_convolution()
pools()
