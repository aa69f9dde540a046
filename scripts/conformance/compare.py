"""Whether values, and types, are what they should be."""

import numpy as np
import onnx

# Two units in the last place; for bfloat16 the package's own runner allows them too.
BFLOAT16_RTOL = 2.0**-6
FLOAT16_RTOL = 2.0**-9


def values_differ(expected, actual, rtol, atol, what="output"):
    """How two values differ; None if they agree. Each is an array, a list of values, or None.

    >>> values_differ([np.float32([1, np.nan])], [np.float32([1.0000001, np.nan])], 1e-3, 1e-7)
    >>> values_differ([np.float32([1, 2, 3])], [np.float32([1, 2, 4])], 1e-3, 1e-7)
    'output[0]: 1 of 3 elements differ, the first at [2]: 4.0, not 3.0'
    >>> values_differ([np.float32([np.inf])], [np.float32([1])], 1e-3, 1e-7)
    'output[0]: 1 of 1 elements differ, the first at [0]: 1.0, not inf'
    >>> values_differ([np.int64([1, 2])], [np.int64([[1, 2]])], 1e-3, 1e-7)
    'output[0] has shape [1, 2], not [2]'
    >>> values_differ(np.int64(1), np.int32(1), 1e-3, 1e-7)
    'output is int32, not int64'
    >>> values_differ([np.int64([2**53])], [np.int64([2**53 + 1])], 0, 0)
    'output[0]: 1 of 1 elements differ, the first at [0]: 9007199254740993, not 9007199254740992'
    >>> values_differ([None, []], [None, []], 1e-3, 1e-7)
    >>> values_differ([None], [np.int64(1)], 1e-3, 1e-7)
    'output[0] is present, but should be absent'
    >>> values_differ([1], [1, 2], 1e-3, 1e-7)
    'output has 2 parts, not 1'
    >>> values_differ(np.array(["a", "b"], object), np.array(["a", "c"], object), 1e-3, 1e-7)
    "output: 1 of 2 elements differ, the first at [1]: 'c', not 'b'"
    """
    if expected is None or actual is None:
        if expected is None and actual is None:
            return None
        said = ["absent", "present"]
        return f"{what} is {said[actual is not None]}, but should be {said[expected is not None]}"
    if isinstance(expected, (list, tuple)) or isinstance(actual, (list, tuple)):
        if not (isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple))):
            return f"{what} is {type(actual).__name__}, not {type(expected).__name__}"
        if len(expected) != len(actual):
            return f"{what} has {len(actual)} parts, not {len(expected)}"
        found = (values_differ(e, a, rtol, atol, f"{what}[{i}]") for i, (e, a) in enumerate(zip(expected, actual)))
        return next((f for f in found if f), None)
    expected, actual = np.asarray(expected), np.asarray(actual)
    if expected.shape != actual.shape:
        return f"{what} has shape {list(actual.shape)}, not {list(expected.shape)}"
    if is_text(expected) and is_text(actual):
        # The same elements, in an array of Python objects or in one of NumPy's own strings.
        expected, actual = expected.astype(str), actual.astype(str)
        wrong = expected != actual
    elif expected.dtype != actual.dtype:
        return f"{what} is {actual.dtype}, not {expected.dtype}"
    else:
        wrong = ~close(expected, actual, rtol, atol)
    if not np.any(wrong):
        return None
    at = np.argwhere(wrong)[0] if wrong.ndim else ()
    at = tuple(int(i) for i in at)
    e, a = expected[at].item(), actual[at].item()
    return f"{what}: {np.count_nonzero(wrong)} of {wrong.size} elements differ, the first at {list(at)}: {a!r}, not {e!r}"


def is_text(array):
    return array.dtype.kind in "OUST"


