"""Types and expressions of TVM as text: types in the words of anfora, and forms.

A form is the whole of an expression of TVM that anfora has no words for, with holes for variables
and symbols. It is a list of parts in prefix order, each ``[tag, number of parts inside, value]``,
so that reading and writing it need a list as a stack, and no recursion.
"""

from __future__ import annotations

import functools
import json
import operator
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import tvm
from tvm import relax, tirx

from . import _anfora
from ._errors import AnforaError
from ._tvm_versions import dtype_of, is_string, make_dtype, make_string, tensor_of


class TvmError(AnforaError):
    """A module cannot cross between TVM and anfora. The message names what stands in the way."""


Symbol = Callable[[Any], Any]
#: The name of a symbol in a type of anfora; ``None`` for an extent that is unknown there.
Extent = Callable[[Any], "str | None"]

#: Element types that both sides have under the same name.
_SAME = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64".split()
)
#: The others: the name in TVM, the name in anfora.
_OTHER = {
    "float8_e4m3fn": "float8e4m3fn",
    "float8_e4m3fnuz": "float8e4m3fnuz",
    "float8_e5m2": "float8e5m2",
    "float8_e5m2fnuz": "float8e5m2fnuz",
    "float8_e8m0fnu": "float8e8m0",
}
TO_DTYPE = {**{name: name for name in _SAME}, **_OTHER}
FROM_DTYPE = {ours: theirs for theirs, ours in TO_DTYPE.items()}

#: Arithmetic of extents that both sides have: class in TVM, and the text in anfora.
_ARITHMETIC: dict[str, str] = {
    "Add": "({} + {})",
    "Sub": "({} - {})",
    "Mul": "({} * {})",
    "FloorDiv": "floordiv({}, {})",
    "FloorMod": "mod({}, {})",
    "Min": "min({}, {})",
    "Max": "max({}, {})",
}
_FROM_ARITHMETIC = {"+": "Add", "-": "Sub", "*": "Mul", "floordiv": "FloorDiv", "mod": "FloorMod"}
_FROM_ARITHMETIC |= {"min": "Min", "max": "Max"}
#: Other operators of two operands that a form may hold.
_BINARY = {*_ARITHMETIC, "Div", "Mod", "EQ", "NE", "LT", "LE", "GT", "GE", "And", "Or"}


def kind(value: Any) -> str:
    """Returns the name of the class of an object of TVM."""
    return type(value).__name__


def dtype_name(value: Any) -> str | None:
    """Returns an element type as text; ``None`` if it is unknown."""
    if value is None:
        return None
    name = str(getattr(value, "dtype", value))
    return None if name in ("", "void") else name


def is_missing(ty: Any) -> bool:
    """Returns true for the type of an expression that was not normalised."""
    return ty is None or type(ty) is tvm.ir.Type


