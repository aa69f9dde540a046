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
    "PlanMemory",
    "PrintIR",
    "RemoveUnusedOutputs",
    "RemoveUnusedParameters",
    "SimplifyExpr",
    "SimplifyShapes",
    "ToANormalForm",
    "ToGraphNormalForm",
    "ToMixedPrecision",
    "ToNonDataflow",
    "TopologicalSort",
    "phase0",
    "phase1",
    "slim",
    "slim_exact",
]


def ToANormalForm() -> Pass:
    """Binds every call, tuple and projection that is an operand, once."""
    return _anfora._make_pass("ToANormalForm", {})


def ToGraphNormalForm() -> Pass:
    """Turns bindings into the nodes of a graph where this preserves meaning."""
    return _anfora._make_pass("ToGraphNormalForm", {})


def FoldConstant(
    *,
    max_growth_bytes: int | str | None = None,
    max_total_growth_bytes: int | str | None = None,
    max_work: int | None = None,
    max_file_bytes: int | str | None = None,
) -> Pass:
    """Evaluates calls on constants, within a budget, and takes known branches.

    max_growth_bytes: the greatest number of bytes that the fold of one call may add to the
        module, less those that it frees. Default: 16384.
    max_total_growth_bytes: the greatest number of bytes that all folds in a function together
        may add to the module. Default: 16777216.
    max_work: the greatest number of steps of the kernels of all folds in a function together;
        it also holds if the bytes are unlimited. Default: 268435456.
    max_file_bytes: constants of more than 1 MiB in a file of more bytes than this stay there:
        nothing is folded that reads them. Default: 268435456.
    """
    return _anfora._make_pass("FoldConstant", {"max_growth_bytes": max_growth_bytes, "max_total_growth_bytes": max_total_growth_bytes, "max_work": max_work, "max_file_bytes": max_file_bytes})


def CanonicalizeBindings() -> Pass:
    """Replaces variables that stand for other atoms, and looks through tuples."""
    return _anfora._make_pass("CanonicalizeBindings", {})


def SimplifyExpr() -> Pass:
    """Removes operations that change nothing, and pairs of operations that cancel out."""
    return _anfora._make_pass("SimplifyExpr", {})


def SimplifyShapes() -> Pass:
    """Merges values with the same known elements; simplifies reshapes, expansions and slices."""
    return _anfora._make_pass("SimplifyShapes", {})


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


def InlineFunctions(
    *,
    functions: str | None = None,
    only_lambdas: bool | None = None,
    max_growth: int | str | None = None,
) -> Pass:
    """Replaces calls of private functions that are not recursive by their blocks.

    functions: functions to inline, separated by blanks, instead of all private ones.
    only_lambdas: inline no functions, only lambdas that are called once. Default: false.
    max_growth: the greatest number of nodes that inlining may add to the module. Default:
        1048576.
    """
    return _anfora._make_pass("InlineFunctions", {"functions": functions, "only_lambdas": only_lambdas, "max_growth": max_growth})


def FoldBatchNorm() -> Pass:
    """Folds normalisations, scales and biases into the convolutions next to them; changes rounding."""
    return _anfora._make_pass("FoldBatchNorm", {})


def FuseStandardOps() -> Pass:
    """Replaces several operators by one standard function that they compute; changes rounding."""
    return _anfora._make_pass("FuseStandardOps", {})


def CombineParallelMatmul(*, min_saved: int | None = None) -> Pass:
    """Combines products and convolutions of one operand into one, whose result is split.

    min_saved: the least number of calls that a combination must save. Default: 1.
    """
    return _anfora._make_pass("CombineParallelMatmul", {"min_saved": min_saved})


def DecomposeOps(
    *,
    which: list[str] | None = None,
    to: str | None = None,
    opset: int | None = None,
) -> Pass:
    """Writes composite operators in primitive ones, as their rows say; changes rounding.

    which: the operators to decompose; all composite ones if empty. Default: [].
    to: the operators that are left. Default: primitive.
    opset: a version of ONNX, whose operators stay; 0 if they do not. Default: 0.
    """
    return _anfora._make_pass("DecomposeOps", {"which": which, "to": to, "opset": opset})


def ConvertLayout(*, desired: list[str] | None = None) -> Pass:
    """Gives convolutions the desired layouts, and moves the permutations to where fewest are left.

    desired: the desired layouts, `OPERATOR:DATA:KERNEL`; if empty, channels come last. Default:
        [].
    """
    return _anfora._make_pass("ConvertLayout", {"desired": desired})


def ConvertToDataflow(*, min_size: int | None = None) -> Pass:
    """Groups runs of pure bindings into dataflow regions.

    min_size: the least number of bindings of a new region. Default: 2.
    """
    return _anfora._make_pass("ConvertToDataflow", {"min_size": min_size})


def FuseOps(*, max_depth: int | None = None, max_function_args: int | None = None) -> Pass:
    """Moves operators of dataflow regions that can be computed together into functions.

    max_depth: the greatest number of bindings of a group. Default: 256.
    max_function_args: the greatest number of parameters of a fused function; 0 for no limit.
        Default: 0.
    """
    return _anfora._make_pass("FuseOps", {"max_depth": max_depth, "max_function_args": max_function_args})


def FuseOpsByPattern(
    *,
    patterns: str | None = None,
    backend: str | None = None,
    annotate_codegen: bool | None = None,
    bind_constants: bool | None = None,
) -> Pass:
    """Moves operators that match named patterns into functions.

    patterns: the patterns, separated by commas: names of standard patterns, or
        `name=expression`. Default: standard.
    backend: the first part of the names of composite functions.
    annotate_codegen: functions have the attribute `Codegen`. Default: false.
    bind_constants: literals stay inside of functions. Default: true.
    """
    return _anfora._make_pass("FuseOpsByPattern", {"patterns": patterns, "backend": backend, "annotate_codegen": annotate_codegen, "bind_constants": bind_constants})


