"""Deep programs, on a thread with a stack of 64 KiB: every operation and every pass."""

import copy
import functools
import os
import pickle
import threading

import anfora as af
import pytest
from anfora import _anfora
from anfora import transform as T

DEPTH = int(os.environ.get("ANFORA_DEEP", "20000"))


@functools.cache
def ifs(depth):
    mod = af.Module()
    fb = af.FunctionBuilder(mod, "main")
    x, c = fb.param("x", "Tensor[(8,), float32]"), fb.param("c", "bool")
    for _ in range(depth):
        fb.open_block()
    value = x
    for _ in range(depth):
        then = fb.close_block(fb.emit("exp", value))
        fb.open_block()
        other = fb.close_block(x)
        value = fb.emit_if(c, then, other)
    fb.finish(value)
    return mod


@functools.cache
def calls(depth):
    open_, close = "exp(" * depth, ")" * depth
    return af.loads(f"def @main(%x: Tensor[(8,), float32]) {{ {open_}%x{close} }}")


@functools.cache
def tuples(depth):
    open_, close = "(" * depth, ",)" * depth
    return af.loads(f"def @main(%x: Tensor[(8,), float32]) {{ {open_}%x{close} }}")


@functools.cache
def functions(depth):
    mod = af.Module()
    fb = af.FunctionBuilder(mod, "main")
    x = fb.param("x", "Tensor[(8,), float32]")
    for _ in range(depth):
        fb.open_function(("p", "Tensor[(8,), float32]"))
    value = fb.emit("exp", x)
    for _ in range(depth):
        function = fb.close_function(value)
        value = fb.emit(function, x)
    fb.finish(value)
    return mod


def on_small_stack(work):
    failure = []

    def run():
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            failure.append(error)

    size = threading.stack_size(65536)
    thread = threading.Thread(target=run)
    threading.stack_size(size)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]


class Count(af.visitor.ExprVisitor):
    def __init__(self):
        self.seen = 0

    def visit_call_(self, call):
        self.seen += 1

    def visit_binding_(self, binding):
        self.seen += 1

    def visit_tuple_(self, tuple_):
        self.seen += 1


class Touch(af.visitor.ExprMutator):
    def __init__(self):
        self.seen = 0

    def visit_call_(self, call):
        self.seen += 1

    def visit_tuple_(self, tuple_):
        self.seen += 1

    def visit_if_(self, if_):
        self.seen += 1


@pytest.mark.parametrize("make", [ifs, calls, tuples, functions])
def test_every_operation(make):
    mod = make(DEPTH)

    def work():
        text = mod.text()
        str(mod)
        repr(mod)
        again = af.loads(text)
        assert again == mod and hash(again) == hash(mod)
        assert copy.deepcopy(mod) == mod
        assert pickle.loads(pickle.dumps(mod)) == mod
        mod.verify()
        mod._repr_html_()
        f = mod["main"]
        str(f), repr(f), str(f.ret_type), repr(f.result), len(f.bindings)
        assert [repr(b) for b in list(f.bindings)[:3]] is not None
        for walker in (Count(), Touch()):
            walker.visit(mod.copy())
            assert walker.seen >= DEPTH
        af.visitor.post_order_visit(mod, lambda expr: None)
        rules = [af.pattern.Rule("exp", "exp(%x)", "tanh(%x)")]
        af.pattern.rewrite(mod.copy(), rules)
        af.pattern.Matcher(af.pattern.op("exp", af.pattern.any_())).find_all(f)

        @T.function_pass
        def authored(func, mod, ctx):
            return Touch().visit(func)

        @T.module_pass
        def replaced(mod, ctx):
            return copy.copy(mod)

        authored(mod), replaced(mod)

    on_small_stack(work)


NEEDS = {"BindParams": lambda: T.BindParams("main", {"x": af.Literal([0.0] * 8, "float32")})}


@pytest.mark.parametrize("name", [entry["name"] for entry in _anfora._registered_passes()])
@pytest.mark.parametrize("make", [ifs, calls, tuples, functions])
def test_every_pass(make, name):
    mod = make(DEPTH)

    def work():
        made = NEEDS.get(name, getattr(T, name))()
        try:
            made(mod)
        except af.PassError as error:
            assert "A-normal form" in str(error) or "phase" in str(error), error

    on_small_stack(work)
