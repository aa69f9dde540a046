"""What the package promises on one page: each part is used as its users would."""

import copy
import pickle
import threading

import anfora as af
import pytest
from anfora import instrument as I
from anfora import transform as T

TEXT = """def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
  let %a = multiply(%x, 1f);
  let %b = nn.silu(%a);
  let %c = nn.silu(%a);
  let %d = add(%b, %c);
  let %e = add(1f, 2f);
  multiply(%d, %e)
}

def @other(%x: Tensor[(), float32]) -> Tensor[(), float32] {
  exp(%x)
}
"""


@pytest.fixture
def mod():
    return af.loads(TEXT)


def test_a_context_with_settings_and_instruments(mod, capsys):
    before = mod.text()
    with T.PassContext(
        opt_level=3,
        required_pass=["FoldBatchNorm"],
        disabled_pass=["FuseOps"],
        config={"FoldConstant.max_growth_bytes": "64KiB"},
        instruments=[timing := I.PassTimingInstrument(), I.PrintChanged(diff=True)],
    ) as ctx:
        assert T.PassContext.current() is ctx
        small = T.Sequential(
            [T.FoldConstant(), T.EliminateCommonSubexpr(commutative=True), T.DeadCodeElimination()]
        )(mod)
    assert mod.text() == before and small != mod
    assert [b.name for b in small["main"].bindings] == ["a", "b", "d"]
    assert "EliminateCommonSubexpr" in timing.render() and timing.total > 0
    assert ctx.statistics["FoldConstant"]["folded"] == 1
    assert ctx.config == {"FoldConstant.max_growth_bytes": "65536"}
    assert "-  let %c = nn.silu(%a);" in capsys.readouterr().out
    assert T.PassContext.current() is not ctx


def test_pipelines_as_text(mod):
    assert T.parse_pipeline("O2")(mod) == T.O2(mod)
    repeated = T.parse_pipeline("fixpoint<4>(CanonicalizeBindings,Cse{commutative=true})".replace("Cse", "EliminateCommonSubexpr"))
    assert repeated(mod) == T.Repeat([T.CanonicalizeBindings(), T.EliminateCommonSubexpr(commutative=True)])(mod)
    assert T.parse_pipeline("O2,FuseOps{max_depth=64}")(mod) == T.Sequential([T.parse_pipeline("O2"), T.FuseOps(max_depth=64)])(mod)
    assert "FoldConstant.max_growth_bytes" in T.PassContext.list_configs()
    with pytest.raises(af.ConfigError, match="did you mean `FuseOps`"):
        T.parse_pipeline("O2,FuseOpps")
    with pytest.raises(KeyError):
        T.EliminateCommonSubexpr(commutative=3)


def test_apply_works_in_place(mod):
    pure = T.EliminateCommonSubexpr()(mod)
    outcome = T.EliminateCommonSubexpr().apply(mod)
    assert outcome.changed and outcome.skipped is None and mod == pure
    assert not T.EliminateCommonSubexpr().apply(mod).changed
    with T.PassContext(disabled_pass=["EliminateCommonSubexpr"]):
        skipped = T.EliminateCommonSubexpr().apply(mod)
    assert not skipped.changed and "disabled" in skipped.skipped


@T.function_pass(opt_level=1, name="MulByOne")
def mul_by_one(func, mod, ctx):
    one = af.pattern.literal(1)
    x_times_one = af.pattern.op("multiply", af.pattern.capture("x"), one)
    return af.pattern.rewrite(func, [af.pattern.Rule("x*1", x_times_one, af.pattern.capture("x"))])


@T.module_pass(opt_level=1)
class RenameAll:
    """Renames all functions."""

    def __init__(self, prefix):
        self.prefix = prefix

    def transform_module(self, mod, ctx):
        for name in list(mod.functions):
            mod.rename(name, self.prefix + name)
        return mod


class Swish(af.visitor.PyExprMutator):
    def visit_call_(self, call):
        if call.op == "nn.silu":
            gate = self.emit("sigmoid", call.args[0])
            return self.emit("multiply", call.args[0], gate, name="swish")


@T.dataflowblock_pass
def swish_blocks(block, mod, ctx):
    assert [v.name for v in block.inputs] == ["x"] and len(block.outputs) == 2
    return Swish().visit(block)


