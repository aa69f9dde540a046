"""Passes of dataflow regions, and what passes return. TVM's tests, on our programs.

``docs/peer-cases/python.md`` joins TVM's tests with these.
"""

import anfora as af
import pytest
from anfora import transform as T
from tvm_recorders import LOG, REGION, SUBTRACT_AND_LOG, model, ops, record_pass


@pytest.fixture
def events():
    return []


# ---- passes of dataflow regions ------------------------------------------------------------------


def without_tanh(block, mod, ctx):
    return af.pattern.rewrite(block, af.pattern.Rule("tanh", "tanh(%x)", "%x"))


def test_a_block_pass_may_rewrite_an_output_to_a_variable():
    after = T.dataflowblock_pass(without_tanh, opt_level=0)(af.loads(REGION))
    after.verify()
    assert ops(after["main"]) == ["match_cast", "exp", "exp"]


@pytest.mark.parametrize("outside", ["exp(%b)", "match_cast(%b, to=Tensor[(n,), float32])"])
@pytest.mark.parametrize("to", [None, "Tensor[(other,), float32]"])
def test_a_block_pass_cannot_take_a_dimension_away(to, outside):
    @T.dataflowblock_pass(opt_level=0, name="uncast")
    def uncast(block, mod, ctx):
        class Uncast(af.visitor.ExprMutator):
            def visit_call_(self, call):
                if call.op != "match_cast":
                    return None
                return self.match_cast(call.args[0], to) if to else call.args[0]

        return Uncast().visit(block)

    text = REGION.replace("let %c = exp(%b)", f"let %c = {outside}")
    mod = af.loads(text)
    told = r"cannot replace one of type Tensor\[\(n,\), float32\]"
    with pytest.raises(af.PassError, match=told) as raised:
        uncast.apply(mod)
    assert raised.value.pass_name == "uncast"
    assert [(d.function, d.binding) for d in raised.value.diagnostics] == [("main", "m")]
    # The binding is underlined.
    assert "let %m" in str(raised.value) and "^^" in str(raised.value)
    assert mod == af.loads(text)


def test_a_block_pass_sees_each_region_with_its_outputs(events):
    @T.dataflowblock_pass(opt_level=0)
    class Look:
        def transform_dataflowblock(self, block, mod, ctx):
            events.append(([b.name for b in block.bindings], [o.name for o in block.outputs]))
            events.append([i.name for i in block.inputs])
            assert list(mod) == ["main"]
            return block

    assert not Look().apply(af.loads(REGION)).changed
    assert events == [(["m", "a", "b"], ["b"]), ["x"]]
    del events[:]
    assert not Look().apply(af.loads(LOG)).changed
    assert events == []


def test_regions_become_ordinary_bindings():
    after = T.ToNonDataflow()(af.loads(REGION))
    assert "dataflow" not in after.text()
    assert ops(after["main"]) == ops(af.loads(REGION)["main"])
    assert [p.name for p in after["main"].params] == ["x", "y"]
    assert [b.name for b in after["main"].bindings] == ["m", "a", "b", "c"]


# ---- what passes return --------------------------------------------------------------------------


@pytest.mark.parametrize("returned", [None, 3, model])
def test_a_pass_returns_what_it_was_given(returned):
    module = T.module_pass(lambda mod, ctx: returned, name="module")
    function = T.function_pass(lambda func, mod, ctx: returned, name="function")
    block = T.dataflowblock_pass(lambda block, mod, ctx: returned, name="block")
    for made, word in [(module, "mod"), (function, "func"), (block, "block")]:
        with pytest.raises(af.PassError, match=f"return {word}") as raised:
            made(af.loads(REGION))
        assert isinstance(raised.value.__cause__, TypeError)


def test_a_function_pass_leaves_declarations_and_marked_functions_alone(events):
    text = "declare @other(%x: float32) -> float32;\n" + SUBTRACT_AND_LOG.replace(
        "@logarithm(%z: Tensor[(10,), float32])",
        "@logarithm(%z: Tensor[(10,), float32], SkipOptimization=1)",
    )

    @T.function_pass(opt_level=0)
    def names(func, mod, ctx):
        events.append(func.name)
        return func

    names(af.loads(text))
    assert events == ["difference"]


def test_a_pass_may_be_made_in_a_pass_and_runs_under_its_context(events):
    @T.module_pass(opt_level=0)
    def outer(mod, ctx):
        inner = T.Sequential([record_pass(events, "low"), record_pass(events, "high", 3)])
        return inner(mod)

    with T.PassContext(opt_level=1):
        outer(model())
    with T.PassContext(opt_level=3):
        outer(model())
    assert events == ["low", "low", "high"]


def test_a_context_may_be_given_with_the_call(events):
    high = record_pass(events, "high", 3)
    high(model(), T.PassContext(opt_level=3))
    high(model())
    assert not high.apply(model(), T.PassContext(opt_level=3)).skipped
    assert high.apply(model()).skipped
    assert events == ["high", "high"]
    # The context that was given is the current one while the pass runs.
    context = T.PassContext(opt_level=5)
    levels = T.module_pass(lambda mod, ctx: events.append(T.PassContext.current().opt_level) or mod)
    levels(model(), context)
    assert events[-1] == 5
    with pytest.raises(TypeError):
        high(model(), 3)
