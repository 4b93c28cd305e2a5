"""Canonical names of symbols: the same dims whatever the symbols were called."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from tensorkiln import expr
from tensorkiln.canonical.symbols import canonical_names
from tensorkiln.expr import Dim, symbol
from tests.expr.dims import NAMES, Sample, samples

BOUNDS: dict[str, tuple[int, int]] = dict.fromkeys(NAMES, (0, 9))


def named(dims: list[Dim]) -> list[Dim]:
    """The dims in canonical names."""
    names = canonical_names(dims, BOUNDS)
    assert sorted(names.values()) == ["s0", "s1", "s2"]
    return [expr.substitute(dim, {old: symbol(new) for old, new in names.items()}) for dim in dims]


@given(st.lists(samples(), min_size=1, max_size=3))
def test_renamed_dims_have_the_same_canonical_names(drawn: list[Sample]) -> None:
    dims = [sample.dim for sample in drawn]
    for names in permutations(NAMES):
        renaming = {old: symbol(new) for old, new in zip(NAMES, names, strict=True)}
        assert named([expr.substitute(dim, renaming) for dim in dims]) == named(dims)
