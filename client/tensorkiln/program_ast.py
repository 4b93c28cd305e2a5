"""The node graph of a kernel in a back end, under a SINK, and the forms of its code.

Launch expressions (`tensorkiln.launch`) are nodes of the same graph.
"""

from __future__ import annotations

from dataclasses import dataclass

from .launch.nodes import LaunchNode


@dataclass(frozen=True)
class Param(LaunchNode):
    """Buffer argument number `slot`; with a `device`, a placed buffer, not an argument."""

    slot: int
    device: str | None = None


@dataclass(frozen=True)
class Special(LaunchNode):
    """A launch index `0 .. end - 1`: `gidx0` a work-group, `lidx0` a thread of the group, `idx0` a global id."""

    end: LaunchNode
    name: str

    @property
    def sources(self) -> tuple[LaunchNode, ...]:
        return (self.end,)


@dataclass(frozen=True)
class Index(LaunchNode):
    """The address of an element of `buffer`."""

    buffer: LaunchNode
    indices: tuple[LaunchNode, ...] = ()

    @property
    def sources(self) -> tuple[LaunchNode, ...]:
        return (self.buffer, *self.indices)


@dataclass(frozen=True)
class Load(LaunchNode):
    """The element at `index`."""

    index: LaunchNode

    @property
    def sources(self) -> tuple[LaunchNode, ...]:
        return (self.index,)


@dataclass(frozen=True)
class Store(LaunchNode):
    """`value` written to `index`."""

    index: LaunchNode
    value: LaunchNode

    @property
    def sources(self) -> tuple[LaunchNode, ...]:
        return (self.index, self.value)


@dataclass(frozen=True)
class Sink(LaunchNode):
    """The root of a kernel, with all its effects."""

    effects: tuple[LaunchNode, ...]

    @property
    def sources(self) -> tuple[LaunchNode, ...]:
        return self.effects


@dataclass(frozen=True)
class DeviceRef(LaunchNode):
    """The device of a program, such as `CUDA:0`."""

    name: str

    @property
    def op(self) -> str:
        return "Device"


@dataclass(frozen=True)
class Linear(LaunchNode):
    """The instructions in order."""

    instructions: tuple[LaunchNode, ...] = ()

    @property
    def sources(self) -> tuple[LaunchNode, ...]:
        return self.instructions


@dataclass(frozen=True)
class Source(LaunchNode):
    """The rendered text: LLVM IR or PTX."""

    code: str


@dataclass(frozen=True)
class ProgramBinary(LaunchNode):
    """The object, cubin or code object."""

    content: bytes
