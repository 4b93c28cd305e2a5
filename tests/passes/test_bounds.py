"""The proof that kernels stay inside of their memory: what it knows, what it proves, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tensorkiln import expr
from tensorkiln.build import Builder, conv2d, flip, gather, gelu, pad, relu, scatter, softmax
from tensorkiln.expr import floordiv, minimum, symbol
from tensorkiln.graph import Graph
from tests.bounds import Realised, accesses
from tests.bounds.elimination import holds, quotients
from tests.bounds.facts import Facts
from tests.bounds.lemmas import Lemmas
from tests.bounds.scope import Scope
from tests.bounds.walk import Access
from tests.passes.modules import output, realised

TARGETS = ("cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4", "cuda:sm_80")
m, n = symbol("m"), symbol("n")
SCOPE = Scope({"m": (1, 512), "n": (1, 512)})


def test_facts_are_followed_from_the_tail_of_a_tile_to_its_end() -> None:
    facts = Facts(SCOPE.ranges)
    tile = facts.new([0], [floordiv(n + 31, 32) - 1])
    length = facts.new([0], [32, n - 32 * tile])
    place = facts.new([0], [length - 1])
    assert holds(facts, n - 1 - 32 * tile - place, SCOPE)
    assert not holds(facts, n - 2 - 32 * tile - place, SCOPE)


def test_facts_know_the_row_and_column_of_a_flat_index() -> None:
    facts = Facts(SCOPE.ranges)
    flat = facts.new([0], [m * n - 1])
    row, column = facts.new([0], quotients(facts, flat, n, SCOPE)), facts.new([0], [n - 1])
    assert holds(facts, m * n - 1 - n * row - column, SCOPE)
    assert not holds(facts, m * n - 2 - n * row - column, SCOPE)


def test_a_remainder_is_combined_with_its_quotient() -> None:
    facts = Facts(SCOPE.ranges)
    flat = facts.new([0], [m * n - 1])
    # No more is known of the quotient: the two are the index that was divided.
    row = facts.new([0])
    column = facts.new([0], [n - 1], flat - n * row)
    assert holds(facts, m * n - 1 - n * row - column, SCOPE)
    assert not holds(facts, m * n - 2 - n * row - column, SCOPE)


def test_a_minimum_that_is_taken_off_is_not_above_either_part() -> None:
    facts = Facts(SCOPE.ranges)
    row = facts.new([0], [minimum(m, 222) - 1])
    assert holds(facts, m * n - n * row - n, SCOPE)
    assert holds(facts, 222 * n - n * row - n, SCOPE)
    assert not holds(facts, 221 * n - n * row - n, SCOPE)


def test_a_count_of_whole_vectors_is_not_negative_where_there_are_elements() -> None:
    facts = Facts(SCOPE.ranges)
    elements = m * n - 16 * n
    scope = SCOPE.where([m - 16, elements - 1])
    assert holds(facts, floordiv(m * n, 2) - 8 * n, scope)
    assert not holds(facts, floordiv(m * n, 2) - 8 * n - 1, scope)


def test_a_difference_of_products_has_the_sign_of_what_is_given() -> None:
    facts = Facts(SCOPE.ranges)
    row = facts.new([0])
    assert holds(facts, row * (floordiv(n + 1, 2) - 3), SCOPE.where([floordiv(n + 1, 2) - 3]))
    assert not holds(facts, row * (floordiv(n + 1, 2) - 3), SCOPE)


def test_a_lemma_holds_in_its_scope_only_and_for_what_is_above_it() -> None:
    lemmas = Lemmas(Facts(SCOPE.ranges))
    scope = SCOPE.where([m * n - 16 * n])
    assert lemmas.prove(scope, [m * n - 16 * n], steps=80)
    # Without an elimination: these follow from the lemma.
    assert lemmas.prove(scope, [m * n - 16 * n + 3, m * n - 15 * n], steps=0)
    assert not lemmas.prove(scope, [m * n - 16 * n - 1], steps=80)
    assert not lemmas.prove(scope, [m * n - 17 * n], steps=80)
    assert not lemmas.prove(SCOPE, [m * n - 16 * n], steps=80)


def test_a_scope_without_values_is_never_reached() -> None:
    assert not SCOPE.where([n - 16, 15 - n]).is_reached
    assert not SCOPE.where([m * n - 16, 15 - m * n]).is_reached
    assert SCOPE.where([m * n - 15, 15 - m * n]).is_reached


def test_facts_that_are_given_hold_in_their_scope_alone() -> None:
    facts = Facts(SCOPE.ranges)
    value = facts.new()
    inside = SCOPE.where([value, n - 1 - value])
    assert holds(facts, value, inside)
    assert holds(facts, m * n - m * value - m, inside)
    assert not holds(facts, value, SCOPE)


def test_a_quotient_is_bounded_by_what_is_given_of_its_dividend() -> None:
    facts = Facts(SCOPE.ranges)
    dividend, quotient = facts.new([0]), facts.new([0])
    facts.divided[str(quotient)] = dividend, n
    inside = SCOPE.where([m * n - 1 - dividend, n - 1])
    assert holds(facts, m - 1 - quotient, inside)
    assert not holds(facts, m - 2 - quotient, inside)
    assert not holds(facts, m - 1 - quotient, SCOPE)


def test_a_product_that_is_positive_has_positive_factors_only_if_none_can_be_negative() -> None:
    assert Scope({"m": (0, 9), "n": (0, 9)}).where([m * n - 1]).ranges == {"m": (1, 9), "n": (1, 9)}
    assert Scope({"m": (-9, 9), "n": (0, 9)}).where([m * n - 1]).ranges == {"m": (-9, 9), "n": (0, 9)}


def product() -> Graph:
    b = Builder("product")
    columns = b.symbol("n", 1, 700)
    x, w = b.input("float32", (b.symbol("m", 1, 700), 300)), b.input("float32", (300, columns))
    c = b.input("float32", (columns,))
    return output(b, gelu(x @ w + c))


def convolution() -> Graph:
    b = Builder("convolution")
    x, w = b.input("float32", (b.symbol("n", 1, 8), 24, b.symbol("h", 3, 40), 11)), b.input("float32", (40, 24, 3, 3))
    return output(b, conv2d(x, w, padding=1))


def filtered() -> Graph:
    """Each channel by itself, after a map: rows of rows, whose last loop has a constant extent."""
    b = Builder("filtered")
    x, w = b.input("float32", (b.symbol("n", 1, 8), 32, b.symbol("h", 3, 40), 20)), b.input("float32", (32, 1, 3, 3))
    return output(b, relu(conv2d(relu(x), w, padding=1, groups=32)))


def normalised() -> Graph:
    b = Builder("normalised")
    return output(b, softmax(b.input("float32", (b.symbol("n", 0, 512), 300))))


def long_sum() -> Graph:
    b = Builder("long_sum")
    return output(b, b.input("float32", (b.symbol("n", 1, 90000), b.symbol("m", 1, 77))).sum(0))


def gathered() -> Graph:
    b = Builder("gathered")
    rows = b.symbol("n", 1, 512)
    return output(b, gather(b.input("float32", (rows, 30)), b.input("int32", (rows, 7)), 1))


def scattered() -> Graph:
    b = Builder("scattered")
    rows, updates = b.symbol("n", 1, 512), b.symbol("m", 1, 9)
    return output(b, scatter(b.input("int64", (rows, updates)), b.input("float32", (rows, updates)), 1, (rows, 16)))


def moved() -> Graph:
    b = Builder("moved")
    x = b.input("float16", (b.symbol("n", 1, 99), 4, 6))
    return output(b, pad(flip(x.transpose(0, 2), 0), ((1, 2), (0, 0), (3, 0))).reshape(-1))


GRAPHS: dict[str, Callable[[], Graph]] = {
    made.__name__: made for made in (product, convolution, filtered, normalised, long_sum, gathered, scattered, moved)
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", GRAPHS)
def test_every_access_of_symbolic_kernels_is_proven(name: str, target: str) -> None:
    found = accesses(realised(GRAPHS[name](), target))
    assert any(access.is_store for access in found)
    assert any(not access.is_store for access in found)
    assert [str(access) for access in found if not access.is_proven] == []


def shortened(module: Realised, number: int) -> list[Access]:
    """The accesses that are not proven when a buffer of the only kernel has an element less."""
    ((kernel, memory),) = module.memories.items()
    name, shape = memory.buffers[number]
    shorter = (expr.sub(expr.product(shape), 1),)
    buffers = [*memory.buffers[:number], (name, shorter), *memory.buffers[number + 1 :]]
    changed = Realised(module.module, {kernel: replace(memory, buffers=buffers)})
    return [access for access in accesses(changed) if not access.is_proven]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["product", "normalised", "gathered", "scattered", "moved"])
def test_a_buffer_that_lacks_one_element_is_not_proven(name: str, target: str) -> None:
    module = realised(GRAPHS[name](), target)
    (memory,) = module.memories.values()
    for number, (buffer, _) in enumerate(memory.buffers):
        if buffer.startswith(("input", "output", "temp")):
            assert {access.buffer for access in shortened(module, number)} == {buffer}


def test_scratch_that_lacks_one_element_is_not_proven() -> None:
    b = Builder("dense")
    module = realised(output(b, relu(b.input("float32", (672, 256)) @ b.input("float32", (256, 256)))))
    for number in range(3, 8):
        assert {access.buffer for access in shortened(module, number)} == {f"scratch {number}"}


def test_an_access_that_is_not_proven_is_told_with_its_node_and_expression() -> None:
    b = Builder("doubled")
    module = realised(output(b, b.input("float32", (b.symbol("n", 1, 64), 5)) * 2.0))
    (access,) = shortened(module, 0)
    assert access.node.startswith("/nodes/")
    assert str(access).startswith("kernel_0: load of input 0 at ")
    assert str(access).endswith(" of 5*n + -1 elements")
