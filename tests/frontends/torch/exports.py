"""The exported programs of `files`, with the arguments and results of the calls that PyTorch made of them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tensorkiln.frontends.torch import TorchModel, load
from tensorkiln.reference import evaluate

FILES = Path(__file__).with_name("files")
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """Leaves of the arguments and of the results, and the module's buffers after the call."""

    arguments: list[Array]
    results: list[Array]
    buffers: Mapping[str, Array]


@cache
def archive(family: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(FILES / f"{family}.zip")


def cases() -> list[tuple[str, str]]:
    """Family and name of every case."""
    return [
        (path.stem, name.removesuffix(".pt2"))
        for path in sorted(FILES.glob("*.zip"))
        for name in archive(path.stem).namelist()
        if name.endswith(".pt2")
    ]


def program(family: str, name: str) -> io.BytesIO:
    """The archive that torch wrote."""
    return io.BytesIO(archive(family).read(f"{name}.pt2"))


def calls(family: str, name: str) -> list[Call]:
    with np.load(io.BytesIO(archive(family).read(f"{name}.npz"))) as stored:
        arrays = {key: stored[key] for key in stored.files}
    count = 1 + max(int(key.partition(".")[0]) for key in arrays)
    return [
        Call(_listed(arrays, f"{number}.in."), _listed(arrays, f"{number}.out."), _named(arrays, f"{number}.buffer."))
        for number in range(count)
    ]


def _named(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}


def _listed(arrays: Mapping[str, Array], prefix: str) -> list[Array]:
    found = _named(arrays, prefix)
    return [found[str(place)] for place in range(len(found))]


def arguments(model: TorchModel, call: Call, state: Mapping[str, Array]) -> dict[str, Any]:
    """The inputs of the graph by their names: arguments in torch's order, without those that the export fixed."""
    named = dict(zip(model.calling.leaves, call.arguments, strict=True))
    types = {name: model.graph.types[var].dtype.numpy for name, var in model.inputs.items()}
    return {name: (named[name] if name in named else state[name]).astype(types[name]) for name in model.inputs}


def check(expected: Call, found: Mapping[str, Array], model: TorchModel, tolerance: float = 5e-6) -> None:
    """Every result that is a tensor, and every buffer that is changed, against what torch computed."""
    from tensorkiln.frontends.torch.calling import Named

    compared = 0
    for result, wanted in zip(model.calling.returned, expected.results, strict=True):
        if isinstance(result, Named):
            compare(found[result.name], wanted, tolerance)
            compared += 1
    for buffer, output in model.calling.buffers.items():
        # A mark keeps it apart from an argument of the same name.
        compare(found[output], expected.buffers[buffer.rstrip("'")], tolerance)
        compared += 1
    assert compared == len(model.outputs) - len(model.calling.changed)


def compare(found: Array, wanted: Array, tolerance: float) -> None:
    """Equal shapes and types; floats as near as their type and what is around them allow; the rest exactly."""
    assert found.shape == wanted.shape
    if found.dtype.name == "bfloat16":
        found = found.astype(np.float32)
        tolerance = 1e-2
    assert found.dtype == wanted.dtype
    if found.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
        return
    if found.dtype == np.float16:
        tolerance = 2e-3
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    finite = wanted[np.isfinite(wanted)].astype(np.float64)
    scale = float(np.sqrt(np.mean(finite**2))) if finite.size and np.abs(finite).max() < 1e15 else 0.0
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * min(scale, 1e3))


def run_reference(model: TorchModel, call: Call, state: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs by the reference evaluator."""
    given = arguments(model, call, state)
    named = dict(zip(model.calling.leaves, call.arguments, strict=True))
    symbols = {name: value for name, value in model.calling.symbols(named).items() if name in model.graph.symbols}
    return dict(zip(model.outputs, evaluate(model.graph, *model.arguments(**given), **symbols), strict=True))


def loaded(family: str, name: str) -> TorchModel:
    return load(program(family, name))
