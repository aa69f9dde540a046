"""Computes models in float16, and compares their outputs in onnxruntime with those of the originals.

The light models have random weights (``light.with_random_weights``). Nothing but the rounding of
float16 may differ: the outputs must agree within 2e-2 of their largest magnitude, and most products
and convolutions must have weights of float16.
"""

import os
import sys
import time

import exporters
import light
import numpy as np
import onnx

TRANSFORMERS = ["transformer-6", "transformer-24", "transformer-6-opset-20"]
MODELS = [*light.GOALS, *TRANSFORMERS]
TOLERANCE = 2e-2
FLAGS = ["--passes", "O2,ToMixedPrecision"]
ALWAYS = {"Conv", "ConvTranspose", "Gemm", "MatMul"}


def source_of(name, args):
    """The path of a model, and the inputs to run it on."""
    if name in TRANSFORMERS:
        return exporters.MODELS[name](os.path.join(args.work, f"{name}.onnx"), args.seed)
    original = onnx.load(light.model_path(name))
    path = os.path.join(args.work, f"{name}.onnx")
    onnx.save(light.with_random_weights(original, args.seed), path)
    return path, [light.inputs_of(original, args.seed)]


def products(model):
    """The number of products and convolutions, and of those whose weights are computed in float16."""
    types = {t.name: t.data_type for t in model.graph.initializer}
    types |= {info.name: info.type.tensor_type.elem_type for info in onnx.shape_inference.infer_shapes(model).graph.value_info}
    nodes = [node for node in model.graph.node if node.op_type in ALWAYS]
    return len(nodes), sum(types.get(node.input[1]) == onnx.TensorProto.FLOAT16 for node in nodes)


def check_model(name, args):
    """Converts a model; one row of the table, and what it misses."""
    source, inputs = source_of(name, args)
    target = os.path.join(args.work, f"{name}-mixed.onnx")
    light.optimise(args.command, source, target, FLAGS)
    model = onnx.load(target)
    onnx.checker.check_model(model, full_check=True)
    casts = sum(node.op_type == "Cast" for node in model.graph.node)
    count, low = products(model)
    worst = 0.0
    for values in inputs:
        expected, found = light.run(source, values), light.run(target, values)
        for output, array in expected.items():
            if not np.all(np.isfinite(array)) or np.ptp(array) == 0:
                raise light.Failure(f"the comparison shows nothing: output {output} is constant or not finite")
        worst = max(worst, light.difference(expected, found))
    missed = []
    if not worst <= TOLERANCE:
        missed.append(f"outputs differ by {worst:.3e}, the limit is {TOLERANCE:.0e}")
    if low * 10 < count * 9:
        missed.append(f"{low} of {count} products and convolutions have float16")
    row = {"model": name, "products": count, "in float16": low, "casts": casts, "error": f"{worst:.1e}"}
    row["bytes"], row["before"] = os.path.getsize(target), os.path.getsize(source)
    if not args.keep:
        os.remove(target)
        os.remove(source)
    return row, missed


def check_models(names, args):
    """Converts models and prints the table; returns what is missed."""
    rows, failures = [], []
    for name in names:
        started = time.monotonic()
        try:
            row, missed = check_model(name, args)
        except light.Failure as failure:
            row, missed = {"model": name}, [str(failure)]
        except onnx.checker.ValidationError as error:
            row, missed = {"model": name}, [f"the checker refuses the result: {error}"]
        except light.onnxruntime.capi.onnxruntime_pybind11_state.Fail as error:
            row, missed = {"model": name}, [f"onnxruntime refuses the result: {error}"]
        rows.append(row)
        failures += [f"{name} in float16: {m}" for m in missed]
        print(f"{name} in float16: {'missed' if missed else 'ok'} ({time.monotonic() - started:.0f} s)", file=sys.stderr)
    light.print_table(rows)
    return failures
