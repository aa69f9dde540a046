"""Relax modules of TVM to and from anfora, and pipelines of anfora as passes of TVM.

::

    mod = anfora.tvm.from_relax(ir_module)
    ir_module = anfora.tvm.to_relax(mod)
    seq = tvm.transform.Sequential([anfora.tvm.as_tvm_pass("O2"), relax.transform.LegalizeOps()])

Needs the package apache-tvm: ``pip install 'anfora[tvm]'``.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import Any

try:
    import tvm as _tvm
    import tvm_ffi as _ffi
    from tvm import tirx as _  # noqa: F401
except ImportError as error:
    # With another name, the package is there, and lacks one that it needs itself.
    if error.name != "tvm":
        raise
    message = "anfora.tvm needs the package apache-tvm, 0.26 or 0.27: pip install 'anfora[tvm]'"
    raise ImportError(message, name="tvm") from error

from ._anfora import Module, Pass, PassContext, loads
from ._errors import ParseError
from ._tvm_codec import TvmError
from ._tvm_compare import are_equal, differences
from ._tvm_from import ModuleWriter
from ._tvm_symbols import handle
from ._tvm_to import relax_of
from .transform import _pass_of

__all__ = ["TvmError", "as_tvm_pass", "from_relax", "to_relax"]

#: The most attempts to write a module. Each keeps those values unchanged that came back changed
#: from the one before.
_ROUNDS = 8
#: TVM compares modules by recursion, which is safe for this number of blocks in each other.
_SHALLOW = 64


def from_relax(ir_module: Any) -> Module:
    """Returns a module of Relax as a module of anfora.

    Operators that anfora has become its own; all else is kept unchanged, as calls of declared
    functions. ``to_relax`` gives back an equal module, which is checked before this returns.
    Symbols that nothing binds come back as new ones, one for each.

    Raises ``TvmError`` if something in the module has no form in anfora. The message names it.
    """
    if not isinstance(ir_module, _tvm.IRModule):
        raise TypeError(f"a module of TVM is expected, not {type(ir_module).__name__}")
    writer = ModuleWriter(ir_module)
    opaque: dict[str, set[int]] = {}
    for _ in range(_ROUNDS):
        text, where = writer.text(opaque)
        try:
            mod = loads(text, "relax")
        except ParseError as e:
            found = [where.get(d.line or 0) for d in e.diagnostics]
            if not _add(opaque, [f for f in found if f is not None]):
                raise TvmError(_reason(e)) from e
            continue
        back = relax_of(mod)
        is_shallow = writer.depth <= _SHALLOW
        if is_shallow and are_equal(ir_module, back, has_free_symbols=len(writer.free) > 0):
            return mod
        differing, message = differences(ir_module, back)
        if message is None and not differing:
            if is_shallow:
                raise TvmError("the module would come back as another one")
            return mod
        if message is not None and not differing or not _add(opaque, differing):
            raise TvmError(message or f"the type of %{differing[0][1].name} has no form in anfora")
    raise TvmError("anfora sees too many values of the module in another way than TVM")


def _reason(error: ParseError) -> str:
    """Returns the message for a module whose text anfora refuses."""
    for diagnostic in error.diagnostics:
        unbound = re.search("unknown symbolic dimension `(.*)`", diagnostic.message)
        if unbound:
            return f"no parameter and no match_cast binds the symbol {unbound[1]} where it is used"
    return f"anfora refuses what it reads: {error}"


def _add(opaque: dict[str, set[int]], found: list[tuple[str, Any]]) -> bool:
    """Adds variables to those whose values are kept unchanged; false if all are among them."""
    is_new = False
    for name, var in found:
        kept = opaque.setdefault(name, set())
        if handle(var) not in kept:
            kept.add(handle(var))
            is_new = True
    return is_new


def to_relax(module: Module) -> Any:
    """Returns a module of anfora as a module of Relax.

    Raises ``TvmError`` if Relax has no form of something in the module. The message names it.
    """
    if not isinstance(module, Module):
        raise TypeError(f"a module of anfora is expected, not {type(module).__name__}")
    return relax_of(module)


def as_tvm_pass(
    pipeline: str | Pass | Iterable[Pass], *, name: str | None = None, opt_level: int = 0
) -> Any:
    """Returns a pass of TVM that runs a pipeline of anfora: its text, a pass, or a list of passes.

    It runs under TVM's context: its level, its lists of passes and its instruments see one pass
    with this name. If the pipeline changes nothing, the result is the given module.

    The passes of the pipeline run under the current context of anfora. A ``UserWarning`` names
    those that its level leaves out.

    The pass raises ``TvmError`` if the module cannot cross over, and ``PassError`` if a pass fails.
    """
    inner = _pass_of(pipeline)
    title = name or f"anfora.{pipeline if isinstance(pipeline, str) else inner.info.name}"

    def run(ir_module: Any, _: Any) -> Any:
        context = PassContext.current()
        if above := _above_level(inner, context):
            warnings.warn(
                f"{title} leaves out {', '.join(above)}, because the level of anfora's context is "
                f"{context.opt_level}; anfora.transform.PassContext(opt_level=...) sets the level",
                stacklevel=2,
            )
        mod = from_relax(ir_module)
        return to_relax(mod) if inner.apply(mod).changed else ir_module

    return _tvm.transform.module_pass(run, opt_level=opt_level, name=title)


def _above_level(pipeline: Pass, context: PassContext) -> list[str]:
    """Returns the names of the passes of a pipeline that are left out because of their level."""
    found: dict[str, None] = {}
    listed = {*context.required_pass, *context.disabled_pass}
    todo = [pipeline]
    while todo:
        inner = todo.pop()
        if inner.info.opt_level > context.opt_level and inner.info.name not in listed:
            found[inner.info.name] = None
        else:
            todo.extend(reversed(inner.passes))
    return list(found)
