"""The passes of the package onnx_ir that run a pipeline of anfora.

A model of onnx_ir crosses over as the bytes of its nodes, with its large weights beside them:

- A weight in memory goes into ``files`` under a location of its own, and anfora shares its bytes.
- A weight in a data file stays there. The bytes name the file.
- On the way back, a weight that has its bytes of before becomes the tensor of before.

The model is changed only when the new one is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from . import _anfora
from ._anfora import Module, Pass

#: Weights of at least this many bytes travel beside the bytes of the nodes.
_LARGE = 1024
#: The locations of weights in memory begin with this text, and so does that of the new weights.
_MEMORY = ".anfora-memory"
_NEW = f"{_MEMORY}/new"

_Condition = Callable[[ir.Model], None]


class _Stand:
    """Stands for an object, with other values for some of its attributes."""

    def __init__(self, original: Any, **changed: Any) -> None:
        self._original = original
        self.__dict__.update(changed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._original)


class _Weights:
    """The large weights of a model: where anfora finds them, and the tensors that they were."""

    def __init__(self, model: ir.Model) -> None:
        self.folder = _folder_of(model)
        self.files: dict[str, bytes] = {}
        self._in_memory: dict[str, tuple[ir.TensorProtocol, bytes]] = {}
        self._in_files: dict[str, ir.ExternalTensor] = {}
        # Without the documentation of the tensors. It comes back with the tensors, so that a pass
        # that drops it would find it again in each round.
        self._places: dict[str, ir.ExternalTensor] = {}
        for name, value in model.graph.initializers.items():
            tensor = value.const_value
            place: tuple[Any, int | None, int | None]
            if tensor is None or tensor.dtype == ir.DataType.STRING:
                continue
            if isinstance(tensor, ir.ExternalTensor) and _folder(tensor) == self.folder:
                self._in_files[name] = tensor
                place = tensor.location, tensor.offset, tensor.length
            elif isinstance(tensor, ir.ExternalTensor) or tensor.nbytes >= _LARGE:
                data = tensor.tobytes()
                location = f"{_MEMORY}/{len(self.files)}"
                self._in_memory[name], self.files[location] = (tensor, data), data
                place = location, 0, len(data)
            else:
                continue
            shape = ir.Shape(tensor.shape.numpy())
            self._places[name] = ir.ExternalTensor(*place, tensor.dtype, shape=shape, name=name)

    def beside(self, model: ir.Model) -> Any:
        """Returns the model with the places of the large weights instead of the tensors."""
        initializers: dict[str, Any] = dict(model.graph.initializers)
        for name, place in self._places.items():
            initializers[name] = _Stand(initializers[name], const_value=place)
        return _Stand(model, graph=_Stand(model.graph, initializers=initializers))

    def put_into(self, model: ir.Model, new: bytes) -> None:
        """Gives the initializers of the result their elements. ``new`` has those of the weights in
        memory."""
        for graph in model.graphs():
            for name, value in graph.initializers.items():
                tensor = value.const_value
                if not isinstance(tensor, ir.ExternalTensor):
                    continue
                if os.fspath(tensor.location) == _NEW:
                    value.const_value = self._element_tensor(name, tensor, new)
                else:
                    tensor.base_dir = self.folder or ""
                    old = self._in_files.get(name, tensor)
                    value.const_value = old if _range(old) == _range(tensor) else tensor

    def _element_tensor(self, name: str, place: ir.ExternalTensor, new: bytes) -> ir.TensorProtocol:
        """Returns the tensor of before if it has the same elements, and a new one otherwise."""
        begin, length = place.offset or 0, place.length or 0
        elements = memoryview(new)[begin : begin + length]
        old, data = self._in_memory.get(name, (None, b""))
        if old is not None and old.dtype == place.dtype and old.shape == place.shape and elements == data:
            return old
        # A view would keep all of `new`, also the weights that the old tensors have.
        array = np.frombuffer(elements, np.uint8)
        array = array if length == len(new) else array.copy()
        about: dict[str, Any] = {"name": name, "doc_string": place.doc_string}
        about["metadata_props"] = dict(place.metadata_props)
        if place.dtype.bitwidth < 8:
            return ir.PackedTensor(array, place.dtype, shape=place.shape, **about)
        array = array.view(place.dtype.numpy()).reshape(place.shape.numpy())
        return ir.Tensor(array, place.dtype, shape=place.shape, **about)


def _folder(tensor: ir.ExternalTensor) -> str:
    return os.path.abspath(os.fspath(tensor.base_dir))


def _range(tensor: ir.ExternalTensor) -> tuple[str, int, int | None]:
    """Returns the path of a tensor's file, and the range of it that the tensor takes."""
    length = tensor.nbytes if tensor.length is None else tensor.length
    return os.path.realpath(tensor.path), tensor.offset or 0, length


