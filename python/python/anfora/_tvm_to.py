"""From anfora to Relax: the functions of a module, binding by binding."""

from __future__ import annotations

import json
import re
from typing import Any

import tvm
import tvm_ffi
from tvm import relax, tirx

from . import _anfora
from ._tvm_codec import (
    FROM_DTYPE,
    Boundary,
    Cast,
    TvmError,
    Typed,
    decode,
    dims_of,
    elements_of,
    encode,
    is_missing,
    parse_dim,
    parse_type,
    type_from,
)
from ._tvm_from import SHARED_ATTRS, Steps, run
from ._tvm_layout import layout_of
from ._tvm_literals import constant, number
from ._tvm_ops import PLAIN, ROWS, Field, OfResult, Row
from ._tvm_symbols import is_free
from ._tvm_versions import make_tensor, tensor_of

_COUNTED = re.compile(r"\$\d+\Z")
#: Attributes of functions that are of the bridge alone.
_OURS = ("tvm_record", "tvm_form", "tvm_function", "Pure")


#: What Relax has only as the value of a binding.
_COMPOUND = (tvm.ir.Call, relax.TupleGetItem, relax.If, relax.SeqExpr, relax.Function)


class NotNormalError(TvmError):
    """A module is not in A-normal form, which Relax needs."""


def _hint(name: str | None) -> str:
    hint = _COUNTED.sub("", name or "")
    if hint.startswith("$$"):
        return hint[1:]
    # A variable that Relax does not have has become one, for instance a parameter.
    return hint[1:].split(" ")[0] if hint.startswith("$") else hint