def test_passes_from_decorators(mod):
    assert "multiply(%x, 1f)" not in mul_by_one(mod).text()
    assert mul_by_one.info == T.PassInfo(1, "MulByOne")
    renamed = RenameAll("p_")(mod)
    assert list(renamed) == ["p_main", "p_other"] and RenameAll("p_").prefix == "p_"
    assert isinstance(RenameAll("p_"), T.Pass) and RenameAll.__doc__ == "Renames all functions."
    regions = T.ConvertToDataflow()(mod)
    swished = swish_blocks(regions)
    assert "sigmoid" in swished.text() and "dataflow" in swished.text() and "silu" not in swished.text()
    with T.PassContext(opt_level=0):
        assert mul_by_one(mod) == mod


def test_a_pass_that_raises_leaves_the_module(mod):
    @T.module_pass
    def broken(mod, ctx):
        mod.rename("main", "elsewhere")
        del mod["other"]
        raise RuntimeError("boom")

    before = copy.copy(mod)
    with pytest.raises(af.PassError, match="boom") as caught:
        broken.apply(mod)
    assert mod == before and isinstance(caught.value.__cause__, RuntimeError)
    assert caught.value.pass_name == "broken"

    @T.module_pass
    def forgets(mod, ctx):
        pass

    with pytest.raises(af.PassError, match="did you mean `return mod`"):
        forgets(mod)


def test_a_module_that_is_returned_takes_the_place(mod):
    @T.module_pass
    def replaced(mod, ctx):
        return T.Sequential([T.EliminateCommonSubexpr(), RenameAll("q_")])(mod)

    assert list(replaced(mod)) == ["q_main", "q_other"]
    replaced.apply(mod)
    assert list(mod) == ["q_main", "q_other"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_is_itself(mod, error):
    @T.module_pass
    def interrupted(mod, ctx):
        raise error

    with pytest.raises(error):
        T.Sequential([interrupted])(mod)


def test_instruments_in_python_beside_those_of_the_toolkit(mod):
    seen = []

    @I.pass_instrument
    class CountNodes:
        def enter_pass_ctx(self):
            seen.append("enter")

        def exit_pass_ctx(self):
            seen.append("exit")

        def should_run(self, mod, info):
            return info.name != "DeadCodeElimination"

        def run_before_pass(self, mod, info):
            seen.append(("before", info.name, len(mod["main"].bindings)))

        def run_after_pass(self, mod, info):
            seen.append(("after", info.name, len(mod["main"].bindings)))
            self.kept = mod

    counter = CountNodes()
    with T.PassContext(instruments=[counter, I.WellFormedInstrument()]):
        T.Sequential([T.FoldConstant(), T.DeadCodeElimination(), T.EliminateCommonSubexpr()])(mod)
    assert seen == [
        "enter",
        ("before", "sequential", 5),
        ("before", "FoldConstant", 5),
        ("after", "FoldConstant", 4),
        ("before", "EliminateCommonSubexpr", 4),
        ("after", "EliminateCommonSubexpr", 3),
        ("after", "sequential", 3),
        "exit",
    ]
    with pytest.raises(af.StaleError):
        counter.kept.text()


def test_visitors(mod):
    class Collect(af.visitor.PyExprVisitor):
        def __init__(self):
            self.ops = []

        def visit_call_(self, call):
            self.ops.append(call.op)

    every = Collect()
    every.visit(mod["main"])
    assert every.ops == ["multiply", "nn.silu", "nn.silu", "add", "add", "multiply"]
    some = Collect()
    some.only("nn.silu").visit(mod)
    assert some.ops == ["nn.silu", "nn.silu"]


def test_threads_with_python_passes_and_instruments():
    """No thread waits for the interpreter lock while another that holds it waits for the thread."""
    functions = "\n".join(
        f"def @f{i}(%x: Tensor[(8,), float32]) {{ let %a = exp(%x); let %b = exp(%x); add(%a, %b) }}"
        for i in range(300)
    )
    mod = af.loads(functions)
    passes = []

    @I.pass_instrument
    class Watch:
        def run_after_pass(self, mod, info):
            passes.append(info.name)

    @T.function_pass
    def middle(func, mod, ctx):
        assert threading.get_ident() == caller
        return Swish().visit(func)

    pipeline = T.Sequential([T.parse_pipeline("O2"), middle, T.parse_pipeline("O2")])
    results = []

    def run():
        nonlocal caller
        with T.PassContext(threads=2, instruments=[Watch()]):
            results.append(pipeline(mod))

    caller = threading.get_ident()
    run()
    thread = threading.Thread(target=lambda: [results.append(T.O2(mod)) for _ in range(5)])
    thread.start()
    for _ in range(5):
        run()
    thread.join(timeout=60)
    assert not thread.is_alive()
    assert len({r.text() for r in results}) == 1 and "middle" in passes


def test_pickle_of_a_module_with_every_literal(mod):
    assert pickle.loads(pickle.dumps(mod)).text() == mod.text()
