"""Modules of TVM's Relax to anfora and back, and pipelines as passes of TVM."""

import collections
import copy
import gzip
import itertools
import json
import os
import pickle
import subprocess
import sys
import types
import warnings

import anfora as af
import pytest
from anfora import transform as T


@pytest.mark.parametrize("found", [None, types.ModuleType("tvm")], ids=["no TVM", "another version"])
def test_without_tvm_the_command_is_named(monkeypatch, found):
    monkeypatch.setitem(sys.modules, "tvm", found)
    monkeypatch.setitem(sys.modules, "tvm_ffi", types.ModuleType("tvm_ffi"))
    monkeypatch.delitem(sys.modules, "tvm.tirx", raising=False)
    monkeypatch.delitem(sys.modules, "anfora.tvm", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'anfora\[tvm\]'") as missing:
        import anfora.tvm  # noqa: F401
    assert missing.value.name == "tvm"


np = pytest.importorskip("numpy", reason="numpy is not installed")
tvm = pytest.importorskip("tvm", reason="apache-tvm is not installed")
tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed")
relax = tvm.relax
bridge = pytest.importorskip("anfora.tvm")
_tvm_ops = pytest.importorskip("anfora._tvm_ops")
handle = pytest.importorskip("anfora._tvm_symbols").handle

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
    between = bridge.from_relax(mod)
    between.verify()
    back = bridge.to_relax(between)
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


# ---- modules that come back ----------------------------------------------------------------------


def test_a_module_of_the_operators_that_both_have_comes_back():
    x, w = relax.Var("x", FLOATS), relax.Var("w", FLOATS)
    mod = module_of([x, w], lambda b, x, w: b.emit(relax.op.nn.relu(b.emit(relax.op.matmul(x, w), "product"))))
    between = comes_back(mod)
    assert [b.op for b in between["main"].bindings] == ["matmul", "nn.relu", None]
    assert between["main"].bindings[0].type == af.Type("Tensor[(4, 4), float32]")


def shapes():
    x, y = relax.Var("x", relax.TensorType([1, 4, 8, 8], "float32")), relax.Var("y", FLOATS)
    scale = relax.Var("scale", relax.TensorType([4], "float32"))
    op = relax.op
    return x, y, scale, {
        "sum": [op.sum(x), op.sum(x, [1, 2], True)],
        "mean": [op.mean(x, [1])],
        "max": [op.max(x, [-1])],
        "min": [op.min(x, [0])],
        "prod": [op.prod(y)],
        "astype": [op.astype(x, "float16"), op.astype(x, "bool")],
        "broadcast_to": [op.broadcast_to(y, [3, 4, 4])],
        "concat": [op.concat([y, y, y]), op.concat([y, y], -1)],
        "expand_dims": [op.expand_dims(y, [0, 3])],
        "matmul": [op.matmul(y, y)],
        "permute_dims": [op.permute_dims(x), op.permute_dims(x, [0, 2, 3, 1])],
        "reshape": [op.reshape(x, [4, 64]), op.reshape(x, [-1])],
        "squeeze": [op.squeeze(x), op.squeeze(x, [0])],
        "split": [op.split(x, 2, 1), op.split(x, 3, -1), op.split(x, [1, 3], axis=2)],
        "nn.softmax": [op.nn.softmax(y, 0), op.nn.softmax(y)],
        "nn.log_softmax": [op.nn.log_softmax(y, 1)],
        "nn.layer_norm": [op.nn.layer_norm(y, scale, scale, [-1], 1e-3)],
        "nn.rms_norm": [op.nn.rms_norm(y, scale, [-1], 1e-3), op.nn.rms_norm(y, scale, 1)],
        "nn.conv2d": [
            op.nn.conv2d(x, relax.const(np.ones((6, 4, 3, 3), "float32")), 2, 1, 2),
            op.nn.conv2d(x, relax.const(np.ones((6, 2, 3, 3), "float32")), groups=2),
        ],
        "nn.max_pool2d": [op.nn.max_pool2d(x, (2, 3), (2, 2), (1, 0, 1, 1), ceil_mode=True)],
        "nn.avg_pool2d": [op.nn.avg_pool2d(x, (2, 2), count_include_pad=True)],
    }


def test_every_operator_of_the_table_is_one_of_anfora_and_comes_back():
    x, y, scale, calls = shapes()
    assert set(calls) == set(_tvm_ops.ROWS)
    for name, examples in calls.items():
        for call in examples:
            mod = module_of([x, y, scale], lambda b, *_: b.emit(call))
            ops = [b.op for b in comes_back(mod)["main"].bindings]
            assert name in ops, (name, ops)


def test_every_operator_without_attributes_is_one_of_anfora_and_comes_back():
    boolean, integer = relax.TensorType([4, 4], "bool"), relax.TensorType([4, 4], "int32")
    for name, count in _tvm_ops.PLAIN.items():
        ty = boolean if "logical" in name else integer if "bitwise" in name else FLOATS
        params = [relax.Var(f"p{i}", boolean if name == "where" and i == 0 else ty) for i in range(count)]
        call = tvm.ir.Call(tvm.ir.Op.get(f"relax.{name}"), params)
        mod = module_of(params, lambda b, *_: b.emit(call))
        assert comes_back(mod)["main"].bindings[0].op == name


def test_an_attribute_that_anfora_does_not_have_is_kept():
    x = relax.Var("x", relax.TensorType([1, 8, 8, 4], "float32"))
    w = relax.const(np.ones((6, 3, 3, 4), "float32"))
    call = relax.op.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="OHWI")
    between = comes_back(module_of([x], lambda b, x: b.emit(call)))
    assert between["main"].bindings[0].op.name.startswith("relax.nn.conv2d#")


