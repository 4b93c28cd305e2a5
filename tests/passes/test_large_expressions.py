"""Graphs at the limits of their expressions compile, and their programs travel; beyond them they are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorkiln import expr as algebra
from tensorkiln.errors import LimitExceededError, UnsupportedGraphError
from tensorkiln.expr import ExprLimitError
from tensorkiln.graph import Graph
from tensorkiln.spec import CompiledProgram
from tests.compiled import compiled, program
from tests.contract.test_inferred_types import expr
from tests.dialect.wire import binop, graph_of, placeholder, unary

TARGETS = pytest.mark.parametrize("target", ["cpu:native", "cuda:sm_80"])


def padded(axes: int) -> Graph:
    """Symbolic axes, each padded by one: the number of elements has 2**axes terms."""
    names = [f"s{number}" for number in range(axes)]
    pad = {"node": "pad", "in_var": 0, "pad_width": [[0, 1]] * axes, "out_var": 1, "dtype": "float32"}
    return graph_of([placeholder(0, names), pad], [1], bounds=dict.fromkeys(names, (1, 2)))


def travelled(graph: Graph, target: str) -> CompiledProgram:
    """The program of a graph, as whoever asked for it reads it."""
    made = compiled(graph, target).program
    read = CompiledProgram.model_validate_json(made.model_dump_json())
    assert read == made
    return read


@TARGETS
def test_a_value_whose_size_has_as_many_terms_as_may_be_compiles(target: str) -> None:
    made = travelled(padded(8), target)
    (size,) = {buffer.size_bytes for buffer in made.buffers if buffer.role == "output"}
    assert isinstance(size, algebra.Expr)
    assert len(size.terms) == 256


def test_padding_as_many_axes_as_may_be_gives_the_padded_value() -> None:
    ones = np.ones([1, 2] * 4, np.float32)
    (result,) = program(compiled(padded(8)))(ones, **{f"s{n}": size for n, size in enumerate(ones.shape)})
    np.testing.assert_array_equal(result, np.pad(ones, [(0, 1)] * 8), strict=True)


@TARGETS
def test_sums_over_sizes_of_many_terms_compile(target: str) -> None:
    names = [f"s{number}" for number in range(32)]
    halves = [expr("add", *names[first : first + 16]) for first in (0, 16, 8)]
    nodes = [placeholder(0, halves[:2]), placeholder(1, [halves[0], halves[2]]), binop(2, 0, 1)]
    made = travelled(graph_of(nodes, [2], bounds=dict.fromkeys(names, (1, 2))), target)
    (read,) = (item.bytes_read for item in made.schedule.analysis)
    assert isinstance(read, algebra.Expr)
    assert len(read.terms) > 256


def deep(levels: int) -> Any:
    """A dimension of so many levels, as it is written and in its canonical form."""
    dim: Any = "n"
    for level in range(levels - 1):
        dim = expr("floordiv" if level % 2 else "floormod", dim, "m")
    return dim


@TARGETS
@pytest.mark.parametrize("levels", [63, 64])
def test_dimensions_as_deep_as_may_be_compile(levels: int, target: str) -> None:
    nodes = [placeholder(0, [deep(levels), 4]), unary(1, 0)]
    travelled(graph_of(nodes, [1], bounds={"n": (1, 64), "m": (1, 9)}), target)


def test_a_kernel_that_reads_sizes_of_too_many_terms_together_is_refused() -> None:
    names = [f"s{number}" for number in range(32)]

    def shape(value: int) -> list[Any]:
        parts = [[names[(step * value + number) % 32] for number in range(6)] for step in (5, 7, 11)]
        return [expr("add", *part) for part in parts]

    places = [placeholder(number, shape(number)) for number in range(8)]
    sums = [binop(8, 0, 1), *(binop(7 + number, 6 + number, number) for number in range(2, 8))]
    graph = graph_of([*places, *sums], [14], bounds=dict.fromkeys(names, (1, 2)))
    with pytest.raises(LimitExceededError, match="fewer symbols in the shapes") as caught:
        compiled(graph)
    assert caught.value.details["limit"] == "expression_terms"
    assert caught.value.details["actual"] > 1024


def test_a_coefficient_that_only_the_compiler_makes_too_large_is_refused() -> None:
    shape = [expr("mul", 1 << 62, "a"), expr("mul", 1 << 62, "b"), expr("mul", 4, "c")]
    wide = {"node": "cast", "in_var": 0, "target_dtype": "float64", "out_var": 1, "dtype": "float64"}
    stored = {"node": "contiguous", "in_var": 1, "out_var": 2, "dtype": "float64"}
    total = {"node": "reduce_axis", "reduce_op_kind": "sum", "axes": [0, 1, 2], "in_var": 2, "out_var": 3}
    graph = graph_of(
        [placeholder(0, shape, "uint8"), wide, stored, {**total, "dtype": "float64"}],
        [3],
        bounds=dict.fromkeys("abc", (0, 1)),
    )
    with pytest.raises(UnsupportedGraphError, match="coefficient over 2"):
        compiled(graph)


def test_the_algebra_and_the_reader_of_programs_have_one_limit_of_terms() -> None:
    names = [f"s{number}" for number in range(1025)]
    whole = algebra.add(*map(algebra.symbol, names[:1024]))
    assert algebra.from_derived_wire(algebra.to_wire(whole)) == whole
    with pytest.raises(ExprLimitError):
        algebra.from_derived_wire(expr("add", *names))
