"""Random dims with what they compute: hypothesis strategies that build a dim beside a plain Python function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from tensorkiln import expr
from tensorkiln.expr import Dim

NAMES = ("a", "b", "c")
RANGES = {"a": (-3, 4), "b": (0, 5), "c": (1, 3)}
"""Small enough to try every value of every symbol."""


@dataclass(frozen=True)
class Sample:
    """A dim, and its value computed without the algebra; the function raises ZeroDivisionError where it has none."""

    dim: Dim
    value: Callable[[Mapping[str, int]], int]


def truncated(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _constant(number: int) -> Sample:
    return Sample(number, lambda _: number)


def _symbol(name: str) -> Sample:
    return Sample(expr.symbol(name), lambda env: env[name])


def _sum(left: Sample, right: Sample) -> Sample:
    return Sample(expr.add(left.dim, right.dim), lambda env: left.value(env) + right.value(env))


def _difference(left: Sample, right: Sample) -> Sample:
    return Sample(expr.sub(left.dim, right.dim), lambda env: left.value(env) - right.value(env))


def _product(left: Sample, right: Sample) -> Sample:
    return Sample(expr.mul(left.dim, right.dim), lambda env: left.value(env) * right.value(env))


def _maximum(left: Sample, right: Sample) -> Sample:
    return Sample(expr.maximum(left.dim, right.dim), lambda env: max(left.value(env), right.value(env)))


def _minimum(left: Sample, right: Sample) -> Sample:
    return Sample(expr.minimum(left.dim, right.dim), lambda env: min(left.value(env), right.value(env)))


def _floordiv(left: Sample, right: Sample) -> Sample:
    return Sample(expr.floordiv(left.dim, right.dim), lambda env: left.value(env) // right.value(env))


def _floormod(left: Sample, right: Sample) -> Sample:
    return Sample(expr.floormod(left.dim, right.dim), lambda env: left.value(env) % right.value(env))


def _idiv(left: Sample, right: Sample) -> Sample:
    return Sample(expr.idiv(left.dim, right.dim), lambda env: truncated(left.value(env), right.value(env)))


def _mod(left: Sample, right: Sample) -> Sample:
    def value(env: Mapping[str, int]) -> int:
        dividend, divisor = left.value(env), right.value(env)
        return dividend - divisor * truncated(dividend, divisor)

    return Sample(expr.mod(left.dim, right.dim), value)


POLYNOMIAL = (_sum, _difference, _product)
DIVISIONS = (_floordiv, _floormod, _idiv, _mod)
ANY = (*POLYNOMIAL, _maximum, _minimum, *DIVISIONS)
LEAVES = st.one_of(st.integers(-6, 6).map(_constant), st.sampled_from(NAMES).map(_symbol))


@st.composite
def samples(draw: st.DrawFn, size: int = 6) -> Sample:
    """A dim of up to `size` operations."""
    known = draw(st.lists(LEAVES, min_size=2, max_size=4))
    for _ in range(draw(st.integers(0, size))):
        build = draw(st.sampled_from(ANY))
        left, right = draw(st.sampled_from(known)), draw(st.sampled_from(known))
        if build in DIVISIONS and right.dim == 0:
            continue
        known.append(build(left, right))
    return known[-1]


def settings_of_symbols() -> list[dict[str, int]]:
    """Every combination of the symbols' values."""
    spans = [range(low, high + 1) for low, high in RANGES.values()]
    return [{"a": a, "b": b, "c": c} for a in spans[0] for b in spans[1] for c in spans[2]]


EVERY_SETTING = settings_of_symbols()
