"""Times TVM's Relax on the benchmark program. Run by an interpreter that has TVM; see tvm_relax.py, which does that.

Reads the program from standard input, a line an operation (`anfora-peers write operations N`), and prints a line of JSON a
stage, as `anfora-peers time` does: `{"stage": "cse", "n": 1000, "seconds": [...], "operations": 1000}`. Times are CPU time of
this process, which computes on one thread.
"""

import argparse
import gc
import json
import sys
import time

import numpy
import tvm
from tvm import relax, te

TENSOR = relax.TensorType((8,), "float32")
OPERATORS = {"add": relax.op.add, "multiply": relax.op.multiply, "subtract": relax.op.subtract}
analysis, transform = relax.analysis, relax.transform


class Emitter:
    """Emits operations into a dataflow block of a function `main`, as calls of operators."""

    def __init__(self, operations):
        self.operations = operations
        self.builder = relax.BlockBuilder()
        self.x = relax.Var("x", TENSOR)
        self.constants = {}

    def begin(self):
        pass

    def call(self, op, lhs, rhs):
        return OPERATORS[op](lhs, rhs)

    def operand(self, text, results):
        if text == "x":
            return self.x
        if text[0] == "%":
            return results[int(text[1:])]
        if text not in self.constants:
            self.constants[text] = relax.const(numpy.full(8, float(text), "float32"))
        return self.constants[text]

    def module(self):
        results = []
        self.begin()
        with self.builder.function("main", [self.x]):
            with self.builder.dataflow():
                for i, (op, lhs, rhs) in enumerate(self.operations):
                    value = self.call(op, self.operand(lhs, results), self.operand(rhs, results))
                    last = i + 1 == len(self.operations)
                    emit = self.builder.emit_output if last else self.builder.emit
                    results.append(emit(value, name_hint=f"b{i}"))
            self.builder.emit_func_output(results[-1])
        return self.builder.get()


class LoweredEmitter(Emitter):
    """Emits calls of tensor programs that are marked as elementwise: what FuseOps works on."""

    def begin(self):
        a, b = (te.placeholder((8,), "float32", name=name) for name in "ab")
        self.programs = {}
        for op, compute in [
            ("add", lambda i: a[i] + b[i]),
            ("multiply", lambda i: a[i] * b[i]),
            ("subtract", lambda i: a[i] - b[i]),
        ]:
            program = te.create_prim_func([a, b, te.compute((8,), compute, name="c")])
            self.programs[op] = self.builder.add_func(program.with_attr("op_pattern", 0), op)

    def call(self, op, lhs, rhs):
        return relax.call_tir(self.programs[op], relax.Tuple([lhs, rhs]), TENSOR)


def siblings(n):
    """Lambdas side by side, each of which captures what the one before it computed."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", TENSOR)
    bindings, last = [], x
    for i in range(n):
        y, sum_ = relax.Var("y", TENSOR), relax.Var("sum", TENSOR)
        block = relax.BindingBlock([relax.VarBinding(sum_, builder.normalize(relax.op.add(y, last)))])
        function = relax.Function([y], relax.SeqExpr([block], sum_), TENSOR)
        last = call_of(function, i, x, bindings)
    return module_of(builder, x, bindings, last)


def nested(n):
    """Lambdas in each other, each called by the one around it."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", TENSOR)
    parameters = [relax.Var("y", TENSOR) for _ in range(n)]
    blocks, tail = [], parameters[-1]
    for i in reversed(range(n)):
        function = relax.Function([parameters[i]], relax.SeqExpr(blocks, tail), TENSOR)
        bindings = []
        tail = call_of(function, i, parameters[i - 1] if i else x, bindings)
        blocks = [relax.BindingBlock(bindings)]
    return module_of(builder, x, bindings, tail)


def call_of(function, i, argument, bindings):
    f = relax.Var(f"f{i}", relax.FuncType([TENSOR], TENSOR))
    result = relax.Var(f"r{i}", TENSOR)
    bindings.append(relax.VarBinding(f, function))
    bindings.append(relax.VarBinding(result, relax.Call(f, [argument])))
    return result