def test_functions_of_the_tensor_level_are_carried_through():
    mod = twice()
    between = comes_back(mod)
    prim = next(gv.name_hint for gv, fn in mod.functions.items() if not isinstance(fn, relax.Function))
    between.rename(prim, "renamed")
    back = bridge.to_relax(between)
    assert {gv.name_hint for gv in back.functions} == {"main", "renamed"}
    call = back["main"].body.blocks[0].bindings[0].value
    assert call.args[0].name_hint == "renamed"
    assert tvm_ffi.structural_equal(back["renamed"], mod[prim])


def test_a_function_of_the_tensor_level_that_nothing_calls_goes():
    mod = twice()
    (prim,) = (gv for gv, fn in mod.functions.items() if not isinstance(fn, relax.Function))
    dead, kept = (tvm.ir.load_json(tvm.ir.save_json(mod[prim])) for _ in range(2))
    mod = tvm.IRModule({**dict(mod.functions.items()), "dead": dead, "kept": kept.with_attr("global_symbol", "kept")})
    comes_back(mod)
    new = bridge.as_tvm_pass("DeadCodeElimination")(mod)
    assert {gv.name_hint for gv in new.functions} == {"main", prim.name_hint, "kept"}


def test_functions_of_the_tensor_level_get_symbols_with_the_prefix_of_the_module():
    mod = twice().with_attr("system_lib_prefix", "lib_")
    assert comes_back(mod).attrs["system_lib_prefix"] == "lib_"
    new = bridge.as_tvm_pass("AttachGlobalSymbol")(mod)
    tvm.ir.assert_structural_equal(new, relax.transform.AttachGlobalSymbol()(mod))


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


def test_a_bias_is_added_apart():
    mod = af.loads(
        "def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32], %b: Tensor[(4,), float32]) {"
        " let %y = nn.conv2d(%x, %w, %b); %y }"
    )
    new = bridge.to_relax(mod)
    relax.analysis.well_formed(new)
    names = [b.value.op.name for b in new["main"].body.blocks[0].bindings]
    assert names == ["relax.reshape", "relax.nn.conv2d", "relax.add"]
    assert bridge.from_relax(new)["main"].ret_type == mod["main"].ret_type


