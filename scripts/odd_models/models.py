"""Small models that the checker of the `onnx` package accepts, and that a reader may stumble over.

`MODELS` has them by name. `WARNINGS` says of some what a reader has to say about them. Of some,
onnxruntime computes garbage though the checker accepts them: `TWINS` names a model that means the
same, with a node more. Those in `UNCOMPARED` onnxruntime does not run.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.helper import make_node as node

FLOAT, DOUBLE, INT64, BOOL, STRING = (
    TensorProto.FLOAT,
    TensorProto.DOUBLE,
    TensorProto.INT64,
    TensorProto.BOOL,
    TensorProto.STRING,
)
MODELS = {}
WARNINGS = {}
TWINS = {}
UNCOMPARED = {
    # It refuses what the file says of types.
    "elements of an output",
    "elements of a cast",
    "elements of a value",
    "elements of an output of a branch",
    "a default value",
    "a constant",
    # It has no kernel for the operator in its version, or for the elements.
    *(f"version {version}" for version in range(1, 6)),
    *(f"{operator} of float64" for operator in ["InstanceNormalization", "Elu", "Selu", "HardSigmoid"]),
    "LRN of float64 size",
    "training",
    *(f"initializer of {e}" for e in ["COMPLEX64", "UINT4", "FLOAT4E2M1", "FLOAT8E8M0", "UINT2", "INT2"]),
    # The operators take operands of one shape there.
    *(
        f"{operator} {version} of {extents}"
        for operator in ["Min", "Max", "Sum", "Mean"]
        for version in [6, 7]
        for extents in ["[1]", "[4]", "three"]
    ),
    "function of an old version",
    # It does not know the version, or the operator.
    "newer version",
    "newer version of ai.onnx.ml",
    "unknown domain",
    "unknown operator with a subgraph",
    # It refuses nodes that do not fit their operands.
    *(f"{operator} of its later elements" for operator in ["Add 7", "Max 8", "MatMul 8", "Relu 13", "Neg 17"]),
    "elements of a sum",
    "extents of a sum",
    "extents of a product",
    "extents of a concatenation",
    "axis of a softmax",
    "matrices in a convolution",
    "function that does not fit a call",
    # Python has no such values.
    "initializer of BFLOAT16",
    "strings that are no text",
    "branch gives strings that are no text",
    "default value that is no text",
}


def value(name, extents=(3, 4), dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, extents)


def constant(name, values, dtype=np.float32):
    return numpy_helper.from_array(np.array(values, dtype), name)


def graph(nodes, inputs, outputs, initializers=(), value_info=(), sparse=()):
    return helper.make_graph(
        nodes, "g", inputs, outputs, list(initializers), value_info=list(value_info), sparse_initializer=list(sparse)
    )


def add(
    name, nodes, inputs, outputs, *, opset=17, ir=None, domains=(), functions=(), warns=None, twin=None, **of_graph
):
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, v) for d, v in domains]
    ir = ir or (3 if opset < 9 else 8 if opset < 21 else 10 if opset < 23 else 13)
    assert name not in MODELS, name
    whole = graph(nodes, inputs, outputs, **of_graph)
    MODELS[name] = helper.make_model(whole, opset_imports=imports, ir_version=ir, functions=list(functions))
    if warns:
        WARNINGS[name] = warns
    if twin:
        TWINS[name] = twin


X, Y = value("x"), value("y")
W = constant("w", [0, 1, 2, 3])
CONDITION = value("c", [], BOOL)
COUNT = value("n", [], INT64)


def statements_that_do_not_hold():
    """What a file says of types, and the nodes contradict."""
    said = "but the file says"
    to_shape = [node("Relu", ["x"], ["a"]), node("Shape", ["a"], ["s"]), node("Reshape", ["b", "s"], ["y"])]
    add("rank of an output", to_shape, [X, value("b", [12])], [value("y", [12])], warns=["(`Reshape`)", said])
    add("extent of an output", [node("Relu", ["x"], ["y"])], [X], [value("y", [5, 4])], warns=["(`Relu`)", said])
    add("elements of an output", [node("Relu", ["x"], ["y"])], [X], [value("y", [3, 4], DOUBLE)], warns=["float64"])
    add("elements of a cast", [node("Cast", ["x"], ["y"], to=TensorProto.FLOAT16)], [X], [Y], warns=["float16", said])
    by_shape = [node("Shape", ["s"], ["e"]), node("Reshape", ["x", "e"], ["y"])]
    unknown = [value("x", [1, None, 4]), value("s", [None, 1, None])]
    add("rank of a result of unknown extents", by_shape, unknown, [value("y", [1, "n"])], opset=11, warns=[said])
    chain = [node("Relu", ["x"], ["a"]), node("Exp", ["a"], ["y"])]
    for what, stated in [
        ("rank", value("a", [3, 4, 5])),
        ("extent", value("a", [7, 4])),
        ("elements", value("a", [3, 4], INT64)),
    ]:
        add(f"{what} of a value", chain, [X], [Y], value_info=[stated], warns=["`a`", said])
    add("an output as a value", [node("Relu", ["x"], ["y"])], [X], [Y], value_info=[value("y", [3], INT64)])
    add("an input as a value", [node("Relu", ["x"], ["y"])], [X], [Y], value_info=[value("x", [3])], warns=["`x`"])
    sum_of = [node("Add", ["x", "w"], ["y"])]
    add("an initializer as a value", sum_of, [X], [Y], initializers=[W], value_info=[value("w", [5])], warns=["`w`"])
    add("a default value", sum_of, [X, value("w", [1, 4])], [Y], initializers=[W], warns=["`w`"])
    add("a constant", sum_of, [X, value("w", [1, 4])], [Y], initializers=[W], opset=8, warns=["`w`"])
    add("an output that is an initializer", sum_of, [X], [Y, value("w", [5])], initializers=[W], warns=["`w`"])
    for what, stated in [("rank", value("t", [3])), ("elements", value("t", dtype=TensorProto.INT32))]:
        then = graph([node("Relu", ["x"], ["t"])], [], [stated])
        other = graph([node("Exp", ["x"], ["t"])], [], [value("t")])
        choice = [node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
        add(f"{what} of an output of a branch", choice, [X, CONDITION], [Y], warns=["`then_branch`", said])
    scales = constant("r", [2, 2])
    resized = [node("Resize", ["x", "", "r"], ["a"], mode="cubic"), node("Relu", ["a"], ["y"])]
    add(
        "extent of a result of Resize",
        resized,
        [X],
        [value("y", [6, 8])],
        initializers=[scales],
        value_info=[value("a", [6, 9])],
        warns=["`a`"],
    )
    kept = [node("Softplus", ["x"], ["a"]), node("Selu", ["a"], ["y"])]
    add("rank of a result of Softplus", kept, [X], [Y], value_info=[value("a", [3])], warns=["`a`"])


def results_that_are_given():
    """Outputs that no node of their graph computes, or that are given twice: subgraphs need a node for these."""

    def branches(then, other, outputs=("y",), names=("t",)):
        def of(nodes, results):
            return graph(nodes, [], [value(r) for r in results])

        return node("If", ["c"], list(outputs), then_branch=of(*then), else_branch=of(*other))

    relu, exp = node("Relu", ["x"], ["r"]), node("Exp", ["x"], ["t"])
    same = node("Identity", ["x"], ["i"])
    add("branch gives an outer value", [branches(([same], ["i"]), ([exp], ["t"]))], [X, CONDITION], [Y])
    two = branches(
        ([same, node("Identity", ["r"], ["j"])], ["i", "j"]),
        ([exp, node("Identity", ["t"], ["u"])], ["t", "u"]),
        ["y", "z"],
    )
    add("branches give two values", [relu, two], [X, CONDITION], [Y, value("z")])
    twice = branches(([node("Relu", ["x"], ["t"])], ["t", "t"]), ([exp], ["t", "t"]), ["y", "z"])
    add("branches give a value twice", [twice], [X, CONDITION], [Y, value("z")], twin="branches give it by nodes")
    again = node("Identity", ["t"], ["u"])
    apart = branches(([node("Relu", ["x"], ["t"]), again], ["t", "u"]), ([exp, again], ["t", "u"]), ["y", "z"])
    add("branches give it by nodes", [apart], [X, CONDITION], [Y, value("z")])
    ones = constant("k", [1, 1, 1])
    initializer = graph([], [], [value("k", [3])], [ones])
    other = graph([node("Constant", [], ["t"], value=constant("", [2, 3, 4]))], [], [value("t", [3])])
    choice = [node("If", ["c"], ["y"], then_branch=initializer, else_branch=other)]
    add("branch gives an initializer", choice, [CONDITION], [value("y", [3])])

    def three(name):
        return value(name, [3])

    def loop(nodes, outputs, results, initializers=()):
        inputs = [value("i", [], INT64), CONDITION, three("s"), three("a")]
        goes_on = node("Identity", ["c"], ["d"])
        outs = [value("d", [], BOOL)] + [three(o) for o in outputs]
        body = graph([goes_on, *nodes], inputs, outs, initializers)
        return [node("Loop", ["n", "", "x", "y"], results, body=body)]

    added = [node("Add", ["a", "s"], ["t"]), node("Relu", ["t"], ["b"])]
    same = node("Identity", ["s"], ["u"])
    ins, outs = [three("x"), three("y"), COUNT], [three("p"), three("q")]
    add("Loop gives its state", loop([same, *added], ["u", "b"], ["p", "q"]), ins, outs)
    add("Loop gives its state itself", loop(added, ["s", "b"], ["p", "q"]), ins, outs, twin="Loop gives its state")
    add(
        "Loop gives its state changed round",
        loop([same, node("Identity", ["a"], ["v"])], ["v", "u"], ["p", "q"]),
        ins,
        outs,
    )
    add("Loop gives an initializer", loop(added, ["k", "b"], ["p", "q"], [ones]), ins, outs)
    scanned = loop([*added], ["b", "t", "t"], ["p", "q", "r"])
    add("Loop gives a value twice", scanned, ins, [*outs, value("r", [None, 3])])
    outer = [node("Exp", ["x"], ["o"]), *loop([node("Identity", ["o"], ["u"]), *added], ["u", "b"], ["p", "q"])]
    add("Loop gives an outer value", outer, ins, outs)

    def scan(nodes, outputs, initializers=()):
        body = graph(nodes, [three("s"), three("e")], [three(o) for o in outputs], initializers)
        results = ["p", "q", "r"][: len(outputs)]
        return [node("Scan", ["x", "y"], results, num_scan_inputs=1, body=body)]

    added = [node("Add", ["s", "e"], ["t"]), node("Relu", ["t"], ["b"])]
    element = node("Identity", ["e"], ["f"])
    ins, outs = [three("x"), value("y", [4, 3])], [three("p"), value("q", [4, 3])]
    add("Scan gives its state", scan([same, *added], ["u", "b"]), ins, outs)
    add("Scan gives its state itself", scan(added, ["s", "b"]), ins, outs, twin="Scan gives its state")
    add("Scan gives its elements", scan([element, *added], ["t", "f", "b"]), ins, [*outs, value("r", [4, 3])])
    add("Scan gives a value twice", scan(added, ["b", "b"]), ins, outs, twin="Scan gives it by nodes")
    add("Scan gives it by nodes", scan([*added, node("Identity", ["b"], ["d"])], ["b", "d"]), ins, outs)
    add("Scan gives an initializer", scan(added, ["b", "k"], [ones]), ins, outs)

    symbolic = value("x", ["n", 4])
    add("output is the input", [node("Relu", ["x"], ["y"])], [symbolic], [value("x"), value("y", ["n", 4])])
    narrow, whole = value("x", [None, 4], BOOL), value("x", [3, 4], BOOL)
    add("output is the input, of version 1", [node("Not", ["x"], ["unused"])], [narrow], [whole], opset=1)
    beside = [node("LogSoftmax", ["x"], ["unused"])]
    add("output is the input, beside a node", beside, [value("x", [None, 4, 5])], [value("x", [3, 4, 5])], opset=13)
    add(
        "output is the input, renamed",
        [node("Identity", ["x"], ["y"]), node("Identity", ["x"], ["z"])],
        [X],
        [Y, value("z")],
    )
    add("output is an initializer", [node("Add", ["x", "w"], ["y"])], [X], [Y, value("w", [4])], initializers=[W])
    add(
        "output is a default value",
        [node("Add", ["x", "w"], ["y"])],
        [X, value("w", [4])],
        [Y, value("w", [4])],
        initializers=[W],
    )
    add("graph without nodes", [], [X], [X])
    add(
        "outputs left out",
        [node("Dropout", ["x"], ["y", ""]), node("LayerNormalization", ["x", "w"], ["l", "", "s"])],
        [X],
        [Y, value("l"), value("s", [3, 1])],
        initializers=[W],
    )


def versions():
    """Versions of the operators, older and newer than those that are known, and domains that nobody knows."""
    relu = node("Relu", ["x"], ["y"])
    for version in range(1, 7):
        old = version < 5
        reshape = node("Reshape", ["m"], ["e"], shape=[4, 3]) if old else node("Reshape", ["m", "s"], ["e"])
        nodes = [node("Tanh", ["x"], ["t"]), node("Max", ["t", "x"], ["m"]), reshape, node("Transpose", ["e"], ["y"])]
        shape = [] if old else [constant("s", [4, 3], np.int64)]
        inputs = [X] if old else [X, value("s", [2], INT64)]
        add(f"version {version}", nodes, inputs, [Y], opset=version, initializers=shape)
    for version in [6, 7, 8]:
        for operator in ["Min", "Max", "Sum", "Mean"]:
            for extents in [[3, None], [1], [4]]:
                name = f"{operator} {version} of {extents}"
                add(name, [node(operator, ["x", "b"], ["y"])], [X, value("b", extents)], [Y], opset=version)
            add(
                f"{operator} {version} of three",
                [node(operator, ["x", "b", "x"], ["y"])],
                [X, value("b", [4])],
                [Y],
                opset=version,
            )
    add("newer version", [relu], [X], [Y], opset=99, ir=10)
    add(
        "newer version of ai.onnx.ml",
        [node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[1.0], scale=[2.0])],
        [X],
        [Y],
        domains=[("ai.onnx.ml", 77)],
    )
    add(
        "ai.onnx.ml",
        [node("Normalizer", ["x"], ["y"], domain="ai.onnx.ml", norm="L2")],
        [X],
        [Y],
        domains=[("ai.onnx.ml", 3)],
    )
    frob = node("Frob", ["x"], ["a"], domain="acme", k=3)
    add("unknown domain", [frob, node("Relu", ["a"], ["y"])], [X], [Y], domains=[("acme", 4)])
    body = graph([node("Identity", ["x"], ["q"])], [], [value("q")])
    add(
        "unknown operator with a subgraph",
        [node("Frob", ["x"], ["y"], domain="acme", body=body)],
        [X],
        [Y],
        domains=[("acme", 1)],
    )
    gelu = node("Gelu", ["x"], ["a"], domain="com.microsoft")
    add("domain of onnxruntime", [gelu, node("Relu", ["a"], ["y"])], [X], [Y], domains=[("com.microsoft", 1)])
    add("two versions of a domain", [relu], [X], [Y], domains=[("acme", 1), ("acme", 2)], warns=["two versions"])
    add("two versions of the standard domain", [relu], [X], [Y], domains=[("", 13)], warns=["two versions"])
    for version, elements, operators in [
        (7, TensorProto.INT8, ["Add"]),
        (8, TensorProto.INT32, ["Max", "MatMul"]),
        (13, TensorProto.INT32, ["Relu"]),
        (17, TensorProto.UINT8, ["Neg"]),
    ]:
        for operator in operators:
            inputs = ["x"] if operator in ["Relu", "Neg"] else ["x", "x"]
            ends = [[value(v, [4, 4], elements)] for v in "xy"]
            add(
                f"{operator} {version} of its later elements",
                [node(operator, inputs, ["y"])],
                *ends,
                opset=version,
                warns=["version"],
            )


def misfits():
    """Nodes that do not fit their operands: no runtime takes them, and they are written back."""
    relu = node("Relu", ["a"], ["y"])
    for name, nodes, inputs in [
        ("elements of a sum", [node("Add", ["x", "b"], ["a"]), relu], [X, value("b", dtype=INT64)]),
        ("extents of a sum", [node("Add", ["x", "b"], ["a"]), relu], [X, value("b", [5])]),
        ("extents of a product", [node("MatMul", ["x", "b"], ["a"]), relu], [X, value("b", [5, 6])]),
        ("extents of a concatenation", [node("Concat", ["x", "b"], ["a"], axis=0), relu], [X, value("b", [3, 5])]),
        ("axis of a softmax", [node("Softmax", ["x"], ["a"], axis=7), relu], [X]),
        ("matrices in a convolution", [node("Conv", ["x", "b"], ["a"]), relu], [X, value("b", [4, 4])]),
    ]:
        add(name, nodes, inputs, [Y], warns=["node 0"])


def doubles():
    """Attributes are float32, also among elements of float64, and so are their defaults."""
    x, y = value("x", [2, 3, 4], DOUBLE), value("y", [2, 3, 4], DOUBLE)
    s, b, m, v = (constant(n, [0.5, 1, 0.25], np.float64) for n in "sbmv")
    last = constant("l", [1, 2, 3, 4], np.float64)
    for operator, inputs, initializers, attributes in [
        ("BatchNormalization", ["x", "s", "b", "m", "v"], [s, b, m, v], {}),
        ("InstanceNormalization", ["x", "s", "b"], [s, b], {}),
        ("LayerNormalization", ["x", "l"], [last], {}),
        ("LayerNormalization", ["x", "l"], [last], {"stash_type": 11}),
        ("LeakyRelu", ["x"], [], {}),
        ("Elu", ["x"], [], {}),
        ("Selu", ["x"], [], {}),
        ("HardSigmoid", ["x"], [], {}),
        ("LRN", ["x"], [], {"size": 3}),
        ("Shrink", ["x"], [], {"lambd": 0.1}),
    ]:
        name = " ".join([f"{operator} of float64", *attributes])
        add(name, [node(operator, inputs, ["y"], **attributes)], [x], [y], initializers=initializers)


def functions():
    """Functions of the file."""

    def function(name, inputs, outputs, nodes, version=17, domains=(), **more):
        imports = [helper.make_opsetid("", version)] + [helper.make_opsetid(d, 1) for d in domains]
        return helper.make_function("my", name, inputs, outputs, nodes, imports, **more)

    call = node("F", ["x"], ["y"], domain="my")
    both = node("F", ["x"], ["y", "z"], domain="my")
    my = [("my", 1)]
    z = value("z")
    inner = [node("Gelu", ["a"], ["t"], domain="com.microsoft"), node("Relu", ["t"], ["b"])]
    add(
        "function with an unknown operator",
        [call],
        [X],
        [Y],
        domains=[*my, ("com.microsoft", 1)],
        functions=[function("F", ["a"], ["b"], inner, domains=["com.microsoft"])],
    )
    passed = [node("Identity", ["a"], ["b"]), node("Relu", ["a"], ["d"])]
    add(
        "function gives its input",
        [both],
        [X],
        [Y, z],
        domains=my,
        functions=[function("F", ["a"], ["b", "d"], passed)],
    )
    add(
        "function gives a value twice",
        [both],
        [X],
        [Y, z],
        domains=my,
        functions=[function("F", ["a"], ["b", "d"], [node("Exp", ["a"], ["b"]), node("Identity", ["b"], ["d"])])],
    )
    fixed = [node("Constant", [], ["d"], value=constant("", [0, 1, 2, 3])), node("Add", ["a", "d"], ["b"])]
    add(
        "function gives a constant",
        [both],
        [X],
        [Y, value("z", [4])],
        domains=my,
        functions=[function("F", ["a"], ["b", "d"], fixed)],
    )
    misfit = [call, node("F", ["b"], ["z"], domain="my")]
    add(
        "function that does not fit a call",
        misfit,
        [X, value("b", [5])],
        [Y, value("z", [5])],
        domains=my,
        functions=[function("F", ["a"], ["b"], fixed)],
        warns=["the function `F`"],
    )
    two = [node("Relu", ["a"], ["t"]), node("Exp", ["t"], ["b"])]
    # Operators that are the same in both versions: the checker asks for that.
    same = [node("Exp", ["a"], ["t"]), node("Neg", ["t"], ["b"])]
    imports = {"opset": 17, "domains": [*my, ("", 13)], "warns": ["two versions"]}
    add("function beside two versions", [call], [X], [Y], functions=[function("F", ["a"], ["b"], same)], **imports)
    changed = [node("Neg", ["a"], ["t"]), node("Exp", ["t"], ["b"])]
    add(
        "function of another version",
        [call],
        [X],
        [Y],
        opset=13,
        domains=my,
        functions=[function("F", ["a"], ["b"], changed, 14)],
    )
    least = [node("Min", ["a", "q"], ["b"])]
    smaller = [node("F", ["x", "b"], ["y"], domain="my")]
    add(
        "function of an old version",
        smaller,
        [X, value("b", [4])],
        [Y],
        opset=7,
        ir=8,
        domains=my,
        functions=[function("F", ["a", "q"], ["b"], least, 7)],
    )
    stated = [value("t", [7, 7, 7])]
    add(
        "function that says what does not hold",
        [call],
        [X],
        [Y],
        opset=21,
        domains=my,
        functions=[function("F", ["a"], ["b"], two, 21, value_info=stated)],
        warns=["`t`"],
    )


def types():
    """Values that are not tensors, and elements that have no arithmetic, or no place, in a compiler."""
    sequence = helper.make_tensor_sequence_value_info
    matrix = helper.make_tensor_type_proto(FLOAT, [3, 4])
    optional = helper.make_value_info("o", helper.make_optional_type_proto(matrix))
    made = [node("SequenceConstruct", ["x", "x"], ["s"]), node("ConcatFromSequence", ["s"], ["y"], axis=0)]
    add("sequence", made, [X], [value("y", [6, 4])])
    add(
        "sequence given",
        [node("SequenceAt", ["q", "i"], ["y"])],
        [sequence("q", FLOAT, [3, 4]), value("i", [], INT64)],
        [Y],
    )
    add(
        "sequence returned",
        [node("SplitToSequence", ["x"], ["q"], axis=0, keepdims=0)],
        [X],
        [sequence("q", FLOAT, [4])],
    )
    add("optional returned", [node("Optional", ["x"], ["o"])], [X], [optional], opset=18)
    add("optional given", [node("OptionalGetElement", ["o"], ["y"])], [optional], [Y], opset=18)
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, [])))
    zipped = node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2, 3])
    add("maps", [zipped], [X], [helper.make_value_info("y", maps)], domains=[("ai.onnx.ml", 3)])
    attributes = {"norm_coefficient": 0.0, "epsilon": 1e-5, "decay_factor": 0.0}
    operands = ["r", "t", "x", "g", "h"]
    updated = node("Adagrad", operands, ["p", "q"], domain="ai.onnx.preview.training", **attributes)
    state = [value("r", []), value("t", [], INT64), *(value(v, [2]) for v in "xgh")]
    add("training", [updated], state, [value("p", [2]), value("q", [2])], domains=[("ai.onnx.preview.training", 1)])
    elements = numpy_helper.from_array(np.float32([1.5, 2.5]), "w")
    sparse = helper.make_sparse_tensor(elements, numpy_helper.from_array(np.array([1, 6]), "indices"), [3, 4])
    sums = [node("Add", ["x", "w"], ["y"])]
    add("sparse initializer", sums, [X], [Y], sparse=[sparse])
    add(
        "sparse initializer that is said to be larger",
        sums,
        [X],
        [Y],
        sparse=[sparse],
        value_info=[value("w", [5, 5])],
        warns=["`w`"],
    )
    same = node("Identity", ["k"], ["y"])
    for elements in ["COMPLEX64", "FLOAT8E4M3FN", "UINT4", "FLOAT4E2M1", "FLOAT8E8M0", "UINT2", "INT2", "BFLOAT16"]:
        dtype = getattr(TensorProto, elements)
        tensor = helper.make_tensor("k", dtype, [2], [1, 0])
        add(f"initializer of {elements}", [same], [], [value("y", [2], dtype)], opset=25, initializers=[tensor])
    few = helper.make_tensor("k", TensorProto.INT2, [4], [1, 0, -1, 1])
    add(
        "initializer of INT2 that is used",
        [node("Cast", ["k"], ["a"], to=FLOAT), node("Mul", ["x", "a"], ["y"])],
        [X],
        [Y],
        opset=25,
        initializers=[few],
    )
    text = helper.make_tensor("k", STRING, [2], [b"a", b"\xff\xfe"])

    def branch(what, body, result, twin=None):
        choice = [node("If", ["c"], ["y"], then_branch=body, else_branch=body)]
        add(f"branch gives {what}", choice, [CONDITION], [result], twin=twin)

    branch("strings that are no text", graph([], [], [value("k", [2], STRING)], [text]), value("y", [2], STRING))
    by_node = graph([node("Identity", ["w"], ["i"])], [], [value("i")], sparse=[sparse])
    branch("a sparse initializer", graph([], [], [value("w")], sparse=[sparse]), Y, "branch gives it by a node")
    branch("it by a node", by_node, Y)
    add(
        "strings that are no text",
        [same, node("Relu", ["x"], ["z"])],
        [X],
        [value("y", [2], STRING), value("z")],
        initializers=[text],
    )
    add(
        "default value that is no text",
        [same],
        [value("k", [2], STRING)],
        [value("y", [2], STRING)],
        initializers=[text],
    )


def sequences_that_are_given():
    """Results of subgraphs that are sequences, in a version of the operators in which `Identity` takes none."""

    def sequence(name):
        return helper.make_tensor_sequence_value_info(name, FLOAT, [4])

    split = node("SplitToSequence", ["x"], ["q"], axis=0, keepdims=0)
    joined = node("ConcatFromSequence", ["r"], ["y"], axis=0, new_axis=1)
    inputs = [value("i", [], INT64), CONDITION, sequence("s"), value("a")]
    goes_on, added = node("Identity", ["c"], ["d"]), node("Add", ["a", "a"], ["b"])
    body = graph([goes_on, added], inputs, [value("d", [], BOOL), sequence("s"), value("b")])
    loop = node("Loop", ["n", "", "q", "x"], ["r", "z"], body=body)
    add("Loop gives a sequence", [split, loop, joined], [X, COUNT], [Y, value("z")], opset=13)


for family in [
    statements_that_do_not_hold,
    results_that_are_given,
    sequences_that_are_given,
    versions,
    misfits,
    doubles,
    functions,
    types,
]:
    family()
