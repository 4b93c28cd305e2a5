"""Consistency checks between the parts of a compiled program. Each failure is a ValueError that names the parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..buffers import Binding, Buffer
from ..expr import Dim, free_symbols
from ..nodes import SymVar
from ..schedule import HostCallback, KernelItem, Loop, MemoryTransfer, Schedule, ScheduleItem
from .program_spec import ProgramSpec

_READ_ONLY = ("input", "constant")


def check_program(
    *,
    symbols: Sequence[SymVar],
    inputs: Sequence[Binding],
    outputs: Sequence[Binding],
    buffers: Sequence[Buffer],
    kernels: Sequence[ProgramSpec],
    schedule: Schedule,
    in_place: Sequence[int] = (),
) -> None:
    """ValueError when a part refers to a missing part, or uses one in a way that is not allowed."""
    _check_ids(inputs, outputs, buffers, kernels, schedule)
    _check_symbols({symbol.name for symbol in symbols}, len(symbols), buffers, kernels)
    _check_bindings(inputs, outputs, buffers)
    replaced = _replaced(inputs, outputs, buffers, in_place)
    protected = {number: role for number, role in _protected(buffers).items() if number not in replaced}
    for item in schedule.items:
        read, written = accesses(item, kernels)
        for buffer in map(buffers.__getitem__, (*read, *written)):
            if not buffer.lifetime[0] <= item.item_id <= buffer.lifetime[1]:
                raise ValueError(f"item {item.item_id} uses buffer {buffer.id} outside its lifetime {buffer.lifetime}")
        for buffer_id in written:
            if buffer_id in protected:
                raise ValueError(
                    f"item {item.item_id} writes buffer {buffer_id}, whose storage is the {protected[buffer_id]}"
                )


def accesses(item: ScheduleItem, kernels: Sequence[ProgramSpec]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids of the buffers that `item` may read and may write. A kernel may read every one of its arguments."""
    operation = item.operation
    match operation:
        case KernelItem():
            kernel = kernels[operation.kernel_id]
            return kernel.buffers, tuple(kernel.buffers[slot] for slot in kernel.outs)
        case MemoryTransfer():
            return (operation.src_var,), (operation.dst_var,)
        case HostCallback() | Loop():
            return operation.input_vars, operation.output_vars
        case _:
            return (), ()


def _check_ids(
    inputs: Sequence[Binding],
    outputs: Sequence[Binding],
    buffers: Sequence[Buffer],
    kernels: Sequence[ProgramSpec],
    schedule: Schedule,
) -> None:
    for position, buffer in enumerate(buffers):
        if buffer.id != position:
            raise ValueError(f"the buffer at position {position} has the id {buffer.id}; ids are positions")
    for kernel in kernels:
        if len(kernel.buffers) != kernel.buf_count:
            raise ValueError(f"kernel {kernel.name} takes {kernel.buf_count} buffers but names {len(kernel.buffers)}")
    for item in schedule.items:
        if isinstance(item.operation, KernelItem) and item.operation.kernel_id >= len(kernels):
            raise ValueError(f"item {item.item_id} launches kernel {item.operation.kernel_id} of {len(kernels)}")
    for owner, buffer_id in _mentions(inputs, outputs, kernels, schedule):
        if not 0 <= buffer_id < len(buffers):
            raise ValueError(f"{owner} names buffer {buffer_id}, which is not in 0..{len(buffers) - 1}")


def _mentions(
    inputs: Sequence[Binding], outputs: Sequence[Binding], kernels: Sequence[ProgramSpec], schedule: Schedule
) -> Iterator[tuple[str, int]]:
    for binding in (*inputs, *outputs):
        yield f"the binding of var {binding.var}", binding.buffer
    for kernel in kernels:
        for buffer_id in kernel.buffers:
            yield f"kernel {kernel.name}", buffer_id
    for item in schedule.items:
        for buffer_id in sum(accesses(item, kernels), ()):
            yield f"item {item.item_id}", buffer_id


