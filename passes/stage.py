"""A stage of the compiler: a name and a function from module to module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dialect.mlir import ir

from .boundary import Dialects


@dataclass(frozen=True, slots=True)
class Stage:
    """`run` may change its argument, and returns the module for the next stage, in the dialects `leaves` only."""

    name: str
    run: Callable[[ir.Module], ir.Module]
    leaves: Dialects
