"""Times a pass of TVM's Relax, or the way of a module through the pass of anfora and back. Run by
an interpreter that has both; see bridge.py, which does that.

Prints a line of JSON: `{"seconds": 0.5, "from_relax": 0.3, "to_relax": 0.1, "bindings": 990}`.
Times are CPU time of this process; those of the conversions are for anfora only. The module is made
before the clock runs. A process whose work takes longer than the limit is killed by SIGXCPU.
"""

import argparse
import gc
import json
import resource
import subprocess
import sys
import time

import anfora as af
import anfora.tvm
import numpy
import tvm
import tvm_worker
from anfora import transform as T
from tvm.relax import transform

X = numpy.linspace(0, 1, 8, dtype="float32")

# By name: the program, TVM's pass, and the pass of anfora.
FOUR = ["FoldConstant", "EliminateCommonSubexpr", "CanonicalizeBindings", "DeadCodeElimination"]
PASSES = {
    **{name: ("chain", getattr(transform, name), getattr(T, name)) for name in FOUR},
    "the four above": ("chain", lambda: tvm_worker.passes(*FOUR), lambda: T.parse_pipeline(",".join(FOUR))),
    "FuseOps": ("lowered", transform.FuseOps, T.FuseOps),
    "LambdaLift": ("lambdas", transform.LambdaLift, T.LambdaLifting),
    "Normalize": ("chain", transform.Normalize, T.Normalize),
    "ConvertToDataflow": ("plain", transform.ConvertToDataflow, T.ConvertToDataflow),
    "ToNonDataflow": ("chain", transform.ToNonDataflow, T.ToNonDataflow),
    "BindParams": ("chain", lambda: transform.BindParams("main", {"x": X}), lambda: T.BindParams("main", {"x": X})),
}


def operations(n):
    """The benchmark program as the lines that tvm_worker.py takes."""
    command = [sys.executable, "-m", "anfora", "gen", "chain", str(n)]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    names = {"x": "x"}
    for i, binding in enumerate(af.loads(text)["main"].bindings):
        names[binding.name] = f"%{i}"
        # A constant of the program has eight equal elements.
        yield binding.op, *(names[a.name] if a.kind == "var" else str(a.literal.numpy().flat[0]) for a in binding.args)


def program(kind, n):
    """A module of n bindings."""
    if kind == "lambdas":
        # Each has two bindings in main, and one of its own.
        return tvm_worker.siblings(n // 3)
    emitter = tvm_worker.LoweredEmitter if kind == "lowered" else tvm_worker.Emitter
    module = emitter(list(operations(n))).module()
    return transform.ToNonDataflow()(module) if kind == "plain" else module


def through_anfora(made, module):
    """Returns the result of the pass, and the CPU times of the conversions."""
    started = time.process_time()
    mod = af.tvm.from_relax(module)
    converted = time.process_time()
    made.apply(mod)
    done = time.process_time()
    result = af.tvm.to_relax(mod)
    return result, {"from_relax": converted - started, "to_relax": time.process_time() - done}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", choices=["TVM", "anfora"])
    parser.add_argument("pass_name", choices=PASSES)
    parser.add_argument("n", type=int)
    parser.add_argument("--limit", type=int, default=60, help="seconds of CPU time for the work (%(default)s)")
    args = parser.parse_args()
    kind, of_tvm, of_anfora = PASSES[args.pass_name]
    module = program(kind, args.n)
    made = of_tvm() if args.system == "TVM" else of_anfora()
    gc.collect()
    limit = int(time.process_time()) + 1 + args.limit
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    started, conversions = time.process_time(), {}
    with tvm.transform.PassContext(opt_level=3), T.PassContext(opt_level=3):
        if args.system == "TVM":
            result = made(module)
        else:
            result, conversions = through_anfora(made, module)
    figures = {"seconds": time.process_time() - started, **conversions}
    print(json.dumps({**figures, "bindings": tvm_worker.bindings_of(result)}), flush=True)


if __name__ == "__main__":
    main()
