"""The operands of a kernel as typed pointers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dialect.mlir import ir
from tensorkiln.buffers import Buffer

from ..plan.program_plan import Step
from ..scalar.registers import stored_type

_CAST: Final = "builtin.unrealized_conversion_cast"


def operand_pointers(step: Step, buffers: Sequence[Buffer], arguments: Sequence[ir.Value]) -> list[ir.Value]:
    """The pointer of each buffer that the step reads, then writes, then uses as scratch.

    `arguments` are those of the kernel, in call order. A buffer that is overwritten in place has the pointer of the
    buffer that overwrites it, so that the no-alias attributes hold.
    """
    used = (*step.reads, *step.writes, *step.scratch)
    return [
        as_pointer_to(stored_type(buffers[number].dtype), arguments[slot])
        for number, slot in zip(used, step.slots, strict=True)
    ]


def as_pointer_to(element: ir.Type, pointer: ir.Value) -> ir.Value:
    """`pointer`, a rank-0 memref, retyped to an element type of the same size."""
    kind = ir.MemRefType(pointer.type)
    if kind.element_type == element:
        return pointer
    retyped = ir.MemRefType.get([], element, memory_space=kind.memory_space)
    # Both lower to the same pointer, and the cast is removed.
    return ir.Operation.create(_CAST, results=[retyped], operands=[pointer]).results[0]


def is_same_place(one: ir.Value, other: ir.Value) -> bool:
    """Whether two pointers of `operand_pointers` are one argument of the kernel, be it of two dtypes."""
    return _argument(one) == _argument(other)


def _argument(pointer: ir.Value) -> ir.Value:
    made = pointer.owner
    return pointer if isinstance(made, ir.Block) or made.name != _CAST else made.operands[0]
