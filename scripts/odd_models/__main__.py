"""Takes small odd models through anfora at every level and holds what it writes against the originals.

Each model (see models.py, kept_models.py, layers.py and parts.py) must be taken, without a failure,
at -O0 to -O3 and with the channels of convolutions last. Those of layers.py are also computed in
float16, in both layouts. What is written must pass `onnx.checker`, have the inputs of the original as they were declared,
and, on random inputs, give the outputs of the original: onnxruntime is the judge, with its optimisations and without. Of some models
that the checker accepts it computes garbage: there it runs a twin in place of the original. Of the
models in `UNCOMPARED`, and of no other, nothing is said of values: it does not run them.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime

import kept_models  # noqa: F401 (it adds models)
import parts  # noqa: F401 (likewise)
from layers import LAYERS
from models import MODELS, TWINS, UNCOMPARED, WARNINGS

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, "conformance"))
from compare import values_differ

class Run(NamedTuple):
    """A way to take a model, and the tolerance of its outputs."""

    flags: list[str]
    rtol: float = 1e-5
    atol: float = 1e-6


CHANNELS_LAST = "ConvertLayout{desired=[NWC,NHWC,NDHWC]}"
RUNS = {f"-O{level}": Run([f"-O{level}"]) for level in range(4)}
RUNS["layouts"] = Run(["--passes", f"O2,{CHANNELS_LAST},DeadCodeElimination"], 1e-4, 1e-5)
#: Those of the models of layers.py alone. The tolerance is that of float16.
LOW_RUNS = {
    "float16": Run(["--passes", "O2,ToMixedPrecision"], 2e-2, 2e-2),
    "float16 and layouts": Run(["--passes", f"O2,ToMixedPrecision,{CHANNELS_LAST},DeadCodeElimination"], 2e-2, 2e-2),
}
SEEDS = [1, 2, 3]
# Seconds for one call of the program, whatever else the machine does.
LIMIT = 120
Optimizations = onnxruntime.GraphOptimizationLevel


class Failure(Exception):
    """What is not as it should be."""


def random_value(stated, random, extents):
    """A value of a type that a model states; equal names of extents are equal extents."""
    if stated.HasField("sequence_type"):
        return [random_value(stated.sequence_type.elem_type, random, extents) for _ in range(3)]
    if stated.HasField("optional_type"):
        return random_value(stated.optional_type.elem_type, random, extents)
    tensor = stated.tensor_type
    shape = [d.dim_value if d.HasField("dim_value") else extents.setdefault(d.dim_param, 4) for d in tensor.shape.dim]
    if tensor.elem_type == onnx.TensorProto.STRING:
        return random.choice(np.array(["a", "b", "c"], object), shape)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if dtype == np.bool_:
        return np.array(random.integers(0, 2, shape), bool)
    if np.issubdtype(dtype, np.integer):
        return np.array(random.integers(0, 3, shape)).astype(dtype)
    return np.array(random.standard_normal(shape)).astype(dtype)


def random_inputs(model, seed):
    random, extents = np.random.default_rng(seed), {}
    given = {t.name for t in model.graph.initializer}
    return {i.name: random_value(i.type, random, extents) for i in model.graph.input if i.name not in given}


def run(path, inputs, level=Optimizations.ORT_DISABLE_ALL):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return [o.name for o in session.get_outputs()], session.run(None, inputs)


def expected_outputs(name, inputs, folder):
    """The outputs of an original, or of its twin."""
    twin = TWINS.get(name, name)
    path = os.path.join(folder, f"{name}.original.onnx")
    onnx.save(MODELS[twin], path)
    return run(path, inputs)[1]


def cases_of(name, folder):
    """Inputs and expected outputs of a model; none of one that onnxruntime does not run."""
    try:
        all_inputs = [random_inputs(MODELS[name], seed) for seed in SEEDS]
        cases = [(inputs, expected_outputs(name, inputs, folder)) for inputs in all_inputs]
    except Exception as error:
        if name in UNCOMPARED:
            return []
        raise Failure(f"there is nothing to compare with: {error}") from error
    if name in UNCOMPARED:
        raise Failure("onnxruntime runs it now: it need not be in `UNCOMPARED`")
    return cases


def check(name, command, folder):
    """Takes a model through every level and pipeline; whether its values were compared."""
    model = MODELS[name]
    source = os.path.join(folder, f"{name}.onnx")
    onnx.save(model, source)
    onnx.checker.check_model(model)
    cases = cases_of(name, folder)
    for level, way in (RUNS | LOW_RUNS if name in LAYERS else RUNS).items():
        target = os.path.join(folder, f"{name}{level}.onnx")
        result = subprocess.run(
            [*command, "opt", source, *way.flags, "--quiet", "-o", target], capture_output=True, text=True, timeout=LIMIT
        )
        if result.returncode != 0:
            raise Failure(f"{level}: exits with {result.returncode}: {result.stderr.strip()}")
        said = "".join(line for line in result.stderr.splitlines(True) if line.startswith("warning"))
        for words in WARNINGS.get(name, []):
            if words not in said:
                raise Failure(f"{level}: no warning says `{words}`: {said.strip() or 'there is none'}")
        if said and name not in WARNINGS and level == "-O0":
            raise Failure(f"an unexpected warning: {said.strip()}")
        written = onnx.load(target)
        onnx.checker.check_model(written)
        constants = {t.name for t in model.graph.initializer}
        for before in [i for i in model.graph.input if i.name not in constants]:
            after = next((i for i in written.graph.input if i.name == before.name), None)
            if after != before:
                raise Failure(f"{level}: the input {before.name} is declared otherwise: {after}")
        names = [o.name for o in model.graph.output]
        for inputs, expected in cases:
            for of_runtime in [Optimizations.ORT_DISABLE_ALL, Optimizations.ORT_ENABLE_ALL]:
                names_now, actual = run(target, inputs, of_runtime)
                if names_now != names:
                    raise Failure(f"{level}: outputs are {names_now}, not {names}")
                if difference := values_differ(expected, actual, way.rtol, way.atol):
                    raise Failure(f"{level}: {difference}")
    return bool(cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", help="models whose names contain this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", help="a directory for the files that are written")
    parser.add_argument("command", nargs="+", help="the anfora program")
    args = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    names = [n for n in MODELS if not args.only or any(o in n for o in args.only)]
    failures, compared = [], 0
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(args.jobs) as pool:
        folder = args.keep or temporary
        os.makedirs(folder, exist_ok=True)
        running = {name: pool.submit(check, name, args.command, folder) for name in names}
        for name, result in running.items():
            try:
                compared += result.result()
            except Exception as error:
                failures.append(f"{name}: {error}")
    if not compared and not args.only:
        failures.append("the values of no model were compared")
    for failure in failures:
        print(failure)
    print(f"{len(names)} odd models, {compared} of them run by onnxruntime; {len(failures)} not as they should be")
    return 1 if failures or not names else 0


if __name__ == "__main__":
    sys.exit(main())
