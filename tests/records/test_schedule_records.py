"""What schedule records refuse, and how they travel."""

from __future__ import annotations

from collections.abc import Mapping as Fields
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tensorkiln.dtypes import DType
from tensorkiln.expr import symbol
from tensorkiln.nodes import CustomAttr, SymVar
from tensorkiln.schedule import (
    Allocation,
    Axis,
    BufferInfo,
    FusionOpportunity,
    HostCallback,
    ItemAnalysis,
    IterSpace,
    KernelItem,
    Layout,
    Mapping,
    MemoryTransfer,
    Operation,
    OpRef,
    Pipeline,
    Prefetch,
    ReductionPlan,
    Schedule,
    ScheduleContext,
    ScheduleItem,
    Synchronization,
    Unroll,
    Vectorize,
)

N = symbol("n")
ROW, INNER = Axis(name="i0", size=N), Axis(name="i1", size=64, role="reduction")


def test_an_axis_without_size_or_symbol_is_refused() -> None:
    with pytest.raises(ValidationError, match="axis i0 has neither a size nor a symbolic variable"):
        Axis(name="i0")


def test_an_axis_is_bounded_by_its_symbol_or_by_its_size_when_it_has_both() -> None:
    sym = SymVar(name="n", min_val=1, max_val=8)
    assert Axis(name="i0", sym=sym).extent == N
    assert Axis(name="i0", sym=sym, size=8).extent == 8


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (Mapping(block=(2,), serial=(0, 1)), r"Scheduled.iter_space: axis index 2 out of range 0\.\.1"),
        (Mapping(thread=(-1,), serial=(0, 1)), r"Scheduled.iter_space: axis index -1 out of range 0\.\.1"),
        (Mapping(block=(0,)), r"axis 1 \(i1\) is mapped 0 times, not 1"),
        (Mapping(block=(0,), vec=(0,), serial=(1,)), r"axis 0 \(i0\) is mapped 2 times, not 1"),
    ],
)
def test_every_axis_is_mapped_exactly_once(mapping: Mapping, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        IterSpace(axes=(ROW, INNER), mapping=mapping, tiles=((), ()))


def test_every_axis_has_its_list_of_tiles() -> None:
    with pytest.raises(ValidationError, match=r"Scheduled.iter_space: tiles length must match axes length"):
        IterSpace(axes=(ROW, INNER), mapping=Mapping(serial=(0, 1)), tiles=((),))
    with pytest.raises(ValidationError, match="axis i0 has a tile size below 1"):
        IterSpace(axes=(ROW, INNER), mapping=Mapping(serial=(0, 1)), tiles=((0,), ()))


@pytest.mark.parametrize("label", ["global_dims", "local_dims"])
def test_launch_dims_of_a_context_are_three(label: str) -> None:
    with pytest.raises(ValidationError, match=f"Scheduled.context.{label} must be length-3"):
        ScheduleContext.model_validate({"global_dims": [1, 1, 1], "device": "CPU"} | {label: [1, 1]})


def kernel(**fields: Any) -> KernelItem:
    given: dict[str, Any] = {
        "kernel_id": 0,
        "kernel_name": "matmul",
        "ops": (OpRef(node=3, kind="binop"),),
        "inputs": (BufferInfo.of(0, DType.FLOAT32, (N, 64), (0, 0), is_input=True),),
        "outputs": (BufferInfo.of(1, DType.FLOAT32, (N,), (0, 0), is_output=True, alias_group=4),),
        "iter": IterSpace(axes=(ROW, INNER), mapping=Mapping(block=(0,), serial=(1,)), tiles=((8, 4), ())),
        "reduce": ReductionPlan(axes=(1,), intra_thread="tree"),
        "hints": (
            Vectorize(axis=0, width=8),
            Unroll(axis=1, factor=4),
            Prefetch(var=0, into="shared", distance=2),
            Pipeline(axis=1, stages=3, overlap=True),
        ),
        "context": ScheduleContext(global_dims=(N, 1, 1), local_dims=(32, 1, 1), upcasted=2, device="CUDA", stream=1),
    }
    return KernelItem.model_validate(given | fields)


def test_a_reduction_plan_names_reduction_axes() -> None:
    with pytest.raises(ValidationError, match="kernel matmul reduces axis 0, which has the role normal"):
        kernel(reduce=ReductionPlan(axes=(0,)))
    with pytest.raises(ValidationError, match="kernel matmul names axis 5 but has 2 axes"):
        kernel(reduce=ReductionPlan(axes=(5,)))


def test_a_hint_names_an_axis_of_its_kernel() -> None:
    with pytest.raises(ValidationError, match="kernel matmul names axis 2 but has 2 axes"):
        kernel(hints=(Unroll(axis=2, factor=2),))


@pytest.mark.parametrize("fields", [{"sync_type": "event"}, {"sync_type": "fence", "event": 1}])
def test_an_event_has_a_number_and_nothing_else_has(fields: Fields[str, Any]) -> None:
    with pytest.raises(ValidationError, match="event number exactly when"):
        Synchronization.model_validate({"sync_id": 0} | dict(fields))


def test_a_lifetime_does_not_end_before_it_begins() -> None:
    with pytest.raises(ValidationError, match=r"lifetime \(2, 1\)"):
        Allocation(size_bytes=4, lifetime=(2, 1))


def test_a_layout_has_as_many_strides_as_sizes() -> None:
    with pytest.raises(ValidationError, match="rank 2 has 1 strides"):
        Layout(shape=(2, 3), strides=(1,))
    with pytest.raises(ValidationError, match="outside of rank 1"):
        Layout(shape=(2,), strides=(1,), contiguous_axes=(1,))


OPERATIONS: list[Operation] = [
    kernel(),
    MemoryTransfer(
        transfer_id=1,
        src_var=0,
        dst_var=2,
        src_device="CPU",
        dst_device="CUDA",
        dims=(N, 3),
        src_strides=(3, 1),
        size_bytes=12 * N,
        is_async=True,
        stream=2,
    ),
    Synchronization(sync_id=2, sync_type="event", event=7, scope="system", devices=("CPU", "CUDA")),
    HostCallback(
        callback_id=3,
        callback_name="sort",
        input_vars=(2,),
        output_vars=(3,),
        attributes=(CustomAttr(name="axis", kind="int", value=-1), CustomAttr(name="s", kind="shape", value=(N, 2))),
    ),
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.op)
def test_an_operation_survives_serialization(operation: Operation) -> None:
    adapter: TypeAdapter[Operation] = TypeAdapter(Operation)
    assert adapter.validate_json(adapter.dump_json(operation)) == operation


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.op)
def test_an_unknown_field_is_refused(operation: Operation) -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        type(operation).model_validate(operation.model_dump() | {"surprise": 1})


