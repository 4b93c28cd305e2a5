"""The graph that a file holds: kiln's JSON, or an ONNX model with its parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ..errors import InvalidGraphError, RequestError
from ..request import WrittenGraph


@dataclass(frozen=True, slots=True)
class Model:
    """A graph, and the arrays bound to some of its input vars."""

    graph: WrittenGraph
    parameters: dict[int, np.ndarray] = field(default_factory=dict[int, np.ndarray])


def read_model(path: Path) -> Model:
    """Read `*.onnx` by the importer and anything else as JSON, which the service checks."""
    if path.suffix.lower() != ".onnx":
        return Model(path.read_bytes())
    if find_spec("onnx") is None:
        raise RequestError("Reading .onnx files needs the onnx package: run `pip install 'tensorkiln[onnx]'`.")
    from google.protobuf.message import DecodeError

    from ..frontends import onnx

    try:
        loaded = onnx.load(path)
    except DecodeError:
        raise InvalidGraphError(f"{path} is not an ONNX model.") from None
    return Model(loaded.graph, dict(loaded.parameters))
