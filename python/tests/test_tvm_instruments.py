"""Instruments: TVM's tests of them, on our programs, and what an instrument is.

``docs/peer-cases/python.md`` joins TVM's tests with these.
"""

import anfora as af
import pytest
from anfora import instrument as I
from anfora import transform as T
from tvm_recorders import Recorder, drop_the_model, model, record_pass


@pytest.fixture
def events():
    return []


@pytest.fixture(autouse=True)
def no_instruments_are_left():
    """Takes instruments off the context outside of every ``with``, whatever a test did."""
    yield
    T.PassContext.current().override_instruments(None)


# ---- what TVM tests ------------------------------------------------------------------------------


def test_passes_are_timed_until_other_instruments_take_the_place():
    timing = I.PassTimingInstrument()
    T.PassContext.current().override_instruments([timing])
    T.Sequential([T.FoldConstant(), T.ToANormalForm()])(model())
    T.DeadCodeElimination()(model())
    profile = timing.render()
    assert all(name in profile for name in ["FoldConstant", "ToANormalForm", "DeadCodeElimination"])
    assert "EliminateCommonSubexpr" not in profile
    assert timing.total > 0

    T.PassContext.current().override_instruments(None)
    T.EliminateCommonSubexpr()(model())
    # What it has measured can still be read, and nothing is added.
    assert timing.render() == profile


def test_an_instrument_hears_of_contexts_and_passes(capsys):
    @I.pass_instrument
    class Print:
        def enter_pass_ctx(self):
            print("enter ctx")

        def exit_pass_ctx(self):
            print("exit ctx")

        def run_before_pass(self, mod, info):
            print("before", info.name)

        def run_after_pass(self, mod, info):
            print("after", info.name)

    with T.PassContext(instruments=[Print()]):
        T.FoldConstant()(model())
    T.FoldConstant()(model())
    printed = capsys.readouterr().out
    assert printed == "enter ctx\nbefore FoldConstant\nafter FoldConstant\nexit ctx\n"


def test_an_instrument_lets_only_passes_of_a_name_run(events):
    @I.pass_instrument
    class Only:
        def should_run(self, mod, info):
            return "Fold" in info.name

        def run_before_pass(self, mod, info):
            events.append(info.name)

    with T.PassContext(instruments=[Only()]):
        T.ToANormalForm()(model())
        T.FoldConstant()(model())
        assert drop_the_model(model()) == model()
    assert events == ["FoldConstant"]


def test_an_instrument_does_not_hear_of_what_others_skip(events):
    @I.pass_instrument
    class Skip:
        def __init__(self, name):
            self.name = name

        def should_run(self, mod, info):
            return info.name != self.name

    @I.pass_instrument
    class Names:
        def run_before_pass(self, mod, info):
            events.append(info.name)

    instruments = [Skip("ToANormalForm"), Skip("DeadCodeElimination"), Names()]
    with T.PassContext(instruments=instruments):
        for made in [T.ToANormalForm(), T.DeadCodeElimination(), T.FoldConstant()]:
            made(model())
    assert events == ["FoldConstant"]


def test_an_instrument_counts_from_enter_to_exit():
    @I.pass_instrument
    class Counter:
        def __init__(self):
            self.before = self.after = -1

        def reset(self):
            self.before = self.after = 0

        enter_pass_ctx = reset
        exit_pass_ctx = reset

        def run_before_pass(self, mod, info):
            self.before += 1

        def run_after_pass(self, mod, info):
            self.after += 1

    counter = Counter()
    with T.PassContext(instruments=[counter]):
        assert (counter.before, counter.after) == (0, 0)
        T.Sequential([T.ToANormalForm(), T.Sequential([T.FoldConstant()])])(model())
        # The sequences count too.
        assert (counter.before, counter.after) == (4, 4)
    assert (counter.before, counter.after) == (0, 0)


