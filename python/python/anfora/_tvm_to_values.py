"""From anfora to Relax: the values of bindings, and the calls of operators among them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import tvm
import tvm_ffi
from tvm import relax, tirx

from . import _anfora
from ._tvm_codec import (
    FROM_DTYPE,
    Cast,
    TvmError,
    Typed,
    decode,
    dims_of,
    elements_of,
    encode,
    is_missing,
    parse_dim,
    type_from,
)
from ._tvm_from import Steps
from ._tvm_literals import constant
from ._tvm_ops import PLAIN, ROWS, Field, Letters, OfResult, Parts, Row, SameAs
from ._tvm_symbols import is_free
from ._tvm_versions import make_tensor, tensor_of

if TYPE_CHECKING:
    from ._tvm_to import ModuleReader

_COUNTED = re.compile(r"\$\d+\Z")
#: The expressions that Relax has only as the value of a binding.
_COMPOUND = (tvm.ir.Call, relax.TupleGetItem, relax.If, relax.SeqExpr, relax.Function)


class NotNormalError(TvmError):
    """A module is not in A-normal form, which Relax needs."""


class NoCounterpartError(TvmError):
    """Relax has no operator like one of anfora."""


def hint_of(name: str | None) -> str:
    """Returns the name that a variable has in Relax."""
    hint = _COUNTED.sub("", name or "")
    if hint.startswith("$$"):
        return hint[1:]
    # A variable that Relax does not have has become one, for instance a parameter.
    return hint[1:].split(" ")[0] if hint.startswith("$") else hint


class ValueReader:
    """Makes the values of the bindings of a function of Relax."""

    def __init__(self, module: ModuleReader) -> None:
        self._module = module
        self._variables: dict[Any, Any] = {}
        #: The variables that hold symbols. Relax has shapes where they are used.
        self._vectors: dict[Any, Any] = {}
        self._symbols: dict[str, Any] = {}
        self._types: dict[str, Any] = {}
        #: The bindings of the block that is being made, and whether it is a dataflow region.
        self._block_bindings: list[Any] = []
        self._in_region = False
        #: The values that Relax has where they are used.
        self._inline: dict[Any, Any] = {}
        #: The numbers among them.
        self._scalars: dict[Any, Any] = {}
        #: The vectors of the symbols that a match_cast binds, and whether it was read.
        self._casts: dict[Any, bool] = {}
        self._untyped = False
        #: A normalisation whose result and statistics the next binding may put into a tuple, as
        #: Relax does, and the tuples by the results.
        self._pending: _anfora.Binding | None = None
        self._normalised: dict[Any, Any] = {}
        #: True if the function has an effect.
        self._impure = False
        #: The tuples in tuples and calls. One that is there twice is a node of a graph.
        self._seen: set[Any] = set()

    def symbol(self, name: str) -> Any:
        """Returns the variable of a symbol."""
        if is_free(name):
            return self._module.free_symbol(name)
        if name not in self._symbols:
            self._symbols[name] = tirx.Var(name, "int64")
        return self._symbols[name]

    def _type(self, ty: _anfora.Type) -> Any:
        text = str(ty)
        made = self._types.get(text)
        if made is None:
            made = type_from(ty, self.symbol)
            if self._module.has_closures:
                made = _with_closures(made)
            self._types[text] = made
        return made

    # ---- values -------------------------------------------------------------------------------

    def _elements(self, expr: _anfora.Expr) -> list[Any]:
        """Returns the values of a vector that only its type knows."""
        texts = elements_of(str(expr.type))
        if texts is None:
            raise TvmError(f"the elements of {expr} are not known, and Relax needs a shape")
        return [parse_dim(text, self.symbol) for text in texts]

    def _atom(self, expr: _anfora.Expr) -> Any:
        kind = expr.kind
        if kind in ("var", "literal"):
            known = self._variables.get(expr)
            if known is not None:
                return known
        if kind == "var":
            if expr in self._inline:
                return self._inline[expr]
            if expr in self._normalised:
                return self._first_of(self._normalised[expr], "")
            if expr in self._vectors:
                return self._vector(expr)
        elif kind == "literal":
            return constant(expr.literal)
        elif kind == "global":
            return self._module.variable(str(expr.name))
        elif kind == "none":
            raise TvmError("Relax has no operands that are left out")
        raise NotNormalError(f"an operand of the kind {kind} has no form in Relax: {expr}")

    def _vector(self, expr: _anfora.Expr) -> Any:
        """Binds a vector of symbols as a tensor, where one is used as such."""
        shape = relax.ShapeExpr(self._elements(expr))
        ty = relax.TensorType([len(shape.values)], "int64")
        call = tvm.ir.Call(tvm.ir.Op.get("relax.shape_to_tensor"), [shape], ret_ty=ty)
        var = self._variable(self._vectors[expr], ty, self._in_region)
        self._block_bindings.append(relax.VarBinding(var, call))
        return var

    def _batch_norm(self, binding: _anfora.Binding, name: str | None, is_dataflow: bool) -> Any:
        """Binds the tuple of a normalisation and its statistics, and returns the binding."""
        call = binding.value
        args = [self._atom(arg) for arg in call.args]
        words = (binding.name or "").split()
        attrs = dict(call.attrs)
        fields = {"axis": attrs.pop("axis", 1), "epsilon": attrs.pop("epsilon", 1e-5)}
        self._defaults("nn.batch_norm", attrs)
        momentum = float(words[1]) if words[:1] == ["$norm"] else 0.1
        attributes = tvm.ir.make_node(
            "relax.attrs.BatchNormAttrs", **fields, center=True, scale=True, momentum=momentum, training=False
        )
        ty = relax.TupleType([self._type(call.type), args[3].ty, args[4].ty])
        made = tvm.ir.Call(tvm.ir.Op.get("relax.nn.batch_norm"), args, attributes, ret_ty=ty)
        return relax.VarBinding(self._variable(name, ty, is_dataflow), made)

    def _join(self, pending: _anfora.Binding, binding: _anfora.Binding) -> Any:
        """Returns the binding of Relax for a normalisation and the tuple after it; ``None`` if the
        tuple is not that of Relax."""
        value, stated = binding.value, pending.value.args[3:]
        if value.kind != "tuple" or len(value.args) != 3 or value.args[0] != pending.var:
            return None
        # The result may be visible where the tuple is not.
        if binding.var.is_dataflow and not pending.var.is_dataflow:
            return None
        if not all(_is_same_atom(a, b) for a, b in zip(value.args[1:], stated)):
            return None
        made = self._batch_norm(pending, binding.name, binding.var.is_dataflow)
        self._variables[binding.var] = self._normalised[pending.var] = made.var
        return made

    def _normalise(self, pending: _anfora.Binding) -> None:
        """Binds a normalisation that is not in a tuple."""
        made = self._batch_norm(pending, "", self._in_region)
        self._block_bindings.append(made)
        name = "" if (pending.name or "").startswith("$norm ") else pending.name or ""
        self._variables[pending.var] = self._first_of(made.var, name, pending.var.is_dataflow)

    def _first_of(self, var: Any, name: str, is_dataflow: bool = True) -> Any:
        """Binds the first field of a tuple, in a region to a variable that is visible there alone
        or to one that is visible after it."""
        first = relax.TupleGetItem(var, 0)
        made = self._variable(name, first.ty, self._in_region and is_dataflow)
        self._block_bindings.append(relax.VarBinding(made, first))
        return made

    def _bind(self, value: Any) -> Any:
        """Binds a value of a type that is known to a variable without a name."""
        made = self._variable("", value.ty, self._in_region)
        self._block_bindings.append(relax.VarBinding(made, value))
        return made

    def _add_bias(self, product: Any, bias: Any) -> Any:
        """Returns the sum of a convolution of two dimensions and its bias, which Relax adds
        apart."""
        tensor = tensor_of(bias)
        layout = str(product.attrs.data_layout)
        if tensor is not None:
            shape = [-1 if letter == "C" else 1 for letter in layout]
            column = make_tensor(tvm.runtime.tensor(tensor.numpy().reshape(shape)))
        else:
            channels = product.ty.shape.values[layout.index("C")]
            extents = [channels if letter == "C" else 1 for letter in layout]
            ty = relax.TensorType(extents, bias.ty.dtype)
            operands = [bias, relax.ShapeExpr(extents)]
            column = self._bind(tvm.ir.Call(tvm.ir.Op.get("relax.reshape"), operands, ret_ty=ty))
        return tvm.ir.Call(tvm.ir.Op.get("relax.add"), [self._bind(product), column], ret_ty=product.ty)

    def _operands(self, args: list[_anfora.Expr]) -> Steps:
        out = []
        for arg in args:
            if arg.kind in ("var", "literal", "global"):
                out.append(self._atom(arg))
            else:
                if arg.kind != "tuple" or arg in self._seen:
                    raise NotNormalError(f"an operand of the kind {arg.kind} has no form in Relax: {arg}")
                self._seen.add(arg)
                out.append((yield self._value(arg)))
        return out

    def _arguments(self, args: list[_anfora.Expr], types: list[Any] | None) -> Steps:
        """Returns the arguments of a call of a function. A vector of symbols is a shape, if the
        parameter is one."""
        out = yield self._operands([arg for i, arg in enumerate(args) if not self._is_shape(arg, i, types)])
        for i, arg in enumerate(args):
            if self._is_shape(arg, i, types):
                out.insert(i, relax.ShapeExpr(self._elements(arg)))
        return out

    def _is_shape(self, arg: _anfora.Expr, index: int, types: list[Any] | None) -> bool:
        """Returns true for a vector of symbols that is passed as a shape."""
        if types is None or index >= len(types) or not isinstance(types[index], relax.ShapeType):
            return False
        ty = getattr(self._variables.get(arg), "ty", None)
        return arg in self._vectors or isinstance(ty, relax.TensorType) and elements_of(str(arg.type)) is not None

    def _variable(self, name: str | None, ty: Any, is_dataflow: bool) -> Any:
        make = relax.DataflowVar if is_dataflow else relax.Var
        return make(hint_of(name), None if is_missing(ty) else ty)

    def _leaf(self, value: Any, name: str) -> Any:
        """Binds a value that has to be one of a binding in Relax, unless the module was not
        normalised."""
        if isinstance(value, Cast):
            var = self._variable(name, value.ty, self._in_region)
            self._block_bindings.append(relax.MatchCast(var, value.value, value.ty))
            return var
        if self._untyped or not isinstance(value, _COMPOUND):
            return untyped(value)
        var = self._variable(name, value.ty, self._in_region)
        self._block_bindings.append(relax.VarBinding(var, value))
        return var

    def _form(self, name: str, form: str, call: _anfora.Expr) -> Any:
        args = list(call.args)
        symbols: list[Any] = []
        if self._module.takes_symbols(name):
            vector = args.pop(0)
            symbols = self._elements(vector)
            if vector in self._casts:
                self._casts[vector] = True

        def symbol(at: int | str) -> Any:
            return self.symbol(at) if isinstance(at, str) else symbols[at]

        return decode(form, lambda i: self._atom(args[i]), symbol)

    def _row_call(self, name: str, row: Row, call: _anfora.Expr, operands: list[Any]) -> Any:
        attrs = dict(call.attrs)
        fields = {}
        for key, field in row.fields.items():
            if isinstance(field, Field):
                value = attrs.pop(key, field.default)
                fields[key] = FROM_DTYPE.get(value) if key == "dtype" else value
                if key == "dtype" and fields[key] is None:
                    raise TvmError(f"TVM has no tensors of {value}")
                if key == "dtype":
                    fields[key] = tvm.DataType(fields[key])
            elif isinstance(field, Letters):
                fields[key] = attrs.pop(key, field.default)
            elif isinstance(field, SameAs):
                fields[key] = fields[field.other]
            elif isinstance(field, OfResult):
                dtype = self._module.out_dtypes.get(name)
                is_stated = dtype is not None and FROM_DTYPE.get(call.type.dtype or "") == dtype
                fields[key] = tvm.DataType(dtype) if is_stated else None
            elif isinstance(field, Parts):
                fields[key] = _parts(attrs.pop("sections", None), attrs.pop("indices", None))
            else:
                fields[key] = field.values[0]
                if attrs.get(key) in field.values:
                    del attrs[key]
        self._defaults(name, attrs)
        if row.spread:
            operands = [relax.Tuple(operands)]
        attributes = None if row.attributes is None else tvm.ir.make_node(row.attributes, **fields)
        return tvm.ir.Call(tvm.ir.Op.get(f"relax.{name}"), operands, attributes, ret_ty=self._type(call.type))

    def _defaults(self, name: str, attrs: dict[str, Any]) -> None:
        """Refuses attributes that Relax does not have, unless they have their defaults."""
        for key, value in attrs.items():
            if value != _DEFAULTS.get((name, key), _DEFAULTS.get(("", key))):
                raise NoCounterpartError(f"{name} with {key}={value!r} has no form in Relax")

    def _call(self, call: _anfora.Expr) -> Steps:
        op: Any = call.op
        if not isinstance(op, str):
            form = self._module.forms.get(str(op.name)) if op.kind == "global" else None
            if form is not None:
                return self._form(str(op.name), form, call)
            callee = (yield self._operands([op]))[0]
            left_out = self._module.left_out(str(op.name)) if op.kind == "global" else ()
            args = [arg for i, arg in enumerate(call.args) if i not in left_out]
            types = getattr(callee.ty, "params", None)
            operands = yield self._arguments(args, types)
            if op.kind == "global":
                self._module.pass_scalars(str(op.name), operands, types, 0)
                operands += [constant(c.literal) for c in self._module.constants(str(op.name))]
            if op.kind == "var" and self._module.has_closures:
                return self._invoke(callee, operands, self._type(call.type))
            return tvm.ir.Call(callee, operands, ret_ty=self._result(callee.ty, call))
        if op == "make_closure":
            function = self._atom(call.args[0])
            types = list(getattr(function.ty, "params", None) or [])
            first = len(types) - len(call.args) + 1
            captured = yield self._arguments(call.args[1:], types[first:])
            if call.args[0].kind == "global":
                self._module.pass_scalars(str(call.args[0].name), captured, types, first)
            operands = [function, relax.Tuple(captured)]
            return tvm.ir.Call(tvm.ir.Op.get("relax.make_closure"), operands, ret_ty=relax.AnyType())
        row = ROWS.get(op)
        args = call.args
        if row is not None and row.shape:
            operands = yield self._operands(args[:-1])
            extents = None if call.type.shape is None else dims_of(call.type.shape, self.symbol)
            operands.append(relax.ShapeExpr(self._elements(args[-1]) if extents is None else extents))
            return self._row_call(op, row, call, operands)
        if op == "nn.conv2d" and len(args) == 3 and call.type.shape is not None:
            operands = yield self._operands(args)
            return self._add_bias(self._row_call(op, ROWS[op], call, operands[:2]), operands[2])
        if row is not None and (row.spread or len(args) == row.operands):
            operands = yield self._operands(args)
            return self._row_call(op, row, call, operands)
        if PLAIN.get(op) == len(args):
            operands = yield self._operands(args)
            operands = [self._scalars.get(arg, operand) for arg, operand in zip(args, operands)]
            self._defaults(op, call.attrs)
            return tvm.ir.Call(tvm.ir.Op.get(f"relax.{op}"), operands, ret_ty=self._type(call.type))
        raise NoCounterpartError(f"{op} with {len(args)} operands has no form in Relax")

    def _invoke(self, callee: Any, operands: list[Any], ty: Any) -> Any:
        """Returns the call of a closure. The calls in a pure function are pure."""
        name = "relax.invoke_closure" if self._impure else "relax.invoke_pure_closure"
        return tvm.ir.Call(tvm.ir.Op.get(name), [callee, relax.Tuple(operands)], None, [ty], ret_ty=ty)

    def _result(self, ty: Any, call: _anfora.Expr) -> Any:
        """Returns the type of the result of a call: that of the function, unless it has symbols."""
        if isinstance(ty, relax.FuncType) and ty.ret is not None and not _has_symbols(ty.ret):
            return ty.ret
        return self._type(call.type)

    def _value(self, expr: _anfora.Expr) -> Steps:
        kind = expr.kind
        if kind in ("var", "literal", "global"):
            return self._atom(expr)
        if kind == "call":
            return (yield self._call(expr))
        if kind == "tuple":
            return relax.Tuple((yield self._operands(expr.args)))
        if kind == "tuple_getitem":
            return relax.TupleGetItem((yield self._operands(expr.args))[0], expr.index)
        if kind == "if":
            cond = (yield self._operands([expr.cond]))[0]  # type: ignore[list-item]
            then_block = untyped((yield self._block(expr.then_block)))  # type: ignore[arg-type]
            else_block = untyped((yield self._block(expr.else_block)))  # type: ignore[arg-type]
            made = relax.If(cond, then_block, else_block)
            left, right = then_block.body.ty, else_block.body.ty
            return self._typed(made, left if _same(left, right) else self._type(expr.type))
        if kind == "block":
            return (yield self._block(expr))
        if kind == "function":
            return (yield self._function(expr.params, expr.body, expr.attrs))  # type: ignore[arg-type]
        raise TvmError(f"an expression of the kind {kind} has no form in Relax: {expr}")

    def _typed(self, expr: Any, ty: Any) -> Any:
        """Gives an expression with blocks its type, unless the module was not normalised."""
        if not self._untyped:
            return typed(expr, ty)
        return expr if is_missing(ty) else Typed(expr, ty)

    def _block(self, block: _anfora.Expr) -> Steps:
        """Makes a block with its result."""
        raise NotImplementedError

    def _function(self, params: list[_anfora.Expr], body: _anfora.Expr, attrs: dict[str, Any]) -> Steps:
        """Makes a function."""
        raise NotImplementedError


#: Attributes that Relax does not have: their defaults, by operator and name or by name.
_DEFAULTS: dict[tuple[str, str], Any] = {
    ("", "noop_with_empty_axes"): False,
    ("astype", "saturate"): True,
    ("astype", "round_mode"): "up",
    ("reshape", "allowzero"): False,
    ("broadcast_to", "bidirectional"): False,
    ("nn.layer_norm", "statistics"): False,
    ("nn.gelu", "approximate"): "none",
    ("nn.silu", "alpha"): 1.0,
}


def _with_closures(ty: Any) -> Any:
    """Returns a type in which functions are closures, about which Relax knows nothing."""
    done: list[Any] = []
    todo: list[Any] = [ty]
    while todo:
        item = todo.pop()
        if isinstance(item, int):
            fields = done[len(done) - item :]
            del done[len(done) - item :]
            done.append(relax.TupleType(fields))
        elif isinstance(item, relax.TupleType):
            todo += [len(item.fields), *reversed(list(item.fields))]
        else:
            done.append(relax.AnyType() if isinstance(item, relax.FuncType) else item)
    return done[0]


def _is_same_atom(a: _anfora.Expr, b: _anfora.Expr) -> bool:
    return bool(a == b or a.kind == b.kind == "literal" and a.literal == b.literal)


def no_operand(_: int) -> Any:
    """Refuses a variable in a type."""
    raise TvmError("a type holds a variable")


def _parts(sections: int | None, indices: list[int] | None) -> Any:
    """Returns the number of the parts of a split, or the positions to cut at."""
    if sections is not None:
        return tirx.IntImm("int64", sections)
    return [tirx.IntImm("int64", index) for index in indices or ()]


def _has_symbols(ty: Any) -> bool:
    found: list[Any] = []

    def symbol(item: Any) -> int:
        found.append(item)
        return 0

    encode(ty, no_operand, symbol)
    return bool(found)


def _same(a: Any, b: Any) -> bool:
    return bool(a.same_as(b) or tvm_ffi.structural_equal(a, b))


def untyped(value: Any) -> Any:
    """Returns the value itself, without the type of its variable."""
    return value.value if isinstance(value, Typed) else value


def typed(expr: Any, ty: Any) -> Any:
    """Gives an expression its type, unless it was not normalised."""
    if not is_missing(ty):
        relax.expr._update_type(expr, ty)
    return expr
