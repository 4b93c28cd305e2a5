"""The pointers that a kernel is given, as what its operands are."""

from __future__ import annotations

from collections.abc import Sequence

from dialect.mlir import ir
from tensorkiln.buffers import Buffer

from ..plan.program_plan import Step
from ..scalar.registers import stored_type


def operand_pointers(step: Step, buffers: Sequence[Buffer], arguments: Sequence[ir.Value]) -> list[ir.Value]:
    """The pointer of each buffer that the step reads, then writes, then has for scratch.

    `arguments` are those of the kernel, in call order. A buffer that is overwritten in place has the pointer of the one
    that takes its place, so that whatever is known of pointers that do not alias holds.
    """
    used = (*step.reads, *step.writes, *step.scratch)
    return [
        as_pointer_to(stored_type(buffers[number].dtype), arguments[slot])
        for number, slot in zip(used, step.slots, strict=True)
    ]


def as_pointer_to(element: ir.Type, pointer: ir.Value) -> ir.Value:
    """`pointer`, a rank-0 memref, as one to elements of another type, which are as large: the same address."""
    kind = ir.MemRefType(pointer.type)
    if kind.element_type == element:
        return pointer
    retyped = ir.MemRefType.get([], element, memory_space=kind.memory_space)
    # Lowered, both are the same pointer, and the cast goes.
    return ir.Operation.create("builtin.unrealized_conversion_cast", results=[retyped], operands=[pointer]).results[0]