def test_symbols_of_kept_calls_follow_the_program():
    back = bridge.to_relax(T.BindSymbols(symbols={"n": 3})(comes_back(twice())))
    assert tvm_ffi.structural_equal(back["main"].ret_ty, relax.TensorType([3, 4], "float32"))
    call = back["main"].body.blocks[0].bindings[0].value
    assert tvm_ffi.structural_equal(call.ty, relax.TensorType([3, 4], "float32"))
    assert tvm_ffi.structural_equal(call.ty_args[0], relax.TensorType([3, 4], "float32"))


def test_names_blocks_and_attributes_stay():
    x = relax.Var("x y", FLOATS)
    first = relax.DataflowVar("same", FLOATS)
    second, last = relax.Var("same", FLOATS), relax.Var("$value", FLOATS)
    one = relax.DataflowBlock(
        [relax.VarBinding(first, typed(relax.op.exp(x))), relax.VarBinding(second, typed(relax.op.exp(first)))]
    )
    two = relax.DataflowBlock([relax.VarBinding(last, typed(relax.op.add(second, x)))])
    body = relax.SeqExpr([one, two], last)
    relax.expr._update_type(body, last.ty)
    attrs = {"global_symbol": "linked", "Primitive": 1, "a.dotted": [1, 2], "text": 'a "quote"\n'}
    fn = relax.Function([x], body, FLOATS, True, tvm.ir.make_node("ir.DictAttrs", **attrs))
    y = relax.Var("y", FLOATS)
    mod = tvm.IRModule({"main": fn, "private": function_of([y], [], y)}, attrs={"system_lib_prefix": "p"})
    between = comes_back(mod)
    assert between["main"].is_public and not between["private"].is_public
    back = bridge.to_relax(between)["main"]
    assert [[b.var.name for b in block.bindings] for block in back.body.blocks] == [["same", "same"], ["$value"]]
    assert back.params[0].name == "x y"


def typed(call):
    """Returns a call with its type."""
    return relax.BlockBuilder().normalize(call)


def test_parameters_of_types_that_anfora_does_not_have_come_back():
    n = tvm.tirx.Var("n", "int64")
    for ty in (
        relax.TensorType(None, None),
        relax.TensorType(None, None, ndim=2),
        relax.TensorType([n, 2], None),
        relax.TensorType([n * 2, n], "float32"),
        relax.ShapeType([n, 2]),
        relax.ShapeType(ndim=3),
        relax.TupleType([relax.ShapeType([4]), FLOATS]),
        tvm.ir.PrimType("int64"),
        relax.AnyType(),
        relax.FuncType([FLOATS], FLOATS),
        relax.FuncType([FLOATS], FLOATS, False),
    ):
        p = relax.Var("p", ty)
        comes_back(tvm.IRModule({"main": function_of([p], [], p)}))


def test_the_type_of_a_result_follows_a_pass_that_changes_it():
    n = tvm.tirx.Var("n", "int64")
    p = relax.Var("p", relax.TensorType([n], "float32"))
    wide = relax.TensorType(None, "float32", ndim=1)
    mod = tvm.IRModule({"main": function_of([p], [], p, wide, {"global_symbol": "main"})})
    between = comes_back(mod)
    back = bridge.to_relax(T.BindSymbols(symbols={"n": 5})(between))
    assert tvm_ffi.structural_equal(back["main"].ret_ty, relax.TensorType([5], "float32"))


def test_a_match_cast_binds_its_symbols_whatever_the_type():
    n, m = tvm.tirx.Var("n", "int64"), tvm.tirx.Var("m", "int64")
    x = relax.Var("x", relax.AnyType())
    for ty in (
        relax.TensorType([n, m], "float32"),
        relax.TensorType([n, m], None),
        relax.ShapeType([n, m]),
        relax.TupleType([relax.TensorType([n], None), relax.TensorType([m], "int8")]),
    ):
        cast, made = relax.Var("cast", ty), relax.Var("made", relax.TensorType([m, n], "float32"))
        zeros = typed(relax.op.zeros([m, n], "float32"))
        bindings = [relax.MatchCast(cast, x, ty), relax.VarBinding(made, zeros)]
        comes_back(tvm.IRModule({"main": function_of([x], bindings, made, relax.TensorType(None, "float32", ndim=2))}))


