"""A model in one file: a zip archive of stored entries.

`graph.json` is the graph, `names.json` the vars of the inputs and outputs by name, `parameters/<var>` the elements of a
parameter in row-major order, little-endian, in the dtype and shape that the graph states. Equal models give equal
bytes. Reading extracts nothing to the file system.
"""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np

from ..errors import CallInputError, RequestError
from ..graph import Graph
from ..limits import MAX_BODY_BYTES
from ..nodes.base import Record
from ..stored_entries import UNREADABLE, StoredEntries, add_entry
from ..whole_file import whole_file

SUFFIX: Final = ".kilnmodel"
MAX_NAMES_BYTES: Final = 16 << 20
_GRAPH: Final = "graph.json"
_NAMES: Final = "names.json"
_PARAMETERS: Final = "parameters/"
_LIMIT: Final = "model_bytes"

Array = np.ndarray[Any, Any]


class Parts(NamedTuple):
    """The fields of a `Model`."""

    graph: Graph
    parameters: Mapping[int, Array]
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


class _Names(Record):
    inputs: dict[str, int]
    outputs: dict[str, int]


def write_model(model: Parts, path: str | os.PathLike[str]) -> None:
    """Write a model. The file appears complete or not at all.

    CallInputError when a parameter does not have the dtype and shape of its input; OSError when it cannot be written.
    """
    entries = {
        _GRAPH: model.graph.to_json().encode(),
        _NAMES: _Names(inputs=dict(model.inputs), outputs=dict(model.outputs)).model_dump_json().encode(),
    }
    parameters = {f"{_PARAMETERS}{var}": _elements(model, var) for var in sorted(model.parameters)}
    with whole_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in {**entries, **parameters}.items():
            add_entry(archive, name, content)


def read_model(path: str | os.PathLike[str]) -> Parts:
    """Read a model from a file.

    RequestError when `write_model` did not write the file, LimitExceededError when a part is too large, an error of the
    graph when its text is invalid; OSError when the file cannot be read.
    """
    name = os.fspath(path)
    # A failure to open is raised as OSError. An OSError after that, such as a bad seek, comes from invalid content.
    with open(path, "rb") as file:
        return _parts(file, name)


def _parts(file: BinaryIO, name: str) -> Parts:
    try:
        with zipfile.ZipFile(file) as archive:
            entries = StoredEntries(archive, name)
            graph = Graph.model_validate_json(entries.content(_GRAPH, MAX_BODY_BYTES, _LIMIT))
            names = _Names.model_validate_json(entries.content(_NAMES, MAX_NAMES_BYTES, _LIMIT))
            parameters = dict(_parameters(entries, graph, name))
    except (*UNREADABLE, ValueError, OSError) as error:
        # An encrypted or truncated entry, an offset before the file, invalid JSON or unknown fields.
        raise RequestError(f"{name} is not a saved model: {error}") from error
    free = [var for var in graph.input_vars if var not in parameters]
    if list(names.inputs.values()) != free or list(names.outputs.values()) != list(graph.output_vars):
        raise RequestError(f"{name} is not a saved model: its names are not those of its graph's inputs and outputs")
    return Parts(graph, parameters, names.inputs, names.outputs)


def _elements(model: Parts, var: int) -> bytes:
    array, stated = np.asarray(model.parameters[var]), model.graph.types[var]
    if array.dtype != stated.dtype.numpy or array.shape != tuple(stated.shape):
        raise CallInputError(
            f"parameter {var} is {array.dtype} of {array.shape}; the graph has {stated.dtype.value} of {stated.shape}"
        )
    return np.ascontiguousarray(array).tobytes()


def _parameters(entries: StoredEntries, graph: Graph, name: str) -> Iterator[tuple[int, Array]]:
    for var in graph.input_vars:
        if (entry := f"{_PARAMETERS}{var}") not in entries:
            continue
        stated = graph.types[var]
        shape = [int(dim) for dim in stated.shape if isinstance(dim, int)]
        size = math.prod(shape) * stated.dtype.itemsize
        content = entries.content(entry, size, _LIMIT)
        if len(shape) != len(stated.shape) or len(content) != size:
            raise RequestError(f"{name} is not a saved model: parameter {var} has not the size of its input")
        array: Array = np.frombuffer(content, stated.dtype.numpy)
        yield var, array.reshape(shape)
