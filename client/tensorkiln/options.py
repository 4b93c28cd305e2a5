"""What a compile request may ask of the compiler beyond the target."""

from __future__ import annotations

from .nodes.base import Record


class CompileOptions(Record):
    """Options of one compile.

    `fast_math` lets mulacc round once instead of twice, so results may differ in the last bit. `dump_stages` keeps the
    IR text of every stage. `cubin` also assembles the PTX of a CUDA target for exactly its architecture, which says how
    many registers and spills each kernel has; it needs NVIDIA's assembler on the server. CPU targets ignore it.
    Without `fusion` every op runs in a kernel of its own and no two values share storage while both are needed: slow,
    and a second opinion on a result that is in doubt.
    """

    fast_math: bool = False
    dump_stages: bool = False
    cubin: bool = False
    fusion: bool = True
