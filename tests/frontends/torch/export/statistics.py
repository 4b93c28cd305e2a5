"""Distributions, special functions, slices that are combined, distances, and exponentials and inverses of matrices."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from .case import EDGES, Case, drawn, of, whole

X = drawn(5, 3)
SLICES = drawn(6, 3)
ROWS = torch.tensor([0, 2, 2, 4, 0, 0])
POINTS = torch.cat([EDGES, torch.linspace(-9.3, 9.1, 60), torch.tensor([-2.0, -3.0, 1e10, 0.9999, 2.0000002])])
SHARES = torch.tensor([[0.1, 0.2, 0.7, 0.0], [0.0, 0.0, 1.0, 0.0]])
SQUARE = drawn(3, 4, 4) * torch.tensor([0.01, 1.0, 5.0]).reshape(3, 1, 1)
TALL = drawn(2, 5, 3)
DEFICIENT = torch.cat([TALL, TALL[..., :1]], -1)


def distributions(x: Tensor, shares: Tensor) -> tuple[Tensor, ...]:
    return (
        torch.empty_like(x).exponential_(2.0),
        torch.randint(3, 7, x.shape),
        torch.randint_like(x, -2, 2),
        torch.empty_like(x).random_(4),
        torch.normal(x, 2.0),
        torch.normal(1.0, x.abs()),
        torch.normal(x, x.abs()),
        torch.normal(1.0, 3.0, x.shape),
        torch.empty_like(x).log_normal_(0.0, 0.5),
        torch.empty_like(x).geometric_(0.3),
        torch.empty_like(x).cauchy_(),
        torch.multinomial(shares, 2000, replacement=True),
        torch.multinomial(shares + 0.001, 3),
        F.gumbel_softmax(shares.log(), hard=True),
        torch.empty(x.shape, dtype=torch.bfloat16).exponential_(),
    )


def combined(x: Tensor, rows: Tensor, slices: Tensor) -> tuple[Tensor, ...]:
    ways = [(how, includes) for how in ("amax", "amin", "prod", "mean") for includes in (True, False)]
    return (
        *(x.index_reduce(0, rows, slices, how, include_self=includes) for how, includes in ways),
        x.t().index_reduce(1, rows, slices.t(), "amax"),
        torch.put(x, torch.tensor([[0, -1], [3, 0]]), slices[:2, :2], accumulate=True),
        torch.put(x, torch.tensor([4, -2]), slices[0, :2]),
    )


def special(x: Tensor) -> tuple[Tensor, ...]:
    return torch.lgamma(x), torch.digamma(x), torch.erfinv(x), torch.erfinv(x / 9.5), torch.lgamma(x.double())


def distances(x: Tensor, y: Tensor, n: Tensor) -> tuple[Tensor, ...]:
    return (*(torch.dist(x, y, p) for p in (2.0, 1.0, 3.0, float("inf"))), torch.dist(x, y[0]), torch.ldexp(x, n))


def factored(x: Tensor) -> tuple[Tensor, ...]:
    return (
        torch.linalg.householder_product(*torch.geqrf(x)),
        *torch.lu_unpack(*torch.linalg.lu_factor(x)),
        *torch.lu_unpack(*torch.linalg.lu_factor(x.mT)),
    )


def inverses(x: Tensor, square: Tensor) -> tuple[Tensor, ...]:
    own = square + square.mT
    return (
        torch.linalg.pinv(x),
        torch.linalg.pinv(x.mT, rcond=0.3),
        torch.linalg.pinv(x, atol=torch.tensor(0.5)),
        torch.linalg.pinv(own, hermitian=True),
        torch.linalg.tensorinv((square[1] + 5 * torch.eye(4)).reshape(4, 2, 2), 1),
    )


def turned(scale: float) -> Callable[[Tensor], Tensor]:
    """The exponentials of matrices, and of antisymmetric ones, which turn."""
    return lambda x: torch.stack([torch.matrix_exp(x), torch.matrix_exp((x - x.mT) * scale)])


BATCHES: dict[int, tuple[int, int]] = {0: (2, 9)}
PAIRS = {0: ("rows", 2, 9)}
CASES: dict[str, Case] = {
    "distributions": of(distributions, drawn(2000), SHARES),
    "combined_slices": of(combined, X, ROWS, SLICES),
    "combined_whole_slices": of(
        lambda x, rows, slices: tuple(x.index_reduce(0, rows, slices, how) for how in ("amax", "amin", "prod")),
        whole(5, 3),
        ROWS,
        whole(6, 3),
    ),
    "special_functions": of(special, POINTS),
    "distances": of(distances, X, drawn(5, 3, seed=1), whole(5, 3)),
    "bilinear": of(
        F.bilinear,
        drawn(2, 3, 5),
        drawn(2, 3, 4),
        drawn(7, 5, 4),
        drawn(7),
        dynamic=(PAIRS, PAIRS, {}, {}),
        more=[(drawn(4, 3, 5), drawn(4, 3, 4), drawn(7, 5, 4), drawn(7))],
    ),
    "factored": of(factored, TALL),
    "pseudo_inverses": of(inverses, DEFICIENT, SQUARE),
    "exponentials": of(turned(3.0), SQUARE, dynamic=(BATCHES,), more=[(SQUARE[:2],)]),
    "exponentials_of_doubles": of(turned(0.5), SQUARE.double()),
}
