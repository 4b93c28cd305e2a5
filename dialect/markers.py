"""Marker ops: hints, identifiers, devices, no-ops."""

from collections.abc import Sequence
from typing import Any

from .fields import integer, text
from .mlir import ext, ir
from .operation import IdentityOp, KilnOp
from .rules import same_type


class DetachOp(IdentityOp, name="detach", traits=[ext.Pure]):
    """Identity; stops a gradient."""


class ContiguousBackwardOp(IdentityOp, name="contiguous_backward", traits=[ext.Pure]):
    """Identity; marks the backward pass."""


class FuseOp(IdentityOp, name="fuse", traits=[ext.Pure]):
    """Identity; asks for fusion with the consumers."""


class UnrollOp(IdentityOp, name="unroll", traits=[ext.Pure]):
    """Identity of `loop_var`; asks for the loop to be unrolled `unroll_factor` times."""

    unroll_factor = integer()


class UniqueOp(KilnOp, name="unique", traits=[ext.Pure]):
    """An identifier; its value, if it is read, is `id`."""

    id = integer()
    result: ext.Result[Any]


class DeviceOp(KilnOp, name="device", traits=[ext.Pure]):
    """Names a device; its value, if it is read, is 0."""

    device_name = text()
    result: ext.Result[Any]


class NoopOp(KilnOp, name="noop", traits=[ext.Pure]):
    """Identity; zeros without a source."""

    sources: Sequence[ext.Operand[Any]]
    result: ext.Result[Any]

    @property
    def source(self) -> ir.Value | None:
        """The operand, if there is one."""
        return self.operands[0] if len(self.operands) else None

    def problem(self) -> str | None:
        if len(self.operands) > 1:
            return f"there are {len(self.operands)} operands, not one or none"
        return same_type(self.inputs[0], self.tensor) if len(self.operands) else None