def items(*depends_on: tuple[int, ...]) -> list[ScheduleItem]:
    dependents = [tuple(i for i, row in enumerate(depends_on) if p in row) for p in range(len(depends_on))]
    return [
        ScheduleItem(item_id=i, operation=OPERATIONS[2], depends_on=row, dependents=dependents[i])
        for i, row in enumerate(depends_on)
    ]


def test_ids_are_positions() -> None:
    with pytest.raises(ValidationError, match="the item at position 0 has the id 1"):
        Schedule(items=tuple(items((), (0,))[1:]))


def test_dependents_must_mirror_dependencies() -> None:
    first, second = items((), (0,))
    with pytest.raises(ValidationError, match=r"item 0 has the dependents \(\), not \(1,\)"):
        Schedule(items=(first.model_copy(update={"dependents": ()}), second))


def test_a_dependency_named_twice_is_refused() -> None:
    first, second = items((), (0,))
    with pytest.raises(ValidationError, match="item 1 names a dependency twice"):
        Schedule(items=(first, second.model_copy(update={"depends_on": (0, 0)})))


def test_a_cycle_is_refused() -> None:
    with pytest.raises(ValidationError, match="items 0, 1 are on a cycle"):
        Schedule(items=tuple(items((1,), (0,))))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dependencies": [{"dep_from": 1, "dep_to": 0}]}, "item 0 does not list its dependency on item 1"),
        ({"dependencies": [{"dep_from": 0, "dep_to": 9}]}, "the dependency 0 -> 9 leaves the items"),
        ({"analysis": [{"item_id": 0}]}, "neither empty nor one entry per item"),
        ({"analysis": [{"item_id": 1}, {"item_id": 0}]}, "neither empty nor one entry per item"),
        ({"critical_path": [0, 2]}, "the critical path"),
        (
            {"fusion_opportunities": [{"kernel_a": 0, "kernel_b": 2, "fusion_type": "mixed", "benefit_score": 1.0}]},
            "a fusion opportunity names items outside",
        ),
    ],
)
def test_a_schedule_refers_to_its_own_items_only(fields: Fields[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Schedule.model_validate({"items": items((), (0,))} | dict(fields))


def test_a_schedule_with_every_kind_of_record_survives_serialization() -> None:
    schedule = Schedule.build(
        OPERATIONS,
        analysis=[ItemAnalysis(item_id=i, flops=2 * N, bytes_read=N, est_ns=5, occupancy=0.5) for i in range(4)],
        fusion_opportunities=[
            FusionOpportunity(kernel_a=0, kernel_b=3, fusion_type="reduction", benefit_score=0.5, memory_saved=4 * N)
        ],
    )
    assert Schedule.model_validate_json(schedule.model_dump_json()) == schedule


@pytest.mark.parametrize("occupancy", [-0.1, 1.1])
def test_an_occupancy_is_a_fraction(occupancy: float) -> None:
    with pytest.raises(ValidationError):
        ItemAnalysis(item_id=0, occupancy=occupancy)
