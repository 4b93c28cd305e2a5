"""Addresses as data: masks, indices, lanes, gather and scatter."""

from __future__ import annotations

from typing import Literal

from ..dtypes import DType
from .base import Record
from .fields import Integer, Integers, Shape, Var, Vars
from .movement import ShapeTracker


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
    """Puts updates along `axis` into zeros of `shape`; the last of several wins, an index outside is dropped."""

    node: Literal["scatter"] = "scatter"
    indices_var: Var
    updates_var: Var
    axis: Integer
    shape: Shape
    out_var: Var
    dtype: DType

    @property
    def operands(self) -> tuple[int, ...]:
        return (self.indices_var, self.updates_var)
