"""What a compile request may ask of the compiler beyond the target."""

from __future__ import annotations

from typing import Literal

from .nodes.base import Record


class CompileOptions(Record):
    """Options of one compile.

    `fast_math` lets mulacc round once instead of twice, so results may differ in the last bit. `dump_stages` keeps the
    IR text of every stage. `cubin` also assembles the PTX of a CUDA target for exactly its architecture, which says how
    many registers and spills each kernel has; it needs NVIDIA's assembler on the server. CPU targets ignore it.
    Without `fusion` every op runs in a kernel of its own and no two values share storage while both are needed: slow,
    and a second opinion on a result that is in doubt. With `schedule` "none" no strategy of ours has a part in it: the
    linalg of each kernel is lowered by MLIR's own passes alone, into plain loops on one thread. That is slower still,
    and tells whether a strategy is wrong, or what it was given.
    """

    fast_math: bool = False
    dump_stages: bool = False
    cubin: bool = False
    fusion: bool = True
    schedule: Literal["auto", "none"] = "auto"
