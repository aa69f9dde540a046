"""Edits by name. onnxruntime compares parts with the values inside the whole model."""

import anfora as af
import pytest

TEXT = """def @main(%image: Tensor[(2, 3, 8, 8), float32]) -> Tensor[(2, 4), float32] {
  let %weight = ones(shape=shape(4, 3, 3, 3), dtype=float32);
  let %conv = nn.conv2d(%image, %weight, padding=[1, 1, 1, 1]);
  let %relu = nn.relu(%conv);
  let %mean = mean(%relu, axis=[2, 3]);
  let %scores = nn.softmax(%mean);
  %scores
}
"""


@pytest.fixture
def mod():
    return af.onnx.from_onnx(af.onnx.to_bytes(af.loads(TEXT)))


def session(data):
    runtime = pytest.importorskip("onnxruntime")
    return runtime.InferenceSession(data, providers=["CPUExecutionProvider"])


def test_a_part_computes_the_values_inside_the_model(mod):
    np = pytest.importorskip("numpy")
    onnx = pytest.importorskip("onnx")
    whole = onnx.load_model_from_string(af.onnx.to_bytes(mod))
    inner = ["conv", "relu", "mean"]
    # The values inside the model become its outputs.
    for name in inner:
        whole.graph.output.append(onnx.ValueInfoProto(name=name))
    image = np.random.default_rng(1).standard_normal((2, 3, 8, 8), np.float32)
    values = dict(
        zip([*inner, "scores"], session(whole.SerializeToString()).run([*inner, "scores"], {"image": image}))
    )
    values["image"] = image
    for inputs, outputs in [
        (["image"], ["relu"]),
        (["conv"], ["mean", "relu"]),
        (["mean"], ["scores"]),
        (["relu"], ["scores"]),
    ]:
        part = af.surgery.extract(mod, inputs, outputs)
        data = af.onnx.to_bytes(part)
        onnx.checker.check_model(onnx.load_model_from_string(data), full_check=True)
        run = session(data)
        assert [i.name for i in run.get_inputs()] == inputs
        found = run.run(outputs, {name: values[name] for name in inputs})
        for name, value in zip(outputs, found):
            np.testing.assert_array_equal(value, values[name])


def test_a_part_is_that_of_the_package_onnx(mod, tmp_path):
    onnx = pytest.importorskip("onnx")
    (tmp_path / "whole.onnx").write_bytes(af.onnx.to_bytes(mod))
    onnx.utils.extract_model(
        str(tmp_path / "whole.onnx"), str(tmp_path / "part.onnx"), ["relu"], ["scores"], check_model=False
    )
    theirs = onnx.load(tmp_path / "part.onnx").graph
    ours = onnx.load_model_from_string(
        af.onnx.to_bytes(af.surgery.extract(mod, ["relu"], ["scores"]))
    ).graph
    assert [(n.op_type, list(n.output)) for n in ours.node] == [(n.op_type, list(n.output)) for n in theirs.node]
    assert [i.name for i in ours.input] == [i.name for i in theirs.input]
    assert [o.name for o in ours.output] == [o.name for o in theirs.output]


def test_a_model_of_fixed_size_takes_any_batch(mod):
    np = pytest.importorskip("numpy")
    dynamic = af.surgery.set_shapes(mod, {"image": ["batch", None, None, None]})
    dynamic = af.surgery.rename(dynamic, {"image": "pixels", "scores": "classes"})
    run = session(af.onnx.to_bytes(dynamic))
    assert run.get_inputs()[0].shape == ["batch", 3, 8, 8]
    image = np.random.default_rng(2).standard_normal((6, 3, 8, 8), np.float32)
    (found,) = run.run(["classes"], {"pixels": image})
    fixed = session(af.onnx.to_bytes(mod))
    expected = [fixed.run(["scores"], {"image": image[i : i + 2]})[0] for i in (0, 2, 4)]
    np.testing.assert_allclose(found, np.concatenate(expected), rtol=1e-6)


def test_attributes_are_set(mod):
    edited = af.surgery.set_attributes(mod, {"scores": {"axis": 0}, "mean": {"keepdims": True}})
    text = str(edited)
    assert "nn.softmax(%mean, axis=0)" in text and "keepdims=true" in text
    assert edited["main"].ret_type.shape == (2, 4, 1, 1)
    assert "axis=0" not in str(mod), "the module itself is as it was"


def test_values_of_attributes_need_no_text():
    np = pytest.importorskip("numpy")
    text = """def @main(%x: Tensor[(2, 3), float32]) {
      let %a = nn.hard_sigmoid(%x, alpha=0.5, beta=1.0);
      let %b = sum(%a, axis=[0]);
      let %c = sum(%a, axis=[0]);
      let %d = astype(add(%b, %c), dtype=float32);
      let %e: Tensor[(2,), float32] = onnx.Foo(%d, text="");
      %e
    }"""
    # Both sums have another shape then.
    edited = af.surgery.set_attributes(
        af.loads(text),
        {
            "a": {"alpha": float("-inf"), "beta": np.float32(2.5)},
            "b": {"axis": [np.int64(1)]},
            "c": {"axis": [1]},
            "d": {"dtype": "float64"},
            "e": {"text": 'a "b"\r\n', "items": [1, 2.5, "c"]},
        },
    )
    values = {b.var.name: b.value.attrs for b in edited["main"].bindings if b.value.kind == "call"}
    assert values["a"]["alpha"] == float("-inf") and values["a"]["beta"] == 2.5
    assert values["b"]["axis"] == values["c"]["axis"] == [1]
    assert "dtype=float64" in str(edited)
    assert values["e"] == {"text": 'a "b"\r\n', "items": [1, 2.5, "c"]}
    with pytest.raises(TypeError, match="needs a value"):
        af.surgery.set_attributes(edited, {"b": {"axis": None}})
    with pytest.raises(TypeError, match="an attribute is a number"):
        af.surgery.set_attributes(edited, {"b": {"axis": object()}})


def test_mistakes_are_errors_with_suggestions(mod):
    before = str(mod)
    with pytest.raises(af.SurgeryError, match="there is no value `%sores`") as error:
        af.surgery.extract(mod, ["relu"], ["sores"])
    assert error.value.diagnostics[0].help == "did you mean `%scores`?"
    with pytest.raises(af.SurgeryError, match="the outputs need the input `%image` too"):
        af.surgery.extract(mod, ["mean"], ["scores", "conv"])
    with pytest.raises(af.SurgeryError, match="the name is taken"):
        af.surgery.rename(mod, {"conv": "relu"})
    with pytest.raises(af.SurgeryError, match="4"):
        af.surgery.set_shapes(mod, {"image": [1]})
    with pytest.raises(af.SurgeryError, match="no attribute `axiss`"):
        af.surgery.set_attributes(mod, {"scores": {"axiss": 1}})
    with pytest.raises(TypeError):
        af.surgery.extract(mod, "relu", ["scores"])
    assert str(mod) == before
