"""The benchmark cases: rows, light networks and models, each with inputs and expected results."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnx

from tests.bench.peers.workloads import ROWS, Array, Row
from tests.models.exports import EXPORTS, Export
from tests.networks.light import NAMES, logits, shipped, with_random_weights

IMAGE = (1, 3, 224, 224)
TOO_SMALL = frozenset({"encoder_decoder", "selective_scan", "recurrence", "message_passing"})
"""Models so small that the overhead of a call would dominate."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Inputs and the expected last outputs; for a model also its file and the names of its inputs."""

    inputs: Sequence[Array]
    expected: Sequence[Array]
    names: Sequence[str] = ()
    model: Path | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A benchmark case; `kind` is `row`, `network` or `model`. `make` writes its files into a folder."""

    name: str
    kind: str
    meaning: str
    make: Callable[[Path], Asked]
    weights: tuple[int, ...] = ()


def cases(*, is_small: bool = False) -> tuple[Case, ...]:
    """All cases; with `is_small`, rows have the small shapes of tests."""
    rows = (Case(row.name, "row", row.meaning, partial(_row, row, is_small), row.weights) for row in ROWS)
    networks = (Case(name, "network", name, partial(_network, name)) for name in NAMES)
    return (*rows, *networks, *_models())


def differ(actual: Sequence[Array], expected: Sequence[Array]) -> str:
    """A description of the first wrong result; empty if all are within rtol 1e-4 and 1e-4 of the expected rms."""
    for ours, right in zip(actual[-len(expected) :], expected, strict=True):
        if ours.shape != right.shape:
            return f"the shape is {ours.shape}, not {right.shape}"
        scale = float(np.sqrt(np.mean(np.square(right, dtype=np.float64))))
        if not np.allclose(ours, right, rtol=1e-4, atol=1e-4 * scale):
            farthest = float(np.max(np.abs(ours - right))) / scale
            return f"a result is off by {farthest:.1e} of what is right"
    return ""


def _row(row: Row, is_small: bool, folder: Path) -> Asked:
    inputs = row.inputs(is_small=is_small)
    with np.errstate(invalid="ignore"):
        return Asked(inputs, [np.asarray(row.expected(*inputs))])


def _network(name: str, folder: Path) -> Asked:
    proto, path = with_random_weights(shipped(name)), folder / f"{name}.onnx"
    image = np.random.default_rng(1).standard_normal(IMAGE, np.float32)
    given = {tensor.name for tensor in proto.graph.initializer}
    # Some models list the weights among the inputs, which would make them non-constant.
    (entry,) = (entry for entry in proto.graph.input if entry.name not in given)
    del proto.graph.input[:]
    proto.graph.input.append(entry)
    proto.ir_version = max(proto.ir_version, 4)
    onnx.save(proto, path)
    return Asked([image], [logits(proto, image)], [entry.name], path)


def _models() -> Iterator[Case]:
    for export in EXPORTS:
        if (export.exporter, export.form) == ("dynamo", "static") and export.family.name not in TOO_SMALL:
            yield Case(export.family.name, "model", export.family.name, partial(_model, export))


def _model(export: Export, folder: Path) -> Asked:
    for path in (export.path, export.family.weights):
        shutil.copy(path, folder / path.name)
    proto = onnx.load(export.path, load_external_data=False)
    given = {tensor.name for tensor in proto.graph.initializer}
    names = [entry.name for entry in proto.graph.input if entry.name not in given]
    with np.load(export.family.samples) as samples:
        inputs = [samples[f"0.{name}"] for name in names]
        expected = [samples[f"0.{output.name}"] for output in proto.graph.output]
    return Asked(inputs, expected, names, folder / export.path.name)
