"""What the tests of contexts, sequences and instruments share: a program, passes and instruments
that write down what happens."""

import anfora as af
from anfora import instrument as I
from anfora import transform as T

MODEL = """def @main(
  %x: Tensor[(3, 4), float32], %y: Tensor[(3, 4), float32], %z: Tensor[(3, 4), float32]
) -> Tensor[(3, 4), float32] {
  let %sum = add(%x, %y);
  let %gap = subtract(%x, %z);
  let %ratio = divide(%sum, %gap);
  let %scaled = multiply(%sum, %ratio);
  add(%scaled, %gap)
}
"""

LOG = """def @main(%x: Tensor[(10,), float32]) -> Tensor[(10,), float32] {
  let %y = log(%x);
  %y
}
"""
SUBTRACT_AND_LOG = """def @difference(
  %x: Tensor[(10,), float32], %y: Tensor[(10,), float32]
) -> Tensor[(10,), float32] {
  let %r = subtract(%x, %y);
  %r
}

def @logarithm(%z: Tensor[(10,), float32]) -> Tensor[(10,), float32] {
  let %r = log(%z);
  %r
}
"""
REGION = """def @main(%x: Tensor[?, float32], %y: Tensor[(k,), float32]) -> Tensor[?, float32] {
  dataflow {
    let %m = match_cast(%x, to=Tensor[(n,), float32]);
    let %a = exp(%m);
    let %b = tanh(%a);
    output(%b);
  }
  let %c = exp(%b);
  %c
}
"""
FOLDABLE = """def @main(%x: float32) -> float32 {
  let %a = add(1f, 2f);
  let %b = add(%x, %a);
  %b
}
"""
FOLDED = """def @main(%x: float32) -> float32 {
  let %b = add(%x, 3f);
  %b
}
"""


def model():
    """Returns a module with one function of five calls."""
    return af.loads(MODEL)


def record_pass(events, name, opt_level=0, required=None):
    """Returns a pass that notes its name in ``events`` and changes nothing."""

    @T.module_pass(opt_level=opt_level, name=name, required=required)
    def run(mod, _ctx):
        events.append(name)
        return mod

    return run


@T.module_pass(opt_level=2)
def drop_the_model(mod, ctx):
    """Empties the module, so that a rollback can be seen."""
    for name in list(mod):
        mod.remove(name)
    return mod


@I.pass_instrument
class Recorder:
    """Notes every hook as ``"id hook"``, in the order of the calls. ``fails`` names a hook that
    raises; ``veto`` names passes that it does not let run."""

    def __init__(self, events, id, fails=None, veto=(), error=None):
        self.events = events
        self.id = id
        self.fails = fails
        self.veto = veto
        self.error = error or RuntimeError(f"{id} breaks")

    def note(self, hook):
        self.events.append(f"{self.id} {hook}")
        if hook == self.fails:
            raise self.error

    def enter_pass_ctx(self):
        self.note("enter")

    def exit_pass_ctx(self):
        self.note("exit")

    def should_run(self, mod, info):
        self.note("should_run")
        return info.name not in self.veto

    def run_before_pass(self, mod, info):
        self.note("before")

    def run_after_pass(self, mod, info):
        self.note("after")


class FullRecorder(Recorder):
    """Notes ``on_error`` and ``on_end`` too, which TVM does not have."""

    def on_error(self, mod, info, error):
        self.note("on_error")

    def on_end(self, mod, info, outcome):
        self.note("on_end")


class Names(I.PassInstrument):
    """Notes the passes that run."""

    def __init__(self, events, veto=()):
        self.events, self.veto = events, veto

    def should_run(self, mod, info):
        return info.name not in self.veto

    def run_before_pass(self, mod, info):
        self.events.append(info.name)


def ops(function):
    """Returns the operators that a function calls, in program order."""
    found = []

    class Ops(af.visitor.ExprVisitor):
        def visit_call_(self, call):
            found.append(call.op)

    Ops().visit(function)
    return found
