"""The current context: contexts in contexts, and contexts on threads.

``docs/peer-cases/python.md`` says what TVM does.
"""

import contextlib
import subprocess
import sys
import threading

import anfora as af
import pytest
from anfora import instrument as I
from anfora import transform as T
from tvm_recorders import FOLDABLE, FOLDED, Names, Recorder, model, record_pass


@pytest.fixture
def events():
    return []


def on_a_thread(work):
    """Runs ``work`` on a thread of its own, and returns or raises what it returns or raises."""
    results, errors = [], []

    def run():
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout=60)
    assert not thread.is_alive(), "the thread does not end"
    if errors:
        raise errors[0]
    return results[0]


# ---- the current context, and contexts in contexts -----------------------------------------------


def test_the_innermost_context_is_the_current_one():
    outside = T.PassContext.current().opt_level
    with T.PassContext(opt_level=3, disabled_pass=["FuseOps"]) as outer:
        assert T.PassContext.current() is outer
        with T.PassContext(opt_level=1) as inner:
            assert T.PassContext.current() is inner
            # An inner context takes nothing over from the one around it.
            assert inner.disabled_pass == [] and inner.opt_level == 1
        assert T.PassContext.current() is outer
        with T.PassContext() as inner:
            assert inner.opt_level == 2
    assert T.PassContext.current() is not outer
    assert T.PassContext.current().opt_level == outside


def test_the_context_outside_is_one():
    assert T.PassContext.current() is T.PassContext.current()


def test_instruments_of_nested_contexts_do_not_hear_of_each_other(events):
    outer, inner = Recorder(events, "outer"), Recorder(events, "inner")
    with T.PassContext(instruments=[outer]):
        with T.PassContext(instruments=[inner]):
            record_pass(events, "a")(model())
        with T.PassContext():
            record_pass(events, "b")(model())
        record_pass(events, "c")(model())
    assert events == [
        "outer enter",
        "inner enter", "inner should_run", "inner before", "a", "inner after", "inner exit",
        "b",
        "outer should_run", "outer before", "c", "outer after",
        "outer exit",
    ]  # fmt: skip


def test_an_exception_leaves_contexts_innermost_first(events):
    three = [T.PassContext(instruments=[Recorder(events, str(i))]) for i in [1, 2, 3]]
    with pytest.raises(ValueError, match="body"):
        with three[0], three[1], three[2]:
            raise ValueError("body")
    assert events == ["1 enter", "2 enter", "3 enter", "3 exit", "2 exit", "1 exit"]


@pytest.mark.parametrize("fails", ["enter", "exit"])
def test_a_context_that_fails_leaves_the_outer_one_as_it_was(events, fails):
    with T.PassContext(opt_level=3, instruments=[Recorder(events, "outer")]) as outer:
        with pytest.raises(af.PassError, match="inner breaks"):
            with T.PassContext(instruments=[Recorder(events, "inner", fails)]):
                events.append("body")
        assert T.PassContext.current() is outer
        assert len(outer.instruments) == 1
        record_pass(events, "pass", 3)(model())
    assert events[-5:] == ["outer should_run", "outer before", "pass", "outer after", "outer exit"]
    assert ("body" in events) == (fails == "exit")


def test_a_context_may_be_entered_again_and_inside_of_itself(events):
    context = T.PassContext(instruments=[Recorder(events, "1")])
    with context:
        pass
    with context, context as inner:
        assert inner is context
        with T.PassContext():
            pass
        record_pass(events, "pass")(model())
    assert events == [
        "1 enter", "1 exit",
        "1 enter", "1 enter", "1 should_run", "1 before", "pass", "1 after", "1 exit", "1 exit",
    ]  # fmt: skip


def test_contexts_are_left_in_order():
    outer, inner = T.PassContext(), T.PassContext()
    with pytest.raises(RuntimeError, match="not the current"):
        outer.__exit__(None, None, None)
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(RuntimeError, match="not the current"):
        outer.__exit__(None, None, None)
    assert T.PassContext.current() is inner
    inner.__exit__(None, None, None)
    assert T.PassContext.current() is outer
    outer.__exit__(None, None, None)
    with pytest.raises(RuntimeError, match="not the current"):
        outer.__exit__(None, None, None)


def test_a_pass_cannot_leave_the_context_that_it_runs_under(events):
    @T.module_pass(opt_level=0)
    def leaves(mod, ctx):
        for which in [ctx, context]:
            with pytest.raises(RuntimeError, match="not the current"):
                which.__exit__(None, None, None)
        events.append("stayed")
        return mod

    with T.PassContext() as context:
        leaves(model())
        assert T.PassContext.current() is context
    assert events == ["stayed"]


def test_a_pass_may_open_a_context_of_its_own(events):
    high = record_pass(events, "high", 3)

    @T.module_pass(opt_level=0)
    def opens(mod, ctx):
        with T.PassContext(opt_level=3, instruments=[Recorder(events, "in")]) as inner:
            assert T.PassContext.current() is inner
            high(mod.copy())
        assert T.PassContext.current().opt_level == 1
        high(mod.copy())
        return mod

    with T.PassContext(opt_level=1, instruments=[Recorder(events, "out")]) as outer:
        opens(model())
        assert T.PassContext.current() is outer
    assert events == [
        "out enter", "out should_run", "out before",
        "in enter", "in should_run", "in before", "high", "in after", "in exit",
        "out after", "out exit",
    ]  # fmt: skip