def _folder_of(model: ir.Model) -> str | None:
    """Returns the folder of the data files of a model; of the first, if there are several. Weights
    in other folders are read, which only those of the graph itself can be."""
    found: str | None = None
    for graph in (*model.graphs(), *(f.graph for f in model.functions.values())):
        for name, value in graph.initializers.items():
            if isinstance(value.const_value, ir.ExternalTensor):
                folder = _folder(value.const_value)
                found = found or folder
                if folder != found and graph is not model.graph:
                    raise ValueError(
                        f"the data files of the model are in several folders, and the initializer "
                        f"{name!r} of a subgraph is in {folder}; onnx_ir.external_data.load_to_model "
                        "reads them all"
                    )
    return found


def _run(model: ir.Model, pipeline: Pass) -> ir.Model | None:
    """Returns what a pipeline makes of a model; ``None`` if it changes nothing."""
    weights = _Weights(model)
    data = ir.serde.serialize_model(weights.beside(model)).SerializeToString()
    mod: Module = _anfora._import_onnx(data, None, weights.folder, weights.files)[0]
    if not pipeline.apply(mod).changed:
        return None
    data, new = _anfora._split_onnx(mod, _NEW, _LARGE, weights.folder)
    result = ir.serde.deserialize_model(onnx.ModelProto.FromString(data))
    weights.put_into(result, new)
    result.meta.update(model.meta)
    result.graph.meta.update(model.graph.meta)
    return result


class _Conditions:
    """The state and the conditions of a pass that runs a pipeline."""

    def __init__(self, pipeline: Pass, requires: _Condition | None, ensures: _Condition | None) -> None:
        self.pipeline = pipeline
        self._requires = requires
        self._ensures = ensures

    def requires(self, model: ir.Model) -> None:
        """Calls the precondition that was given."""
        if self._requires is not None:
            self._requires(model)

    def ensures(self, model: ir.Model) -> None:
        """Calls the postcondition that was given."""
        if self._ensures is not None:
            self._ensures(model)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.pipeline.info.name})"


class AnforaPass(_Conditions, ir.passes.InPlacePass):
    """A pass of onnx_ir that runs a pipeline. The model object stays; its graph is a new one."""

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Runs the pipeline. If it fails, the model is as it was."""
        new = _run(model, self.pipeline)
        if new is None:
            return ir.passes.PassResult(model, modified=False)
        model.graph = new.graph
        model.functions.clear()
        model.functions.update(new.functions)
        model.metadata_props.clear()
        model.metadata_props.update(new.metadata_props)
        for field in ("ir_version", "producer_name", "producer_version", "domain", "model_version"):
            setattr(model, field, getattr(new, field))
        model.doc_string = new.doc_string
        model.device_configurations = new.device_configurations
        return ir.passes.PassResult(model, modified=True)


class FunctionalAnforaPass(_Conditions, ir.passes.FunctionalPass):
    """A pass of onnx_ir that runs a pipeline and returns a new model. Weights are shared."""

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Runs the pipeline, and leaves the model as it is."""
        new = _run(model, self.pipeline)
        if new is None:
            return ir.passes.PassResult(model.clone(), modified=False)
        return ir.passes.PassResult(new, modified=True)
