"""What inference asks of a graph: its nodes, and what its writer states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..dtypes import DType
from ..expr import Dim
from ..nodes import AnyNode, SymVar


class StatedVar(Protocol):
    """What the writer of a graph states about a var."""

    @property
    def dtype(self) -> DType: ...
    @property
    def shape(self) -> tuple[Dim, ...]: ...
    @property
    def device(self) -> str | None: ...


class StatedGraph(Protocol):
    """A graph that is structurally sound, and of which no type is known yet."""

    @property
    def nodes(self) -> Sequence[AnyNode]: ...
    @property
    def vars_metadata(self) -> Mapping[int, StatedVar]: ...
    @property
    def input_vars(self) -> Sequence[int]: ...
    @property
    def parameter_vars(self) -> Sequence[int]: ...
    @property
    def output_vars(self) -> Sequence[int]: ...
    @property
    def symbolic_vars(self) -> Sequence[SymVar]: ...
