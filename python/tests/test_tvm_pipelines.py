"""Pipelines as passes of TVM, on modules of Relax."""

import warnings

import anfora as af
import pytest
from anfora import transform as T

np = pytest.importorskip("numpy", reason="numpy is not installed")
tvm = pytest.importorskip("tvm", reason="apache-tvm is not installed")
tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed")
relax = tvm.relax
bridge = pytest.importorskip("anfora.tvm")

from tvm_modules import FLOATS, comes_back, function_of, module_of, results  # noqa: E402


def kernels(shape):
    """Returns a module of three calls of functions of the tensor level, with the kinds that TVM
    finds."""
    te = tvm.te
    x = relax.Var("x", relax.TensorType(shape, "float32"))

    def doubled(a):
        return te.compute(a.shape, lambda *i: a(*i) * 2.0, name="doubled")

    def exponential(a):
        return te.compute(a.shape, lambda *i: te.exp(a(*i)), name="e")

    def total(a, c):
        return te.compute(a.shape, lambda *i: a(*i) + c(*i), name="s")

    def emit(b, x):
        y = b.emit_te(doubled, x, primfunc_name_hint="double")
        z = b.emit_te(exponential, y, primfunc_name_hint="exp")
        return b.emit_te(total, z, x, primfunc_name_hint="add")

    return relax.transform.AnnotateTIROpPattern()(module_of([x], emit))


@pytest.mark.parametrize("shape", [[4, 4], [tvm.tirx.Var("n", "int64"), 4]])
def test_calls_of_functions_of_the_tensor_level_are_fused(shape):
    mod = kernels(shape)
    comes_back(mod)
    new = bridge.as_tvm_pass("FuseOps")(mod)
    relax.analysis.well_formed(new)
    (fused,) = (gv.name_hint for gv in new.functions if gv.name_hint.startswith("fused"))
    assert fused == "fused_double_exp_add"
    plain = relax.transform.ToNonDataflow()
    tvm.ir.assert_structural_equal(plain(new), plain(relax.transform.FuseOps()(mod)))
    np.testing.assert_array_equal(results(relax.transform.FuseTIR()(new), (4, 4)), results(mod, (4, 4)))


def lowered():
    """Returns a module of kernels, two of which have constants of other sizes."""
    random = np.random.default_rng(0)
    weight, bias = (relax.const(random.random(shape).astype("float32")) for shape in ((4, 4), (4,)))
    x = relax.Var("x", FLOATS)

    def emit(b, x):
        y = b.emit(relax.op.add(b.emit(relax.op.matmul(x, weight)), bias))
        return b.emit(relax.op.nn.relu(b.emit(relax.op.add(y, bias))))

    mod = relax.transform.LegalizeOps()(module_of([x], emit))
    return relax.transform.AnnotateTIROpPattern()(mod)


@pytest.mark.parametrize("pipeline", ["FuseOps", "O3"])
def test_constants_of_fused_kernels_are_operands(pipeline):
    mod = lowered()
    with T.PassContext(opt_level=3):
        new = bridge.as_tvm_pass(pipeline)(mod)
    relax.analysis.well_formed(new)
    # TVM refuses constants in the functions that it makes one kernel of.
    tir = relax.transform.FuseTIR()(new)
    np.testing.assert_array_equal(results(tir, (4, 4)), results(mod, (4, 4)))
    comes_back(new)


def test_constants_that_are_in_a_fused_function_stay_there():
    new = relax.transform.FuseOps()(lowered())
    (call,) = (b.value for b in new["main"].body.blocks[0].bindings if isinstance(b.value, tvm.ir.Call))
    fused = new[call.op]
    bound = fused.bind_params(dict(zip(fused.params[1:], call.args[1:])))
    kernels = {gv: fn for gv, fn in new.functions.items() if isinstance(fn, tvm.tirx.PrimFunc)}
    comes_back(tvm.IRModule({tvm.ir.GlobalVar("fused"): bound, **kernels}))


