"""From Relax to anfora: the text of a module."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from typing import Any

import tvm
import tvm_ffi
from tvm import relax, tirx

from ._tvm_codec import (
    MARK,
    Boundary,
    Cast,
    Typed,
    TO_DTYPE,
    TvmError,
    dim_text,
    dtype_name,
    encode,
    is_missing,
    kind,
    parse_type,
    quoted,
    type_text,
)
from ._tvm_forms import Forms, is_pure
from ._tvm_literals import attribute_text, literal_text, number_text
from ._tvm_ops import PLAIN, ROWS, Field, Letters, OfResult, Parts, Row, SameAs
from ._tvm_symbols import FreeSymbols, Symbols, handle, is_free
from ._tvm_versions import tensor_of

#: A computation in steps: it yields computations whose result it needs.
Steps = Generator[Any, Any, Any]

_IDENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_COUNTED = re.compile(r"\$\d+\Z")
#: The operators that call a function of the tensor level, their first operand.
_KERNEL_CALLS = ("relax.call_tir", "relax.call_tir_inplace")
#: The attributes of modules, strings, that mean the same on both sides.
SHARED_ATTRS = ("system_lib_prefix",)
#: The most elements that a type states.
_MOST_SYMBOLS = 64


def run(steps: Steps) -> Any:
    """Runs a computation in steps with a list as its stack."""
    stack = [steps]
    value: Any = None
    while stack:
        try:
            stack.append(stack[-1].send(value))
            value = None
        except StopIteration as end:
            stack.pop()
            value = end.value
    return value


class FunctionWriter:
    """Writes a function of Relax as text."""

    def __init__(self, module: ModuleWriter, opaque: set[int], free: dict[int, str]) -> None:
        self._module = module
        #: The variables whose values are kept unchanged.
        self._opaque = opaque
        self._names: dict[int, str] = {}
        self._raw: dict[int, str] = {}
        self._used: set[str] = set()
        self.symbols = Symbols(free, self._is_variable)
        #: The number of blocks around the current line.
        self._depth = 0
        #: The vectors of extents that are visible in the current block or region.
        self._vectors: dict[str, str] = {}
        #: The texts of conditions that were written before their ``if``.
        self._conditions: dict[int, str] = {}
        self._out: list[str] = []
        self._line = 1
        #: The variable that each line binds.
        self.lines: dict[int, Any] = {}

    def _write(self, line: str) -> None:
        self._out.append(line + "\n")
        self._line += 1

    def _define(self, var: Any) -> str:
        hint = str(getattr(var, "name_hint", None) or getattr(var, "name", ""))
        # Names that begin with `$` are those of bindings that Relax does not have.
        name = f"${hint}" if hint.startswith("$") else hint
        if not hint or name in self._used or _COUNTED.search(hint):
            name = f"{name}${len(self._used)}"
        self._used.add(name)
        self._raw[handle(var)] = name
        text = self._names[handle(var)] = f"%{quoted(name)}"
        return text

    def _symbol(self, var: Any) -> str:
        return self.symbols.name(var)

    def _type(self, ty: Any) -> str:
        return type_text(ty, self.symbols.extent)

    def _exact(self, ty: Any) -> bool:
        """Returns true if the type comes back as it is."""
        return self.symbols.is_exact(ty)

    # ---- values -------------------------------------------------------------------------------

    def _atom(self, expr: Any) -> str | None:
        of = kind(expr)
        if of in ("Var", "DataflowVar"):
            name = self._names.get(handle(expr))
            if name is None:
                raise TvmError(f"the variable {expr.name_hint} is used where it is not defined")
            return name
        if of in ("Constant", "GenericConst") and tensor_of(expr) is not None:
            return literal_text(expr)
        return f"@{quoted(expr.name_hint)}" if of == "GlobalVar" else None

    def _is_variable(self, item: Any) -> bool:
        return handle(item) in self._names

    def _form(self, expr: Any, ty: Any = None) -> str:
        """Returns an expression as a call of the function that stands for it, after a line for its
        symbols. ``ty`` is the type of the variable that it is bound to."""
        if ty is not None and not isinstance(expr, Cast) and is_missing(expr.ty) and not is_missing(ty):
            expr = Typed(expr, ty)
        operands: list[str] = []
        symbols: dict[int, int] = {}
        variables: list[Any] = []

        def operand(item: Any) -> int:
            operands.append(str(self._atom(item)))
            return len(operands) - 1

        def symbol(item: Any) -> int | str:
            name = self._symbol(item)
            if is_free(name):
                return name
            if handle(item) not in symbols:
                symbols[handle(item)] = len(symbols)
                variables.append(item)
            return symbols[handle(item)]

        def extent(item: Any) -> str | None:
            return None if self.symbols.extent(item) is None else f"s{symbol(item)}"

        form = encode(expr, operand, symbol, self._is_variable)
        result = type_text(expr.ty, extent)
        if len(variables) > _MOST_SYMBOLS:
            raise TvmError(f"an expression with more than {_MOST_SYMBOLS} symbols has no form in anfora")
        if variables:
            listed = ", ".join(self._symbol(v) for v in variables)
            if isinstance(expr, Cast):
                bound = self._hidden("symbols")
                # Anfora binds the symbols by a vector that has them as its elements.
                mark = self._module.forms.name("relax.match_cast", MARK, 1, 0, "Any", True)
                cast = self._hidden("cast")
                self._write(f"let {cast} = @{quoted(mark)}({operands[0]});")
                self._write(f"let {bound} = match_cast({cast}, to=Tensor[({len(variables)},), int64, [{listed}]]);")
            else:
                # The symbols are a vector of their own, so that the program stays in A-normal form.
                bound = self._vector(listed)
            operands.insert(0, bound)
        value = expr.value if isinstance(expr, Typed) else expr
        stem = f"relax.{kind(value)}"
        if isinstance(value, Cast):
            stem = "relax.match_cast"
        elif isinstance(value, tvm.ir.Call) and isinstance(value.op, tvm.ir.Op):
            stem = value.op.name
        pattern = None
        called = self._module.called(value)
        if called is not None:
            stem, pattern = f"{stem}.{called[0]}", called[1]
        count = len(operands) - bool(variables)
        name = self._module.forms.name(stem, form, count, len(variables), result, is_pure(value), pattern)
        return f"@{quoted(name)}({', '.join(operands)})"

    def _hidden(self, what: str) -> str:
        """Returns a name for a binding that Relax does not have."""
        name = f"${what}{len(self._used)}"
        self._used.add(name)
        return f"%{quoted(name)}"

    def _vector(self, dims: str) -> str:
        """Returns a vector of extents, bound before the current line or earlier in the block."""
        known = self._vectors.get(dims)
        if known is None:
            known = self._vectors[dims] = self._hidden("symbols")
            self._write(f"let {known} = shape_to_tensor(shape=shape({dims}));")
        return known

    def _row_call(self, name: str, row: Row, call: Any) -> str | None:
        """Writes a call of an operator with attributes; ``None`` if anfora has no such call."""
        args = list(call.args)
        if row.spread:
            if len(args) != 1 or not isinstance(args[0], relax.Tuple):
                return None
            args = list(args[0].fields)
        elif len(args) != row.operands:
            return None
        listed: str | None = None
        if row.shape:
            shape = args.pop()
            if not isinstance(shape, relax.ShapeExpr) or not 0 < len(shape.values) <= _MOST_SYMBOLS:
                return None
            dims = [dim_text(v, self.symbols.extent) for v in shape.values]
            if "?" in dims or "0" in dims:
                return None
            listed = ", ".join(dims)
        operands = [self._atom(a) for a in args]
        if None in operands or not operands or not all(self._exact(a.ty) for a in args):
            return None
        attributes = []
        for key, field in row.fields.items():
            value = getattr(call.attrs, key)
            if isinstance(field, Field):
                value = field.to_anfora(value)
                if value is None and field.default is None:
                    continue
                if key == "dtype":
                    if value not in TO_DTYPE:
                        return None
                    attributes.append(f"{key}={TO_DTYPE[value]}")
                else:
                    attributes.append(f"{key}={attribute_text(value)}")
            elif isinstance(field, Letters):
                if sorted(value) != sorted(field.default):
                    return None
                if value != field.default:
                    attributes.append(f"{key}={attribute_text(value)}")
            elif isinstance(field, SameAs):
                if value != getattr(call.attrs, field.other):
                    return None
            elif isinstance(field, OfResult):
                dtype = dtype_name(value)
                if dtype not in (None, dtype_name(call.ty.dtype)):
                    return None
                if self._module.out_dtypes.setdefault(name, dtype) != dtype:
                    return None
            elif isinstance(field, Parts):
                if isinstance(value, tirx.IntImm):
                    attributes.append(f"sections={int(value)}")
                else:
                    attributes.append(f"indices={attribute_text([int(v) for v in value])}")
            elif value not in field.values:
                return None
        if listed is not None:
            operands.append(self._vector(listed))
        return f"{name}({', '.join([*map(str, operands), *attributes])})"

    def _batch_norm(self, args: list[Any], attrs: Any) -> str | None:
        """Writes a normalisation by given statistics, and returns the tuple of its result and
        them."""
        operands = [self._atom(a) for a in args]
        is_plain = attrs.center and attrs.scale and not attrs.training
        if not is_plain or None in operands or not all(self._exact(a.ty) for a in args):
            return None
        # The momentum, which has no use here, is in the name.
        bound = self._hidden(f"norm {attrs.momentum!r} ")
        listed = ", ".join(map(str, operands))
        epsilon = attribute_text(float(attrs.epsilon))
        self._write(f"let {bound} = nn.batch_norm({listed}, axis={int(attrs.axis)}, epsilon={epsilon});")
        return f"({bound}, {operands[3]}, {operands[4]})"

    def _call(self, call: Any) -> str:
        # Each access to an object of TVM makes a new one of Python, so they are few here.
        op = call.op
        is_op = isinstance(op, tvm.ir.Op)
        if not self._exact(call.ty) or is_op and len(call.ty_args):
            return self._form(call)
        callee: str | None
        args = list(call.args)
        if is_op:
            callee = op.name.removeprefix("relax.")
            if callee == "nn.batch_norm":
                return self._batch_norm(args, call.attrs) or self._form(call)
            if callee in ROWS:
                return self._row_call(callee, ROWS[callee], call) or self._form(call)
            if PLAIN.get(callee) != len(args) or call.attrs is not None:
                return self._form(call)
        else:
            callee = self._atom(op)
            if isinstance(op, tvm.ir.GlobalVar) and op.name_hint not in self._module.relax:
                return self._form(call)
            if call.attrs is not None or len(call.ty_args):
                return self._form(call)
        operands: list[str | None] = []
        numbers: list[int] = []
        for i, arg in enumerate(args):
            text = self._atom(arg)
            if text is None and is_op:
                text = number_text(arg)
                numbers.append(i)
            elif text is not None and not self._exact(arg.ty):
                text = None
            operands.append(text)
        if callee is None or None in operands:
            return self._form(call)
        for i in numbers:
            # TVM keeps more digits than the element type has. They are in the name.
            bound = self._hidden(f"scalar {args[i].value!r} ")
            self._write(f"let {bound} = {operands[i]};")
            operands[i] = bound
        return f"{callee}({', '.join(map(str, operands))})"

    def _tuple(self, expr: Any) -> str:
        done: list[str] = []
        todo: list[Any] = [expr]
        while todo:
            item = todo.pop()
            if isinstance(item, int):
                parts = done[len(done) - item :]
                del done[len(done) - item :]
                done.append("()" if not parts else f"({', '.join(parts)}{',' * (item == 1)})")
            elif isinstance(item, relax.Tuple):
                todo.append(len(item.fields))
                todo.extend(reversed(list(item.fields)))
            else:
                text = self._atom(item)
                if text is None:
                    return self._form(expr)
                done.append(text)
        return done[0]

    def _condition(self, expr: Any) -> str:
        """Returns the condition of an ``if``, after a line for one that is no variable."""
        cond = self._atom(expr.cond)
        if cond is None:
            text, cond = self._form(expr.cond), self._hidden("value")
            self._write(f"let {cond} = {text};")
        return cond

    def _value(self, expr: Any, opaque: bool, ty: Any = None) -> Steps:
        """Returns the text of an expression, after the lines that it needs before it. Values that
        hold blocks are written up to their end."""
        text = self._atom(expr)
        if text is not None:
            return text
        if isinstance(expr, relax.Function):
            yield self._function(expr, "fn ")
            return None
        if isinstance(expr, relax.SeqExpr):
            self._out.append("{\n")
            self._line += 1
            yield self._block(expr)
            return None
        if isinstance(expr, relax.If):
            cond = self._conditions.get(handle(expr)) or self._condition(expr)
            self._out.append(f"if ({cond}) {{\n")
            self._line += 1
            yield self._block(expr.true_branch)
            self._out.append(" else {\n")
            self._line += 1
            yield self._block(expr.false_branch)
            return None
        if opaque or ty is not None and is_missing(expr.ty):
            return self._form(expr, ty)
        if isinstance(expr, tvm.ir.Call):
            return self._call(expr)
        if isinstance(expr, relax.Tuple):
            return self._tuple(expr)
        if isinstance(expr, relax.TupleGetItem) and isinstance(expr.tuple_value.ty, relax.TupleType):
            text = self._atom(expr.tuple_value)
            if text is not None:
                return f"{text}.{int(expr.index)}"
        return self._form(expr)

    # ---- blocks and functions -----------------------------------------------------------------

    def _binding(self, binding: Any) -> Steps:
        value, var = binding.value, binding.var
        if isinstance(binding, relax.MatchCast):
            self.symbols.bind(binding.ty)
            source = self._atom(value)
            is_shape = isinstance(binding.ty, relax.ShapeType) and binding.ty.values is not None
            if source is None or not is_shape and not self._exact(binding.ty):
                text = self._form(Cast(value, binding.ty))
            else:
                text = f"match_cast({source}, to={self._type(binding.ty)})"
            self.lines[self._line] = var
            self._write(f"let {self._define(var)} = {text};")
            return
        if isinstance(value, (relax.Function, relax.SeqExpr, relax.If)):
            name = None
            # A function may call itself by its variable; any other value comes before it.
            if isinstance(value, relax.Function):
                name = self._define(var)
            self.lines[self._line] = var
            if isinstance(value, relax.If):
                self._conditions[handle(value)] = self._condition(value)
            at = len(self._out)
            yield self._value(value, False)
            name = name or self._define(var)
            self._out[at] = f"let {name} = {self._out[at]}"
            self._write(";")
            return
        text = yield self._value(value, handle(var) in self._opaque, var.ty)
        self.lines[self._line] = var
        self._write(f"let {self._define(var)} = {text};")

    def _boundary(self, block: str) -> None:
        """Writes the beginning of a block that its bindings do not show."""
        name = self._module.forms.name(f"relax.{block}", Boundary(block).form, 0, 0, "()", True)
        self._write(f"let {self._hidden('block')} = @{quoted(name)}();")

    def _block(self, seq: Any) -> Steps:
        """Writes the bindings and the result of a block, and its closing brace."""
        if not isinstance(seq, relax.SeqExpr):
            raise TvmError(f"a block of the class {kind(seq)} has no form in anfora: the module is not normalised")
        before: str | None = None
        self._depth += 1
        self._module.depth = max(self._module.depth, self._depth)
        self._vectors.clear()
        for block in seq.blocks:
            is_region = isinstance(block, relax.DataflowBlock)
            # An empty block, and the boundary between two that are not of dataflow, are calls.
            if not len(block.bindings) or not is_region and before == "BindingBlock":
                self._boundary(kind(block))
            before = kind(block)
            if not len(block.bindings):
                continue
            if is_region:
                self._vectors.clear()
                self._write("dataflow {")
            for binding in block.bindings:
                yield self._binding(binding)
            if is_region:
                shown = (b.var for b in block.bindings if not isinstance(b.var, relax.DataflowVar))
                outputs = [self._names[handle(var)] for var in shown]
                self._write(f"output({', '.join(outputs)})")
                self._write("}")
                self._vectors.clear()
        text = yield self._value(seq.body, False)
        self._write(f"{text or ''}")
        self._out.append("}")
        self._depth -= 1
        self._vectors.clear()

    def _record(self, fn: Any) -> dict[str, Any]:
        """Returns what a function has that its signature does not say."""
        record: dict[str, Any] = {}

        def special(ty: Any) -> str | None:
            if self._exact(ty):
                return None
            return encode(ty, self._refuse_operand, self._symbol)

        params = {}
        for var in fn.params:
            form = special(var.ty)
            if form is not None:
                params[self._raw[handle(var)]] = [str(parse_type(var.ty, self.symbols.extent)), form]
        if params:
            record["params"] = params
        result = fn.body.body.ty
        if not (self._exact(result) and tvm_ffi.structural_equal(fn.ret_ty, result)):
            # It holds as long as the body has the type that it has now.
            text = str(parse_type(result, self.symbols.extent))
            record["ret"] = [text, encode(fn.ret_ty, self._refuse_operand, self._symbol)]
        if not fn.is_pure:
            record["impure"] = True
        if is_missing(fn.body.ty):
            record["untyped"] = True
        if fn.attrs is not None and "Primitive" in fn.attrs:
            # The functions that FuseOps makes have no record.
            record["fused"] = True
        return record

    def _refuse_operand(self, _: Any) -> int:
        raise TvmError("a type that holds a variable has no form in anfora")

    def _function(self, fn: Any, head: str) -> Steps:
        names = [self._define(p) for p in fn.params]
        for param in fn.params:
            self.symbols.bind(param.ty)
        types = [self._type(p.ty) for p in fn.params]
        # A result that anfora has no exact type for is any value to it, unless the function states
        # no more.
        ret, result = self._type(fn.ret_ty), fn.body.body.ty
        if not self._exact(fn.ret_ty) or not self._exact(result) and ret != self._type(result):
            ret = "Any"
        record = self._record(fn)
        parts = [f"{n}: {t}" for n, t in zip(names, types)]
        rest = {}
        for key, value in fn.attrs.items() if fn.attrs is not None else ():
            is_simple = isinstance(value, (bool, int, str)) and _IDENT.match(key) is not None
            if is_simple and not key.startswith("tvm") and key != "Pure":
                value = str(value) if isinstance(value, str) else value
                # TVM says that a function is primitive by `True`, and anfora by 1.
                is_primitive = key == "Primitive" and value in (0, 1)
                if is_primitive and not isinstance(value, bool):
                    rest[key] = value
                parts.append(f"{key}={attribute_text(int(value) if is_primitive else value)}")
            else:
                rest[key] = value
        if rest:
            record["attrs"] = tvm.ir.save_json(tvm.ir.make_node("ir.DictAttrs", **rest))
        if record:
            parts.append(f"tvm_record={quoted(json.dumps(record))}")
        self._out.append(f"{head}({', '.join(parts)}) -> {ret} {{\n")
        self._line += 1
        yield self._block(fn.body)

    def text(self, name: str, fn: Any) -> str:
        """Returns the text of a function of the module."""
        private = "" if fn.attrs is not None and "global_symbol" in fn.attrs else "private "
        run(self._function(fn, f"def {private}@{quoted(name)}"))
        self._write("")
        return "".join(self._out)


class ModuleWriter:
    """Writes a module of Relax as text."""

    def __init__(self, mod: Any) -> None:
        self.functions = {gv.name_hint: fn for gv, fn in mod.functions.items()}
        self.relax = {name for name, fn in self.functions.items() if isinstance(fn, relax.Function)}
        if len(mod.global_infos):
            raise TvmError(f"the global infos of a module have no form in anfora: {', '.join(mod.global_infos)}")
        self.attrs = dict(mod.attrs.items()) if mod.attrs is not None else {}
        self.forms = Forms(set(self.functions))
        #: The greatest number of blocks in each other.
        self.depth = 0
        #: The symbols that nothing binds.
        self.free = FreeSymbols()
        #: The element types that all calls of an operator state for their results, by operator.
        self.out_dtypes: dict[str, str | None] = {}

    def called(self, value: Any) -> tuple[str, int] | None:
        """Returns the function of the tensor level that a value calls, with the kind that TVM has
        found for it, by which FuseOps goes."""
        if not isinstance(value, tvm.ir.Call) or not isinstance(value.op, tvm.ir.Op):
            return None
        if value.op.name not in _KERNEL_CALLS:
            return None
        callee = value.args[0]
        fn = self.functions.get(callee.name_hint) if isinstance(callee, tvm.ir.GlobalVar) else None
        pattern = fn.attrs.get("op_pattern") if fn is not None and fn.attrs is not None else None
        # Anything but a number is the attribute of another tool.
        if not isinstance(pattern, (int, tirx.IntImm)):
            return None
        return str(callee.name_hint), int(pattern)

    def _attributes(self) -> str:
        """Returns the line of the attributes of the module: those that mean the same on both sides,
        and records of the others."""
        parts = [f"{k}={quoted(str(v))}" for k, v in self.attrs.items() if k in SHARED_ATTRS and isinstance(v, str)]
        rest = {k: v for k, v in self.attrs.items() if k not in SHARED_ATTRS or not isinstance(v, str)}
        if rest:
            parts.append(f"tvm_attrs={quoted(tvm.ir.save_json(tvm.ir.make_node('ir.DictAttrs', **rest)))}")
        stated = {name: dtype for name, dtype in self.out_dtypes.items() if dtype is not None}
        if stated:
            parts.append(f"tvm_out_dtypes={quoted(json.dumps(stated))}")
        return f"#![{', '.join(parts)}]\n" if parts else ""

    def _primitive(self, name: str, fn: Any) -> str:
        """Returns a function of the tensor level. Its body is a call of itself, which says nothing,
        and keeps InlineFunctions from putting it in the place of the function."""
        symbol = fn.attrs.get("global_symbol") if fn.attrs is not None else None
        linkage = "private " if symbol is None else ""
        parts = ["Primitive=1", f"tvm_function={quoted(tvm.ir.save_json(fn))}"]
        if symbol is not None:
            parts.append(f"global_symbol={quoted(str(symbol))}")
        return f"def {linkage}@{quoted(name)}({', '.join(parts)}) -> () {{\n@{quoted(name)}()\n}}\n"

    def text(self, opaque: dict[str, set[int]]) -> tuple[str, dict[int, tuple[str, Any]]]:
        """Returns the text, and the functions and variables by line."""
        while True:
            known = len(self.free)
            written = self._text(opaque)
            if len(self.free) == known:
                return written

    def _text(self, opaque: dict[str, set[int]]) -> tuple[str, dict[int, tuple[str, Any]]]:
        self.forms = Forms(set(self.functions))
        self.out_dtypes = {}
        functions: list[str] = []
        lines: list[dict[int, Any]] = []
        names: list[str] = []
        head = ""
        for name, fn in self.functions.items():
            if isinstance(fn, relax.Function):
                writer = FunctionWriter(self, opaque.get(name, set()), self.free.of(name))
                try:
                    functions.append(writer.text(name, fn))
                except TvmError as e:
                    raise TvmError(f"{e} (in @{name})") from e
                self.free.add(name, writer.symbols.unbound())
                lines.append(writer.lines)
                names.append(name)
            elif isinstance(fn, tirx.PrimFunc):
                functions.append(self._primitive(name, fn))
                lines.append({})
                names.append(name)
            else:
                head += f"declare @{quoted(name)}(Pure=1, tvm_function={quoted(tvm.ir.save_json(fn))}) -> Any;\n"
        head = self._attributes() + head + "".join(self.forms.declarations)
        where: dict[int, tuple[str, Any]] = {}
        line = head.count("\n")
        for name, text, bound in zip(names, functions, lines):
            where.update({line + at: (name, var) for at, var in bound.items()})
            line += text.count("\n")
        return head + "".join(functions), where
