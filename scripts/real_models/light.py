"""Optimises the light models of the `onnx` package with anfora and holds the results against their goals.

Every model is optimised four times: with the default budget for folding, with `FoldConstant` disabled, with an unlimited
budget and what convolutions can absorb folded into them, and with `O3`, which fuses operators into functions of the model.
Each result must pass `onnx.checker`, have no more nodes than its goal, and give the outputs of the original. Writing the
fused model again must not change it, and inlining what was fused must give back what there was before. The arena of the
plan of memory must be near the bytes that are live at once, and the interpreter must compute the same inside of it.

The models ship with weights that are all one number, and so compute the same whatever a compiler does to them.
Hence the outputs are compared on a second version of each model: every weight drawn from a seeded normal distribution,
scaled so that activations keep their size (He et al., 2015), and the softmax at the end, which would squash differences,
left off. onnxruntime runs both sides without optimisations of its own.
"""

import json
import os
import subprocess
import sys
import time
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

# The goals for node counts: without folding; and with unlimited folding, after convolutions have
# absorbed the steps that follow them.
GOALS = {
    "bvlc_alexnet": (37, 22),
    "densenet121": (764, 491),
    "inception_v1": (201, 138),
    "inception_v2": (394, 168),
    "resnet50": (203, 123),
    "shufflenet": (219, 154),
    "squeezenet": (88, 65),
    "vgg19": (62, 44),
    "zfnet512": (35, 22),
}
# Bytes of the optimised file that the default budget may take.
SIZE_LIMITS = {"vgg19": 64 * 1024}
TOLERANCE = 1e-4
# The largest arena of a plan of memory, in bytes that are live at once.
PLAN_LIMIT = 1.1

UNLIMITED = [
    *["--config", "FoldConstant.max_growth_bytes=unlimited"],
    *["--config", "FoldConstant.max_total_growth_bytes=unlimited"],
]
VARIANTS = {
    "default": [],
    "no-fold": ["--disable", "FoldConstant"],
    "unlimited": ["-O3", "--passes", "O2,FoldBatchNorm,DeadCodeElimination", *UNLIMITED],
    "fused": ["-O3", *UNLIMITED],
    # Computed with the channels last, and written in the layout of the format again.
    "layouts": ["-O3", "--passes", "O2,ConvertLayout{desired=[NHWC:HWIO]},DeadCodeElimination"],
}


class Failure(Exception):
    """A goal that is missed; the message says which."""


