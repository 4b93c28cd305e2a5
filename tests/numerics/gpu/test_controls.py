"""The checks see what they are for: a barrier that is missing, a bound or a lane that is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from passes.compile import Compilation
from tensorkiln.build import Builder, Tensor, matmul, scatter, softmax
from tests.compiled import compiled
from tests.emulated import TARGET, Array, Emulation
from tests.simt.errors import KernelFault

BARRIER = re.compile(r"^.*call void @llvm\.nvvm\.barrier\.cta\.sync\.aligned\.all\(i32 0\).*\n", re.MULTILINE)
NUMBERS = np.random.default_rng(11)


def softmax_rows(b: Builder) -> Tensor:
    return softmax(b.input("float32", (3, 600)))


def columns(b: Builder) -> Tensor:
    return b.input("float32", (900, 40)).sum(axis=0)


def few_results(b: Builder) -> Tensor:
    return b.input("float32", (4, 500, 2)).sum(axis=1) * 2.0


def product(b: Builder) -> Tensor:
    return matmul(b.input("float32", (40, 50)), b.input("float32", (50, 70))) + 1.0


def scattered(b: Builder) -> Tensor:
    return scatter(b.input("int32", (2, 200)), b.input("float32", (2, 200)), 1, (2, 90))


GRAPHS = (softmax_rows, columns, few_results, product, scattered)


def made() -> Iterator[tuple[str, Compilation, list[Array]]]:
    for make in GRAPHS:
        b = Builder(make.__name__)
        b.output(make(b))
        graph = b.graph()
        arrays: list[Array] = []
        for var in graph.input_vars:
            kind = graph.types[var]
            shape = tuple(int(str(dim)) for dim in kind.shape)
            draw = NUMBERS.standard_normal(shape) if kind.dtype.is_float else NUMBERS.integers(0, 90, shape)
            arrays.append(draw.astype(kind.dtype.numpy))
        yield make.__name__, compiled(graph, TARGET, texts=["translate"]), arrays


CASES = list(made())
DROPPED = [
    pytest.param(compilation, arrays, number, id=f"{name}-{number}")
    for name, compilation, arrays in CASES
    for number in range(len(BARRIER.findall(compilation.dumps["translate"])))
]


def altered(compilation: Compilation, text: str) -> Compilation:
    return replace(compilation, dumps={**compilation.dumps, "translate": text})


@pytest.mark.parametrize(("compilation", "arrays", "number"), DROPPED)
def test_every_barrier_is_needed(compilation: Compilation, arrays: list[Array], number: int) -> None:
    text = compilation.dumps["translate"]
    at = list(BARRIER.finditer(text))[number]
    broken = altered(compilation, text[: at.start()] + text[at.end() :])
    Emulation(compilation, arrays, {}).run(watched=True)
    with pytest.raises(KernelFault):
        Emulation(broken, arrays, {}).run(watched=True)


def test_a_bound_that_is_one_too_many_is_seen() -> None:
    b = Builder("bound")
    b.output(b.input("float32", (1000,)) * 2.0)
    compilation = compiled(b.graph(), TARGET, texts=["translate"])
    text = compilation.dumps["translate"]
    assert text.count(", 250\n") == 1, "the comparison with the number of whole vectors"
    broken = altered(compilation, text.replace(", 250\n", ", 251\n"))
    with pytest.raises(KernelFault):
        Emulation(broken, [np.ones(1000, np.float32)], {}).run(watched=True)


def test_a_wrong_lane_gives_a_wrong_sum() -> None:
    b = Builder("lane")
    b.output(b.input("float32", (2, 600)).sum(axis=1))
    compilation = compiled(b.graph(), TARGET, texts=["translate"])
    array = NUMBERS.standard_normal((2, 600)).astype(np.float32)
    text = compilation.dumps["translate"]
    assert "i32 8, i32 31)" in text
    broken = altered(compilation, text.replace("i32 8, i32 31)", "i32 4, i32 31)"))
    (right,), (wrong,) = (Emulation(each, [array], {}).run() for each in (compilation, broken))
    np.testing.assert_allclose(right, array.sum(axis=1), rtol=1e-4, atol=1e-4)
    assert not np.allclose(wrong, array.sum(axis=1), rtol=1e-2, atol=1e-2)