def test_when_an_enter_raises_those_entered_are_exited(events):
    instruments = [Recorder(events, "1"), Recorder(events, "2", "enter"), Recorder(events, "3")]
    context = T.PassContext(instruments=instruments)
    with pytest.raises(af.PassError, match="2 breaks") as raised, context:
        events.append("body")
    assert raised.value.__cause__ is instruments[1].error
    assert events == ["1 enter", "2 enter", "1 exit"]
    assert T.PassContext.current() is not context
    assert not T.PassContext.current().instruments
    assert not context.instruments


def test_when_an_enter_of_the_context_outside_raises_it_has_no_instruments(events):
    current = T.PassContext.current()
    with pytest.raises(af.PassError, match="2 breaks"):
        current.override_instruments([Recorder(events, "1"), Recorder(events, "2", "enter")])
    assert events == ["1 enter", "2 enter", "1 exit"]
    assert not current.instruments
    record_pass(events, "pass")(model())
    assert events[3:] == ["pass"]


def test_when_an_exit_raises_those_after_are_not_exited(events):
    instruments = [Recorder(events, "1"), Recorder(events, "2", "exit"), Recorder(events, "3")]
    context = T.PassContext(instruments=instruments)
    with pytest.raises(af.PassError, match="2 breaks") as raised, context:
        events.append("body")
    assert raised.value.__cause__ is instruments[1].error
    assert events == ["1 enter", "2 enter", "3 enter", "body", "1 exit", "2 exit"]
    assert T.PassContext.current() is not context
    assert not T.PassContext.current().instruments
    assert not context.instruments


def test_when_an_exit_of_the_context_outside_raises_it_has_no_instruments(events):
    current = T.PassContext.current()
    current.override_instruments([Recorder(events, "old", "exit")])
    with pytest.raises(af.PassError, match="old breaks"):
        current.override_instruments([Recorder(events, "new")])
    # The new ones have not taken the place.
    assert events == ["old enter", "old exit"]
    assert not current.instruments
    record_pass(events, "pass")(model())
    assert events[2:] == ["pass"]


def test_when_a_pass_raises_nothing_comes_after_it(events):
    error = RuntimeError("the pass breaks")

    @T.module_pass(opt_level=2)
    def breaks(mod, ctx):
        events.append("pass")
        raise error

    with pytest.raises(af.PassError, match="the pass breaks") as raised:
        with T.PassContext(instruments=[Recorder(events, "1")]):
            breaks(model())
    assert raised.value.__cause__ is error and raised.value.pass_name == "breaks"
    assert events == ["1 enter", "1 should_run", "1 before", "pass", "1 exit"]


def test_when_should_run_raises_the_rest_are_not_asked(events):
    first = Recorder(events, "1", "should_run")
    with pytest.raises(af.PassError, match="1 breaks") as raised:
        with T.PassContext(instruments=[first, Recorder(events, "2")]):
            record_pass(events, "pass")(model())
    assert raised.value.__cause__ is first.error
    assert events == ["1 enter", "2 enter", "1 should_run", "1 exit", "2 exit"]


def test_when_run_before_raises_the_pass_does_not_run(events):
    first = Recorder(events, "1", "before")
    with pytest.raises(af.PassError, match="1 breaks") as raised:
        with T.PassContext(instruments=[first, Recorder(events, "2")]):
            record_pass(events, "pass")(model())
    assert raised.value.__cause__ is first.error
    assert events == [
        "1 enter", "2 enter",
        "1 should_run", "2 should_run", "1 before",
        "1 exit", "2 exit",
    ]  # fmt: skip


def test_when_run_after_raises_the_rest_hear_nothing_and_the_module_is_as_it_was(events):
    first = Recorder(events, "1", "after")
    mod = model()
    with pytest.raises(af.PassError, match="1 breaks") as raised:
        with T.PassContext(instruments=[first, Recorder(events, "2")]):
            drop_the_model.apply(mod)
    assert raised.value.__cause__ is first.error
    assert mod == model()
    assert events == [
        "1 enter", "2 enter",
        "1 should_run", "2 should_run", "1 before", "2 before", "1 after",
        "1 exit", "2 exit",
    ]  # fmt: skip


