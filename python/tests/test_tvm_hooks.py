"""Instruments: the order of hooks when one raises, and instruments that take the place of others.

``docs/peer-cases/python.md`` says what TVM does.
"""

import gc
import sys
import weakref

import anfora as af
import pytest
from anfora import instrument as I
from anfora import transform as T
from tvm_recorders import FullRecorder, Recorder, drop_the_model, model, record_pass


@pytest.fixture
def events():
    return []


@pytest.fixture(autouse=True)
def no_instruments_are_left():
    """Takes instruments off the context outside of every ``with``, whatever a test did."""
    yield
    T.PassContext.current().override_instruments(None)


# ---- what raises in which hook -------------------------------------------------------------------


def test_those_entered_are_exited_last_first(events):
    three = [Recorder(events, "1"), Recorder(events, "2"), Recorder(events, "3", "enter")]
    with pytest.raises(af.PassError, match="3 breaks"), T.PassContext(instruments=three):
        events.append("body")
    assert events == ["1 enter", "2 enter", "3 enter", "2 exit", "1 exit"]


def test_a_context_that_lost_its_instruments_can_be_entered_again(events):
    context = T.PassContext(instruments=[Recorder(events, "1"), Recorder(events, "2", "enter")])
    with pytest.raises(af.PassError, match="2 breaks"), context:
        pass
    del events[:]
    with context:
        record_pass(events, "pass")(model())
    assert events == ["pass"]


def test_the_exception_of_an_exit_has_that_of_the_body_as_its_context(events):
    last = Recorder(events, "1", "exit")
    with pytest.raises(af.PassError, match="1 breaks") as raised:
        with T.PassContext(instruments=[last]):
            raise ValueError("body")
    assert raised.value.__cause__ is last.error
    assert isinstance(raised.value.__context__, ValueError)


def test_an_exception_of_the_body_passes_through_the_exits(events):
    with pytest.raises(ValueError, match="body"):
        with T.PassContext(instruments=[Recorder(events, "1"), Recorder(events, "2")]):
            raise ValueError("body")
    assert events == ["1 enter", "2 enter", "1 exit", "2 exit"]


def test_all_are_asked_although_one_has_refused(events):
    refuses = Recorder(events, "1", veto=["pass"])
    with T.PassContext(instruments=[refuses, Recorder(events, "2")]):
        record_pass(events, "pass")(model())
    assert events == ["1 enter", "2 enter", "1 should_run", "2 should_run", "1 exit", "2 exit"]
    del events[:]
    raises = Recorder(events, "2", "should_run")
    with pytest.raises(af.PassError, match="2 breaks"):
        with T.PassContext(instruments=[refuses, raises, Recorder(events, "3")]):
            record_pass(events, "pass")(model())
    assert events[3:] == ["1 should_run", "2 should_run", "1 exit", "2 exit", "3 exit"]


# What three instruments hear if this hook of the second one raises. `on_error` goes to those that
# heard of the begin and not of the end, `on_end` to all that heard of the begin.
ASKED = ["1 should_run", "2 should_run", "3 should_run"]
HOOKS_OF_A_RUN = {
    "should_run": ["1 should_run", "2 should_run"],
    "before": [*ASKED, "1 before", "2 before", "1 on_error", "1 on_end"],
    "after": [
        *ASKED, "1 before", "2 before", "3 before", "pass", "1 after", "2 after",
        "3 on_error", "1 on_end", "2 on_end", "3 on_end",
    ],
}  # fmt: skip


@pytest.mark.parametrize("hook", HOOKS_OF_A_RUN)
def test_what_was_begun_is_ended(events, hook):
    three = [FullRecorder(events, "1"), FullRecorder(events, "2", hook), FullRecorder(events, "3")]
    with pytest.raises(af.PassError, match="2 breaks"), T.PassContext(instruments=three):
        del events[:]
        record_pass(events, "pass")(model())
    assert events == HOOKS_OF_A_RUN[hook] + ["1 exit", "2 exit", "3 exit"]


def test_instruments_are_told_of_the_error_of_a_pass_and_of_its_end():
    told = []

    @T.module_pass
    def fails(mod, ctx):
        for name in list(mod):
            mod.remove(name)
        raise ValueError("no")

    class Told:
        def on_error(self, mod, info, error):
            told.append((info.name, len(mod), type(error), type(error.__cause__)))

        def on_end(self, mod, info, outcome):
            told.append((info.name, outcome and outcome.changed))

    with T.PassContext(instruments=[Told()]):
        drop_the_model(model())
        record_pass([], "quiet")(model())
        with pytest.raises(af.PassError):
            fails(model())
    assert told == [
        ("drop_the_model", True),
        ("quiet", False),
        # The module is as it was before the pass.
        ("fails", 1, af.PassError, ValueError),
        ("fails", None),
    ]


