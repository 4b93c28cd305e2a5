"""Addresses as data: masks, indices, lanes, gather and scatter."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from ..dtypes import DType
from .base import Record
from .fields import Integer, Integers, Shape, Var, Vars
from .movement import ShapeTracker


class ScatterKind(StrEnum):
    """What an update does to the element at its place: `none` replaces it, the others combine with it."""

    NONE = "none"
    ADD = "add"
    MUL = "mul"
    MIN = "min"
    MAX = "max"


class Valid(Record):
    """Where the masks of the tracker hold: a bool tensor for a scalar bool or unit input, else `where(mask, in, 0)`."""

    node: Literal["valid"] = "valid"
    in_var: Var
    shape_tracker: ShapeTracker
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.in_var,)


class Index(Record):
    """Flat elements `idx` of the input; 0 where `valid` does not hold or the index is outside."""

    node: Literal["index"] = "index"
    in_var: Var
    idx_var: Var
    valid_var: Var | None = None
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        if self.valid_var is None:
            return (self.in_var, self.idx_var)
        return (self.in_var, self.idx_var, self.valid_var)


class Gep(Record):
    """Lanes of the last axis; a single index drops that axis."""

    node: Literal["gep"] = "gep"
    in_var: Var
    indices: Integers
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.in_var,)


class Vectorize(Record):
    """Stacks two or more inputs on a new last axis."""

    node: Literal["vectorize"] = "vectorize"
    in_vars: Vars
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return self.in_vars


class Gather(Record):
    """Takes along `axis`: `src[i.., indices[i..j..k], ..k]`; an index outside gives 0."""

    node: Literal["gather"] = "gather"
    src_var: Var
    indices_var: Var
    axis: Integer
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.src_var, self.indices_var)


class Scatter(Record):
    """Puts updates along `axis`, in row-major order, into a copy of `init_var`, or into zeros of `shape` without one.

    With the reduction `none` the last of several updates wins; the others are binops of the element and the update. An
    index outside is dropped. Both fields are extensions, and are left out of the JSON where they have their defaults.
    """

    node: Literal["scatter"] = "scatter"
    indices_var: Var
    updates_var: Var
    init_var: Var | None = Field(default=None, exclude_if=lambda var: var is None)
    axis: Integer
    shape: Shape
    reduction: ScatterKind = Field(default=ScatterKind.NONE, exclude_if=lambda kind: kind is ScatterKind.NONE)
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        if self.init_var is None:
            return (self.indices_var, self.updates_var)
        return (self.indices_var, self.updates_var, self.init_var)
