"""What a compile request may ask of the compiler beyond the target."""

from __future__ import annotations

from .nodes.base import Record


class CompileOptions(Record):
    """Options of one compile.

    `fast_math` allows the code generator to reassociate, contract and flush; results may differ in the last bits and
    for non-finite values. `dump_stages` keeps the IR text of every stage.
    """

    fast_math: bool = False
    dump_stages: bool = False
