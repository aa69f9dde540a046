"""
The toolkit, compiled. Users import the modules of the package around it.
"""

import collections.abc
import typing
from typing import Any, Final, SupportsIndex, final

from typing_extensions import disjoint_base

from ._errors import Diagnostic, Location

__all__ = ["__version__", "Binding", "BindingIterator", "Bindings", "Builtin", "DataflowBlock", "Expr", "FoundDifferences", "Function", "FunctionBuilder", "Literal", "Match", "Module", "MutatorBase", "NearMiss", "Outcome", "Pass", "PassContext", "PassInfo", "Pattern", "Rule", "RuleSet", "Type", "_bind_params", "_builtin_instrument", "_diff", "_export_onnx", "_extract", "_find", "_import_onnx", "_main", "_make_pass", "_mutate", "_parse_pipeline", "_registered_passes", "_registered_pipelines", "_rename", "_repeat", "_restore_literal", "_rewrite", "_run", "_run_codegen", "_save_onnx", "_sequential", "_set_attributes", "_set_shapes", "_slim", "_split_onnx", "_visit", "any_", "any_literal", "any_of", "call", "capture", "global_", "literal", "loads", "none_", "op", "op_in", "rest", "tuple_", "tuple_getitem"]

__version__: Final[str]
"""
The version of the package.
"""

@final
class Binding:
    """
    A binding: a variable and its value. It reads like its value: `b.op` is `b.value.op`.
    """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def args(self, /) -> list[Expr]:
        """
        The operands of the value: see `Expr.args`.
        """
    @property
    def attrs(self, /) -> dict[str, Any]:
        """
        The attributes of the value: see `Expr.attrs`.
        """
    @property
    def is_dataflow(self, /) -> bool:
        """
        True if the binding is in a dataflow region.
        """
    @property
    def loc(self, /) -> Location | None:
        """
        The place of the binding in the text of the module; `None` without a text.
        """
    @property
    def name(self, /) -> str | None:
        """
        The name of the variable, if it has one.
        """
    @property
    def op(self, /) -> str | Expr | None:
        """
        The callee of the value: see `Expr.op`.
        """
    @property
    def type(self, /) -> Type:
        """
        The type of the variable.
        """
    @property
    def value(self, /) -> Expr:
        """
        The value.
        """
    @property
    def var(self, /) -> Expr:
        """
        The variable.
        """

@final
class BindingIterator:
    """
    Goes through the bindings of a function.
    """
    def __iter__(self, /) -> BindingIterator: ...
    def __next__(self, /) -> Binding: ...

@final
class Bindings:
    """
    The bindings of a function in program order, with those of the blocks in it.
    """
    @typing.overload
    def __getitem__(self, index: SupportsIndex, /) -> Binding: ...
    @typing.overload
    def __getitem__(self, index: slice, /) -> list[Binding]: ...
    def __iter__(self, /) -> BindingIterator: ...
    def __len__(self, /) -> int: ...
    def __repr__(self, /) -> str: ...

@final
class Builtin:
    """
    An instrument of the toolkit.
    """
    def chrome_trace(self, /) -> str:
        """
        Returns the measurements as a trace for the viewer of Chrome.
        """
    def history(self, /, function: str, binding: str) -> list[tuple[str, str, str | None, str | None, list[str]]]:
        """
        Returns the events of a binding: the pass, what it did, the line before, the line after, and
        the reasons.
        """
    def json(self, /) -> str:
        """
        Returns the measurements as JSON.
        """
    def page(self, /, title: str) -> str:
        """
        Returns what was recorded as a page of HTML.
        """
    def render(self, /) -> str:
        """
        Returns a table of the time that each pass took.
        """
    def runs(self, /) -> list[tuple[int, str, bool]]:
        """
        Returns the runs that the instrument has seen: number, name of the pass, and whether it ran.
        """
    @property
    def total(self, /) -> float:
        """
        The number of seconds that the passes took in all.
        """

@final
class DataflowBlock:
    """
    A dataflow region: its bindings, what it uses from outside, and what is used outside of it.

    It can be used while the pass that was given it runs.
    """
    def __repr__(self, /) -> str: ...
    @property
    def bindings(self, /) -> Bindings:
        """
        The bindings of the region in program order, with those of the blocks in it.
        """
    @property
    def inputs(self, /) -> list[Expr]:
        """
        The variables that the region uses and does not bind.
        """
    @property
    def outputs(self, /) -> list[Expr]:
        """
        The variables that are used outside of the region.
        """