#: All orders of three blocks of four kinds.
KINDS = list(itertools.product(("bindings", "no bindings", "region", "empty region"), repeat=3))


@pytest.mark.parametrize("kinds", KINDS)
def test_blocks_come_back(kinds):
    x = relax.Var("x", FLOATS)
    blocks = []
    for kind in kinds:
        count = 2 if kind in ("bindings", "region") else 0
        bindings = [relax.VarBinding(relax.Var("y", FLOATS), x) for _ in range(count)]
        blocks.append((relax.DataflowBlock if "region" in kind else relax.BindingBlock)(bindings))
    body = relax.SeqExpr(blocks, x)
    relax.expr._update_type(body, FLOATS)
    between = comes_back(tvm.IRModule({"main": relax.Function([x], body, FLOATS)}))
    for pipeline in ("ConvertToDataflow", "ToNonDataflow", "EliminateCommonSubexpr", "CanonicalizeBindings"):
        relax.analysis.well_formed(bridge.to_relax(T.parse_pipeline(pipeline)(between)))


def sized(make):
    """Returns a module with types that have a scalar variable as an extent."""
    p, q = relax.Var("p", INDEX), relax.Var("q", relax.TensorType(None, "float32", ndim=1))
    extent = make("extent", INDEX)
    cast = make("cast", relax.TensorType([extent], "float32"))
    zeros = typed(relax.op.zeros([extent + 1, extent], "float32"))
    total = relax.op.sum(make("table", zeros.ty), axis=0)
    table, total = total.args[0], typed(total)
    column, result = make("column", total.ty), relax.Var("result", cast.ty)
    bindings = [
        relax.VarBinding(extent, p),
        relax.MatchCast(cast, q, cast.ty),
        relax.VarBinding(table, zeros),
        relax.VarBinding(column, total),
        relax.VarBinding(result, typed(relax.op.add(cast, column))),
    ]
    block = relax.BindingBlock if make is relax.Var else relax.DataflowBlock
    attrs = {"global_symbol": "main"}
    fn = function_of([p, q], bindings, result, relax.TensorType(None, "float32", ndim=1), attrs, block)
    return tvm.IRModule({"main": fn})


@pytest.mark.parametrize("make", [relax.Var, relax.DataflowVar])
def test_a_scalar_variable_may_be_an_extent(make):
    between = comes_back(sized(make))
    # The copy goes, and the types have the parameter.
    back = bridge.to_relax(T.CanonicalizeBindings()(between))
    relax.analysis.well_formed(back)
    first = back["main"].body.blocks[0].bindings[0]
    assert first.var.ty.shape.values[0].same_as(back["main"].params[0])
    # The copy becomes a number.
    bound = T.BindParams("main", {"p": np.array(3, "int64")})(between)
    back = bridge.to_relax(T.CanonicalizeBindings()(bound))
    relax.analysis.well_formed(back)
    shapes = [[int(d) for d in b.var.ty.shape.values] for b in back["main"].body.blocks[0].bindings]
    assert shapes == [[3], [4, 3], [3], [3]]


def captured(levels):
    """Returns a module with functions inside each other, the innermost of which has a scalar of the
    outermost one as an extent."""
    vector = relax.TensorType(None, "float32", ndim=1)
    p, x = relax.Var("p", INDEX), relax.Var("x", vector)
    cast = relax.Var("cast", relax.TensorType([p], "float32"))
    inner = function_of([x], [relax.MatchCast(cast, x, cast.ty)], cast, vector)
    for level in range(levels):
        f, y, result = relax.Var(f"f{level}", inner.ty), relax.Var("y", vector), relax.Var("result", vector)
        call = relax.VarBinding(result, tvm.ir.Call(f, [y], ret_ty=vector))
        is_outermost = level + 1 == levels
        params, attrs = ([p, y], {"global_symbol": "main"}) if is_outermost else ([y], None)
        inner = function_of(params, [relax.VarBinding(f, inner), call], result, vector, attrs)
    return tvm.IRModule({"main": inner})


