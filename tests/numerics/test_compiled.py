"""Every node kind, on every dtype and variant, static and symbolic: compiled code against the reference."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import given, settings

from tensorkiln.dtypes import DType
from tensorkiln.reference import evaluate
from tests.compiled import compiled, program, run, runs_here

from .cases import CHAINS, Case, chain_for, compare, graph_for
from .cases.kinds import KINDS, variants

EXAMPLES = int(os.environ.get("KILN_EXAMPLES", "2"))
TARGETS = ("cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64")
SHAPES = pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])


def check(case: Case) -> None:
    expected = evaluate(case.graph, *case.arrays, **case.symbols)
    compare(run(case.graph, *case.arrays, **case.symbols), expected, case.tolerance)


def name_of(value: object) -> str:
    return str(value) or "-"


def test_the_suite_covers_every_kind_and_dtype() -> None:
    assert len(KINDS) == 44
    assert {dtype for _, dtype, _ in variants()} == set(DType)


@SHAPES
@pytest.mark.parametrize(("kind", "dtype", "op"), variants(), ids=name_of)
def test_a_node_computes_what_the_reference_does(kind: str, dtype: DType, op: str, symbolic: bool) -> None:
    @settings(max_examples=EXAMPLES)
    @given(graph_for(kind, dtype, symbolic, op))
    def computes(case: Case) -> None:
        check(case)

    computes()


def chain_variants() -> Iterator[tuple[str, DType]]:
    for name, chain in CHAINS.items():
        for dtype in chain.dtypes:
            yield name, dtype


@SHAPES
@pytest.mark.parametrize(("name", "dtype"), list(chain_variants()), ids=name_of)
def test_a_network_computes_what_the_reference_does(name: str, dtype: DType, symbolic: bool) -> None:
    @settings(max_examples=EXAMPLES)
    @given(chain_for(name, dtype, symbolic))
    def computes(case: Case) -> None:
        check(case)

    computes()


def target_variants() -> Iterator[tuple[str, DType]]:
    """Each kind on each dtype once; the op of a kind is drawn."""
    yield from dict.fromkeys((kind, dtype) for kind, dtype, _ in variants())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("kind", "dtype"), list(target_variants()), ids=name_of)
def test_an_object_for_every_target(kind: str, dtype: DType, target: str) -> None:
    @settings(max_examples=1)
    @given(graph_for(kind, dtype, symbolic=True))
    def compiles(case: Case) -> None:
        compilation = compiled(case.graph, target)
        if compilation.program.kernels:
            assert compilation.artifacts[str(compilation.program.kernels[0].artifact)][:4] == b"\x7fELF"
        if runs_here(target):
            expected = evaluate(case.graph, *case.arrays, **case.symbols)
            compare(program(compilation)(*case.arrays, **case.symbols), expected, case.tolerance)

    compiles()
