"""Every node kind and every dtype for each kind of CPU: an object, and what it computes where it can run."""

from __future__ import annotations

from tensorkiln.dtypes import DType
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import compiled, runs_here

from .cases import Case, compare, graph_for
from .cases.drawn import for_each_of, parametrize
from .cases.kinds import KINDS_AND_DTYPES
from .cases.turns import of_kind

TARGETS = ("cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64")
TURNS = (*TARGETS, *("" for _ in TARGETS))
"""As many dtypes of a kind are left to its others."""
OBJECTS = [(*each, target) for each in KINDS_AND_DTYPES for target in of_kind(TURNS, len(TURNS), *each) if target]


def test_every_kind_and_dtype_is_compiled_for_every_target() -> None:
    for place in (0, 1):
        assert {(each[place], each[2]) for each in OBJECTS} == {
            (each[place], target) for each in KINDS_AND_DTYPES for target in TARGETS
        }


@parametrize(("kind", "dtype", "target"), OBJECTS, drawn=2)
def test_an_object_for_every_target(kind: str, dtype: DType, target: str) -> None:
    def compiles(case: Case) -> None:
        compilation = compiled(case.graph, target)
        if compilation.program.kernels:
            assert compilation.artifacts[str(compilation.program.kernels[0].artifact)][:4] == b"\x7fELF"
        if runs_here(target):
            expected = evaluate(case.graph, *case.arrays, **case.symbols)
            compare(checked.run(compilation, *case.arrays, **case.symbols), expected, case.tolerance)

    for_each_of(1, graph_for(kind, dtype, symbolic=True), compiles)
