"""Runs one optimizer of ONNX models on a file, in a process of its own, so that a crash is an outcome.

    python tool.py TOOL INPUT OUTPUT

The tools are those with which ``compare.py`` compares anfora.
"""

import sys


def onnxruntime_basic(source, target):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = target
    options.log_severity_level = 3
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def onnxslim(source, target):
    import onnxslim

    onnxslim.slim(source, target)


def onnxsim(source, target):
    import onnx
    import onnxsim

    small, _ = onnxsim.simplify(onnx.load(source))
    onnx.save(small, target)


def onnxscript(source, target):
    import onnx
    import onnxscript.optimizer

    onnx.save(onnxscript.optimizer.optimize(onnx.load(source)), target)


TOOLS = {
    "onnxruntime": onnxruntime_basic,
    "onnxslim": onnxslim,
    "onnxsim": onnxsim,
    "onnxscript": onnxscript,
}

if __name__ == "__main__":
    tool, source, target = sys.argv[1:]
    TOOLS[tool](source, target)
