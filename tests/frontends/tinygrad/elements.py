"""Functions of single elements, of all element types."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .recipe import Recipe, floats, truths, whole

X: Final = floats(4, 6)
Y: Final = floats(4, 6, low=0.5)
POSITIVE: Final = floats(4, 6, low=0.1, high=5.0)
UNIT: Final = floats(4, 6, low=-0.95, high=0.95)
N: Final = whole(4, 6)
DIVISOR: Final = np.where(whole(4, 6, low=-4, high=4) == 0, 3, whole(4, 6, low=-4, high=4)).astype(np.int32)
ODD: Final = np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan], np.float32)


def _method(name: str, *arguments: Any) -> Any:
    return lambda x: getattr(x, name)(*arguments)


RECIPES: Final = {
    **{
        name: Recipe(_method(name), (X,))
        for name in (
            "abs",
            "ceil",
            "cos",
            "elu",
            "erf",
            "exp",
            "exp2",
            "floor",
            "gelu",
            "hardsigmoid",
            "hardswish",
            "hardtanh",
            "leaky_relu",
            "log_softmax",
            "logsigmoid",
            "mish",
            "neg",
            "quick_gelu",
            "relu",
            "relu6",
            "round",
            "selu",
            "sigmoid",
            "sign",
            "silu",
            "sin",
            "sinh",
            "cosh",
            "softmax",
            "softplus",
            "softsign",
            "square",
            "swish",
            "tan",
            "tanh",
            "trunc",
            "reciprocal",
            "celu",
            "isnan",
            "isinf",
            "isfinite",
            "logical_not",
        )
    },
    **{name: Recipe(_method(name), (POSITIVE,)) for name in ("log", "log2", "log10", "sqrt", "rsqrt")},
    **{name: Recipe(_method(name), (UNIT,)) for name in ("asin", "acos", "atan", "asinh", "atanh")},
    "acosh": Recipe(_method("acosh"), (POSITIVE + 1,)),
    "odd_trunc": Recipe(_method("trunc"), (ODD,)),
    "odd_relu": Recipe(_method("relu"), (ODD[:-1],)),
    "odd_isnan": Recipe(_method("isnan"), (ODD,)),
    "odd_where": Recipe(lambda x: (x < 0).where(x, 1.0), (ODD,)),
    "add": Recipe(lambda x, y: x + y, (X, Y)),
    "sub_row": Recipe(lambda x, y: x - y, (X, floats(6))),
    "mul_column": Recipe(lambda x, y: x * y, (X, floats(4, 1))),
    "div": Recipe(lambda x, y: x / y, (X, Y)),
    "power": Recipe(lambda x, y: x**y, (POSITIVE, X)),
    "power_half": Recipe(lambda x: x**0.5, (POSITIVE,)),
    "power_cube": Recipe(lambda x: x**3, (X,)),
    "power_of_two": Recipe(lambda x: 2**x, (X,)),
    "float_mod": Recipe(lambda x, y: x % y, (X, Y)),
    "maximum": Recipe(lambda x, y: x.maximum(y), (X, Y)),
    "minimum": Recipe(lambda x, y: x.minimum(y), (X, Y)),
    "clip": Recipe(_method("clip", -0.5, 1.0), (X,)),
    "lerp": Recipe(lambda x, y: x.lerp(y, 0.25), (X, Y)),
    "copysign": Recipe(lambda x, y: x.copysign(y), (X, floats(6))),
    "open_numbers": Recipe(lambda x: (x > 0).where(0.1, 1 / 3) * (x > 1).where(2, 3), (X,)),
    "compare": Recipe(lambda x, y: [x < y, x <= y, x > y, x >= y, x == y, x != y], (X, Y)),
    "int_add_sub_mul": Recipe(lambda x, y: x + y * x - 3, (N, DIVISOR)),
    "int_floor_divide": Recipe(lambda x, y: x // y, (N, DIVISOR)),
    "int_remainder": Recipe(lambda x, y: x % y, (N, DIVISOR)),
    "int_true_divide": Recipe(lambda x, y: x / y, (N, DIVISOR)),
    "int_truncating": Recipe(lambda x, y: x.div(y, rounding_mode="trunc"), (N, DIVISOR)),
    "int_power": Recipe(lambda x: x**3, (N,)),
    "int_bits": Recipe(lambda x, y: [x & y, x | y, x ^ y, ~x], (N, DIVISOR)),
    "int_shifts": Recipe(lambda x: [x << 3, x >> 2], (N,)),
    "int_minimum": Recipe(lambda x, y: x.minimum(y), (N, DIVISOR)),
    "int_to_float": Recipe(lambda x: x.float() * 0.5, (N,)),
    "int64": Recipe(lambda x: x * 1_000_000_007 + (1 << 40), (whole(5, dtype="int64"),)),
    "int8_wraps": Recipe(lambda x: x * 100, (whole(9, dtype="int8"),)),
    "uint8": Recipe(lambda x: (x + 250) // 7, (whole(9, low=0, dtype="uint8"),)),
    "uint16": Recipe(lambda x: (x << 9) ^ x, (whole(9, low=0, dtype="uint16"),)),
    "uint32": Recipe(lambda x: (x * 2654435761) >> 7, (whole(9, low=0, dtype="uint32"),)),
    "uint64": Recipe(lambda x: x * 0x9E3779B97F4A7C15, (whole(9, low=0, dtype="uint64"),)),
    "bool_logic": Recipe(lambda x, y: [x & y, x | y, x ^ y, x.logical_not(), x * y, x + y], (truths(8), truths(4, 8))),
    "bool_sum": Recipe(lambda x: x.sum(), (truths(4, 8),)),
    "half": Recipe(lambda x: (x.half() * 1.5 + 0.1).exp(), (X,)),
    "bfloat16": Recipe(lambda x: x.bfloat16() * 1.5 + 0.1, (X,)),
    "double": Recipe(lambda x: x.double().exp() / 3, (X,)),
    "double_open": Recipe(lambda x: (x > 0).where(0.1, 0.7).cast("float64"), (X,)),
    "casts": Recipe(lambda x: [x.cast(to) for to in ("int8", "uint8", "int16", "int64", "bool", "float64")], (X,)),
    "bitcast": Recipe(lambda x: [x.bitcast("int32"), x.bitcast("uint8")], (X,)),
    "bitcast_up": Recipe(lambda x: x.bitcast("float32"), (whole(2, 8, low=0, high=120, dtype="uint8"),)),
}
