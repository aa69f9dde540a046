"""Handles of what has changed, of what is over, and of other modules."""

import anfora as af
import pytest
from anfora import pattern as P
from anfora import transform as T
from anfora import visitor as V
from support import TEXT, mod, public


def handles(mod):
    f = mod["main"]
    return [f.bindings[0], f.bindings[0].value, f.params[0], f.result, f.body]


def change(m):
    V.post_order_rewrite(m["main"], lambda e: e.args[0] if e.op == "exp" else None)


@pytest.mark.parametrize(
    "event",
    [change, lambda m: m.remove("main"), lambda m: T.O2(m) and T.FoldConstant().apply(m)],
)
def test_handles_of_an_earlier_state(event, mod):
    kept = handles(mod)
    bindings = mod["main"].bindings
    event(mod)
    kept.append(bindings[0])
    for handle in kept:
        for name, _, static in public(type(handle)):
            if not callable(static):
                with pytest.raises(af.StaleError):
                    getattr(handle, name)
        assert "stale" in repr(handle) and handle == handle
        hash(handle)
        with pytest.raises(af.StaleError):
            str(handle)


def test_handles_of_what_is_over(mod):
    kept = []

    def run(m, ctx):
        kept.extend([m, m["main"], *handles(m), m["main"].ret_type])
        return m

    T.Pass("module", "keep", run).apply(mod)
    watch = type("Watch", (), {"run_before_pass": lambda self, m, info: run(m, info)})()
    with T.PassContext(instruments=[watch]):
        T.FoldConstant()(mod)
    assert len(kept) == 16
    for handle in kept:
        repr(handle) if not isinstance(handle, af.Type) else None
        for name, _, static in public(type(handle)):
            if callable(static) or name == "module":
                continue
            with pytest.raises(af.StaleError):
                getattr(handle, name)
        if isinstance(handle, af.Module):
            for use in [handle.text, handle.copy, handle.verify, lambda h=handle: T.O2(h)]:
                with pytest.raises(af.StaleError):
                    use()
            with pytest.raises(af.StaleError):
                handle.set_attr("x", 1)
            assert "ended" in repr(handle)


def test_handles_of_other_modules_are_refused(mod):
    other = af.loads(TEXT)
    fb = af.FunctionBuilder(mod, "built")
    twin = af.FunctionBuilder(mod, "twin")
    fb.param("x", "float32")
    for handle in [*handles(mod), *handles(other), twin.param("x", "float32")]:
        with pytest.raises(af.StaleError):
            fb.emit("exp", handle)
        with pytest.raises(af.StaleError):
            V.post_order_rewrite(mod, lambda e, h=handle: h if e.op == "exp" else None)
    assert mod == af.loads(TEXT)


def test_a_mutator_may_keep_no_handle_for_the_next_function():
    text = "".join(f"let %v{i} = exp(%x); " for i in range(100))
    mod = af.loads(f"def @a(%x: float32) {{ {text} %x }} def @b(%y: float32) {{ exp(%y) }}")
    before = mod.text()

    class Keeps(V.ExprMutator):
        kept = None

        def visit_call_(self, call):
            if self.kept is not None and call.args[0].name == "y":
                with pytest.raises(af.StaleError):
                    self.kept.op
                return self.kept
            self.kept = call

    with pytest.raises(af.StaleError):
        Keeps().visit(mod)
    assert mod.text() == before
    mod.verify()


def test_a_mutator_may_return_nothing_out_of_scope():
    mod = af.loads(
        "def @main(%x: float32, %c: bool) { let %b = if (%c) { let %d = exp(%x); tanh(%d) } "
        "else { let %e = sin(%x); cos(%e) }; %b }"
    )

    class Keeps(V.ExprMutator):
        kept = None

        def visit_call_(self, call):
            if call.op == "tanh":
                self.kept = call.args[0]
            return self.kept if call.op == "cos" else None

    with pytest.raises((af.StaleError, af.VerifyError)):
        Keeps().visit(mod)
    mod.verify()


def test_handles_of_a_region_that_was_edited(mod):
    def run(block, m, ctx):
        value = block.bindings[0].value
        P.rewrite(block, P.Rule("r", "exp(%x)", "sin(%x)"))
        with pytest.raises(af.StaleError):
            value.op
        return block

    T.Pass("dataflowblock", "p", run)(mod)


def test_the_module_of_a_region_pass_cannot_be_edited(mod):
    def run(block, m, ctx):
        with pytest.raises(af.AnforaError):
            m.rename("main", "renamed")
        return block

    T.Pass("dataflowblock", "p", run)(mod)
