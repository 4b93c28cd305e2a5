"""Whatever is wrong with a graph, the error is one of ours."""

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from tensorkiln.canonical import canonicalize
from tensorkiln.errors import InvalidGraphError, LimitExceededError, UnsupportedGraphError
from tensorkiln.graph import Graph
from tests.contract.random_graphs import random_graph
from tests.contract.test_inferred_types import CASES, N
from tests.contract.wire import Wire, around

JUNK: list[Any] = [
    *(None, True, False, 0, 1, 2, -1, 3, 100, 2**31, 2**62, 2**63 - 1, -(2**63), 2**64, 10**40, 0.5, 1e300),
    *("", "n", "m", "inf", "bool", "float32", "unit", "int64", "uint8", "cpu", "CUDA:1"),
    *([], [0], [1, 2], [[0, 1]], [0, 0, None], {}),
    *({"op": op, "args": args} for op, args in [("add", ["n", 1]), ("floordiv", [1, "n"]), ("max", ["n", -1])]),
]


def spots(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value, as container and key."""
    items: Any = cast("dict[str, Any]", value).items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield value, key
        if isinstance(item, dict | list):
            yield from spots(item)


def mutated(random: Random, graph: Wire) -> Wire:
    graph = copy.deepcopy(graph)
    for _ in range(random.randint(1, 3)):
        container, key = random.choice(list(spots(graph)))
        match random.randrange(8):
            case 0 if isinstance(container, dict):
                del container[key]
            case 1 if isinstance(container, list):
                container.append(container[key])
            case 2:
                other, there = random.choice(list(spots(graph)))
                container[key] = copy.deepcopy(other[there])
            case _:
                container[key] = copy.deepcopy(random.choice(JUNK))
    return graph


@settings(max_examples=1000, deadline=None)
@given(st.integers(0, 2**32))
def test_a_broken_graph_is_refused_with_an_error_of_ours_or_has_a_canonical_form(seed: int) -> None:
    random = Random(seed)
    tested, inputs, _ = random.choice(CASES)
    graph = mutated(random, random_graph(random, 8) if random.randrange(3) == 0 else around(tested, inputs, N))
    text = json.dumps(graph)
    try:
        found = Graph.model_validate_json(text)
    except (InvalidGraphError, UnsupportedGraphError, LimitExceededError):
        return
    canonical = canonicalize(found).graph
    assert canonicalize(canonical).graph == canonical
    assert Graph.model_validate_json(canonical.to_json()) == canonical
