"""Elements read and put at computed positions, against the interpreter of StableHLO."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tensorkiln.nodes import While

from .modules import module
from .oracle import agree, arguments, graph_of

OF_GATHER = {
    "offset": "offset_dims",
    "collapsed": "collapsed_slice_dims",
    "batch": "operand_batching_dims",
    "listed": "start_indices_batching_dims",
    "map": "start_index_map",
    "vector": "index_vector_dim",
}
OF_SCATTER = {
    "window": "update_window_dims",
    "inserted": "inserted_window_dims",
    "batch": "input_batching_dims",
    "listed": "scatter_indices_batching_dims",
    "map": "scatter_dims_to_operand_dims",
    "vector": "index_vector_dim",
}


def spelled(numbers: str, names: dict[str, str]) -> str:
    """The numbers of dimensions as the dialect spells them."""
    return re.sub(r"[a-z]+", lambda match: names[match[0]], numbers)


GATHERS = {
    "rows of a table": (
        "5x3xf32",
        "4xi32",
        "4x3",
        "offset = [1], collapsed = [0], map = [0], vector = 1",
        "1, 3",
    ),
    "rows, the list first": (
        "5x3xf32",
        "2x4xi32",
        "2x3x4",
        "offset = [1], collapsed = [0], map = [0], vector = 2",
        "1, 3",
    ),
    "columns": (
        "5x3xf32",
        "4x1xi64",
        "5x4",
        "offset = [0], collapsed = [1], map = [1], vector = 1",
        "5, 1",
    ),
    "windows": (
        "5x6xf32",
        "4x2xi32",
        "4x2x3",
        "offset = [1, 2], map = [0, 1], vector = 1",
        "2, 3",
    ),
    "windows, turned": (
        "5x6xf32",
        "2x4xi32",
        "2x4x3",
        "offset = [0, 2], map = [1, 0], vector = 0",
        "2, 3",
    ),
    "points": (
        "5x6x2xf32",
        "4x3x3xi32",
        "4x3",
        "collapsed = [0, 1, 2], map = [0, 1, 2], vector = 2",
        "1, 1, 1",
    ),
    "one window": (
        "5x6xf32",
        "2xi32",
        "2x3",
        "offset = [0, 1], map = [0, 1], vector = 0",
        "2, 3",
    ),
    "batches": (
        "3x5x2xf32",
        "3x4x1xi32",
        "3x4x2",
        "offset = [2], collapsed = [1], batch = [0], listed = [0], map = [1], vector = 2",
        "1, 1, 2",
    ),
    "a whole slice": (
        "5x3xbf16",
        "4x1xui32",
        "4x2x3",
        "offset = [1, 2], map = [0], vector = 1",
        "2, 3",
    ),
}


@pytest.mark.parametrize("name", GATHERS)
def test_a_gather(name: str) -> None:
    x, indices, out, numbers, sizes = GATHERS[name]
    kind = x.rpartition("x")[2]
    text = module(
        [x, indices],
        f"""
        %r0 = "stablehlo.gather"(%a0, %a1) <{{dimension_numbers = #stablehlo.gather<{spelled(numbers, OF_GATHER)}>,
          slice_sizes = array<i64: {sizes}>}}> : (tensor<{x}>, tensor<{indices}>) -> tensor<{out}x{kind}>""",
        f"{out}x{kind}",
    )
    for seed in range(3):
        # Many of them are outside.
        agree(text, arguments(text, seed))


SCATTERS = {
    "rows": (
        "5x3",
        "4x1",
        "4x3",
        "window = [1], inserted = [0], map = [0], vector = 1",
    ),
    "rows, listed twice": (
        "5x3",
        "2x2",
        "2x3x2",
        "window = [1], inserted = [0], map = [0], vector = 2",
    ),
    "columns": (
        "3x5",
        "4",
        "3x4",
        "window = [0], inserted = [1], map = [1], vector = 1",
    ),
    "points": (
        "5x6",
        "4x2",
        "4",
        "inserted = [0, 1], map = [1, 0], vector = 1",
    ),
    "points of the outer axes": (
        "5x4x2",
        "6x2",
        "6x2",
        "window = [1], inserted = [0, 1], map = [0, 1], vector = 1",
    ),
    "windows": (
        "5x6",
        "4x2",
        "4x2x3",
        "window = [1, 2], map = [0, 1], vector = 1",
    ),
    "one window": (
        "5x6",
        "2",
        "2x3",
        "window = [0, 1], map = [0, 1], vector = 0",
    ),
    "batches": (
        "3x5x2",
        "3x4x1",
        "3x4x2",
        "window = [2], inserted = [1], batch = [0], listed = [0], map = [1], vector = 2",
    ),
}


def _scatter(name: str, kind: str, how: str, *, unique: bool = False) -> str:
    x, indices, updates, numbers = SCATTERS[name]
    scalar = f"tensor<{kind}>"
    last = "%z" if how != "put" else "%y"
    line = f"%z = stablehlo.{how} %x, %y : {scalar}" if how != "put" else ""
    return module(
        [f"{x}x{kind}", f"{indices}xi32", f"{updates}x{kind}"],
        f"""
        %r0 = "stablehlo.scatter"(%a0, %a1, %a2) <{{
          scatter_dimension_numbers = #stablehlo.scatter<{spelled(numbers, OF_SCATTER)}>,
          unique_indices = {"true" if unique else "false"}}}> ({{
          ^bb0(%x: {scalar}, %y: {scalar}):
            {line}
            stablehlo.return {last} : {scalar}
          }}) : (tensor<{x}x{kind}>, tensor<{indices}xi32>, tensor<{updates}x{kind}>) -> tensor<{x}x{kind}>""",
        f"{x}x{kind}",
    )


@pytest.mark.parametrize("how", ["add", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("name", SCATTERS)
def test_a_scatter_that_combines(name: str, how: str) -> None:
    text = _scatter(name, "f32", how)
    for seed in range(3):
        x, indices, updates = arguments(text, seed)
        agree(text, [x, indices % 7 - 1, updates], steps=16.0)


@pytest.mark.parametrize("kind", ["i32", "bf16", "ui8", "i1"])
def test_a_scatter_of_other_types(kind: str) -> None:
    text = _scatter("rows", kind, "add")
    agree(text, arguments(text))


@pytest.mark.parametrize("how", ["and", "or"])
def test_a_scatter_of_bools(how: str) -> None:
    text = _scatter("rows", "i1", how)
    x, indices, updates = arguments(text)
    agree(text, [x, indices % 6, updates])


@pytest.mark.parametrize("how", ["put", "subtract", "add"])
@pytest.mark.parametrize("name", SCATTERS)
def test_a_scatter_to_places_of_their_own(name: str, how: str) -> None:
    text = _scatter(name, "f32", how, unique=True)
    x, indices, updates = arguments(text)
    count = indices.size
    if name == "windows":
        indices = np.array([[0, 0], [2, 3], [-1, 4], [3, 0]], np.int32)
    elif indices.ndim > 1 and indices.shape[-1] == 2 and name.startswith("points"):
        indices = np.stack(
            [np.arange(len(indices)) % 4, np.arange(len(indices)) % 3 + np.arange(len(indices)) // 4], 1
        ).astype(np.int32)
    else:
        indices = (np.arange(count) * 3 % 7).reshape(indices.shape).astype(np.int32)
    agree(text, [x, indices, updates])


KNOWN = {
    "a window": ("5x6", "dense<[1, 2]> : tensor<2xi32>", "2x3", "window = [0, 1], map = [0, 1], vector = 0"),
    "a window, the axes exchanged": (
        "5x6",
        "dense<[3, 2]> : tensor<2xi32>",
        "2x3",
        "window = [0, 1], map = [1, 0], vector = 0",
    ),
    "a window of a list": (
        "5x6",
        "dense<[[1, 2]]> : tensor<1x2xi32>",
        "1x2x3",
        "window = [1, 2], map = [0, 1], vector = 1",
    ),
    "a row": ("5x6", "dense<3> : tensor<1xi32>", "6", "window = [0], inserted = [0], map = [0], vector = 0"),
    "a column behind a list": (
        "5x6",
        "dense<5> : tensor<1x1xi64>",
        "5x1",
        "window = [0], inserted = [1], map = [1], vector = 1",
    ),
    "everything": ("5x6", "dense<0> : tensor<2xi32>", "5x6", "window = [0, 1], map = [0, 1], vector = 0"),
}
OUTSIDE = {
    "behind the end": ("5x6", "dense<[4, 2]> : tensor<2xi32>", "2x3", "window = [0, 1], map = [0, 1], vector = 0"),
    "before the start": ("5x6", "dense<[0, -1]> : tensor<2xi32>", "2x3", "window = [0, 1], map = [0, 1], vector = 0"),
}


def _at_known_places(name: str, kind: str, how: str) -> str:
    x, starts, updates, numbers = {**KNOWN, **OUTSIDE}[name]
    scalar, listed = f"tensor<{kind}>", starts.partition(" : ")[2]
    line = f"%z = stablehlo.{how} %x, %y : {scalar}" if how != "put" else ""
    return module(
        [f"{x}x{kind}", f"{updates}x{kind}"],
        f"""
        %c = stablehlo.constant {starts}
        %r0 = "stablehlo.scatter"(%a0, %c, %a1) <{{
          scatter_dimension_numbers = #stablehlo.scatter<{spelled(numbers, OF_SCATTER)}>}}> ({{
          ^bb0(%x: {scalar}, %y: {scalar}):
            {line}
            stablehlo.return {"%y" if how == "put" else "%z"} : {scalar}
          }}) : (tensor<{x}x{kind}>, {listed}, tensor<{updates}x{kind}>) -> tensor<{x}x{kind}>""",
        f"{x}x{kind}",
    )


@pytest.mark.parametrize("how", ["put", "add", "subtract", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("name", KNOWN)
def test_a_scatter_to_a_known_place_needs_no_positions(name: str, how: str) -> None:
    text = _at_known_places(name, "f32", how)
    agree(text, arguments(text))
    assert "scatter" not in {node.node for node in graph_of(text).nodes}


@pytest.mark.parametrize("how", ["put", "add"])
@pytest.mark.parametrize("name", OUTSIDE)
def test_a_scatter_to_a_known_place_outside(name: str, how: str) -> None:
    text = _at_known_places(name, "f32", how)
    agree(text, arguments(text))


@pytest.mark.parametrize("how", ["and", "or", "xor"])
def test_a_scatter_of_bools_to_a_known_place(how: str) -> None:
    text = _at_known_places("a window", "i1", how)
    agree(text, arguments(text))


@pytest.mark.parametrize(("part", "nodes"), [("1x4", {"scatter"}), ("4x4", set[str]())])
def test_a_loop_stores_the_known_part_alone_if_it_is_small(part: str, nodes: set[str]) -> None:
    text = module(
        ["8x4xf32", f"{part}xf32", "i32"],
        f"""
        %start = stablehlo.constant dense<[2, 0]> : tensor<2xi32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %w:2 = stablehlo.while(%i = %zero, %s = %a0) : tensor<i32>, tensor<8x4xf32>
        cond {{
          %1 = stablehlo.compare LT, %i, %a2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %1 : tensor<i1>
        }} do {{
          %2 = "stablehlo.scatter"(%s, %start, %a1) <{{
            scatter_dimension_numbers = #stablehlo.scatter<
              update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]>}}> ({{
            ^bb0(%x: tensor<f32>, %y: tensor<f32>):
              %z = stablehlo.add %x, %y : tensor<f32>
              stablehlo.return %z : tensor<f32>
            }}) : (tensor<8x4xf32>, tensor<2xi32>, tensor<{part}xf32>) -> tensor<8x4xf32>
          %3 = stablehlo.add %i, %one : tensor<i32>
          stablehlo.return %3, %2 : tensor<i32>, tensor<8x4xf32>
        }}
        %r0 = stablehlo.negate %w#1 : tensor<8x4xf32>""",
        "8x4xf32",
    )
    x, update, _ = arguments(text)
    agree(text, [x, update, np.asarray(3, np.int32)])
    (loop,) = (node for node in graph_of(text).nodes if isinstance(node, While))
    assert {node.node for node in loop.body.nodes} & {"scatter"} == nodes