class FunctionReader:
    """Makes a function of Relax from a function of anfora."""

    def __init__(self, module: ModuleReader, regions: list[int]) -> None:
        self._module = module
        self._regions = iter(regions)
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
        #: The variables that bind the symbols of a match_cast, and whether it was read.
        self._marks: set[Any] = set()
        self._casts: dict[Any, bool] = {}
        self._untyped = False
        #: A normalisation whose result and statistics the next binding may put into a tuple, as Relax
        #: does, and the tuples by the results.
        self._pending: _anfora.Binding | None = None
        self._normalised: dict[Any, Any] = {}
        #: The parameters that the function of Relax does not have.
        self.left_out: set[int] = set()
        self._gone: set[Any] = set()
        #: True if the function has an effect.
        self._impure = False
        #: The tuples in tuples and calls. One that is there twice is a node of a graph.
        self._seen: set[Any] = set()
        #: The symbols of the result that were not bound when they were read.
        self._needed: list[str] = []
        self._unbound: dict[str, Any] = {}

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
        if kind == "var":
            known = self._variables.get(expr)
            if known is not None:
                return known
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
        """Returns the binding of Relax for a normalisation and the tuple after it; ``None`` if the tuple
        is not that of Relax."""
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
        """Binds the first field of a tuple, in a region to a variable that is visible there alone or to
        one that is visible after it."""
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
        """Returns the sum of a convolution of two dimensions and its bias, which Relax adds apart."""
        tensor = tensor_of(bias)
        if tensor is not None:
            column = make_tensor(tvm.runtime.tensor(tensor.numpy().reshape(1, -1, 1, 1)))
        else:
            extents = [1, product.ty.shape.values[1], 1, 1]
            ty = relax.TensorType(extents, bias.ty.dtype)
            column = self._bind(tvm.ir.Call(tvm.ir.Op.get("relax.reshape"), [bias, relax.ShapeExpr(extents)], ret_ty=ty))
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
            elif isinstance(field, OfResult):
                dtype = self._module.out_dtypes.get(name)
                is_stated = dtype is not None and FROM_DTYPE.get(call.type.dtype or "") == dtype
                fields[key] = tvm.DataType(dtype) if is_stated else None
            else:
                fields[key] = field.values[0]
        self._defaults(name, attrs)
        if row.spread:
            operands = [relax.Tuple(operands)]
        attributes = None if row.attributes is None else tvm.ir.make_node(row.attributes, **fields)
        return tvm.ir.Call(tvm.ir.Op.get(f"relax.{name}"), operands, attributes, ret_ty=self._type(call.type))

    def _defaults(self, name: str, attrs: dict[str, Any]) -> None:
        """Refuses attributes that Relax does not have, unless they have their defaults."""
        for key, value in attrs.items():
            if value != _DEFAULTS.get((name, key), _DEFAULTS.get(("", key))):
                raise TvmError(f"{name} with {key}={value!r} has no form in Relax")

    def _call(self, call: _anfora.Expr) -> Steps:
        op: Any = call.op
        if not isinstance(op, str):
            form = self._module.forms.get(str(op.name)) if op.kind == "global" else None
            if form is not None:
                return self._form(str(op.name), form, call)
            callee = (yield self._operands([op]))[0]
            left_out = self._module.left_out(str(op.name)) if op.kind == "global" else ()
            args = [arg for i, arg in enumerate(call.args) if i not in left_out]
            operands = yield self._arguments(args, getattr(callee.ty, "params", None))
            if op.kind == "var" and self._module.has_closures:
                return self._invoke(callee, operands, self._type(call.type))
            return tvm.ir.Call(callee, operands, ret_ty=self._result(callee.ty, call))
        if op == "make_closure":
            function = self._atom(call.args[0])
            types = list(getattr(function.ty, "params", None) or [])
            captured = yield self._arguments(call.args[1:], types[len(types) - len(call.args) + 1 :])
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
        raise TvmError(f"{op} with {len(args)} operands has no form in Relax")

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

    # ---- blocks and functions -----------------------------------------------------------------

    def _variable(self, name: str | None, ty: Any, is_dataflow: bool) -> Any:
        make = relax.DataflowVar if is_dataflow else relax.Var
        return make(_hint(name), None if is_missing(ty) else ty)

    def _binding(self, binding: _anfora.Binding) -> Steps:
        value, var = binding.value, binding.var
        pending, self._pending = self._pending, None
        if pending is not None:
            joined = self._join(pending, binding)
            if joined is not None:
                return joined
            self._normalise(pending)
        if value.kind == "call" and value.op == "nn.batch_norm":
            self._pending = binding
            return None
        if value.kind == "call" and value.op == "shape_to_tensor":
            self._vectors[var] = binding.name
            return None
        if value.kind == "literal" and (binding.name or "").startswith("$scalar "):
            # A number is one to the operators that the table has, and a constant to all else.
            self._inline[var] = constant(value.literal)
            self._scalars[var] = number(value.literal, str(binding.name))
            return None
        if value.kind == "call" and value.op == "match_cast":
            if value.args[0] in self._marks:
                self._casts[var] = False
                return None
            source = (yield self._operands(value.args))[0]
            to = value.attrs["to"]
            texts = elements_of(str(to))
            if texts is not None and to.ndim == 1 and to.dtype == "int64":
                ty: Any = relax.ShapeType([parse_dim(t, self.symbol) for t in texts])
            else:
                ty = self._type(to)
            made = self._variables[var] = self._variable(binding.name, ty, var.is_dataflow)
            return relax.MatchCast(made, source, ty)
        if value.kind == "function":
            # It may call itself by its variable.
            record = json.loads(value.attrs.get("tvm_record", "{}"))
            ty = self._signature(value.params, value.body, record)  # type: ignore[arg-type]
            made = self._variables[var] = self._variable(binding.name, ty, var.is_dataflow)
            return relax.VarBinding(made, (yield self._value(value)))
        done = yield self._value(value)
        name = binding.name or ""
        if done is None:
            self._marks.add(var)
            return None
        if isinstance(done, Boundary):
            return done
        if name.startswith("$value"):
            self._inline[var] = done
            return None
        made = self._variables[var] = self._variable(name, done.ty, var.is_dataflow)
        if isinstance(done, Cast):
            return relax.MatchCast(made, done.value, done.ty)
        return relax.VarBinding(made, untyped(done))

    def _block(self, block: _anfora.Expr) -> Steps:
        """Makes a block with its result."""
        blocks: list[Any] = []
        outer = self._block_bindings, self._in_region
        current: list[Any] = []
        left, in_region = 0, False
        #: True if a boundary says that there is a block.
        is_stated = False

        def close() -> None:
            nonlocal current, is_stated
            if current or is_stated:
                blocks.append((relax.DataflowBlock if in_region else relax.BindingBlock)(current))
            current, is_stated = [], False

        for binding in block.bindings:
            if binding.is_dataflow != in_region or (in_region and left == 0):
                close()
                in_region = binding.is_dataflow
                if in_region:
                    left = next(self._regions, 0)
                    while left == 0:
                        left = next(self._regions, -1)
            left -= in_region
            self._block_bindings, self._in_region = current, in_region
            made = yield self._binding(binding)
            if isinstance(made, Boundary):
                # A pass may have put it into a region, where it says nothing.
                if not in_region:
                    close()
                    if made.block == "DataflowBlock":
                        blocks.append(relax.DataflowBlock([]))
                    else:
                        is_stated = True
            elif made is not None:
                current.append(made)
        if in_region:
            close()
            in_region = False
        self._block_bindings, self._in_region = current, False
        if self._pending is not None:
            self._normalise(self._pending)
            self._pending = None
        body = self._leaf((yield self._value(block.result)), "")
        close()
        self._block_bindings, self._in_region = outer
        return self._typed(relax.SeqExpr(blocks, body), body.ty)

    def _typed(self, expr: Any, ty: Any) -> Any:
        """Gives an expression with blocks its type, unless the module was not normalised."""
        if not self._untyped:
            return typed(expr, ty)
        return expr if is_missing(ty) else Typed(expr, ty)

    def _special(self, param: _anfora.Expr, record: dict[str, Any]) -> Any:
        """Returns the type of a parameter."""
        name, ty = param.name, param.type
        known = record.get("params", {}).get(name)
        if known is None:
            return relax.ShapeType(self._elements(param)) if param in self._vectors else self._type(ty)
        text, form = known
        if text != str(ty):
            raise TvmError(f"the parameter {name} was {text}, which stood for another type, and is {ty} now")
        return decode(form, _no_operand, self.symbol)

    def _ret(self, body: _anfora.Expr, record: dict[str, Any]) -> Any:
        """Returns the type of the result of a function."""
        made = self._type(body.type)
        if "ret" not in record:
            return made
        text, form = record["ret"]
        # The type of anfora may state elements, which TVM's lacks.
        now = str(body.type), str(parse_type(made, lambda symbol: symbol.name))
        return decode(form, _no_operand, self._bound) if text in now else made

    def _bound(self, name: str) -> Any:
        """Returns the variable of a symbol that the function has to bind."""
        if not is_free(name) and name not in self._symbols:
            self._needed.append(name)
            return self._unbound.setdefault(name, tirx.Var(name, "int64"))
        return self.symbol(name)

    def _signature(self, params: list[_anfora.Expr], body: _anfora.Expr, record: dict[str, Any]) -> Any:
        types = [self._special(p, record) for p in params]
        result = self._ret(body, record)
        return relax.FuncType(types, None if is_missing(result) else result, not record.get("impure", False))

    def signature(self, fn: _anfora.Function) -> Any:
        """Returns the type of a function of the module."""
        record = json.loads(fn.attrs.get("tvm_record", "{}"))
        self._untyped = "untyped" in record
        self._impure = "impure" in record
        self._find_shapes(fn)
        return self._signature([p for p in fn.params if p not in self._gone], fn.body, record)

    def _find_shapes(self, fn: _anfora.Function) -> None:
        """Finds the parameters that are shapes in Relax: vectors that a pass has made parameters of a new
        function, if they are those of the bridge, or no other parameter has their symbols as extents. A
        fused function, which is only called, does without a vector whose symbols the others have."""
        if fn.is_public or "tvm_record" in fn.attrs:
            return
        elements = {i: elements_of(str(p.type)) for i, p in enumerate(fn.params)}
        bound: set[str] = set()
        for i, param in enumerate(fn.params):
            if elements[i] is None and param.type.shape is not None:
                bound.update(str(extent) for extent in param.type.shape)
        for i, param in enumerate(fn.params):
            texts = elements[i]
            if texts is None:
                continue
            is_hidden = (param.name or "").startswith("$symbols")
            if is_hidden and fn.attrs.get("Primitive") == 1 and bound.issuperset(texts):
                self._gone.add(param)
                self.left_out.add(i)
            elif not is_hidden and bound.issuperset(text for text in texts if text.isidentifier()):
                continue
            self._vectors[param] = param.name

    def _function(self, params: list[_anfora.Expr], body: _anfora.Expr, attrs: dict[str, Any]) -> Steps:
        record = json.loads(attrs.get("tvm_record", "{}"))
        made = []
        for param in params:
            if param not in self._gone:
                var = relax.Var(_hint(param.name), self._special(param, record))
                made.append(var)
                if param not in self._vectors:
                    self._variables[param] = var
        seq = untyped((yield self._block(body)))
        result = self._ret(body, record)
        fields = {k: v for k, v in attrs.items() if k not in _OURS}
        if fields.get("Primitive") in (0, 1):
            fields["Primitive"] = bool(fields["Primitive"])
        if "attrs" in record:
            fields.update(tvm.ir.load_json(record["attrs"]).items())
        attributes = tvm.ir.make_node("ir.DictAttrs", **fields) if fields else None
        return relax.Function(made, seq, result, not record.get("impure", False), attributes)

    def function(self, fn: _anfora.Function) -> Any:
        """Returns a function of the module as a function of Relax."""
        attrs = fn.attrs
        if fn.is_public:
            attrs.setdefault("global_symbol", fn.name)
        made = run(self._function(fn.params, fn.body, attrs))
        for name in self._needed:
            if name not in self._symbols:
                raise TvmError(f"no parameter and no match_cast binds the symbol {name} of the result")
        if not all(self._casts.values()):
            raise TvmError("a match_cast has lost its value, and Relax has no form of what is left")
        return made


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


