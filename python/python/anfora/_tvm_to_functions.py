"""From anfora to Relax: functions, binding by binding."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import tvm
from tvm import relax, tirx

from . import _anfora
from ._tvm_codec import (
    FROM_DTYPE,
    Boundary,
    Cast,
    TvmError,
    decode,
    elements_of,
    is_missing,
    parse_dim,
    parse_type,
)
from ._tvm_from import Steps, run
from ._tvm_literals import constant, number
from ._tvm_symbols import is_free
from ._tvm_to_values import ValueReader, hint_of, no_operand, untyped

if TYPE_CHECKING:
    from ._tvm_to import ModuleReader

#: The attributes of functions that only the bridge uses.
_OURS = ("tvm_record", "tvm_form", "tvm_function", "Pure")


class FunctionReader(ValueReader):
    """Makes a function of Relax from a function of anfora."""

    def __init__(self, module: ModuleReader, regions: list[int]) -> None:
        super().__init__(module)
        self._regions = iter(regions)
        #: The variables that bind the symbols of a match_cast.
        self._marks: set[Any] = set()
        #: The parameters that the function of Relax does not have.
        self.left_out: set[int] = set()
        self._gone: set[Any] = set()
        #: The constants of a fused function, which are operands of its calls in Relax.
        self.constants: list[_anfora.Expr] = []
        #: The parameters that are scalars in Relax, although the function does not say so.
        self._scalar_params: set[Any] = set()
        #: The symbols of the result that were not bound when they were read.
        self._needed: list[str] = []
        self._unbound: dict[str, Any] = {}

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

    def _special(self, param: _anfora.Expr, record: dict[str, Any]) -> Any:
        """Returns the type of a parameter."""
        name, ty = param.name, param.type
        known = record.get("params", {}).get(name)
        if known is None and param in self._scalar_params:
            return tvm.ir.PrimType(FROM_DTYPE[str(ty.dtype)])
        if known is None:
            return relax.ShapeType(self._elements(param)) if param in self._vectors else self._type(ty)
        text, form = known
        if text != str(ty):
            raise TvmError(f"the parameter {name} was {text}, which stood for another type, and is {ty} now")
        return decode(form, no_operand, self.symbol)

    def _ret(self, body: _anfora.Expr, record: dict[str, Any]) -> Any:
        """Returns the type of the result of a function."""
        made = self._type(body.type)
        if "ret" not in record:
            return made
        text, form = record["ret"]
        # The type of anfora may state elements, which TVM's lacks.
        now = str(body.type), str(parse_type(made, lambda symbol: symbol.name))
        return decode(form, no_operand, self._bound) if text in now else made

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

    def signature(self, fn: _anfora.Function, scalars: set[int]) -> Any:
        """Returns the type of a function of the module. ``scalars`` are the parameters that are
        scalars in Relax: a pass has made a new function, to which they are tensors."""
        record = json.loads(fn.attrs.get("tvm_record", "{}"))
        self._untyped = "untyped" in record
        self._impure = "impure" in record
        self._find_shapes(fn)
        self._find_constants(fn)
        params = [p for p in (*fn.params, *self.constants) if p not in self._gone]
        self._scalar_params = {params[i] for i in scalars}
        return self._signature(params, fn.body, record)

    def _find_shapes(self, fn: _anfora.Function) -> None:
        """Finds the parameters that are shapes in Relax: vectors that a pass has made parameters of
        a new function, if they are those of the bridge, or no other parameter has their symbols as
        extents. A fused function, which is only called, does without a vector whose symbols the
        others have."""
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

    def _find_constants(self, fn: _anfora.Function) -> None:
        """Finds the constants that a pass has moved into a fused function with the kernels that
        take them. TVM makes one kernel of such a function, and has constants only as its
        operands."""
        if fn.is_public or "tvm_record" in fn.attrs or fn.attrs.get("Primitive") != 1:
            return
        found: dict[_anfora.Expr, None] = {}
        for binding in fn.bindings:
            value = binding.value
            if value.kind == "call" and self._module.is_kernel_call(value):
                # A whole number of rank 0 may be an extent.
                constants = (arg for arg in value.args if arg.kind == "literal")
                found.update((arg, None) for arg in constants if arg.type.ndim != 0 or arg.type.dtype != "int64")
        self.constants = list(found)

    def _function(self, params: list[_anfora.Expr], body: _anfora.Expr, attrs: dict[str, Any]) -> Steps:
        record = json.loads(attrs.get("tvm_record", "{}"))
        made = []
        for param in params:
            if param not in self._gone:
                hint = "constant" if param.kind == "literal" else hint_of(param.name)
                var = relax.Var(hint, self._special(param, record))
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
        made = run(self._function([*fn.params, *self.constants], fn.body, attrs))
        for name in self._needed:
            if name not in self._symbols:
                raise TvmError(f"no parameter and no match_cast binds the symbol {name} of the result")
        if not all(self._casts.values()):
            raise TvmError("a match_cast has lost its value, and Relax has no form of what is left")
        return made
