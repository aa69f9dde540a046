"""Exceptions of callbacks, and callbacks that use what they are called for."""

import copy
import sys

import anfora as af
import pytest
from anfora import instrument as I
from anfora import pattern as P
from anfora import transform as T
from anfora import visitor as V
from support import TEXT, Odd, Refused, half_edit, mod, raises, unchanged


def visitor_with(name, callback):
    return type("Visits", (V.ExprVisitor,), {name: lambda self, e: callback()})()


def mutator_with(name, callback):
    def method(self, e):
        if self.count == 0:
            self.count += 1
            return None
        callback()

    return type("Mutates", (V.ExprMutator,), {name: method, "count": 0})()


def under(**hooks):
    def work(mod):
        with T.PassContext(instruments=[type("Watches", (), hooks)()]):
            T.FoldConstant().apply(mod)

    return work


def class_form(decorate, method, callback):
    half = {method: lambda self, *args: callback()}
    return decorate(type("Half", (), half))()


EXP = P.op("exp", P.capture("x"))


#: Places where an exception of a callback becomes the cause of a `PassError`.
IN_PASSES = {
    "module_pass": lambda mod, cb: half_edit("module", cb).apply(mod),
    "function_pass": lambda mod, cb: half_edit("function", cb).apply(mod),
    "dataflowblock_pass": lambda mod, cb: half_edit("dataflowblock", cb).apply(mod),
    "module class": lambda mod, cb: class_form(T.module_pass, "transform_module", cb).apply(mod),
    "function class": lambda mod, cb: class_form(
        T.function_pass, "transform_function", cb
    ).apply(mod),
    "region class": lambda mod, cb: class_form(
        T.dataflowblock_pass, "transform_dataflowblock", cb
    ).apply(mod),
    "pure call": lambda mod, cb: half_edit("module", cb)(mod),
    "sequential": lambda mod, cb: T.Sequential([half_edit("module", cb)]).apply(mod),
    "repeat": lambda mod, cb: T.Repeat([half_edit("function", cb)]).apply(mod),
    "enter_pass_ctx": lambda mod, cb: under(enter_pass_ctx=cb)(mod),
    "should_run": lambda mod, cb: under(should_run=cb)(mod),
    "run_before_pass": lambda mod, cb: under(run_before_pass=cb)(mod),
    "run_after_pass": lambda mod, cb: under(run_after_pass=cb)(mod),
    "nested": lambda mod, cb: T.Pass(
        "module", "outer", lambda m, ctx: half_edit("module", cb).apply(m) and m
    ).apply(mod),
}


#: Places where it is raised as itself.
AS_ITSELF = {
    **{
        f"visitor {name}": lambda mod, cb, name=name: visitor_with(name, cb).visit(mod)
        for name in vars(V.ExprVisitor)
        if name.endswith("_") and not name.startswith("_")
    },
    "mutator visit_call_": lambda mod, cb: mutator_with("visit_call_", cb).visit(mod["main"]),
    "mutator visit_tuple_": lambda mod, cb: V.post_order_rewrite(
        mod["main"], lambda e: cb() if e.kind == "tuple" else None
    ),
    "mutator visit_if_": lambda mod, cb: V.post_order_rewrite(
        mod["main"], lambda e: cb() if e.kind == "if" else None
    ),
    "post_order_visit": lambda mod, cb: V.post_order_visit(mod, cb),
    "condition of a pattern": lambda mod, cb: P.rewrite(mod, P.Rule("r", EXP.where(cb), 1.0)),
    "condition of a rule": lambda mod, cb: P.rewrite(mod, P.Rule("r", "exp(%x)", "%x", where=cb)),
    "condition of a search": lambda mod, cb: P.Matcher(EXP.where(cb)).find_all(mod["main"]),
    "right side": lambda mod, cb: P.rewrite(
        mod, [P.Rule("q", "tanh(%x)", "%x"), P.Rule("r", EXP, cb)]
    ),
    "optional": lambda mod, cb: P.any_().optional(cb),
    "iterable of passes": lambda mod, cb: T.Sequential(cb() for _ in "x"),
    "iterable of rules": lambda mod, cb: P.rewrite(mod, (cb() for _ in "x")),
    "iterable of instruments": lambda mod, cb: T.PassContext(instruments=(cb() for _ in "x")),
    "config": lambda mod, cb: T.PassContext(config=type("C", (), {"items": cb})()),
    "text of an option": lambda mod, cb: T.BindSymbols(
        symbols={"n": type("C", (), {"__str__": cb})()}
    ),
    "array": lambda mod, cb: af.Literal(type("C", (), {"__array__": cb})()),
    "array as operand": lambda mod, cb: af.FunctionBuilder(mod, "k").emit(
        "exp", type("C", (), {"__array__": cb})()
    ),
    "model": lambda mod, cb: af.onnx.from_onnx(type("C", (), {"SerializeToString": cb})()),
    "path": lambda mod, cb: af.load(type("C", (), {"__fspath__": cb})()),
    "class of passes": lambda mod, cb: T.module_pass(
        type("C", (), {"__init__": cb, "transform_module": cb})
    )(),
}