def test_two_instruments_and_two_passes(events):
    around = ["1 should_run", "2 should_run", "1 before", "2 before"]
    after = ["1 after", "2 after"]
    with T.PassContext(instruments=[Recorder(events, "1"), Recorder(events, "2")]):
        record_pass(events, "first")(model())
        record_pass(events, "second")(model())
    assert events == (
        ["1 enter", "2 enter"]
        + around + ["first"] + after
        + around + ["second"] + after
        + ["1 exit", "2 exit"]
    )  # fmt: skip


def test_all_passes_of_a_pipeline_are_printed_before_and_after(capsys):
    with T.PassContext(opt_level=3, instruments=[I.PrintBeforeAll(), I.PrintAfterAll()]):
        T.O2(model())
    printed = capsys.readouterr().out
    for name in ["ToANormalForm", "FoldConstant", "DeadCodeElimination"]:
        assert printed.index(f"// before {name}\n") < printed.index(f"// after {name}\n")
    assert "def @main" in printed


def test_the_classes_of_instruments_are_in_both_modules():
    assert T.PassInstrument is I.PassInstrument
    assert T.pass_instrument is I.pass_instrument
    assert isinstance(I.PassTimingInstrument(), I.PassInstrument)

    @I.pass_instrument
    class Decorated:
        def enter_pass_ctx(self):
            pass

    decorated = Decorated()
    assert isinstance(decorated, I.PassInstrument)
    context = T.PassContext(instruments=[decorated])
    assert context.instruments[0] is decorated
    assert not isinstance(object(), I.PassInstrument)


def test_a_vetoed_pass_is_skipped_and_the_next_one_runs(events):
    recorder = Recorder(events, "i", veto=["skip"])
    with T.PassContext(instruments=[recorder]):
        record_pass(events, "run")(model())
        outcome = record_pass(events, "skip").apply(model())
    assert outcome.skipped and not outcome.changed
    assert events == [
        "i enter",
        "i should_run", "i before", "run", "i after",
        "i should_run",
        "i exit",
    ]  # fmt: skip


def test_a_required_pass_is_not_asked_about(events):
    class Refuse(I.PassInstrument):
        def should_run(self, mod, info):
            events.append("asked")
            return False

        def exit_pass_ctx(self):
            events.append("exit")

    needed = record_pass(events, "needed")
    with T.PassContext(required_pass=["needed"], instruments=[Refuse()]):
        needed(model())
        record_pass(events, "other")(model())
    assert events == ["needed", "asked", "exit"]


def test_a_context_is_exited_when_a_pass_raises(events):
    @T.module_pass(opt_level=0)
    def broken(mod, ctx):
        raise ValueError("pass failed")

    class Exit(I.PassInstrument):
        def exit_pass_ctx(self):
            events.append("exit")

    with pytest.raises(af.PassError, match="pass failed") as raised:
        with T.PassContext(instruments=[Exit()]):
            broken(model())
    assert isinstance(raised.value.__cause__, ValueError)
    assert events == ["exit"]


def test_passes_are_timed_and_dumped(tmp_path, events):
    timing = I.PassTimingInstrument()
    with T.PassContext(instruments=[timing, I.DumpIR(tmp_path)]):
        record_pass(events, "record")(model())
        assert "record" in timing.render()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000_input.anf", "001_record.anf"]
    assert af.load(tmp_path / "001_record.anf") == model()


def test_a_tracer_counts_the_passes_of_a_sequence(events):
    class Trace(I.PassInstrument):
        def run_before_pass(self, mod, info):
            events.append(info.name)

    passes = [T.ToANormalForm(), T.FoldConstant(), T.DeadCodeElimination()]
    with T.PassContext(opt_level=3, instruments=[Trace()]):
        T.Sequential(passes)(model())
    assert events == ["sequential", "ToANormalForm", "FoldConstant", "DeadCodeElimination"]