def optimise(command, source, target, flags):
    result = subprocess.run(
        [*command, "opt", source, "-o", target, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if result.returncode != 0:
        raise Failure(f"opt {' '.join(flags)} exits with {result.returncode}:\n{result.stderr.strip()}")


def run_command(command, *arguments):
    result = subprocess.run([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        said = (result.stdout + result.stderr).strip()
        raise Failure(f"{' '.join(arguments)} exits with {result.returncode}:\n{said[:2000]}")


def check_fusion(command, source, fused, work):
    """Whether what fusing does can be undone, and whether the fused model is written as it is read."""
    prepared, before, after = (os.path.join(work, name) for name in ["prepared.anf", "before.anf", "after.anf"])
    optimise(command, source, prepared, ["-O3", "--passes", "O2,FoldBatchNorm,Normalize,ConvertToDataflow,DeadCodeElimination"])
    # In graph normal form, in which the order of bindings is none.
    order = "ToNonDataflow,ToGraphNormalForm"
    optimise(command, prepared, before, ["-O3", "--passes", order])
    optimise(command, prepared, after, ["-O3", "--passes", f"FuseOps,InlineFunctions,{order}"])
    run_command(command, "diff", before, after)
    again = os.path.join(work, "fused-again.onnx")
    optimise(command, fused, again, ["-O0", *UNLIMITED])
    run_command(command, "diff", fused, again)
    for path in [prepared, before, after, again]:
        os.remove(path)


def check_plan(command, source, row, missed):
    """Whether the arena of the plan is near what is live at once, and the program computes the same inside of it."""
    planned = subprocess.run([*command, "plan", source, "--json"], stdout=subprocess.PIPE, text=True, check=True)
    main = next(f for f in json.loads(planned.stdout)["functions"] if f["name"] == "main")
    row["arena"], row["of live"] = main["arena"], round(main["arena"] / max(main["live"], 1), 3)
    if main["arena"] > PLAN_LIMIT * main["live"]:
        missed.append(f"an arena of {main['arena']} bytes for {main['live']} that are live, the limit is {PLAN_LIMIT}x")
    digests = [
        subprocess.run([*command, "run", source, *flags], stdout=subprocess.PIPE, text=True, check=True).stdout
        for flags in ([], ["--in-plan"])
    ]
    if digests[0] != digests[1] or not digests[0]:
        missed.append("inside its plan of memory the program computes something else")


def count_nodes(model):
    """Nodes of the graph, of its subgraphs, and of the model's own functions."""
    pending = [list(model.graph.node)] + [list(f.node) for f in model.functions]
    total = 0
    while pending:
        nodes = pending.pop()
        total += len(nodes)
        for node in nodes:
            for attribute in node.attribute:
                pending.extend(list(g.node) for g in [attribute.g, *attribute.graphs])
    return total


def with_random_weights(model, seed):
    """A copy of `model` with random weights in place of its constant ones, and without the softmax at its end."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    graph = model.graph
    shapes = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    users = {}
    for node in graph.node:
        for position, name in enumerate(node.input):
            users.setdefault(name, (node, position))

    extents = {n.output[0]: shapes[n.input[0]].tolist() for n in graph.node if n.op_type == "ConstantOfShape"}
    extents.update({t.name: list(t.dims) for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT})
    weights = {name: draw(name, dims, role_of(name, users), seed) for name, dims in extents.items()}

    nodes = [n for n in graph.node if n.op_type != "ConstantOfShape"]
    if nodes[-1].op_type == "Softmax":
        softmax = nodes.pop()
        [output] = graph.output
        output.name = softmax.input[0]
    needed = {name for node in nodes for name in node.input}
    others = [t for t in graph.initializer if t.name not in weights and t.name in needed]
    inputs = [i for i in graph.input if i.name not in shapes]
    tensors = [numpy_helper.from_array(w, name) for name, w in weights.items()] + others
    # Before IR version 4 every initializer is an input too.
    infos = [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in tensors]
    del graph.node[:], graph.initializer[:], graph.input[:]
    graph.node.extend(nodes)
    graph.initializer.extend(tensors)
    graph.input.extend(inputs + infos)
    return model


def role_of(name, users):
    """The operator that uses a weight, and as which operand."""
    if name not in users:
        return "nothing", 0
    node, position = users[name]
    while node.op_type == "Unsqueeze":
        node, position = users[node.output[0]]
    return node.op_type, position


def draw(name, dims, role, seed):
    random = np.random.default_rng([seed, zlib.crc32(name.encode())])
    noise = random.standard_normal(dims, dtype=np.float32)
    match role:
        case ("Conv", 1):
            return noise * np.float32(np.sqrt(2 / np.prod(dims[1:])))
        case ("Gemm", 1):  # transB=1 in all of the models
            return noise * np.float32(np.sqrt(2 / dims[1]))
        case ("BatchNormalization", 4):
            return np.float32(1) + np.float32(0.1) * np.abs(noise)
        case ("BatchNormalization", 1) | ("Mul", _):
            return np.float32(1) + np.float32(0.1) * noise
        case _:
            return np.float32(0.1) * noise


def inputs_of(model, seed):
    constants = {t.name for t in model.graph.initializer}
    inputs = {}
    for info in model.graph.input:
        if info.name not in constants:
            dims = [d.dim_value for d in info.type.tensor_type.shape.dim]
            random = np.random.default_rng([seed, zlib.crc32(info.name.encode())])
            inputs[info.name] = random.standard_normal(dims, dtype=np.float32)
    return inputs


def run(path, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


def difference(expected, actual):
    """The largest difference, relative to the largest expected output."""
    if list(expected) != list(actual):
        raise Failure(f"outputs are {list(actual)}, not {list(expected)}")
    worst = 0.0
    for name, e in expected.items():
        a = actual[name]
        if e.shape != a.shape or e.dtype != a.dtype:
            raise Failure(f"output {name} is {a.dtype}{list(a.shape)}, not {e.dtype}{list(e.shape)}")
        if not np.all(np.isfinite(a)):
            raise Failure(f"output {name} is not finite")
        worst = max(worst, float(np.max(np.abs(e - a)) / np.max(np.abs(e))))
    return worst


def check_model(name, source, args):
    """Optimises one model in every way; one row of the table, and what it misses."""
    nofold_goal, unlimited_goal = GOALS[name]
    work = os.path.join(args.work, name)
    os.makedirs(work, exist_ok=True)
    original = onnx.load(source)
    row = {"model": name, "nodes": count_nodes(original)}
    missed = []

    random_source = os.path.join(work, "random.onnx")
    randomised = with_random_weights(original, args.seed)
    inputs = inputs_of(original, args.seed)
    onnx.save(randomised, random_source)
    del randomised
    expected_plain = run(source, inputs)
    expected = run(random_source, inputs)
    for output, values in expected.items():
        if not np.all(np.isfinite(values)) or np.ptp(values) == 0:
            raise Failure(f"the comparison shows nothing: output {output} of the original is constant or not finite")

    for variant, flags in VARIANTS.items():
        plain = os.path.join(work, f"{variant}.onnx")
        optimise(args.command, source, plain, flags)
        model = onnx.load(plain)
        onnx.checker.check_model(model, full_check=True)
        worst = difference(expected_plain, run(plain, inputs))
        nodes = count_nodes(model)
        if variant == "no-fold":
            row["no fold"], row["goal"] = nodes, nofold_goal
            if nodes > nofold_goal:
                missed.append(f"{nodes} nodes without folding, the goal is {nofold_goal}")
        elif variant == "unlimited":
            row["unlimited"], row["goal "] = nodes, unlimited_goal
            if nodes > unlimited_goal:
                missed.append(f"{nodes} nodes with unlimited folding, the goal is {unlimited_goal}")
            left = sum(n.op_type == "ConstantOfShape" for n in model.graph.node)
            if left:
                missed.append(f"{left} weights are not folded though folding is unlimited")
        elif variant == "fused":
            row["fused"], row["functions"] = nodes, len(model.functions)
            if not model.functions:
                missed.append("nothing was fused")
            check_fusion(args.command, source, plain, work)
        elif variant == "layouts":
            before, after = (sum(n.op_type == "Transpose" for n in m.graph.node) for m in (original, model))
            if after > before:
                missed.append(f"{after} transpositions after a change of layouts and back, {before} before")
        else:
            size = os.path.getsize(plain)
            row["bytes"] = size
            if size > SIZE_LIMITS.get(name, size):
                missed.append(f"{size} bytes with the default budget, the limit is {SIZE_LIMITS[name]}")
        del model

        random_target = os.path.join(work, f"random-{variant}.onnx")
        optimise(args.command, random_source, random_target, flags)
        onnx.checker.check_model(random_target, full_check=False)
        worst = max(worst, difference(expected, run(random_target, inputs)))
        row[f"error {variant}"] = f"{worst:.1e}"
        if not worst <= TOLERANCE:
            missed.append(f"{variant}: outputs differ by {worst:.3e}, the limit is {TOLERANCE:.0e}")
        if not args.keep:
            os.remove(random_target)
    check_plan(args.command, random_source, row, missed)
    if not args.keep:
        os.remove(random_source)
    return row, missed


def print_table(rows):
    columns = list(max(rows, key=len))
    widths = [max(len(c.strip()), *(len(str(r.get(c, "-"))) for r in rows)) for c in columns]
    print("  ".join(c.strip().rjust(w) for c, w in zip(columns, widths)))
    for row in rows:
        print("  ".join(str(row.get(c, "-")).rjust(w) for c, w in zip(columns, widths)))


def model_path(name):
    """The path of a light model in the package onnx."""
    return os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light", f"light_{name}.onnx")


def check_models(names, args):
    """Optimises models in every way and prints the table; returns what is missed."""
    rows, failures = [], []
    for name in names:
        started = time.monotonic()
        source = model_path(name)
        try:
            if not os.path.exists(source):
                raise Failure("the onnx package does not have the model")
            row, missed = check_model(name, source, args)
        except Failure as failure:
            row, missed = {"model": name}, [str(failure)]
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
            row, missed = {"model": name}, [f"the checker refuses the result: {error}"]
        except onnxruntime.capi.onnxruntime_pybind11_state.Fail as error:
            row, missed = {"model": name}, [f"onnxruntime refuses the result: {error}"]
        rows.append(row)
        failures += [f"{name}: {m}" for m in missed]
        print(f"{name}: {'missed' if missed else 'ok'} ({time.monotonic() - started:.0f} s)", file=sys.stderr)
    print_table(rows)
    return failures
