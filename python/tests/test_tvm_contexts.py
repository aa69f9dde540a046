"""Contexts: settings, levels, lists of passes and dependencies. TVM's tests, on our programs, and
what they leave open.

``docs/peer-cases/python.md`` joins TVM's tests with these.
"""

import anfora as af
import pytest
from anfora import instrument as I
from anfora import transform as T
from tvm_recorders import FOLDABLE, FOLDED, Names, Recorder, model, record_pass


@pytest.fixture
def events():
    return []


# ---- settings ------------------------------------------------------------------------------------


def test_settings_are_listed_with_their_types():
    configs = T.PassContext.list_configs()
    assert {"FoldConstant.max_growth_bytes", "FuseOps.max_depth", "Rules.trace"} <= set(configs)
    depth = configs["FuseOps.max_depth"]
    assert set(depth) == {"type", "default", "help"}
    assert "whole number" in depth["type"] and depth["default"] == "256" and depth["help"]
    assert configs["Rules.trace"]["type"] == "`true` or `false`"


def test_settings_that_are_given_are_read_and_the_rest_have_their_defaults():
    config = {"FuseOps.max_depth": 3, "Rules.trace": True, "FoldConstant.max_growth_bytes": "1MiB"}
    with T.PassContext(config=config) as context:
        assert context.config == {
            "FuseOps.max_depth": "3",
            "Rules.trace": "true",
            "FoldConstant.max_growth_bytes": "1048576",
        }
    assert T.PassContext().config == {}
    for nothing in [None, {}]:
        assert T.PassContext(config=nothing).config == {}
    # What is given as text is the same, and so is what is read.
    assert T.PassContext(config={"FuseOps.max_depth": "3"}).config == {"FuseOps.max_depth": "3"}
    assert T.PassContext(config=context.config).config == context.config


@pytest.mark.parametrize(
    "key, value, told",
    [
        ("FuseOps.max_depth", "many", "takes a whole number"),
        ("FuseOps.max_depth", True, "takes a whole number"),
        ("FuseOps.max_depth", 1.5, "takes a whole number"),
        ("FuseOps.max_depth", -1, "takes a whole number"),
        ("FuseOps.max_depth", None, "takes a whole number"),
        ("FuseOps.max_depth", {"limit": 3}, "takes a whole number"),
        ("FuseOps.max_depth", [1, 2], "takes a whole number"),
        ("FuseOps.max_depth", "", "FuseOps.max_depth"),
        ("Rules.trace", "invalid", "takes `true` or `false`"),
        ("FuseOps.max_dept", 3, "unknown config key `FuseOps.max_dept`; did you mean"),
        ("unknown.configuration", True, "unknown config key `unknown.configuration`"),
    ],
)
def test_wrong_settings_are_refused(key, value, told):
    with pytest.raises(af.ConfigError, match=told) as raised:
        T.PassContext(config={key: value})
    assert isinstance(raised.value, af.AnforaError) and isinstance(raised.value, KeyError)


def test_a_setting_reaches_its_pass_and_only_in_its_context():
    fold = T.FoldConstant()
    with T.PassContext(config={"FoldConstant.max_work": 0}):
        assert fold(af.loads(FOLDABLE)) == af.loads(FOLDABLE)
    assert "multiply" not in fold(af.loads(FOLDABLE)).text()
    assert T.Sequential([fold, T.DeadCodeElimination()])(af.loads(FOLDABLE)) == af.loads(FOLDED)


def test_a_pass_in_python_reads_the_context(events):
    @T.module_pass(opt_level=1, name="reads")
    def reads(mod, ctx):
        current = T.PassContext.current()
        events.append(ctx is current)
        events.append((ctx.opt_level, ctx.required_pass, ctx.disabled_pass, ctx.config))
        return mod

    record_pass(events, "other")
    with T.PassContext(3, ["reads"], ["other"], config={"FuseOps.max_depth": 3}):
        reads(model())
    assert events == [True, (3, ["reads"], ["other"], {"FuseOps.max_depth": "3"})]


def test_the_context_of_a_pass_is_the_one_that_is_current(events):
    same = T.module_pass(lambda mod, ctx: events.append(ctx) or mod, name="same")
    with T.PassContext(instruments=[I.PassInstrument()]) as context:
        same(model())
    assert events[0] is context


def test_a_pass_sees_the_instruments_of_its_context(events):
    recorder = Recorder(events, "1")
    seen = []
    looks = T.module_pass(lambda mod, ctx: seen.extend(ctx.instruments) or mod, name="looks")
    with T.PassContext(instruments=[recorder]):
        looks(model())
    assert seen == [recorder]


