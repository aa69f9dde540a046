"""Models in and out, and slim."""

import anfora as af
import pytest

TEXT = """def @main(%x: Tensor[(batch, 4), float32]) -> Tensor[(batch, 4), float32] {
  let %t = permute_dims(%x, axes=[1, 0]);
  let %a = permute_dims(%t, axes=[1, 0]);
  let %b = exp(%a);
  let %c = exp(%a);
  add(%b, %c)
}
"""


@pytest.fixture
def data():
    return af.onnx.to_bytes(af.loads(TEXT))


def node_count(model):
    return len(af.onnx.from_onnx(model)["main"].bindings)


def test_bytes_are_given_back_for_bytes(data):
    small = af.slim(data)
    assert isinstance(small, bytes) and node_count(small) < node_count(data)
    assert af.slim(bytearray(data)) == small == af.slim(memoryview(data))
    assert af.slim(data, check=3) == small


def test_a_path_is_read_and_written(data, tmp_path):
    source, target = tmp_path / "model.onnx", tmp_path / "small.onnx"
    source.write_bytes(data)
    assert af.slim(source, target) is None
    assert node_count(target) == node_count(af.slim(data)) == len(af.load(target)["main"].bindings)
    af.slim(data, str(tmp_path / "again.onnx"))
    assert (tmp_path / "again.onnx").read_bytes() == target.read_bytes()


def test_a_proto_is_given_back_for_a_proto(data, tmp_path):
    onnx = pytest.importorskip("onnx")
    model = onnx.load_model_from_string(data)
    small = af.slim(model)
    assert isinstance(small, onnx.ModelProto) and len(small.graph.node) < len(model.graph.node)
    onnx.checker.check_model(small)
    (tmp_path / "model.onnx").write_bytes(data)
    assert isinstance(af.slim(tmp_path / "model.onnx"), onnx.ModelProto)
    simplified, ok = af.onnx.simplify(model, check_n=2)
    assert ok and simplified == small
    assert isinstance(af.onnx.to_onnx(af.onnx.from_onnx(model)), onnx.ModelProto)


def test_inputs_are_given_their_extents(data):
    small = af.onnx.from_onnx(af.slim(data, input_shapes={"x": [2, None]}))
    assert small["main"].params[0].type.shape == (2, 4)
    with pytest.raises(af.PassError, match="there is no input `y`"):
        af.slim(data, input_shapes={"y": [2]})
    with pytest.raises(TypeError):
        af.slim(data, input_shapes=3)


def test_passes_are_left_out(data):
    kept = af.slim(data, disable=["EliminateCommonSubexpr", "SimplifyExpr"])
    assert node_count(kept) > node_count(af.slim(data))
    assert af.onnx.simplify(data, skipped_optimizers=["EliminateCommonSubexpr", "SimplifyExpr"])[0] == kept
    with pytest.raises(TypeError):
        af.slim(data, disable="FoldConstant")


def test_what_is_no_model():
    for wrong in (3, None, object()):
        with pytest.raises(TypeError, match="SerializeToString"):
            af.slim(wrong)
    with pytest.raises(af.OnnxError):
        af.slim(b"not a model")
    with pytest.raises(FileNotFoundError):
        af.slim("/nowhere/model.onnx")


def test_the_command_line_is_there(tmp_path):
    import subprocess
    import sys

    (tmp_path / "model.anf").write_text(TEXT)
    command = [sys.executable, "-m", "anfora", "slim", "model.anf", "small.onnx", "--quiet"]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
    assert node_count(tmp_path / "small.onnx") == 2
    assert subprocess.run([sys.executable, "-m", "anfora", "nothing"], capture_output=True, check=False).returncode == 2


def test_weights_stay_in_their_data_file(tmp_path):
    numbers = ", ".join(str(n) for n in range(2000))
    mod = af.loads(f"def @main(%x: Tensor[(2000,), float32]) {{ add(%x, dense<Tensor[(2000,), float32]>[{numbers}]) }}")
    source, target, data = tmp_path / "m.onnx", tmp_path / "small.onnx", tmp_path / "m.onnx.data"
    af._anfora._save_onnx(mod, str(source), external_data=1)
    before = data.read_bytes()
    af.slim(source, target)
    assert b"m.onnx.data" in target.read_bytes() and data.read_bytes() == before
    assert not (tmp_path / "small.onnx.data").exists()
    assert str(af.load(target)) == str(af.load(source))
    # The file changes after the model is read.
    read = af.load(source)
    data.write_bytes(before[:100])
    with pytest.raises(af.OnnxError, match="has changed since the program was read"):
        af.onnx.to_bytes(read)
    [constant] = [a.literal for b in read["main"].bindings for a in b.args if a.literal is not None]
    with pytest.raises(OSError, match="m.onnx.data has changed"):
        constant.tobytes()


def test_contrib_operators_take_the_place_of_standard_ones():
    onnx = pytest.importorskip("onnx")
    mod = af.loads(
        """#![onnx_ir_version=10, onnx_opsets=[["", 17]]]
        def @main(%x: Tensor[(n, 8), float32], %b: Tensor[(8,), float32], %s: Tensor[(8,), float32]) {
          let %a = add(%x, %b);
          let %e = add(erf(divide(%a, 1.4142135f)), 1f);
          let %g = multiply(multiply(%a, %e), 0.5f);
          let %r = add(%g, %x);
          nn.layer_norm(%r, %s, %b)
        }"""
    )
    data = af.onnx.to_bytes(af.transform.ToANormalForm()(mod))

    def operators(model):
        return [(node.domain, node.op_type) for node in onnx.load_model_from_string(model).graph.node]

    plain = af.slim(data)
    assert {domain for domain, _ in operators(plain)} == {""}
    small = af.slim(data, contrib=True)
    microsoft = "com.microsoft"
    assert operators(small) == [(microsoft, "BiasGelu"), (microsoft, "SkipLayerNormalization")]
    assert {i.domain: i.version for i in onnx.load_model_from_string(small).opset_import} == {"": 17, microsoft: 1}
    # The operators come back, and nothing is left to do.
    assert af.slim(small, contrib=True) == small
    with pytest.raises(ValueError, match="contrib changes rounding"):
        af.slim(data, exact=True, contrib=True)


def test_contrib_operators_compute_the_same(tmp_path):
    np = pytest.importorskip("numpy")
    onnxruntime = pytest.importorskip("onnxruntime")
    mod = af.loads(
        """#![onnx_ir_version=10, onnx_opsets=[["", 20]]]
        def @main(%x: Tensor[(3, 8), float32], %y: Tensor[(3, 8), float32]) {
          let %g = nn.gelu(%x);
          let %t = nn.gelu(%y, approximate="tanh");
          let %p = multiply(matmul(%g, permute_dims(%t, axes=[1, 0])), 0.5f);
          (%p, %g)
        }"""
    )
    data = af.onnx.to_bytes(af.transform.ToANormalForm()(mod))
    random = np.random.default_rng(0)
    inputs = {name: random.standard_normal((3, 8)).astype(np.float32) for name in ("x", "y")}
    for before, after in zip(
        *(
            onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, inputs)
            for model in (data, af.slim(data, contrib=True))
        ),
        strict=True,
    ):
        np.testing.assert_allclose(before, after, rtol=1e-4, atol=1e-5)
