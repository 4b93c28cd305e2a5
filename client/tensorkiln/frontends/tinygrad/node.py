"""One tinygrad operation, as input of a translation rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...build import Builder, Tensor
from ...dtypes import DType
from .element_types import dtype_of, is_open
from .sizes import Sizes

Asked: TypeAlias = "tuple[Any, DType]"
"""A tinygrad value, and the element type to compute it in."""


@dataclass(frozen=True, slots=True)
class Node:
    """`values` are the operands, `dtype` is the result's; `read` returns the contents of a realized buffer."""

    uop: Any
    builder: Builder
    sizes: Sizes
    dtype: DType
    values: Sequence[Tensor]
    read: Callable[[Any], Tensor]

    @property
    def value(self) -> Tensor:
        """The first operand, which the others qualify."""
        return self.values[0]


Rule: TypeAlias = "Callable[[Node], Tensor]"
Operands: TypeAlias = "Callable[[Any, DType], Sequence[Asked]]"


def asked(uop: Any, dtype: DType) -> Asked:
    """A value in its own type, or in `dtype` if its type is open."""
    return uop, dtype if is_open(uop) else dtype_of(uop)


def all_alike(uop: Any, dtype: DType) -> Sequence[Asked]:
    """All sources are operands, in the type of the result."""
    return [asked(source, dtype) for source in uop.src]


def nothing(uop: Any, dtype: DType) -> Sequence[Asked]:
    """No source is an operand."""
    del uop, dtype
    return []


def the_first(uop: Any, dtype: DType) -> Sequence[Asked]:
    """Only the first source is an operand, in the type of the result; the others are sizes."""
    return [asked(uop.src[0], dtype)]


@dataclass(frozen=True, slots=True)
class Operation:
    """`rule` translates the operation; `operands` selects its operands and their types."""

    rule: Rule
    operands: Operands = all_alike
