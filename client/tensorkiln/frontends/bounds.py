"""A caller's bounds for the dynamic dimensions of a model: inclusive bounds by name, or one fixed size."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeAlias

from ..errors import RequestError

Bounds: TypeAlias = "int | tuple[int, int]"


def require_known(given: Iterable[str], known: Collection[str]) -> None:
    """RequestError for bounds of an unknown dimension; `details["dimensions"]` lists the model's dimensions."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        there = f"they are {', '.join(sorted(known))}" if known else "it has none"
        raise RequestError(
            f"the model has no dynamic dimension {unknown[0]!r}; {there}",
            details={"dimensions": sorted(known)},
        )
