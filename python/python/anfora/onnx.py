"""ONNX models: reading, writing, and making them smaller."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from . import _anfora
from ._anfora import Module, Pass
from .transform import _pass_of

#: A model: a path, bytes, or an object with ``SerializeToString``, such as an
#: ``onnx.ModelProto``.
Model = Any


def _parts(model: Model) -> tuple[bytes | None, str | None]:
    """Returns the bytes of a model, or its path."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model), None
    if isinstance(model, (str, os.PathLike)):
        return None, os.fspath(model)
    serialize = getattr(model, "SerializeToString", None)
    if serialize is None:
        kind = type(model).__name__
        raise TypeError(
            f"a model is a path, bytes, or has SerializeToString (as a ModelProto has), not {kind}"
        )
    return serialize(), None


def from_onnx(model: Model, *, data_folder: str | os.PathLike[str] | None = None) -> Module:
    """Reads a model. Its graph becomes the function ``main``.

    ``model`` is a path, bytes, or an ``onnx.ModelProto``. Weights that are in files of their own
    are found beside the path, or in ``data_folder``. Raises ``OnnxError`` with the place in the
    model.
    """
    data, path = _parts(model)
    folder = None if data_folder is None else os.fspath(data_folder)
    return _anfora._import_onnx(data, path, folder)[0]


def to_bytes(mod: Module, *, entry: str = "main", opset: int | None = None) -> bytes:
    """Returns the function ``entry`` as a model. Raises ``OnnxError`` if ONNX cannot express it."""
    return _anfora._export_onnx(mod, entry, opset)[0]


def to_onnx(mod: Module, *, entry: str = "main", opset: int | None = None) -> Any:
    """Returns the function ``entry`` as an ``onnx.ModelProto`` if the package onnx is installed,
    and as bytes otherwise. Raises ``OnnxError`` if ONNX cannot express it."""
    return _proto(to_bytes(mod, entry=entry, opset=opset))


def _proto(data: bytes) -> Any:
    try:
        import onnx
    except ImportError:
        return data
    return onnx.load_model_from_string(data)


def slim(
    model: Model,
    output: str | os.PathLike[str] | None = None,
    *,
    input_shapes: Mapping[str, Sequence[int | None]] | None = None,
    exact: bool = False,
    contrib: bool = False,
    opset: int | None = None,
    size_threshold: int = 512 << 20,
    config: Mapping[str, int | float | str | bool] | None = None,
    disable: Sequence[str] = (),
    check: int = 0,
    threads: int = 1,
) -> Any:
    """Makes a model smaller, and returns the kind of model that it was given.

    For an ``onnx.ModelProto`` the result is a ``ModelProto``, for bytes it is bytes. For a path it
    is written to ``output``, or returned: as a ``ModelProto`` if the package onnx is installed, and
    as bytes otherwise. With ``output``, any kind is written, and nothing is returned.

    ``input_shapes`` gives inputs their extents (``None`` leaves an extent as it is). ``exact``
    leaves out what rounds differently, so that all results keep their bits. ``contrib`` uses
    operators of ``com.microsoft``, which only onnxruntime has; not with ``exact``. ``opset`` is the
    version of ONNX's operators that the result is written in, if it is not that of the model; calls
    that the version lacks are written in other operators. ``size_threshold`` leaves calls whose
    constant result would add more bytes than that, and bounds what those in a function add together
    by four times as much. ``config`` has settings of passes (``anfora configs`` lists them), such
    as ``{"FoldConstant.max_file_bytes": "unlimited"}``. ``disable`` names passes that are left out.
    ``check`` is a number of random inputs on which each pass is checked by interpreting the model
    before and after it: a pass that changes a result fails.

    Raises ``OnnxError`` if the model cannot be read or written, and ``PassError`` if a pass fails.
    """
    data, path = _parts(model)
    if isinstance(disable, str):
        raise TypeError("disable is a list of names of passes")
    if exact and contrib:
        raise ValueError("contrib changes rounding, and exact keeps all bits")
    if input_shapes is not None and not isinstance(input_shapes, Mapping):
        raise TypeError("input_shapes is a mapping of inputs to their extents")
    mod = _anfora._import_onnx(data, path, None)[0]
    options = {
        "input_shapes": [(name, list(shape)) for name, shape in (input_shapes or {}).items()],
        "exact": exact,
        "contrib": contrib,
        "opset": opset,
        "size_threshold": size_threshold,
        "config": [f"{key}={str(value).lower()}" for key, value in (config or {}).items()],
        "disable": list(disable),
        "check": check,
        "threads": threads,
    }
    _anfora._slim(mod, options)
    if output is not None:
        _anfora._save_onnx(mod, os.fspath(output), max_splat_bytes=size_threshold)
        return None
    small = _anfora._export_onnx(mod, max_splat_bytes=size_threshold)[0]
    if isinstance(model, (bytes, bytearray, memoryview)):
        return small
    if path is not None:
        return _proto(small)
    result = type(model)()
    result.ParseFromString(small)
    return result


def simplify(
    model: Model,
    check_n: int = 0,
    *,
    skip_fuse_bn: bool = False,
    overwrite_input_shapes: Mapping[str, Sequence[int | None]] | None = None,
    skipped_optimizers: Sequence[str] | None = None,
    skip_constant_folding: bool = False,
) -> tuple[Any, bool]:
    """Makes a model smaller, with the signature of ``onnxsim.simplify``.

    Returns the model and True: each pass preserves what the model computes, and with ``check_n``
    random inputs a pass that does not raises ``PassError``. ``skipped_optimizers`` names passes of
    anfora; ``skip_fuse_bn`` and ``skip_constant_folding`` leave out FoldBatchNorm and FoldConstant.
    """
    disable = list(skipped_optimizers or ())
    disable += ["FoldBatchNorm"] * skip_fuse_bn + ["FoldConstant"] * skip_constant_folding
    small = slim(model, input_shapes=overwrite_input_shapes, disable=disable, check=check_n)
    return small, True


def ir_pass(
    pipeline: str | Pass | Iterable[Pass],
    *,
    in_place: bool = True,
    requires: Callable[[Any], None] | None = None,
    ensures: Callable[[Any], None] | None = None,
) -> Any:
    """Returns a pass of the package onnx_ir that runs a pipeline of anfora.

    The pass is an ``onnx_ir.passes.InPlacePass``, or a ``FunctionalPass`` with ``in_place=False``.
    It runs under the current ``PassContext``. ``requires`` and ``ensures`` are its precondition and
    its postcondition: they are called with the model, and raise if it does not fit. If the pipeline
    fails, the model is as it was.

    Raises ``ImportError`` if the package onnx_ir is not installed.
    """
    try:
        import onnx_ir as _  # noqa: F401
    except ImportError as error:
        message = "anfora.onnx.ir_pass needs the package onnx_ir: pip install onnx_ir"
        raise ImportError(message, name="onnx_ir") from error
    from ._onnx_ir import AnforaPass, FunctionalAnforaPass

    return (AnforaPass if in_place else FunctionalAnforaPass)(_pass_of(pipeline), requires, ensures)
