"""Passes, contexts and pipelines, in the words of TVM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, overload

from . import _anfora
from ._anfora import DataflowBlock, Function, Module, Outcome, Pass, PassContext, PassInfo
from ._passes import *  # noqa: F403
from .instrument import PassInstrument, pass_instrument


def Sequential(
    passes: Iterable[Pass],
    opt_level: int = 0,
    name: str = "sequential",
    required: Iterable[str] | None = None,
) -> Pass:
    """Returns a pass that runs passes one after the other, each as a transaction of its own."""
    return _anfora._sequential(passes, opt_level, name, required)


def Repeat(passes: Iterable[Pass], max_rounds: int = 4) -> Pass:
    """Returns a pass that runs passes again and again, until none changes anything any more, at
    most ``max_rounds`` times."""
    return _anfora._repeat(passes, max_rounds)


def RunCodegen(backends: Mapping[str, Callable[[str, Module], str]]) -> Pass:
    """Returns a pass that replaces the functions for backends, those with the attribute ``Codegen``, by
    declarations, whose code the backends generate.

    backends: by name, a function that generates code. It is called with the name of a function, and
        with a module in which this function is ``main`` and which has all that it calls. It returns
        the symbol of the code, which the declaration has as ``global_symbol``. ``anfora.run`` takes
        code by its symbol.
    """
    all_backends = dict(backends)
    if wrong := [name for name in all_backends if not name or "." in name]:
        raise ValueError(f"a backend has a name without dots, not {wrong[0]!r}")

    def generate(backend: str, name: str, module: Module) -> str:
        return all_backends[backend](name, module)

    return _anfora._run_codegen(list(all_backends), generate)


def byoc(
    backends: Mapping[str, Callable[[str, Module], str]],
    patterns: Mapping[str, str] | None = None,
) -> Pass:
    """Returns passes that give parts of a program to backends: what matches the patterns of a backend
    moves into functions, neighbouring ones merge, and the backend generates code for the result.

    backends: as for ``RunCodegen``. The patterns of a backend have precedence over those of the
        backends after it.
    patterns: by the name of a backend, its patterns, as ``FuseOpsByPattern`` takes them. A backend
        without an entry has the standard patterns.
    """
    given = dict(patterns or {})
    if unknown := [name for name in given if name not in backends]:
        raise ValueError(f"patterns are given for {unknown[0]!r}, which is no backend")
    codegen = RunCodegen(backends)
    parts = [
        FuseOpsByPattern(backend=name, patterns=given.get(name, "standard"))  # noqa: F405
        for name in backends
    ]
    return Sequential(
        [
            *parts,
            Normalize(),  # noqa: F405
            ConvertToDataflow(min_size=1),  # noqa: F405
            MergeCompositeFunctions(),  # noqa: F405
            codegen,
            DeadCodeElimination(),  # noqa: F405
        ],
        name="byoc",
    )


def parse_pipeline(text: str) -> Pass:
    """Reads a pipeline such as ``"O2,FuseOps{max_depth=64}"``.

    Raises ``ConfigError`` with a suggestion if the text names no pass, or an option that there is
    not.
    """
    return _anfora._parse_pipeline(text)


def _pass_of(pipeline: str | Pass | Iterable[Pass]) -> Pass:
    """Returns a pipeline as a pass. It is given as its text, a pass, or a list of passes."""
    if isinstance(pipeline, str):
        return parse_pipeline(pipeline)
    if isinstance(pipeline, Pass):
        return pipeline
    if isinstance(pipeline, Iterable):
        return Sequential(pipeline)
    kind = type(pipeline).__name__
    raise TypeError(f"a pipeline is a pass of anfora, a list of passes, or a text, not {kind}")


def list_passes() -> dict[str, str]:
    """Returns the registered passes by name, each with a line about it."""
    return {entry["name"]: entry["doc"] for entry in _anfora._registered_passes()}


def list_pipelines() -> dict[str, str]:
    """Returns the named pipelines, each as the text that it is with its options at their defaults."""
    return {entry["name"]: entry["text"] for entry in _anfora._registered_pipelines()}


_Work = Callable[..., Any]
_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])


def _decorate(
    kind: str,
    work: Any,
    opt_level: int | None,
    name: str | None,
    required: Iterable[str] | None,
) -> Any:
    """Makes a pass, or for a class a class of passes, of what a decorator was given."""
    method = {
        "module": "transform_module",
        "function": "transform_function",
        "dataflowblock": "transform_dataflowblock",
    }[kind]

    def make(target: Any) -> Any:
        if not callable(target):
            kind_of = type(target).__name__
            raise TypeError(f"a pass is made of a function or of a class, not of {kind_of}")
        title = name or str(getattr(target, "__name__", type(target).__name__))
        level = 0 if opt_level is None else opt_level
        if not isinstance(target, type):
            return Pass(kind, title, target, level, required)
        if not hasattr(target, method):
            raise TypeError(f"a class of {kind} passes needs a method `{method}`")
        return _class_of_passes(target, kind, method, title, level, required)

    return make if work is None else make(work)


def _class_of_passes(
    target: type, kind: str, method: str, title: str, level: int, required: Iterable[str] | None
) -> type:
    """Returns a class whose objects are passes that an object of ``target`` does the work of."""

    def __new__(cls: type[Pass], *args: Any, **kwargs: Any) -> Any:
        made = target(*args, **kwargs)
        self: Any = Pass.__new__(cls, kind, title, getattr(made, method), level, required)
        self._object = made
        return self

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self: Any, attribute: str) -> Any:
        if attribute == "_object":
            raise AttributeError(attribute)
        return getattr(self._object, attribute)

    members = {
        "__new__": __new__,
        "__init__": __init__,
        "__getattr__": __getattr__,
        "__doc__": target.__doc__,
        "__module__": target.__module__,
        "__qualname__": target.__qualname__,
    }
    return type(target.__name__, (Pass,), members)


@overload
def module_pass(pass_func: type[Any]) -> Callable[..., Pass]: ...
@overload
def module_pass(pass_func: Callable[[Module, PassContext], Module]) -> Pass: ...
@overload
def module_pass(
    pass_func: None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
) -> Callable[[Any], Any]: ...
def module_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
) -> Any:
    """Makes a pass of ``f(mod, ctx)``, or of a class with ``transform_module(self, mod, ctx)``.

    The function edits ``mod`` and returns it, or returns another module, which takes its place.
    """
    return _decorate("module", pass_func, opt_level, name, required)


@overload
def function_pass(pass_func: type[Any]) -> Callable[..., Pass]: ...
@overload
def function_pass(pass_func: Callable[[Function, Module, PassContext], Function]) -> Pass: ...
@overload
def function_pass(
    pass_func: None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
) -> Callable[[Any], Any]: ...
def function_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
) -> Any:
    """Makes a pass of ``f(func, mod, ctx)``, which is called for each function that has a body, or
    of a class with ``transform_function(self, func, mod, ctx)``. It edits ``func`` and returns
    it."""
    return _decorate("function", pass_func, opt_level, name, required)


@overload
def dataflowblock_pass(pass_func: type[Any]) -> Callable[..., Pass]: ...
@overload
def dataflowblock_pass(
    pass_func: Callable[[DataflowBlock, Module, PassContext], DataflowBlock],
) -> Pass: ...
@overload
def dataflowblock_pass(
    pass_func: None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
) -> Callable[[Any], Any]: ...
def dataflowblock_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
) -> Any:
    """Makes a pass of ``f(block, mod, ctx)``, which is called for each dataflow region, or of a
    class with ``transform_dataflowblock(self, block, mod, ctx)``. It edits ``block`` and returns
    it. ``mod`` is the module as it was before the pass."""
    return _decorate("dataflowblock", pass_func, opt_level, name, required)


# The names of the passes are kept up to date by generate_passes.py.
__all__ = [
    "AttachGlobalSymbol",
    "BindParams",
    "BindSymbols",
    "CanonicalizeBindings",
    "CombineParallelMatmul",
    "ConvertLayout",
    "ConvertToDataflow",
    "DeadCodeElimination",
    "DecomposeOps",
    "EliminateCommonSubexpr",
    "EnterPhase",
    "FoldBatchNorm",
    "FoldConstant",
    "FuseOps",
    "FuseOpsByPattern",
    "FuseStandardOps",
    "Gradient",
    "InlineFunctions",
    "LambdaLifting",
    "LiftTransformParams",
    "MergeCompositeFunctions",
    "Normalize",
    "O0",
    "O1",
    "O2",
    "O3",
    "Outcome",
    "Pass",
    "PassContext",
    "PassInfo",
    "PassInstrument",
    "PlanMemory",
    "PrintIR",
    "RemoveUnusedOutputs",
    "RemoveUnusedParameters",
    "Repeat",
    "RunCodegen",
    "Sequential",
    "SimplifyExpr",
    "SimplifyShapes",
    "ToANormalForm",
    "ToGraphNormalForm",
    "ToMixedPrecision",
    "ToNonDataflow",
    "TopologicalSort",
    "byoc",
    "dataflowblock_pass",
    "function_pass",
    "list_passes",
    "list_pipelines",
    "module_pass",
    "parse_pipeline",
    "pass_instrument",
    "phase0",
    "phase1",
    "slim",
    "slim_exact",
]
