"""Where infinities, NaN, signed zeros and names that meet make a difference."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .arithmetic import PAIRS
from .case import EDGES, Case, drawn, of, whole

NAN = float("nan")
ZEROS = torch.tensor([0.0, -0.0, 0.25, -0.25])
HOLES = torch.tensor([[NAN, 1.0, 2.0, NAN], [3.0, NAN, NAN, 0.0], [NAN, NAN, 5.0, 5.0], [NAN, NAN, 5.0, 4.0]])
PIXELS = drawn(2, 3, 7, 9)


class SameNames(nn.Module):
    """A parameter, a buffer that changes and a result, each called as something else is."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.ones(3))
        self.register_buffer("x", torch.zeros(3))
        self.register_buffer("output", torch.zeros(3))

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        self.x += x.sum(0)
        self.output += 1
        return (x + self.bias) * bias + self.x - self.output


def _odd(x: Tensor) -> tuple[Tensor, ...]:
    found = (torch.atan(x), torch.sinh(x), torch.asinh(x), torch.atanh(x), torch.asin(x))
    return (*found, *map(torch.signbit, found))


def _of_scalars(x: Tensor, index: Tensor) -> tuple[Tensor, ...]:
    """Slices of a tensor without axes."""
    return (
        x.index_select(0, index),
        x.index_add(0, index, x, alpha=3),
        *(x.index_reduce(0, index, x + 2.0, how) for how in ("mean", "amax")),
        x.reshape(1).gather(0, index[:0]),
    )


def _lines(start: Tensor, end: Tensor) -> tuple[Tensor, ...]:
    """Lines of integers, whose ends are truncated first; lines with tensors as ends, and complex ones."""
    return (
        torch.linspace(0.5, 10.7, 5, dtype=torch.int64),
        torch.linspace(-7.9, 9.9, 50, dtype=torch.int8),
        torch.linspace(3, 2**40 + 1, 7, dtype=torch.int64),
        torch.linspace(start, end, 9, dtype=torch.int32),
        torch.linspace(start, 4.5, 2),
        torch.linspace(2, end, 1, dtype=torch.float64),
        torch.linspace(start, end, 0),
        *(torch.view_as_real(torch.linspace(1, last, 5, dtype=torch.complex64)) for last in (2, 3 - 2j)),
    )


CASES: dict[str, Case] = {
    "lines_of_integers": of(_lines, torch.tensor(1.75), torch.tensor(-80.5)),
    "diagonals_of_another_type": of(
        lambda x, n: (x.diagonal_scatter(n, -1), n.expand(3, 3).diagonal_scatter(x[:3, 0])), drawn(4, 3), whole(3)
    ),
    "slices_of_scalars": of(_of_scalars, torch.tensor(1.5), torch.tensor([0])),
    "angles_of_edges": of(lambda x: (x.angle(), x[:-3].int().angle()), EDGES),
    "hypotenuse_of_edges": of(torch.hypot, *PAIRS),
    "odd_functions_of_zeros": of(_odd, ZEROS),
    "variance_beyond_its_count": of(lambda x: (x.var(1, correction=5.5), x.std(1, correction=7), x.var()), drawn(4, 5)),
    "variance_of_a_fraction": of(lambda x: (x.var(1, correction=1.5), x.std(correction=0.5)), drawn(4, 5)),
    "pool_of_several_nan": of(lambda x: F.max_pool2d(x, 2, return_indices=True), HOLES.reshape(1, 1, 4, 4)),
    "pool_of_nan_overlapping": of(
        lambda x: F.max_pool2d(x, 3, 1, 1, return_indices=True), HOLES.reshape(1, 1, 4, 4).contiguous()
    ),
    "products_without_input": of(
        lambda x, a, b: (torch.addbmm(x, a, b, beta=0), torch.addmm(x, a[0], b[0], beta=0)),
        torch.full((4, 5), NAN),
        drawn(3, 4, 6),
        drawn(3, 6, 5),
    ),
    "products_with_input": of(
        lambda x, a, b: torch.addbmm(x, a, b, beta=0.5, alpha=2), drawn(4, 5), drawn(3, 4, 6), drawn(3, 6, 5)
    ),
    "bicubic_antialias": of(lambda x: F.interpolate(x, (3, 4), mode="bicubic", antialias=True), PIXELS),
    "bicubic_antialias_larger": of(lambda x: F.interpolate(x, (12, 5), mode="bicubic", antialias=True), PIXELS),
    "bilinear_antialias": of(lambda x: F.interpolate(x, (3, 12), mode="bilinear", antialias=True), PIXELS),
    "pad_halves": of(
        lambda x: (F.pad(x, (1, 2), value=0.1), F.pad(x, (1, 0), value=float("-inf"))),
        drawn(3, 4, dtype=torch.float16),
    ),
    "pad_bytes": of(
        lambda x: F.pad(x, (1, 2), value=3),
        torch.arange(6, dtype=torch.uint8).reshape(2, 3),
    ),
    "log_sigmoid_of_edges": of(F.logsigmoid, EDGES),
    "same_names": of(SameNames(), drawn(4, 3), drawn(3), more=[(drawn(4, 3, seed=5), drawn(3, seed=7))]),
}
