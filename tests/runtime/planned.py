"""A plan beside what the sizes of a call say of it, to compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tensorkiln.expr.size_function import Value
from tensorkiln.runtime.address import Address
from tensorkiln.runtime.arguments import bind_symbols, check_constraints, input_specs
from tensorkiln.runtime.call_sizes import MOST_TEMPORARIES, Argument, ArraySizes, CallSizes
from tensorkiln.runtime.host_launch import HostLaunch, host_launches
from tensorkiln.runtime.layout import lay_out
from tensorkiln.runtime.loaded import LoadedProgram
from tensorkiln.runtime.loops import InnerPlans
from tensorkiln.runtime.memory import ALIGNMENT, address_of
from tensorkiln.runtime.plan import Plan, make_plan

BLOCK = 1 << 40
"""The address of the block of a call."""


def planned(loaded: LoadedProgram, threads: int, symbols: Mapping[str, int]) -> Plan[HostLaunch]:
    """The plan of a program with no input fixed. Errors as for a call whose arrays are right."""
    outline = loaded.outlines.whole
    values = bind_symbols(outline.program.symbols, symbols)
    specs = input_specs(outline.phase.inputs, values)
    check_constraints(outline.phase.constraints, values)
    constants = {buffer: address_of(array) for buffer, array in loaded.constants.items()}
    return make_plan(lay_out(outline, values), specs, constants, host_launches(loaded.kernels, threads), _no_loops)


def _no_loops(number: int) -> InnerPlans[Plan[HostLaunch]]:
    raise AssertionError(f"program {number} is inside of none")


def is_short(plan: Plan[HostLaunch]) -> bool:
    """Whether machine code may do the calls of a plan."""
    return (
        all(output.is_fresh for output in plan.outputs)
        and all(isinstance(step, HostLaunch) and step.workers == 1 for step in plan.steps)
        and plan.block_size <= MOST_TEMPORARIES
    )


def numbers_of_plan(plan: Plan[HostLaunch]) -> list[Any]:
    """Every number of a short plan in a block at `BLOCK`, scratch before the rest."""
    held = plan.block_size + ALIGNMENT + sum(output.size + ALIGNMENT for output in plan.outputs)
    numbers: list[Any] = [plan.block_size, held]
    numbers += [(spec.dtype, spec.shape) for spec in plan.inputs]
    numbers += [(spec.dtype, spec.shape, spec.size) for spec in plan.outputs]
    for step in plan.steps:
        assert isinstance(step, HostLaunch)
        first, last = step.edges
        arguments = [_place(argument, plan) for argument in step.arguments]
        numbers.append((step.kernel.function, tuple(step.values), first, last, arguments))
    return numbers


def _place(address: Address, plan: Plan[HostLaunch]) -> tuple[str, int, int]:
    match address.base:
        case "input" | "output":
            return address.base, address.index, address.offset
        case "scratch":
            return "memory", 0, BLOCK + address.offset
        case "block":
            return "memory", 0, BLOCK + plan.scratch_size + address.offset
        case "fixed":
            return "memory", 0, address.offset


def numbers_of_sizes(sizes: CallSizes, symbols: Mapping[str, int]) -> list[Any] | None:
    """Every number of a call at these symbols, as `numbers_of_plan` gives them."""
    values = list(_values(sizes))
    made = sizes.function.compiled(values, [])(*symbols.values(), BLOCK)
    if made is None:
        return None
    known = dict(zip(values, made, strict=False))
    numbers: list[Any] = [known[sizes.block_size], known[sizes.held]]
    numbers += [(array.dtype, tuple(known[dim] for dim in array.dims)) for array in sizes.inputs]
    numbers += [(array.dtype, tuple(known[dim] for dim in array.dims), known[array.size]) for array in sizes.outputs]
    for launch in sizes.launches:
        if known[launch.groups]:
            arguments = [(each.base, each.index, known[each.offset]) for each in launch.arguments]
            given = tuple(known[value] for value in launch.values)
            numbers.append((launch.kernel.function, given, 0, known[launch.groups], arguments))
    return numbers


def _values(sizes: CallSizes) -> Iterator[Value]:
    yield from (sizes.block_size, sizes.held)
    arrays: tuple[ArraySizes, ...] = (*sizes.inputs, *sizes.outputs)
    for array in arrays:
        yield from (*array.dims, array.size)
    for launch in sizes.launches:
        arguments: tuple[Argument, ...] = launch.arguments
        yield from (*(argument.offset for argument in arguments), *launch.values, launch.groups)
