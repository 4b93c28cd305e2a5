"""Values that mark something: hints, identifiers, devices, nothing."""

from __future__ import annotations

from typing import Literal

from ..dtypes import DType
from .base import Record
from .fields import DeviceName, Integer, Var


class Detach(Record):
    """Identity; stops a gradient."""

    node: Literal["detach"] = "detach"
    in_var: Var
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.in_var,)


class ContiguousBackward(Record):
    """Identity; marks the backward pass."""

    node: Literal["contiguous_backward"] = "contiguous_backward"
    in_var: Var
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.in_var,)


class Fuse(Record):
    """Identity; asks for fusion with the consumers."""

    node: Literal["fuse"] = "fuse"
    in_var: Var
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.in_var,)


class Unroll(Record):
    """Identity; asks for the loop to be unrolled `unroll_factor` times."""

    node: Literal["unroll"] = "unroll"
    loop_var: Var
    unroll_factor: Integer
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.loop_var,)


class Unique(Record):
    """An identifier; its value is `id`."""

    node: Literal["unique"] = "unique"
    id: Integer
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return ()


class Device(Record):
    """Names a device; its value is 0."""

    node: Literal["device"] = "device"
    device_name: DeviceName
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return ()


class Noop(Record):
    """Identity; zero without an input, a scalar unless the metadata of `out_var` says otherwise."""

    node: Literal["noop"] = "noop"
    in_var: Var | None = None
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return () if self.in_var is None else (self.in_var,)
