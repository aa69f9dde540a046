"""Programs that run, and parts of them that backends compute."""

import gc
import weakref

import pytest

import anfora as af
from anfora import transform as T

np = pytest.importorskip("numpy")

PROGRAM = """
def @main(%x: Tensor[(n, 4), float32], %w: Tensor[(4, 4), float32]) {
  let %p = matmul(%x, %w);
  let %r = nn.relu(%p);
  let %e = exp(%r);
  let %g = nn.gelu(%e);
  let %s = add(%r, %g);
  let %t = tanh(%s);
  matmul(%t, %w)
}
"""


def arguments():
    rng = np.random.default_rng(1)
    return [rng.normal(size=shape).astype("float32") for shape in [(3, 4), (4, 4)]]


def interpreted(code):
    """Returns a backend whose code is the interpreter; `code` gets it."""

    def generate(name, module):
        def run(*values):
            result = af.run(module, *values)
            return list(result) if isinstance(result, tuple) else result

        code[name] = run
        return name

    return generate


def test_values_go_in_and_out():
    mod = af.loads("def @f(%p: (float32, (int64, Tensor[(2,), bool]))) { let %q = (%p.1, %p); %q }")
    (number, mask), (x, _) = af.run(mod, (2.0, (af.Literal(3, dtype="int64"), [True, False])), function="f")
    assert (number.item(), mask.tolist(), x.item()) == (3, [True, False], 2.0)
    assert af.run(mod, (2.0, (np.int64(3), np.array([True, False]))), function="@f")[0][0].dtype == "int64"


def test_a_function_is_no_value():
    mod = af.loads("def @main(%x: float32) { let %f = fn () { %x }; (%f, %x) }")
    function, x = af.run(mod, 1.0)
    assert function is None and x.item() == 1.0


def test_nested_values_take_no_stack():
    depth = 20_000
    mod = af.loads("def @main(%x: float32) { %x }")
    value = 1.0
    for _ in range(depth):
        value = (value,)
    with pytest.raises(af.RunError, match="argument 0"):
        af.run(mod, value)
    lines = "".join(f"let %t{i} = (%t{i - 1},);" for i in range(1, depth))
    result = af.run(af.loads("def @main(%t0: float32) {" + lines + f"%t{depth - 1} }}"), 1.0)
    for _ in range(1, depth):
        (result,) = result
    assert result.item() == 1.0


@pytest.mark.parametrize(
    ("given", "message"),
    [([1.0, 2.0], "takes 1 arguments, not 2"), ([[1.0]], "argument 0 is"), ([np.int32(1)], "argument 0 is")],
)
def test_arguments_that_do_not_fit(given, message):
    mod = af.loads("def @main(%x: float32) { exp(%x) }")
    with pytest.raises(af.RunError, match=message):
        af.run(mod, *given)


def test_mistakes_have_an_exception():
    mod = af.loads("declare @f(%x: float32) -> float32; def @main(%x: float32) { @f(%x) }")
    with pytest.raises(af.RunError, match="there is no function `@other`"):
        af.run(mod, 1.0, function="other")
    with pytest.raises(af.RunError, match="declared, not defined"):
        af.run(mod, 1.0)
    with pytest.raises(af.RunError, match="its result is not"):
        af.run(mod, 1.0, externals={"f": lambda x: 1})
    with pytest.raises(ZeroDivisionError):
        af.run(mod, 1.0, externals={"f": lambda x: 1 / 0})
    assert af.run(mod, 1.0, externals={"f": lambda x: x.item() + 1.0}).item() == 2.0


def test_random_numbers_have_a_seed():
    mod = af.loads("def @main() { random.uniform(shape=shape(4), dtype=float32) }")
    assert af.run(mod, seed=1).tolist() == af.run(mod, seed=1).tolist() != af.run(mod, seed=2).tolist()


def test_two_backends_compute_the_same():
    mod, code = af.loads(PROGRAM), {}
    backends = {"first": interpreted(code), "second": interpreted(code)}
    parts = T.byoc(backends, patterns={"first": "matmul_activation,matmul", "second": "gelu,e=exp(%x)"})(mod)
    symbols = {parts[name].attrs["global_symbol"] for name in parts if name != "main"}
    assert symbols == set(code) and len(code) == 3
    expected, found = af.run(mod, *arguments()), af.run(parts, *arguments(), externals=code)
    assert expected == found


def test_onnxruntime_computes_parts():
    onnxruntime = pytest.importorskip("onnxruntime")
    mod, sessions = af.loads(PROGRAM), {}

    def generate(name, module):
        session = onnxruntime.InferenceSession(af.onnx.to_bytes(module), providers=["CPUExecutionProvider"])
        names = [node.name for node in session.get_inputs()]
        sessions[name] = lambda *values: session.run(None, dict(zip(names, map(np.asarray, values))))
        return name

    parts = T.byoc({"ort": generate})(mod)
    assert sessions
    expected, found = af.run(mod, *arguments()), af.run(parts, *arguments(), externals=sessions)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)


def test_what_a_backend_raises_is_the_cause():
    mod = af.loads(PROGRAM)
    before = str(mod)

    def generate(name, module):
        raise KeyError("no code")

    with pytest.raises(af.PassError) as caught:
        T.byoc({"mine": generate})(mod)
    assert isinstance(caught.value.__cause__, KeyError) and caught.value.pass_name == "RunCodegen"
    assert str(mod) == before
    with pytest.raises(af.PassError, match="str"):
        T.byoc({"mine": lambda name, module: 1})(mod)


def test_patterns_of_no_backend_are_refused():
    with pytest.raises(ValueError, match="'other'"):
        T.byoc({"mine": lambda name, module: name}, patterns={"other": "matmul"})
    with pytest.raises(af.ConfigError, match="there is no standard pattern"):
        T.byoc({"mine": lambda name, module: name}, patterns={"mine": "matmull"})


@pytest.mark.parametrize("name", ["", "my.backend"])
def test_names_of_backends_have_no_dots(name):
    with pytest.raises(ValueError, match="without dots"):
        T.byoc({name: lambda name, module: name})


def test_backends_are_collected():
    class Owner:
        pass

    owner = Owner()
    owner.code_pass = T.RunCodegen({"mine": lambda name, module, owner=owner: name})
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None
