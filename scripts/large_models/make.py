"""Writes a transformer with large random weights in a file beside the model.

    python make.py MODEL LAYERS WIDTH

The weights go to MODEL.data as they are drawn, so they are never in memory together.
"""

import pathlib
import sys

from onnx import TensorProto

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "real_models"))
import exporters


class StoredGraph(exporters.Graph):
    """A graph whose weights are bytes in a file."""

    def __init__(self, location, file):
        super().__init__()
        self.location, self.file = location, file

    def weight(self, *extents):
        name = self.fresh("w")
        length = 4
        for extent in extents:
            length *= extent
        tensor = TensorProto(name=name, dims=extents, data_type=TensorProto.FLOAT)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in [("location", self.location), ("offset", self.file.tell()), ("length", length)]:
            tensor.external_data.add(key=key, value=str(value))
        self.file.write(self.random.bytes(length))
        self.initializers.append(tensor)
        return name


def main(path, layers, width):
    path = pathlib.Path(path)
    with open(f"{path}.data", "wb") as file:
        model = exporters.transformer(int(layers), 16, int(width), graph=StoredGraph(f"{path.name}.data", file))
    path.write_bytes(model.SerializeToString())


if __name__ == "__main__":
    main(*sys.argv[1:])
