"""Which buffers of a program share storage, and what it takes of memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from passes.plan.aliasing import share_storage
from passes.plan.program_plan import ProgramPlan, Step
from passes.schedule.attach import read_program
from tensorkiln.build import Builder, matmul, softmax
from tensorkiln.dtypes import DType
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tensorkiln.schedule import KernelItem
from tensorkiln.spec import CompiledProgram
from tests.compiled import compiled, program, run
from tests.dialect.wire import Node, assign, binop, buffer, graph_of, placeholder, unary
from tests.filecheck import check_ir
from tests.passes.modules import TARGET, after, output

F32 = "float32"


def against_columns(var: int, source: int, rows: Any = 512, columns: int = 300) -> list[Node]:
    """`var + 3` is stored: the source less the maxima of its columns, which take all rows, and so another kernel."""
    return [
        {"node": "reduce_axis", "in_var": source, "reduce_op_kind": "max", "axes": [0], "out_var": var, "dtype": F32},
        {"node": "expand", "in_var": var, "new_target_shape": [rows, columns], "out_var": var + 1, "dtype": F32},
        {"node": "binop", "op": "sub", "a_var": source, "b_var": var + 1, "out_var": var + 2, "dtype": F32},
        {"node": "contiguous", "in_var": var + 2, "out_var": var + 3, "dtype": F32},
    ]


def chain(length: int, rows: Any = 512, bounds: Mapping[str, tuple[int, int]] | None = None) -> Graph:
    nodes = [placeholder(0, [rows, 300])]
    for number in range(length):
        nodes += against_columns(4 * number + 1, 4 * number, rows)
    return graph_of(nodes, [4 * length], bounds=bounds)


def uniform(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(len(shape)).uniform(-9, 9, shape).astype(np.float32)


def in_place(compiled_program: CompiledProgram) -> list[str]:
    """The kernels that store to what they read."""
    return [kernel.name for kernel in compiled_program.kernels if set(kernel.ins) & set(kernel.outs)]


def test_a_chain_of_maps_between_reductions_runs_in_the_storage_of_its_result() -> None:
    size = 4 * 512 * 300
    made = program(compiled(chain(10)))
    shared = [entry for entry in made.compiled.buffers if entry.alias_group is not None]
    assert {entry.size_bytes for entry in shared} == {size}
    assert len(shared) == 10, "nine temporaries and the result; the caller's array is not among them"
    assert size < made.planned_peak_bytes() < size + 4 * 300 * 4
    x = uniform(512, 300)
    kept = x.copy()
    np.testing.assert_array_equal(made(x)[0], evaluate(chain(10), x)[0])
    np.testing.assert_array_equal(x, kept)


def test_a_kernel_in_place_has_one_argument_for_both() -> None:
    made = compiled(chain(3)).program
    assert in_place(made)
    for kernel in made.kernels:
        storages = [made.buffers[number].alias_group for number in kernel.buffers]
        named = [group for group in storages if group is not None]
        assert len(named) == len(set(named)), "no two arguments are the same storage"
    operations = [item.operation for item in made.schedule.items if isinstance(item.operation, KernelItem)]
    (item,) = [operation for operation in operations if operation.kernel_name == in_place(made)[-1]]
    assert {info.alloc.alias_group for info in item.outputs} & {info.alloc.alias_group for info in item.inputs}


def test_a_step_says_what_it_overwrites() -> None:
    module = after("schedule", chain(2))
    check_ir(module, "// CHECK: steps = [{{.*}}reuses = {{\\[\\[}}")
    plan = read_program(module)
    (step,) = [step for step in plan.steps if step.reuses]
    ((written, read),) = step.reuses
    assert read in step.reads
    assert read not in step.arguments
    assert step.slots[step.reads.index(read)] == step.arguments.index(written)
    assert set(step.loaded) & set(step.stored) == {step.arguments.index(written)}


def test_a_step_that_overwrites_nothing_has_a_slot_for_every_buffer() -> None:
    step = Step("k", None, reads=(4, 2), writes=(7,), scratch=(9,))
    assert step.arguments == (4, 2, 7, 9)
    assert (step.slots, step.loaded, step.stored) == ((0, 1, 2, 3), (0, 1), (2, 3))
    step = Step("k", None, reads=(4, 2, 3), writes=(7, 8), scratch=(9,), reuses=((8, 4),))
    assert step.arguments == (2, 3, 7, 8, 9)
    assert step.slots == (3, 0, 1, 2, 3, 4)
    assert (step.loaded, step.stored) == ((0, 1, 3), (2, 3, 4))


def test_a_symbolic_chain_shares_too() -> None:
    graph = chain(4, "n", {"n": (0, 4096)})
    made = program(compiled(graph))
    assert len(in_place(made.compiled)) == 3
    for rows in (0, 1, 700):
        x = uniform(rows, 300)
        np.testing.assert_array_equal(made(x, n=rows)[0], evaluate(graph, x, n=rows)[0])


def test_a_softmax_overwrites_its_scores() -> None:
    b = Builder("attention")
    q, k, v = (b.input("float32", (256, 64)) for _ in range(3))
    weights = softmax(matmul(q, k.transpose()), -1)
    graph = output(b, matmul(weights, v), matmul(weights, v * 2.0))  # two that read it: no chain
    made = program(compiled(graph))
    assert in_place(made.compiled) == ["kernel_1"]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((256, 64)).astype(np.float32) for _ in range(3)]
    np.testing.assert_allclose(made(*arrays)[0], evaluate(graph, *arrays)[0], rtol=1e-3, atol=1e-4)


def test_a_product_is_added_in_the_place_of_the_sum_so_far() -> None:
    b = Builder("residual")
    x, w = b.input("float32", (128, 128)), b.input("float32", (128, 128))
    hidden = matmul(x, w)
    graph = output(b, hidden + matmul(hidden.transpose(), w).transpose() * 0.0 + matmul(x, x))
    made = program(compiled(graph))
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((128, 128)).astype(np.float32) for _ in range(2)]
    np.testing.assert_allclose(made(*arrays)[0], evaluate(graph, *arrays)[0], rtol=1e-3, atol=1e-3)


def test_another_type_of_the_same_size_takes_the_place() -> None:
    less = against_columns(5, 4)[:3]
    cast = {"node": "cast", "in_var": 7, "target_dtype": "int32", "out_var": 8, "dtype": "int32"}
    graph = graph_of([placeholder(0, [512, 300]), *against_columns(1, 0), *less, cast], [8])
    compilation = compiled(graph, texts=["translate"])
    made = program(compilation)
    assert len(in_place(made.compiled)) == 1
    assert "store i32" in compilation.dumps["translate"]
    np.testing.assert_array_equal(made(uniform(512, 300))[0], evaluate(graph, uniform(512, 300))[0])


def test_operands_that_are_read_later_are_not_overwritten() -> None:
    nodes = [placeholder(0, [512, 300]), *against_columns(1, 0), *against_columns(5, 4), *against_columns(9, 8)]
    graph = graph_of([*nodes, binop(13, 12, 4)], [13])
    made = program(compiled(graph))
    _, first, *between, _ = made.compiled.kernels
    groups = {buffer.id: buffer.alias_group for buffer in made.compiled.buffers if buffer.alias_group is not None}
    kept = groups.get(first.buffers[-1], "in storage of its own")
    stored = {groups.get(kernel.buffers[slot]) for kernel in between for slot in kernel.outs}
    assert kept not in stored, "only the last kernel may overwrite it"
    np.testing.assert_array_equal(made(uniform(512, 300))[0], evaluate(graph, uniform(512, 300))[0])


def test_a_result_is_not_overwritten() -> None:
    graph = graph_of([placeholder(0, [512, 300]), *against_columns(1, 0), *against_columns(5, 4)], [8, 4, 4])
    assert in_place(compiled(graph).program) == []
    for actual, expected in zip(run(graph, uniform(512, 300)), evaluate(graph, uniform(512, 300)), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("target", ["placeholder", "buffer"])
def test_an_assignment_to_an_argument_is_a_fresh_result(target: str) -> None:
    declared = {**placeholder(0, [64])} if target == "placeholder" else {**buffer(0, 64)}
    nodes = [declared, placeholder(1, [64]), unary(2, 1), assign(3, 0, (2, None)), unary(4, 0)]
    graph = graph_of(nodes, [0, 3, 4], inputs=[0, 1])
    made = program(compiled(graph))
    arrays = [np.arange(64, dtype=np.float32), np.ones(64, np.float32)]
    results = made(*arrays)
    assert [result[0] for result in results] == [-1, -1, 1]
    assert arrays[0].tolist() == list(range(64))
    assert all(entry.alias_group is None for entry in made.compiled.buffers if entry.role == "input")


def test_an_assignment_is_the_buffer_itself() -> None:
    """The result of an assign, its target and a full view of it are one buffer, or one storage."""
    view = {"node": "buffer_view", "buffer_var": 1, "offset": 0, "size": 64, "dtype": "float32", "out_var": 4}
    nodes = [placeholder(0, [64]), buffer(1, 64), unary(2, 0), view, assign(3, 1, (2, None))]
    made = program(compiled(graph_of(nodes, [3, 1, 4])))
    assert [entry.role for entry in made.compiled.buffers] == ["input", "output", "output"]
    assert [binding.buffer for binding in made.compiled.outputs][:2] == [1, 1]
    assert made.compiled.buffers[1].alias_group == made.compiled.buffers[2].alias_group == 0
    assert all(result.tolist() == [-2.0] * 64 for result in made(np.full(64, 2, np.float32)))


def test_an_accumulator_is_updated_in_place() -> None:
    """A buffer that is assigned to from its own contents, over and over."""
    nodes = [placeholder(0, [512, 300]), buffer(1, 512 * 300), assign(2, 1, (0, None))]
    for var in range(3, 23, 5):
        nodes += [*against_columns(var, 1), assign(var + 4, 1, (var + 3, None))]
    graph = graph_of(nodes, [1], shapes={1: (F32, [512, 300])})
    made = program(compiled(graph))
    assert len(in_place(made.compiled)) == 3, "the first update reads the caller's array"
    assert made.planned_peak_bytes() < 4 * 512 * 300 + 4 * 300 * 4
    np.testing.assert_array_equal(made(uniform(512, 300))[0], evaluate(graph, uniform(512, 300))[0])


def test_old_contents_of_a_buffer_that_is_overwritten_are_not_kept() -> None:
    """Through a view of all of it, too."""
    view = {"node": "buffer_view", "buffer_var": 1, "offset": 0, "size": 512 * 300, "dtype": F32, "out_var": 2}
    nodes = [placeholder(0, [512, 300]), buffer(1, 512 * 300), view, assign(3, 2, (0, None))]
    for var in range(4, 24, 5):
        nodes += [*against_columns(var, 2), assign(var + 4, 2, (var + 3, None))]
    shape = (F32, [512, 300])
    made = program(compiled(graph_of(nodes, [1], shapes={1: shape, 2: shape})))
    assert all(len(kernel.ins) <= 2 for kernel in made.compiled.kernels)
    assert made.planned_peak_bytes() < 4 * 512 * 300 + 4 * 300 * 4


def test_groups_are_numbered_from_zero_in_the_order_of_their_first_buffers() -> None:
    made = compiled(chain(4), TARGET).program
    groups = [entry.alias_group for entry in made.buffers if entry.alias_group is not None]
    assert list(dict.fromkeys(groups)) == list(range(len(set(groups))))


def plan_of(*steps: tuple[tuple[int, ...], tuple[int, ...]], results: tuple[int, ...], count: int) -> ProgramPlan:
    """Kernels `(reads, writes)` on buffers of one size, of which the first is the argument."""
    plan = ProgramPlan(arguments=(0,), results=results)
    for number in range(count):
        plan.add_buffer(DType.FLOAT32, (64,), "input" if number == 0 else "output" if number in results else "temp")
    plan.steps = [Step(f"kernel_{n}", None, reads, writes) for n, (reads, writes) in enumerate(steps)]
    plan.close()
    return plan


def groups_of(plan: ProgramPlan) -> list[int | None]:
    return [entry.alias_group for entry in plan.buffers]


def test_only_one_result_of_a_step_takes_the_place_of_an_operand() -> None:
    plan = plan_of(((0,), (1,)), ((1,), (2, 3)), results=(2, 3), count=4)
    share_storage(plan, {1: [(0, 0), (1, 0)]})
    assert plan.steps[1].reuses == ((2, 1),)
    assert groups_of(plan) == [None, 0, 0, None]


def test_two_results_may_take_the_places_of_two_operands() -> None:
    plan = plan_of(((0,), (1, 2)), ((1, 2), (3, 4)), results=(3, 4), count=5)
    share_storage(plan, {1: [(0, 0), (0, 1), (1, 0), (1, 1)]})
    assert plan.steps[1].reuses == ((3, 1), (4, 2))
    assert groups_of(plan) == [None, 0, 1, 0, 1]


def test_inputs_are_never_written() -> None:
    plan = plan_of(((0,), (1,)), results=(1,), count=2)
    share_storage(plan, {0: [(0, 0)]})
    assert plan.steps[0].reuses == ()
    assert groups_of(plan) == [None, None]


def test_only_the_last_reader_overwrites() -> None:
    plan = plan_of(((0,), (1,)), ((1,), (2,)), ((1,), (3,)), ((2, 3), (4,)), results=(4,), count=5)
    share_storage(plan, {1: [(0, 0)], 2: [(0, 0)], 3: [(0, 0), (0, 1)]})
    assert [step.reuses for step in plan.steps] == [(), (), ((3, 1),), ((4, 2),)]
    assert groups_of(plan) == [None, 0, 1, 0, 1]


def test_a_carried_argument_is_overwritten_by_the_result_that_replaces_it() -> None:
    plan = plan_of(((0,), (1,)), ((0, 1), (2,)), results=(2,), count=3)
    share_storage(plan, {0: [(0, 0)], 1: [(0, 0)]}, {0})
    assert [step.reuses for step in plan.steps] == [(), ((2, 0),)]
    assert groups_of(plan) == [0, None, 0]


def test_a_carried_argument_is_overwritten_on_the_way_to_its_result() -> None:
    plan = plan_of(((0,), (1,)), ((1,), (2,)), results=(2,), count=3)
    share_storage(plan, {0: [(0, 0)], 1: [(0, 0)]}, {0})
    assert [step.reuses for step in plan.steps] == [((1, 0),), ((2, 1),)]
    assert groups_of(plan) == [0, 0, 0]


def test_a_carried_argument_is_kept_where_its_result_ends_elsewhere() -> None:
    plan = plan_of(((0,), (1,)), ((1,), (2,)), results=(2,), count=3)
    share_storage(plan, {0: [(0, 0)]}, {0})
    assert [step.reuses for step in plan.steps] == [(), ()]
    assert groups_of(plan) == [None, None, None]


def test_a_carried_argument_is_not_overwritten_by_the_result_of_another() -> None:
    plan = plan_of(((0,), (1,)), ((0,), (2,)), results=(1, 2), count=3)
    share_storage(plan, {1: [(0, 0)]}, {0})
    assert plan.steps[1].reuses == ()


def test_a_carried_argument_that_is_a_result_is_kept() -> None:
    plan = plan_of(((0,), (1,)), results=(1, 0), count=2)
    share_storage(plan, {0: [(0, 0)]}, {0})
    assert plan.steps[0].reuses == ()