def close(expected, actual, rtol, atol):
    if expected.dtype.name == "bfloat16":
        rtol = max(rtol, BFLOAT16_RTOL)
    if expected.dtype.kind == "c":
        return np.isclose(actual, expected, rtol, atol, equal_nan=True)
    if expected.dtype.kind in "iub":
        # Exact where the difference of two integers would not be; the tolerance is for what was
        # rounded.
        if expected.dtype.kind == "b":
            return expected == actual
        far = np.abs(expected.astype(object) - actual.astype(object))
        return (far <= atol + rtol * np.abs(expected.astype(object))).astype(bool)
    # float64 has every number of the other types, those that NumPy does not know included.
    return np.isclose(actual.astype(np.float64), expected.astype(np.float64), rtol, atol, equal_nan=True)


def dtype_name(elem_type):
    """The name that an ONNX element type has here.

    >>> dtype_name(onnx.TensorProto.FLOAT), dtype_name(onnx.TensorProto.BFLOAT16), dtype_name(onnx.TensorProto.INT4)
    ('float32', 'bfloat16', 'int4')
    """
    name = onnx.TensorProto.DataType.Name(elem_type).lower()
    return {"float": "float32", "double": "float64"}.get(name, name)


def type_relation(ours, theirs):
    """How a type that anfora found relates to one that ONNX found: "agrees", "says less", or in what they contradict each other.

    Ours is an object of `anfora check --types --stats=json`, theirs a TypeProto of a tensor.

    >>> shape = lambda *dims: onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, dims)
    >>> type_relation({"dtype": "float32", "shape": [2, 3]}, shape(2, 3))
    'agrees'
    >>> type_relation({"dtype": "float32", "shape": [2, 3]}, shape("n", 3))
    'agrees'
    >>> type_relation({"dtype": "float32", "shape": ["n", None]}, shape("n", 3))
    'says less'
    >>> type_relation({"dtype": "float32", "shape": [None, 3]}, shape("n", 3))
    'says less'
    >>> type_relation({"dtype": "float32", "shape": [None, 3]}, shape("unk__0", 3))
    'agrees'
    >>> type_relation({"dtype": None, "shape": None, "type": "Any"}, shape(3))
    'says less'
    >>> type_relation({"dtype": "float32", "shape": None}, shape(3))
    'says less'
    >>> type_relation({"dtype": "float32", "shape": [4], "type": "Tensor[(4,), float32]"}, shape(3))
    'is Tensor[(4,), float32], not float32[3]'
    >>> type_relation({"dtype": "int64", "shape": [3], "type": "Tensor[(3,), int64]"}, shape("n"))
    'is Tensor[(3,), int64], not float32[n]'
    >>> type_relation({"dtype": "float32", "shape": [], "type": "Tensor[(), float32]"}, shape(1))
    'is Tensor[(), float32], not float32[1]'
    >>> type_relation({"dtype": None, "shape": None, "type": "(Any, Any)"}, shape(1))
    'is (Any, Any), not float32[1]'
    """
    tensor = theirs.tensor_type
    dims = None
    if tensor.HasField("shape"):
        dims = [d.dim_value if d.HasField("dim_value") else known_name(d.dim_param) for d in tensor.shape.dim]
    if ours["dtype"] is None:
        return "says less" if ours["type"] == "Any" else f"is {ours['type']}, not {type_text(tensor, dims)}"
    contradicts = ours["dtype"] != dtype_name(tensor.elem_type)
    less = False
    if dims is not None and ours["shape"] is not None:
        contradicts |= len(dims) != len(ours["shape"])
        for d, o in zip(dims, ours["shape"]):
            contradicts |= isinstance(d, int) and isinstance(o, int) and d != o
            less |= o is None and d is not None or isinstance(d, int) and not isinstance(o, int)
    elif dims is not None:
        less = True
    if contradicts:
        return f"is {ours['type']}, not {type_text(tensor, dims)}"
    return "says less" if less else "agrees"


def known_name(dim_param):
    """The name of a symbolic dimension, if a model gave it: those that shape inference makes up say nothing."""
    return None if not dim_param or dim_param.startswith("unk__") else dim_param


def type_text(tensor, dims):
    shape = "" if dims is None else f"[{', '.join('?' if d is None else str(d) for d in dims)}]"
    return dtype_name(tensor.elem_type) + shape