@pytest.mark.parametrize("pipeline", ["LambdaLifting", "LambdaLifting,CanonicalizeBindings", "O3"])
def test_a_scalar_of_a_function_around_may_be_an_extent(pipeline):
    between = comes_back(captured(4))
    back = bridge.to_relax(T.parse_pipeline(pipeline)(between))
    relax.analysis.well_formed(back)
    lifted = [fn for gv, fn in back.functions.items() if gv.name_hint != "main"]
    # O3 inlines those that are called once, all but the one that a group of FuseOps is.
    assert len(lifted) == (1 if pipeline == "O3" else 4)
    for fn in lifted:
        assert sorted(str(p.ty) for p in fn.params) == ['R.Tensor(dtype="float32", ndim=1)', "int64"]


def unbound(extents):
    """Returns a module with a symbol that nothing binds, in as many functions as there are
    extents."""
    free, functions = tvm.tirx.Var("free", "int64"), {}
    for i, extent in enumerate(extents):
        x = relax.Var("x", relax.TensorType([extent], "float32"))
        zeros = typed(relax.op.zeros([free, extent * 2], "float32"))
        made = relax.Var("made", zeros.ty)
        ret = relax.TensorType(None, "float32", ndim=2)
        functions[f"f{i}"] = function_of([x], [relax.VarBinding(made, zeros)], made, ret, {"global_symbol": f"f{i}"})
    return tvm.IRModule(functions)


def test_symbols_that_nothing_binds_come_back_as_new_ones():
    shared = tvm.tirx.Var("free", "int64")
    bridge.from_relax(unbound([shared, shared]))
    mod = unbound([tvm.tirx.Var("free", "int64") for _ in range(2)])
    between = bridge.from_relax(mod)
    for pipeline in ("Normalize", "CanonicalizeBindings,EliminateCommonSubexpr,DeadCodeElimination"):
        back = bridge.to_relax(T.parse_pipeline(pipeline)(between))
        assert not tvm_ffi.structural_equal(back, mod)
        assert tvm_ffi.structural_equal(back, mod, map_free_vars=True)
        extents = {handle(fn.body.body.ty.shape.values[0]) for fn in back.functions.values()}
        assert len(extents) == 1
    # A number for the parameter's symbol of this name says nothing about it.
    back = bridge.to_relax(T.BindSymbols(symbols={"free": 3})(between))["f0"]
    assert [getattr(d, "name", d) for d in back.body.body.ty.shape.values] == ["free", 6]


def test_constants_keep_their_bytes():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    arrays = [np.array([np.nan, -0.0, 1e-45], "float32"), np.array([], "int8"), np.array(True)]
    arrays += [np.array([[1, -2]], "int64"), np.array([1.5, 2], ml_dtypes.bfloat16)]
    for array in arrays:
        constant = relax.const(tvm.runtime.tensor(array), str(array.dtype))
        mod = tvm.IRModule({"main": function_of([], [], constant)})
        back = bridge.to_relax(comes_back(mod))["main"].body.body
        back = (back.data if hasattr(back, "data") else back.value).numpy()
        assert back.dtype == array.dtype and back.tobytes() == array.tobytes()


def test_a_chain_of_100_000_bindings_comes_back():
    def emit(builder, x):
        value = x
        for _ in range(100_000):
            value = builder.emit(relax.op.add(value, x))
        return value

    mod = module_of([relax.Var("x", FLOATS)], emit)
    between = bridge.from_relax(mod)
    assert between.binding_count == 100_001
    back = bridge.to_relax(between)
    assert tvm_ffi.structural_equal(back, mod)


