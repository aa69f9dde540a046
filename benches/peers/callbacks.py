"""What a callback in Python costs: a visitor that counts calls, and a mutator that keeps them, in anfora and in TVM, in one run.

    python3 benches/peers/callbacks.py

The program is a chain of 10,000 calls (100,000 for anfora as well). The figures are microseconds of CPU time for each call, the least of 7 rounds, in which the
two systems take turns. Both are installed into target/tvm-env: TVM from the package index, anfora as a wheel that is built here.
"""

import glob
import os
import subprocess
import sys

WORKER = '''
import sys, time

def least(work, n, rounds):
    best = float("inf")
    for _ in range(rounds):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best / n * 1e6

def of_anfora(n):
    import anfora as af
    calls = "".join(f"let %v{i + 1} = exp(%v{i}); " for i in range(n))
    mod = af.loads(f"def @main(%v0: Tensor[(8,), float32]) {{ {calls} %v{n} }}")
    class Count(af.visitor.ExprVisitor):
        seen = 0
        def visit_call_(self, call):
            self.seen += 1
    class Keep(af.visitor.ExprMutator):
        seen = 0
        def visit_call_(self, call):
            self.seen += 1
    def run(walker):
        walker.visit(mod)
        assert walker.seen == n
    return {"visitor": lambda: run(Count()), "mutator": lambda: run(Keep()),
            "visitor, filtered": lambda: Count().only("nn.conv2d").visit(mod)}

def of_tvm(n):
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((8,), "float32"))
    with builder.function("main", [x]):
        value = x
        for _ in range(n):
            value = builder.emit(relax.op.exp(value))
        builder.emit_func_output(value)
    function = builder.finalize()["main"]
    @visitor
    class Count(PyExprVisitor):
        def __init__(self):
            super().__init__()
            self.seen = 0
        def visit_call_(self, call):
            self.seen += 1
    @mutator
    class Keep(PyExprMutator):
        def visit_call_(self, call):
            return call
    def count():
        walker = Count()
        walker.visit_expr(function)
        assert walker.seen == n
    return {"visitor": count, "mutator": lambda: Keep().visit_expr(function)}

system, n, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for name, work in {"anfora": of_anfora, "TVM": of_tvm}[system](n).items():
    print(f"{name}\\t{least(work, n, rounds)}")
'''


def wheel(folder="target/python/bench-wheels"):
    builder = subprocess.run(
        ["scripts/python-env", "python/build", "maturin", "maturin>=1.9,<2"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
    for old in glob.glob(f"{folder}/*.whl"):
        os.remove(old)
    command = [builder, "-m", "maturin", "build", "--profile", "dist", "--quiet", "--manifest-path", "python/Cargo.toml", "--out", folder]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (made,) = glob.glob(f"{folder}/*.whl")
    return made


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    sys.path.insert(0, "benches/peers")
    import tvm_relax

    python = tvm_relax.find()
    if python is None:
        sys.exit(tvm_relax.MISSING)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", wheel()], check=True)
    best = {}
    for _ in range(7):
        for system, n in [("anfora", 10_000), ("TVM", 10_000), ("anfora", 100_000)]:
            command = [python, "-c", WORKER, system, str(n), "3"]
            ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            for line in ended.stdout.splitlines():
                name, cost = line.split("\t")
                key = name, system, n
                best[key] = min(float(cost), best.get(key, float("inf")))
    print(f"TVM {tvm_relax.version(python)}; microseconds a call")
    print("| | anfora, 10,000 | anfora, 100,000 | TVM, 10,000 | TVM / anfora |\n|---|---|---|---|---|")
    for name in ["visitor", "mutator", "visitor, filtered"]:
        ours, large = best[name, "anfora", 10_000], best[name, "anfora", 100_000]
        theirs = best.get((name, "TVM", 10_000))
        row = f"| {name} | {ours:.3f} | {large:.3f} | "
        print(row + (f"{theirs:.2f} | {theirs / ours:.1f}x |" if theirs else "no filter | |"))


if __name__ == "__main__":
    main()
