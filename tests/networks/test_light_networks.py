"""The nine light networks of the onnx package, compiled and run.

All of one network is one test, so that no worker compiles a network that another has compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from passes.compile import Compilation
from tensorkiln.frontends.model import Model
from tensorkiln.frontends.onnx import load
from tensorkiln.program import Program
from tensorkiln.runtime import host_launch
from tensorkiln.runtime.phases import split
from tensorkiln.runtime.storage import resolve_storages
from tests import checked, compiled
from tests.networks.light import NAMES, expected_output, logits, shipped, with_random_weights
from tests.networks.schedules import check_edges, check_items, needed_at_once, size

Array = np.ndarray[Any, Any]

IMAGE = (1, 3, 224, 224)

THREADS = 2

LARGE = frozenset({"vgg19"})
"""Networks whose weights are half a gigabyte: no second copy of them is made."""

SLACK = 1 << 16
"""Bytes for the alignment of buffers."""


@dataclass(frozen=True, slots=True)
class Size:
    """Nodes of the graph, the most kernels of a call, and the most of its temporaries' bytes that may be needed."""

    nodes: int
    kernels: int
    share: float


SIZES = {
    "bvlc_alexnet": Size(144, 21, 0.8),
    "densenet121": Size(3230, 250, 0.2),
    "inception_v1": Size(879, 105, 0.3),
    "inception_v2": Size(1871, 130, 0.25),
    "resnet50": Size(994, 78, 0.25),
    "shufflenet": Size(987, 77, 0.25),
    "squeezenet": Size(391, 40, 0.4),
    "vgg19": Size(274, 41, 0.35),
    "zfnet512": Size(136, 20, 0.8),
}


@pytest.fixture(autouse=True)
def split_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that take little are split over threads, too."""
    monkeypatch.setattr(host_launch, "NS_PER_WORKER", 10_000)


@pytest.mark.parametrize("name", SIZES)
def test_a_network_gives_what_it_should_within_the_memory_planned(name: str) -> None:
    model, limit = load(shipped(name)), SIZES[name]
    assert len(model.graph.nodes) == limit.nodes
    compilation = compiled.compiled(model.graph)
    program = compiled.program(compilation, threads=THREADS)

    check_items(compilation.program, limit.nodes)
    check_edges(compilation.program.schedule)
    assert len(compilation.program.kernels) - len(compilation.program.prepare) <= limit.kernels
    check_plan(program.bind(model.parameters), limit.share)
    check_shipped_output(name, model, program)
    check_random_weights(name, model, program)
    if name not in LARGE:
        check_memory(model, compilation, program)


def check_memory(model: Model, compilation: Compilation, program: Program) -> None:
    """No kernel touches what it was not given, and threads, the order of work-groups and addresses change nothing."""
    image = np.random.default_rng(2).standard_normal(IMAGE, np.float32)
    arrays = [model.parameters.get(var, image) for var in model.graph.input_vars]
    results = checked.run(compilation, *arrays, threads=THREADS)
    for result, expected in zip(results, program(*arrays), strict=True):
        np.testing.assert_array_equal(result, expected)


def check_shipped_output(name: str, model: Model, program: Program) -> None:
    ramp = (np.arange(np.prod(IMAGE)).reshape(IMAGE) / np.prod(IMAGE)).astype(np.float32)
    bound = program.bind(model.parameters)
    first, *_ = bound(ramp)
    assert bound.planned_peak_bytes() == pytest.approx(bound.measured_peak_bytes, rel=0.1)
    np.testing.assert_allclose(first, expected_output(name), rtol=1e-3, atol=1e-4)


def check_random_weights(name: str, model: Model, program: Program) -> None:
    proto = with_random_weights(shipped(name))
    drawn = load(proto)
    assert drawn.graph == model.graph, "weights are inputs: other weights are the same graph"
    image = np.random.default_rng(1).standard_normal(IMAGE, np.float32)
    *_, actual = program.bind(drawn.parameters)(image)
    expected = logits(proto, image)
    assert 0.05 < expected.std() < 50, "logits that are all alike or enormous would show no error"
    np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-5 * np.abs(expected).max())


def check_plan(program: Program, share: float) -> None:
    """The plan holds what must be held at once, little more, and far less than all temporaries side by side."""
    compiled = program.compiled
    phases = split(compiled)
    assert phases is not None, "weights are packed"
    call, item_count = phases[1], len(phases[1].items)
    storages = resolve_storages(compiled, call)
    returned = {binding.buffer for binding in compiled.outputs}
    used = {member.id for storage in storages if storage.kind == "writable" for member in storage.members}
    temps = [buffer for buffer in compiled.buffers if buffer.role == "temp" and buffer.id in used]
    scratch = needed_at_once([storage for storage in storages if storage.kind == "scratch"], item_count)
    outputs = sum(size(compiled.buffers[number]) for number in returned)
    inner = [s for s in storages if s.kind == "writable" and returned.isdisjoint(member.id for member in s.members)]
    least = needed_at_once(inner, item_count)
    planned = program.planned_peak_bytes()
    assert least + outputs <= planned <= 1.2 * least + outputs + THREADS * scratch + SLACK
    assert least <= share * sum(map(size, temps))
    assert planned - outputs - THREADS * scratch <= share * sum(map(size, temps))


def test_every_network_of_the_package_is_here() -> None:
    assert tuple(SIZES) == NAMES