#: Builds a nest of ifs, and counts the levels that come back. TVM itself compares and frees such a
#: nest by recursion, so the process ends without that.
NEST = """
import os, sys, tvm
from tvm import relax
import anfora.tvm as bridge
flag = relax.TensorType([], "bool")
x = relax.Var("x", flag)
def typed(made):
    relax.expr._update_type(made, flag)
    return made
body = typed(relax.SeqExpr([], x))
for level in range(3000):
    chosen = typed(relax.If(x, body, typed(relax.SeqExpr([], x))))
    var = relax.Var(f"v{level}", flag)
    body = typed(relax.SeqExpr([relax.BindingBlock([relax.VarBinding(var, chosen)])], var))
back = bridge.to_relax(bridge.from_relax(tvm.IRModule({"main": relax.Function([x], body, flag)})))
levels, seq = 0, back["main"].body
while len(seq.blocks):
    levels, seq = levels + 1, seq.blocks[0].bindings[0].value.true_branch
print(levels)
sys.stdout.flush()
os._exit(0)
"""


def test_a_nest_of_ifs_comes_back():
    done = subprocess.run([sys.executable, "-c", NEST], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "3000\n"), done.stderr


def test_copies_and_pickles_come_back():
    mod = twice()
    between = bridge.from_relax(mod)
    for other in (copy.copy(between), copy.deepcopy(between), pickle.loads(pickle.dumps(between))):
        assert tvm_ffi.structural_equal(bridge.to_relax(other), mod)


def test_modules_that_tvm_hands_to_passes_come_back():
    path = os.environ.get("ANFORA_TVM_PAIRS")
    if not path:
        pytest.skip("ANFORA_TVM_PAIRS does not name the recordings")
    if not tvm.__version__.startswith("0.26."):
        pytest.skip("the recordings are those of apache-tvm 0.26")
    with gzip.open(path, "rt") as lines:
        texts = {json.loads(line)["before"] for line in lines}
    counts = collections.Counter()
    for text in sorted(texts):
        mod = tvm.ir.load_json(text)
        back = bridge.to_relax(bridge.from_relax(mod))
        if tvm_ffi.structural_equal(back, mod):
            counts["equal"] += 1
        else:
            # A module with symbols that nothing binds is not even equal to itself read again.
            assert not tvm_ffi.structural_equal(tvm.ir.load_json(text), mod)
            assert tvm_ffi.structural_equal(back, mod, map_free_vars=True)
            counts["equal, with symbols that nothing binds"] += 1
    print(f"\n{len(texts)} modules", *(f"{count:5} {what}" for what, count in counts.most_common()), sep="\n")
    assert counts["equal"] == len(texts) - 2


# ---- what is refused
# ------------------------------------------------------------------------------


def test_what_has_no_form_in_anfora_is_refused_by_name():
    x = relax.Var("x", FLOATS)
    p = relax.Var("p", INDEX)
    sized = relax.Var("sized", relax.TensorType([p], "float32"))
    with pytest.raises(bridge.TvmError, match=r"the variable p in the type of a function .* \(in @main\)"):
        bridge.from_relax(tvm.IRModule({"main": function_of([p, sized], [], x)}))
    late = tvm.tirx.Var("late", "int64")
    made, cast = (relax.Var(name, relax.TensorType([late], "float32")) for name in ("made", "cast"))
    zeros = relax.VarBinding(made, typed(relax.op.zeros([late], "float32")))
    with pytest.raises(bridge.TvmError, match="binds the symbol late where it is used"):
        bridge.from_relax(tvm.IRModule({"main": function_of([x], [zeros, relax.MatchCast(cast, x, cast.ty)], x)}))
    odd = tvm.tirx.Var("odd", "int32")
    made = relax.Var("made", relax.TensorType([tvm.tirx.Cast("int64", odd)], "float32"))
    with pytest.raises(bridge.TvmError, match="a symbol of int32 has no form"):
        bridge.from_relax(tvm.IRModule({"main": function_of([x], [relax.MatchCast(made, x, made.ty)], x)}))
    with pytest.raises(TypeError, match="a module of TVM is expected, not Module"):
        bridge.from_relax(af.Module())


