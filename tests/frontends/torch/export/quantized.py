"""Models that were quantised after their export: operators on integers that stand for floats."""

from __future__ import annotations

import importlib

import torch
from torch import Tensor

from .case import Case, drawn, of

importlib.import_module("torch.ao.quantization.fx._decomposed")
OPS = torch.ops.quantized_decomposed
INT8, UINT8 = (-128, 127, torch.int8), (0, 255, torch.uint8)


def layer(x: Tensor, weight: Tensor, scales: Tensor, zeros: Tensor) -> tuple[Tensor, ...]:
    """A linear layer with 8 bits, whose weights have a scale for each row."""
    codes = OPS.quantize_per_tensor(x, 0.021, 117, *UINT8)
    rows = OPS.quantize_per_channel(weight, scales, zeros, 0, *INT8)
    given = OPS.dequantize_per_tensor(codes, 0.021, 117, *UINT8)
    found = given @ OPS.dequantize_per_channel(rows, scales, zeros, 0, *INT8).t()
    out = OPS.quantize_per_tensor(found.relu(), 0.05, -128, *INT8)
    return codes, rows, out, OPS.dequantize_per_tensor(out, 0.05, -128, *INT8)


def dynamic(x: Tensor) -> tuple[Tensor, ...]:
    """A scale that follows from the input."""
    scale, zero = OPS.choose_qparams.tensor(x, 0, 255, 1e-7, torch.uint8)
    codes = OPS.quantize_per_tensor.tensor(x, scale, zero, *UINT8)
    return codes, OPS.dequantize_per_tensor.tensor(codes, scale, zero, *UINT8)


def halves(x: Tensor) -> tuple[Tensor, ...]:
    codes = OPS.quantize_per_tensor(x.half(), 0.03, 0, -127, 127, torch.int8)
    wide = OPS.dequantize_per_tensor(codes, 0.03, 0, -127, 127, torch.int8, out_dtype=torch.float16)
    return codes, wide, OPS.quantize_per_tensor(x, 0.001, 5, -32768, 32767, torch.int16)


def product(x: Tensor, y: Tensor) -> Tensor:
    return torch._int_mm(x, y)


CODES = (drawn(32, 16) * 50).clamp(-128, 127).to(torch.int8)
CASES: dict[str, Case] = {
    "quantized_layer": of(
        layer,
        drawn(5, 8),
        drawn(6, 8),
        drawn(6).abs() * 0.01 + 0.02,
        torch.arange(6) - 3,
        dynamic=({0: (2, 20)}, {}, {}, {}),
        more=[(drawn(9, 8), drawn(6, 8), drawn(6).abs() * 0.01 + 0.02, torch.arange(6) - 3)],
    ),
    "quantized_dynamically": of(dynamic, drawn(5, 8) * 3 + 1),
    "quantized_halves": of(halves, drawn(5, 8)),
    "product_of_integers": of(product, CODES, CODES.t().contiguous()),
}