def test_wrong_arguments_are_told():
    for wrong in [
        {"opt_level": "three"},
        {"opt_level": 2.5},
        {"required_pass": "FoldConstant"},
        {"disabled_pass": "FoldConstant"},
        {"required_pass": [3]},
        {"instruments": 3},
        {"config": {3: 3}},
        {"nothing": 3},
    ]:
        with pytest.raises(TypeError):
            T.PassContext(**wrong)
    for wrong in [{"opt_level": -1}, {"opt_level": 256}, {"threads": -1}]:
        with pytest.raises(ValueError, match="not"):
            T.PassContext(**wrong)


@pytest.mark.parametrize("config", [3, ["FuseOps.max_depth"], "FuseOps.max_depth=3"])
def test_settings_are_a_map(config):
    with pytest.raises(TypeError):
        T.PassContext(config=config)


# ---- PassInfo ------------------------------------------------------------------------------------


def test_infos_are_values():
    info = T.PassInfo(1, "xyz", ["FoldConstant"])
    assert info == T.PassInfo(opt_level=1, name="xyz", required=["FoldConstant"])
    for other in [
        T.PassInfo(2, "xyz", ["FoldConstant"]),
        T.PassInfo(1, "abc", ["FoldConstant"]),
        T.PassInfo(1, "xyz"),
        3,
    ]:
        assert info != other
    assert repr(info) == 'PassInfo(opt_level=1, name="xyz", required=["FoldConstant"])'
    with pytest.raises(AttributeError):
        info.name = "other"
    with pytest.raises(TypeError):
        T.PassInfo("xyz", 1)


def test_every_pass_has_an_info():
    def direct(mod, ctx):
        return mod

    made = T.module_pass(direct, opt_level=3, required=["FoldConstant", T.ToANormalForm()])
    assert made.info == T.PassInfo(3, "direct", ["FoldConstant", "ToANormalForm"])
    for name in ["FoldConstant", "ToANormalForm", "FuseOps", "PrintIR"]:
        assert getattr(T, name)().info == T.parse_pipeline(name).passes[0].info
        assert getattr(T, name)().info.name == name
    assert (T.FuseOps().info.opt_level, T.PrintIR().info.opt_level) == (1, 0)


@pytest.mark.parametrize("kind", [iter, set, dict.fromkeys])
def test_required_passes_may_be_in_any_collection(kind):
    made = T.module_pass(lambda mod, ctx: mod, name="any", required=kind(["FoldConstant"]))
    assert made.info.required == ["FoldConstant"]


def test_levels_that_there_are_not_are_value_errors():
    for level in [-1, 256]:
        with pytest.raises(ValueError, match="between 0 and 255"):
            T.PassInfo(level, "x")
        with pytest.raises(ValueError, match="between 0 and 255"):
            T.Sequential([], opt_level=level)


def test_levels_of_passes_that_there_are_not_are_value_errors():
    for decorator in [T.module_pass, T.function_pass, T.dataflowblock_pass]:
        for level in [-1, 256]:
            with pytest.raises(ValueError, match="between 0 and 255"):
                decorator(lambda *args: args[0], opt_level=level)


def test_infos_can_be_keys():
    counts = {T.PassInfo(1, "a"): 2}
    assert counts[T.PassInfo(1, "a")] == 2


# ---- levels and lists ----------------------------------------------------------------------------


def test_the_level_of_a_context_is_two_unless_another_is_given(events):
    assert T.PassContext().opt_level == 2 == T.PassContext.current().opt_level
    for level in [0, 1, 2, 3, 255]:
        record_pass(events, f"level {level}", level)(model())
    assert events == ["level 0", "level 1", "level 2"]
    del events[:]
    with T.PassContext(opt_level=255):
        record_pass(events, "highest", 255)(model())
    assert events == ["highest"]


def test_a_level_holds_for_a_pass_alone_too(events):
    # TVM asks for the level in sequences only.
    high = record_pass(events, "high", 3)
    with T.PassContext(opt_level=2):
        assert high(model()) == model()
        outcome = high.apply(model())
    assert events == [] and not outcome.changed
    assert outcome.skipped == "it runs from level 3, and the level is 2"
    assert repr(outcome) == "<Outcome skipped: it runs from level 3, and the level is 2>"


