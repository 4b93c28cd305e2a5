"""Calls, branches and loops against the interpreter of StableHLO."""

from __future__ import annotations

import pytest

from stablehlo import control
from stablehlo.translate import translate
from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.nodes import While

from .modules import module
from .oracle import agree, arguments, graph_of

CALLED = """
func.func private @twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0, %x : tensor<4xf32>, tensor<4xf32>
}"""


def test_a_call_is_inlined() -> None:
    body = """
    %0:2 = func.call @twice(%a0) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %1:2 = func.call @twice(%0#0) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %r0 = stablehlo.subtract %1#0, %0#1 : tensor<4xf32>"""
    text = module(["4xf32"], body, "4xf32", more=CALLED)
    agree(text, arguments(text))


def test_a_composite_is_its_decomposition() -> None:
    body = """
    %r0, %r1 = stablehlo.composite "my.twice" %a0 {decomposition = @twice, version = 1 : i32}
      : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)"""
    text = module(["4xf32"], body, "4xf32", "4xf32", more=CALLED)
    (x,) = arguments(text)
    assert len(graph_of(text).output_vars) == 2
    plain = module(
        ["4xf32"],
        "%r0, %r1 = func.call @twice(%a0) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)",
        "4xf32",
        "4xf32",
        more=CALLED,
    )
    agree(plain, [x])


LOOP = """
    %n = stablehlo.constant dense<{turns}> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %w:3 = stablehlo.while(%i = %zero, %x = %a0, %s = %a1) : tensor<i32>, tensor<4xf32>, tensor<6x4xf32>
    cond {{
      %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }} do {{
      %2 = stablehlo.dynamic_slice %a1, %i, %zero, sizes = [1, 4]
        : (tensor<6x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
      %3 = stablehlo.reshape %2 : (tensor<1x4xf32>) -> tensor<4xf32>
      %4 = stablehlo.add %x, %3 : tensor<4xf32>
      %5 = stablehlo.reshape %4 : (tensor<4xf32>) -> tensor<1x4xf32>
      %6 = stablehlo.dynamic_update_slice %s, %5, %i, %zero
        : (tensor<6x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<6x4xf32>
      %7 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %7, %4, %6 : tensor<i32>, tensor<4xf32>, tensor<6x4xf32>
    }}
    %r0 = stablehlo.negate %w#1 : tensor<4xf32>
    %r1 = stablehlo.abs %w#2 : tensor<6x4xf32>"""


@pytest.mark.parametrize("turns", [0, 1, 6])
def test_a_loop_of_known_turns_is_unrolled(turns: int) -> None:
    text = module(["4xf32", "6x4xf32"], LOOP.format(turns=turns), "4xf32", "6x4xf32")
    agree(text, arguments(text))


def test_a_loop_of_many_turns_is_a_node() -> None:
    text = module(["4xf32", "6x4xf32"], LOOP.format(turns=1001), "4xf32", "6x4xf32")
    agree(text, arguments(text))
    (loop,) = (node for node in graph_of(text).nodes if isinstance(node, While))
    assert len(loop.output_vars) == 3, "what every turn reads alone is not carried"


COUNTED = """
    %limit = stablehlo.constant dense<{limit}> : tensor<{kind}>
    %step = stablehlo.constant dense<{step}> : tensor<{kind}>
    %start = stablehlo.constant dense<{start}> : tensor<{kind}>
    %w:4 = stablehlo.while(%x = %a0, %i = %start, %k = %a1, %n = %start)
      : tensor<4xi32>, tensor<{kind}>, tensor<4xi32>, tensor<{kind}>
    cond {{
      %1 = stablehlo.compare LT, %i, %limit : (tensor<{kind}>, tensor<{kind}>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }} do {{
      %2 = stablehlo.convert %i : (tensor<{kind}>) -> tensor<i32>
      %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<4xi32>
      %4 = stablehlo.multiply %x, %k : tensor<4xi32>
      %5 = stablehlo.xor %4, %3 : tensor<4xi32>
      %6 = stablehlo.add {added} : tensor<{kind}>
      stablehlo.return %5, %6, %k, %i : tensor<4xi32>, tensor<{kind}>, tensor<4xi32>, tensor<{kind}>
    }}
    %r0 = stablehlo.add %w#0, %w#2 : tensor<4xi32>
    %r1 = stablehlo.add %w#1, %w#3 : tensor<{kind}>"""


