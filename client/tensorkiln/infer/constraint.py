"""A condition on the symbols of a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..expr import Dim


@dataclass(frozen=True, slots=True)
class Constraint:
    """`left == right` (eq) or `left >= right` (ge), checked at the call because it could not be proven before.

    `pointer` is the JSON Pointer of the node that needs it, `message` is its meaning there.
    """

    kind: Literal["eq", "ge"]
    left: Dim
    right: Dim
    pointer: str
    message: str