@final
class Expr:
    """
    An expression: a variable, a constant, a call, a tuple, a branch or a block.

    It is a handle: the function, an id, and the state of the function. When the function has
    changed, using the handle is a `StaleError`.
    """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def args(self, /) -> list[Expr]:
        """
        The arguments of a call, the fields of a tuple, or the tuple of a projection.
        """
    @property
    def attrs(self, /) -> dict[str, Any]:
        """
        The attributes of a call, with the defaults of the operator.
        """
    @property
    def bindings(self, /) -> list[Binding]:
        """
        The bindings of a block, in order, without those of the blocks in it.
        """
    @property
    def body(self, /) -> Expr | None:
        """
        The block of a function value.
        """
    @property
    def cond(self, /) -> Expr | None:
        """
        The condition of an `if`.
        """
    @property
    def else_block(self, /) -> Expr | None:
        """
        The block of an `if` for a false condition.
        """
    @property
    def index(self, /) -> int | None:
        """
        The index of a projection; `None` for any other expression.
        """
    @property
    def is_dataflow(self, /) -> bool:
        """
        True for a variable that is visible only in its dataflow region.
        """
    @property
    def kind(self, /) -> str:
        """
        The kind: `"var"`, `"literal"`, `"global"`, `"op"`, `"none"`, `"call"`, `"tuple"`,
        `"tuple_getitem"`, `"block"`, `"if"` or `"function"`.
        """
    @property
    def literal(self, /) -> Literal | None:
        """
        The constant; `None` for any other expression.
        """
    @property
    def loc(self, /) -> Location | None:
        """
        The place of the expression in the text of the module; `None` without a text.
        """
    @property
    def name(self, /) -> str | None:
        """
        The name of a variable, a global or an operator; `None` for others, and for a variable
        without a name.
        """
    @property
    def op(self, /) -> str | Expr | None:
        """
        The callee: the name of an operator, or the function as an expression; `None` for what
        is no call.
        """
    @property
    def params(self, /) -> list[Expr]:
        """
        The parameters of a function value.
        """
    @property
    def result(self, /) -> Expr:
        """
        The result of a block. Any other expression is its own result.
        """
    @property
    def then_block(self, /) -> Expr | None:
        """
        The block of an `if` for a true condition.
        """
    @property
    def type(self, /) -> Type:
        """
        The type of the value.
        """

@final
class FoundDifferences:
    """
    The differences of two modules, which the class of the package shows.
    """
    def count(self, /) -> int:
        """
        Returns the number of differences.
        """
    def json(self, /) -> str:
        """
        Returns the differences as JSON.
        """
    def page(self, /, left: str, right: str) -> str:
        """
        Returns the differences as a page of HTML, with names for the two modules.
        """
    def text(self, /) -> str:
        """
        Returns a line for each difference.
        """

@final
class Function:
    """
    A function of a module: its parameters, its bindings, its result.

    It is a handle: it shows the function as it is now.
    """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def attrs(self, /) -> dict[str, Any]:
        """
        The attributes by name.
        """
    @property
    def bindings(self, /) -> Bindings:
        """
        The bindings in program order, with those of the blocks in it. Linear in the function.
        """
    @property
    def body(self, /) -> Expr:
        """
        The block: its own bindings, and its result.
        """
    @property
    def is_definition(self, /) -> bool:
        """
        True if the function has a body; false if it is only declared.
        """
    @property
    def is_public(self, /) -> bool:
        """
        True if the function is visible outside of the module.
        """
    @property
    def module(self, /) -> Module:
        """
        The module that the function is in.
        """
    @property
    def name(self, /) -> str:
        """
        The name, without `@`.
        """
    @property
    def params(self, /) -> list[Expr]:
        """
        The parameters.
        """
    @property
    def result(self, /) -> Expr:
        """
        The result of the block.
        """
    @property
    def ret_type(self, /) -> Type:
        """
        The type of the result.
        """
    def set_attr(self, /, name: str, value: typing.Any) -> Function:
        """
        Sets an attribute; `None` removes it. Returns the function.
        """
    def text(self, /) -> str:
        """
        Returns the function as text.
        """
    def with_attr(self, /, name: str, value: typing.Any) -> Function:
        """
        As `set_attr`, in the words of TVM.
        """