# ---- what is an instrument -----------------------------------------------------------------------


def test_a_class_without_hooks_is_no_instrument():
    with pytest.raises(TypeError, match="run_before_pass"):

        @I.pass_instrument
        class Empty:
            def before(self):
                pass

    with pytest.raises(TypeError, match="no instrument"):
        T.PassContext(instruments=[object()])
    with pytest.raises(TypeError):
        T.PassContext(instruments=3)
    # One that inherits all hooks does nothing, and is one.
    with T.PassContext(instruments=[I.PassInstrument()]):
        assert drop_the_model(model()) != model()


def test_a_class_of_instruments_is_no_instrument():
    with pytest.raises(TypeError, match="Recorder"):
        T.PassContext(instruments=[Recorder])


def test_hooks_of_the_base_class_do_nothing():
    base = I.PassInstrument()
    info = T.PassInfo(0, "pass")
    assert base.should_run(model(), info) is True
    hooks = [base.enter_pass_ctx(), base.exit_pass_ctx(), base.run_before_pass(model(), info)]
    assert hooks == [None, None, None]
    assert base.run_after_pass(model(), info) is None


def test_an_instrument_sees_the_module_before_and_after_and_the_info_of_the_pass():
    seen = []

    class See(I.PassInstrument):
        def should_run(self, mod, info):
            seen.append(("should_run", len(mod), info))
            return True

        def run_before_pass(self, mod, info):
            seen.append(("before", len(mod), info))

        def run_after_pass(self, mod, info):
            seen.append(("after", len(mod), info))

    with T.PassContext(instruments=[See()]):
        drop_the_model(model())
    info = T.PassInfo(2, "drop_the_model")
    assert seen == [("should_run", 1, info), ("before", 1, info), ("after", 0, info)]


def test_a_module_is_lent_to_a_hook_and_cannot_be_edited_or_kept():
    kept = []

    class Keep(I.PassInstrument):
        def run_before_pass(self, mod, info):
            kept.append(mod)
            kept.append(mod.copy())
            with pytest.raises(af.AnforaError):
                mod.remove("main")

    with T.PassContext(instruments=[Keep()]):
        drop_the_model(model())
    lent, copied = kept
    with pytest.raises(af.StaleError):
        lent.text()
    assert copied == model()


def test_should_run_may_return_any_truth(events):
    class Truth(I.PassInstrument):
        def __init__(self, value):
            self.value = value

        def should_run(self, mod, info):
            return self.value

    for value in [1, "yes", [0]]:
        with T.PassContext(instruments=[Truth(value)]):
            record_pass(events, "ran")(model())
    for value in [0, "", []]:
        with T.PassContext(instruments=[Truth(value)]):
            record_pass(events, "skipped")(model())
    assert events == ["ran", "ran", "ran"]


def test_instruments_of_both_kinds_are_called_in_order(events, capsys):
    recorder = Recorder(events, "1")
    with T.PassContext(instruments=[I.PrintAfterAll(), recorder, I.Bisect(1)]):
        record_pass(events, "one")(model())
        record_pass(events, "two")(model())
    # The second is refused by `Bisect`, after the recorder was asked.
    assert events == [
        "1 enter",
        "1 should_run", "1 before", "one", "1 after",
        "1 should_run",
        "1 exit",
    ]  # fmt: skip
    printed = capsys.readouterr().out
    assert "// after one" in printed and "// after two" not in printed


def test_a_pass_that_runs_a_pass_is_heard_of_inside(events):
    inner = record_pass(events, "inner")

    @T.module_pass(name="outer")
    def outer(mod, ctx):
        events.append("outer")
        inner(mod.copy())
        return mod

    with T.PassContext(instruments=[Recorder(events, "1")]):
        outer(model())
    around = ["1 should_run", "1 before"]
    assert events == (
        ["1 enter"] + around + ["outer"] + around + ["inner", "1 after", "1 after", "1 exit"]
    )
