"""Reading of models from files: each suffix has a reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from ..canonical.one_spelling import one_spelling
from ..errors import (
    CallInputError,
    InvalidGraphError,
    LimitExceededError,
    RequestError,
    TensorkilnError,
    UnsupportedGraphError,
)
from ..frontends.bounds import Bounds
from ..graph import Graph
from ..request import WrittenGraph, graph_json
from ..sdk import Client
from ..stablehlo import StableHlo
from .dims import Dims
from .kiln_toml import FILE, ModelSettings, nearest, settings_of

if TYPE_CHECKING:
    from ..frontends.model import Model as SavedModel

Connect: TypeAlias = Callable[[], Client]
"""Makes a client, for formats that a service translates."""
Constants: TypeAlias = Mapping[str, Any]
_OF_FILES: Final = (InvalidGraphError, UnsupportedGraphError, LimitExceededError, RequestError, CallInputError)


@dataclass(frozen=True, slots=True)
class Model:
    """A graph, and the arrays bound to some of its input vars; `named` also has names, if the format has them."""

    graph: WrittenGraph
    parameters: dict[int, np.ndarray] = field(default_factory=dict[int, np.ndarray])
    named: SavedModel | None = None


@dataclass(frozen=True, slots=True)
class _Format:
    """`package` is the package that the reader needs, and `extra` the extra of tensorkiln that installs it."""

    read: Callable[[Path, Dims, Constants, Connect], Model]
    package: str | None = None
    extra: str | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """Settings of a model: bounds of dimensions; with `lenient`, bounds of dimensions that it lacks are ignored.

    `constants` fixes inputs of ONNX models; only `kiln.toml` has it.
    """

    dims: Dims = field(default_factory=dict[str, Bounds])
    lenient: Dims = field(default_factory=dict[str, Bounds])
    constants: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @staticmethod
    def of(settings: ModelSettings, dims: Dims) -> Given:
        """The settings of a file (lenient, since they are for many models), overridden by the command line's `dims`."""
        return Given(dims, {name: each for name, each in settings.dims.items() if name not in dims}, settings.constants)


def read_given(path: Path, dims: Dims, connect: Connect) -> tuple[Model, ModelSettings]:
    """Read a model with the settings of its `kiln.toml`, overridden by `dims`; errors as for `read_model`.

    Returns the model and the settings of the file.
    """
    settings = settings_of(path)
    return read_model(path, Given.of(settings, dims), connect), settings


def read_model(path: Path, given: Given, connect: Connect) -> Model:
    """Read the model in a file by its suffix; a file with another suffix is JSON, which the service checks.

    RequestError when a package is not installed, and for bounds of an unknown dimension; the graph's errors when it is
    invalid or not supported. Errors name the file. OSError when the file cannot be read.
    """
    suffix = path.suffix.lower()
    form = _FORMATS.get(suffix, _JSON)
    if form.package is not None and find_spec(form.package) is None:
        raise RequestError(
            f"{path}: reading {suffix} files needs the package {form.package}: "
            f"run `pip install 'tensorkiln[{form.extra}]'`."
        )
    if given.constants and suffix != ".onnx":
        raise RequestError(
            f"{path}: constants in {nearest(path) or FILE} apply to ONNX models only; "
            """move them to a table such as [models."*.onnx"]."""
        )
    try:
        return _with_known(form, path, given, connect)
    except _OF_FILES as error:
        raise _of(path, error) from error


def _with_known(form: _Format, path: Path, given: Given, connect: Connect) -> Model:
    """Read the model with the lenient bounds, ignoring those of dimensions that it lacks."""
    try:
        return form.read(path, {**given.lenient, **given.dims}, given.constants, connect)
    except RequestError as error:
        known = error.details.get("dimensions")
        if not isinstance(known, list) or given.lenient.keys() <= set(known):
            raise
    kept = {name: bounds for name, bounds in given.lenient.items() if name in known}
    return form.read(path, {**kept, **given.dims}, given.constants, connect)


def _of(path: Path, error: TensorkilnError) -> TensorkilnError:
    """The error in terms of the command: with the file name, and the option that supplies a missing value."""
    named = error.message if str(path) in error.message else f"{path}: {error.message}"
    missing = error.details.get("dimension")
    if missing is not None:
        named = f"{named.rstrip('.')}; here that is --dim {quote(f'{missing}=1:64')}."
    return type(error)(named, pointers=error.pointers, details=error.details)


def _json(path: Path, dims: Dims, constants: Constants, connect: Connect) -> Model:
    content = path.read_bytes()
    if dims:
        _refuse(dims, Graph.model_validate_json(graph_json(content)))
    return Model(content)


def _saved(path: Path, dims: Dims, constants: Constants, connect: Connect) -> Model:
    from ..frontends.model import Model as SavedModel

    loaded = SavedModel.load(path)
    _refuse(dims, loaded.graph)
    return Model(loaded.graph, dict(loaded.parameters), loaded)


def _refuse(dims: Dims, graph: Graph) -> None:
    """RequestError when bounds are given for a graph, which states the bounds of its symbols itself."""
    if dims:
        own = ", ".join(f"{name} from {low} to {high}" for name, (low, high) in graph.symbols.items())
        raise RequestError(
            f"--dim {next(iter(dims))}: the graph states the bounds of its symbols itself ({own or 'it has none'}).",
            details={"dimensions": []},
        )


def _onnx(path: Path, dims: Dims, constants: Constants, connect: Connect) -> Model:
    from ..frontends import onnx

    loaded = onnx.load(path, symbols=dims, constants=constants)
    return Model(loaded.graph, dict(loaded.parameters), loaded)


def _torch(path: Path, dims: Dims, constants: Constants, connect: Connect) -> Model:
    from ..frontends import torch

    loaded = torch.load(path, symbols=dims)
    return Model(loaded.graph, dict(loaded.parameters), loaded)


def _jax(path: Path, dims: Dims, constants: Constants, connect: Connect) -> Model:
    from ..frontends import jax

    loaded = jax.load(path, symbols=dims, client=connect()).model
    return Model(loaded.graph, dict(loaded.parameters), loaded)


def _module_text(path: Path, dims: Dims, constants: Constants, connect: Connect) -> Model:
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidGraphError(f"the module is not text: {error}; the suffix of an artifact is .mlirbc") from None
    return _translated(text, dims, connect)


def _artifact(path: Path, dims: Dims, constants: Constants, connect: Connect) -> Model:
    return _translated(path.read_bytes(), dims, connect)


def _translated(module: str | bytes, dims: Dims, connect: Connect) -> Model:
    ranges = {name: (bounds, bounds) if isinstance(bounds, int) else bounds for name, bounds in dims.items()}
    return Model(one_spelling(connect().translate(StableHlo(module, ranges or None))))


_JSON: Final = _Format(_json)
_FORMATS: Final = {
    ".json": _JSON,
    ".onnx": _Format(_onnx, "onnx", "onnx"),
    ".mlir": _Format(_module_text),
    ".mlirbc": _Format(_artifact),
    ".stablehlo": _Format(_artifact),
    ".jax": _Format(_jax, "flatbuffers", "jax"),
    ".jaxexport": _Format(_jax, "flatbuffers", "jax"),
    ".pt2": _Format(_torch),
    ".kilnmodel": _Format(_saved),
}
SUFFIXES: Final = tuple(_FORMATS)
"""The suffixes of model files."""
