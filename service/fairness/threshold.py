"""How much of what all share one tenant may take."""

from __future__ import annotations

from typing import Final

ALPHA: Final = 3
"""One tenant alone gets ALPHA / (ALPHA + 1) of it, two get ALPHA / (2 ALPHA + 1) each: some is left for the next."""


def is_fair(own: int, taken: int, most: int, more: int = 1) -> bool:
    """Whether a tenant that has `own` of the `taken` may have `more`, of `most` in all.

    A share may grow to a multiple of what is free (A. K. Choudhury, E. L. Hahne, "Dynamic queue length thresholds for
    shared-memory packet switches", IEEE/ACM Transactions on Networking 6(2), 1998).
    """
    return taken + more <= most and own + more <= ALPHA * (most - taken)
