"""Passes and sequences of them: TVM's tests, on our programs, and what they leave open.

``docs/peer-cases/python.md`` joins TVM's tests with these.
"""

import anfora as af
import numpy as np
import pytest
from anfora import instrument as I
from anfora import transform as T
from tvm_recorders import LOG, SUBTRACT_AND_LOG, model, ops, record_pass


@pytest.fixture
def events():
    return []


class Double(af.visitor.ExprMutator):
    """Adds every operand of a call that is a variable to itself."""

    def visit_call_(self, call):
        if call.op == "add":
            return None
        doubled = [self.emit("add", x, x) if x.kind == "var" else x for x in call.args]
        return self.emit(call.op, *doubled)


def add_absolute(mod):
    """Adds a function of one call to the module."""
    builder = af.FunctionBuilder(mod, "absolute")
    x = builder.param("x", "Tensor[(5, 10), float32]")
    builder.finish(builder.emit("abs", x))


@T.module_pass(opt_level=1)
def with_absolute(mod, ctx):
    """A pass of modules with one function more."""
    add_absolute(mod)
    return mod


@T.function_pass(opt_level=1)
def doubled(func, mod, ctx):
    """A pass of functions that doubles what is computed with."""
    return Double().visit(func)


# ---- what TVM tests ------------------------------------------------------------------------------


def test_a_module_pass_adds_a_function():
    @T.module_pass(opt_level=0, name="absolute_too")
    def transform(mod, ctx):
        add_absolute(mod)
        return mod

    assert isinstance(transform, T.Pass)
    assert (transform.info.name, transform.info.opt_level) == ("absolute_too", 0)
    assert "absolute_too" in str(transform)

    mod = af.loads(LOG)
    updated = transform(mod)
    assert isinstance(updated, af.Module)
    assert sorted(updated) == ["absolute", "main"] and list(mod) == ["main"]
    assert ops(updated["absolute"]) == ["abs"]
    assert updated["main"].text() == mod["main"].text()
    assert mod == af.loads(LOG)


@pytest.mark.parametrize("decorator", [T.module_pass, T.function_pass, T.dataflowblock_pass])
def test_a_decorator_is_called_with_the_function_too(decorator):
    def direct(*args):
        return args[0]

    made = decorator(direct, opt_level=3)
    assert isinstance(made, T.Pass)
    assert (made.info.name, made.info.opt_level) == ("direct", 3)
    # The level and the name may be left out, and so may the brackets.
    assert (decorator(direct).info.name, decorator(direct).info.opt_level) == ("direct", 0)
    assert decorator(opt_level=2, name="other")(direct).info == T.PassInfo(2, "other")


def test_a_function_pass_doubles_what_functions_compute_with():
    assert isinstance(doubled, T.Pass) and doubled.info == T.PassInfo(1, "doubled")
    mod = af.loads(LOG)
    after = doubled(mod)
    assert ops(after["main"]) == ["add", "log"]
    assert ops(mod["main"]) == ["log"]
    add = after["main"].bindings[0]
    assert add.args[0] == add.args[1] == after["main"].params[0]


def test_a_class_of_function_passes_is_made_with_arguments():
    @T.function_pass(opt_level=1)
    class Replace:
        """Replaces calls of one operator."""

        def __init__(self, old, new):
            self.old, self.new = old, new

        def transform_function(self, func, mod, ctx):
            old, x = af.pattern.op(self.old, af.pattern.capture("x")), af.pattern.capture("x")
            return af.pattern.rewrite(func, af.pattern.Rule("r", old, af.pattern.op(self.new, x)))

    made = Replace("log", new="exp")
    assert isinstance(made, T.Pass) and isinstance(made, Replace)
    assert (made.info.opt_level, made.info.name) == (1, "Replace")
    assert (made.old, made.new) == ("log", "exp")
    assert Replace.__doc__ == "Replaces calls of one operator."
    assert made(af.loads(LOG)) == af.loads(LOG.replace("log", "exp"))
    # Each object has its own arguments.
    assert Replace("exp", "log")(af.loads(LOG)) == af.loads(LOG)