def test_what_has_no_form_in_relax_is_refused_by_name():
    def refused(body, message):
        mod = af.loads(f"def @main(%x: Tensor[(4,), float32]) {{ {body} }}")
        with pytest.raises(bridge.TvmError, match=message):
            bridge.to_relax(mod)

    refused("nn.hard_swish(%x)", r"nn.hard_swish with 1 operands has no form in Relax \(in @main\)")
    refused("astype(%x, dtype=int8, saturate=false)", "astype with saturate=False has no form in Relax")
    with pytest.raises(bridge.TvmError, match="@f is only declared"):
        bridge.to_relax(af.loads("declare @f(%x: Any) -> Any;"))
    with pytest.raises(TypeError, match="a module of anfora is expected"):
        bridge.to_relax(tvm.IRModule({}))


def test_a_module_that_anfora_wrote_goes_to_relax():
    mod = af.loads(
        "def @main(%x: Tensor[(n, 4), float32], %c: Tensor[(), bool]) {"
        " let %s = shape_to_tensor(shape=shape(4, n));"
        " let %y = reshape(%x, %s);"
        " let %t = add(%s, dense<Tensor[(2,), int64]>[1, 2]);"
        " let %z = if (%c) { let %a = exp(%y); %a } else { tanh(%y) };"
        " (%z, %t) }"
    )
    back = bridge.to_relax(mod)
    relax.analysis.well_formed(back)
    assert back["main"].attrs["global_symbol"] == "main"
    kinds = [type(b.value).__name__ for b in back["main"].body.blocks[0].bindings]
    assert kinds == ["Call", "Call", "Call", "If"]


def adders():
    """Returns a module whose function makes an adder of each operand, and applies one to the
    other."""
    x, y = relax.Var("x", FLOATS), relax.Var("y", FLOATS)
    p, q = relax.Var("p", FLOATS), relax.Var("q", FLOATS)
    total = relax.Var("total", FLOATS)
    inner = function_of([q], [relax.VarBinding(total, typed(relax.op.add(p, q)))], total)
    add = relax.Var("add", inner.ty)
    outer = function_of([p], [relax.VarBinding(add, inner)], add)
    make, adder = relax.Var("make", outer.ty), relax.Var("adder", inner.ty)
    result = relax.Var("result", FLOATS)
    bindings = [
        relax.VarBinding(make, outer),
        relax.VarBinding(adder, tvm.ir.Call(make, [x], ret_ty=inner.ty)),
        relax.VarBinding(result, tvm.ir.Call(adder, [y], ret_ty=FLOATS)),
    ]
    return tvm.IRModule({"main": function_of([x, y], bindings, result, attrs={"global_symbol": "main"})})


def test_closures_are_those_of_relax():
    mod = adders()
    comes_back(mod)
    new = bridge.as_tvm_pass("LambdaLifting")(mod)
    relax.analysis.well_formed(new)
    tvm.ir.assert_structural_equal(new, relax.transform.LambdaLift()(mod))
    machine = relax.VirtualMachine(relax.build(new, "llvm"), tvm.cpu())
    x, y = (np.full((4, 4), v, "float32") for v in (1, 2))
    np.testing.assert_array_equal(machine["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(y)).numpy(), x + y)


def test_arithmetic_on_extents_that_become_numbers_is_done():
    n = tvm.tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType([n], "float32"))
    made = relax.TensorType([n * 2 + 1], "float32")
    call = relax.op.call_pure_packed("make", x, ty_args=made)
    between = comes_back(module_of([x], lambda b, x: b.emit(call)))
    back = bridge.to_relax(T.BindSymbols(symbols={"n": 3})(between))
    ty = back["main"].body.blocks[0].bindings[0].var.ty
    assert tvm_ffi.structural_equal(ty, relax.TensorType([7], "float32"))


def test_a_module_in_graph_normal_form_is_brought_into_a_normal_form():
    between = T.ToGraphNormalForm()(bridge.from_relax(twice()))
    back = bridge.to_relax(between)
    relax.analysis.well_formed(back)
    assert sum(len(b.bindings) for b in back["main"].body.blocks) == 2


# ---- passes
# ---------------------------------------------------------------------------------------


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


def results(mod, *shapes):
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    random = np.random.default_rng(1)
    data = [tvm.runtime.tensor(random.standard_normal(shape).astype("float32")) for shape in shapes]
    return machine["main"](*data).numpy()


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