@disjoint_base
class FunctionBuilder:
    """
    Builds a function of a module, binding by binding:

    ```python
    fb = af.FunctionBuilder(mod, "main")
    x = fb.param("x", "Tensor[(8,), float32]")
    y = fb.emit("add", x, 1.0, name="y")
    fb.finish(fb.emit("exp", y))
    ```
    """
    def __new__(cls, /, module: Module, name: str = "main", *, private: bool = False) -> FunctionBuilder:
        """
        Begins a function of a module. It is in the module when it is finished.
        """
    def __repr__(self, /) -> str: ...
    def begin_dataflow(self, /) -> None:
        """
        Begins a dataflow region.
        """
    def close_block(self, /, result: typing.Any) -> Expr:
        """
        Closes the innermost block with its result, and returns the block.
        """
    def close_function(self, /, result: typing.Any, *, name: str | None = None) -> Expr:
        """
        Closes the block of a function value with its result, binds the function, and returns the
        variable.
        """
    def const_(self, /, value: typing.Any, dtype: str | None = None) -> Expr:
        """
        Returns a constant as an expression: of a literal, a number, or an array.
        """
    def emit(self, /, op: str | Expr, *args: typing.Any, name: str | None = None, **attrs: typing.Any) -> Expr:
        """
        Makes a call of an operator (by name), of a function (`"@name"` or an expression),
        binds it, and returns the variable. Operands are expressions, constants, numbers, or
        `None` for one that is left out; attributes are keyword arguments.
        """
    def emit_if(self, /, cond: Expr, then_block: Expr, else_block: Expr, *, name: str | None = None) -> Expr:
        """
        Chooses between two closed blocks, binds the result, and returns the variable.
        """
    def emit_tuple(self, /, *fields: typing.Any, name: str | None = None) -> Expr:
        """
        Makes a tuple, binds it, and returns the variable.
        """
    def emit_tuple_getitem(self, /, tuple: Expr, index: int, *, name: str | None = None) -> Expr:
        """
        Takes a field of a tuple, binds it, and returns the variable.
        """
    def end_dataflow(self, /, *outputs: Expr) -> None:
        """
        Ends the dataflow region. Only the outputs are visible after it.
        """
    def finish(self, /, result: typing.Any) -> Function:
        """
        Ends the function with its result and adds it to the module.
        """
    def match_cast(self, /, value: Expr, ty: Type | str, *, name: str | None = None) -> Expr:
        """
        Casts a value to a type (a `Type` or its text), which is checked at run time, binds
        it, and returns the variable.
        """
    def open_block(self, /) -> None:
        """
        Opens a block: a branch, or a block as a value.
        """
    def open_function(self, /, *params: tuple[str, Type | str]) -> list[Expr]:
        """
        Opens the block of a function value with parameters, given as pairs of name and type, and
        returns the parameters.
        """
    def param(self, /, name: str, ty: Type | str) -> Expr:
        """
        Adds a parameter of a type: a `Type`, or its text.
        """
    def ret(self, /, ty: Type | str) -> None:
        """
        States the type of the result: a `Type`, or its text.
        """

@final
class Literal:
    """
    A constant tensor: `Literal(np.ones((4,), "float32"), name="bias")`.

    Numbers need no NumPy: `Literal(2.0)` is a float32, `Literal(2)` an int32, as in TVM, and
    `dtype` states another element type.
    """
    def __array__(self, /, dtype: typing.Any = None, copy: bool | None = None) -> typing.Any: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __new__(cls, /, value: typing.Any, dtype: str | None = None, *, name: str | None = None) -> Literal: ...
    def __reduce__(self, /) -> tuple[typing.Any, typing.Any]: ...
    def __repr__(self, /) -> str: ...
    @property
    def dtype(self, /) -> str:
        """
        The element type, such as `"float32"`.
        """
    def item(self, /) -> bool | int | float:
        """
        Returns the only element as a number of Python.
        """
    @property
    def name(self, /) -> str | None:
        """
        The name, if one was given.
        """
    @property
    def nbytes(self, /) -> int | None:
        """
        The number of bytes of the elements; `None` for strings.
        """
    def numpy(self, /) -> typing.Any:
        """
        Returns the constant as an array of NumPy, which is read-only.
        """
    @property
    def shape(self, /) -> tuple[int, ...]:
        """
        The extents.
        """
    @property
    def size(self, /) -> int:
        """
        The number of elements.
        """
    def tobytes(self, /) -> bytes:
        """
        Returns the elements as bytes, in row-major order and little-endian, packed if they take
        less than a byte.
        """
    def tolist(self, /) -> typing.Any:
        """
        Returns the elements as numbers of Python, in nested lists. Needs NumPy.
        """

