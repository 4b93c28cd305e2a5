"""Class probabilities from pairwise probabilities, as in libsvm: algorithm 2 of Wu, Lin and Weng 2004.

Each row stops at libsvm's tolerance, which gives libsvm's numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from itertools import combinations
from operator import add
from typing import Final

import numpy as np

from .... import build
from ....build import Tensor

TURNS: Final = 8
"""Unrolled iterations. 400 000 random tables of 2 to 10 classes took at most 4."""
TOLERANCE: Final = 0.005
"""A row stops if its error is below this divided by the number of classes, as in libsvm."""


def coupled(pairs: Tensor, count: int) -> Tensor:
    """Class probabilities (rows, classes).

    `pairs` is (rows, pairs): the probability of the first class of each pair, in the order (0, 1), (0, 2) …
    """
    wins = {pair: pairs[:, place, None] for place, pair in enumerate(combinations(range(count), 2))}
    wins |= {(other, one): 1.0 - chance for (one, other), chance in wins.items()}
    table = [[_entry(wins, row, column, count) for column in range(count)] for row in range(count)]
    rows_of = [build.cat(row, 1) for row in table]
    chances = build.full(pairs.builder, (pairs.shape[0], count), 1 / count, pairs.dtype)
    is_done: Tensor | None = None
    for _ in range(TURNS):
        products = build.cat([(row * chances).sum([1], keepdims=True) for row in rows_of], 1)
        total = (chances * products).sum([1], keepdims=True)
        is_near = build.absolute(products - total).max([1], keepdims=True) < TOLERANCE / count
        is_done = is_near if is_done is None else is_done | is_near
        turned = _turned(chances, products, total, rows_of, [table[place][place] for place in range(count)])
        chances = build.where(is_done, chances, turned)
    return chances


def _entry(wins: Mapping[tuple[int, int], Tensor], row: int, column: int, count: int) -> Tensor:
    """An entry of the matrix Q; a diagonal entry sums the squared probabilities of others against `row`."""
    if row != column:
        return -(wins[column, row] * wins[row, column])
    return reduce(add, (wins[other, row] * wins[other, row] for other in range(count) if other != row))


def _turned(chances: Tensor, products: Tensor, total: Tensor, rows_of: list[Tensor], diagonal: list[Tensor]) -> Tensor:
    """One iteration: update one class at a time, and rescale all probabilities so that they sum to 1."""
    count = len(rows_of)
    for place, (row, own) in enumerate(zip(rows_of, diagonal, strict=True)):
        here = products[:, place, None]
        moved = (total - here) / own
        at_place = chances.builder.constant(np.eye(count, dtype=chances.dtype.numpy)[place])
        whole = moved + 1.0
        chances = (chances + moved * at_place) / whole
        total = (total + moved * (moved * own + here * 2.0)) / (whole * whole)
        products = (products + moved * row) / whole
    return chances