def test_a_loop_that_only_counts_takes_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unrolled, it has no nodes."""
    most = control.MAX_TURNS // 8
    monkeypatch.setattr(control, "MAX_TURNS", most)
    body = COUNTED.format(kind="i32", start=0, step=1, limit=most * 3, added="%i, %step").replace(
        "%x = %a0", "%x = %k0"
    )
    text = module(
        ["4xi32"], "%k0 = stablehlo.constant dense<3> : tensor<4xi32>" + body.replace("%a1", "%k0"), "4xi32", "i32"
    )
    agree(text, arguments(text))
    assert len(graph_of(text).nodes) < 100


@pytest.mark.parametrize(
    ("kind", "start", "step", "limit", "added"),
    [
        ("i32", 0, 1, 900, "%i, %step"),
        ("i32", -7, 3, 2400, "%step, %i"),
        ("i32", 0, 1, control.MAX_TURNS + 1, "%i, %step"),
        ("ui64", 5, 2, 1999, "%i, %step"),
        ("i64", 0, 2, 1000, "%i, %i"),
    ],
    ids=["by-ones", "by-threes", "many", "unsigned", "doubling"],
)
def test_a_loop_that_counts_takes_its_turns(kind: str, start: int, step: int, limit: int, added: str) -> None:
    """Several turns are one of the node, and the first ones come before it if their number is not a multiple."""
    start = 1 if added == "%i, %i" else start
    text = module(
        ["4xi32", "4xi32"],
        COUNTED.format(kind=kind, start=start, step=step, limit=limit, added=added),
        "4xi32",
        kind,
    )
    agree(text, arguments(text))


def test_a_loop_whose_counter_changes_in_another_way_takes_its_turns() -> None:
    """It counts by ones, but from time to time starts from elsewhere, which its first turns do not show."""
    body = COUNTED.format(kind="i32", start=0, step=1, limit=500, added="%i, %step").replace(
        "stablehlo.return %5, %6, %k, %i",
        """%from = stablehlo.constant dense<400> : tensor<i32>
      %to = stablehlo.constant dense<407> : tensor<i32>
      %7 = stablehlo.compare EQ, %6, %from : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %8 = stablehlo.select %7, %to, %6 : tensor<i1>, tensor<i32>
      stablehlo.return %5, %8, %k, %i""",
    )
    text = module(["4xi32", "4xi32"], body, "4xi32", "i32")
    agree(text, arguments(text))


COMPUTED = """
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %half = stablehlo.constant dense<0.5> : tensor<4xf32>
    %w:4 = stablehlo.while(%i = %zero, %x = %a1, %y = %a2, %k = %a0)
      : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>
    cond {
      %1 = stablehlo.compare LT, %i, %k, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %2 = stablehlo.compare LT, %i, %a3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %3 = stablehlo.and %1, %2 : tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %4 = stablehlo.multiply %x, %half : tensor<4xf32>
      %v:2 = stablehlo.while(%j = %zero, %z = %4) : tensor<i32>, tensor<4xf32>
      cond {
        %5 = stablehlo.compare LT, %j, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %5 : tensor<i1>
      } do {
        %6 = stablehlo.add %z, %a2 : tensor<4xf32>
        %7 = stablehlo.add %j, %one : tensor<i32>
        stablehlo.return %7, %6 : tensor<i32>, tensor<4xf32>
      }
      %8 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %8, %y, %v#1, %k : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>
    }
    %r0 = stablehlo.add %w#1, %w#2 : tensor<4xf32>
    %r1 = stablehlo.add %w#0, %w#3 : tensor<i32>"""


@pytest.mark.parametrize(("turns", "most"), [(0, 9), (1, 9), (4, 9), (9, 3)])
def test_a_loop_whose_turns_are_computed_is_a_node(turns: int, most: int) -> None:
    """Loops inside of it read what is around both; what is never changed is only read."""
    text = module(["i32", "4xf32", "4xf32", "i32"], COMPUTED, "4xf32", "i32")
    count, x, y, limit = arguments(text)
    agree(text, [count * 0 + turns, x, y, limit * 0 + most])
    (loop,) = (node for node in graph_of(text).nodes if isinstance(node, While))
    assert (len(loop.in_vars), len(loop.output_vars)) == (6, 3)


def test_a_loop_that_begins_as_if_it_were_known_is_a_node_all_the_same() -> None:
    """Its first turns are unrolled in vain."""
    body = """
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %w:2 = stablehlo.while(%i = %zero, %x = %zero) : tensor<i32>, tensor<i32>
    cond {
      %1 = stablehlo.compare LT, %x, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %2 = stablehlo.add %i, %one : tensor<i32>
      %3 = stablehlo.subtract %2, %a0 : tensor<i32>
      stablehlo.return %2, %3 : tensor<i32>, tensor<i32>
    }
    %r0 = stablehlo.add %w#0, %w#1 : tensor<i32>"""
    text = module(["i32"], body, "i32")
    (x,) = arguments(text)
    agree(text, [x * 0 + 5])


