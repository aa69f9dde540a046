"""Constants from and to NumPy: element types, shapes, layouts, strings."""

import pickle

import anfora as af
import pytest

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")

#: The element types that NumPy has itself, by the name that both use.
NATIVE = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip

#: The element types of ml_dtypes: their names there, and ours.
ML = {
    "bfloat16": "bfloat16",
    "int2": "int2",
    "uint2": "uint2",
    "int4": "int4",
    "uint4": "uint4",
    "float4_e2m1fn": "float4e2m1",
    "float8_e4m3fn": "float8e4m3fn",
    "float8_e4m3fnuz": "float8e4m3fnuz",
    "float8_e5m2": "float8e5m2",
    "float8_e5m2fnuz": "float8e5m2fnuz",
    "float8_e8m0fnu": "float8e8m0",
}

DTYPES = [*NATIVE, *ML]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name)) if name in ML else np.dtype(name)


def values(name, count=7):
    """Returns an array of different values of an element type: every bit pattern that is short."""
    dtype = dtype_of(name)
    if name == "bool":
        return np.arange(count) % 3 == 0
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([info.max, 0, 1, info.min, info.max, 2, 3][:count], dtype)
    if dtype.kind == "c":
        return np.array([1 + 2j, -0.5j, 0, complex("inf"), 3, -1, 1j][:count], dtype)
    if name in ("int4", "uint4"):
        signed = name == "int4"
        return np.array([7, 0, 1, -8 if signed else 15, 2, 3, 4][:count]).astype(dtype)
    if name in ("int2", "uint2"):
        return np.array([0, 1, 1, -2 if name == "int2" else 3, 0, -1 if name == "int2" else 2, 1][:count]).astype(dtype)
    return np.array([1, 2, 0.5, 4, 1, 0.25, 2][:count], "float32").astype(dtype)


def same(left, right):
    """Compares arrays by type, shape and bytes, so that NaN equals itself and -0.0 is not 0.0."""
    assert left.dtype == right.dtype and left.shape == right.shape
    assert np.ascontiguousarray(left).tobytes() == np.ascontiguousarray(right).tobytes()


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(7,), (1, 7), (7, 1, 1)])
def test_there_and_back(name, shape):
    array = values(name).reshape(shape)
    literal = af.Literal(array)
    assert literal.dtype == ML.get(name, name) and literal.shape == shape and literal.size == 7
    same(literal.numpy(), array)
    same(np.asarray(literal), array)
    assert pickle.loads(pickle.dumps(literal)) == literal
    assert af.Literal(literal.numpy()) == literal
    changed = array.copy().reshape(-1)
    changed[0] = changed[2]
    assert af.Literal(changed.reshape(shape)) != literal


@pytest.mark.parametrize("name", DTYPES)
def test_scalars_and_splats(name):
    one = values(name)[2]
    scalar = af.Literal(np.array(one))
    assert scalar.shape == () and scalar.size == 1
    assert scalar.item() == np.array(one).item()
    same(scalar.numpy(), np.array(one))
    splat = af.Literal(np.full((2, 3), one))
    same(splat.numpy(), np.full((2, 3), one))
    assert splat == af.Literal(np.array([[one] * 3] * 2)) and splat != scalar
    assert pickle.loads(pickle.dumps(splat)) == splat
    assert not splat.numpy().flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        splat.numpy()[0, 0] = one


@pytest.mark.parametrize("name", [n for n in DTYPES if n not in ("int2", "uint2", "int4", "uint4")])
def test_arrays_are_read_only(name):
    array = af.Literal(values(name)).numpy()
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        array[0] = array[1]
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.setflags(write=True)


@pytest.mark.parametrize("name", ["int2", "uint2", "int4", "uint4"])
def test_arrays_of_small_integers_are_read_only(name):
    assert not af.Literal(values(name)).numpy().flags.writeable


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 4)])
def test_no_elements(name, shape):
    array = np.zeros(shape, dtype_of(name))
    literal = af.Literal(array)
    assert (literal.shape, literal.size, literal.nbytes) == (shape, 0, 0)
    same(literal.numpy(), array)
    assert literal.tobytes() == b"" and literal.tolist() == array.tolist()
    assert pickle.loads(pickle.dumps(literal)) == literal
    with pytest.raises(ValueError, match="0 elements"):
        literal.item()


@pytest.mark.parametrize("name", DTYPES)
def test_other_layouts(name):
    array = np.resize(values(name), 24).reshape(2, 3, 4)
    views = [
        array.T,
        array[::-1],
        array[:, ::2],
        array[..., -1],
        array[1:, 1:, 1:],
        np.asfortranarray(array),
        np.broadcast_to(array[0, 0], (5, 4)),
        array.transpose(1, 0, 2)[::-1, :, ::3],
    ]
    for view in views:
        same(af.Literal(view).numpy(), np.ascontiguousarray(view))


@pytest.mark.parametrize("name", [n for n in NATIVE if np.dtype(n).itemsize > 1])
def test_big_endian_arrays(name):
    array = values(name)
    swapped = array.astype(array.dtype.newbyteorder(">"))
    assert swapped.tobytes() != array.tobytes()
    literal = af.Literal(swapped)
    assert literal == af.Literal(array)
    same(literal.numpy(), array)
    same(af.Literal(swapped[::-2]).numpy(), array[::-2].copy())


def test_bytes_are_little_endian_and_packed():
    assert af.Literal(np.array([1, 2], ">u2")).tobytes() == b"\x01\x00\x02\x00"
    four = np.array([1, -1, 7]).astype(ml_dtypes.int4)
    assert af.Literal(four).tobytes() == b"\xf1\x07" and af.Literal(four).nbytes == 2
    small = np.array([0.5, 1, -6], "float32").astype(ml_dtypes.float4_e2m1fn)
    assert af.Literal(small).tobytes() == b"\x21\x0f"
    assert af.Literal(np.full(3, -8).astype(ml_dtypes.int4)).numpy().tolist() == [-8, -8, -8]


