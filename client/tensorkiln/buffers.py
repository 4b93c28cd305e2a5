"""The storage of a compiled program: its buffers, and the graph vars bound to them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from .dtypes import DType
from .limits import SHA256_PATTERN
from .nodes.base import Record
from .sizes import WireSize

BufferRole = Literal["input", "output", "temp", "constant", "scratch"]
DEFAULT_ALIGNMENT = 64
"""Bytes: one cache line, and one vector register of the widest x86."""


class Buffer(Record):
    """A buffer of a program; `id` is its position in `CompiledProgram.buffers`.

    `lifetime` is the inclusive range of item ids during which the contents matter; `size_bytes` is what the kernels
    may touch. Buffers of one `alias_group` are windows of the same storage, each starting at its byte `offset`, and as
    aligned as `alignment` says if the storage starts at a multiple of 64. The offset of one without bytes is nothing.

    Roles: `input` is the caller's array and never written; `output` is fresh at each call; `temp` lives in the arena;
    `constant` holds the little-endian bytes of `artifact` (a SHA-256) and is never written; `scratch` is private to a
    worker thread during one item, its contents undefined before.
    """

    id: int = Field(ge=0)
    dtype: DType
    shape: tuple[WireSize, ...]
    size_bytes: WireSize
    role: BufferRole
    lifetime: tuple[int, int]
    alias_group: int | None = None
    alignment: int = Field(default=DEFAULT_ALIGNMENT, ge=1)
    artifact: str | None = Field(default=None, pattern=SHA256_PATTERN)
    offset: WireSize = 0

    @property
    def storage(self) -> tuple[str, int]:
        """The key of the buffer's storage: equal for buffers that share one."""
        return ("buffer", self.id) if self.alias_group is None else ("group", self.alias_group)

    @model_validator(mode="after")
    def _is_consistent(self) -> Buffer:
        if self.lifetime[0] > self.lifetime[1]:
            raise ValueError(f"buffer {self.id} has the lifetime {self.lifetime}, which ends before it begins")
        if self.alignment & (self.alignment - 1):
            raise ValueError(f"buffer {self.id} has the alignment {self.alignment}, which is not a power of two")
        if (self.role == "constant") != (self.artifact is not None):
            raise ValueError(f"buffer {self.id} ({self.role}) has an artifact exactly when it is a constant")
        if self.role == "scratch" and self.alias_group is not None:
            raise ValueError(f"buffer {self.id} is scratch, which is private to a thread and has no alias group")
        if self.alias_group is None and self.offset != 0:
            raise ValueError(f"buffer {self.id} has an offset but no alias group to be a window of")
        return self


class Binding(Record):
    """The graph's input or output `var` and the buffer that holds it. A parameter is an input that is bound once."""

    var: int
    buffer: int = Field(ge=0)
    dtype: DType
    shape: tuple[WireSize, ...]
    is_parameter: bool = False