@pytest.mark.parametrize("kind", ["i32", "i64", "ui32"])
def test_a_slice_from_a_computed_position(kind: str) -> None:
    text = module(
        ["5x6xf32", kind, kind, "2x3xf32", "5x2xf32"],
        f"""
        %c = stablehlo.constant dense<4> : tensor<{kind}>
        %r0 = stablehlo.dynamic_slice %a0, %a1, %a2, sizes = [2, 3]
          : (tensor<5x6xf32>, tensor<{kind}>, tensor<{kind}>) -> tensor<2x3xf32>
        %r1 = stablehlo.dynamic_slice %a0, %c, %a2, sizes = [3, 6]
          : (tensor<5x6xf32>, tensor<{kind}>, tensor<{kind}>) -> tensor<3x6xf32>
        %r2 = stablehlo.dynamic_update_slice %a0, %a3, %a1, %a2
          : (tensor<5x6xf32>, tensor<2x3xf32>, tensor<{kind}>, tensor<{kind}>) -> tensor<5x6xf32>
        %r3 = stablehlo.dynamic_update_slice %a0, %a3, %c, %a2
          : (tensor<5x6xf32>, tensor<2x3xf32>, tensor<{kind}>, tensor<{kind}>) -> tensor<5x6xf32>
        %r4 = stablehlo.dynamic_update_slice %a0, %a4, %a1, %c
          : (tensor<5x6xf32>, tensor<5x2xf32>, tensor<{kind}>, tensor<{kind}>) -> tensor<5x6xf32>
        %r5 = stablehlo.dynamic_update_slice %a0, %a0, %a1, %c
          : (tensor<5x6xf32>, tensor<5x6xf32>, tensor<{kind}>, tensor<{kind}>) -> tensor<5x6xf32>""",
        "2x3xf32",
        "3x6xf32",
        *["5x6xf32"] * 4,
    )
    for seed in range(6):
        agree(text, arguments(text, seed))
