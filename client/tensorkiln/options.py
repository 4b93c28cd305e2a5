"""What a compile request may ask of the compiler beyond the target."""

from __future__ import annotations

from .nodes.base import Record


class CompileOptions(Record):
    """Options of one compile.

    `fast_math` lets mulacc round once instead of twice, so results may differ in the last bit. `dump_stages` keeps the
    IR text of every stage.
    """

    fast_math: bool = False
    dump_stages: bool = False