def _no_operand(_: int) -> Any:
    raise TvmError("a type holds a variable")


def _has_symbols(ty: Any) -> bool:
    found: list[Any] = []

    def symbol(item: Any) -> int:
        found.append(item)
        return 0

    encode(ty, _no_operand, symbol)
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


class ModuleReader:
    """Makes a module of Relax from a module of anfora."""

    def __init__(self, mod: _anfora.Module) -> None:
        self._mod = mod
        self.forms: dict[str, str] = {}
        self._takes_symbols: set[str] = set()
        self._variables: dict[str, Any] = {}
        self._others: dict[str, Any] = {}
        self._free: dict[str, Any] = {}
        self._readers: dict[str, FunctionReader] = {}
        #: The element types that calls state for their results, by operator.
        self.out_dtypes: dict[str, str] = json.loads(mod.attrs.get("tvm_out_dtypes", "{}"))
        self._definitions: list[tuple[str, _anfora.Function]] = []
        #: True if functions that are values are closures, which Relax calls in a way of its own.
        self.has_closures = False
        for name, fn in mod.functions.items():
            attrs = fn.attrs
            if "tvm_function" in attrs:
                self._others[name] = self._other(attrs)
            elif fn.is_definition:
                self._definitions.append((name, fn))
            elif "tvm_form" in attrs:
                self.forms[name] = attrs["tvm_form"]
                if fn.params and fn.params[0].name == "symbols":
                    self._takes_symbols.add(name)
            else:
                raise TvmError(f"the function @{name} is only declared, which Relax has no form of")

    def _other(self, attrs: dict[str, Any]) -> Any:
        """Returns a function that anfora has only carried, with the symbol that it has now."""
        fn = tvm.ir.load_json(attrs["tvm_function"])
        symbol = attrs.get("global_symbol")
        if symbol is None or fn.attrs is not None and fn.attrs.get("global_symbol") == symbol:
            return fn
        return fn.with_attr("global_symbol", symbol)

    def takes_symbols(self, name: str) -> bool:
        """Returns true if a form has symbols, which its first operand lists."""
        return name in self._takes_symbols

    def free_symbol(self, name: str) -> Any:
        """Returns the variable of a symbol that nothing binds."""
        if name not in self._free:
            self._free[name] = tirx.Var(name[1:], "int64")
        return self._free[name]

    def left_out(self, name: str) -> set[int]:
        """Returns the parameters that a function does without in Relax."""
        return self._readers[name].left_out if name in self._readers else set()

    def variable(self, name: str) -> Any:
        """Returns the variable of a function."""
        if name not in self._variables:
            raise TvmError(f"there is no function @{name}")
        return self._variables[name]

    def module(self) -> Any:
        """Returns the module of Relax."""
        sizes, self.has_closures = layout_of(self._mod)
        functions: dict[Any, Any] = {}
        for name, fn in self._others.items():
            self._variables[name] = var = typed(tvm.ir.GlobalVar(name), getattr(fn, "ty", None))
            functions[var] = fn
        for name, fn in self._definitions:
            self._variables[name] = var = tvm.ir.GlobalVar(name)
            self._readers[name] = FunctionReader(self, sizes.get(name, []))
            relax.expr._update_type(var, self._readers[name].signature(fn))
        for name, fn in self._definitions:
            try:
                functions[self._variables[name]] = self._readers[name].function(fn)
            except TvmError as e:
                raise type(e)(f"{e} (in @{name})") from e
        given = self._mod.attrs
        attrs = {key: given[key] for key in SHARED_ATTRS if isinstance(given.get(key), str)}
        if "tvm_attrs" in given:
            attrs.update(tvm.ir.load_json(given["tvm_attrs"]).items())
        return tvm.IRModule(functions, attrs=attrs or None)


def relax_of(mod: _anfora.Module) -> Any:
    """Returns a module of Relax. One that is not in A-normal form is brought into it."""
    try:
        return ModuleReader(mod).module()
    except NotNormalError:
        normal = _anfora._make_pass("ToANormalForm", {})(mod, _anfora.PassContext())
        return ModuleReader(normal).module()
