"""Visitors and mutators: the order of calls, what is skipped, what is made, depth."""

import sys
import threading

import anfora as af
import pytest
from anfora import SKIP
from anfora.visitor import ExprMutator, ExprVisitor, PyExprMutator, PyExprVisitor
from anfora.visitor import post_order_rewrite, post_order_visit

TEXT = """def private @g(%z: float32) { sqrt(%z) }
def @main(%x: float32, %c: bool) {
  let %a = add(%x, 1f);
  dataflow {
    let %d = exp(%a);
    let %e = tanh(%d);
    output(%e);
  }
  let %f = fn(%p: float32) { let %q = sin(%p); %q };
  let %b = if (%c) { let %i = cos(%e); %i } else { abs(%e) };
  let %t = (%b, @g(%a));
  let %u = %t.1;
  %f(%u)
}
"""

METHODS = [name for name in vars(ExprVisitor) if name.endswith("_") and not name.startswith("_")]


@pytest.fixture
def mod():
    return af.loads(TEXT, "visited.anf")


def recorder(calls, returned=None):
    """Returns a visitor that notes all calls of its methods."""

    def noting(name):
        def method(self, what):
            text = f"%{what.name}" if isinstance(what, af.Binding) else str(what)
            calls.append((name.strip("_"), text))
            return (returned or {}).get(name)

        return method

    return type("Recorder", (ExprVisitor,), {name: noting(name) for name in METHODS})()


def test_every_method_is_called_in_program_order(mod):
    calls = []
    recorder(calls).visit(mod["main"])
    assert {name for name, _ in calls} == {name.strip("_") for name in METHODS}
    order = [text for name, text in calls if name == "visit_call"]
    assert order[:3] == ["add(%x, float32[])", "exp(%a)", "tanh(%d)"]
    assert order[3:6] == ["sin(%p)", "cos(%e)", "abs(%e)"]
    assert order[6:] == ["@g(%a)", "%f(%u)"]
    assert [text for name, text in calls if name == "visit_binding"] == [
        "%a", "%d", "%e", "%f", "%q", "%b", "%i", "%t", "%u",
    ]  # fmt: skip
    assert [text for name, text in calls if name == "visit_global_var"] == ["@g"]
    assert [text for name, text in calls if name == "visit_constant"] == ["float32[]"]
    defined = [text for name, text in calls if name == "visit_var_def"]
    assert {"%a", "%p", "%q", "%u"} <= set(defined)
    for first, last in [
        ("visit_if", "leave_if"),
        ("visit_function", "leave_function"),
        ("visit_dataflow_block", "leave_dataflow_block"),
    ]:
        names = [name for name, _ in calls]
        assert names.count(first) == names.count(last) == 1
        assert names.index(first) < names.index(last)
    names = [name for name, _ in calls]
    inside = names[names.index("visit_if") : names.index("leave_if")]
    assert inside.count("visit_call") == 2 and inside.count("visit_branch") == 2


def test_skip_leaves_out_what_is_inside(mod):
    def ops(**returned):
        calls = []
        recorder(calls, returned).visit(mod["main"])
        return [text.split("(")[0] for name, text in calls if name == "visit_call"]

    assert ops() == ["add", "exp", "tanh", "sin", "cos", "abs", "@g", "%f"]
    assert ops(visit_if_=SKIP) == ["add", "exp", "tanh", "sin", "@g", "%f"]
    assert ops(visit_branch_=SKIP) == ["add", "exp", "tanh", "sin", "@g", "%f"]
    assert ops(visit_function_=SKIP) == ["add", "exp", "tanh", "cos", "abs", "@g", "%f"]
    assert ops(visit_binding_=SKIP) == ["%f"]
    assert repr(SKIP) == "SKIP"


def test_a_visitor_visits_all_functions_of_a_module(mod):
    ops = []

    class Ops(PyExprVisitor):
        def visit_call_(self, call):
            ops.append(call.op if isinstance(call.op, str) else str(call.op))

    Ops().visit_expr(mod)
    assert ops == ["sqrt", "add", "exp", "tanh", "sin", "cos", "abs", "@g", "%f"]
    ops.clear()
    choice = next(b for b in mod["main"].bindings if b.value.kind == "if")
    Ops().visit(choice.value)
    assert ops == ["cos", "abs"]
    ops.clear()
    Ops().visit(choice.value.then_block)
    assert ops == ["cos"]


