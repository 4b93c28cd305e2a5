"""The input of inference: a graph's nodes, and the metadata that it states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..dtypes import DType
from ..expr import Dim
from ..nodes import AnyNode, SymVar


class StatedVar(Protocol):
    """The metadata that a graph states about a var."""

    @property
    def dtype(self) -> DType: ...
    @property
    def shape(self) -> tuple[Dim, ...]: ...
    @property
    def device(self) -> str | None: ...


class StatedGraph(Protocol):
    """A structurally sound graph whose types are not inferred yet."""

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