@final
class Match:
    """
    A match of a pattern: the captures by name. In the function of a rule it also makes expressions.
    """
    def __contains__(self, name: str, /) -> bool: ...
    def __getitem__(self, name: str, /) -> Any: ...
    def __iter__(self, /) -> Any: ...
    def __len__(self, /) -> int: ...
    def const_(self, /, value: typing.Any, dtype: str | None = None) -> Expr:
        """
        Returns a constant as an expression: of a literal, a number, or an array.
        """
    def emit(self, /, op: str | Expr, *args: typing.Any, name: str | None = None, **attrs: typing.Any) -> Expr:
        """
        Makes a call of an operator (by name), of a function (`"@name"` or an expression),
        binds it, and returns the variable. Operands are expressions, constants, numbers, or
        `None` for one that is left out; attributes are keyword arguments.
        """
    def emit_tuple(self, /, *fields: typing.Any, name: str | None = None) -> Expr:
        """
        Makes a tuple, binds it, and returns the variable.
        """
    def emit_tuple_getitem(self, /, tuple: Expr, index: int, *, name: str | None = None) -> Expr:
        """
        Takes a field of a tuple, binds it, and returns the variable.
        """
    def keys(self, /) -> list[str]:
        """
        Returns the names of the captures.
        """
    def match_cast(self, /, value: Expr, ty: Type | str, *, name: str | None = None) -> Expr:
        """
        Casts a value to a type (a `Type` or its text), which is checked at run time, binds
        it, and returns the variable.
        """
    @property
    def root(self, /) -> Expr:
        """
        The expression that the pattern matched.
        """