def test_many_contexts_may_be_nested(events):
    with contextlib.ExitStack() as stack:
        for _ in range(5_000):
            last = stack.enter_context(T.PassContext(opt_level=3))
        assert T.PassContext.current() is last
        record_pass(events, "high", 3)(model())
    assert events == ["high"] and T.PassContext.current().opt_level == 2


# ---- threads -------------------------------------------------------------------------------------


def test_a_thread_has_a_context_of_its_own(events):
    high = record_pass(events, "high", 3)
    with T.PassContext(opt_level=3, instruments=[Recorder(events, "1")]) as context:
        level = on_a_thread(lambda: (T.PassContext.current().opt_level, high(model())))[0]
        assert level == 2 and events == ["1 enter"]
        assert T.PassContext.current() is context


def test_a_context_may_be_given_to_a_thread(events):
    high = record_pass(events, "high", 3)

    def work():
        with context as inner:
            high(model())
            return T.PassContext.current() is inner

    with T.PassContext(opt_level=3, instruments=[Recorder(events, "1")]) as context:
        assert on_a_thread(work)
        # On the other thread it was entered and left, and here it still is the current one.
        assert T.PassContext.current() is context
    assert events == [
        "1 enter",
        "1 enter", "1 should_run", "1 before", "high", "1 after", "1 exit",
        "1 exit",
    ]  # fmt: skip
    on_a_thread(lambda: high(model(), context))
    assert events.count("high") == 2


def test_a_context_is_left_on_its_thread():
    with T.PassContext() as context:
        with pytest.raises(RuntimeError, match="not the current"):
            on_a_thread(lambda: context.__exit__(None, None, None))
        assert T.PassContext.current() is context


def test_an_exception_of_an_instrument_on_a_thread_stays_there(events):
    def work():
        with T.PassContext(instruments=[Recorder(events, "1", "before")]):
            record_pass(events, "pass")(model())

    with T.PassContext(opt_level=3) as context:
        with pytest.raises(af.PassError, match="1 breaks"):
            on_a_thread(work)
        assert T.PassContext.current() is context
    assert events == ["1 enter", "1 should_run", "1 before", "1 exit"]


def test_threads_with_contexts_of_their_own_run_side_by_side():
    count, rounds = 4, 25
    together = threading.Barrier(count, timeout=60)
    heard = [[] for _ in range(count)]
    mod = af.loads(FOLDABLE)

    def work(number):
        events = heard[number]
        passes = [T.FoldConstant(), record_pass(events, f"pass {number}"), T.DeadCodeElimination()]
        together.wait()
        for _ in range(rounds):
            with T.PassContext(opt_level=2 + number, instruments=[Names(events)]) as context:
                assert T.Sequential(passes)(mod) == af.loads(FOLDED)
                assert T.PassContext.current() is context and context.opt_level == 2 + number

    failed = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:
            failed.append(error)
            together.abort()

    threads = [threading.Thread(target=guarded, args=[i], daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not failed and not any(thread.is_alive() for thread in threads)
    for number, events in enumerate(heard):
        mine = f"pass {number}"
        # The pass notes itself too, after its instrument.
        once = ["sequential", "FoldConstant", mine, mine, "DeadCodeElimination"]
        assert events == once * rounds
    assert mod == af.loads(FOLDABLE)


def test_instruments_and_passes_in_python_run_on_the_calling_thread():
    text = "".join(FOLDABLE.replace("@main", f"@f{i}") for i in range(40))
    where = set()

    class Where(I.PassInstrument):
        def should_run(self, mod, info):
            where.add(threading.get_ident())
            return True

        def run_after_pass(self, mod, info):
            where.add(threading.get_ident())

    @T.function_pass(opt_level=0)
    def between(func, mod, ctx):
        where.add(threading.get_ident())
        assert ctx.threads == 2
        return func

    def run():
        sequence = T.Sequential([T.FoldConstant(), between, T.DeadCodeElimination()])
        with T.PassContext(threads=2, instruments=[Where()]):
            return sequence(af.loads(text)), threading.get_ident()

    after, ident = on_a_thread(run)
    assert where == {ident}
    assert after == T.Sequential([T.FoldConstant(), T.DeadCodeElimination()])(af.loads(text))


NESTED = """
import threading
import anfora as af
from anfora import transform as T

@T.module_pass(opt_level=0)
def again(mod, ctx):
    return again(mod)

def work():
    try:
        again(af.Module())
    except af.PassError as error:
        print("nest more than" in str(error))

threading.stack_size({kib} << 10)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


@pytest.mark.parametrize("kib", [8 << 10, 256, 64])
def test_passes_that_run_passes_without_end_are_an_error(kib):
    program = [sys.executable, "-c", NESTED.format(kib=kib)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