@pytest.mark.parametrize("hook", ["on_error", "on_end"])
def test_a_hook_that_cannot_fail_a_pass_is_reported_as_python_reports_destructors(
    events, hook, monkeypatch
):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)

    @T.module_pass
    def fails(mod, ctx):
        raise ValueError("no")

    recorder = FullRecorder(events, "1", hook)
    with T.PassContext(instruments=[recorder, FullRecorder(events, "2")]):
        with pytest.raises(af.PassError, match="no"):
            fails(model())
    assert [type(r.exc_value) for r in reported] == [RuntimeError]
    assert reported[0].exc_value is recorder.error
    # The other instruments are told nevertheless.
    assert [e for e in events if hook in e] == [f"1 {hook}", f"2 {hook}"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("hook", ["enter", "should_run", "before", "pass", "after", "exit"])
def test_what_ends_a_program_is_itself(events, kind, hook):
    error = kind("stop")

    @T.module_pass(opt_level=0, name="interrupted")
    def interrupted(mod, ctx):
        mod.remove("main")
        if hook == "pass":
            raise error
        return mod

    mod = model()
    context = T.PassContext(instruments=[Recorder(events, "1", hook, error=error)])
    with pytest.raises(kind) as raised, context:
        T.Sequential([interrupted]).apply(mod)
    assert raised.value is error
    # Only an exit comes after the pass.
    assert (mod == model()) == (hook != "exit")
    assert T.PassContext.current() is not context


def test_the_cause_keeps_its_traceback_and_the_error_names_pass_and_instrument():
    class Deep(I.PassInstrument):
        def run_before_pass(self, mod, info):
            self.deeper()

        def deeper(self):
            raise LookupError("deep")

    with pytest.raises(af.PassError) as raised, T.PassContext(instruments=[Deep()]):
        T.FoldConstant()(model())
    error = raised.value
    assert error.pass_name == "FoldConstant"
    assert "FoldConstant" in str(error) and "Deep" in str(error) and "deep" in str(error)
    names, step = [], error.__cause__.__traceback__
    while step is not None:
        names.append(step.tb_frame.f_code.co_name)
        step = step.tb_next
    assert names == ["run_before_pass", "deeper"]


def test_the_error_of_a_pass_in_a_sequence_names_the_pass(events):
    error = ValueError("inner")

    @T.function_pass(opt_level=0, name="inner_pass")
    def inner_pass(func, mod, ctx):
        raise error

    sequence = T.Sequential([record_pass(events, "a"), T.Sequential([inner_pass])], name="outer")
    with pytest.raises(af.PassError) as raised:
        sequence(model())
    assert raised.value.__cause__ is error
    assert "inner_pass" in str(raised.value)
    assert str(raised.value).count("inner") == 2, "the pass and its error, once each"


# ---- override_instruments ------------------------------------------------------------------------


def test_overriding_exits_the_old_and_enters_the_new(events):
    new = [Recorder(events, "3"), Recorder(events, "4")]
    with T.PassContext(instruments=[Recorder(events, "1"), Recorder(events, "2")]) as context:
        context.override_instruments(new)
        assert list(context.instruments) == new
        assert T.PassContext.current().instruments[0] is new[0]
        record_pass(events, "pass")(model())
    assert events == [
        "1 enter", "2 enter", "1 exit", "2 exit", "3 enter", "4 enter",
        "3 should_run", "4 should_run", "3 before", "4 before", "pass", "3 after", "4 after",
        "3 exit", "4 exit",
    ]  # fmt: skip


@pytest.mark.parametrize("nothing", [None, [], ()])
def test_overriding_with_nothing_takes_instruments_away(events, nothing):
    with T.PassContext(instruments=[Recorder(events, "1")]) as context:
        context.override_instruments(nothing)
        assert not context.instruments
        record_pass(events, "pass")(model())
    assert events == ["1 enter", "1 exit", "pass"]


def test_overriding_with_what_cannot_be_entered_leaves_none(events):
    with T.PassContext(instruments=[Recorder(events, "old")]) as context:
        new = [Recorder(events, "1"), Recorder(events, "2"), Recorder(events, "3", "enter")]
        with pytest.raises(af.PassError, match="3 breaks") as raised:
            context.override_instruments(new)
        assert raised.value.__cause__ is new[2].error
        assert not context.instruments
        record_pass(events, "pass")(model())
    assert events == [
        "old enter", "old exit", "1 enter", "2 enter", "3 enter", "2 exit", "1 exit", "pass",
    ]  # fmt: skip


def test_overriding_what_cannot_be_exited_leaves_none(events):
    old = [Recorder(events, "1"), Recorder(events, "2", "exit"), Recorder(events, "3")]
    with T.PassContext(instruments=old) as context:
        with pytest.raises(af.PassError, match="2 breaks"):
            context.override_instruments([Recorder(events, "new")])
        assert not context.instruments
    assert events == ["1 enter", "2 enter", "3 enter", "1 exit", "2 exit"]


def test_overriding_with_what_is_no_instrument_changes_nothing(events):
    old = Recorder(events, "1")
    with T.PassContext(instruments=[old]) as context:
        with pytest.raises(TypeError, match="no instrument"):
            context.override_instruments([Recorder(events, "2"), object()])
        assert list(context.instruments) == [old]
    assert events == ["1 enter", "1 exit"]


def test_the_context_outside_shows_its_instruments(events):
    recorder = Recorder(events, "1")
    T.PassContext.current().override_instruments([recorder])
    record_pass(events, "pass")(model())
    assert events == ["1 enter", "1 should_run", "1 before", "pass", "1 after"]
    assert list(T.PassContext.current().instruments) == [recorder]


def test_a_pass_may_override_the_instruments(events):
    new = Recorder(events, "new")

    @T.module_pass(name="swaps")
    def swaps(mod, ctx):
        ctx.override_instruments([new])
        return mod

    with T.PassContext(instruments=[Recorder(events, "old")]):
        swaps(model())
        record_pass(events, "pass")(model())
    assert events == [
        "old enter", "old should_run", "old before",
        # The old one is exited in the middle, and hears of the end of the pass that it saw begin.
        "old exit", "new enter", "old after",
        "new should_run", "new before", "pass", "new after",
        "new exit",
    ]  # fmt: skip


def test_what_a_pass_overrides_is_seen_outside(events):
    new = Recorder(events, "new")

    @T.module_pass(name="swaps")
    def swaps(mod, ctx):
        ctx.override_instruments([new])
        return mod

    with T.PassContext(instruments=[Recorder(events, "old")]) as context:
        swaps(model())
        assert list(context.instruments) == [new]


# ---- what hooks may do ---------------------------------------------------------------------------


class Current(I.PassInstrument):
    """Notes in which hooks its context is the current one."""

    def __init__(self, events):
        self.events, self.context = events, None

    def note(self, hook):
        self.events.append((hook, T.PassContext.current() is self.context))

    def enter_pass_ctx(self):
        self.note("enter")

    def exit_pass_ctx(self):
        self.note("exit")

    def run_before_pass(self, mod, info):
        self.note("before")

    def run_after_pass(self, mod, info):
        self.note("after")


def test_an_instrument_is_entered_before_its_context_is_current_and_exited_after(events):
    current = Current(events)
    current.context = T.PassContext(instruments=[current])
    with current.context:
        record_pass(events, "pass")(model())
    assert events == [
        ("enter", False), ("before", True), "pass", ("after", True), ("exit", False),
    ]  # fmt: skip


def test_a_context_given_with_the_call_is_current_in_hooks(events):
    current = Current(events)
    current.context = T.PassContext(instruments=[current])
    record_pass(events, "pass")(model(), current.context)
    assert events == [("before", True), "pass", ("after", True)]


def test_a_hook_may_run_passes_on_the_module_but_not_in_place(events):
    class Runs(I.PassInstrument):
        def run_before_pass(self, mod, info):
            if info.name == "outer":
                assert len(drop_the_model(mod)) == 0
                assert len(mod) == 1
                with pytest.raises(af.AnforaError, match="may be looked at"):
                    drop_the_model.apply(mod)
            events.append(info.name)

    with T.PassContext(instruments=[Runs()]):
        record_pass(events, "outer")(model())
    assert events == ["drop_the_model", "outer", "outer"]


def test_hooks_that_run_passes_without_end_are_an_error(events):
    class Endless(I.PassInstrument):
        def run_before_pass(self, mod, info):
            events.append(info.name)
            record_pass(events, "again")(mod)

    with T.PassContext(instruments=[Endless()]):
        with pytest.raises(af.PassError, match="`first` failed in .*Endless") as raised:
            record_pass(events, "first")(model())
    assert events[0] == "first" and set(events[1:]) == {"again"} and len(events) < 1_000
    depth, error = 0, raised.value
    while error.__cause__ is not None:
        depth, error = depth + 1, error.__cause__
    assert depth > 10 and isinstance(error, af.PassError)
    assert "passes nest more than 128 deep" in str(error)
    # The next pass runs as if nothing had been.
    T.FoldConstant()(model())


def test_an_instrument_may_override_the_instruments(events):
    class Once(Recorder):
        def run_before_pass(self, mod, info):
            super().run_before_pass(mod, info)
            T.PassContext.current().override_instruments([Recorder(events, "new")])

    with T.PassContext(instruments=[Once(events, "once"), Recorder(events, "2")]):
        record_pass(events, "a")(model())
        record_pass(events, "b")(model())
    assert events == [
        "once enter", "2 enter",
        "once should_run", "2 should_run", "once before",
        "once exit", "2 exit", "new enter",
        # Those that are asked about a pass hear of it to its end.
        "2 before", "a", "once after", "2 after",
        "new should_run", "new before", "b", "new after",
        "new exit",
    ]  # fmt: skip


def test_a_context_and_an_instrument_that_hold_each_other_are_collected(events):
    recorder = Recorder(events, "1")
    recorder.context = T.PassContext(instruments=[recorder])
    gone = weakref.ref(recorder)
    del recorder
    gc.collect()
    assert gone() is None


def test_an_instrument_goes_with_its_context(events):
    recorder = Recorder(events, "1")
    with T.PassContext(instruments=[recorder]):
        record_pass(events, "pass")(model())
    gone = weakref.ref(recorder)
    del recorder
    gc.collect()
    assert gone() is None