def test_numbers_are_operands_that_passes_know():
    x = relax.Var("x", FLOATS)
    y = relax.const(np.ones((4, 4), "float32"))
    for number in (tvm.tirx.FloatImm("float32", 1e-5), tvm.tirx.FloatImm("float32", float("inf"))):
        mod = module_of([x], lambda b, x: b.emit(relax.op.add(x, number)))
        assert "add" in [b.op for b in comes_back(mod)["main"].bindings]
        mod = module_of([x], lambda b, x: b.emit(relax.op.multiply(x, b.emit(relax.op.add(y, number)))))
        new = bridge.as_tvm_pass("FoldConstant")(mod)
        assert [b.value.op.name for b in new["main"].body.blocks[0].bindings][0] == "relax.multiply"
    # To a function, a number is a constant.
    mod = module_of([x], lambda b, x: b.emit(relax.op.exp(b.emit(relax.op.add(x, tvm.tirx.FloatImm("float32", 0.1))))))
    relax.analysis.well_formed(bridge.as_tvm_pass("FuseOps")(mod))


def normalised(training=False, out_dtype="float32"):
    """Returns a module of a convolution and its normalisation, of which only the result is used."""
    random = np.random.default_rng(0)
    op = relax.op

    def weight(*shape):
        return relax.const(random.random(shape).astype("float32"))

    def emit(b, x):
        y = b.emit(op.nn.conv2d(x, weight(4, 3, 3, 3), out_dtype=out_dtype))
        y = b.emit(op.nn.batch_norm(y, weight(4), weight(4), weight(4), weight(4), 1, momentum=0.3, training=training))
        return b.emit(op.nn.relu(b.emit(y[0])))

    return module_of([relax.Var("x", relax.TensorType([1, 3, 8, 8], "float32"))], emit)


@pytest.mark.parametrize("out_dtype", [None, "float32"])
def test_a_normalisation_is_folded_into_its_convolution(out_dtype):
    mod = normalised(out_dtype=out_dtype)
    assert [b.op for b in comes_back(mod)["main"].bindings if b.op] == ["nn.conv2d", "nn.batch_norm", "nn.relu"]
    with T.PassContext(opt_level=3):
        new = bridge.as_tvm_pass("FoldBatchNorm,CanonicalizeBindings,DeadCodeElimination")(mod)
    relax.analysis.well_formed(new)
    calls = [b.value.op.name for b in new["main"].body.blocks[0].bindings]
    assert calls == ["relax.nn.conv2d", "relax.add", "relax.nn.relu"]
    assert new["main"].body.blocks[0].bindings[0].value.attrs.out_dtype == out_dtype
    shape = (1, 3, 8, 8)
    np.testing.assert_allclose(results(new, shape), results(mod, shape), rtol=1e-4, atol=1e-4)


def test_the_tuple_of_a_normalisation_may_go():
    mod = normalised()
    new = bridge.as_tvm_pass("CanonicalizeBindings,DeadCodeElimination")(mod)
    relax.analysis.well_formed(new)
    np.testing.assert_array_equal(results(new, (1, 3, 8, 8)), results(mod, (1, 3, 8, 8)))
    # The result is visible after the block, and the tuple is not.
    fn = mod["main"]
    *first, last = fn.body.blocks[0].bindings
    tuple_, field = first[1], relax.Var("field", last.var.ty)
    block = relax.DataflowBlock([*first[:2], relax.VarBinding(field, relax.TupleGetItem(tuple_.var, 0))])
    outside = tvm.IRModule({"main": function_of(fn.params, block.bindings, field, block=relax.DataflowBlock)})
    for pipeline in ("CanonicalizeBindings", "CanonicalizeBindings,DeadCodeElimination"):
        relax.analysis.well_formed(bridge.as_tvm_pass(pipeline)(outside))
    comes_back(outside)
    # The tuple is visible after the block.
    shown = relax.Var("shown", tuple_.var.ty)
    block = relax.DataflowBlock([first[0], relax.VarBinding(shown, tuple_.value)])
    whole = tvm.IRModule({"main": function_of(fn.params, block.bindings, shown, block=relax.DataflowBlock)})
    assert "nn.batch_norm" in [b.op for b in comes_back(whole)["main"].bindings]
    # What is in training is kept unchanged.
    assert "nn.batch_norm" not in [b.op for b in comes_back(normalised(training=True))["main"].bindings]


