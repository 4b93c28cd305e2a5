"""The address of a buffer during a call: absolute, or relative to memory that each call supplies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Base = Literal["fixed", "block", "scratch", "input", "output"]


@dataclass(frozen=True, slots=True)
class Address:
    """`offset` bytes from a base.

    fixed: the base is 0, the offset an address; block: the start of the call's block; scratch: the worker's share of
    scratch; input, output: the array number `index` of the call.
    """

    base: Base
    offset: int
    index: int = 0