def test_a_loop_of_complex_numbers_carries_their_parts() -> None:
    body = """
    %z = stablehlo.complex %a0, %a1 : tensor<4xcomplex<f32>>
    %least = stablehlo.constant dense<0.0> : tensor<f32>
    %big = stablehlo.constant dense<90.0> : tensor<f32>
    %w = stablehlo.while(%x = %z) : tensor<4xcomplex<f32>>
    cond {
      %1 = stablehlo.real %x : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
      %2 = stablehlo.reduce(%1 init: %least) applies stablehlo.maximum across dimensions = [0]
        : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      %3 = stablehlo.compare LT, %2, %big, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %4 = stablehlo.add %x, %x : tensor<4xcomplex<f32>>
      stablehlo.return %4 : tensor<4xcomplex<f32>>
    }
    %r0 = stablehlo.real %w : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    %r1 = stablehlo.imag %w : (tensor<4xcomplex<f32>>) -> tensor<4xf32>"""
    text = module(["4xf32", "4xf32"], body, "4xf32", "4xf32")
    x, y = arguments(text)
    agree(text, [abs(x) + 1, y])


def test_a_loop_that_carries_another_shape_is_refused_by_name() -> None:
    body = """
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r0 = stablehlo.while(%x = %a0) : tensor<?xi32>
    cond {
      %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<?xi32>, tensor<i32>) -> tensor<i32>
      %2 = stablehlo.compare LT, %1, %a1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %3 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
      stablehlo.return %3 : tensor<?xi32>
    } loc("model.py":12:3)"""
    with pytest.raises(UnsupportedGraphError) as caught:
        translate(module(["?xi32", "i32"], body, "?xi32"), {"d0_0": (1, 9)})
    said = "stablehlo.while at model.py:12:3: a value that the loop carries has the shape (d0_0) before a turn"
    assert caught.value.message.startswith(said)


BRANCHES = """
    %r0, %r1 = "stablehlo.case"({index}) ({{
      %0 = stablehlo.negate %a1 : tensor<4xf32>
      %t = stablehlo.constant dense<1> : tensor<i32>
      stablehlo.return %0, %t : tensor<4xf32>, tensor<i32>
    }}, {{
      %t = stablehlo.constant dense<2> : tensor<i32>
      stablehlo.return %a1, %t : tensor<4xf32>, tensor<i32>
    }}, {{
      %0 = stablehlo.add %a1, %a1 : tensor<4xf32>
      %t = stablehlo.constant dense<3> : tensor<i32>
      stablehlo.return %0, %t : tensor<4xf32>, tensor<i32>
    }}) : (tensor<i32>) -> (tensor<4xf32>, tensor<i32>)"""


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 5])
def test_a_branch_by_index(index: int) -> None:
    text = module(["i32", "4xf32"], BRANCHES.format(index="%a0"), "4xf32", "i32")
    place, x = arguments(text)
    agree(text, [place * 0 + index, x])
    known = f"%k = stablehlo.constant dense<{index}> : tensor<i32>\n" + BRANCHES.format(index="%k")
    text = module(["i32", "4xf32"], known, "4xf32", "i32")
    agree(text, [place, x])


@pytest.mark.parametrize("condition", [True, False])
def test_a_branch_by_condition(condition: bool) -> None:
    body = """
    %r0 = "stablehlo.if"(%a0) ({
      %0 = stablehlo.negate %a1 : tensor<4xf32>
      stablehlo.return %0 : tensor<4xf32>
    }, {
      %0 = stablehlo.constant dense<2.0> : tensor<4xf32>
      stablehlo.return %0 : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>"""
    text = module(["i1", "4xf32"], body, "4xf32")
    flag, x = arguments(text)
    agree(text, [flag & condition | condition, x])


def test_branches_of_different_shapes_are_refused_where_one_is_chosen_at_run_time() -> None:
    body = """
    %r0 = "stablehlo.if"(%a0) ({
      stablehlo.return %a1 : tensor<?xf32>
    }, {
      stablehlo.return %a2 : tensor<?xf32>
    }) : (tensor<i1>) -> tensor<?xf32>"""
    text = module(["i1", "?xf32", "?xf32"], body, "?xf32")
    with pytest.raises(UnsupportedGraphError, match=r"its branches have different shapes, \(d1_0\) and \(1\)"):
        translate(text, {"1.0": (1, 8), "2.0": (1, 1)})
    assert translate(text, {"1.0": (3, 3), "2.0": (3, 3)}).document["nodes"]
    index = module(
        ["i32", "?xf32", "?xf32"], body.replace("stablehlo.if", "stablehlo.case").replace("i1", "i32"), "?xf32"
    )
    with pytest.raises(UnsupportedGraphError, match="its branches have different shapes"):
        translate(index, {"1.0": (1, 8), "2.0": (1, 8)})
