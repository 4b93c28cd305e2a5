"""Joined values whose parts are computed where they belong take no kernel."""

from __future__ import annotations

import numpy as np
import pytest

from passes.fuse.joining import MAX_AHEAD
from tensorkiln.build import Builder, Tensor, cat, conv2d, matmul, relu
from tensorkiln.expr import Dim
from tensorkiln.program import Program
from tests.compiled import compiled
from tests.dialect.wire import Node, assign, buffer, buffer_view, graph_of, placeholder, unary
from tests.filecheck import check_ir
from tests.passes.modules import kernels, output
from tests.passes.shuffled import ShuffledCall
from tests.passes.test_windows import checked, contiguous, node, shrink

SIZE = 1 << 16
"""Elements that are too many for two kernels that read across rows to be one."""


def products(b: Builder, count: int, rows: Dim = 16, columns: int = 24) -> list[Tensor]:
    """Results of contractions: each is stored by a kernel of its own."""
    x = b.input("float32", (rows, 32))
    return [matmul(x, b.input("float32", (32, columns))) for _ in range(count)]


def parts_of(made: Program) -> list[object]:
    """The offsets of what shares the storage of the first result, but for the result itself."""
    (whole, *_) = made.compiled.outputs
    group = made.compiled.buffers[whole.buffer].alias_group
    assert group is not None
    members = [buffer for buffer in made.compiled.buffers if buffer.alias_group == group and buffer.id != whole.buffer]
    return [buffer.offset for buffer in members]


def test_products_are_computed_in_the_place_that_they_have_in_their_cat() -> None:
    b = Builder("joined")
    first, second = products(b, 2)
    graph = output(b, cat([first, second], 0))
    check_ir(
        kernels(graph),
        """
        // CHECK: func.func @graph
        // CHECK: %[[A:.*]] = call @kernel_0
        // CHECK: %[[B:.*]] = call @kernel_1
        // CHECK: %[[P:.*]] = "kiln.buffer_view"(%[[A]])
        // CHECK: %[[Q:.*]] = "kiln.buffer_view"(%[[B]])
        // CHECK: %[[C:.*]] = "kiln.cat"(%[[P]], %[[Q]]) {axis = 0 : i64
        // CHECK: %[[R:.*]] = "kiln.buffer_view"(%[[C]])
        // CHECK: return %[[R]] : tensor<32x24xf32>
        """,
    )
    made = checked(graph)
    assert len(made.compiled.kernels) == 2
    assert parts_of(made) == [0, 4 * 16 * 24]


def test_readers_of_a_cat_depend_on_all_parts() -> None:
    b = Builder("joined")
    parts = products(b, 3)
    made = checked(output(b, cat(parts, 0).sum(axis=0)))
    assert len(made.compiled.kernels) == 4
    assert {edge.dep_from for edge in made.compiled.schedule.dependencies if edge.dep_to == 3} == {0, 1, 2}


def maximum_of_copies(var: int, source: int, size: int) -> list[Node]:
    """`var + 2` is a reduction of as many elements as `source`: small ones that read one another share a kernel."""
    return [
        {**node("reshape", var, source, new_shape=[1, size])},
        {**node("expand", var + 1, var, new_target_shape=[3, size])},
        {**node("reduce_axis", var + 2, var + 1, reduce_op_kind="max", axes=[0])},
    ]


def test_a_small_kernel_that_reads_the_cat_comes_after_those_of_its_parts() -> None:
    """Were it one of them, it would share their kernel."""
    parts = [*maximum_of_copies(1, 0, 64), unary(4, 3), *maximum_of_copies(5, 4, 64)]
    joined = {"node": "cat", "in_vars": [3, 7], "axis": 0, "out_var": 8, "dtype": "float32"}
    shapes = {var: ("float32", [64]) for var in (3, 7)}
    nodes = [placeholder(0, [64]), *parts, joined, node("flip", 9, 8, axes=[0])]
    made = checked(graph_of(nodes, [9], shapes=shapes))
    reader = made.compiled.kernels[-1]
    assert [made.compiled.buffers[number].shape for number in reader.buffers] == [(128,), (128,)]