def test_a_class_of_module_passes_returns_another_module_or_the_one_it_was_given():
    @T.module_pass(opt_level=1)
    class Choose:
        def __init__(self, other, replace):
            self.other, self.replace = other, replace

        def transform_module(self, mod, ctx):
            return self.other if self.replace else mod

    mod, other = af.loads(LOG), model()
    replacing = Choose(other, replace=True)
    assert replacing.info.name == "Choose"
    assert replacing(mod) == other
    assert replacing.apply(mod.copy()).changed
    assert Choose(other, replace=False)(mod) == mod
    assert not Choose(other, replace=False).apply(mod).changed
    # The other module is still that of the caller, and one that says the same is no change.
    assert other == model()
    assert not Choose(af.loads(LOG), replace=True).apply(mod).changed


def test_an_info_is_a_level_and_a_name():
    info = T.PassInfo(opt_level=1, name="xyz")
    assert (info.opt_level, info.name, info.required) == (1, "xyz", [])


def test_a_sequence_has_an_info_and_its_passes():
    sequence = T.Sequential(passes=[with_absolute, doubled], opt_level=2)
    assert isinstance(sequence, T.Pass)
    assert (sequence.info.name, sequence.info.opt_level) == ("sequential", 2)
    assert [p.info.name for p in sequence.passes] == ["with_absolute", "doubled"]
    named = T.Sequential([], name="named", required=["FoldConstant"])
    assert named.info == T.PassInfo(0, "named", ["FoldConstant"])


def test_a_sequence_of_no_pass_changes_nothing():
    mod = af.loads(SUBTRACT_AND_LOG)
    assert T.Sequential(opt_level=1, passes=[])(mod) == mod
    assert not T.Sequential([]).apply(mod).changed


def test_a_sequence_of_a_module_pass():
    mod = af.loads(SUBTRACT_AND_LOG)
    with T.PassContext(required_pass=["with_absolute"]):
        after = T.Sequential(opt_level=1, passes=[with_absolute])(mod)
    assert sorted(after) == ["absolute", "difference", "logarithm"]
    assert [ops(after[name]) for name in sorted(after)] == [["abs"], ["subtract"], ["log"]]


def test_a_sequence_of_a_function_pass():
    mod = af.loads(SUBTRACT_AND_LOG)
    with T.PassContext(required_pass=["doubled"]):
        after = T.Sequential(opt_level=1, passes=[doubled])(mod)
    assert ops(after["difference"]) == ["add", "add", "subtract"]
    assert ops(after["logarithm"]) == ["add", "log"]


def test_a_sequence_of_both_sees_what_the_pass_before_has_added():
    mod = af.loads(SUBTRACT_AND_LOG)
    with T.PassContext(required_pass=["with_absolute", "doubled"]):
        after = T.Sequential(opt_level=1, passes=[with_absolute, doubled])(mod)
    assert ops(after["absolute"]) == ["add", "abs"]
    assert ops(after["difference"]) == ["add", "add", "subtract"]
    assert ops(after["logarithm"]) == ["add", "log"]
    assert mod == af.loads(SUBTRACT_AND_LOG)


FOLDABLE = """def @main(%x: Tensor[(1, 2, 3), float32]) -> Tensor[(1, 2, 3), float32] {
  let %c2 = add(1.5f, 1.5f);
  let %c4 = multiply(%c2, 2f);
  let %y = add(%x, %c4);
  let %z = add(%y, 1.5f);
  let %z1 = add(%y, 1.5f);
  let %unused = exp(%z1);
  let %z2 = add(%z, %z1);
  %z2
}
"""


def test_a_sequence_in_the_scope_of_a_context_folds_and_merges():
    sequence = T.Sequential(
        [T.FoldConstant(), T.EliminateCommonSubexpr(), T.DeadCodeElimination()]
    )
    with T.PassContext(opt_level=3):
        after = sequence(af.loads(FOLDABLE))
    assert after == af.loads(
        """def @main(%x: Tensor[(1, 2, 3), float32]) -> Tensor[(1, 2, 3), float32] {
  let %y = add(%x, 6f);
  let %z = add(%y, 1.5f);
  let %z2 = add(%z, %z);
  %z2
}
"""
    )
    literal = after["main"].bindings[0].args[1].literal
    assert np.asarray(literal).item() == 6.0