def _check_symbols(declared: set[str], count: int, buffers: Sequence[Buffer], kernels: Sequence[ProgramSpec]) -> None:
    if len(declared) != count:
        raise ValueError("a symbol is declared twice")
    for buffer in buffers:
        _require_declared(f"buffer {buffer.id}", (*buffer.shape, buffer.size_bytes, buffer.offset), declared)
    for kernel in kernels:
        sizes = (*kernel.global_size, *(kernel.local_size or ()), kernel.dynamic_shared_bytes)
        _require_declared(f"kernel {kernel.name}", sizes, declared)
        unknown = set(kernel.var_names) - declared
        if unknown:
            raise ValueError(f"kernel {kernel.name} takes {', '.join(sorted(unknown))}, which is not a symbol")


def _require_declared(owner: str, dims: Sequence[Dim], declared: set[str]) -> None:
    for dim in dims:
        unknown = free_symbols(dim) - declared
        if unknown:
            raise ValueError(f"{owner} uses {', '.join(sorted(unknown))}, which is not a symbol")


def _check_bindings(inputs: Sequence[Binding], outputs: Sequence[Binding], buffers: Sequence[Buffer]) -> None:
    for binding in (*inputs, *outputs):
        buffer = buffers[binding.buffer]
        if (buffer.dtype, buffer.shape) != (binding.dtype, binding.shape):
            raise ValueError(f"var {binding.var} and its buffer {buffer.id} differ in dtype or shape")
        if buffer.role == "scratch":
            raise ValueError(f"var {binding.var} is bound to buffer {buffer.id}, which is scratch")
    bound = [binding.buffer for binding in inputs]
    placed = [buffer.id for buffer in buffers if buffer.role == "input"]
    if sorted(bound) != placed:
        raise ValueError(f"the inputs are bound to buffers {bound}, but the buffers with the role input are {placed}")
    if len({binding.var for binding in inputs}) != len(inputs):
        raise ValueError("an input var is bound twice")


def _replaced(
    inputs: Sequence[Binding], outputs: Sequence[Binding], buffers: Sequence[Buffer], in_place: Sequence[int]
) -> frozenset[int]:
    """The buffers in the storages of the inputs at these positions.

    ValueError when the output at such a position is not in the place of the input.
    """
    if list(in_place) != sorted(set(in_place)):
        raise ValueError(f"the inputs {list(in_place)} that are replaced in place are not in order, each once")
    storages: set[tuple[str, int]] = set()
    for position in in_place:
        if not 0 <= position < min(len(inputs), len(outputs)):
            raise ValueError(f"input {position} is replaced in place, and there is no such input or no such output")
        taken, given = buffers[inputs[position].buffer], buffers[outputs[position].buffer]
        places = [(each.storage, each.offset, each.size_bytes, each.dtype) for each in (taken, given)]
        if places[0] != places[1] or taken.offset != 0:
            raise ValueError(f"input {position} is replaced in place, and output {position} is elsewhere")
        storages.add(taken.storage)
    return frozenset(buffer.id for buffer in buffers if buffer.storage in storages)


def _protected(buffers: Sequence[Buffer]) -> dict[int, str]:
    """Read-only buffers, each with the role that makes it so: its own, or the input or constant in its alias group.

    ValueError when an alias group has more than one input or constant.
    """
    groups: dict[int, str] = {}
    for buffer in buffers:
        if buffer.alias_group is None or buffer.role not in _READ_ONLY:
            continue
        if buffer.alias_group in groups:
            raise ValueError(f"alias group {buffer.alias_group} holds more than one input or constant")
        groups[buffer.alias_group] = buffer.role
    protected = {buffer.id: str(buffer.role) for buffer in buffers if buffer.role in _READ_ONLY}
    for buffer in buffers:
        if buffer.alias_group in groups:
            protected[buffer.id] = groups[buffer.alias_group]
    return protected
