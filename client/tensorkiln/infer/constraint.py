"""A condition on the symbols of a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..expr import Dim


@dataclass(frozen=True, slots=True)
class Constraint:
    """`left == right` (eq) or `left >= right` (ge): must hold at the call because it could not be proven before.

    `pointer` is the JSON Pointer of the node it comes from, `message` says what it means there.
    """

    kind: Literal["eq", "ge"]
    left: Dim
    right: Dim
    pointer: str
    message: str
