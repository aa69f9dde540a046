"""Models of nodes that readers keep as they are: operators of other domains, texts, sequences, and subgraphs with captures.

They are added to those of models.py.
"""

import numpy as np
from models import BOOL, CONDITION, DOUBLE, FLOAT, INT64, STRING, UNCOMPARED, W, X, Y, add, constant, graph, value
from onnx import TensorProto, helper, numpy_helper
from onnx.helper import make_node as node

ML, RUNTIME, TRAINING = "ai.onnx.ml", "com.microsoft", "ai.onnx.preview.training"
MATRIX = helper.make_tensor_type_proto(FLOAT, [3, 4])
ROWS = value("x", ["n", 4])
sequence = helper.make_tensor_sequence_value_info

UNCOMPARED |= {
    # It has no such operators.
    "Adam, Momentum and Gradient",
    # It has no kernel for complex numbers.
    "a complex constant",
    # It refuses what the file says of types.
    "elements of a label",
}


def ml(operator, inputs, outputs, **attributes):
    return node(operator, inputs, outputs, domain=ML, **attributes)


def runtime(operator, inputs, outputs, **attributes):
    return node(operator, inputs, outputs, domain=RUNTIME, **attributes)


def text(name, extents):
    return value(name, extents, STRING)


def maps(name, key):
    of = helper.make_map_type_proto(key, helper.make_tensor_type_proto(FLOAT, []))
    return helper.make_value_info(name, helper.make_sequence_type_proto(of))