@pytest.mark.parametrize("place", IN_PASSES)
def test_an_exception_in_a_pass_keeps_its_cause(place, mod):
    error = Refused("on purpose")
    with pytest.raises(af.PassError, match="on purpose") as caught:
        IN_PASSES[place](mod, raises(error))
    cause = caught.value
    while isinstance(cause, af.PassError):
        cause = cause.__cause__
    assert cause is error and cause.__traceback__ is not None
    unchanged(mod)


@pytest.mark.parametrize("place", AS_ITSELF)
def test_an_exception_elsewhere_is_itself(place, mod):
    error = Refused("on purpose")
    with pytest.raises(Refused) as caught:
        AS_ITSELF[place](mod, raises(error))
    assert caught.value is error
    unchanged(mod)


@pytest.mark.parametrize("place", [*IN_PASSES, *AS_ITSELF])
@pytest.mark.parametrize("error", [KeyboardInterrupt("k"), SystemExit(3)], ids=repr)
def test_what_ends_a_program_is_itself(place, error, mod):
    with pytest.raises(type(error)) as caught:
        {**IN_PASSES, **AS_ITSELF}[place](mod, raises(error))
    assert caught.value is error
    unchanged(mod)


@pytest.mark.parametrize("error", [Refused("on purpose"), KeyboardInterrupt("k")])
def test_an_exception_at_the_end_of_a_context(error, mod):
    expected = af.PassError if isinstance(error, Exception) else KeyboardInterrupt
    with pytest.raises(expected):
        under(exit_pass_ctx=raises(error))(mod)
    assert T.PassContext.current().instruments == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_hooks_that_cannot_fail_are_reported(mod, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: told.append(report.exc_value))
    error = Refused("on purpose")
    under(on_end=raises(error))(mod)
    assert told == [error]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_the_end_of_a_pass_is_itself(mod):
    with pytest.raises(KeyboardInterrupt):
        under(on_end=raises(KeyboardInterrupt()))(mod)


def test_an_interrupt_while_a_module_is_printed_is_itself(mod, monkeypatch):
    class Stream:
        def write(self, text):
            raise KeyboardInterrupt

        def flush(self):
            pass

    with T.PassContext(instruments=[I.PrintAfterAll()]):
        monkeypatch.setattr(sys, "stdout", Stream())
        try:
            with pytest.raises(KeyboardInterrupt):
                T.FoldConstant()(mod)
        finally:
            monkeypatch.undo()


@pytest.mark.parametrize("name", ["__index__", "__float__"])
def test_an_interrupt_while_a_number_is_read_is_itself(name, mod):
    number = type("Number", (), {name: raises(KeyboardInterrupt())})()
    with pytest.raises(KeyboardInterrupt):
        mod.set_attr("x", number)