def test_disabled_beats_required_and_required_beats_the_level(events):
    passes = [record_pass(events, "high", 3), record_pass(events, "low", 0)]
    run = T.Sequential(passes)
    with T.PassContext(opt_level=0, required_pass=["high"]):
        run(model())
    assert events == ["high", "low"]
    del events[:]
    with T.PassContext(opt_level=3, disabled_pass=["low"]):
        run(model())
        assert passes[1].apply(model()).skipped == "it is disabled"
    assert events == ["high"]
    del events[:]
    with T.PassContext(opt_level=0, required_pass=["high", "low"], disabled_pass=["high", "low"]):
        run(model())
    assert events == []


def test_a_sequence_has_a_level_too(events):
    inner = T.Sequential([record_pass(events, "in")], opt_level=3)
    with T.PassContext(opt_level=2):
        assert inner.apply(model()).skipped
        assert T.Sequential([inner]).apply(model()).skipped is None
    assert events == []
    with T.PassContext(opt_level=3):
        inner(model())
    assert events == ["in"]


@pytest.mark.parametrize("named", ["by text", "by itself"])
def test_a_sequence_can_be_disabled_by_name(events, named):
    inner = T.Sequential([record_pass(events, "in")], name="the_inner")
    outer = T.Sequential([record_pass(events, "out"), inner])
    with T.PassContext(disabled_pass=["the_inner" if named == "by text" else inner]):
        outer(model())
    assert events == ["out"]


def test_passes_are_named_by_text_or_by_themselves(events):
    mine = record_pass(events, "mine", 3)
    context = T.PassContext(0, required_pass=[mine, "FoldConstant"], disabled_pass=[T.FuseOps()])
    assert context.required_pass == ["mine", "FoldConstant"]
    assert context.disabled_pass == ["FuseOps"]
    with context:
        mine(model())
    assert events == ["mine"]


def test_names_that_there_are_not_are_told(events):
    record_pass(events, "written_here")
    assert T.PassContext(required_pass=["written_here"]).required_pass == ["written_here"]
    for lists in [{"required_pass": ["FoldConstnt"]}, {"disabled_pass": ["FoldConstnt"]}]:
        with pytest.raises(af.ConfigError, match="did you mean `FoldConstant`"):
            T.PassContext(**lists)
    with pytest.raises(af.ConfigError, match="did you mean `written_here`"):
        T.PassContext(required_pass=["writen_here"])


def test_lists_are_copied(events):
    record_pass(events, "a")
    names, instruments = ["a"], [Recorder(events, "1")]
    context = T.PassContext(required_pass=names, instruments=instruments)
    names.append("b")
    instruments.clear()
    context.required_pass.append("c")
    assert context.required_pass == ["a"] and len(context.instruments) == 1


def test_skipped_passes_leave_a_remark(events):
    with T.PassContext(opt_level=0) as context:
        record_pass(events, "high", 3)(model())
        record_pass(events, "low", 0)(model())
        remarks = context.take_remarks()
        assert context.take_remarks() == []
        T.Sequential([record_pass(events, "high", 3)], name="around")(model())
        (inside,) = context.take_remarks()
    told = "pass `high` was skipped: it runs from level 3, and the level is 0"
    assert [(r.severity, r.message) for r in remarks] == [("remark", told)]
    # The sequence has left the remark.
    assert (inside.message, inside.pass_name) == (told, "around")


def test_a_remark_of_no_pass_names_none(events):
    with T.PassContext(opt_level=0) as context:
        record_pass(events, "high", 3)(model())
    assert [r.pass_name for r in context.take_remarks()] == [None]


# ---- dependencies --------------------------------------------------------------------------------


def test_dependencies_run_first_whatever_the_level(events):
    needs = record_pass([], "needs", 0, required=["FoldConstant", "DeadCodeElimination"])
    with T.PassContext(opt_level=0, instruments=[Names(events)]):
        after = needs(af.loads(FOLDABLE))
        assert events == ["FoldConstant", "DeadCodeElimination", "needs"]
        # What they changed counts.
        assert after == af.loads(FOLDED)
        assert needs.apply(af.loads(FOLDABLE)).changed
        assert not needs.apply(af.loads(FOLDED)).changed


def test_dependencies_run_outside_of_every_context_too():
    needs = record_pass([], "needs", 0, required=["FoldConstant", "DeadCodeElimination"])
    assert needs(af.loads(FOLDABLE)) == af.loads(FOLDED)


def test_passes_print_to_python_outside_of_every_context_too(capsys):
    with T.PassContext():
        T.PrintIR()(af.loads(FOLDABLE))
    inside = capsys.readouterr().out
    T.PrintIR()(af.loads(FOLDABLE))
    assert inside and capsys.readouterr().out == inside