def test_bits_are_kept():
    bits = np.array([0x7FC00001, 0x80000000, 0xFF800000, 0x00000001], "uint32")
    array = bits.view("float32")
    assert af.Literal(array).numpy().view("uint32").tolist() == bits.tolist()
    nan = np.array([np.nan])
    assert af.Literal(nan) == af.Literal(nan)
    assert af.Literal(np.array([0.0, 1.0])) != af.Literal(np.array([-0.0, 1.0]))
    every = np.arange(256, dtype="uint8")
    for name, dtype in ML.items():
        if dtype.startswith("float8"):
            array = every.view(getattr(ml_dtypes, name))
            assert af.Literal(array).tobytes() == every.tobytes()


def test_strings():
    words = np.array(["a", "bé", "", "𝄞"])
    literal = af.Literal(words)
    assert literal.dtype == "string" and literal.shape == (4,) and literal.nbytes is None
    assert literal.tolist() == words.tolist()
    assert af.Literal(words.astype(object)) == literal
    assert not literal.numpy().flags.writeable
    assert pickle.loads(pickle.dumps(literal)) == literal
    assert af.Literal("word").item() == "word" and af.Literal("word").shape == ()
    assert af.Literal(np.array([["x"], ["x"]])).tolist() == [["x"], ["x"]]
    assert af.Literal(np.array([], "U1")).shape == (0,)
    with pytest.raises(TypeError, match="strings"):
        af.Literal(np.array([b"bytes"]))
    with pytest.raises(TypeError, match="strings"):
        af.Literal(np.array(["a", 3], object))
    with pytest.raises(UnicodeEncodeError):
        af.Literal(np.array(["\ud800"]))


def test_the_element_type_of_plain_numbers():
    assert (af.Literal(2).dtype, af.Literal(2.0).dtype, af.Literal(True).dtype) == (
        "int32",
        "float32",
        "bool",
    )
    assert af.Literal(np.int64(2)).dtype == "int64"
    assert af.Literal(np.float16(2)).dtype == "float16"
    assert af.Literal(np.bool_(True)).dtype == "bool"
    assert af.Literal([1, 2]).dtype == "int64" and af.Literal([1.5]).dtype == "float64"
    assert af.Literal(range(3)).tolist() == [0, 1, 2]
    assert af.Literal([1, 2], "float16").tolist() == [1.0, 2.0]
    assert af.Literal([1, 2], "bfloat16").numpy().dtype == ml_dtypes.bfloat16
    assert af.Literal([1, 2], "float8_e5m2").dtype == "float8e5m2"


def test_a_scalar_of_numpy_keeps_its_element_type():
    assert af.Literal(np.float64(0.1)).dtype == "float64"


@pytest.mark.parametrize("name", ["int4", "uint4", "float8_e4m3fn", "float4_e2m1fn", "complex64"])
def test_a_number_of_any_element_type(name):
    assert af.Literal(1, name).item() == 1


def test_elements_that_do_not_fit_are_refused():
    with pytest.raises((ValueError, OverflowError)):
        af.Literal([300], "int8")


def test_numbers_that_do_not_fit():
    for value, dtype in [(300, "int8"), (-1, "uint8"), (1.5, "int32"), (2**40, None), (2, "bool")]:
        with pytest.raises(ValueError, match="no exact element"):
            af.Literal(value, dtype)
    with pytest.raises((ValueError, OverflowError)):
        af.Literal(2**70)
    with pytest.raises(ValueError, match="did you mean .float32"):
        af.Literal(1.0, "flaot32")


def test_what_is_no_array():
    for value in [None, object(), {}, {1}, b"bytes", np.array([None])]:
        with pytest.raises(TypeError):
            af.Literal(value)
    for value in [[1, [2]], np.datetime64("2020"), np.zeros(1, "V4"), np.zeros(1, "i4,i4")]:
        with pytest.raises(ValueError):
            af.Literal(value)

    class Interrupts:
        def __array__(self, dtype=None, copy=None):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        af.Literal(Interrupts())


def test_a_literal_is_an_array_for_numpy():
    literal = af.Literal(np.arange(6, dtype="int32").reshape(2, 3))
    assert np.asarray(literal, dtype="float32").dtype == "float32"
    assert np.array(literal).flags.writeable
    assert np.add(literal, 1).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert literal.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError, match="6 elements"):
        literal.item()


@pytest.mark.parametrize("name", DTYPES)
def test_constants_of_a_program(name):
    array = values(name)
    mod = af.Module()
    fb = af.FunctionBuilder(mod, "main")
    fb.finish(fb.emit_tuple(fb.const_(array), fb.const_(np.full((2, 2), array[2]))))
    read = af.loads(mod.text())
    assert read == mod
    first, second = read["main"].bindings[0].args
    same(first.literal.numpy(), array)
    same(second.literal.numpy(), np.full((2, 2), array[2]))
    assert first.type.dtype == ML.get(name, name) and first.type.shape == (7,)


def test_large_splats_take_no_memory():
    text = "def @main() { dense<Tensor[(1000000000000,), float32]>[1] }"
    literal = af.loads(text)["main"].result.literal
    assert literal.nbytes == 4 * 10**12 and literal.numpy().shape == (10**12,)
    assert hash(literal) == hash(af.loads(text)["main"].result.literal)
    mod = af.loads(text)
    assert pickle.loads(pickle.dumps(mod)) == mod