@pytest.mark.parametrize("returned", [None, 3, "x", [], Odd(), "module", "function"])
@pytest.mark.parametrize("kind", ["module", "function", "dataflowblock"])
def test_a_pass_that_returns_something_else(kind, returned, mod):
    value = {"module": mod["main"], "function": mod["g"]}.get(str(returned), returned)
    run = T.Pass(kind, "p", lambda *args: value)
    with pytest.raises(af.PassError, match="did you mean `return ") as caught:
        run.apply(mod)
    assert isinstance(caught.value.__cause__, TypeError)
    unchanged(mod)


def test_a_pass_may_require_others_without_a_context(mod):
    required = T.function_pass(required=["FoldConstant"])(lambda f, m, ctx: f)
    required(mod)


def test_a_pass_may_run_a_pipeline_on_its_module(mod):
    @T.module_pass
    def nested(m, ctx):
        before = m.text()
        pure = T.O2(m)
        assert m.text() == before and pure != m
        assert T.CanonicalizeBindings().apply(m).changed
        with T.PassContext(opt_level=3) as inner:
            assert T.PassContext.current().opt_level == 3
            T.O3(m)
        assert inner.statistics
        return m

    done = nested(mod)
    assert done == T.CanonicalizeBindings()(mod) and mod == af.loads(TEXT)


def test_a_nested_pass_that_fails_can_be_caught(mod):
    @T.module_pass
    def outer(m, ctx):
        m.set_attr("outer", 1)
        before = m.text()
        with pytest.raises(af.PassError):
            half_edit("module", raises(Refused())).apply(m)
        assert m.text() == before
        return m

    assert outer(mod).attrs == {"outer": 1}


def test_a_pass_that_calls_itself_ends(mod):
    for again in [
        T.Pass("module", "again", lambda m, ctx: again(m)),
        T.Pass("module", "again", lambda m, ctx: again.apply(m) and m),
        T.Pass("dataflowblock", "again", lambda b, m, ctx: again(m) and b),
    ]:
        with pytest.raises(af.PassError):
            again(mod)
        unchanged(mod)
        mod.set_attr("x", None)


def test_a_visitor_that_starts_itself_ends(mod):
    class Again(V.ExprVisitor):
        def visit_call_(self, call):
            self.visit(mod)

    with pytest.raises(RecursionError):
        Again().visit(mod)
    unchanged(mod)


def test_a_walk_does_not_edit_what_it_edits(mod):
    errors = []

    def attempt(match=None):
        for call in [
            mod.text,
            lambda: mod.rename("main", "x"),
            lambda: mod["main"].bindings,
            lambda: T.O2(mod),
            lambda: T.FoldConstant().apply(mod),
            lambda: V.ExprVisitor().visit(mod),
            lambda: V.ExprMutator().visit(mod),
            lambda: P.rewrite(mod, []),
            lambda: copy.copy(mod),
            lambda: af.FunctionBuilder(mod, "k"),
            lambda: mod == mod.copy(),
        ]:
            with pytest.raises(af.AnforaError, match="is being edited"):
                call()
        errors.append(repr(mod))
        return None

    V.post_order_rewrite(mod["g"], lambda e: attempt())
    P.rewrite(mod["g"], P.Rule("r", P.op("sqrt", P.capture("x")), attempt))
    P.rewrite(mod["g"], P.Rule("r", "sqrt(%x)", "%x", where=attempt))
    assert len(errors) == 3
    unchanged(mod)


def test_a_visitor_may_edit_what_it_visits(mod):
    stale = []

    class Edits(V.ExprVisitor):
        def visit_if_(self, if_):
            T.CanonicalizeBindings().apply(mod)
            with pytest.raises(af.StaleError):
                if_.cond
            stale.append(if_)

    Edits().visit(mod["main"])
    assert len(stale) == 1
    mod.verify()


