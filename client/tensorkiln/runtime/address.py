"""Where a buffer is during a call: known in advance, or relative to something that each call brings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Base = Literal["fixed", "block", "scratch", "input", "output"]


@dataclass(frozen=True, slots=True)
class Address:
    """`offset` bytes from a base.

    fixed: the base is 0, the offset an address; block: the start of the call's block; scratch: the share of a worker;
    input, output: the array number `index` of the call.
    """

    base: Base
    offset: int
    index: int = 0