def test_only_some_operators(mod):
    class Count(ExprVisitor):
        calls = 0

        def visit_call_(self, call):
            assert call.op in ("exp", "cos")
            self.calls += 1

    visitor = Count()
    assert visitor.only("exp", "cos") is visitor
    visitor.visit(mod)
    assert visitor.calls == 2
    visitor.only()
    visitor.visit(mod)
    assert visitor.calls == 2


def test_only_knows_the_operators(mod):
    with pytest.raises(af.AnforaError, match="did you mean .exp"):
        ExprVisitor().only("exq").visit(mod)


def test_methods_of_an_object_and_of_a_parent_are_called(mod):
    seen = []

    class Parent(ExprVisitor):
        def visit_if_(self, if_):
            seen.append("if")

    class Child(Parent):
        pass

    child = Child()
    child.visit(mod["main"])
    assert seen == ["if"]


def test_post_order_visit(mod):
    kinds = []
    post_order_visit(mod["main"], lambda e: kinds.append(e.kind))
    assert kinds[:3] == ["var", "literal", "call"]
    assert {"var", "literal", "call", "function", "if", "tuple", "tuple_getitem"} <= set(kinds)


def test_a_visitor_may_visit_and_read_meanwhile(mod):
    inner = []

    class Outer(ExprVisitor):
        def visit_if_(self, if_):
            post_order_visit(mod["g"], lambda e: inner.append(str(e)))
            assert mod["main"].bindings[0].name == "a" and af.loads(mod.text()) == mod

    Outer().visit(mod["main"])
    assert inner == ["%z", "sqrt(%z)"]


def test_what_a_mutator_returns_takes_the_place(mod):
    class Replace(PyExprMutator):
        def visit_call_(self, call):
            if call.op == "exp":
                return self.emit("sigmoid", call.args[0], name="s")
            if call.op == "cos":
                return call.args[0]
            if call.op == "sin":
                return 2.0
            if call.op == "abs":
                return call
            return None

    f = mod["main"]
    assert Replace().visit(f) == f
    mod.verify()
    text = f.text()
    assert "let %s = sigmoid(%a);" in text and "tanh(%s)" in text
    assert "cos" not in text and "sin(" not in text and "abs(%e)" in text
    assert "2f" in text and mod["g"].text() == af.loads(TEXT)["g"].text()


def test_a_mutator_that_changes_nothing_leaves_handles_valid(mod):
    a = mod["main"].bindings[0]

    class Same(ExprMutator):
        def visit_call_(self, call):
            return call

    assert Same().visit(mod) is mod
    assert mod == af.loads(TEXT) and a.name == "a"
    post_order_rewrite(mod, lambda e: None)
    assert a.name == "a"


def test_every_kind_of_expression_can_be_replaced(mod):
    class All(ExprMutator):
        def visit_tuple_(self, tuple_):
            return self.emit_tuple(tuple_.args[1], tuple_.args[0], name="swapped")

        def visit_tuple_getitem_(self, field):
            return self.emit_tuple_getitem(field.args[0], 0, name="first")

        def visit_if_(self, if_):
            return self.emit("tanh", if_.cond and if_.else_block.result.args[0], name="chosen")

    All().visit(mod["main"])
    mod.verify()
    names = [b.name for b in mod["main"].bindings]
    assert {"swapped", "first", "chosen"} <= set(names)
    assert all(b.value.kind != "if" for b in mod["main"].bindings)


def test_what_a_mutator_makes():
    mod = af.loads("def @main(%x: Tensor[(8,), float32]) { let %y = exp(%x); %y }")

    class Make(ExprMutator):
        def visit_call_(self, call):
            x = call.args[0]
            half = self.const_(0.5, "float32")
            shifted = self.emit("add", self.emit("multiply", x, half), 1)
            pair = self.emit_tuple(shifted, x)
            cast = self.match_cast(self.emit_tuple_getitem(pair, 0), "Tensor[(8,), float32]")
            return self.emit("sum", cast, axis=[0], keepdims=True, name="s").type and cast

    Make().visit(mod)
    mod.verify()
    assert {b.op for b in mod["main"].bindings} >= {"multiply", "add", "match_cast"}


