"""Pipelines as passes of the package onnx_ir."""

import sys

import anfora as af
import pytest
from anfora import transform as T


def test_without_the_package_the_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx_ir", None)
    with pytest.raises(ImportError, match="pip install onnx_ir"):
        af.onnx.ir_pass("O2")


np = pytest.importorskip("numpy", reason="numpy is not installed")
ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
reference = pytest.importorskip("onnx.reference", reason="onnx is not installed")
ir = pytest.importorskip("onnx_ir", reason="onnx_ir is not installed")
common = pytest.importorskip("onnx_ir.passes.common")

FLOAT = ir.DataType.FLOAT


def value(name, shape, dtype=FLOAT):
    return ir.Value(name=name, shape=ir.Shape(shape), type=ir.TensorType(dtype))


def weight(name, tensor):
    return ir.Value(
        name=name,
        shape=ir.Shape(tensor.shape.numpy()),
        type=ir.TensorType(tensor.dtype),
        const_value=tensor,
    )


def node(op, inputs, name, shape, dtype=FLOAT, **attributes):
    return ir.node(op, inputs, attributes=attributes, outputs=[value(name, shape, dtype)])


def model_of(inputs, nodes, weights=(), **about):
    graph = ir.Graph(
        inputs,
        [nodes[-1].outputs[0]],
        nodes=nodes,
        initializers=list(weights),
        opset_imports={"": 18},
        name="the_graph",
        doc_string="about the graph",
        metadata_props={"graph key": "graph value"},
    )
    return ir.Model(graph, ir_version=10, **about)


def twice_the_same(count=64):
    """Returns a model that adds exp(x * w) to itself, computed twice."""
    w = ir.Tensor(np.linspace(-1, 1, count, dtype="float32"), name="w", doc_string="about w")
    x, w = value("x", ["n", count]), weight("w", w)
    product = node("Mul", [x, w], "product", ["n", count])
    first = node("Exp", product.outputs, "first", ["n", count])
    second = node("Exp", product.outputs, "second", ["n", count])
    same = node("Identity", second.outputs, "same", ["n", count])
    total = node("Add", [first.outputs[0], same.outputs[0]], "total", ["n", count])
    return model_of(
        [x],
        [product, first, second, same, total],
        [w],
        producer_name="the producer",
        producer_version="3",
        domain="the.domain",
        model_version=7,
        doc_string="about the model",
        metadata_props={"model key": "model value"},
    )


def results(model, **inputs):
    proto = ir.to_proto(model)
    return reference.ReferenceEvaluator(proto).run(None, inputs)


def text(model):
    return ir.to_proto(model).SerializeToString(deterministic=True)


def ops(model):
    return [n.op_type for n in model.graph]


def fails(mod, ctx):
    raise RuntimeError("the pass is broken")


def test_a_pipeline_is_a_pass():
    model = twice_the_same()
    x = np.random.default_rng(0).random((3, 64), dtype="float32")
    before = results(model, x=x)
    optimize = af.onnx.ir_pass("O2")
    assert isinstance(optimize, ir.passes.InPlacePass) and "O2" in repr(optimize)
    result = optimize(model)
    assert result.model is model and result.modified
    assert ops(model) == ["Mul", "Exp", "Add"]
    np.testing.assert_array_equal(results(model, x=x), before)
    again = optimize(model)
    assert not again.modified and again.model is model


def test_passes_of_both_packages_work_in_one_sequence():
    model = twice_the_same()
    x = np.random.default_rng(1).random((2, 64), dtype="float32")
    before = results(model, x=x)
    sequence = ir.passes.Sequential(
        common.CheckerPass(),
        common.IdentityEliminationPass(),
        af.onnx.ir_pass([T.EliminateCommonSubexpr(), T.DeadCodeElimination()]),
        common.ShapeInferencePass(),
        common.RemoveUnusedNodesPass(),
        common.CheckerPass(),
    )
    assert sequence(model).modified
    assert ops(model) == ["Mul", "Exp", "Add"]
    np.testing.assert_array_equal(results(model, x=x), before)


def test_a_pass_manager_ends_when_nothing_changes():
    seen = []
    count = af.onnx.ir_pass("O2", requires=seen.append)
    manager = ir.passes.PassManager([count], steps=10, early_stop=True)
    assert manager(twice_the_same()).modified
    assert len(seen) == 2


def test_conditions_are_those_of_onnx_ir():
    def refuse(model):
        raise ValueError(f"{model.graph.name} does not fit")

    model = twice_the_same()
    before, graph = text(model), model.graph
    with pytest.raises(ir.passes.PreconditionError) as failed:
        af.onnx.ir_pass("O2", requires=refuse)(model)
    assert str(failed.value.__cause__) == "the_graph does not fit"
    assert text(model) == before and model.graph is graph
    with pytest.raises(ir.passes.PostconditionError):
        af.onnx.ir_pass("O2", ensures=refuse)(model)
    with pytest.raises(ir.passes.PassError) as failed:
        ir.passes.Sequential(af.onnx.ir_pass("O2", requires=refuse))(model)
    assert isinstance(failed.value.__cause__, ir.passes.PreconditionError)
    seen = []
    af.onnx.ir_pass("O1", requires=seen.append, ensures=seen.append)(model)
    assert seen == [model, model]