def test_a_sequence_in_a_sequence_runs_at_the_level_of_the_context(events):
    inner = T.Sequential([record_pass(events, "low", 1), record_pass(events, "high", 3)])
    sequence = T.Sequential([T.FoldConstant(), inner, T.DeadCodeElimination()])
    with T.PassContext(opt_level=2):
        sequence(af.loads(FOLDABLE))
    with T.PassContext(opt_level=3):
        sequence(af.loads(FOLDABLE))
    assert events == ["low", "low", "high"]


def test_the_module_is_printed_in_the_middle_of_a_sequence(capsys):
    with T.PassContext(opt_level=3):
        T.Sequential([T.FoldConstant(), T.PrintIR(), T.DeadCodeElimination()])(af.loads(FOLDABLE))
    printed = capsys.readouterr().out
    assert "def @main" in printed
    # After folding, and before what is not used has gone.
    assert "6f" in printed and "exp" in printed and "multiply" not in printed


def test_sequences_in_sequences_heed_levels_and_lists(events):
    high, off = record_pass(events, "high", 3), record_pass(events, "off")
    pipeline = T.Sequential(
        [record_pass(events, "first"), T.Sequential([high, off]), record_pass(events, "last")]
    )
    with T.PassContext(opt_level=0):
        pipeline(model())
    assert events == ["first", "off", "last"]
    del events[:]
    record_pass(events, "elsewhere")
    required = ["high", "off", "elsewhere"]
    with T.PassContext(opt_level=0, required_pass=required, disabled_pass=["off"]):
        pipeline(model())
    assert events == ["first", "high", "last"]


def test_a_sequence_in_a_sequence_is_found_by_its_place(events):
    inner = T.Sequential([record_pass(events, "high", 3)], name="inner")
    pipeline = T.Sequential([record_pass(events, "first"), inner])
    assert pipeline.passes[1].info.name == "inner"
    assert pipeline.passes[1].passes[0].info == T.PassInfo(3, "high")
    assert pipeline.pipeline == "first,high"


def test_passes_of_a_sequence_run_in_order(events):
    sequence = T.Sequential([record_pass(events, "Pass1"), record_pass(events, "Pass2")])
    with T.PassContext(opt_level=3):
        assert sequence(af.Module()) == af.Module()
    assert events == ["Pass1", "Pass2"]


def test_a_sequence_leaves_out_passes_above_the_level(events):
    passes = [record_pass(events, f"Pass{level}", level) for level in [1, 2, 3]]
    with T.PassContext(opt_level=2):
        T.Sequential(passes)(af.Module())
    assert events == ["Pass1", "Pass2"]


@T.function_pass(opt_level=0)
def mismatches(func, mod, ctx):
    """Multiplies matrices that do not fit."""

    class Wrong(af.visitor.ExprMutator):
        def visit_call_(self, call):
            return self.emit("matmul", self.const_(np.ones((3, 4), "float32")), call.args[0])

    return Wrong().visit(func)


def test_an_error_in_a_sequence_is_told_once():
    mod = af.loads(LOG)
    with pytest.raises(af.PassError) as raised:
        T.Sequential([T.Sequential([mismatches])])(mod)
    error = raised.value
    assert error.pass_name == "mismatches"
    told = "`matmul`: the summed extent of operand 1 is 10, but 4 is expected"
    for part in ["mismatches", told]:
        assert str(error).count(part) == 1
    assert isinstance(error.__cause__, af.VerifyError) and told in str(error.__cause__)


def test_an_error_names_the_function_and_the_binding():
    with pytest.raises(af.PassError) as raised:
        mismatches(af.loads(LOG, "bad.anf"))
    assert [(d.function, d.binding) for d in raised.value.diagnostics] == [("main", "y")]


def test_an_error_without_a_place_is_told_as_it_is():
    @T.module_pass(opt_level=0, name="ThrowUnresolvable")
    class ThrowUnresolvable:
        def transform_module(self, mod, ctx):
            raise LookupError("fails on purpose, nowhere")

    with pytest.raises(af.PassError) as raised:
        ThrowUnresolvable()(af.loads(LOG))
    assert "fails on purpose, nowhere" in str(raised.value)
    assert "-->" not in str(raised.value)
    (diagnostic,) = raised.value.diagnostics
    assert (diagnostic.line, diagnostic.function, diagnostic.binding) == (None, None, None)


