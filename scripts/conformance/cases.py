"""The test cases of the `onnx` package, written to files once and read from there."""

import dataclasses
import json
import os
import shutil
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

KINDS = ["node", "simple", "pytorch-operator", "pytorch-converted", "light"]
# The package has the node tests as code and the others as files.
# Operators that draw numbers: of what they give, only element type and shape can be compared.
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
DATA = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")


@dataclasses.dataclass
class Case:
    """A model with inputs and the outputs that it has to give."""

    name: str
    kind: str
    # The operator that the case is for; of a model of many, "(models)".
    op: str
    # All operators of the model.
    ops: list
    # Versions of the operators, by domain.
    opsets: dict
    rtol: float
    atol: float
    # Each a list of the names of the inputs and the number of outputs.
    sets: list
    folder: str

    @property
    def model(self):
        return os.path.join(self.folder, "model.onnx")

    @property
    def draws(self):
        return bool(RANDOM & set(self.ops))

    def load(self):
        return onnx.load(self.model)

    def inputs(self, number):
        """Names and files of the inputs of a data set."""
        names, _ = self.sets[number]
        return [(n, os.path.join(self.folder, f"set_{number}", f"input_{i}.pb")) for i, n in enumerate(names)]

    def outputs(self, number):
        """Files of the expected outputs of a data set."""
        _, count = self.sets[number]
        return [os.path.join(self.folder, f"set_{number}", f"output_{i}.pb") for i in range(count)]


def all_cases(cache):
    """Every case, from the files of an earlier run if this version of the package wrote them."""
    home = os.path.join(cache, f"onnx-{onnx.__version__}")
    index = os.path.join(home, "index.json")
    if not os.path.exists(index):
        shutil.rmtree(home, ignore_errors=True)
        os.makedirs(home)
        cases = name_operators(list(write_all(home)))
        with open(f"{index}.part", "w") as f:
            json.dump([dataclasses.asdict(c) for c in cases], f)
        os.rename(f"{index}.part", index)
    with open(index) as f:
        return [Case(**fields) for fields in json.load(f)]


def name_operators(cases):
    """Says of the cases in which an operator is spelled out in others which one that is: that of the case they are made from."""
    by_name = {c.name: c for c in cases}
    for case in cases:
        original, expanded, _ = case.name.partition("_expanded")
        if expanded and original in by_name:
            case.op = by_name[original].op
    return cases


def write_all(home):
    from onnx.backend.test.case.node import collect_testcases
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        # Some cases compute their outputs where NumPy has something to say about it.
        warnings.simplefilter("ignore")
        node_tests = collect_testcases(None)
    for test in node_tests:
        yield write_case(home, "node", test, test.model, test.data_sets)
    for kind in ["simple", "pytorch-operator", "pytorch-converted"]:
        for test in load_model_tests(kind=kind):
            model = onnx.load(os.path.join(test.model_dir, "model.onnx"))
            yield write_case(home, kind, test, model, list(read_sets(test.model_dir, model)))
    for test in load_model_tests(kind="real"):
        path = os.path.join(DATA, "light", os.path.basename(test.url))
        model = onnx.load(path)
        yield write_case(home, "light", test, model, [light_set(path, model)])


def real_inputs(model):
    """The inputs that have to be given. Before version 4 of the IR every initializer is an input too."""
    constants = {t.name for t in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in constants]


def write_case(home, kind, test, model, sets):
    folder = os.path.join(home, kind, test.name)
    os.makedirs(folder)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    written = []
    given = real_inputs(model)
    for i, (inputs, outputs) in enumerate(sets):
        at = os.path.join(folder, f"set_{i}")
        os.makedirs(at)
        for what, values, infos in [("input", inputs, given), ("output", outputs, model.graph.output)]:
            for j, (value, info) in enumerate(zip(values, infos)):
                with open(os.path.join(at, f"{what}_{j}.pb"), "wb") as f:
                    f.write(encode(value, info))
        written.append([[i.name for i in given[: len(inputs)]], len(outputs)])
    own = list(model.graph.node)
    op = qualified(own[0]) if kind == "node" and len(own) == 1 else "(several)" if kind == "node" else f"({kind})"
    opsets = {o.domain: o.version for o in model.opset_import}
    ops = sorted(operators(model))
    return Case(test.name, kind, op, ops, opsets, test.rtol, test.atol, written, folder)


def qualified(node):
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def operators(model):
    """The operators of a model, of its subgraphs and functions too."""
    pending = [model.graph.node, *(f.node for f in model.functions)]
    found = set()
    while pending:
        for node in pending.pop():
            found.add(qualified(node))
            for attribute in node.attribute:
                pending.extend(g.node for g in [attribute.g, *attribute.graphs])
    return found


def read_sets(folder, model):
    for name in sorted(os.listdir(folder)):
        if name.startswith("test_data_set_"):
            at = os.path.join(folder, name)
            yield [
                [decode_file(os.path.join(at, f"{what}_{i}.pb"), info) for i, info in enumerate(infos[:count])]
                for what, infos in [("input", real_inputs(model)), ("output", model.graph.output)]
                for count in [sum(f.startswith(what) for f in os.listdir(at))]
            ]


def light_set(path, model):
    """The input that the package's own runner gives the light models, and the output that it stores for it."""
    inputs = []
    for info in real_inputs(model):
        dims = [d.dim_value or 1 for d in info.type.tensor_type.shape.dim]
        count = int(np.prod(dims))
        inputs.append((np.arange(count).reshape(dims) / count).astype(np.float32))
    prefix = os.path.splitext(path)[0]
    outputs = [decode_file(f"{prefix}_output_{i}.pb", info) for i, info in enumerate(model.graph.output)]
    return inputs, outputs


def kind_of(info):
    """`tensor_type`, `sequence_type`, `optional_type`, … as the model declares a value."""
    return info.type.WhichOneof("value") or "tensor_type"


def encode(value, info):
    if hasattr(value, "SerializeToString"):
        return value.SerializeToString()
    match kind_of(info):
        case "sequence_type":
            proto = numpy_helper.from_list(value, info.name)
        case "optional_type":
            proto = numpy_helper.from_optional(value, info.name)
        case _:
            proto = numpy_helper.from_array(np.asarray(value), info.name)
    return proto.SerializeToString()


def decode_file(path, info):
    with open(path, "rb") as f:
        return decode(f.read(), info)


def decode(data, info):
    """A value in a file: an array, a list of values, or None."""
    match kind_of(info):
        case "sequence_type":
            return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
        case "optional_type":
            return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
        case _:
            return numpy_helper.to_array(onnx.TensorProto.FromString(data))
