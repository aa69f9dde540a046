"""MLIR: `mlir-opt` on a function of the dialects func and arith, its passes timed by its own timers (`--mlir-timing`).

These measure wall time. Each figure is scaled by the share of its time for which the process had a processor, which is 1 on a machine that does nothing else.
"""

import json
import os
import re
import shutil

import process
from figures import Figure

NAME = "MLIR"
SIZES = [10_000, 100_000, 1_000_000]
PLACES = ["mlir-opt", "mlir-opt-22", "/usr/lib/llvm-22/bin/mlir-opt"]
MISSING = "mlir-opt is not installed: on Debian, as root, `apt-get update && apt-get install mlir-22-tools` (or set MLIR_OPT)"

# The passes of a run, its options, and stages of the table by what of the report they are the sum
# of. CSE drops what is dead as well; each pass is verified where the verifier is not turned off.
RUNS = [
    ("cse", ["--verify-each=false"], {"cse-dce": ["CSE"]}),
    ("canonicalize", ["--verify-each=false"], {"fold-canonicalize": ["Canonicalizer"]}),
    ("canonicalize,cse", ["--verify-each=false"], {"pipeline": ["Canonicalizer", "CSE"]}),
    ("canonicalize,cse", [], {"pipeline-verified": ["'func.func' Pipeline"], "parse-verify": ["Parser"]}),
    ("", ["--mlir-very-unsafe-disable-verifier-on-parsing"], {"parse": ["Parser"], "print": ["Output"]}),
]


def find():
    """The program, or None."""
    return next(filter(None, map(shutil.which, [os.environ["MLIR_OPT"]] if "MLIR_OPT" in os.environ else PLACES)), None)


def version(program):
    return version_of(process.run([program, "--version"]).out)


def version_of(text):
    """
    >>> version_of("Some LLVM\\n  LLVM version 22.1.8\\n  Optimized build.")
    '22.1.8'
    """
    found = re.search(r"LLVM version (\S+)", text)
    return found[1] if found else "of an unknown version"


def walls(report):
    """Seconds of wall time by name, summed up: all that a report in JSON lists, nested or not.

    >>> walls('[{"wall": {"duration": 0.5, "percentage": 100.0}, "name": "root", "passes": [{"wall": {"duration": 0.25, '
    ...       '"percentage": 50.0}, "name": "CSE", "passes": [{}]}, {}]}, {"wall": {"duration": 2.0, "percentage": 1.0}, "name": "CSE"}]')
    {'root': 0.5, 'CSE': 2.25}
    """
    found, todo = {}, list(reversed(json.loads(report)))
    while todo:
        entry = todo.pop()
        if "name" in entry:
            found[entry["name"]] = found.get(entry["name"], 0.0) + entry["wall"]["duration"]
            todo.extend(reversed(entry.get("passes", [])))
    return found


def figures(program, path, n, work):
    """One run of everything on the program in a file, of n operations; results go into the folder `work`."""
    for passes, options, stages in RUNS:
        result = os.path.join(work, "result.mlir")
        pipeline = f"builtin.module(func.func({passes}))" if passes else "builtin.module()"
        command = [program, path, "-o", result, "--mlir-disable-threading", "--mlir-timing", "--mlir-output-format=json"]
        ended = process.run([*command, f"--pass-pipeline={pipeline}", *options])
        report = walls(ended.err)
        with open(result) as file:
            left = operations(file.read())
        if "pipeline" in stages:
            yield Figure("process", n, ended.cpu, left)
        for stage, names in stages.items():
            before = stage in ["parse", "parse-verify"]
            seconds = sum(report[name] for name in names) * ended.share
            yield Figure(stage, n, seconds, None if before else left)


def operations(text):
    """How many operations a program has, constants not counted.

    >>> operations('''
    ... %c = arith.constant dense<1.0> : tensor<8xf32>
    ... %0 = arith.addf %x, %c : tensor<8xf32>
    ... %1 = arith.subf %0, %c : tensor<8xf32>''')
    2
    """
    return len(re.findall(r"= arith\.(?:addf|mulf|subf) ", text))