def network():
    """Returns a small network with work to save: constants, a repetition, and a dead value."""
    random = np.random.default_rng(0)
    op = relax.op

    def weight(*shape):
        return relax.const(random.standard_normal(shape).astype("float32"))

    def emit(b, x):
        bias = b.emit(op.add(weight(1, 4, 1, 1), weight(1, 4, 1, 1)))
        y = b.emit(op.add(b.emit(op.nn.conv2d(x, weight(4, 3, 3, 3), padding=1)), bias))
        b.emit(op.exp(y))
        y = b.emit(op.add(b.emit(op.nn.relu(y)), b.emit(op.nn.relu(y))))
        y = b.emit(op.reshape(b.emit(op.nn.max_pool2d(y, (2, 2), (2, 2))), (1, 64)))
        return b.emit(op.nn.softmax(b.emit(op.matmul(y, weight(64, 10)))))

    return module_of([relax.Var("x", relax.TensorType([1, 3, 8, 8], "float32"))], emit)


def transformer():
    """Returns a block of a transformer, with a symbolic number of sequences."""
    random = np.random.default_rng(0)
    op = relax.op
    n = tvm.tirx.Var("n", "int64")

    def weight(*shape):
        return relax.const((random.standard_normal(shape) * 0.2).astype("float32"))

    def emit(b, x):
        e = b.emit

        def heads(h):
            split = e(op.reshape(e(op.matmul(h, weight(32, 32))), (n, 16, 4, 8)))
            return e(op.permute_dims(split, [0, 2, 1, 3]))

        h = e(op.nn.layer_norm(x, weight(32), weight(32), [-1]))
        q, k, v = heads(h), heads(h), heads(h)
        scale = e(op.divide(relax.const(1.0), relax.const(8**0.5)))
        scores = e(op.multiply(e(op.matmul(q, e(op.permute_dims(k, [0, 1, 3, 2])))), scale))
        attended = e(op.permute_dims(e(op.matmul(e(op.nn.softmax(scores)), v)), [0, 2, 1, 3]))
        y = e(op.add(x, e(op.matmul(e(op.reshape(attended, (n, 16, 32))), weight(32, 32)))))
        h = e(op.nn.layer_norm(y, weight(32), weight(32), [-1]))
        h = e(op.nn.gelu(e(op.add(e(op.matmul(h, weight(32, 64))), weight(64)))))
        e(op.exp(h))
        return e(op.add(y, e(op.matmul(h, weight(64, 32)))))

    return module_of([relax.Var("x", relax.TensorType([n, 16, 32], "float32"))], emit)


@pytest.mark.filterwarnings("ignore:anfora.O3 leaves out")
@pytest.mark.parametrize("make, shape", [(network, (1, 3, 8, 8)), (transformer, (3, 16, 32))])
@pytest.mark.parametrize("pipeline", ["O2", "O3", "FoldConstant,EliminateCommonSubexpr,DeadCodeElimination"])
def test_results_on_the_virtual_machine_stay(pipeline, make, shape):
    mod = make()
    comes_back(mod)
    new = tvm.transform.Sequential([bridge.as_tvm_pass(pipeline), relax.transform.Normalize()])(mod)
    relax.analysis.well_formed(new)
    before, after = (sum(len(b.bindings) for b in m["main"].body.blocks) for m in (mod, new))
    assert after < before
    np.testing.assert_array_equal(results(new, shape), results(mod, shape))