# ---- failures in sequences -----------------------------------------------------------------------


@T.module_pass(opt_level=0)
def breaks(mod, ctx):
    for name in list(mod):
        mod.remove(name)
    raise ValueError("breaks")


def test_the_module_of_the_caller_is_as_it_was_after_a_failure():
    mod = af.loads(SUBTRACT_AND_LOG)
    with pytest.raises(af.PassError, match="breaks") as raised:
        T.Sequential([doubled, T.Sequential([with_absolute, breaks])])(mod)
    assert raised.value.pass_name == "breaks"
    assert mod == af.loads(SUBTRACT_AND_LOG)


def test_each_pass_of_a_sequence_in_place_is_a_transaction_of_its_own():
    mod = af.loads(SUBTRACT_AND_LOG)
    with pytest.raises(af.PassError, match="breaks"):
        T.Sequential([doubled, breaks, with_absolute]).apply(mod)
    assert mod == doubled(af.loads(SUBTRACT_AND_LOG))


def test_no_pass_runs_after_one_that_fails(events):
    with pytest.raises(af.PassError):
        T.Sequential([record_pass(events, "a"), breaks, record_pass(events, "b")])(model())
    assert events == ["a"]


def test_an_exception_that_a_pass_catches_is_its_own(events):
    @T.module_pass(opt_level=0)
    def careful(mod, ctx):
        with pytest.raises(af.PassError):
            breaks(mod.copy())
        events.append(len(mod))
        return mod

    assert careful(model()) == model()
    assert events == [1]


# ---- repetition and other forms of sequences -----------------------------------------------------


def test_a_repetition_stops_when_nothing_changes(events):
    @T.module_pass(opt_level=0)
    def renames(mod, ctx):
        (name,) = mod
        events.append(name)
        if len(name) < 6:
            mod.rename(name, name + "x")
        return mod

    assert list(T.Repeat([renames], max_rounds=9)(af.loads(LOG))) == ["mainxx"]
    assert events == ["main", "mainx", "mainxx"]
    del events[:]
    assert list(T.Repeat([renames], max_rounds=1)(af.loads(LOG))) == ["mainx"]


def test_a_sequence_is_made_of_passes():
    @T.module_pass(opt_level=0)
    class Later:
        def transform_module(self, mod, ctx):
            return mod

    for wrong in [["FoldConstant"], [None], [Later], [lambda mod, ctx: mod]]:
        with pytest.raises(TypeError, match="passes"):
            T.Sequential(wrong)
    with pytest.raises(TypeError):
        T.Sequential(3)
    with pytest.raises(TypeError):
        T.FoldConstant()("not a module")
    with pytest.raises(TypeError):
        Later()(None)


def test_a_class_without_its_method_is_no_pass():
    for decorator, method in [
        (T.module_pass, "transform_module"),
        (T.function_pass, "transform_function"),
        (T.dataflowblock_pass, "transform_dataflowblock"),
    ]:
        with pytest.raises(TypeError, match=method):
            decorator(opt_level=0)(type("Empty", (), {}))
        with pytest.raises(TypeError):
            decorator(opt_level=0)(3)


def test_sequences_nest_deep_and_not_without_end(events):
    nested = record_pass(events, "inmost")
    for _ in range(50):
        nested = T.Sequential([nested])
    nested(model())
    assert events == ["inmost"]
    with pytest.raises((ValueError, af.PassError), match="64"):
        for _ in range(100):
            nested = T.Sequential([nested])
        nested(model())
    assert events == ["inmost"]


def test_instruments_hear_of_sequences_too(events):
    class Names(I.PassInstrument):
        def run_before_pass(self, mod, info):
            events.append(f"+{info.name}")

        def run_after_pass(self, mod, info):
            events.append(f"-{info.name}")

    inner = T.Sequential([record_pass(events, "a")], name="inner")
    with T.PassContext(instruments=[Names()]):
        T.Sequential([inner], name="outer")(model())
    assert events == ["+outer", "+inner", "+a", "a", "-a", "-inner", "-outer"]
