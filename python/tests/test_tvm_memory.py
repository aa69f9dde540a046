"""Plans of memory beside those of TVM's StaticPlanBlockMemory, for the same modules.

TVM plans a module whose operators have been lowered to functions of the tensor level. Its plan is
the storages that it allocates; the results of the function have allocations of their own, which
count too, since they are in our arena. Parameters count in neither plan. Our sizes are not rounded
up, since TVM does not round those of storages either.
"""

import re

import pytest
from anfora import transform as T

np = pytest.importorskip("numpy", reason="numpy is not installed")
tvm = pytest.importorskip("tvm", reason="apache-tvm is not installed")
relax = tvm.relax
bridge = pytest.importorskip("anfora.tvm")

from tvm_modules import module_of  # noqa: E402

op = relax.op

# The upper bound of the symbol `n`.
BOUND = 100


def tensor(name, *shape):
    """Returns a parameter of `float32`."""
    return relax.Var(name, relax.TensorType(list(shape), "float32"))


def chain():
    def emit(b, x, w):
        for _ in range(8):
            x = b.emit(op.nn.relu(b.emit(op.matmul(x, w))))
        return x

    return module_of([tensor("x", 16, 32), tensor("w", 32, 32)], emit)


def perceptron():
    widths = [64, 256, 512, 128, 10]
    params = [tensor("x", 32, widths[0])]
    for rows, columns in zip(widths, widths[1:], strict=False):
        params += [tensor("w", rows, columns), tensor("bias", columns)]

    def emit(b, x, *weights):
        for w, bias in zip(weights[::2], weights[1::2], strict=True):
            x = b.emit(op.nn.gelu(b.emit(op.add(b.emit(op.matmul(x, w)), bias))))
        return x

    return module_of(params, emit)


def residual():
    def emit(b, x, w):
        for _ in range(4):
            y = b.emit(op.nn.relu(b.emit(op.nn.conv2d(x, w, padding=1))))
            y = b.emit(op.nn.conv2d(y, w, padding=1))
            x = b.emit(op.nn.relu(b.emit(op.add(y, x))))
        return b.emit(op.mean(b.emit(op.nn.max_pool2d(x, (2, 2), (2, 2))), [2, 3]))

    return module_of([tensor("x", 1, 8, 16, 16), tensor("w", 8, 8, 3, 3)], emit)


def inception():
    def emit(b, x, w, joined):
        def convolved(value):
            return b.emit(op.nn.relu(b.emit(op.nn.conv2d(value, w, padding=1))))

        for _ in range(3):
            branches = [convolved(x), convolved(convolved(x)), b.emit(op.nn.avg_pool2d(x, (3, 3), (1, 1), (1, 1)))]
            x = b.emit(op.nn.conv2d(b.emit(op.concat(branches, axis=1)), joined))
        return x

    return module_of([tensor("x", 1, 8, 16, 16), tensor("w", 8, 8, 3, 3), tensor("joined", 8, 24, 1, 1)], emit)


def attention():
    length, width, heads = 32, 64, 4

    def emit(b, x, w, up, down):
        for _ in range(2):
            parts = [b.emit(op.reshape(b.emit(op.matmul(x, w)), (length, heads, width // heads))) for _ in range(3)]
            axes = [(1, 0, 2), (1, 2, 0), (1, 0, 2)]
            q, k, v = (b.emit(op.permute_dims(part, by)) for part, by in zip(parts, axes, strict=True))
            scores = b.emit(op.multiply(b.emit(op.matmul(q, k)), relax.const(0.25, "float32")))
            mixed = b.emit(op.permute_dims(b.emit(op.matmul(b.emit(op.nn.softmax(scores)), v)), (1, 0, 2)))
            x = b.emit(op.add(b.emit(op.matmul(b.emit(op.reshape(mixed, (length, width))), w)), x))
            x = b.emit(op.add(b.emit(op.matmul(b.emit(op.nn.gelu(b.emit(op.matmul(x, up)))), down)), x))
        return x

    weights = [tensor("w", width, width), tensor("up", width, 4 * width), tensor("down", 4 * width, width)]
    return module_of([tensor("x", length, width), *weights], emit)


def element_types():
    def emit(b, x):
        y = b.emit(op.astype(b.emit(op.exp(b.emit(op.astype(x, "float16")))), "float32"))
        return b.emit(op.where(b.emit(op.greater(y, x)), y, x))

    return module_of([tensor("x", 33, 7)], emit)


def many_live():
    def emit(b, x):
        parts = [b.emit(op.strided_slice(x, axes=[0], begin=[0], end=[4 * i])) for i in range(1, 13)]
        parts = [b.emit(op.sum(part, [0])) for part in reversed(parts)]
        while len(parts) > 1:
            parts.append(b.emit(op.add(parts.pop(0), parts.pop(0))))
        return parts[0]

    return module_of([tensor("x", 64, 16)], emit)


def tuples():
    def emit(b, x):
        halves = b.emit(op.split(x, 4))
        parts = [b.emit(op.exp(b.emit(relax.TupleGetItem(halves, i)))) for i in range(4)]
        return b.emit(relax.Tuple([b.emit(op.nn.relu(b.emit(op.concat(parts)))), parts[0]]))

    return module_of([tensor("x", 16, 8)], emit)


def symbolic():
    n = tvm.tirx.Var("n", "int64")

    def emit(b, x, w):
        y = b.emit(op.nn.relu(b.emit(op.matmul(x, w))))
        y = b.emit(op.add(y, b.emit(op.exp(y))))
        return b.emit(op.sum(b.emit(op.multiply(b.emit(op.nn.softmax(y)), y)), [1]))

    mod = module_of([tensor("x", n, 64), tensor("w", 64, 128)], emit)
    mod["main"] = mod["main"].with_attr("tir_var_upper_bound", {"n": BOUND})
    return mod


MODULES = [
    chain,
    perceptron,
    residual,
    inception,
    attention,
    element_types,
    many_live,
    tuples,
    symbolic,
]


def planned_by_tvm(mod):
    """Returns the bytes of the storages of TVM's plan, and those of the results."""
    lower = tvm.transform.Sequential(
        [
            relax.transform.LegalizeOps(),
            relax.transform.ToNonDataflow(),
            relax.transform.RemovePurityChecking(),
            relax.transform.CallTIRRewrite(),
            relax.transform.StaticPlanBlockMemory(),
        ]
    )
    storages, results = 0, 0

    def count(expr):
        nonlocal storages, results
        if not isinstance(expr, relax.Call) or not isinstance(expr.op, tvm.ir.Op):
            return
        if expr.op.name == "relax.memory.alloc_storage":
            storages += int(expr.args[0].values[0])
        elif expr.op.name == "relax.builtin.alloc_tensor":
            extents = [int(e) if isinstance(e, tvm.tirx.IntImm) else BOUND for e in expr.args[0].values]
            results += int(np.prod(extents)) * np.dtype(str(expr.args[1].value)).itemsize

    relax.analysis.post_order_visit(lower(mod)["main"], count)
    return storages, results


@pytest.mark.parametrize("make", MODULES)
def test_the_arena_is_no_larger_than_the_storages_of_tvm(make):
    mod = make()
    storages, results = planned_by_tvm(mod)
    assert storages > 0 and results > 0
    bounds = {"n": BOUND} if make is symbolic else None
    planned = T.PlanMemory(alignment=1, bounds=bounds)(bridge.from_relax(mod))
    arena = int(re.search(r'"memory\.arena"=(\d+)', str(planned))[1])
    assert 0 < arena <= storages + results
