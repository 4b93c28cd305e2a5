"""All supported operations of tinygrad graphs, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from . import arithmetic, comparison, constants, conversion, functions, movement, random, reduction, storage, writing
from .node import Operation

FAMILIES: Final[Mapping[str, Mapping[str, Operation]]] = MappingProxyType(
    {
        "arithmetic": arithmetic.OPERATIONS,
        "comparison, choice and bits": comparison.OPERATIONS,
        "conversion": conversion.OPERATIONS,
        "movement": movement.OPERATIONS,
        "reduction": reduction.OPERATIONS,
        "constants": constants.OPERATIONS,
        "storage": storage.OPERATIONS,
        "writing": writing.OPERATIONS,
        "random bits": random.OPERATIONS,
        "functions": functions.OPERATIONS,
    }
)
"""The operation tables of all families, by family name."""
OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType(
    {name: operation for family in FAMILIES.values() for name, operation in family.items()}
)