def test_a_dependency_that_has_run_on_the_module_as_it_is_does_not_run_again(events):
    needs = record_pass([], "needs", 0, required=["FoldConstant"])
    with T.PassContext(instruments=[Names(events)]):
        T.Sequential([T.FoldConstant(), needs, needs])(model())
    assert events == ["sequential", "FoldConstant", "needs", "needs"]
    del events[:]

    @T.module_pass(opt_level=0)
    def adds(mod, ctx):
        mod["main"].set_attr("marked", len(mod["main"].attrs))
        return mod

    with T.PassContext(instruments=[Names(events)]):
        T.Sequential([needs, adds, needs])(model())
    assert events == ["sequential", "FoldConstant", "needs", "adds", "FoldConstant", "needs"]


def test_dependencies_of_a_pass_that_does_not_run_do_not_run(events):
    needs = record_pass([], "needs_high", 3, required=["FoldConstant"])
    with T.PassContext(opt_level=2, instruments=[Names(events)]):
        assert needs.apply(model()).skipped
    with T.PassContext(opt_level=3, instruments=[Names(events, veto=["needs_high"])]):
        assert needs.apply(model()).skipped
    assert events == []


def test_a_sequence_has_dependencies(events):
    sequence = T.Sequential([record_pass([], "in")], name="needs_too", required=["FoldConstant"])
    with T.PassContext(instruments=[Names(events)]):
        sequence(model())
    assert events == ["FoldConstant", "needs_too", "in"]


@pytest.mark.parametrize(
    "settings, veto, told",
    [
        ({"disabled_pass": ["FoldConstant"]}, (), "it is disabled"),
        ({}, ("FoldConstant",), "Names did not let it run"),
    ],
)
def test_a_dependency_that_does_not_run_is_an_error_that_names_both(events, settings, veto, told):
    needs = record_pass(events, "needs", 0, required=["FoldConstant"])
    with pytest.raises(af.PassError, match=told) as raised:
        with T.PassContext(instruments=[Names([], veto)], **settings):
            needs(model())
    assert raised.value.pass_name == "needs"
    assert "`needs`" in str(raised.value) and "`FoldConstant`" in str(raised.value)
    assert raised.value.__cause__ is None
    assert events == []


def test_a_required_dependency_is_not_asked_about(events):
    needs = record_pass([], "needs", 0, required=["FoldConstant"])
    names = Names(events, veto=["FoldConstant"])
    with T.PassContext(required_pass=["FoldConstant"], instruments=[names]):
        needs(model())
    assert events == ["FoldConstant", "needs"]


def test_unknown_dependencies_are_told(events):
    needs = record_pass(events, "needs", 0, required=["FoldConstnt"])
    with pytest.raises(af.PassError, match="did you mean `FoldConstant`") as raised:
        with T.PassContext():
            needs(model())
    assert raised.value.pass_name == "needs" and events == []


def test_a_pass_in_python_depends_on_one_that_ran_before_it(events):
    first = record_pass(events, "first_here")
    second = record_pass(events, "second_here", required=["first_here"])
    with T.PassContext():
        T.Sequential([first, second])(model())
    assert events == ["first_here", "second_here"]


def test_a_pass_in_python_that_is_required_runs_first(events):
    first = record_pass(events, "required_here")
    second = record_pass(events, "requires_here", required=["required_here"])
    third = record_pass(events, "requires_both", required=[second])
    third(model())
    assert events == ["required_here", "requires_here", "requires_both"]
    events.clear()
    with T.PassContext():
        T.Sequential([second, second])(model())
    assert events == ["required_here", "requires_here", "requires_here"]
    assert first.info.name == "required_here"


def test_a_pass_in_python_with_a_misspelt_dependency_is_told(events):
    first = record_pass(events, "spelt_right")
    second = record_pass(events, "spells_wrong", required=["spelt_rigth"])
    with pytest.raises(af.PassError, match="did you mean `spelt_right`"):
        with T.PassContext():
            second(model())
    assert events == [] and first.info.required == []


def test_the_context_outside_keeps_its_instruments_when_it_learns_of_a_pass(events):
    current = T.PassContext.current()
    current.override_instruments([Names(events)])
    try:
        first = record_pass([], "new_here")
        record_pass([], "needs_new", required=[first])(model())
        assert events == ["new_here", "needs_new"]
    finally:
        T.PassContext.current().override_instruments([])