def test_a_pipeline_that_fails_leaves_the_model_as_it_was():
    model = twice_the_same()
    before, graph, w = text(model), model.graph, model.graph.initializers["w"].const_value
    broken = af.onnx.ir_pass([T.EliminateCommonSubexpr(), T.Pass("module", "broken", fails)])
    with pytest.raises(af.PassError, match="the pass is broken"):
        broken(model)
    with pytest.raises(ir.passes.PassError) as failed:
        ir.passes.Sequential(broken)(model)
    assert isinstance(failed.value.__cause__, af.PassError)
    assert text(model) == before and model.graph is graph
    assert graph.initializers["w"].const_value is w
    with pytest.raises(af.ConfigError):
        af.onnx.ir_pass("no_such_pass")
    with pytest.raises(TypeError, match="a pipeline is a pass of anfora, a list of passes, or a text, not int"):
        af.onnx.ir_pass(3)


def test_the_current_context_counts():
    model = twice_the_same()
    with T.PassContext(disabled_pass=["EliminateCommonSubexpr"]):
        assert not af.onnx.ir_pass([T.EliminateCommonSubexpr()])(model).modified
    assert af.onnx.ir_pass([T.EliminateCommonSubexpr()])(model).modified


def test_what_surrounds_the_nodes_is_kept():
    model = twice_the_same()
    model.meta["mine"] = 1
    model.graph.meta["mine too"] = 2
    before = ir.to_proto(model)
    af.onnx.ir_pass("O2")(model)
    after = ir.to_proto(model)
    for proto in (before, after):
        del proto.graph.node[:]
        del proto.graph.value_info[:]
        del proto.graph.initializer[:]
    assert after == before
    assert model.opset_imports == {"": 18} and list(model.graph.initializers) == ["w"]
    assert model.meta["mine"] == 1 and model.graph.meta["mine too"] == 2
    assert [o.name for n in model.graph for o in n.outputs] == ["product", "first", "total"]


def test_the_functional_form_returns_a_new_model():
    model = twice_the_same(1000)
    before = text(model)
    optimize = af.onnx.ir_pass("O2", in_place=False)
    assert isinstance(optimize, ir.passes.FunctionalPass)
    result = ir.passes.Sequential(optimize, af.onnx.ir_pass("O2", in_place=False))(model)
    assert result.model is not model and result.modified
    assert text(model) == before and ops(result.model) == ["Mul", "Exp", "Add"]
    assert not optimize(result).modified
    # Weights are not copied.
    old, new = (m.graph.initializers["w"].const_value for m in (model, result.model))
    assert new is old


def test_large_weights_stay_the_same_tensors():
    model = twice_the_same(1000)
    w = model.graph.initializers["w"].const_value
    af.onnx.ir_pass("O2")(model)
    assert model.graph.initializers["w"].const_value is w
    assert w.doc_string == "about w"
    assert not af.onnx.ir_pass("O2")(model).modified


@pytest.mark.parametrize("dtype", ["FLOAT16", "BFLOAT16", "INT64", "BOOL", "FLOAT8E4M3FN", "INT4", "UINT4"])
def test_new_weights_have_their_elements(dtype):
    dtype = ir.DataType[dtype]
    array = (np.arange(4096).reshape(64, 64) % 7).astype(dtype.numpy())
    w = weight("w", ir.Tensor(array, dtype, name="w"))
    x = value("x", [64, 64], dtype)
    turned = node("Transpose", [w], "turned", [64, 64], dtype, perm=[1, 0])
    cond = node("Identity", [turned.outputs[0]], "out", [64, 64], dtype)
    model = model_of([x], [turned, cond], [w])
    model.opset_imports[""] = 21
    assert af.onnx.ir_pass("O2")(model).modified
    [new] = [v.const_value for v in model.graph.initializers.values()]
    assert new.dtype == dtype and list(new.shape) == [64, 64]
    np.testing.assert_array_equal(new.numpy(), array.T)
    assert text(model)


def in_files(folder, names, array):
    """Writes an array into files of a folder, and returns weights that are there."""
    folder.mkdir(exist_ok=True)
    for name in names:
        array.tofile(folder / f"{name}.bin")
        shape = ir.Shape(array.shape)
        tensor = ir.ExternalTensor(f"{name}.bin", 0, array.nbytes, FLOAT, shape=shape, name=name, base_dir=folder)
        yield weight(name, tensor)