def test_branches_of_a_network_end_in_their_cat_with_their_activations() -> None:
    b = Builder("branches")
    x = b.input("float32", (1, 16, 12, 12))
    branches = [
        relu(conv2d(x, b.input("float32", (8, 16, size, size)), padding=size // 2) + b.input("float32", (8, 1, 1)))
        for size in (1, 3)
    ]
    joined = cat(branches, 1)
    made = checked(output(b, conv2d(joined, b.input("float32", (4, 16, 1, 1)))))
    assert len(made.compiled.kernels) == 3


def test_a_batch_keeps_its_parts_apart() -> None:
    b = Builder("joined")
    x = b.input("float32", (2, 16, 32))
    parts = [matmul(x, b.input("float32", (32, 24))) for _ in range(2)]
    made = checked(output(b, cat(parts, 1)))
    assert all(buffer.alias_group is None for buffer in made.compiled.buffers)


def test_a_part_must_be_as_aligned_as_a_vector() -> None:
    b = Builder("joined")
    x = b.input("float32", (5, 32))
    parts = [matmul(x, b.input("float32", (32, 9))) for _ in range(2)]
    made = checked(output(b, cat(parts, 0)))
    assert all(buffer.alias_group is None for buffer in made.compiled.buffers), "180 bytes are no multiple of 16"


def test_the_sizes_of_parts_may_be_symbols() -> None:
    b = Builder("joined")
    n = b.symbol("n", 0, 40)
    made = checked(output(b, cat(products(b, 2, rows=n), 0)), n=17)
    assert len(made.compiled.kernels) == 2
    assert str(parts_of(made)[1]) == "96*n"
    for size in (0, 1, 40):
        arrays = [np.ones((size, 32), np.float32), *[np.full((32, 24), number, np.float32) for number in (1, 2)]]
        assert made(*arrays, n=size)[0].tolist() == [[32.0] * 24] * size + [[64.0] * 24] * size


def test_a_value_takes_its_place_in_one_cat_and_is_copied_into_another() -> None:
    b = Builder("joined")
    first, second, third = products(b, 3)
    made = checked(output(b, cat([first, second], 0), cat([third, first], 0)))
    assert parts_of(made) == [0, 4 * 16 * 24]
    assert len(made.compiled.kernels) == 4


def test_a_value_that_stands_twice_in_a_cat_is_copied() -> None:
    b = Builder("joined")
    (first,) = products(b, 1)
    made = checked(output(b, cat([first, first], 0)))
    assert all(buffer.alias_group is None for buffer in made.compiled.buffers)


def test_a_result_is_not_a_part() -> None:
    b = Builder("joined")
    first, second = products(b, 2)
    made = checked(output(b, cat([first, second], 0), first))
    assert made.compiled.buffers[made.compiled.outputs[1].buffer].alias_group is None


def test_cats_of_cats_share_one_storage() -> None:
    b = Builder("joined")
    first, second, third = products(b, 3)
    pair = cat([first, second], 0)
    made = checked(output(b, cat([pair, third], 0)))
    assert len(made.compiled.kernels) == 3
    assert sorted(str(offset) for offset in parts_of(made)) == ["0", "1536", "3072"]


def test_parts_far_apart_do_not_keep_the_whole_alive() -> None:
    b = Builder("skip")
    x, weights = b.input("int32", (64, 64)), b.input("int32", (64, 64))
    early = matmul(x, weights)
    late = early
    for _ in range(MAX_AHEAD + 2):
        late = matmul(late, weights)
    joined = cat([early, late], 0)
    made = checked(output(b, matmul(joined, weights)))
    assert all(buffer.alias_group is None for buffer in made.compiled.buffers if buffer.shape == (128, 64))


def stored_flip(var: int, source: int) -> list[dict[str, object]]:
    return [node("flip", var, source, axes=[0]), contiguous(var + 1, var)]


def test_a_range_is_assigned_by_computing_it_in_the_target() -> None:
    """Nothing else needs the target: its kernel runs first, then that of the new part overwrites a part of it."""
    half = SIZE // 2
    nodes = [placeholder(0, [SIZE]), placeholder(1, [half]), *stored_flip(2, 0), *stored_flip(4, 1)]
    made = checked(graph_of([*nodes, assign(6, 3, (5, [16, half + 16]))], [6]))
    assert len(made.compiled.kernels) == 2
    assert parts_of(made) == [0, 64]
    (edge,) = made.compiled.schedule.dependencies
    assert (edge.dep_from, edge.dep_to, edge.kind) == (0, 1, "control")
    assert made.planned_peak_bytes() == 4 * SIZE


def test_a_part_is_written_through_a_view_of_a_view() -> None:
    half, quarter = SIZE // 2, SIZE // 4
    nodes = [placeholder(0, [SIZE]), placeholder(1, [quarter]), *stored_flip(2, 0), *stored_flip(4, 1)]
    views = [
        buffer(6, SIZE),
        assign(7, 6, (3, None)),
        buffer_view(8, 6, half, half),
        buffer_view(9, 8, quarter, quarter),
    ]
    made = checked(graph_of([*nodes, *views, assign(10, 9, (5, None))], [6]))
    assert len(made.compiled.kernels) == 2
    assert parts_of(made) == [0, 4 * (half + quarter)]


@pytest.mark.parametrize("reader", ["before", "after"])
def test_a_target_that_is_read_later_is_copied(reader: str) -> None:
    half = SIZE // 2
    nodes = [placeholder(0, [SIZE]), placeholder(1, [half]), *stored_flip(2, 0), buffer(6, SIZE)]
    read = stored_flip(20, 3)
    updated = [*stored_flip(4, 1), assign(7, 6, (3, None)), assign(8, 6, (5, [16, half + 16]))]
    nodes += [*read, *updated] if reader == "before" else [*updated, *read]
    made = checked(graph_of(nodes, [6, 21]))
    target = made.compiled.kernels[0].buffers[-1]
    shares = made.compiled.buffers[target].alias_group is not None
    assert (len(made.compiled.kernels), shares) == ((3, True) if reader == "before" else (4, False))


def test_an_argument_is_never_the_place_of_a_part() -> None:
    half = SIZE // 2
    nodes = [placeholder(0, [SIZE]), placeholder(1, [half]), *stored_flip(4, 1)]
    made = checked(graph_of([*nodes, assign(6, 0, (5, [16, half + 16]))], [6]))
    (group,) = {buffer.alias_group for buffer in made.compiled.buffers if buffer.role == "input"}
    assert group is None
    assert len(made.compiled.kernels) == 2


def test_a_part_that_is_computed_from_what_it_replaces_is_not_put_there_while_that_is_read() -> None:
    """It reads its target backwards."""
    half = SIZE // 2
    nodes = [placeholder(0, [SIZE]), *stored_flip(1, 0), shrink(3, 2, (16, half + 16)), *stored_flip(4, 3)]
    made = checked(graph_of([*nodes, assign(6, 2, (5, [16, half + 16]))], [6]))
    assert len(made.compiled.kernels) == 3


def test_a_part_is_not_put_into_a_target_that_its_own_kernel_computes() -> None:
    stored = [unary(1, 0), contiguous(2, 1)]
    part = [shrink(6, 2, (0, 32)), *maximum_of_copies(7, 6, 32)]
    shapes = {5: ("float32", [64]), 9: ("float32", [32])}
    nodes = [placeholder(0, [64]), *stored, *maximum_of_copies(3, 2, 64), *part, assign(10, 5, (9, [16, 48]))]
    graph = graph_of(nodes, [2, 10], shapes=shapes)
    checked(graph)
    call = ShuffledCall(compiled(graph), [np.arange(64, dtype=np.float32)], {}, np.random.default_rng(0))
    assert call.run()[1][15:17].tolist() == [-15.0, 0.0]


def test_an_update_that_is_no_value_of_its_own_rewrites_the_target_in_place() -> None:
    nodes = [placeholder(0, [SIZE]), *stored_flip(1, 0), *stored_flip(3, 2)]
    largest = [node("reduce_axis", 5, 4, reduce_op_kind="max", axes=[0]), node("expand", 6, 5, new_target_shape=[64])]
    made = checked(graph_of([*nodes, *largest, assign(7, 2, (6, [32, 96]))], [7]))
    kernel = made.compiled.kernels[-1]
    assert set(kernel.ins) & set(kernel.outs)
    assert made.compiled.buffers[made.compiled.kernels[0].buffers[-1]].alias_group is not None


def test_many_parts_share_bounded_storages() -> None:
    b = Builder("long")
    parts = products(b, 100, rows=4, columns=8)
    made = checked(output(b, cat(parts, 0)))
    sizes: dict[int | None, int] = {}
    for entry in made.compiled.buffers:
        sizes[entry.alias_group] = sizes.get(entry.alias_group, 0) + 1
    sizes.pop(None)
    assert max(sizes.values()) <= 1 + 64 + 16