def test_a_result_that_does_not_fit_is_refused(mod):
    before = mod.text()

    class Wrong(ExprMutator):
        result = None

        def visit_call_(self, call):
            return self.result if call.op == "exp" else None

    for result, error in [
        (3, af.VerifyError),
        ([1.0, 2.0], af.VerifyError),
        ("exp", TypeError),
        ({}, TypeError),
        (object(), TypeError),
        (SKIP, TypeError),
        (mod["main"].params[0], af.StaleError),
        (mod["main"].bindings[0], af.StaleError),
        (2**70, (OverflowError, ValueError)),
    ]:
        wrong = Wrong()
        wrong.result = result
        with pytest.raises(error):
            wrong.visit(mod)
        assert mod.text() == before


def test_what_a_mutator_emits_has_to_fit(mod):
    before = mod.text()
    errors = []

    class Wrong(ExprMutator):
        def visit_call_(self, call):
            wrong = [(("exq", call.args[0]), {}), (("exp",), {}), (("exp", 1.0), {"a": 1})]
            for args, attrs in wrong:
                try:
                    self.emit(*args, **attrs)
                except af.VerifyError as error:
                    errors.append(str(error))
            return None

    Wrong().visit(mod["g"])
    assert len(errors) == 3 and "did you mean `exp`" in errors[0]
    assert "takes 1 operands" in errors[1] and "has no attribute" in errors[2]
    assert mod.text() == before


def only_calls(kind, mod):
    ops = []

    def visit_call_(self, call):
        ops.append(str(call.op))

    type("Only", (kind,), {"visit_call_": visit_call_})().only("exp").visit(mod)
    return ops


def test_only_means_the_same_for_mutators_and_visitors(mod):
    assert only_calls(ExprVisitor, mod) == ["exp"] == only_calls(ExprMutator, mod)


def test_handles_of_a_callback_end_with_the_walk(mod):
    class Keep(ExprMutator):
        kept = None

        def visit_call_(self, call):
            self.kept = call
            self.type = call.type

    keep = Keep()
    keep.visit(mod["main"])
    with pytest.raises(af.StaleError):
        keep.kept.op
    with pytest.raises(af.StaleError):
        str(keep.type)
    assert "stale" in repr(keep.kept)
    with pytest.raises(af.StaleError):
        keep.emit("exp", 1.0)


def test_a_failed_mutator_can_be_used_again(mod):
    class Once(ExprMutator):
        fails = True

        def visit_call_(self, call):
            if call.op != "exp":
                return None
            made = self.emit("tanh", call.args[0])
            if self.fails:
                self.fails = False
                raise ValueError("first")
            return made

    once = Once()
    before = mod.text()
    with pytest.raises(ValueError, match="first"):
        once.visit(mod)
    assert mod.text() == before
    once.visit(mod)
    assert "exp" not in mod.text()


def test_a_mutator_of_a_module_that_fails_leaves_all_functions():
    mod = af.loads("def @f(%x: float32) { exp(%x) } def @g(%x: float32) { tanh(%x) }")
    before = mod.text()

    class Fails(ExprMutator):
        def visit_call_(self, call):
            if call.op == "tanh":
                raise ValueError("second")
            return self.emit("sin", call.args[0])

    with pytest.raises(ValueError, match="second"):
        Fails().visit(mod)
    assert mod.text() == before


def test_post_order_rewrite(mod):
    f = post_order_rewrite(mod["main"], lambda e: e.args[0] if e.op == "tanh" else None)
    assert f == mod["main"] and "tanh" not in f.text()
    mod.verify()


def nest(depth):
    text = "let %v = if (%c) {" * depth + " exp(%x) " + "} else { %x }; %v" * depth
    return f"def @main(%x: float32, %c: bool) {{ {text} }}"


def test_depth_on_a_small_stack():
    depth = 100_000
    mod = af.loads(nest(depth))
    seen = []

    class Ifs(ExprVisitor):
        count = 0

        def visit_if_(self, if_):
            self.count += 1

    class ToTanh(ExprMutator):
        def visit_call_(self, call):
            return self.emit("tanh", call.args[0])

        def visit_if_(self, if_):
            return None

    def work():
        visitor = Ifs()
        visitor.visit(mod)
        seen.append(visitor.count)
        ToTanh().visit(mod)
        post_order_visit(mod["main"], lambda e: None)
        visitor.visit(mod["main"])
        seen.append(visitor.count)

    limit, size = sys.getrecursionlimit(), threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(size)
    assert seen == [depth, 2 * depth] and limit < depth
    assert mod.text().count("tanh") == 1
