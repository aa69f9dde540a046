"""Modules of TVM's Relax to anfora and back."""

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

from tvm_modules import FLOATS, INDEX, comes_back, function_of, module_of, twice, typed  # noqa: E402

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
            op.nn.conv2d(x, relax.const(np.ones((6, 3, 3, 8), "float32")), data_layout="NHWC", kernel_layout="OHWI"),
            op.nn.conv2d(x, relax.const(np.ones((3, 3, 1, 6), "float32")), data_layout="CHWN", kernel_layout="HWIO"),
        ],
        "nn.max_pool2d": [op.nn.max_pool2d(x, (2, 3), (2, 2), (1, 0, 1, 1), ceil_mode=True), op.nn.max_pool2d(x, layout="NHWC")],
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
    call = relax.op.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="OHWI", out_layout="NCHW")
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


@pytest.mark.parametrize("pattern", ["no pattern", 99, -1, tvm.tirx.IntImm("int32", 0)])
def test_any_kind_of_a_function_of_the_tensor_level_comes_back(pattern):
    mod = twice()
    (prim,) = (gv for gv, fn in mod.functions.items() if not isinstance(fn, relax.Function))
    mod.update_func(prim, mod[prim].with_attr("op_pattern", pattern))
    comes_back(mod)
    relax.analysis.well_formed(bridge.as_tvm_pass("FuseOps")(mod))


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


def test_a_bias_is_added_to_the_channels_of_any_layout():
    for bias in ["%b", "dense<Tensor[(4,), float32]>[1, 2, 3, 4]"]:
        mod = af.loads(
            "def @main(%x: Tensor[(1, 8, 8, 3), float32], %w: Tensor[(4, 3, 3, 3), float32],"
            f' %b: Tensor[(4,), float32]) {{ let %y = nn.conv2d(%x, %w, {bias}, data_layout="NHWC"); %y }}'
        )
        new = bridge.to_relax(mod)
        relax.analysis.well_formed(new)
        assert bridge.from_relax(new)["main"].ret_type == mod["main"].ret_type
        column = new["main"].body.blocks[0].bindings[-1].value.args[1]
        assert [int(extent) for extent in column.ty.shape.values] == [1, 1, 1, 4]


def test_a_module_with_converted_layouts_goes_over_and_back():
    x = relax.Var("x", relax.TensorType([1, 3, 8, 8], "float32"))
    weights = [relax.Var(name, relax.TensorType(shape, "float32")) for name, shape in WEIGHTS.items()]

    def emit(b, x, first, second):
        op = relax.op
        y = b.emit(op.nn.relu(b.emit(op.nn.conv2d(x, first, padding=1))))
        y = b.emit(op.nn.max_pool2d(y, (2, 2), (2, 2)))
        return b.emit(op.mean(b.emit(op.nn.conv2d(y, second)), [2, 3]))

    mod = module_of([x, *weights], emit)
    new = bridge.as_tvm_pass("ToANormalForm,ConvertLayout{desired=[NHWC:OHWI]},DeadCodeElimination")(mod)
    relax.analysis.well_formed(new)
    theirs = relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})(relax.transform.Normalize()(mod))
    tvm.ir.assert_structural_equal(new, theirs)
    ops = [b.op for b in comes_back(new)["main"].bindings if b.op]
    assert ops.count("nn.conv2d") == 2 and ops.count("permute_dims") == 3, ops
    # And the way back.
    plain = bridge.as_tvm_pass("ConvertLayout{desired=[NCHW:OIHW]},DeadCodeElimination")(new)
    assert [b.op for b in comes_back(plain)["main"].bindings].count("permute_dims") == 0


WEIGHTS = {"first": [4, 3, 3, 3], "second": [4, 4, 2, 2]}


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


# ---- what is refused -----------------------------------------------------------------------------


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
