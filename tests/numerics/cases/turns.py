"""Which of many combinations a run takes: by turns, so that each kind and each dtype meets each of the others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

from tensorkiln.dtypes import DType

from .chains import CHAINS
from .kinds import KINDS, dtypes_of, ops_of

T = TypeVar("T")

EXAMPLES: Final = int(os.environ.get("KILN_EXAMPLES", "1"))
"""How many graphs are drawn for a variant. With more than one, every combination is taken."""
FEW: Final = 4
"""A kind or an op of fewer dtypes than this, and a dtype of fewer kinds, takes every combination."""
MACHINES: Final = (("static", "cpu"), ("static", "gpu"), ("symbolic", "gpu"), ("symbolic", "cpu"))


def of_kind(choices: Sequence[T], share: int, kind: str, dtype: DType, op: str = "") -> Sequence[T]:
    """One in `share` of the choices for a variant of a kind."""
    dtypes = [other for other in dtypes_of(kind) if not op or op in ops_of(kind, other)]
    turn = KINDS.index(kind) + dtypes.index(dtype)
    if op:
        return _taken(choices, share, turn + ops_of(kind, dtypes[0]).index(op), len(dtypes))
    kinds = sum(dtype in dtypes_of(other) for other in KINDS)
    return _taken(choices, share, turn, min(len(dtypes), kinds))


def of_network(choices: Sequence[T], share: int, name: str, dtype: DType) -> Sequence[T]:
    """One in `share` of the choices for a network on a dtype."""
    dtypes = CHAINS[name].dtypes
    return _taken(choices, share, [*CHAINS].index(name) + dtypes.index(dtype), len(dtypes))


def _taken(choices: Sequence[T], share: int, turn: int, others: int) -> Sequence[T]:
    return choices if EXAMPLES > 1 or others < FEW else choices[turn % share :: share]
