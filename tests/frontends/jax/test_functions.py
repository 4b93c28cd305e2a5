"""Functions of JAX's, loaded without JAX and compiled, give what JAX gave."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, cast

import numpy as np
import pytest

from tensorkiln import Client
from tensorkiln.errors import CallInputError
from tensorkiln.frontends.jax import Exported, JaxModel, JaxProgram, load, read_exported
from tensorkiln.program import Program
from tensorkiln.reference import evaluate
from tests.frontends.here import Here
from tests.frontends.jax.functions import EXPORTED, SYMBOLS, Array, Function, in_dtype
from tests.frontends.jax.nearness import difference
from tests.numerics.cases.turns import EXAMPLES

SENT: Final = 1 if EXAMPLES > 1 else 12
"""Of so many functions one is translated and compiled by a service, which does with each the same as with another."""
COMPILED: Final = 1 if EXAMPLES > 1 else 3
"""Of so many functions one is compiled, and the others are computed by the reference: how they were translated shows in
both."""


def loaded(function: Function, client: Client) -> tuple[Exported, JaxModel]:
    exported = read_exported(function.path.read_bytes())
    shapes = " ".join(dim for aval in exported.in_avals for dim in aval.shape)
    symbols = {name: bounds for name, bounds in SYMBOLS.items() if name in shapes}
    return exported, load(exported, symbols=symbols, client=client)


def typed(arrays: list[Array], dtypes: list[str]) -> list[Array]:
    return [in_dtype(array, dtype) for array, dtype in zip(arrays, dtypes, strict=True)]


def by_reference(model: JaxModel) -> JaxProgram:
    """The function as one that the reference computes."""
    return JaxProgram(cast(Program, partial(evaluate, model.graph)), model.signature)


@pytest.mark.parametrize("place", range(len(EXPORTED)), ids=lambda place: str(EXPORTED[place]))
def test_a_function_of_jax_gives_what_jax_gave(place: int, client: Client) -> None:
    function = EXPORTED[place]
    way = cast(Client, Here()) if place % SENT else client
    exported, model = loaded(function, way)
    program = by_reference(model) if place % COMPILED else model.compile(client=way)
    for given, expected in function.samples():
        arguments = typed(given, [aval.dtype for aval in exported.in_avals])
        results = typed(expected, [aval.dtype for aval in exported.out_avals])
        actual = program.run(arguments)
        assert [difference(*pair) for pair in zip(actual, results, strict=True)] == [""] * len(results)


def test_functions_of_every_family_are_compiled() -> None:
    assert {each.family for each in EXPORTED[::COMPILED]} == {each.family for each in EXPORTED}


@pytest.mark.parametrize("name", ["nnx_attention", "haiku_convolutional", "nnx_gru"])
def test_the_first_arguments_are_bound_as_parameters(name: str, client: Client) -> None:
    function = next(each for each in EXPORTED if each.name == name)
    exported, model = loaded(function, client)
    trees = model.signature.arguments.children[0].children[:-1]
    weights = sum(tree.leaves for tree in trees)
    for given, expected in function.samples():
        source = iter(given)
        bound = model.bind(*(tree.unflatten(source) for tree in trees))
        assert bound.graph.parameter_vars == tuple(bound.model.parameters)
        assert len(bound.graph.parameter_vars) == sum(index < weights for index in exported.kept) > 0
        actual = bound.compile(client=client).run(given[weights:])
        assert [difference(*pair) for pair in zip(actual, expected, strict=True)] == [""] * len(expected)


@pytest.mark.parametrize("arguments", [(1, 2, 3), (np.ones((9, 9), np.float32),), (np.ones(3, np.int32),), ([1],)])
def test_an_argument_that_does_not_fit_is_not_bound(arguments: tuple[Any, ...], client: Client) -> None:
    _, model = loaded(next(each for each in EXPORTED if each.name == "matmul"), client)
    with pytest.raises(CallInputError):
        model.bind(*arguments)


def test_the_files_are_small_and_say_nothing_of_where_they_were_made() -> None:
    texts = {str(function): function.path.read_bytes() for function in EXPORTED}
    assert sum(map(len, texts.values())) < 2_000_000
    assert [name for name, text in texts.items() if b"/tests/" in text or b"/home/" in text] == []
