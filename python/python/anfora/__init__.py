"""Compiler passes that cannot overflow the stack, and an optimizer for ONNX models.

``slim`` makes a model smaller in one call. ``load``, ``loads`` and ``anfora.onnx`` read programs,
``anfora.transform`` has the passes and the manager that runs them, ``anfora.instrument`` what
watches them, ``anfora.visitor`` and ``anfora.pattern`` the tools to write passes with.
``anfora.surgery`` edits programs by the names of their values.
"""

from __future__ import annotations

from . import builder, instrument, onnx, pattern, surgery, transform, visitor
from ._anfora import (
    Binding,
    Bindings,
    DataflowBlock,
    Expr,
    Function,
    Literal,
    Module,
    Type,
    __version__,
    loads,
)
from ._diff import Differences, diff
from ._errors import (
    AnforaError,
    ConfigError,
    Diagnostic,
    Location,
    OnnxError,
    ParseError,
    PassError,
    PatternError,
    RunError,
    StaleError,
    SurgeryError,
    VerifyError,
)
from ._files import load, save
from ._running import run
from .builder import FunctionBuilder
from .onnx import slim

from .visitor import SKIP

__all__ = [
    "SKIP",
    "AnforaError",
    "Binding",
    "Bindings",
    "ConfigError",
    "DataflowBlock",
    "Diagnostic",
    "Differences",
    "Expr",
    "Function",
    "FunctionBuilder",
    "Literal",
    "Location",
    "Module",
    "OnnxError",
    "ParseError",
    "PassError",
    "PatternError",
    "RunError",
    "StaleError",
    "SurgeryError",
    "Type",
    "VerifyError",
    "__version__",
    "builder",
    "diff",
    "instrument",
    "load",
    "loads",
    "onnx",
    "pattern",
    "run",
    "save",
    "slim",
    "surgery",

    "transform",
    "visitor",
]