def machine_learning():
    """Classifiers, regressors and encoders."""
    linear = {"coefficients": [i / 10 for i in range(12)], "intercepts": [0.1, 0.2, 0.3], "post_transform": "SOFTMAX"}
    tree = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [1, 0, 0],
        "nodes_values": [0.5, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
    }
    weights = {"class_treeids": [0, 0], "class_nodeids": [1, 2], "class_ids": [0, 1], "class_weights": [1.0, 1.0]}
    targets = {"target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0]}
    vectors = {
        "coefficients": [1.0, -1.0],
        "kernel_params": [0.5, 0.0, 3.0],
        "kernel_type": "RBF",
        "rho": [0.1],
        "support_vectors": [float(i) for i in range(8)],
    }
    labels = {"classlabels_strings": ["a", "b", "c"]}
    numbers = {"classlabels_ints": [5, 6, 7]}
    domains = [(ML, 3)]
    for what, of, key, zipped in [
        ("texts", labels, STRING, labels),
        ("numbers", numbers, INT64, {"classlabels_int64s": [5, 6, 7]}),
    ]:
        nodes = [ml("LinearClassifier", ["x"], ["l", "p"], **linear, **of), ml("ZipMap", ["p"], ["z"], **zipped)]
        add(f"maps of {what}", nodes, [ROWS], [value("l", ["n"], key), maps("z", key)], domains=domains)
    nodes = [
        ml("LinearClassifier", ["x"], ["l", "p"], **linear, **numbers),
        ml("Normalizer", ["p"], ["q"], norm="L1"),
        node("Mul", ["q", "q"], ["y"]),
        node("Cast", ["l"], ["m"], to=FLOAT),
    ]
    add("probabilities of classes", nodes, [ROWS], [value("y", ["n", 3]), value("m", ["n"])], domains=domains)
    chosen = ml("TreeEnsembleClassifier", ["x"], ["l", "p"], classlabels_strings=["n", "y"], **weights, **tree)
    encoded = ml("LabelEncoder", ["l"], ["e"], keys_strings=["n", "y"], values_int64s=[10, 20])
    outputs = [value("e", ["n"], INT64), value("p", ["n", 2])]
    add("trees that classify", [chosen, encoded], [ROWS], outputs, domains=domains)
    wrong = [value("e", ["n"], FLOAT), outputs[1]]
    add("elements of a label", [chosen, encoded], [ROWS], wrong, domains=domains, warns=["`e`", "int64"])
    nodes = [ml("TreeEnsembleRegressor", ["x"], ["p"], n_targets=1, **targets, **tree), node("Relu", ["p"], ["y"])]
    add("trees that regress", nodes, [ROWS], [value("y", ["n", 1])], domains=domains)
    classes = {"classlabels_ints": [0, 1], "vectors_per_class": [1, 1]}
    nodes = [
        ml("SVMClassifier", ["x"], ["l", "p"], **vectors, **classes),
        ml("SVMRegressor", ["x"], ["r"], n_supports=2, **vectors),
    ]
    outputs = [value("l", ["n"], INT64), value("p", ["n", "m"]), value("r", ["n", 1])]
    add("support vectors", nodes, [ROWS], outputs, domains=domains)
    nodes = [
        ml("LabelEncoder", ["s"], ["a"], keys_strings=["a", "b"], values_floats=[1.0, 2.0], default_float=-1.0),
        ml("OneHotEncoder", ["s"], ["b"], cats_strings=["a", "b", "c"]),
        ml("CategoryMapper", ["s"], ["c"], cats_strings=["a", "b", "c"], cats_int64s=[1, 2, 3]),
        ml("Imputer", ["x"], ["d"], imputed_value_floats=[0.5], replaced_value_float=1.0),
        ml("Binarizer", ["d"], ["e"], threshold=0.1),
        ml("FeatureVectorizer", ["e", "x"], ["f"], inputdimensions=[4, 4]),
        ml("ArrayFeatureExtractor", ["f", "i"], ["g"]),
        ml("Scaler", ["x"], ["h"], offset=[0.0] * 4, scale=[2.0] * 4),
        node("Add", ["h", "d"], ["y"]),
    ]
    outputs = [value("a", [3]), value("b", [3, 3]), value("c", [3], INT64), value("g", [3, 1]), Y]
    add("features", nodes, [text("s", [3]), X, value("i", [1], INT64)], outputs, domains=domains)
    tables = {
        "keys_tensor": constant("k", [0, 1, 2], np.int64),
        "values_tensor": constant("v", [0.5, 1.5, 2.5], np.float64),
        "default_tensor": constant("d", [9.0], np.float64),
    }
    nodes = [ml("LabelEncoder", ["i"], ["y"], **tables)]
    add("labels in tensors", nodes, [value("i", [3], INT64)], [value("y", [3], DOUBLE)], domains=[(ML, 4)])


def training():
    """Operators of training."""
    alpha = {"alpha": 0.9, "beta": 0.1, "norm_coefficient": 0.0, "mode": "standard"}
    nodes = [
        node("Adam", ["r", "t", *"xzghvwab"], list("pqsukl"), domain=TRAINING),
        node("Momentum", ["r", "t", "x", "g", "v"], ["c", "d"], domain=TRAINING, **alpha),
        node("Mul", ["x", "c"], ["e"]),
        node("Gradient", ["x", "c"], ["f", "i"], domain=TRAINING, xs=["x", "c"], y="e"),
        node("Relu", ["f"], ["y"]),
    ]
    inputs = [value("r", []), value("t", [], INT64), *(value(v, [2]) for v in "xzghvwab")]
    outputs = [value(v, [2]) for v in "pqsukldiy"]
    add("Adam, Momentum and Gradient", nodes, inputs, outputs, domains=[(TRAINING, 1)])


def texts():
    """Tensors of text."""
    nodes = [
        node("Equal", ["s", "t"], ["e"]),
        node("Where", ["e", "s", "t"], ["w"]),
        node("Gather", ["w", "i"], ["g"]),
        node("Concat", ["g", "k"], ["c"], axis=0),
        node("Reshape", ["c", "sh"], ["r"]),
        node("Transpose", ["r"], ["y"]),
    ]
    constants = [constant("sh", [2, 3], np.int64), helper.make_tensor("k", STRING, [3], [b"p", b"", b"q"])]
    inputs = [text("s", [3]), text("t", [3]), value("i", [3], INT64)]
    add("texts", nodes, inputs, [text("y", [3, 2])], opset=19, initializers=constants)
    nodes = [
        node("StringConcat", ["s", "t"], ["c"]),
        node("StringSplit", ["c"], ["y", "z"], delimiter="a"),
        node("RegexFullMatch", ["c"], ["m"], pattern="[ab]+"),
        node("Not", ["m"], ["k"]),
    ]
    outputs = [text("y", [3, "p"]), value("z", [3], INT64), value("k", [3], BOOL)]
    add("texts that are split", nodes, [text("s", [3]), text("t", [1])], outputs, opset=20)
    nodes = [node("Cast", ["x"], ["s"], to=STRING), node("Cast", ["s"], ["y"], to=FLOAT)]
    add("numbers as texts", nodes, [X], [Y])
    then = graph([node("Identity", ["s"], ["t"])], [], [text("t", [3])])
    other = graph([node("Constant", [], ["u"], value_strings=["k", "l", "m"])], [], [text("u", [3])])
    choice = [node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    add("branches give texts", choice, [text("s", [3]), CONDITION], [text("y", [3])])
    shape = [node("Shape", ["k"], ["s"]), node("Cast", ["s"], ["y"], to=FLOAT)]
    pair = helper.make_tensor("k", TensorProto.COMPLEX64, [2], [1 + 2j, 3j])
    add("a complex constant", shape, [], [value("y", [1])], initializers=[pair])


def sequences():
    """Sequences and values that may be missing, whose elements are used."""
    first, count = constant("z", 0, np.int64), constant("n", 3, np.int64)
    nodes = [
        node("SequenceEmpty", [], ["e"], dtype=FLOAT),
        node("SequenceInsert", ["e", "x"], ["f"]),
        node("SequenceInsert", ["f", "w", "z"], ["g"]),
        node("SequenceErase", ["g"], ["h"]),
        node("SequenceAt", ["h", "z"], ["y"]),
        node("Relu", ["y"], ["r"]),
    ]
    add("sequence that changes", nodes, [X], [value("r", [4])], initializers=[W, first])
    nodes = [
        node("SequenceConstruct", ["s", "t"], ["q"]),
        node("SequenceLength", ["q"], ["n"]),
        node("SequenceAt", ["q", "z"], ["a"]),
        node("Concat", ["a", "s"], ["y"], axis=0),
    ]
    inputs, outputs = [text("s", [3]), text("t", [3])], [text("y", [6]), value("n", [], INT64)]
    add("sequence of texts", nodes, inputs, outputs, initializers=[first])
    then = graph([node("SequenceErase", ["q"], ["t"])], [], [sequence("t", FLOAT, None)])
    other = graph([node("Identity", ["q"], ["u"])], [], [sequence("u", FLOAT, None)])
    nodes = [
        node("SequenceConstruct", ["x", "x"], ["q"]),
        node("If", ["c"], ["r"], then_branch=then, else_branch=other),
        node("ConcatFromSequence", ["r"], ["y"], axis=0),
    ]
    add("branches give sequences", nodes, [X, CONDITION], [value("y", ["k", 4])])
    steps = [node("Identity", ["c"], ["d"]), node("Add", ["a", "x"], ["b"]), node("SequenceInsert", ["s", "b"], ["t"])]
    inputs = [value("i", [], INT64), CONDITION, sequence("s", FLOAT, None), value("a")]
    body = graph(steps, inputs, [value("d", [], BOOL), sequence("t", FLOAT, None), value("b")])
    nodes = [
        node("SequenceEmpty", [], ["e"]),
        node("Loop", ["n", "", "e", "x"], ["r", "z"], body=body),
        node("ConcatFromSequence", ["r"], ["y"], axis=0, new_axis=1),
    ]
    add("Loop fills a sequence", nodes, [X], [value("y", ["k", 3, 4]), value("z")], initializers=[count])
    steps = [node("Add", ["e", "v"], ["o"]), node("Mul", ["o", "k"], ["p"])]
    body = graph(steps, [value("e", [4]), value("v", [4])], [value("p", [4])])
    nodes = [
        node("SplitToSequence", ["x"], ["q"], axis=0, keepdims=0),
        node("SequenceMap", ["q", "w"], ["r"], body=body),
        node("ConcatFromSequence", ["r"], ["y"], axis=0, new_axis=1),
    ]
    add("sequence that is mapped", nodes, [X, value("k", [4])], [Y], initializers=[W])
    missing = [node("OptionalHasElement", [], ["h"]), node("And", ["h", "c"], ["y"])]
    add("optional that is missing", missing, [CONDITION], [value("y", [], BOOL)], opset=18)
    empty = [node("Optional", [], ["o"], type=MATRIX), node("OptionalHasElement", ["o"], ["h"])]
    add("optional that is empty", empty, [], [value("h", [], BOOL)], opset=18)
    nodes = [
        node("SequenceConstruct", ["x"], ["s"]),
        node("Optional", ["s"], ["o"]),
        node("OptionalGetElement", ["o"], ["t"]),
        node("SequenceAt", ["t", "z"], ["a"]),
        node("OptionalGetElement", ["a"], ["b"]),
        node("Relu", ["b"], ["y"]),
    ]
    add("optional sequence", nodes, [X], [Y], opset=18, initializers=[first])


def subgraphs():
    """Subgraphs that capture values of graphs further out, and loops whose states change their shape."""

    def state(name):
        return value(name, [3, 4])

    count = constant("n", 2, np.int64)
    steps = [node("Identity", ["e"], ["f"]), node("Add", ["t", "outer"], ["u"]), node("Mul", ["u", "w"], ["v"])]
    inner = graph(steps, [value("j", [], INT64), value("e", [], BOOL), state("t")], [value("f", [], BOOL), state("v")])
    nodes = [
        node("Identity", ["c"], ["d"]),
        node("Exp", ["s"], ["outer"]),
        node("Loop", ["n", "", "s"], ["r"], body=inner),
    ]
    ends = [value("i", [], INT64), CONDITION, state("s")], [value("d", [], BOOL), state("r"), state("outer")]
    loop = node("Loop", ["n", "", "x"], ["y", "z"], body=graph(nodes, *ends))
    add("Loop in a Loop", [loop], [X], [Y, value("z", ["k", 3, 4])], initializers=[W, count])
    grows = [node("Identity", ["c"], ["d"]), node("Concat", ["s", "s"], ["t"], axis=0)]
    ends = [value("i", [], INT64), CONDITION, value("s", [None, 4])], [value("d", [], BOOL), value("t", [None, 4])]
    loop = node("Loop", ["n", "", "x"], ["y"], body=graph(grows, *ends))
    total = node("ReduceSum", ["y"], ["r"], keepdims=0)
    add("Loop grows its state", [loop, total], [X], [value("y", ["k", 4]), value("r", [])], initializers=[count])
    same = [node("Identity", ["c"], ["d"]), node("Relu", ["s"], ["t"])]
    ends = [value("i", [], INT64), CONDITION, state("s")], [value("d", [], BOOL), value("t", [5])]
    loop = node("Loop", ["n", "", "x"], ["y"], body=graph(same, *ends))
    add("extents of an output of a loop", [loop], [X], [Y], initializers=[count], warns=["`body`", "`t`"])
    then = graph([node("Relu", ["m"], ["r"])], [], [value("r", [4])])
    other = graph([node("Exp", ["t"], ["q"])], [], [value("q", [4])])
    steps = [
        node("Add", ["s", "e"], ["t"]),
        node("Mul", ["t", "w"], ["m"]),
        node("If", ["c"], ["o"], then_branch=then, else_branch=other),
    ]
    body = graph(steps, [value("s", [4]), value("e", [4])], [value("t", [4]), value("o", [4])])
    scan = node("Scan", ["w", "x"], ["p", "q"], num_scan_inputs=1, body=body)
    add("If in a Scan", [scan], [X, CONDITION], [value("p", [4]), value("q", [3, 4])], initializers=[W])
    steps = [node("Add", ["s", "e"], ["t"]), node("Relu", ["t"], ["o"])]
    body = graph(steps, [value("s", [3]), value("e", [3])], [value("t", [3]), value("o", [3])])
    axes = {"scan_input_axes": [1], "scan_output_axes": [-1], "scan_input_directions": [1]}
    scan = node("Scan", ["v", "x"], ["p", "q"], num_scan_inputs=1, body=body, **axes)
    nodes = [scan, node("Add", ["q", "x"], ["y"])]
    add("Scan along other axes", nodes, [X, value("v", [3])], [value("p", [3]), Y])
    body = graph(steps, [value("s", [4]), value("e", [4])], [value("t", [4]), value("o", [4])])
    scan = node("Scan", ["", "v", "x"], ["p", "q"], num_scan_inputs=1, body=body)
    ends = [value("v", [2, 4]), value("x", [2, 3, 4])], [value("p", [2, 4]), value("q", [2, 3, 4])]
    add("Scan of version 8", [scan], *ends, opset=8)


def of_onnxruntime():
    """Operators that onnxruntime defines."""
    random = np.random.default_rng(0)

    def weights(name, *extents):
        return constant(name, random.standard_normal(extents))

    def tokens(name, last=8):
        return value(name, ["b", "s", last])

    def ms(name, nodes, inputs, outputs, initializers=()):
        add(name, nodes, inputs, outputs, initializers=initializers, domains=[(RUNTIME, 1)])

    skip = runtime("SkipLayerNormalization", ["x", "v", "g", "b"], ["y", "", "", "t"], epsilon=1e-5)
    norm = [weights("g", 8), weights("b", 8)]
    ms("skip", [skip, node("Add", ["y", "t"], ["z"])], [tokens("x"), tokens("v")], [tokens("z")], norm)
    attention = runtime("Attention", ["x", "w", "b"], ["a"], num_heads=2)
    both = [weights("w", 8, 24), weights("b", 24)]
    ms("attention", [attention, node("Add", ["a", "x"], ["y"])], [tokens("x")], [tokens("y")], both)
    heads = [runtime("MultiHeadAttention", ["x", "k", "v"], ["a", "p"], num_heads=2), node("Relu", ["a"], ["y"])]
    outputs = [tokens("y"), value("p", ["b", 2, "s", 4])]
    ms("attention with keys", heads, [tokens("x"), tokens("k"), tokens("v")], outputs)
    fused = [
        runtime("FusedMatMul", ["x", "w"], ["m"], alpha=0.5),
        runtime("BiasGelu", ["m", "b"], ["g"]),
        runtime("FastGelu", ["g"], ["f"]),
        runtime("QuickGelu", ["f"], ["q"]),
        node("Relu", ["q"], ["y"]),
    ]
    ms("activations", fused, [tokens("x")], [tokens("y", 5)], [weights("w", 8, 5), weights("b", 5)])
    ids = value("i", ["b", "s"], TensorProto.INT32)
    embed = runtime("EmbedLayerNormalization", ["i", "", "w", "p", "", "g", "b"], ["y", "m"], epsilon=1e-5)
    tables = [weights("w", 5, 8), weights("p", 8, 8), *norm]
    ms("embedding", [embed, node("Relu", ["y"], ["z"])], [ids], [tokens("z")], tables)
    scale, zero = constant("s", 0.1), constant("z", 3, np.uint8)
    quantised = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        runtime("QLinearAdd", ["q", "s", "z", "q", "s", "z", "s", "z"], ["a"]),
        runtime("QLinearSigmoid", ["a", "s", "z", "s", "z"], ["b"]),
        node("DequantizeLinear", ["b", "s", "z"], ["y"]),
    ]
    ms("quantised sum", quantised, [X], [Y], [scale, zero])
    packed = [constant("w", random.integers(0, 255, (4, 1, 8)), np.uint8), constant("s", random.random(4))]
    nodes = [runtime("MatMulNBits", ["x", "w", "s"], ["m"], K=16, N=4, bits=4, block_size=16), node("Abs", ["m"], ["y"])]
    ms("weights of 4 bits", nodes, [value("x", ["n", 16])], [value("y", ["n", 4])], packed)
    nodes = [
        runtime("FusedConv", ["x", "w"], ["c"], activation="Relu"),
        node("GlobalAveragePool", ["c"], ["p"]),
        node("Flatten", ["p"], ["f"]),
        runtime("FusedGemm", ["f", "v"], ["y"], activation="Relu", transB=1),
    ]
    both = [weights("w", 2, 3, 3, 3), weights("v", 5, 2)]
    ms("fused convolution", nodes, [value("x", ["n", 3, 8, 8])], [value("y", ["n", 5])], both)
    nodes = [runtime("Unique", ["x"], ["u", "i", "c"]), node("Relu", ["u"], ["y"])]
    ms("unique values", nodes, [value("x", [6])], [value("y", ["k"]), value("i", ["m"], INT64)])
    twice = [runtime("Gelu", ["x"], ["a"]), runtime("Gelu", ["x"], ["b"]), node("Add", ["a", "b"], ["y"])]
    ms("equal activations", twice, [X], [Y])


def others():
    """Other operators without a counterpart."""
    nodes = [node("Det", ["x"], ["d"]), node("Celu", ["d"], ["y"])]
    square = value("x", [4, 4])
    add("determinant", nodes, [square], [value("y", [])])
    add("rank of a result of Det", nodes, [square], [value("y", [])], value_info=[value("d", [3])], warns=["`d`"])
    boxes = [
        node("NonMaxSuppression", ["b", "s", "m"], ["i"]),
        node("Cast", ["i"], ["f"], to=FLOAT),
        node("Mul", ["f", "f"], ["y"]),
    ]
    most = constant("m", [2], np.int64)
    add("boxes", boxes, [value("b", [1, 4, 4]), value("s", [1, 2, 4])], [value("y", ["k", 3])], initializers=[most])
    nodes = [node("DFT", ["x"], ["d"], axis=1, onesided=1), node("ReduceSum", ["d"], ["y"], keepdims=0)]
    add("spectrum", nodes, [value("x", [1, 8, 1])], [value("y", [])])
    window = [node("HannWindow", ["k"], ["h"]), node("Mul", ["h", "x"], ["y"])]
    add("window", window, [value("x", [8])], [value("y", [8])], initializers=[constant("k", 8, np.int64)])
    draws = [
        node("RandomNormal", [], ["r"], shape=[3, 4], seed=1.0),
        node("RandomUniformLike", ["x"], ["u"], seed=2.0),
        node("Mul", ["x", "z"], ["m"]),
        node("Sub", ["r", "r"], ["k"]),
        node("Sub", ["u", "u"], ["l"]),
        node("Sum", ["m", "k", "l"], ["y"]),
    ]
    add("random numbers", draws, [X], [Y], initializers=[constant("z", [0.0])])
    nonzero = helper.make_sparse_tensor(constant("w", [1.5, 2.5]), numpy_helper.from_array(np.array([1, 6]), "i"), [3, 4])
    nodes = [node("Constant", [], ["w"], sparse_value=nonzero), node("Add", ["x", "w"], ["y"])]
    add("sparse node", nodes, [X], [Y])
    names = [node("Celu", ["x.1/:0"], ["%a b"]), node("Relu", ["%a b"], ['y"q'])]
    add("names that are none elsewhere", names, [value("x.1/:0")], [value('y"q')])
    nodes = [node("Concat", ["x", "e"], ["j"], axis=0), node("Celu", ["j"], ["y"])]
    add("no rows", nodes, [X, value("e", [0, 4])], [Y])


for family in [machine_learning, training, texts, sequences, subgraphs, of_onnxruntime, others]:
    family()
