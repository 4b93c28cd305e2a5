"""Addresses of chains of views: judged as exactly as enumeration would."""

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorkiln.errors import InvalidGraphError
from tensorkiln.graph import Graph
from tests.contract.test_inferred_types import B, F, node
from tests.contract.wire import Wire, accept, around, refuse

View = dict[str, Any]


def view_of(views: list[View], kind: str = "view") -> Wire:
    return node(kind, F, in_var=0, shape_tracker={"views": views, "shape": views[-1]["shape"]})


def addressed(views: list[View], size: int) -> bool:
    """Whether every unmasked address of every view is inside of what it addresses, one index at a time."""
    positions = list(itertools.product(*(range(extent) for extent in views[-1]["shape"])))
    for view, inner in zip(reversed(views), [*reversed(views[:-1]), None], strict=True):
        limit, reached = size, list[tuple[int, ...]]()
        if inner is not None:
            limit = 1
            for extent in inner["shape"]:
                limit *= extent
        for index in positions:
            mask = view["mask"] or [(0, extent) for extent in view["shape"]]
            if not all(begin <= at < end for at, (begin, end) in zip(index, mask, strict=True)):
                continue
            flat = view["offset"] + sum(at * stride for at, stride in zip(index, view["strides"], strict=True))
            if not 0 <= flat < limit:
                return False
            if inner is not None:
                unraveled: list[int] = []
                for extent in reversed(inner["shape"]):
                    flat, at = divmod(flat, extent)
                    unraveled.insert(0, at)
                reached.append(tuple(unraveled))
        positions = reached
    return True


@st.composite
def views(draw: st.DrawFn) -> View:
    shape = draw(st.lists(st.integers(0, 3), max_size=2))
    strides = [draw(st.integers(-3, 3)) for _ in shape]
    edges = st.tuples(st.integers(-1, 4), st.integers(-1, 4))
    mask = draw(st.none() | st.just([list(draw(edges)) for _ in shape]))
    return {"shape": shape, "strides": strides, "offset": draw(st.integers(-2, 6)), "mask": mask}


@settings(max_examples=300, deadline=None)
@given(st.lists(views(), min_size=1, max_size=3), st.integers(0, 9))
def test_a_static_chain_is_accepted_exactly_if_every_address_is_inside(chain: list[View], size: int) -> None:
    graph = around(view_of(chain), [(F, [size])])
    if addressed(chain, size):
        accept(graph)
    else:
        with pytest.raises(InvalidGraphError):
            Graph.model_validate(graph)


def test_a_mask_of_a_pad_lets_the_offset_be_negative() -> None:
    padded: View = {"shape": [7], "strides": [1], "offset": -2, "mask": [[2, 5]]}
    accept(around(view_of([padded]), [(F, [3])]))
    symbolic: View = {
        "shape": [{"op": "add", "args": ["n", 4]}], "strides": [1], "offset": -2,
        "mask": [[2, {"op": "add", "args": ["n", 2]}]],
    }  # fmt: skip
    assert accept(around(view_of([symbolic]), [(F, ["n"])], {"n": (0, 9)})).constraints == ()


def test_an_inner_view_is_judged_by_what_the_outer_ones_reach() -> None:
    reaches_too_far: View = {"shape": [8], "strides": [1], "offset": 0, "mask": None}
    first_half: View = {"shape": [4], "strides": [1], "offset": 0, "mask": None}
    accept(around(view_of([reaches_too_far, first_half]), [(F, [4])]))
    refuse(around(view_of([reaches_too_far, first_half]), [(F, [3])]), pointer="/nodes/1/shape_tracker/views/0")


@pytest.mark.parametrize(("extent", "stride"), [("n", 1), (2, 2**61), (1 << 21, 1)])
def test_an_inner_view_beyond_proof_and_enumeration_is_not_supported(extent: Any, stride: int) -> None:
    inner: View = {"shape": [1 << 22], "strides": [stride], "offset": 0, "mask": None}
    outer: View = {"shape": [extent], "strides": [1], "offset": 0, "mask": None}
    refuse(around(view_of([inner, outer]), [(F, [4])], {"n": (1, 4)}), "graph.unsupported")


def test_valid_loads_nothing_so_its_addresses_may_be_anywhere() -> None:
    far: View = {"shape": [3], "strides": [100], "offset": -1000, "mask": [[1, 2]]}
    accept(around(view_of([far], "valid"), [(F, [3])]))
    mask = {**view_of([far], "valid"), "dtype": B}
    assert accept(around(mask, [(B, [])])).types[100].dtype == "bool"
