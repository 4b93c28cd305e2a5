"""All supported operations, by their MLIR name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from . import (
    comparison,
    complex_numbers,
    contraction,
    control,
    conversion,
    convolution,
    dynamic,
    elementwise,
    factoring,
    fourier,
    gathering,
    movement,
    random_bits,
    reduction,
    scattering,
    sorting,
    windows,
)
from .table import Translator

FAMILIES: Final[Mapping[str, Mapping[str, Translator]]] = MappingProxyType(
    {
        "elementwise": {
            **elementwise.OPERATORS,
            **elementwise.WHOLE,
            **comparison.OPERATORS,
            **conversion.OPERATORS,
        },
        "shape and movement": {**movement.OPERATORS, **movement.ANYWHERE},
        "products": {**contraction.OPERATORS, **convolution.OPERATORS},
        "reductions and windows": {**reduction.OPERATORS, **windows.OPERATORS},
        "computed positions": {**gathering.OPERATORS, **scattering.OPERATORS},
        "shapes that are values": {**dynamic.OPERATORS},
        "factors of matrices": {**factoring.OPERATORS},
        "order": {**sorting.OPERATORS},
        "random numbers": {**random_bits.OPERATORS},
        "complex numbers": {**complex_numbers.ANYWHERE, **fourier.OPERATORS},
        "control": {**control.OPERATORS, **control.ANYWHERE},
    }
)
"""Supported operations by family, as the manual lists them."""

OPERATORS: Final[Mapping[str, Translator]] = MappingProxyType(
    {name: translator for family in FAMILIES.values() for name, translator in family.items()}
)

ELEMENTWISE: Final[Mapping[str, Translator]] = MappingProxyType(
    {
        **elementwise.OPERATORS,
        **comparison.OPERATORS,
        **conversion.OPERATORS,
        **movement.ANYWHERE,
        **control.ANYWHERE,
    }
)
"""Operations that are valid in a region on scalars that is applied to tensors."""

STRUCTURAL: Final = frozenset({*control.OPERATORS, *control.ANYWHERE, "stablehlo.optimization_barrier"})
"""Operations that only pass values on, so that complex ones need no other translator."""

COMPLEX: Final[Mapping[str, Translator]] = MappingProxyType(
    {
        **{name: complex_numbers.by_parts(OPERATORS[name]) for name in complex_numbers.BY_PARTS},
        **complex_numbers.OPERATORS,
        **complex_numbers.ANYWHERE,
        **fourier.OPERATORS,
        "stablehlo.get_dimension_size": OPERATORS["stablehlo.get_dimension_size"],
    }
)
"""Translators for operations on complex numbers."""
