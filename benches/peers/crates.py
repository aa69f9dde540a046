"""anfora, and crates that do the same work in Rust: the program in `crates/`, which times each stage by the CPU time of its thread."""

import json
import os
import subprocess
import sys

import process
from figures import Figure, of_lines
from table import COLD

MANIFEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "crates", "Cargo.toml")
SIZES = {
    "anfora": [1_000, 10_000, 100_000, 1_000_000],
    "egg": [10_000, 100_000, 1_000_000],
    "cranelift-codegen": [10_000, 100_000, 1_000_000],
    "pliron": [10_000, 100_000],
}
FORMS = {"TVM": "operations", "MLIR": "mlir", "LLVM": "llvm", "anfora": "anfora"}

# The pipelines that run once in a process of their own, on a program that this process has read.
PIPELINES = {
    "cse": "EliminateCommonSubexpr",
    "dce": "DeadCodeElimination",
    "fold": "FoldConstant",
    "canonicalize": "CanonicalizeBindings",
    "fuse": "FuseOps",
    "pipeline": "FoldConstant,EliminateCommonSubexpr,DeadCodeElimination",
}


def build():
    """The program, as it is now; the variable ANFORA_PEERS names one to use instead."""
    if "ANFORA_PEERS" in os.environ:
        return os.environ["ANFORA_PEERS"]
    print("building anfora and the crates that it is compared with", file=sys.stderr)
    # Not `--locked`: what anfora itself depends on may have changed since, and cargo adds that to
    # the lock file.
    command = ["cargo", "build", "--release", "--manifest-path", MANIFEST, "--message-format=json"]
    # A folder of its own: other dependencies, other builds.
    target = os.path.join(os.environ.get("CARGO_TARGET_DIR", "target"), "peers")
    built = subprocess.run(command, stdout=subprocess.PIPE, env={**os.environ, "CARGO_TARGET_DIR": os.path.abspath(target)})
    if built.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {built.returncode}")
    messages = (json.loads(line) for line in built.stdout.splitlines())
    return [m["executable"] for m in messages if m.get("executable")][-1]


def versions():
    """Of the crates, as locked.

    >>> sorted(versions())
    ['cranelift-codegen', 'egg', 'pliron']
    """
    with open(os.path.join(os.path.dirname(MANIFEST), "Cargo.lock")) as file:
        return versions_in(file.read())


def versions_in(lock):
    """
    >>> versions_in('[[package]]\\nname = "egg"\\nversion = "0.1.2"\\n\\n[[package]]\\nname = "libc"\\nversion = "0.2.1"\\n')
    {'egg': '0.1.2'}
    """
    packages = (dict(line.split(" = ", 1) for line in part.splitlines() if " = " in line) for part in lock.split("[[package]]"))
    named = {p["name"].strip('"'): p["version"].strip('"') for p in packages if "name" in p}
    return {name: version for name, version in named.items() if name in SIZES and name != "anfora"}


def write(program, system, n, work):
    """The program of n operations as a system takes it, in a file in the folder `work`."""
    path = os.path.join(work, f"{system}-{n}.txt")
    if not os.path.exists(path):
        with open(path + ".part", "w") as file:
            subprocess.run([program, "write", FORMS[system], str(n)], stdout=file, check=True)
        os.rename(path + ".part", path)
    return path


def figures(program, system, n):
    """Every stage that a system has, a few times in one process."""
    return of_lines(process.run([program, "time", system.split("-")[0], str(n), "--runs", "3"]).out.splitlines())


def cold(program, n, work):
    """Systems and figures of anfora in fresh processes: parsing, each pipeline and printing, and the whole process of the last pipeline."""
    source, result = write(program, "anfora", n, work), os.path.join(work, "result.anf")
    for stage, pipeline in PIPELINES.items():
        ended = process.run([program, "process", stage, pipeline, source, result])
        lines = [json.loads(line) for line in ended.out.splitlines()]
        for line in lines:
            yield COLD, Figure(line["stage"], n, min(line["seconds"]))
        if stage == "pipeline":
            yield "anfora", Figure("process", n, ended.cpu, lines[-1]["operations"])
