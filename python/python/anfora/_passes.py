"""The passes of the registry and the named pipelines. Written by generate_passes.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _anfora
from ._anfora import Module, Pass, PassContext

__all__ = [
    "AttachGlobalSymbol",
    "BindParams",
    "BindSymbols",
    "CanonicalizeBindings",
    "ConvertToDataflow",
    "DeadCodeElimination",
    "EliminateCommonSubexpr",
    "EnterPhase",
    "FoldBatchNorm",
    "FoldConstant",
    "FuseOps",
    "InlineFunctions",
    "LambdaLifting",
    "Normalize",
    "O0",
    "O1",
    "O2",
    "O3",
    "PrintIR",
    "SimplifyExpr",
    "ToANormalForm",
    "ToGraphNormalForm",
    "ToNonDataflow",
    "phase0",
    "phase1",
    "slim",
]


def ToANormalForm() -> Pass:
    """Binds every call, tuple and projection that is an operand, once."""
    return _anfora._make_pass("ToANormalForm", {})


def ToGraphNormalForm() -> Pass:
    """Turns bindings into the nodes of a graph where this preserves meaning."""
    return _anfora._make_pass("ToGraphNormalForm", {})


def FoldConstant() -> Pass:
    """Evaluates calls on constants, within a budget, and takes known branches."""
    return _anfora._make_pass("FoldConstant", {})


def CanonicalizeBindings() -> Pass:
    """Replaces variables that stand for other atoms, and looks through tuples."""
    return _anfora._make_pass("CanonicalizeBindings", {})


def SimplifyExpr() -> Pass:
    """Removes operations that change nothing, and pairs of operations that cancel out."""
    return _anfora._make_pass("SimplifyExpr", {})


def EliminateCommonSubexpr(*, commutative: bool | None = None) -> Pass:
    """Merges bindings of equal values.

    commutative: compare operands of commutative operators in either order. Default: false.
    """
    return _anfora._make_pass("EliminateCommonSubexpr", {"commutative": commutative})


def DeadCodeElimination(*, entries: str | None = None) -> Pass:
    """Removes bindings that nothing uses, and functions that nothing reaches.

    entries: functions to keep besides the external ones, separated by blanks.
    """
    return _anfora._make_pass("DeadCodeElimination", {"entries": entries})


def LambdaLifting() -> Pass:
    """Lifts lambdas to functions, and makes closures for what they capture."""
    return _anfora._make_pass("LambdaLifting", {})


def InlineFunctions(*, functions: str | None = None) -> Pass:
    """Replaces calls of private functions that are not recursive by their blocks.

    functions: functions to inline, separated by blanks, instead of all private ones.
    """
    return _anfora._make_pass("InlineFunctions", {"functions": functions})


def FoldBatchNorm() -> Pass:
    """Folds normalisations, scales and biases into the convolutions next to them; changes rounding."""
    return _anfora._make_pass("FoldBatchNorm", {})


def ConvertToDataflow(*, min_size: int | None = None) -> Pass:
    """Groups runs of pure bindings into dataflow regions.

    min_size: the least number of bindings of a new region. Default: 2.
    """
    return _anfora._make_pass("ConvertToDataflow", {"min_size": min_size})


def FuseOps() -> Pass:
    """Moves operators of dataflow regions that can be computed together into functions."""
    return _anfora._make_pass("FuseOps", {})


def ToNonDataflow() -> Pass:
    """Dissolves dataflow regions."""
    return _anfora._make_pass("ToNonDataflow", {})


def Normalize() -> Pass:
    """Flattens blocks, merges adjacent dataflow regions, and binds the tails of blocks."""
    return _anfora._make_pass("Normalize", {})


def BindParams(func_name: str, params: Mapping[str, Any]) -> Pass:
    """Binds parameters of a function to constants, and removes them from its signature.

    func_name: the function. params: the constants by the name of the parameter: literals, numbers, or
        arrays of NumPy.
    """
    return _anfora._bind_params(func_name, dict(params))


def BindSymbols(*, function: str | None = None, symbols: dict[str, int] | None = None) -> Pass:
    """Gives symbolic dimensions their extents.

    function: the only function whose symbols are bound; all external ones if empty.
    symbols: the extents of symbols by name, each an option of its own: `n=4`.
    """
    return _anfora._make_pass("BindSymbols", {"function": function, "symbols": symbols})


def AttachGlobalSymbol() -> Pass:
    """Gives each function its name as the attribute `global_symbol`."""
    return _anfora._make_pass("AttachGlobalSymbol", {})


def PrintIR(*, header: str | None = None) -> Pass:
    """Prints the module, and leaves it as it is.

    header: the title above the module.
    """
    return _anfora._make_pass("PrintIR", {"header": header})


def EnterPhase(*, phase: str | None = None) -> Pass:
    """Sets the phase that the module claims, if the properties of the phase hold.

    phase: the number of the phase; if empty, the greatest whose properties hold.
    """
    return _anfora._make_pass("EnterPhase", {"phase": phase})


def O0(mod: Module, context: PassContext | None = None) -> Module:
    """Runs the pipeline O0: nothing."""
    return _anfora._parse_pipeline("O0")(mod, context)


def O1(mod: Module, context: PassContext | None = None) -> Module:
    """Runs the pipeline O1: the cheapest passes."""
    return _anfora._parse_pipeline("O1")(mod, context)


def O2(mod: Module, context: PassContext | None = None) -> Module:
    """Runs the pipeline O2: passes that pay off in every program."""
    return _anfora._parse_pipeline("O2")(mod, context)


def O3(mod: Module, context: PassContext | None = None) -> Module:
    """Runs the pipeline O3: everything."""
    return _anfora._parse_pipeline("O3")(mod, context)


def slim(mod: Module, context: PassContext | None = None) -> Module:
    """Runs the pipeline slim: as few nodes as possible, without new functions."""
    return _anfora._parse_pipeline("slim")(mod, context)


def phase0(mod: Module, context: PassContext | None = None) -> Module:
    """Runs the pipeline phase0: ingestion: A-normal form in dataflow regions, without nested
    functions."""
    return _anfora._parse_pipeline("phase0")(mod, context)


def phase1(mod: Module, context: PassContext | None = None) -> Module:
    """Runs the pipeline phase1: optimizations: general ones, then fusion."""
    return _anfora._parse_pipeline("phase1")(mod, context)
