"""Operators on quantised values, and on packed weights."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from . import case
from .case import Array, Case

_random = np.random.RandomState(11)
normal = partial(case.normal, _random)
codes = partial(case.codes, _random)


def _scalar(value: float, dtype: str = "float32") -> Array:
    return np.array(value, dtype)


def _elementwise(dtype: str) -> list[Case]:
    low = {"uint8": 0, "int8": -128}[dtype]
    a, b = codes(dtype, 2, 3, 6, 8), codes(dtype, 6, 8)
    scales = {"sa": _scalar(0.03), "sb": _scalar(0.05), "sy": _scalar(0.07)}
    zeros = {"za": _scalar(low + 120, dtype), "zb": _scalar(low + 130, dtype), "zy": _scalar(low + 125, dtype)}
    weights, one, two = {**scales, **zeros}, {"a": a}, {"a": a, "b": b}
    dims = {"a": ("batch", 3, 6, 8)}
    unary = "a sa za sy zy"
    return [
        Case(f"q_add_{dtype}", "QLinearAdd", "a sa za b sb zb sy zy", two, weights, {}, dims),
        Case(f"q_mul_{dtype}", "QLinearMul", "a sa za b sb zb sy zy", two, weights, {}, dims),
        Case(f"q_sigmoid_{dtype}", "QLinearSigmoid", unary, one, {**weights, "sy": _scalar(0.004)}, {}, dims),
        Case(f"q_leaky_{dtype}", "QLinearLeakyRelu", unary, one, weights, {"alpha": 0.1}, dims),
        Case(
            f"q_global_{dtype}", "QLinearGlobalAveragePool", unary, one, {**weights, "sy": _scalar(0.00517)}, {}, dims
        ),
        Case(
            *(f"q_average_{dtype}", "QLinearAveragePool", unary, one, {**weights, "sy": _scalar(0.0213)}),
            {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
            dims,
        ),
        Case(
            *(f"q_softmax_{dtype}", "QLinearSoftmax", unary, one),
            {**weights, "sy": _scalar(1 / 256), "zy": _scalar(low, dtype)},
            {"axis": -1, "opset": 13},
            dims,
        ),
        Case(
            *(f"q_concat_{dtype}", "QLinearConcat", "sy zy a sa za c sb zb"),
            {"a": a, "c": codes(dtype, 2, 5, 6, 8)},
            weights,
            {"axis": 1},
            {"a": ("batch", 3, 6, 8), "c": ("batch", 5, 6, 8)},
        ),
        Case(
            *(f"q_where_{dtype}", "QLinearWhere", "mask a sa za b sb zb sy zy"),
            {**two, "mask": _random.uniform(size=(6, 8)) > 0.5},
            weights,
        ),
        Case(
            *(f"q_quantize_{dtype}", "QuantizeLinear", "x s z", {"x": normal(2, 3, 4)}),
            {"s": np.array([0.01, 0.02, 0.03], np.float32), "z": codes(dtype, 3)},
            {"axis": 1},
        ),
        Case(
            *(f"q_dequantize_{dtype}", "DequantizeLinear", "x s z", {"x": codes(dtype, 2, 3, 4)}),
            {"s": _scalar(0.02), "z": _scalar(low + 100, dtype)},
        ),
    ]


def _products(dtype: str) -> list[Case]:
    x, weight = normal(2, 5, 16), codes(dtype, 16, 24)
    zero = {"uint8": 120, "int8": 3}[dtype]
    whole = {"w": weight, "sw": _scalar(0.02), "zw": _scalar(zero, dtype), "b": normal(24)}
    columns = {
        "w": weight,
        "sw": _random.uniform(0.01, 0.03, 24).astype(np.float32),
        "zw": codes(dtype, 24),
        "b": normal(24),
    }
    a = {"a": codes("uint8", 2, 5, 16)}
    scaled = {"sa": _scalar(0.04), "za": _scalar(118, "uint8")}
    tokens = {"x": ("batch", "tokens", 16)}
    gemm = {"a": codes("uint8", 5, 16)}
    made = {"sy": _scalar(0.5), "zy": _scalar(100, "uint8"), "c": _random.randint(-900, 900, 24).astype(np.int32)}
    return [
        *(
            case
            for name, weights in (("whole", whole), ("columns", columns))
            for case in (
                Case(f"dynamic_{name}_{dtype}", "DynamicQuantizeMatMul", "x w sw zw b", {"x": x}, weights, {}, tokens),
                Case(f"to_float_{name}_{dtype}", "MatMulIntegerToFloat", "a w sa sw za zw b", a, {**weights, **scaled}),
                Case(f"gemm_{name}_{dtype}", "QGemm", "a sa za w sw zw c sy zy", gemm, {**weights, **scaled, **made}),
                Case(f"gemm_float_{name}_{dtype}", "QGemm", "a sa za w sw zw c", gemm, {**weights, **scaled, **made}),
            )
        ),
        Case(
            *(f"gemm_turned_{dtype}", "QGemm", "a sa za w sw zw", gemm),
            {**columns, **scaled, "w": np.ascontiguousarray(weight.T)},
            {"transB": 1, "alpha": 0.5},
        ),
        Case(
            *(f"q_attention_{dtype}", "QAttention", "a w b sa sw mask za zw"),
            {**a, "mask": np.array([[1, 1, 1, 1, 0], [1] * 5], np.int32)},
            {**whole, **scaled, "sw": _scalar(0.002)},
            {"num_heads": 2},
            {"a": ("batch", "tokens", 16), "mask": ("batch", "tokens")},
        ),
    ]


def _packed() -> list[Case]:
    """Weights of 20 columns and 70 rows, the last block of rows not full."""
    cases: list[Case] = []
    for bits in (2, 4, 8):
        size, columns, rows = 32, 20, 70
        blocks = -(-rows // size)
        weights = {
            "w": codes("uint8", columns, blocks, size * bits // 8),
            "s": _random.uniform(0.01, 0.03, (columns, blocks)).astype(np.float32),
            "z": codes("uint8", columns, -(-blocks * bits // 8)),
            "f": _random.uniform(0, 1 << bits, (columns, blocks)).astype(np.float32),
            "b": normal(columns),
        }
        attributes: dict[str, Any] = {"K": rows, "N": columns, "bits": bits, "block_size": size}
        x, dims = {"x": normal(2, 3, rows)}, {"x": ("batch", "tokens", rows)}
        cases += [
            Case(f"bits_{bits}", "MatMulNBits", "x w s", x, weights, attributes, dims),
            Case(f"bits_{bits}_zero", "MatMulNBits", "x w s z", x, weights, attributes, dims),
            Case(f"bits_{bits}_bias", "MatMulNBits", "x w s z - b", x, weights, attributes, dims),
        ]
        if bits == 4:
            cases.append(Case("bits_4_float_zero", "MatMulNBits", "x w s f", x, weights, attributes, dims))
    return cases


CASES = [*_elementwise("uint8"), *_elementwise("int8"), *_products("uint8"), *_products("int8"), *_packed()]
