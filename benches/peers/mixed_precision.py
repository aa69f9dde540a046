"""Measures the CPU time of ``ToMixedPrecision`` and of onnxconverter-common, each as a whole process.

The models are transformers of 24 layers as exporters write them, with 5 and 300 MB of weights. The
other tool keeps the types of inputs and outputs, as anfora does, and leaves ``Cast`` nodes as they
are: it does not change their element type, so onnxruntime refuses its result without this setting.
onnxruntime has to load both results. The other tool should take at least 50 times the time of anfora
on the small model and 10 times on the large one, on which both mostly read and write the weights.
"""

import argparse
import os
import shutil
import sys
from typing import NamedTuple

from optimizers import REAL_MODELS, median, remove_model
from readme import Table

README_TABLE = Table("<!-- precision: benches/peers/precision --write -->", "<!-- end of precision -->")
LAYERS = 24


class Case(NamedTuple):
    """The extents of a transformer, and how many times as long as anfora the other tool should take."""

    width: int
    heads: int
    times: int


CASES = {"transformer-24, 5 MB": Case(80, 4, 50), "transformer-24, 300 MB": Case(624, 16, 10)}


class Row(NamedTuple):
    """The CPU seconds of anfora on a model, of `cp` on the output of anfora, and of the other tool."""

    ours: float
    copy: float
    theirs: float


def make(case, path):
    """Writes the model of a case."""
    import onnx

    sys.path.insert(0, REAL_MODELS)
    import exporters

    onnx.save(exporters.transformer(LAYERS, case.heads, case.width), path)


def convert(source, target):
    """Converts a model by onnxconverter-common."""
    import onnx
    from onnxconverter_common import float16

    blocked = [*float16.DEFAULT_OP_BLOCK_LIST, "Cast"]
    onnx.save(float16.convert_float_to_float16(onnx.load(source), keep_io_types=True, op_block_list=blocked), target)


def load(path):
    """Loads a model in onnxruntime, as it is."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def measure(name, args):
    """Measures both tools on a model, each of which runs in processes of its own."""
    step = [sys.executable, os.path.abspath(__file__)]
    source, target, copied = (os.path.join(args.work, file) for file in ["model.onnx", "low.onnx", "copy.onnx"])
    median([*step, "make", name, source], source, 1)
    ours = median([*args.command, "opt", "--quiet", "--passes", "ToMixedPrecision", source, "-o", target], target, args.rounds)
    copy = median(["cp", target, copied], copied, args.rounds)
    results = [target, os.path.join(args.work, "theirs.onnx")]
    theirs = median([*step, "convert", source, results[1]], results[1], args.rounds)
    for result in results:
        median([*step, "load", result], copied, 1)
    for path in [source, copied, *results]:
        remove_model(path)
    return Row(ours, copy, theirs)


def table(rows):
    """Returns the table in Markdown.

    >>> print(table({"m": Row(0.1, 0.001, 3.0)}), end="")
    | model | `cp` of the output | `ToMixedPrecision` | onnxconverter-common |
    |---|---:|---:|---:|
    | m | 0.001 | 0.100 | 3.00 (30x) |
    """
    lines = ["| model | `cp` of the output | `ToMixedPrecision` | onnxconverter-common |", "|---|---:|---:|---:|"]
    for name, row in rows.items():
        lines.append(f"| {name} | {row.copy:.3f} | {row.ours:.3f} | {row.theirs:.2f} ({row.theirs / row.ours:.0f}x) |")
    return "\n".join(lines) + "\n"


def missed(rows):
    """Returns a line for each model on which the other tool takes too few times as long as anfora.

    >>> missed({"transformer-24, 5 MB": Row(0.1, 0.001, 4.9), "transformer-24, 300 MB": Row(0.1, 0.1, 1.0)})
    ['transformer-24, 5 MB: 49.0 times the time of anfora; the goal is 50']
    """
    return [
        f"{name}: {ratio:.1f} times the time of anfora; the goal is {CASES[name].times}"
        for name, row in rows.items()
        if (ratio := row.theirs / row.ours) < CASES[name].times
    ]


def main():
    parser = argparse.ArgumentParser(prog="benches/peers/precision", description=__doc__.split("\n\n")[0])
    parser.add_argument("--work", required=True, help="a folder for the models")
    parser.add_argument("--only", action="append", choices=CASES, help="this model only; may be repeated")
    parser.add_argument("--rounds", type=int, default=5, help="the number of runs, of which the median counts")
    parser.add_argument("--check", action="store_true", help="exit status 1 if a ratio misses the goal")
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    parser.add_argument("command", nargs="+", help="the anfora program")
    args = parser.parse_args()
    if args.write and args.only:
        parser.error("--write needs all models")
    shutil.rmtree(args.work, ignore_errors=True)
    os.makedirs(args.work)
    rows = {name: measure(name, args) for name in args.only or CASES}
    print(table(rows), end="")
    lines = missed(rows)
    print(*lines, f"{len(rows) - len(lines)} of {len(rows)} ratios hold", sep="\n")
    if args.write:
        README_TABLE.write(table(rows))
    shutil.rmtree(args.work, ignore_errors=True)
    return 1 if args.check and lines else 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", name, path]:
            make(CASES[name], path)
        case ["convert", source, target]:
            convert(source, target)
        case ["load", path]:
            load(path)
        case _:
            sys.exit(main())
