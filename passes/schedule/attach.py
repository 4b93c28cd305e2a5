"""Attach a schedule to every kernel function and the program plan to the module, as IR attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from dialect.mlir import ir
from dialect.module import CARRIED, graph_function
from tensorkiln.buffers import Buffer
from tensorkiln.expr import Dim, from_derived_wire, to_wire
from tensorkiln.schedule import KernelItem

from ..attributes import Record, decode, encode
from ..loops.body import KernelBody
from ..loops.scatter import is_scatter
from ..plan.aliasing import share_storage
from ..plan.in_place import Reuse, reusable
from ..plan.prepare import settle_prepared
from ..plan.program_plan import ProgramPlan, Step, name_entries, plan_program
from ..to_linalg.read_kernel import read_kernel
from ..to_linalg.write_kernel import SUFFIX
from ..values import functions_of, is_kernel, marked_arguments, read_function, read_symbols
from .choice import Candidate, Offer
from .work import flops

SCHEDULE = "kiln.schedule"
STRATEGY = "kiln.strategy"
FLOPS = "kiln.flops"
ESTIMATE = "kiln.estimate_ns"
CANDIDATES = "kiln.candidates"
MOST_NS = (1 << 63) - 1
"""The largest estimate that can be written, about three centuries: kernels of unbounded sizes would exceed it."""
PROGRAM = "kiln.program"


def attach_schedules(module: ir.Module, pick: Callable[[KernelBody], Offer], reuse: Reuse | None) -> None:
    """Pick a schedule for every kernel and write it on its function; write the program plan on the module.

    The time estimates assume that every symbol has its largest value. `reuse` is the promise of the target's strategies
    that allows a kernel to compute in place; with None no kernel does.
    """
    source = graph_function(module).operation
    graph = read_function(source, read_symbols(module))
    plan = plan_program(graph)
    steps_of: dict[str, list[int]] = {}
    for number, step in enumerate(plan.steps):
        if step.kernel is not None:
            steps_of.setdefault(step.kernel, []).append(number)
    functions = functions_of(module)
    reusables: dict[int, tuple[tuple[int, int], ...]] = {}
    updating_ns: dict[str, float] = {}
    with module.context, ir.Location.unknown():
        for name, steps in steps_of.items():
            function = functions[name]
            body = read_kernel(functions, name, graph.symbols)
            offer = pick(body)
            choice = offer.choice
            for number in steps:
                for scratch in choice.scratch:
                    plan.add_scratch(number, scratch.dtype, scratch.elements, is_private=scratch.is_private)
            if reuse is not None:
                reusables |= dict.fromkeys(steps, reusable(body, reuse))
            function.attributes[SCHEDULE] = _ITEM.write(choice.item)
            function.attributes[STRATEGY] = ir.StringAttr.get(choice.strategy)
            function.attributes[FLOPS] = encode(to_wire(flops(body)))
            function.attributes[ESTIMATE] = encode(_whole(offer.most_ns))
            if is_scatter(body):
                updating_ns[name] = offer.updating_ns
            offered = [replace(each, estimate_ns=_whole(each.estimate_ns)) for each in offer.candidates]
            function.attributes[CANDIDATES] = encode(
                [{**asdict(each), "is_picked": at == offer.picked} for at, each in enumerate(offered)]
            )
        plan.close()
        settle_prepared(plan)
        if reuse is not None:
            reusables |= {number: _carried_through(step) for number, step in enumerate(plan.steps) if step.host}
        share_storage(plan, reusables, marked_arguments(source, CARRIED) if reuse is not None else frozenset())
        for name, estimate in updating_ns.items():
            if all(plan.steps[number].reuses for number in steps_of[name]):
                functions[name].attributes[ESTIMATE] = encode(_whole(estimate))
        name_entries(plan)
        steps = [replace(step, host=None, nodes=(), apart=()) for step in plan.steps]
        written = ProgramPlan(list(plan.buffers), steps, plan.arguments, results=plan.results)
        module.operation.attributes[PROGRAM] = _PLAN.write(written)


def _carried_through(step: Step) -> tuple[tuple[int, int], ...]:
    """A loop begins with its operands and leaves its results in their place, if nothing needs them afterwards."""
    is_loop = step.host is not None and step.host.kind == "while"
    return tuple((at, at) for at in range(len(step.writes))) if is_loop else ()


def _whole(nanoseconds: float) -> int:
    return min(int(nanoseconds), MOST_NS)


def kernel_functions(module: ir.Module) -> dict[str, ir.Operation]:
    """The kernel functions of a module by name."""
    return {name: function for name, function in functions_of(module).items() if is_kernel(function)}


@dataclass(frozen=True, slots=True)
class ScheduledKernel:
    """A kernel with its schedule, and the `entry` function that runs it on the buffers of `step`.

    `linalg` is the linalg function that defines what the kernel computes, `location` the location of the kernel
    function.
    """

    entry: str
    step: Step
    body: KernelBody
    strategy: str
    item: KernelItem
    linalg: ir.Operation
    location: ir.Location


def scheduled_kernels(module: ir.Module) -> Iterator[ScheduledKernel]:
    """The kernels of a scheduled module, one for each entry, in the order in which the entries first run."""
    symbols, functions = read_symbols(module), functions_of(module)
    for step in entry_steps(read_steps(module)):
        assert step.kernel is not None, "an entry runs a kernel"
        function = functions[step.kernel]
        strategy, item = schedule_of(function)
        body = read_kernel(functions, step.kernel, symbols)
        yield ScheduledKernel(
            step.entry, step, body, strategy, item, functions[step.kernel + SUFFIX], function.location
        )


def entry_steps(steps: Sequence[Step]) -> list[Step]:
    """The first step of each entry."""
    return list({step.entry: step for step in reversed(steps) if step.entry}.values())[::-1]


def schedule_of(function: ir.Operation) -> tuple[str, KernelItem]:
    """`(strategy, schedule)` of a kernel function."""
    attributes = function.attributes
    return ir.StringAttr(attributes[STRATEGY]).value, _ITEM.read(attributes[SCHEDULE])


def work_of(function: ir.Operation) -> tuple[Dim, int]:
    """`(scalar operations, estimated nanoseconds)` of a kernel function."""
    return from_derived_wire(decode(function.attributes[FLOPS])), decode(function.attributes[ESTIMATE])


def candidates_of(function: ir.Operation) -> tuple[tuple[Candidate, ...], int]:
    """The candidates of a kernel function, and the position of the picked one."""
    offered: list[dict[str, Any]] = decode(function.attributes[CANDIDATES])
    picked = [each.pop("is_picked") for each in offered].index(True)
    return tuple(Candidate(**each) for each in offered), picked


_WRITTEN = ("kernel", "reads", "writes", "scratch", "reuses", "entry", "is_prepared")
"""The fields of a step that are written."""


def _to_json(plan: ProgramPlan) -> dict[str, Any]:
    return {
        "buffers": [buffer.model_dump(mode="json") for buffer in plan.buffers],
        "steps": [{name: getattr(step, name) for name in _WRITTEN} for step in plan.steps],
        "arguments": plan.arguments,
        "results": plan.results,
    }


def read_program(module: ir.Module) -> ProgramPlan:
    """The program plan of a scheduled module, with the ops of its host steps and the contents of its constants."""
    graph = read_function(graph_function(module).operation, read_symbols(module))
    plan = plan_program(graph)
    plan.buffers = list(read_buffers(module))
    plan.steps = [
        replace(step, scratch=known.scratch, reuses=known.reuses, entry=known.entry, is_prepared=known.is_prepared)
        for step, known in zip(plan.steps, read_steps(module), strict=True)
    ]
    return plan


def read_buffers(module: ir.Module) -> Sequence[Buffer]:
    """The buffers of the program that a scheduled module holds."""
    return _PLAN.read(module.operation.attributes[PROGRAM]).buffers


def read_steps(module: ir.Module) -> Sequence[Step]:
    """The steps of a scheduled module, without their host ops, `nodes` and `apart`."""
    return _PLAN.read(module.operation.attributes[PROGRAM]).steps


def _from_json(record: Any) -> ProgramPlan:
    """The plan of a decoded record."""
    steps = [Step(host=None, **{name: _frozen(value) for name, value in step.items()}) for step in record["steps"]]
    buffers = [Buffer.model_validate(buffer) for buffer in record["buffers"]]
    return ProgramPlan(buffers, steps, tuple(record["arguments"]), results=tuple(record["results"]))


def _frozen(value: Any) -> Any:
    """The value with tuples for lists."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


_PLAN = Record(_to_json, _from_json)
_ITEM = Record[KernelItem](lambda item: item.model_dump(mode="json"), KernelItem.model_validate)
