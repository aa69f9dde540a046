"""What the tests of bad input share."""

import inspect
import subprocess
import sys
import threading

import anfora as af
import pytest
from anfora import pattern as P
from anfora import transform as T
from anfora import visitor as V

SPECIAL = ("__call__", "__getitem__", "__contains__", "__eq__", "__array__", "__or__")


def public(namespace):
    """Returns the public callables of a module or a class."""
    for name in dir(namespace):
        value = inspect.getattr_static(namespace, name)
        if (name in SPECIAL or not name.startswith("_")) and name not in ("main", "dataflow"):
            yield name, getattr(namespace, name, None), value


TEXT = """def private @g(%z: float32) { sqrt(%z) }
def @main(%x: Tensor[(n, 4), float32], %c: bool) {
  let %a = add(%x, 1f);
  dataflow {
    let %d = exp(%a);
    let %e = tanh(%d);
    output(%e);
  }
  let %f = fn(%p: float32) { let %q = sin(%p); %q };
  let %b = if (%c) { let %i = cos(%e); %i } else { %e };
  let %h = @g(2f);
  let %t = (%b, %h);
  let %u = %t.1;
  let %v = %f(%u);
  let %w = %t.0;
  (%v, %w)
}
"""


MODEL = "def @main(%x: Tensor[(2,), float32]) { let %y = add(%x, 1f); %y }"


@pytest.fixture
def mod():
    return af.loads(TEXT, "bad.anf")


class Odd:
    """An object that is of no use to anybody."""

    def __repr__(self):
        return "Odd()"


class Refused(Exception):
    """An exception that only these tests raise."""


def raises(error):
    def callback(*args, **kwargs):
        raise error

    return callback


def half_edit(kind, callback):
    """Returns a pass that edits and then raises."""

    def module(m, ctx):
        m.rename("main", "renamed")
        m.set_attr("x", 1)
        T.O2(m)
        T.CanonicalizeBindings().apply(m)
        callback()

    def function(f, m, ctx):
        f.set_attr("x", 1)
        V.post_order_rewrite(f, lambda e: e.args[0] if e.op == "exp" else None)
        callback()

    def dataflowblock(block, m, ctx):
        P.rewrite(block, P.Rule("r", "exp(%x)", "sin(%x)"))
        callback()

    run = {"module": module, "function": function, "dataflowblock": dataflowblock}[kind]
    return T.Pass(kind, "half", run)


def in_process(code):
    """Runs code in a process of its own, with 4 GiB of address space, and returns what it did."""
    code = f"TEXT = {TEXT!r}\nimport anfora as af\nfrom anfora import transform as T\n{code}"
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"
    limit = limit if sys.platform == "linux" else ""
    done = subprocess.run([sys.executable, "-c", limit + code], capture_output=True, timeout=120)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def in_threads(count, work):
    failures = []

    def run(i):
        try:
            work(i)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a deadlock"
    return failures


def unchanged(mod):
    assert mod == af.loads(TEXT) and mod.attrs == {}
    mod.verify()
    assert T.PassContext.current().instruments == []
    # Nothing is left behind: the next edit and the next pass work.
    assert T.Pass("module", "next", lambda m, ctx: m)(mod) == mod
    mod.set_attr("x", 1)
    assert mod.attrs == {"x": 1}