def module_of(builder, x, bindings, result):
    main = relax.Function([x], relax.SeqExpr([relax.BindingBlock(bindings)], result), TENSOR)
    module = tvm.IRModule({"main": main.with_attr("global_symbol", "main")})
    return transform.Normalize()(module)


def bindings_of(module):
    """How many bindings main has."""
    return sum(len(block.bindings) for block in module["main"].body.blocks)


def functions_of(module):
    """How many functions it has."""
    return len(module.functions)


def nothing(_):
    pass


def passes(*names):
    return tvm.transform.Sequential([getattr(transform, name)() for name in names])


class Stages:
    """What is timed, and what it is timed on."""

    def __init__(self, operations):
        self.operations = operations
        self.made = {}

    def once(self, what, make):
        if what not in self.made:
            self.made[what] = make()
        return self.made[what]

    @property
    def chain(self):
        return self.once("chain", lambda: Emitter(self.operations).module())

    @property
    def text(self):
        return self.once("text", lambda: self.chain.script(show_meta=True))

    def get(self, name):
        """The work and what counts operations in what comes of it."""
        chain, n = lambda: self.chain, len(self.operations)
        through = {
            "cse": ["EliminateCommonSubexpr"],
            "dce": ["DeadCodeElimination"],
            "fold": ["FoldConstant"],
            "canonicalize": ["CanonicalizeBindings"],
            "fold-canonicalize": ["FoldConstant", "CanonicalizeBindings"],
            "cse-canonicalize-dce": ["EliminateCommonSubexpr", "CanonicalizeBindings", "DeadCodeElimination"],
            "pipeline": ["FoldConstant", "EliminateCommonSubexpr", "CanonicalizeBindings", "DeadCodeElimination"],
        }
        if name in through:
            module, run = chain(), passes(*through[name])
            return lambda: run(module), bindings_of
        if name == "parse":
            text = self.text
            return lambda: tvm.script.from_source(text, check_well_formed=False), bindings_of
        if name == "parse-verify":
            text = self.text
            return lambda: tvm.script.from_source(text, check_well_formed=True), bindings_of
        if name == "print":
            module = chain()
            return lambda: module.script(), lambda text: text.count(" = R.") - text.count("Tensor((8,), dtype=\"float32\") = metadata")
        if name == "verify":
            module = chain()
            return lambda: analysis.well_formed(module), None
        if name == "build":
            return lambda: Emitter(self.operations).module(), bindings_of
        if name == "visit":
            function = chain()["main"]
            return lambda: analysis.post_order_visit(function, nothing), None
        if name == "visit-inside":
            module = chain()
            return lambda: analysis.detect_recursion(module), None
        if name == "mutate":
            module = chain()
            return lambda: tvm.IRModule({"main": module["main"].bind_params({})}), bindings_of
        if name == "mutate-inside":
            module, run = chain(), passes("RemovePurityChecking")
            return lambda: run(module), bindings_of
        if name == "fuse":
            module, run = self.once("lowered", lambda: LoweredEmitter(self.operations).module()), passes("FuseOps")
            return lambda: run(module), bindings_of
        if name in ["lift-siblings", "lift-nested"]:
            make = siblings if name == "lift-siblings" else nested
            module, run = make(n), passes("LambdaLift")
            return lambda: run(module), functions_of
        raise SystemExit(f"no stage {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1, help="how often each stage runs (%(default)s)")
    parser.add_argument("stages", nargs="+")
    args = parser.parse_args()
    stages = Stages([tuple(line.split()) for line in sys.stdin])
    for name in args.stages:
        work, count = stages.get(name)
        seconds = []
        for _ in range(args.runs):
            result = None
            gc.collect()
            started = time.process_time()
            result = work()
            seconds.append(time.process_time() - started)
        operations = count(result) if count else None
        line = {"stage": name, "n": len(stages.operations), "seconds": seconds, "operations": operations}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
