"""How a runtime is to start a kernel."""

from __future__ import annotations

from dataclasses import dataclass

from tensorkiln.expr import Dim


@dataclass(frozen=True, slots=True)
class Launch:
    """`groups` work-groups of `threads` threads, None where a work-group is one call of the kernel.

    `static_shared_bytes` and `dynamic_shared_bytes` are the shared memory of a work-group that the kernel takes by
    itself and that the launch must give it; `alignment` is what the address of every buffer must be a multiple of, in
    bytes, 0 meaning its element size.
    """

    groups: Dim
    threads: int | None = None
    static_shared_bytes: int = 0
    dynamic_shared_bytes: Dim = 0
    alignment: int = 0
