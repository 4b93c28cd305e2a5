"""How many copies of a loop's body any schedule makes: fewer than a limit, whatever the graph."""

from __future__ import annotations

from dataclasses import replace

import pytest

from passes.census import census
from passes.cpu.blocking import choose_blocking
from passes.cpu.machine import VectorUnit
from passes.gpu import contraction as on_a_gpu
from passes.gpu.machine import machine_of
from passes.gpu.vector_access import MAX_OPERATIONS, widest_access
from passes.loops.body import KernelBody
from passes.loops.collapse import collapse
from passes.loops.contraction import contraction_of
from passes.loops.domain import extent_of
from passes.schedule.record import tiles_of
from tensorkiln.build import Builder, exp, matmul
from tensorkiln.dtypes import DType
from tensorkiln.target import Target
from tests.passes.modules import TARGET, after, bodies, body, output
from tests.passes.test_compile import network

MAX_COPIES = 4096
UNITS = [VectorUnit(512, 32), VectorUnit(256, 16), VectorUnit(128, 32), VectorUnit(128, 16)]
DTYPES = [dtype for dtype in DType if dtype.itemsize]
GPU = "cuda:sm_90"


def product(rows: int = 512) -> KernelBody:
    b = Builder("product")
    (kernel,) = bodies(output(b, matmul(b.input("float32", (rows, 512)), b.input("float32", (512, 512)))))
    return kernel


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("rows", [8, 512, 100_000])
def test_a_register_tile_of_a_processor_is_bounded(unit: VectorUnit, dtype: DType, rows: int) -> None:
    found = contraction_of(product(rows))
    assert found is not None
    blocking = choose_blocking(replace(found[1], dtype=dtype), unit)
    assert extent_of(found[1].rows) == rows
    assert 0 < blocking.tile_rows * blocking.tile_columns <= MAX_COPIES


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_products_of_a_thread_of_a_gpu_are_bounded(dtype: DType) -> None:
    problem = contraction_of(product())
    assert problem is not None
    body, parts = problem
    narrowed = body, replace(parts, dtype=dtype)
    for choice in on_a_gpu.candidates(narrowed, machine_of(Target.parse(GPU))):
        tiles = [tiles_of(choice.item, name) for name in ("row_tile", "column_tile", "depth")]
        (_, rows), (_, columns), (depth,) = tiles
        assert 1 < rows * columns * depth <= MAX_COPIES


@pytest.mark.parametrize("length", [1, 8, 200])
def test_the_elements_of_a_thread_of_a_gpu_are_bounded(length: int) -> None:
    b = Builder("chain")
    value = b.input("float32", (1 << 16,))
    for _ in range(length):
        value = exp(value)
    access = widest_access(collapse(body(output(b, value))))
    assert 1 <= access.width * length <= max(MAX_OPERATIONS, length) <= MAX_COPIES


@pytest.mark.parametrize("target", [TARGET, GPU])
def test_nothing_is_left_to_the_pass_that_unrolls_every_vector_of_several_dimensions(target: str) -> None:
    names = census(after("realise", network(), target).operation)
    assert any(name.startswith("vector.") for name in names)
    assert not any(name.startswith("vector.transfer") for name in names)