def attention(e, x, y):
    """Returns the attention of values in heads, with a scale and a mask."""
    op = relax.op
    q, k = (e(op.reshape(value, (1, 2, 8, 8))) for value in (x, y))
    scores = e(op.multiply(e(op.matmul(q, e(op.permute_dims(k, [0, 1, 3, 2])))), relax.const(0.25)))
    masked = e(op.add(scores, relax.const(np.triu(np.full((8, 8), -9, "float32"), 1))))
    return e(op.matmul(e(op.nn.softmax(masked)), k))


def normal(e, x, scale):
    """Returns a normalisation over the last axis without a mean."""
    op = relax.op
    deviation = e(op.sqrt(e(op.add(e(op.mean(e(op.square(x)), [-1], True)), relax.const(1e-3)))))
    return e(op.multiply(e(op.divide(x, deviation)), scale))


def centered(e, x, scale):
    """Returns a normalisation over the last axis."""
    return normal(e, e(relax.op.subtract(x, e(relax.op.mean(x, [-1], True)))), scale)


def made_by_passes():
    """Returns functions by operators that passes of level 3 make. They emit the parts of the
    operator; their operands are the function that emits, two matrices and a vector."""
    op, one = relax.op, relax.const(1.0)
    random = np.random.default_rng(0)

    def weight(*shape):
        return relax.const(random.standard_normal(shape).astype("float32"))

    def branches(e, x, y, v):
        a, b, c = (e(op.matmul(x, w)) for w in (weight(16, 4), weight(16, 8), weight(16, 4)))
        return e(op.multiply(e(op.multiply(a, e(op.exp(c)))), e(op.sum(b))))

    def tanh_gelu(e, x, y, v):
        cube = e(op.multiply(e(op.multiply(x, x)), x))
        inner = e(op.multiply(e(op.add(x, e(op.multiply(cube, relax.const(0.044715))))), relax.const(0.7978846)))
        return e(op.multiply(e(op.multiply(x, relax.const(0.5))), e(op.add(e(op.tanh(inner)), one))))

    def softplus(e, x):
        return e(op.log(e(op.add(e(op.exp(x)), one))))

    return {
        "split": branches,
        "nn.gemm": lambda e, x, y, v: e(op.add(e(op.matmul(x, e(op.permute_dims(y, [1, 0])))), weight(8))),
        "nn.gemm scaled": lambda e, x, y, v: e(op.multiply(e(op.matmul(e(op.permute_dims(x)), y)), relax.const(0.3))),
        "nn.attention": lambda e, x, y, v: attention(e, x, y),
        "nn.layer_norm": lambda e, x, y, v: centered(e, x, v),
        "nn.layer_norm with bias": lambda e, x, y, v: e(op.add(centered(e, x, v), weight(16))),
        "nn.rms_norm": lambda e, x, y, v: normal(e, x, v),
        "nn.silu": lambda e, x, y, v: e(op.multiply(x, e(op.sigmoid(e(op.multiply(x, relax.const(1.702))))))),
        "nn.gelu": tanh_gelu,
        "nn.softplus": lambda e, x, y, v: softplus(e, x),
        "nn.mish": lambda e, x, y, v: e(op.multiply(x, e(op.tanh(softplus(e, x))))),
    }


@pytest.mark.parametrize("name", made_by_passes())
@pytest.mark.parametrize("pipeline", ["O2,FuseStandardOps,CombineParallelMatmul", "O3", "slim"])
def test_what_passes_of_level_3_make_has_a_form_in_relax(pipeline, name):
    emit, shapes = made_by_passes()[name], [(8, 16), (8, 16), (16,)]
    params = [relax.Var(n, relax.TensorType(s, "float32")) for n, s in zip("xyv", shapes)]
    mod = module_of(params, lambda b, *operands: emit(b.emit, *operands))
    with T.PassContext(opt_level=3):
        between = T.parse_pipeline(pipeline)(comes_back(mod))
        # The operator is there, so this test tests something.
        assert f"{name.split()[0]}(" in between.text()
        new = bridge.as_tvm_pass(pipeline)(mod)
    relax.analysis.well_formed(new)
    np.testing.assert_allclose(results(new, *shapes), results(mod, *shapes), rtol=1e-4, atol=1e-5)