def test_weights_in_data_files_stay_there(tmp_path):
    array = np.random.default_rng(2).random((32, 32), dtype="float32")
    [w, v] = in_files(tmp_path / "one", "wv", array)
    [u] = in_files(tmp_path / "two", "u", array + 1)
    x = value("x", [32, 32])
    nodes = [node("Add", [x, w], "a", [32, 32])]
    nodes.append(node("Identity", [v], "b", [32, 32]))
    nodes.append(node("Sum", [nodes[0].outputs[0], nodes[1].outputs[0], u], "c", [32, 32]))
    model = model_of([x], nodes, [w, v, u])
    tensors = {name: v.const_value for name, v in model.graph.initializers.items()}
    assert af.onnx.ir_pass("O2")(model).modified
    after = {name: v.const_value for name, v in model.graph.initializers.items()}
    # Equal weights of one file each are one weight; all are the tensors of before.
    assert set(after) <= {"w", "v", "u"} and "u" in after
    for name, tensor in after.items():
        assert tensor is tensors[name]
    assert {path.name for path in tmp_path.glob("*/*")} == {"w.bin", "v.bin", "u.bin"}
    [total] = results(ir.external_data.load_to_model(model), x=array)
    np.testing.assert_allclose(total, 4 * array + 1, rtol=1e-6)


def test_a_missing_data_file_is_an_error(tmp_path):
    [w] = in_files(tmp_path / "one", "w", np.ones((32, 32), "float32"))
    x = value("x", [32, 32])
    model = model_of([x], [node("Add", [x, w], "a", [32, 32])], [w])
    (tmp_path / "one" / "w.bin").unlink()
    with pytest.raises(af.OnnxError, match="w.bin"):
        af.onnx.ir_pass("O2")(model)


def branches(then_weight, else_weight):
    """Returns a model with an `If` whose branches have weights."""
    x, cond = value("x", [32, 32]), value("cond", [], ir.DataType.BOOL)
    graphs = []
    for name, w in (("then", then_weight), ("else", else_weight)):
        add = node("Add", [x, w], f"{name}_sum", [32, 32])
        graphs.append(ir.Graph([], add.outputs, nodes=[add], initializers=[w], name=name))
    choose = node("If", [cond], "chosen", [32, 32], then_branch=graphs[0], else_branch=graphs[1])
    out = node("Identity", choose.outputs, "out", [32, 32])
    return model_of([x, cond], [choose, out])


def test_weights_of_branches(tmp_path):
    array = np.random.default_rng(3).random((32, 32), dtype="float32")
    [there] = in_files(tmp_path / "one", "w", array)
    model = branches(there, weight("v", ir.Tensor(array * 2, name="v")))
    assert af.onnx.ir_pass("O2")(model).modified
    tensors = [v.const_value for g in model.graphs() for v in g.initializers.values()]
    assert sorted(isinstance(t, ir.ExternalTensor) for t in tensors) == [False, True]
    model = ir.external_data.load_to_model(model)
    for cond in (True, False):
        [out] = results(model, x=array, cond=np.array(cond))
        np.testing.assert_array_equal(out, array + array if cond else array + array * 2)


def test_branches_with_files_in_several_folders_are_refused(tmp_path):
    array = np.ones((32, 32), "float32")
    [w], [v] = in_files(tmp_path / "one", "w", array), in_files(tmp_path / "two", "v", array)
    with pytest.raises(ValueError, match="load_to_model"):
        af.onnx.ir_pass("O2")(branches(w, v))


def test_functions_of_a_model():
    x = ir.Value(name="p")
    body = ir.node("Mul", [x, x], outputs=[ir.Value(name="q")])
    square = ir.Function(
        "my.domain",
        "Square",
        graph=ir.Graph([x], body.outputs, nodes=[body], opset_imports={"": 18}),
        attributes=[],
    )
    y = value("y", [4])
    call = ir.node("Square", [y], domain="my.domain", outputs=[value("z", [4])])
    same = node("Identity", call.outputs, "out", [4])
    model = model_of([y], [call, same], functions=[square])
    model.opset_imports["my.domain"] = 1
    before = results(model, y=np.arange(4, dtype="float32"))
    assert af.onnx.ir_pass("O2")(model).modified
    np.testing.assert_array_equal(results(model, y=np.arange(4, dtype="float32")), before)


def test_a_deep_model():
    x = value("x", [4])
    nodes, last = [], x
    for number in range(20_000):
        nodes.append(node("Identity" if number % 2 else "Relu", [last], f"v{number}", [4]))
        last = nodes[-1].outputs[0]
    model = model_of([x], nodes)
    assert af.onnx.ir_pass([T.CanonicalizeBindings(), T.DeadCodeElimination()])(model).modified
    assert len(model.graph) < 20_000
    assert ir.passes.Sequential(af.onnx.ir_pass("O2"))(model).model is model
