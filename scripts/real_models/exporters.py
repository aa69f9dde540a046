"""Models as the usual exporters write them, with the shape computations that they leave in a graph.

The function of each kind returns a model of the package `onnx`. The weights are small and depend on
the seed alone, so that the same call makes the same bytes.

    python exporters.py FOLDER [NAME...]

writes the models to files, and prints the number of nodes of each.
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, INT32, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL


class Graph:
    """A graph under construction. A method returns the name of the value that it adds."""

    def __init__(self, seed=0, around=None, opset=14):
        self.opset = around.opset if around else opset
        self.nodes, self.initializers, self.around = [], [], around
        self.random = around.random if around else np.random.default_rng(seed)
        self.names = around.names if around else iter(range(1 << 60))

    def fresh(self, stem):
        return f"{stem}_{next(self.names)}"

    def op(self, operator, *inputs, outputs=1, **attributes):
        names = [self.fresh(operator) for _ in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, name=self.fresh("n"), **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, values, dtype=np.int64):
        """A Constant node."""
        return self.op("Constant", value=numpy_helper.from_array(np.array(values, dtype)))

    def float(self, number):
        return self.constant(number, np.float32)

    def weight(self, *extents):
        name = self.fresh("w")
        values = self.random.standard_normal(extents, np.float32) * np.float32(0.1)
        self.initializers.append(numpy_helper.from_array(values, name))
        return name

    def buffer(self, values):
        """An initializer with these numbers."""
        name = self.fresh("buffer")
        self.initializers.append(numpy_helper.from_array(np.array(values), name))
        return name

    def branch(self, build):
        """A subgraph, whose output `build` adds to it."""
        inner = Graph(around=self)
        output = build(inner)
        # An output of a branch is a value of the branch.
        if not any(output in node.output for node in inner.nodes):
            output = inner.op("Identity", output)
        value = onnx.ValueInfoProto(name=output)
        return helper.make_graph(inner.nodes, self.fresh("branch"), [], [value], inner.initializers)

    def model(self, inputs, outputs):
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, self.initializers)
        version = 8 if self.opset < 19 else 9
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=version)


def value(name, extents, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, extents)


# ---- What PyTorch's exporter writes ----


def extent(g, x, axis):
    """`x.size(axis)`"""
    return g.op("Gather", g.op("Shape", x), g.constant(axis), axis=0)


def listed(g, extents):
    """A list of extents as a tensor: numbers, and scalars of the graph."""
    axes = g.constant([0])
    parts = [g.constant([e]) if isinstance(e, int) else g.op("Unsqueeze", e, axes) for e in extents]
    return g.op("Concat", *parts, axis=0)


def view(g, x, *extents):
    """`x.view(...)`"""
    return g.op("Reshape", x, listed(g, extents))


def expand(g, x, *extents):
    """`x.expand(...)`, where -1 is written as 1"""
    to = listed(g, extents)
    ones = g.op("ConstantOfShape", g.op("Shape", to), value=numpy_helper.from_array(np.array([1], np.int64)))
    kept = g.op("Equal", to, g.op("Mul", ones, g.constant(-1)))
    return g.op("Expand", x, g.op("Where", kept, ones, to))


def linear(g, x, inputs, outputs):
    return g.op("Add", g.weight(outputs), g.op("MatMul", x, g.weight(inputs, outputs)))


def mean(g, x):
    """The mean over the last axis"""
    if g.opset < 18:
        return g.op("ReduceMean", x, axes=[-1])
    return g.op("ReduceMean", x, g.constant([-1]))


def layer_norm(g, x, width):
    """LayerNorm as exporters write it that do not use the operator"""
    centred = g.op("Sub", x, mean(g, x))
    variance = mean(g, g.op("Pow", centred, g.float(2)))
    deviation = g.op("Sqrt", g.op("Add", variance, g.float(1e-12)))
    scaled = g.op("Mul", g.op("Div", centred, deviation), g.weight(width))
    return g.op("Add", scaled, g.weight(width))


def gelu(g, x):
    erf = g.op("Erf", g.op("Div", x, g.float(np.sqrt(2.0))))
    return g.op("Mul", g.op("Mul", x, g.op("Add", erf, g.float(1))), g.float(0.5))


def attention(g, x, mask, heads, width):
    size = width // heads

    def split(y):
        """`y.view(y.size(0), y.size(1), heads, size)`"""
        return view(g, y, extent(g, y, 0), extent(g, y, 1), heads, size)

    q, k, v = linear(g, x, width, width), linear(g, x, width, width), linear(g, x, width, width)
    k = g.op("Transpose", split(k), perm=[0, 2, 1, 3])
    v = g.op("Transpose", split(v), perm=[0, 2, 1, 3])
    q = g.op("Transpose", split(q), perm=[0, 2, 1, 3])
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = g.op("Add", g.op("Div", scores, g.float(np.sqrt(size))), mask)
    context = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    context = view(g, context, extent(g, context, 0), extent(g, context, 1), width)
    return linear(g, context, width, width)


def embeddings(g, ids, vocabulary, width, longest):
    """The embeddings of tokens and of the types of tokens, which are expanded, and of positions."""
    batch, length = extent(g, ids, 0), extent(g, ids, 1)
    axis, step = g.constant([1]), g.constant([1])
    end = g.op("Unsqueeze", length, g.constant([0]))
    types = g.op("Slice", g.buffer(np.zeros((1, longest), np.int64)), g.constant([0]), end, axis, step)
    types = expand(g, types, batch, length)
    end = g.op("Unsqueeze", extent(g, ids, 1), g.constant([0]))
    positions = g.op("Slice", g.buffer(np.arange(longest)[None]), g.constant([0]), end, axis, step)
    x = g.op("Add", g.op("Gather", g.weight(vocabulary, width), ids), g.op("Gather", g.weight(2, width), types))
    return g.op("Add", x, g.op("Gather", g.weight(longest, width), positions))


def transformer(layers=6, heads=4, width=32, seed=0, opset=14, graph=None):
    """An encoder with dynamic batch and length, and masked attention."""
    g = graph or Graph(seed, opset=opset)
    x = layer_norm(g, embeddings(g, "ids", 50, width, 64), width)
    mask = g.op("Unsqueeze", g.op("Unsqueeze", "mask", g.constant([1])), g.constant([2]))
    batch, length = extent(g, "ids", 0), extent(g, "ids", 1)
    mask = expand(g, mask, batch, 1, length, length)
    mask = g.op("Mul", g.op("Sub", g.float(1), g.op("Cast", mask, to=FLOAT)), g.float(-10000))
    for _ in range(layers):
        x = layer_norm(g, g.op("Add", attention(g, x, mask, heads, width), x), width)
        inner = gelu(g, linear(g, x, width, 2 * width))
        x = layer_norm(g, g.op("Add", linear(g, inner, 2 * width, width), x), width)
    g.nodes.append(helper.make_node("Identity", [x], ["y"]))
    inputs = [value("ids", ["batch", "length"], INT64), value("mask", ["batch", "length"], INT64)]
    return g.model(inputs, [value("y", ["batch", "length", width])])


# ---- A scripted speech model ----


def rank_is(g, x, rank):
    """`x.dim() == rank`, as scripted code is written"""
    return g.op("Equal", g.op("Size", g.op("Shape", x)), g.constant(rank))


def squeezed(g, x, axis):
    """`x.squeeze(axis)`, for an extent that the exporter does not know"""
    is_one = g.op("Equal", g.op("Gather", g.op("Shape", x), g.constant([axis]), axis=0), g.constant([1]))
    condition = g.op("Squeeze", is_one, g.constant([0]))
    by = g.branch(lambda b: b.op("Squeeze", x, b.constant([axis])))
    return g.op("If", condition, then_branch=by, else_branch=g.branch(lambda b: b.op("Identity", x)))


def speech_block(g, x, inputs, outputs):
    """A convolution over time with a residual connection; a scripted layer checks its operand."""
    checked = g.op(
        "If",
        rank_is(g, x, 3),
        then_branch=g.branch(lambda b: b.op("Identity", x)),
        else_branch=g.branch(lambda b: b.op("Unsqueeze", x, b.constant([0]))),
    )
    y = g.op("Conv", checked, g.weight(outputs, inputs, 3), g.weight(outputs), pads=[1, 1], strides=[1])
    y = g.op("Relu", y)
    if inputs != outputs:
        return y
    # A dropout that is written out: a mask of ones in the shape of the operand.
    return g.op("Add", y, g.op("Expand", x, g.op("Shape", y)))


def lstm(g, x, width, hidden):
    """An LSTM over `(time, batch, width)` whose state begins with zeros."""
    batch = g.op("Unsqueeze", extent(g, x, 1), g.constant([0]))
    shape = g.op("Concat", g.constant([1]), batch, g.constant([hidden]), axis=0)
    zeros = g.op("ConstantOfShape", shape, value=numpy_helper.from_array(np.array([0], np.float32)))
    other = g.op("Expand", g.float(0), shape)
    weights = g.weight(1, 4 * hidden, width), g.weight(1, 4 * hidden, hidden), g.weight(1, 8 * hidden)
    y, _, _ = g.op("LSTM", x, *weights, "", zeros, other, outputs=3, hidden_size=hidden)
    return g.op("Squeeze", y, g.constant([1]))


def lstm_speech(blocks=4, width=16, seed=0):
    """A detector of speech: frames of samples, convolutions, two LSTMs; `If`s decided by shapes."""
    g = Graph(seed, opset=16)
    x = g.op(
        "If",
        rank_is(g, "samples", 1),
        then_branch=g.branch(lambda b: b.op("Unsqueeze", "samples", b.constant([0]))),
        else_branch=g.branch(lambda b: b.op("Identity", "samples")),
    )
    # Frames: (batch, length) -> (batch, 1, length) -> (batch, width, frames)
    x = view(g, x, extent(g, x, 0), 1, extent(g, x, 1))
    x = g.op("Conv", x, g.weight(width, 1, 8), g.weight(width), strides=[4], pads=[2, 2])
    for _ in range(blocks):
        x = speech_block(g, x, width, width)
    x = g.op("Transpose", x, perm=[2, 0, 1])
    for _ in range(2):
        x = lstm(g, x, width, width)
    # (time, batch, width) -> (batch, width, time) -> (batch, 1, time)
    x = g.op("Conv", g.op("Transpose", x, perm=[1, 2, 0]), g.weight(1, width, 1), g.weight(1))
    x = g.op("Sigmoid", squeezed(g, x, 1))
    mean = g.op("ReduceMean", x, axes=[1], keepdims=1)
    g.nodes.append(helper.make_node("Identity", [squeezed(g, mean, 1)], ["y"]))
    return g.model([value("samples", ["batch", "length"])], [value("y", ["batch"])])


# ---- What Paddle2ONNX writes ----


def paddle_extents(g, x, begin, end):
    """A part of the shape, through int32."""
    shape = g.op("Cast", g.op("Shape", x), to=INT32)
    part = g.op("Slice", shape, g.constant([begin]), g.constant([end]), g.constant([0]))
    return g.op("Cast", part, to=INT64)


def batch_norm(g, x, channels):
    parameters = [g.op("Identity", g.weight(channels)) for _ in range(3)]
    variance = g.op("Abs", g.buffer(g.random.random(channels, np.float32) + np.float32(0.5)))
    return g.op("BatchNormalization", x, *parameters, variance, epsilon=1e-5)


def hard_swish(g, x):
    """Before HardSwish was an operator: x * clip(x + 3, 0, 6) / 6"""
    clipped = g.op("Clip", g.op("Add", x, g.float([3])), g.float(0), g.float(6))
    return g.op("Div", g.op("Mul", x, clipped), g.float([6]))


def squeeze_and_excite(g, x, channels):
    y = g.op("GlobalAveragePool", x)
    y = g.op("Conv", y, g.weight(channels // 2, channels, 1, 1))
    y = g.op("Add", y, g.op("Reshape", g.weight(channels // 2), g.constant([1, channels // 2, 1, 1])))
    y = g.op("Conv", g.op("Relu", y), g.weight(channels, channels // 2, 1, 1))
    y = g.op("Add", y, g.op("Reshape", g.weight(channels), g.constant([1, channels, 1, 1])))
    return g.op("Mul", x, g.op("HardSigmoid", y, alpha=0.2, beta=0.5))


def paddle_block(g, x, channels, stride):
    y = hard_swish(g, batch_norm(g, g.op("Conv", x, g.weight(channels, channels, 1, 1)), channels))
    y = g.op(
        "Conv", y, g.weight(channels, 1, 3, 3), group=channels, pads=[1, 1, 1, 1], strides=[stride, stride]
    )
    y = squeeze_and_excite(g, hard_swish(g, batch_norm(g, y, channels)), channels)
    y = batch_norm(g, g.op("Conv", y, g.weight(channels, channels, 1, 1)), channels)
    return g.op("Add", x, y) if stride == 1 else y


def paddle_classifier(blocks=6, channels=8, classes=3, seed=0):
    """A small image classifier with dynamic batch and width, as Paddle2ONNX writes them."""
    g = Graph(seed, opset=13)
    x = g.op("Conv", "x", g.weight(channels, 3, 3, 3), pads=[1, 1, 1, 1], strides=[2, 2])
    x = hard_swish(g, batch_norm(g, x, channels))
    for i in range(blocks):
        x = paddle_block(g, x, channels, 1 + i % 2)
    x = g.op("GlobalAveragePool", x)
    # Flattens: the extent of the batch, and the product of the others.
    rest = g.op("ReduceProd", paddle_extents(g, x, 1, 4), axes=[0], keepdims=1)
    x = g.op("Reshape", x, g.op("Concat", paddle_extents(g, x, 0, 1), rest, axis=0))
    # A bias in the shape of the result: `fill_constant` and `elementwise_add`.
    shape = g.op("Concat", paddle_extents(g, x, 0, 1), g.constant([classes]), axis=0)
    zeros = g.op("Expand", g.float([0]), shape)
    x = g.op("Add", g.op("MatMul", x, g.weight(channels, classes)), g.weight(classes))
    x = g.op("Softmax", g.op("Add", x, zeros), axis=-1)
    scaled = g.op("Add", g.op("Mul", x, g.float([1])), g.float([0]))
    g.nodes.append(helper.make_node("Identity", [scaled], ["y"]))
    return g.model([value("x", ["batch", 3, 16, "width"])], [value("y", ["batch", classes])])


def inputs_of(model, seed, extents):
    """Inputs with these extents for the symbolic dimensions: tokens, masks of ones and zeros, and noise."""
    random, inputs = np.random.default_rng(seed), {}
    for info in model.graph.input:
        dims = [d.dim_value or extents[d.dim_param] for d in info.type.tensor_type.shape.dim]
        if info.name == "mask":
            inputs[info.name] = (np.arange(dims[1]) < dims[1] - np.arange(dims[0])[:, None]).astype(np.int64)
        elif info.type.tensor_type.elem_type == INT64:
            inputs[info.name] = random.integers(0, 50, dims)
        else:
            inputs[info.name] = random.standard_normal(dims, np.float32)
    return inputs


def written(build):
    """A function that writes a model to a path, and returns the path and two sets of inputs."""

    def make(path, seed):
        model = build()
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path)
        sizes = [{"batch": 2, "length": 24, "width": 48}, {"batch": 3, "length": 40, "width": 32}]
        return path, [inputs_of(model, seed, extents) for extents in sizes]

    return make


def quantised(build):
    """A function like that of `written`, for the model with dynamically quantised products."""

    def make(path, seed):
        from onnxruntime.quantization import quantize_dynamic

        plain, inputs = written(build)(path + ".plain", seed)
        quantize_dynamic(plain, path)
        return path, inputs

    return make


#: For each model a function that writes it to a path, from a seed for its inputs, and returns the
#: path and the inputs.
MODELS = {
    "transformer-6": written(lambda: transformer(6)),
    "transformer-24": written(lambda: transformer(24)),
    "transformer-6-opset-20": written(lambda: transformer(6, opset=20)),
    "transformer-6-quantised": quantised(lambda: transformer(6)),
    "lstm-speech": written(lstm_speech),
    "paddle-classifier": written(paddle_classifier),
}


def main(folder, *names):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or MODELS:
        path, _ = MODELS[name](str(folder / f"{name}.onnx"), 0)
        print(f"{name}: {len(onnx.load(path).graph.node)} nodes")


if __name__ == "__main__":
    main(*sys.argv[1:])