def test_passes_above_the_level_of_the_context_are_named():
    mod = normalised()
    fold, all_ = bridge.as_tvm_pass("FoldBatchNorm"), bridge.as_tvm_pass("O3")
    with pytest.warns(UserWarning, match=r"^anfora.FoldBatchNorm leaves out FoldBatchNorm, .* level .* is 2") as seen:
        assert fold(mod).same_as(mod)
    assert len(seen) == 1
    with pytest.warns(UserWarning, match="leaves out FuseStandardOps, FoldBatchNorm, CombineParallelMatmul, "):
        all_(mod)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with T.PassContext(opt_level=3):
            assert not fold(mod).same_as(mod)
        with T.PassContext(required_pass=["FoldBatchNorm"]):
            assert not fold(mod).same_as(mod)
        with T.PassContext(disabled_pass=["FoldBatchNorm"]):
            assert fold(mod).same_as(mod)
        bridge.as_tvm_pass("O2")(mod)


def test_a_pass_runs_under_the_context_of_tvm():
    seen = []

    @tvm.ir.instrument.pass_instrument
    class Names:
        def run_before_pass(self, mod, info):
            seen.append(info.name)

    mod = network()
    fold = bridge.as_tvm_pass([T.FoldConstant()], name="Fold", opt_level=2)
    clean = bridge.as_tvm_pass("DeadCodeElimination")
    seq = tvm.transform.Sequential([fold, clean])
    with tvm.transform.PassContext(opt_level=2, instruments=[Names()]):
        seq(mod)
    assert seen == ["sequential", "Fold", "anfora.DeadCodeElimination"]
    seen.clear()
    with tvm.transform.PassContext(opt_level=1, disabled_pass=["anfora.DeadCodeElimination"], instruments=[Names()]):
        assert tvm_ffi.structural_equal(seq(mod), mod)
    assert seen == ["sequential"]


def test_two_allocations_stay_two():
    op = relax.op

    def emit(b, x):
        first, second = (b.emit(op.builtin.alloc_tensor(relax.ShapeExpr([4, 4]), "float32", 0)) for _ in range(2))
        return b.emit(op.add(b.emit(op.add(x, first)), second))

    mod = module_of([relax.Var("x", FLOATS)], emit, dataflow=False)
    comes_back(mod)
    for pipeline in ("EliminateCommonSubexpr", "O2"):
        new = bridge.as_tvm_pass(pipeline)(mod)
        ops = [b.value.op.name for block in new["main"].body.blocks for b in block.bindings if hasattr(b.value, "op")]
        assert ops.count("relax.builtin.alloc_tensor") == 2


def test_a_pass_that_changes_nothing_returns_the_module():
    mod = bridge.as_tvm_pass("O2")(network())
    assert bridge.as_tvm_pass("DeadCodeElimination")(mod).same_as(mod)


def test_a_pass_that_fails_is_an_error():
    @T.module_pass
    def broken(mod, ctx):
        raise RuntimeError("line 17")

    with pytest.raises(Exception, match="line 17"):
        bridge.as_tvm_pass(broken)(network())
    with pytest.raises(af.ConfigError, match="FoldConstant"):
        bridge.as_tvm_pass("FoldConstnt")
    with pytest.raises(TypeError, match=r"a pipeline is a pass of anfora, a list of passes, or a text, not"):
        bridge.as_tvm_pass(relax.transform.FoldConstant())
