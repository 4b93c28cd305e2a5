"""The registry of custom operations, which `custom` nodes refer to by name.

An operation has a name, attributes, a type rule and an evaluation in NumPy. A program runs it as a callback on the
host, so it needs no code generation. To add one, write a module like `sort.py` and register its record in
`custom/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ..errors import UnsupportedGraphError
from ..expr import Dim
from ..nodes import CustomAttr
from ..types import TensorType

Value: TypeAlias = int | float | str | tuple[Dim, ...]
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class CustomOpError(ValueError):
    """An operation does not accept its inputs or attributes; the graph's error adds the node."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: the kind of its value, what it means, and its default (None: it must be given)."""

    kind: Literal["int", "float", "string", "shape"]
    meaning: str
    default: Value | None = None


@dataclass(frozen=True, slots=True)
class CustomOp:
    """A registered operation.

    `infer_type` gives the type of the result from the types of the inputs and the complete attributes; it raises
    CustomOpError. `compute` gives the result from C-contiguous arrays, which it must not modify.
    """

    name: str
    meaning: str
    attributes: Mapping[str, Attribute]
    infer_type: Callable[[Sequence[TensorType], Mapping[str, Value]], TensorType]
    compute: Callable[[Sequence[Array], Mapping[str, Value]], Array]

    def complete(self, given: Sequence[CustomAttr]) -> dict[str, Value]:
        """The attributes by name, with defaults filled in. CustomOpError for one that is unknown, doubled, missing or
        of another kind."""
        complete: dict[str, Value] = {}
        for attribute in given:
            stated = self.attributes.get(attribute.name)
            if stated is None:
                known = ", ".join(self.attributes)
                raise CustomOpError(f"{self.name} takes no attribute {attribute.name}; it takes: {known}")
            if attribute.name in complete:
                raise CustomOpError(f"the attribute {attribute.name} appears twice")
            if attribute.kind != stated.kind:
                raise CustomOpError(f"the attribute {attribute.name} of {self.name} is of kind {stated.kind}")
            complete[attribute.name] = attribute.value
        for name, stated in self.attributes.items():
            value = complete.get(name, stated.default)
            if value is None:
                raise CustomOpError(f"{self.name} needs the attribute {name}: {stated.meaning}")
            complete[name] = value
        return complete

    def infer(self, inputs: Sequence[TensorType], attributes: Sequence[CustomAttr]) -> TensorType:
        """The type of the result. CustomOpError when the inputs or the attributes do not fit."""
        return self.infer_type(inputs, self.complete(attributes))

    def evaluate(self, inputs: Sequence[Array], attributes: Sequence[CustomAttr]) -> Array:
        """The result for arrays and attributes that fit."""
        return self.compute(inputs, self.complete(attributes))


_REGISTRY: dict[str, CustomOp] = {}


def register(op: CustomOp) -> CustomOp:
    """Register `op` by its name. ValueError when the name is taken."""
    if op.name in _REGISTRY:
        raise ValueError(f"a custom operation named {op.name} is registered already")
    _REGISTRY[op.name] = op
    return op


def registered() -> Mapping[str, CustomOp]:
    """Every operation by name."""
    return dict(_REGISTRY)


def lookup(name: str) -> CustomOp:
    """The operation called `name`. UnsupportedGraphError when there is none."""
    op = _REGISTRY.get(name)
    if op is None:
        known = ", ".join(sorted(_REGISTRY))
        raise UnsupportedGraphError(f"there is no custom operation {name}; registered are: {known}")
    return op
