"""Modules of Relax for the tests of the bridge to TVM. Needs TVM."""

import anfora.tvm
import numpy as np
import tvm
import tvm_ffi
from tvm import relax

FLOATS = relax.TensorType([4, 4], "float32")
INDEX = tvm.ir.PrimType("int64")


def module_of(params, emit, name="main", dataflow=True):
    """Returns a module with a function that `emit` makes with a builder and the parameters."""
    builder = relax.BlockBuilder()
    with builder.function(name, params):
        if dataflow:
            with builder.dataflow():
                result = builder.emit_output(emit(builder, *params))
        else:
            result = emit(builder, *params)
        builder.emit_func_output(result)
    return builder.get()


def function_of(params, bindings, result, ret=None, attrs=None, block=relax.BindingBlock):
    """Returns a function with one block of bindings."""
    body = relax.SeqExpr([block(bindings)] if bindings else [], result)
    relax.expr._update_type(body, result.ty)
    attributes = tvm.ir.make_node("ir.DictAttrs", **attrs) if attrs else None
    return relax.Function(params, body, result.ty if ret is None else ret, True, attributes)


def comes_back(mod):
    """Checks that a module comes back equal, and returns what anfora has between."""
    between = anfora.tvm.from_relax(mod)
    between.verify()
    back = anfora.tvm.to_relax(between)
    tvm.ir.assert_structural_equal(back, mod)
    assert tvm_ffi.structural_equal(back, mod)
    return between


def twice():
    """Returns a module with a function of the tensor level, which is called by `call_tir`."""
    n = tvm.tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType([n, 4], "float32"))

    def emit(builder, x):
        doubled = builder.emit_te(lambda a: tvm.te.compute(a.shape, lambda *i: a(*i) * 2.0, name="doubled"), x)
        return builder.emit(relax.op.add(doubled, x), "total")

    return module_of([x], emit)


def typed(call):
    """Returns a call with its type."""
    return relax.BlockBuilder().normalize(call)


def results(mod, *shapes):
    """Returns the result of `main` on random operands, on the virtual machine."""
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    random = np.random.default_rng(1)
    data = [tvm.runtime.tensor(random.standard_normal(shape).astype("float32")) for shape in shapes]
    return machine["main"](*data).numpy()