def quoted(text: str) -> str:
    """Returns a string as the text format writes it."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
    return '"' + "".join(
        escapes.get(c) or (c if c.isprintable() else f"\\u{{{ord(c):x}}}") for c in text
    ) + '"'


def dim_text(value: Any, symbol: Extent) -> str:
    """Returns an extent as the text format writes it; ``?`` if it has no words for it."""
    done: list[str] = []
    todo: list[Any] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            right, left = done.pop(), done.pop()
            done.append(item.format(left, right))
        elif isinstance(item, int):
            done.append(str(item))
        elif isinstance(item, tirx.IntImm):
            done.append(str(int(item.value)) if item.value >= 0 else f"(0 - {-int(item.value)})")
        elif kind(item) == "Var" and dtype_name(item.ty) == "int64":
            name = symbol(item)
            if name is None:
                return "?"
            done.append(name)
        elif kind(item) in _ARITHMETIC:
            todo += [_ARITHMETIC[kind(item)], item.b, item.a]
        else:
            return "?"
    return done[0]


def type_text(ty: Any, symbol: Extent) -> str:
    """Returns the closest type of anfora."""
    done: list[str] = []
    todo: list[Any] = [ty]
    while todo:
        item = todo.pop()
        if isinstance(item, tuple):
            shape, count = item
            parts = done[len(done) - count :]
            del done[len(done) - count :]
            if shape == "tuple":
                done.append("()" if not parts else f"({', '.join(parts)},)" if count == 1 else f"({', '.join(parts)})")
            else:
                done.append(f"fn({', '.join(parts[:-1])}) -> {parts[-1]}")
        elif isinstance(item, relax.TensorType):
            dtype = TO_DTYPE.get(dtype_name(item.dtype) or "")
            if dtype is None or item.vdevice is not None:
                done.append("Any")
            elif item.shape is not None and isinstance(item.shape, relax.ShapeExpr):
                dims = [dim_text(v, symbol) for v in item.shape.values]
                done.append(f"Tensor[({', '.join(dims)}{',' * (len(dims) == 1)}), {dtype}]")
            elif item.ndim >= 0:
                dims = ["?"] * item.ndim
                done.append(f"Tensor[({', '.join(dims)}{',' * (len(dims) == 1)}), {dtype}]")
            else:
                done.append(f"Tensor[?, {dtype}]")
        elif isinstance(item, relax.TupleType):
            todo.append(("tuple", len(item.fields)))
            todo.extend(reversed(list(item.fields)))
        elif isinstance(item, relax.ShapeType) and item.values is not None and 0 < len(item.values) <= 64:
            values = [dim_text(v, symbol) for v in item.values]
            done.append(f"Tensor[({len(values)},), int64, [{', '.join(values)}]]")
        elif isinstance(item, tvm.ir.PrimType) and str(item.dtype) in TO_DTYPE:
            done.append(f"Tensor[(), {TO_DTYPE[str(item.dtype)]}]")
        elif isinstance(item, relax.FuncType) and item.params is not None:
            todo.append(("fn", len(item.params) + 1))
            todo += [item.ret, *reversed(list(item.params))]
        else:
            done.append("Any")
    return done[0]


def parse_type(ty: Any, symbol: Extent) -> _anfora.Type:
    """Returns the closest type of anfora, as anfora reads it."""
    names: dict[str, None] = {}

    def named(item: Any) -> str | None:
        name = symbol(item)
        if name is not None:
            names[name] = None
        return name

    text = type_text(ty, named)
    if not names:
        return _anfora.Type(text)
    # A type alone has to bind its symbols.
    return _anfora.Type(f"(Tensor[({', '.join(names)},), bool], {text})").fields[1]


#: The form of the value that binds the symbols of a match_cast.
MARK = '[["mark",0,null]]'


class Boundary(NamedTuple):
    """The beginning of a block of bindings that its bindings do not show."""

    #: The class of the block. One of dataflow is empty.
    block: str

    @property
    def form(self) -> str:
        """Returns the form of a call that stands for the beginning."""
        return json.dumps([["boundary", 0, self.block]], separators=(",", ":"))


_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_][\w$]*)|(.))")
_PRECEDENCE = {"+": 1, "-": 1, "*": 2}


def parse_dim(text: str, symbol: Symbol) -> Any:
    """Reads the text of an extent, or of an element, which may be negative."""
    if text.removeprefix("-").isdigit():
        return tirx.IntImm("int64", int(text))
    values: list[Any] = []
    operators: list[str] = []

    def apply() -> None:
        name = operators.pop()
        if name not in _FROM_ARITHMETIC:
            raise TvmError(f"TVM has no form of the extent {text!r}")
        if len(values) < 2:
            raise TvmError(f"TVM has no form of the extent {text!r}")
        right, left = values.pop(), values.pop()
        values.append(getattr(tirx, _FROM_ARITHMETIC[name])(left, right))

    for number, name, sign in _TOKEN.findall(text.strip()):
        if number:
            values.append(tirx.IntImm("int64", int(number)))
        elif name in ("floordiv", "ceildiv", "mod", "min", "max"):
            operators.append(name)
        elif name:
            values.append(symbol(name))
        elif sign == "(":
            operators.append("(")
        elif sign in ",)":
            while operators[-1] != "(":
                apply()
            if sign == ")":
                operators.pop()
                if operators and operators[-1] not in _PRECEDENCE and operators[-1] != "(":
                    apply()
        elif sign in _PRECEDENCE:
            while operators and _PRECEDENCE.get(operators[-1], 0) >= _PRECEDENCE[sign]:
                apply()
            operators.append(sign)
        else:
            raise TvmError(f"TVM has no form of the extent {text!r}")
    while operators:
        apply()
    return values[0]


def dims_of(values: Iterable[Any], symbol: Symbol) -> list[Any] | None:
    """Returns extents as expressions of TVM; ``None`` if one is unknown."""
    out = []
    for value in values:
        if value is None:
            return None
        out.append(tirx.IntImm("int64", value) if isinstance(value, int) else parse_dim(value, symbol))
    return out


def elements_of(text: str) -> list[str] | None:
    """Returns the texts of the elements that a type of a vector states; ``None`` if it states none,
    or not all."""
    start = text.rfind(", [")
    if not text.startswith("Tensor[") or start < 0 or not text.endswith("]]"):
        return None
    parts, depth, last = [], 0, start + 3
    for i in range(last, len(text) - 1):
        c = text[i]
        if c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
        elif (c == "," and depth == 0) or i == len(text) - 2:
            parts.append(text[last:i].strip())
            last = i + 1
    return None if "?" in parts else parts


def type_from(ty: _anfora.Type, symbol: Symbol) -> Any:
    """Returns a type of anfora as a type of TVM. The elements that it states are left out."""
    done: list[Any] = []
    todo: list[Any] = [ty]
    while todo:
        item = todo.pop()
        if isinstance(item, tuple):
            shape, count = item
            parts = done[len(done) - count :]
            del done[len(done) - count :]
            done.append(relax.TupleType(parts) if shape == "tuple" else relax.FuncType(parts[:-1], parts[-1]))
        elif item.kind == "tensor":
            dtype = FROM_DTYPE.get(item.dtype)
            if dtype is None:
                raise TvmError(f"TVM has no tensors of {item.dtype}")
            dims = None if item.shape is None else dims_of(item.shape, symbol)
            rank = -1 if item.ndim is None else item.ndim
            done.append(relax.TensorType(dims, dtype) if dims is not None else relax.TensorType(None, dtype, ndim=rank))
        elif item.kind == "tuple":
            todo.append(("tuple", len(item.fields)))
            todo.extend(reversed(item.fields))
        elif item.kind == "function":
            todo.append(("fn", len(item.params) + 1))
            todo += [item.ret, *reversed(item.params)]
        else:
            done.append(relax.AnyType())
    return done[0]


def _no_variable(_: Any) -> bool:
    return False


def _parts(
    item: Any, operand: Callable[[Any], int], symbol: Symbol, is_variable: Callable[[Any], bool]
) -> tuple[str, Any, list[Any]]:
    """Returns the tag, the value and the inner parts of a part of a form."""
    # By the name of the class: `isinstance` takes much longer for classes of TVM.
    name = kind(item)
    match name:
        case "NoneType":
            return "none", None, []
        case "Cast":
            return "cast", None, [item.value, item.ty]
        case "Typed":
            return "typed", None, [item.value, item.ty]
        case "TensorType":
            if item.vdevice is not None:
                raise TvmError("a tensor on a virtual device has no form in anfora")
            return "tensor", [item.ndim, dtype_name(item.dtype)], [item.shape]
        case "TupleType":
            return "tuple type", None, list(item.fields)
        case "ShapeType":
            values = item.values
            return "shape type", item.ndim if values is None else None, list(values or [])
        case "FuncType" if isinstance(item, relax.FuncType):
            if item.params is None:
                return "json", tvm.ir.save_json(item), []
            return "function type", bool(item.purity), [*item.params, item.ret]
        case "AnyType" | "PackedFuncType":
            return "type", name, []
        case "PrimType":
            return "prim", str(item.dtype), []
        case "IntImm":
            return "int", [dtype_name(item.ty), int(item.value)], []
        case "FloatImm":
            return "float", [dtype_name(item.ty), float(item.value).hex()], []
        case "GlobalVar" | "DataflowVar":
            return "operand", operand(item), []
        case "Tuple":
            return "tuple", None, list(item.fields)
        case "TupleGetItem":
            return "field", int(item.index), [item.tuple_value]
        case "ShapeExpr":
            return "shape", None, list(item.values)
        case "ExternFunc":
            return "extern", str(item.global_symbol), [item.ty]
        case "Call":
            op, args, attrs = item.op, list(item.args), item.attrs
            saved = None if attrs is None else tvm.ir.save_json(attrs)
            if isinstance(op, tvm.ir.Op):
                return "op", [op.name, len(args), saved], [*args, *item.ty_args, item.ty]
            return "call", [len(args), saved], [op, *args, *item.ty_args, item.ty]
    if is_missing(item):
        return "missing", None, []
    if tensor_of(item) is not None:
        return "operand", operand(item), []
    if is_string(item):
        return "string", str(item.value), []
    if (dtype := dtype_of(item)) is not None:
        return "dtype", dtype, []
    if name == "Var":
        is_symbol = isinstance(item.ty, tvm.ir.PrimType) and not is_variable(item)
        return ("symbol", symbol(item), []) if is_symbol else ("operand", operand(item), [])
    if name in _BINARY:
        return "binary", name, [item.a, item.b]
    raise TvmError(f"an expression of the class {name} has no form in anfora")


class Cast(NamedTuple):
    """The value and the type of a match_cast."""

    value: Any
    ty: Any


class Typed(NamedTuple):
    """A value, and the type of the variable that it is bound to, which is another one."""

    value: Any
    ty: Any


def encode(
    root: Any,
    operand: Callable[[Any], int],
    symbol: Symbol,
    is_variable: Callable[[Any], bool] = _no_variable,
) -> str:
    """Returns a type or an expression as a form. ``operand`` and ``symbol`` name the holes.
    ``is_variable`` returns true for a scalar variable that is no symbol."""
    parts = []
    todo = [root]
    while todo:
        tag, value, inner = _parts(todo.pop(), operand, symbol, is_variable)
        parts.append([tag, len(inner), value])
        todo.extend(reversed(inner))
    return json.dumps(parts, separators=(",", ":"))


def _call(op: Any, count: int, attrs: str | None, inner: list[Any]) -> Any:
    # Attributes may bind variables, so each call has its own.
    attributes = None if attrs is None else tvm.ir.load_json(attrs)
    *parts, ty = inner
    args, ty_args = parts[:count], parts[count:]
    return tvm.ir.Call(op, args, attributes, ty_args, ret_ty=None if is_missing(ty) else ty)


def _tensor(value: list[Any], inner: list[Any]) -> Any:
    ndim, dtype = value
    return relax.TensorType(inner[0], dtype, ndim=-1 if inner[0] is not None else ndim)


_MAKE: dict[str, Callable[[Any, list[Any]], Any]] = {
    "none": lambda _, inner: None,
    "missing": lambda _, inner: None,
    "mark": lambda _, inner: None,
    "boundary": lambda block, _: Boundary(block),
    "cast": lambda _, inner: Cast(*inner),
    "typed": lambda _, inner: Typed(*inner),
    "tensor": _tensor,
    "tuple type": lambda _, inner: relax.TupleType(inner),
    "shape type": lambda ndim, inner: relax.ShapeType(inner) if ndim is None else relax.ShapeType(ndim=ndim),
    "function type": lambda pure, inner: relax.FuncType(inner[:-1], inner[-1], pure),
    "json": lambda text, _: tvm.ir.load_json(text),
    "type": lambda name, _: getattr(relax, name)(),
    "prim": lambda dtype, _: tvm.ir.PrimType(dtype),
    "int": lambda value, _: tirx.IntImm(*value),
    "float": lambda value, _: tirx.FloatImm(value[0], float.fromhex(value[1])),
    "tuple": lambda _, inner: relax.Tuple(inner),
    "field": lambda index, inner: relax.TupleGetItem(inner[0], index),
    "shape": lambda _, inner: relax.ShapeExpr(inner),
    "string": lambda text, _: make_string(text),
    "dtype": lambda name, _: make_dtype(name),
    "extern": lambda name, inner: relax.ExternFunc(name, inner[0]),
    "op": lambda value, inner: _call(tvm.ir.Op.get(value[0]), value[1], value[2], inner),
    "call": lambda value, inner: _call(inner[0], value[0], value[1], inner[1:]),
}


#: The arithmetic of extents on numbers.
_COMPUTE: dict[str, Callable[[int, int], int]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "FloorDiv": operator.floordiv,
    "FloorMod": operator.mod,
    "Min": min,
    "Max": max,
}


def _binary(name: str, inner: list[Any], known: dict[int, Any]) -> Any:
    """Returns arithmetic on two extents, as a number if they are numbers, at least one of which is
    known now."""
    left, right = inner
    if all(isinstance(i, tirx.IntImm) for i in inner) and (id(left) in known or id(right) in known):
        if name in _COMPUTE and (right.value or not name.startswith("Floor")):
            made = tirx.IntImm(dtype_name(left.ty), _COMPUTE[name](int(left.value), int(right.value)))
            known[id(made)] = made
            return made
    return getattr(tirx, name)(left, right)


#: The parts that are made of scalars.
_OF_SCALARS = frozenset(("shape", "shape type", "binary"))


def _scalar(value: Any, known: dict[int, Any]) -> Any:
    """Returns a number in the place of a scalar variable that a pass has made a constant."""
    tensor = tensor_of(value)
    if tensor is None:
        if not isinstance(value.ty, tvm.ir.PrimType):
            raise TvmError(f"{value} is a tensor now, where Relax has a scalar")
        return value
    make = tirx.FloatImm if "float" in str(tensor.dtype) else tirx.IntImm
    made = make(dtype_name(tensor.dtype), tensor.numpy().item())
    known[id(made)] = made
    return made


#: The parts that may be shared by all values of a form, if they have no holes.
_SHARED = frozenset(
    ("none", "missing", "tensor", "tuple type", "shape type", "function type", "json", "type", "prim")
    + ("int", "float", "shape", "string", "dtype", "extern")
)
_OPEN = object()


@functools.lru_cache(maxsize=1024)
def _steps(form: str) -> list[tuple[str, int, Any]]:
    """Returns the parts of a form in the order in which they are made. Those without holes are made
    already."""
    steps: list[tuple[str, int, Any]] = []
    #: The first step of each part that waits for its outer part, and its value, if it has one.
    waiting: list[tuple[int, Any]] = []
    for tag, count, value in reversed(json.loads(form)):
        inner = [waiting.pop() for _ in range(count)]
        start = inner[-1][0] if inner else len(steps)
        made = _OPEN
        if tag in _SHARED and all(part is not _OPEN for _, part in inner):
            made = _MAKE[tag](value, [part for _, part in inner])
            del steps[start:]
            steps.append(("made", 0, made))
        else:
            steps.append((tag, count, value))
        waiting.append((start, made))
    return steps


def decode(form: str, operand: Callable[[int], Any], symbol: Symbol) -> Any:
    """Returns the type or the expression of a form, with the holes filled."""
    done: list[Any] = []
    #: The numbers in holes of the form, and those computed from them, by identity.
    known: dict[int, Any] = {}
    for tag, count, value in _steps(form):
        if tag == "made":
            done.append(value)
            continue
        inner = [done.pop() for _ in range(count)]
        if tag in _OF_SCALARS:
            inner = [_scalar(part, known) for part in inner]
        if tag == "operand":
            done.append(operand(value))
        elif tag == "symbol":
            done.append(symbol(value))
            if isinstance(done[-1], tirx.IntImm):
                known[id(done[-1])] = done[-1]
        elif tag == "binary":
            done.append(_binary(value, inner, known))
        else:
            done.append(_MAKE[tag](value, inner))
    return done[0]