@pytest.mark.parametrize("text", ["", "\ud800", "raises"])
def test_exceptions_with_odd_texts(text, mod):
    class Odd(Exception):
        def __str__(self):
            if text == "raises":
                raise ValueError("no text")
            return text

    error = Odd()
    with pytest.raises(af.PassError, match="pass `half` failed") as caught:
        half_edit("module", raises(error)).apply(mod)
    assert caught.value.__cause__ is error
    unchanged(mod)


TWO = """def @first(%x: float32) -> float32 {
  let %a = exp(%x);
  %a
}

def @second(%x: float32, %c: bool) -> float32 {
  let %a = exp(%x);
  let %b = if (%c) {
    let %d = tanh(%a);
    %d
  } else {
    %a
  };
  %b
}
"""


def fails(*given):
    raise RuntimeError("no")


def place(run, mod):
    """Returns the function and the binding that the error of a module pass names."""
    with pytest.raises(af.PassError) as raised:
        T.module_pass(lambda mod, ctx: run(mod) and mod)(mod)
    assert isinstance(raised.value.__cause__, RuntimeError)
    [told] = raised.value.diagnostics
    return told.function, told.binding


class FailsAtTanh(af.visitor.ExprVisitor):
    def visit_call_(self, call):
        return fails() if call.op == "tanh" else None


class FailsAtBinding(af.visitor.ExprVisitor):
    def visit_binding_(self, binding):
        return fails() if binding.name == "b" else None


class FailsAfterBranches(af.visitor.ExprVisitor):
    def leave_if_(self, expr):
        fails()


class FailsAtDefinition(af.visitor.ExprVisitor):
    def visit_var_def_(self, var):
        return fails() if var.name == "d" else None


class MutatorFailsAtTanh(af.visitor.ExprMutator):
    def visit_call_(self, call):
        return fails() if call.op == "tanh" else None


@pytest.mark.parametrize(
    "run, binding",
    [
        (FailsAtTanh().visit, "d"),
        (FailsAtBinding().visit, "b"),
        (FailsAfterBranches().visit, "b"),
        (FailsAtDefinition().visit, "d"),
        (MutatorFailsAtTanh().visit, "d"),
        (lambda mod: P.rewrite(mod, [P.Rule("r", P.op("tanh", P.any_()), fails)]), "d"),
        (lambda mod: P.rewrite(mod, [P.Rule("r", "tanh(%x)", "%x", where=fails)]), "d"),
        (lambda mod: P.rewrite(mod, [P.Rule("r", P.op("tanh", P.any_().where(fails)), 1)]), "d"),
        (lambda mod: P.Matcher(P.op("tanh", P.any_()).where(fails)).find_all(mod["second"]), "d"),
        (lambda mod: FailsAtTanh().visit(mod["second"].bindings[1].value), "d"),
    ],
)
def test_an_error_names_where_a_callback_was(run, binding):
    assert place(run, af.loads(TWO)) == ("second", binding)


def test_an_error_names_the_function_of_a_function_pass():
    @T.function_pass
    def only_the_first(func, mod, ctx):
        return func if func.name == "first" else None

    with pytest.raises(af.PassError, match="did you mean `return func`") as raised:
        only_the_first(af.loads(TWO))
    assert [(d.function, d.binding) for d in raised.value.diagnostics] == [("second", None)]


def test_the_place_of_an_exception_that_was_caught_is_forgotten():
    error = RuntimeError("no")

    def throws(*given):
        raise error

    def run(mod, ctx):
        P.rewrite(mod, [P.Rule("r", "tanh(%x)", "%x", where=throws)])

    failing = T.module_pass(run)
    for _ in range(2):
        with pytest.raises(af.PassError) as raised:
            failing(af.loads(TWO))
        assert raised.value.diagnostics[0].function == "second"
    assert vars(error) == {}