def MergeCompositeFunctions() -> Pass:
    """Merges neighbouring calls of composite functions of one backend into functions."""
    return _anfora._make_pass("MergeCompositeFunctions", {})


def ToNonDataflow() -> Pass:
    """Dissolves dataflow regions."""
    return _anfora._make_pass("ToNonDataflow", {})


def TopologicalSort(*, order: str | None = None, direction: str | None = None) -> Pass:
    """Sorts the bindings of dataflow regions in the order of a search.

    order: the way in which the search goes on. Default: depth-first.
    direction: the end of the regions from which the search starts. Default: from-inputs.
    """
    return _anfora._make_pass("TopologicalSort", {"order": order, "direction": direction})


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


def RemoveUnusedParameters() -> Pass:
    """Removes parameters of private functions that nothing uses, and their arguments."""
    return _anfora._make_pass("RemoveUnusedParameters", {})


def RemoveUnusedOutputs() -> Pass:
    """Removes fields of the results of private functions that no caller projects."""
    return _anfora._make_pass("RemoveUnusedOutputs", {})


def LiftTransformParams(
    *,
    functions: list[str] | None = None,
    shared_transform: bool | None = None,
) -> Pass:
    """Moves computations on weights into functions that run once.

    functions: the functions whose weights are prepared; all with the attribute `num_input` if
        empty. Default: [].
    shared_transform: one function, `transform_params`, prepares the weights of all of them.
        Default: false.
    """
    return _anfora._make_pass("LiftTransformParams", {"functions": functions, "shared_transform": shared_transform})


def ToMixedPrecision(
    *,
    to: str | None = None,
    except_ops: list[str] | None = None,
    except_bindings: list[str] | None = None,
    keep_io: bool | None = None,
    inputs: list[str] | None = None,
) -> Pass:
    """Computes products, convolutions and what follows them in float16 or bfloat16.

    to: the element type of 16 bits. Default: float16.
    except_ops: operators whose calls keep their types. Default: [].
    except_bindings: names of variables: the calls that are bound to them keep their types.
        Default: [].
    keep_io: the inputs and outputs of external functions keep their types. Default: true.
    inputs: names of parameters of external functions that get 16 bits all the same. Default:
        [].
    """
    return _anfora._make_pass("ToMixedPrecision", {"to": to, "except_ops": except_ops, "except_bindings": except_bindings, "keep_io": keep_io, "inputs": inputs})


def Gradient(
    *,
    function: str | None = None,
    require_grads: list[str] | None = None,
    target_index: int | None = None,
    checkpoints: int | None = None,
) -> Pass:
    """Adds a function that computes the derivatives of another one.

    function: the function that is differentiated; nothing is done if it is empty.
    require_grads: the parameters or variables whose derivatives are wanted; all parameters if
        empty. Default: [].
    target_index: which field of the result is differentiated, if it is a tuple. Default: 0.
    checkpoints: the segments of a function whose values are computed again; 0 or 1 keeps all
        values. Default: 0.
    """
    return _anfora._make_pass("Gradient", {"function": function, "require_grads": require_grads, "target_index": target_index, "checkpoints": checkpoints})


def AttachGlobalSymbol() -> Pass:
    """Gives each function its name as the attribute `global_symbol`."""
    return _anfora._make_pass("AttachGlobalSymbol", {})


def PlanMemory(*, alignment: int | None = None, bounds: dict[str, int] | None = None) -> Pass:
    """Plans the memory of values: a storage for each, and an offset for each storage.

    alignment: sizes and offsets are multiples of it. Default: 8.
    bounds: upper bounds of symbols by name, each an option of its own: `n=128`.
    """
    return _anfora._make_pass("PlanMemory", {"alignment": alignment, "bounds": bounds})


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
    return _anfora._make_pass("O0", {})(mod, context)


def O1(mod: Module, context: PassContext | None = None) -> Module:
    """Runs the pipeline O1: the cheapest passes."""
    return _anfora._make_pass("O1", {})(mod, context)


def O2(mod: Module, context: PassContext | None = None) -> Module:
    """Runs the pipeline O2: passes that pay off in every program."""
    return _anfora._make_pass("O2", {})(mod, context)


def O3(mod: Module, context: PassContext | None = None) -> Module:
    """Runs the pipeline O3: everything."""
    return _anfora._make_pass("O3", {})(mod, context)


def slim(mod: Module, context: PassContext | None = None) -> Module:
    """Runs the pipeline slim: as few nodes as possible, without new functions."""
    return _anfora._make_pass("slim", {})(mod, context)


def slim_exact(mod: Module, context: PassContext | None = None) -> Module:
    """Runs the pipeline slim_exact: as few nodes as possible, where all results keep their bits."""
    return _anfora._make_pass("slim_exact", {})(mod, context)


def phase0(mod: Module, context: PassContext | None = None) -> Module:
    """Runs the pipeline phase0: ingestion: A-normal form in dataflow regions, without nested
    functions."""
    return _anfora._make_pass("phase0", {})(mod, context)


def phase1(
    mod: Module,
    context: PassContext | None = None,
    *,
    precision: str | None = None,
    layout: str | None = None,
) -> Module:
    """Runs the pipeline phase1: optimizations: general ones, then fusion.

    precision: the type in which ToMixedPrecision computes products, convolutions and what
        follows them. Default: unchanged.
    layout: the layout that ConvertLayout gives convolutions over two dimensions. Default:
        unchanged.
    """
    return _anfora._make_pass("phase1", {"precision": precision, "layout": layout})(mod, context)