@final
class Module:
    """
    A program: functions in their order, with attributes.

    A copy (`copy.copy(mod)`) shares the program until one of the two is edited. Modules that differ
    only in the names of variables are equal and have equal hashes.
    """
    def __contains__(self, name: str, /) -> bool: ...
    def __copy__(self, /) -> Module: ...
    def __deepcopy__(self, /, memo: typing.Any) -> Module: ...
    def __delitem__(self, name: str, /) -> None: ...
    def __eq__(self, other: object, /) -> Any: ...
    def __getitem__(self, name: str, /) -> Function: ...
    def __hash__(self, /) -> int: ...
    def __iter__(self, /) -> Any: ...
    def __len__(self, /) -> int: ...
    def __new__(cls, /) -> Module:
        """
        Makes an empty module.
        """
    def __reduce__(self, /) -> tuple[typing.Any, tuple[str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    def _repr_html_(self, /) -> str:
        """
        Returns the functions and bindings as a page for a notebook: the first 200 lines.
        """
    @property
    def attrs(self, /) -> dict[str, Any]:
        """
        The attributes of the module by name.
        """
    @property
    def binding_count(self, /) -> int:
        """
        The number of bindings of all functions.
        """
    def copy(self, /) -> Module:
        """
        Returns a copy, which shares the program until one of the two is edited.
        """
    @property
    def functions(self, /) -> dict[str, Function]:
        """
        The functions by name, in program order.
        """
    def remove(self, /, *names: str) -> None:
        """
        Removes functions.
        """
    def rename(self, /, old: str, new: str) -> None:
        """
        Renames a function. All calls of it follow.
        """
    def set_attr(self, /, name: str, value: typing.Any) -> None:
        """
        Sets an attribute of the module; `None` removes it.
        """
    def text(self, /, *, elide: bool = False) -> str:
        """
        Returns the module as text, which `loads` reads. `elide` shortens large constants, for
        readers.
        """
    def verify(self, /) -> None:
        """
        Checks the rules of well-formed modules.

        # Errors
        `VerifyError` with the mistakes.
        """

@disjoint_base
class MutatorBase:
    """
    Rewrites functions: the methods of a subclass return what takes the place of an expression.
    """
    def __new__(cls, /, *args: typing.Any, **kwargs: typing.Any) -> MutatorBase: ...
    def const_(self, /, value: typing.Any, dtype: str | None = None) -> Expr:
        """
        Returns a constant as an expression: of a literal, a number, or an array.
        """
    def emit(self, /, op: str | Expr, *args: typing.Any, name: str | None = None, **attrs: typing.Any) -> Expr:
        """
        Makes a call of an operator (by name), of a function (`"@name"` or an expression),
        binds it, and returns the variable. Operands are expressions, constants, numbers, or
        `None` for one that is left out; attributes are keyword arguments.
        """
    def emit_tuple(self, /, *fields: typing.Any, name: str | None = None) -> Expr:
        """
        Makes a tuple, binds it, and returns the variable.
        """
    def emit_tuple_getitem(self, /, tuple: Expr, index: int, *, name: str | None = None) -> Expr:
        """
        Takes a field of a tuple, binds it, and returns the variable.
        """
    def match_cast(self, /, value: Expr, ty: Type | str, *, name: str | None = None) -> Expr:
        """
        Casts a value to a type (a `Type` or its text), which is checked at run time, binds
        it, and returns the variable.
        """

@final
class NearMiss:
    """
    A rewrite that nearly applied, with the condition that did not hold:
    `PassContext(why_not=[...])` asks for them, `take_near_misses` returns them.
    """
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def binding(self, /) -> str | None:
        """
        The name of the binding, without `%`, `#57` or `#2:57` if it has none; `None` for
        a tail.
        """
    @property
    def function(self, /) -> str | None:
        """
        The name of the function, without `@`.
        """
    @property
    def pass_name(self, /) -> str:
        """
        The name of the pass.
        """
    @property
    def what(self, /) -> str:
        """
        The rule, or another kind of rewrite.
        """
    @property
    def why(self, /) -> str:
        """
        The condition that did not hold.
        """

@final
class Outcome:
    """
    The effect of a pass on a module.
    """
    def __repr__(self, /) -> str: ...
    @property
    def changed(self, /) -> bool:
        """
        True if the pass changed the module.
        """
    @property
    def skipped(self, /) -> str | None:
        """
        The reason why the context did not let the pass run; `None` if it ran.
        """

@disjoint_base
class Pass:
    """
    A pass: a transformation of modules.

    `p(mod)` returns the transformed module and leaves `mod` as it is; `p.apply(mod)` works in place
    and returns what happened. Both run under the current context, or under the one that is given.
    """
    def __call__(self, /, mod: Module, context: PassContext | None = None) -> Module:
        """
        Returns the transformed module. `mod` stays as it is; both share the unchanged parts.

        Raises `PassError` if the pass fails.
        """
    def __new__(cls, /, kind: str, name: str, run: typing.Callable[..., typing.Any], opt_level: int = 0, required: collections.abc.Iterable[str] | None = None) -> Pass:
        """
        Makes a pass from a function of Python. `module_pass`, `function_pass` and
        `dataflowblock_pass` are the ways to call this.
        """
    def __repr__(self, /) -> str: ...
    def apply(self, /, mod: Module, context: PassContext | None = None) -> Outcome:
        """
        Transforms the module in place, and returns the outcome. A pass that fails leaves the module
        as it was; a sequence that fails keeps the changes of the passes before the one that failed.

        Raises `PassError` if the pass fails.
        """
    @property
    def info(self, /) -> PassInfo:
        """
        The name, the level and the dependencies.
        """
    @property
    def passes(self, /) -> list[Pass]:
        """
        The passes that this one runs, in order; none for a pass that holds no others.
        """
    @property
    def pipeline(self, /) -> str:
        """
        The pass as a pipeline writes it.
        """

@final
class PassContext:
    """
    The context that passes run under: a level, passes that are required or disabled, settings, and
    instruments. `with PassContext(...)` makes it the current one of the thread.
    """
    def __enter__(self, /) -> PassContext: ...
    def __exit__(self, /, *args: typing.Any) -> None: ...
    def __new__(cls, /, opt_level: int = 2, required_pass: collections.abc.Iterable[str] | None = None, disabled_pass: collections.abc.Iterable[str] | None = None, instruments: collections.abc.Iterable[typing.Any] | None = None, config: collections.abc.Mapping[str, typing.Any] | None = None, *, threads: int = 1, verify: bool | None = None, why_not: collections.abc.Iterable[str] | None = None) -> PassContext: ...
    def __repr__(self, /) -> str: ...
    @property
    def config(self, /) -> dict[str, str]:
        """
        The settings that differ from their defaults, as text.
        """
    @staticmethod
    def current() -> PassContext:
        """
        Returns the current context of the thread: that of the innermost `with`, or of the pass that
        runs, or one with the defaults.
        """
    @property
    def disabled_pass(self, /) -> list[str]:
        """
        The names of the passes that do not run.
        """
    @property
    def instruments(self, /) -> list[Any]:
        """
        The instruments, as they were given.
        """
    @staticmethod
    def list_configs() -> dict[str, dict[str, str]]:
        """
        Returns the settings: by key, the kind, the default and the meaning.
        """
    @property
    def opt_level(self, /) -> int:
        """
        The level: passes of a higher level do not run.
        """
    def override_instruments(self, /, instruments: collections.abc.Iterable[typing.Any] | None) -> None:
        """
        Replaces the instruments: those that there are, are exited, the new ones are entered.
        """
    @property
    def required_pass(self, /) -> list[str]:
        """
        The names of the passes that run whatever the level.
        """
    @property
    def statistics(self, /) -> dict[str, dict[str, int]]:
        """
        The counts that passes have left: by pass and counter.
        """
    def take_near_misses(self, /) -> list[NearMiss]:
        """
        Takes the rewrites that nearly applied, oldest first, as far as `why_not` asked for them: by
        the name of a rule or pass, with `@` and a binding or without. Warns about a name that no
        pass has, nor a rule of a pass that has run.
        """
    def take_remarks(self, /) -> list[Diagnostic]:
        """
        Takes the messages that passes have left, oldest first. Each has a `pass_name`.
        """
    @property
    def threads(self, /) -> int:
        """
        The number of threads for function passes.
        """

@final
class PassInfo:
    """
    The name, the level and the dependencies of a pass.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, opt_level: int, name: str, required: collections.abc.Iterable[str] | None = None) -> PassInfo: ...
    def __repr__(self, /) -> str: ...
    @property
    def name(self, /) -> str:
        """
        The name, as pipelines write it.
        """
    @property
    def opt_level(self, /) -> int:
        """
        The least level of the contexts under which the pass runs.
        """
    @property
    def required(self, /) -> list[str]:
        """
        The names of the passes that have to run before.
        """

@final
class Pattern:
    """
    A description of expressions to look for. Operands that are variables are looked through to
    their values.
    """
    def __or__(self, other: object, /) -> Pattern: ...
    def __repr__(self, /) -> str: ...
    def __ror__(self, other: object, /) -> Pattern: ...
    def attr(self, /, name: str, value: typing.Any) -> Pattern:
        """
        Restricts an attribute of a call; one that is left out has its default.
        """
    def attr_as(self, /, name: str, capture: str) -> Pattern:
        """
        Captures the value of an attribute, which the right side of a rule can use by the name.
        """
    def capture(self, /, name: str) -> Pattern:
        """
        Captures the match of the pattern. If the name occurs twice, both are the same expression.
        """
    def commutative(self, /) -> Pattern:
        """
        Lets the operands match in either order.
        """
    def dtype(self, /, dtype: str) -> Pattern:
        """
        Restricts the element type.
        """
    def optional(self, /, wrap: typing.Callable[[Pattern], Pattern]) -> Pattern:
        """
        Matches the pattern, or `wrap(pattern)` around it, which is tried first.
        """
    def ordered(self, /) -> Pattern:
        """
        Matches the operands only in the written order.
        """
    def rank(self, /, rank: int) -> Pattern:
        """
        Restricts the number of extents.
        """
    def same_type_as(self, /, capture: str) -> Pattern:
        """
        Restricts the match to expressions of the type of a capture.
        """
    def shape(self, /, extents: list[int | None]) -> Pattern:
        """
        Restricts the extents; `None` is any extent.
        """
    def static_shape(self, /) -> Pattern:
        """
        Restricts the match to tensors whose extents are all numbers.
        """
    def used_once(self, /) -> Pattern:
        """
        Restricts the match to expressions with one use.
        """
    def where(self, /, test: typing.Callable[[Match], bool]) -> Pattern:
        """
        Restricts the match by a function of all captures: `where(lambda m: m["x"].type.ndim == 4)`.
        """

@final
class Rule:
    """
    A rule: matches of `pattern` are replaced by `replacement`.

    Both sides are patterns, or texts as in `Rule("x*1", "multiply(%x, 1)", "%x")`. The replacement
    may also be a function of the match, which makes an expression or returns `None`. `where` is a
    condition.
    """
    def __new__(cls, /, name: str, pattern: Pattern | str, replacement: Pattern | str | Literal | int | float | bool | typing.Callable[[Match], typing.Any], where: typing.Callable[[Match], bool] | None = None) -> Rule: ...
    def __repr__(self, /) -> str: ...
    @property
    def name(self, /) -> str:
        """
        The name, in counts and messages.
        """

@final
class RuleSet:
    """
    Rules that are applied together.
    """
    def __len__(self, /) -> int: ...
    def __new__(cls, /, rules: collections.abc.Iterable[Rule]) -> RuleSet: ...
    def __repr__(self, /) -> str: ...
    @property
    def names(self, /) -> list[str]:
        """
        The names of the rules.
        """

@final
class Type:
    """
    The type of a value: a tensor, a tuple, a function, or `Any`.

    `Type("Tensor[(n, 4), float32]")` reads the text of a type.
    """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __new__(cls, /, text: str) -> Type: ...
    def __reduce__(self, /) -> tuple[type[Type], tuple[str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def dtype(self, /) -> str | None:
        """
        The element type of a tensor, such as `"float32"`; `None` for another type.
        """
    @property
    def fields(self, /) -> list[Type]:
        """
        The types of the fields of a tuple; empty for another type.
        """
    @property
    def kind(self, /) -> str:
        """
        The kind of type: `"tensor"`, `"tuple"`, `"function"` or `"any"`.
        """
    @property
    def ndim(self, /) -> int | None:
        """
        The number of extents of a tensor, if it is known.
        """
    @property
    def params(self, /) -> list[Type]:
        """
        The types of the parameters of a function; empty for another type.
        """
    @property
    def ret(self, /) -> Type | None:
        """
        The type of the result of a function; `None` for another type.
        """
    @property
    def shape(self, /) -> tuple[int | str | None, ...] | None:
        """
        The extents of a tensor: numbers, the text of symbolic ones, `None` for unknown ones. `None`
        for a tensor of unknown rank, and for another type.
        """

def _bind_params(function: str, params: dict[str, typing.Any]) -> Pass:
    """
    Makes a pass that binds parameters of a function to constants.
    """

def _builtin_instrument(kind: str, options: dict[str, typing.Any]) -> Builtin:
    """
    Makes an instrument of the toolkit.
    """

def _diff(left: Module, right: Module, metadata: bool) -> FoundDifferences:
    """
    Compares two modules.
    """

def _export_onnx(mod: Module, entry: str = "main", opset: int | None = None, max_splat_bytes: int | None = None) -> tuple[bytes, int]:
    """
    Returns a module as a model.
    """

def _extract(mod: Module, entry: str, inputs: list[str] | None, outputs: list[str] | None) -> Module:
    """
    Returns the part of a module between some of its values: see `anfora.surgery.extract`.
    """

def _find(function: Function, pattern: Pattern) -> list[Match]:
    """
    Finds the matches of a pattern in a function, in program order.
    """

def _import_onnx(data: bytes | None, path: str | None, folder: str | None, files: dict[str, bytes] | None = None) -> tuple[Module, int, list[str], list[Diagnostic]]:
    """
    Reads a model from bytes, whose constants share them, or from a file. `files` are data files in
    memory, by location, which constants share too. Returns the module, the number of nodes, what is
    kept unchanged, and warnings.
    """

def _main(arguments: list[str]) -> int:
    """
    Runs the command line with arguments, the name of the program first, and returns its exit
    status.
    """

def _make_pass(name: str, options: dict[str, typing.Any]) -> Pass:
    """
    Makes a pass or a named pipeline of the registry with options.

    Raises `ConfigError` with a suggestion, if there is no such pass, pipeline or option.
    """

def _mutate(mutator: MutatorBase, target: Function | Module | DataflowBlock, only: collections.abc.Sequence[str] | None = None) -> None:
    """
    Rewrites a function, a dataflow region, or all functions of a module, by the methods of a
    mutator.
    """

def _parse_pipeline(text: str) -> Pass:
    """
    Reads a pipeline: passes with options, and names of pipelines, such as
    `"O2,FuseOps{max_depth=64}"`.

    Raises `ConfigError` with a suggestion, if the text is no pipeline.
    """

def _registered_passes() -> list[dict[str, typing.Any]]:
    """
    Returns the registered passes: name, level, documentation, and options with their types. The
    settings that a pipeline may give like options follow the options.
    """

def _registered_pipelines() -> list[dict[str, typing.Any]]:
    """
    Returns the named pipelines: name, text, documentation, and options with their types.
    """

def _rename(mod: Module, entry: str, values: list[tuple[str, str]], functions: list[tuple[str, str]], symbols: list[tuple[str, str]]) -> Module:
    """
    Returns a module with other names: see `anfora.surgery.rename`.
    """

def _repeat(passes: collections.abc.Iterable[Pass], max_rounds: int = 4) -> Pass:
    """
    Returns a pass that runs passes again and again, until none changes anything or the number of
    rounds is reached.
    """

def _restore_literal(dtype: str, shape: list[int], data: bytes | None, strings: list[str] | None, name: str | None, splat: bool) -> Literal:
    """
    Makes a pickled literal again.

    # Errors
    `ValueError`, if the bytes are not those of such a literal.
    """

def _rewrite(target: Function | Module | DataflowBlock, rules: RuleSet | Rule | collections.abc.Iterable[Rule]) -> dict[str, int]:
    """
    Rewrites a function, a dataflow region or a module by rules, until none applies, and returns the
    number of rewrites by rule.
    """

def _run(mod: Module, arguments: collections.abc.Iterable[typing.Any], function: str, externals: dict[str, typing.Callable[..., typing.Any]] | None, seed: int) -> typing.Any:
    """
    Runs a function of a module on arguments: constants, and tuples of them. Returns a literal, a
    tuple of results, or `None` for what is neither.

    Raises `RunError` if the run fails, and what a function in `externals` raises.
    """

def _run_codegen(backends: list[str], generate: typing.Callable[[str, str, Module], str]) -> Pass:
    """
    Makes the pass RunCodegen for some backends. `generate` is given the name of a backend, the name
    of a function, and a module in which the function is `main`. It returns the symbol of the code.
    """

def _save_onnx(mod: Module, path: str, entry: str = "main", opset: int | None = None, external_data: int | None = None, max_splat_bytes: int | None = None) -> int:
    """
    Writes a module as a model to a file, with the constants in a file beside it if that is asked
    for or necessary.
    """

def _sequential(passes: collections.abc.Iterable[Pass], opt_level: int = 0, name: str = "sequential", required: collections.abc.Iterable[str] | None = None) -> Pass:
    """
    Returns a pass that runs passes one after the other.
    """

def _set_attributes(mod: Module, entry: str, edits: list[tuple[str, str, object]]) -> Module:
    """
    Returns a module with other attributes: see `anfora.surgery.set_attributes`. Each edit is a
    node, an attribute, and its value.
    """

def _set_shapes(mod: Module, entry: str, shapes: list[tuple[str, list[int | str | None]]]) -> Module:
    """
    Returns a module whose inputs have other shapes: see `anfora.surgery.set_shapes`.
    """

def _slim(mod: Module, options: dict[str, typing.Any]) -> tuple[int, int]:
    """
    Makes a module smaller in place, and returns the number of bindings before and after. The
    options are those of `anfora.onnx.slim`, all of them.
    """

def _split_onnx(mod: Module, location: str, min_bytes: int, folder: str | None = None) -> tuple[bytes, bytes]:
    """
    Returns a module as a model, and the contents of its data file `location`: the constants of at
    least `min_bytes` bytes. Constants that are in files of `folder` stay there.
    """

def _visit(visitor: typing.Any, target: Function | Module | Expr, only: collections.abc.Sequence[str] | None = None) -> None:
    """
    Walks a function, or all functions of a module, and calls the methods of a visitor.
    """

def any_() -> Pattern:
    """
    Matches anything.
    """

def any_literal() -> Pattern:
    """
    Matches any constant.
    """

def any_of(*alternatives: Pattern | Literal | int | float | bool | None) -> Pattern:
    """
    Matches if one of the patterns matches; they are tried in order.
    """

def call(function: Pattern, *arguments: Pattern | Literal | int | float | bool | None) -> Pattern:
    """
    Matches a call of a function value.
    """

def capture(name: str) -> Pattern:
    """
    Matches anything, and captures it. On the right side of a rule: the captured expression.
    """

def global_(name: str) -> Pattern:
    """
    Matches a global function.
    """

def literal(value: typing.Any) -> Pattern:
    """
    Matches a constant: a scalar, or one whose elements are all this number; a literal or an array
    matches itself.
    """

def loads(text: str, name: str = ...) -> Module:
    """
    Reads a program from text.

    # Errors
    `ParseError` with all mistakes of the text.
    """

def none_() -> Pattern:
    """
    Matches an operand that is left out.
    """

def op(name: str, *operands: Pattern | Literal | int | float | bool | None) -> Pattern:
    """
    Matches a call of an operator.
    """

def op_in(names: list[str], *operands: Pattern | Literal | int | float | bool | None) -> Pattern:
    """
    Matches a call of one of several operators.
    """

def rest() -> Pattern:
    """
    As the last operand: any number of further operands.
    """

def tuple_(*fields: Pattern | Literal | int | float | bool | None) -> Pattern:
    """
    Matches a tuple.
    """

def tuple_getitem(tuple: Pattern, index: int | None = None) -> Pattern:
    """
    Matches the projection of a field of a tuple; of any field without an index.
    """
