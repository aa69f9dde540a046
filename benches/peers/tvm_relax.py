"""TVM: Relax in an interpreter of its own (tvm_worker.py), timed by CPU time.

Some of its passes grow with the square of the program or compile each constant that they fold, and its parser takes a millisecond a line: each stage has the
sizes that are bearable.
"""

import os
import subprocess

import process
from figures import of_lines

NAME = "TVM"
SIZES = [1_000, 10_000, 100_000]
PACKAGES = ["apache-tvm==0.27.0.post1", "apache-tvm-ffi==0.1.14.post0", "numpy"]
MISSING = f"TVM cannot be installed: `pip install {' '.join(PACKAGES)}` (or set TVM_PYTHON to an interpreter that has it)"
FIRST = os.path.dirname(os.path.abspath(__file__))

EVERYWHERE = ["print", "verify", "visit", "visit-inside", "mutate", "mutate-inside", "cse", "canonicalize", "fuse"]
STAGES = {
    1_000: ["parse", "parse-verify", "fold", "fold-canonicalize", "pipeline", "lift-nested"],
    10_000: [*EVERYWHERE, "build", "dce", "cse-canonicalize-dce", "lift-siblings"],
    100_000: EVERYWHERE,
}


def find():
    """An interpreter that can import TVM, installed under target/ if need be, or None."""
    if "TVM_PYTHON" in os.environ:
        python = os.environ["TVM_PYTHON"]
        return python if imports(python) else None
    made = subprocess.run(["scripts/python-env", "tvm-env", "numpy, tvm.relax", *PACKAGES], stdout=subprocess.PIPE, text=True)
    return made.stdout.strip() if made.returncode == 0 else None


def imports(python):
    try:
        return subprocess.run([python, "-c", "import tvm.relax"], capture_output=True).returncode == 0
    except OSError:
        return False


def version(python):
    return process.run([python, "-c", "import importlib.metadata as m; print(m.version('apache-tvm'))"]).out.strip()


def figures(python, path, n, work):
    """Everything on the program in a file, of n operations, in one process, where it takes milliseconds twice."""
    del work
    runs = "1" if n == 1_000 else "2"
    with open(path) as program:
        ended = process.run([python, os.path.join(FIRST, "tvm_worker.py"), "--runs", runs, *STAGES[n]], stdin=program)
    return of_lines(ended.out.splitlines())
