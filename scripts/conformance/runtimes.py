"""What models are run with besides anfora: onnxruntime, or the reference implementation of the `onnx` package."""

import json
import os
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

import cases
import compare

# What the reference implementation, which is Python, would take minutes for.
MOST_REFERENCE_BYTES = 1 << 20


def with_onnxruntime(path, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def with_reference(path, feeds):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return ReferenceEvaluator(path).run(None, feeds)


RUNTIMES = {"onnxruntime": with_onnxruntime, "reference": with_reference}


class Original:
    """What is known of a case's own model: whether the checker accepts it, which runtime runs it, and how right that is.

    `runtime` is None if none runs it. `agrees` says whether it gives the outputs that are stored. onnxruntime goes before the
    reference, and one that agrees before one that does not.
    """

    def __init__(self, case):
        self.case = case
        path = os.path.join(case.folder, f"original-{onnxruntime.__version__}.json")
        if not os.path.exists(path):
            with open(f"{path}.part", "w") as f:
                json.dump(self.find_out(), f)
            os.rename(f"{path}.part", path)
        with open(path) as f:
            found = json.load(f)
        self.full_check = found["full_check"]
        self.runtime = found["runtime"]
        self.agrees = found["agrees"]
        self.why = found["why"]

    def find_out(self):
        found = {"full_check": checker_says(self.case.model, True) is None}
        tried, why = [], {}
        for name, run in RUNTIMES.items():
            if name == "reference" and os.path.getsize(self.case.model) > MOST_REFERENCE_BYTES:
                continue
            try:
                differences = set()
                for number in range(len(self.case.sets)):
                    outputs = run(self.case.model, feeds(self.case, number))
                    differences.add(differ(self.case, expected(self.case, number), outputs))
                differences.discard(None)
            except Exception as error:  # Each runtime has errors of its own, and none in common.
                why[name] = " ".join(str(error).split())[:200]
                continue
            if not differences:
                return found | {"runtime": name, "agrees": True, "why": ""}
            tried.append((name, differences.pop()))
        if not tried:
            return found | {"runtime": None, "agrees": False, "why": json.dumps(why)}
        name, difference = tried[0]
        return found | {"runtime": name, "agrees": False, "why": difference}

    def wrong_outputs(self, path):
        """In what the outputs of a model that was made from the case's differ from those that it has to give; None if in nothing."""
        for number in range(len(self.case.sets)):
            given = feeds(self.case, number)
            outputs = RUNTIMES[self.runtime](path, given)
            if self.agrees:
                wanted = expected(self.case, number)
            else:
                wanted = RUNTIMES[self.runtime](self.case.model, given)
            difference = differ(self.case, wanted, outputs)
            if difference:
                return difference
        return None


def differ(case, wanted, outputs):
    """In what the outputs of a case differ from those that are expected; None if in nothing that can be compared."""
    if case.draws:
        wanted, outputs = ([np.zeros_like(v) for v in values] for values in [wanted, outputs])
    return compare.values_differ(wanted, outputs, relative_tolerance(case, wanted), case.atol)


def relative_tolerance(case, wanted):
    """What the case says; for float16 that several nodes computed one after the other, and each rounded, at least two units in the last place, as the
    package's own runner allows for bfloat16. What the cases say, 1e-3, is one."""
    is_rounded_often = len(case.load().graph.node) > 1 and any(getattr(v, "dtype", None) == np.float16 for v in wanted)
    return max(case.rtol, compare.FLOAT16_RTOL) if is_rounded_often else case.rtol


def feeds(case, number):
    infos = {i.name: i for i in case.load().graph.input}
    return {name: cases.decode_file(path, infos[name]) for name, path in case.inputs(number)}


def expected(case, number):
    infos = case.load().graph.output
    return [cases.decode_file(path, info) for path, info in zip(case.outputs(number), infos)]


def checker_says(path, full):
    try:
        onnx.checker.check_model(path, full_check=full)
    except Exception as error:  # ValidationError, InferenceError, and TypeError of what is malformed.
        return " ".join(str(error).split())[:300]
    return None
