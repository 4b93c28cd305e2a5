"""Functions of tinygrad's, compiled and by the reference, beside what tinygrad gave for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tensorkiln.frontends.tinygrad import OPERATIONS, model
from tensorkiln.frontends.tinygrad.arrays import array_of
from tensorkiln.reference import evaluate
from tests.compiled import run
from tests.frontends.jax.nearness import difference

from .corpus import FAMILIES, called, model_of, recorded
from .recipe import Array, tinygrad

COMPILED = ("reductions", "networks")
"""Families whose graphs are compiled; what single elements and movement compile to is tested by tests/numerics."""


def whole(family: str) -> tuple[Any, tuple[Array, ...], list[str]]:
    """One graph of a family's functions, its arguments, and which function each result is of."""
    inputs: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    arrays: dict[str, Array] = {}
    for name, recipe in FAMILIES[family].items():
        given, found = called(family, name)
        inputs |= {f"{name}/{each}": tensor for each, tensor in given.items()}
        arrays |= {f"{name}/{each}": array for each, array in zip(given, recipe.arrays, strict=True)}
        outputs |= {f"{name}/{place}": tensor for place, tensor in enumerate(found)}
    made = model(outputs, inputs)
    return made.graph, made.arguments(**arrays), [name.partition("/")[0] for name in outputs]


def wrong(family: str, names: Sequence[str], found: Sequence[Array]) -> Iterator[str]:
    """What differs from tinygrad's results."""
    expected = [(name, each) for name in FAMILIES[family] for each in recorded_of(family, name)]
    assert [name for name, _ in expected] == list(names)
    for (name, theirs), ours in zip(expected, found, strict=True):
        if problem := difference(ours, theirs):
            yield f"{name}: {problem}"


_RECORDED = recorded()


def recorded_of(family: str, name: str) -> list[Array]:
    return _RECORDED[f"{family}/{name}"]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_of_functions_gives_what_tinygrad_gives(family: str) -> None:
    graph, arguments, names = whole(family)
    assert list(wrong(family, names, evaluate(graph, *arguments))) == []
    if family in COMPILED:
        assert list(wrong(family, names, run(graph, *arguments))) == []


@pytest.mark.parametrize(("family", "name"), [("elements", "odd_trunc"), ("networks", "linear"), ("drawn", "rand")])
def test_the_recorded_graphs_are_those_of_this_tinygrad(family: str, name: str) -> None:
    for each, expected in zip(called(family, name)[1], recorded_of(family, name), strict=True):
        assert difference(array_of(each), expected) == ""


def test_truncation_keeps_the_sign_of_zero() -> None:
    recipe = FAMILIES["elements"]["odd_trunc"]
    (found,) = evaluate(model_of("elements", "odd_trunc").graph, *recipe.arrays)
    assert np.signbit(found).tolist() == np.signbit(np.trunc(recipe.arrays[0])).tolist()


DIRECT: dict[str, Any] = {
    "SUB": lambda a, b: a - b,
    "CMOD": np.fmod,
    "CMPEQ": lambda a, b: a == b,
    "NEG": lambda a: -a,
    "FDIV": lambda a, b: a / b,
    "MULACC": lambda a, b, c: a * b + c,
    "COPY": lambda a: a,
    "CONTIGUOUS_BACKWARD": lambda a: a,
}
"""What operations mean that no method of tensors writes, or none of the functions has."""


@pytest.mark.parametrize("operation", DIRECT)
def test_an_operation_that_only_graphs_have_means_what_its_name_says(operation: str) -> None:
    kind = np.float32 if operation == "FDIV" else np.int32
    arrays = [np.array(each, kind) for each in ([7, -7, 7, -7], [2, 2, -2, -7], [1, 2, 3, 4])]
    tensors = [tinygrad().Tensor(each).realize() for each in arrays]
    count = DIRECT[operation].__code__.co_argcount if hasattr(DIRECT[operation], "__code__") else 2
    argument = "PYTHON:1" if operation == "COPY" else None
    first, *others = (each.uop for each in tensors[:count])
    made = tinygrad().Tensor(first.alu(getattr(tinygrad("tinygrad.uop").Ops, operation), *others, arg=argument))
    (found,) = evaluate(model(made, {f"x{place}": each for place, each in enumerate(tensors)}).graph, *arrays)
    assert found.tolist() == DIRECT[operation](*arrays[:count]).tolist()


def test_every_operation_is_tested() -> None:
    seen: set[str] = set()
    for family, recipes in FAMILIES.items():
        for name in recipes:
            for tensor in called(family, name)[1]:
                seen |= {each.op.name for each in tensor.uop.toposort()}
    assert OPERATIONS.keys() - seen == DIRECT.keys()
