"""Arithmetic, comparison, logic, choice and conversion."""

from __future__ import annotations

import torch

from .case import EDGES, Case, drawn, of, whole

X, Y = drawn(4, 5), drawn(4, 5, seed=3)
PAIRS = (EDGES.reshape(-1, 1).expand(16, 16).contiguous(), EDGES.reshape(1, -1).expand(16, 16).contiguous())
POSITIVE = X.abs() + 0.1
SMALL = torch.tanh(X) * 0.99
N, M = whole(4, 5), whole(4, 5, seed=1)
NONZERO = torch.where(M == 0, torch.ones_like(M), M)
BYTES = whole(4, 5, low=0, high=256, dtype=torch.uint8)
FLAGS, OTHERS = X > 0, Y > 0
HALF, BRAIN = X.to(torch.float16), X.to(torch.bfloat16)

_UNARY = {
    **{name: X for name in ("exp", "expm1", "sin", "cos", "atan", "sinh", "cosh", "asinh", "erf", "sigmoid")},
    **{name: POSITIVE for name in ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal")},
    **{name: SMALL for name in ("acos", "asin", "atanh", "tan")},
    **{name: EDGES for name in ("abs", "neg", "ceil", "floor", "round", "trunc", "sign", "isnan", "isinf", "signbit")},
    **{name: EDGES for name in ("isfinite", "frac", "relu", "logical_not", "nan_to_num", "square", "exp2")},
}
_BINARY = {
    **{name: PAIRS for name in ("maximum", "minimum", "fmax", "fmin", "eq", "ne", "lt", "le", "gt", "ge")},
    **{name: PAIRS for name in ("add", "sub", "mul", "div", "atan2", "copysign", "logical_and", "logical_xor")},
    **{name: (X, Y) for name in ("remainder", "fmod", "floor_divide", "hypot", "true_divide")},
}

CASES: dict[str, Case] = {
    **{f"unary_{name}": of(getattr(torch, name), x) for name, x in _UNARY.items()},
    **{f"binary_{name}": of(getattr(torch, name), *pair) for name, pair in _BINARY.items()},
    "acosh": of(torch.acosh, POSITIVE + 1),
    "erfc": of(torch.erfc, X),
    "softplus_steep": of(lambda x: torch.nn.functional.softplus(x, beta=3.0, threshold=2.0), X),
    "add_alpha": of(lambda x, y: torch.add(x, y, alpha=2.5), X, Y),
    "sub_alpha": of(lambda x, y: torch.sub(x, y, alpha=3), N, M),
    "rsub": of(lambda x: 3 - x, X),
    "addcmul": of(lambda x, y, z: torch.addcmul(x, y, z, value=0.5), X, Y, POSITIVE),
    "addcdiv": of(lambda x, y, z: torch.addcdiv(x, y, z, value=0.5), X, Y, POSITIVE),
    "lerp": of(lambda x, y: torch.lerp(x, y, 0.7), X, Y),
    "power_tensor": of(torch.pow, POSITIVE, Y),
    "power_scalars": of(lambda x: (x**2, x**3, x**0.5, x**-1, x**1.7, 2.0**x), POSITIVE),
    "power_integer": of(lambda n: (n**2, n**3), N),
    "divide_integers": of(lambda n, m: n / m, N, NONZERO),
    "divide_floor": of(lambda n, m: torch.div(n, m, rounding_mode="floor"), N, NONZERO),
    "divide_trunc": of(lambda n, m: torch.div(n, m, rounding_mode="trunc"), N, NONZERO),
    "divide_floats_floor": of(lambda x, y: torch.div(x, y, rounding_mode="floor"), X * 5, Y),
    "divide_floats_trunc": of(lambda x, y: torch.div(x, y, rounding_mode="trunc"), X * 5, Y),
    "remainder_integers": of(lambda n, m: (n % m, torch.fmod(n, m)), N, NONZERO),
    "remainder_scalar": of(lambda n: (n % 3, n % -3, torch.fmod(n, 3)), N),
    "integer_and_float": of(lambda n, x: (n + x, n * 0.5, n < x, n == 1.5), N, X),
    "bool_arithmetic": of(lambda p, q: (p + q, p * q, p + 1, p * 2.5), FLAGS, OTHERS),
    "bool_logic": of(lambda p, q: (p & q, p | q, p ^ q, ~p, torch.logical_or(p, q)), FLAGS, OTHERS),
    "bits": of(lambda n, m: (n & m, n | m, n ^ m, ~n, n << 2, n >> 1, n & 6), N, M),
    "bytes": of(lambda b: (b + 200, b - 1, b * 3, b // 7, b > 100, ~b), BYTES),
    "byte_and_short": of(lambda b, n: b + n, BYTES, whole(4, 5, dtype=torch.int8)),
    "rank_zero": of(lambda x, s: (x + s, x > s, s * 2), X.to(torch.float16), torch.tensor(1.5)),
    "where": of(torch.where, FLAGS, X, Y),
    "where_mixed": of(lambda p, n: torch.where(p, n, 0.5), FLAGS, N),
    "clamp": of(lambda x: (x.clamp(-1, 2), x.clamp(min=0.5), x.clamp(max=0), x.clamp(2, -1)), EDGES),
    "clamp_tensors": of(lambda x, y: torch.clamp(x, y, y + 1), PAIRS[0], PAIRS[1]),
    "clamp_integers": of(lambda n: (n.clamp(-2, 3), n.clamp(min=0)), N),
    "masked_fill": of(lambda x, p: x.masked_fill(p, float("-inf")), X, FLAGS),
    "float_to_integers": of(
        lambda x: (x.to(torch.int32), x.to(torch.int8), x.to(torch.int64), x.to(torch.bool)),
        torch.tensor([0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 99.99, -100.7]),
    ),
    "integers_to_float": of(lambda n: (n.float(), n.half(), n.double(), n.bool(), n.to(torch.bfloat16)), N),
    "wrapping_casts": of(
        lambda n: (n.to(torch.int8), n.to(torch.uint8), n.to(torch.int16)), whole(40, low=-70000, high=70000)
    ),
    "float16": of(lambda x: (x + 1, x * x, x.exp(), x.sum(), torch.softmax(x, 1)), HALF),
    "bfloat16": of(lambda x: (x + 1, x * x, x.exp(), x.float(), x.mean(1)), BRAIN),
    "float64": of(lambda x: (x.exp(), x.sin(), x.mean(), x.atan()), X.double()),
    "view_dtype": of(lambda x: x.view(torch.int32), X),
    "broadcast": of(lambda x, y: x * y + x, drawn(4, 1, 3), drawn(5, 1)),
    "scalar_operands": of(lambda x: (2 * x + 1, x / 3, 1 / x, x * True), POSITIVE),
    "dynamic_scale": of(
        lambda x: x * x.shape[0] + x.shape[1] / 2,
        X,
        more=[(drawn(7, 5),)],
        dynamic=({0: (2, 32)},),
    ),
    "empty_operands": of(lambda x: (x + 1, x.sum(), x.sum(0), x.prod(1), x.any(), x.all()), drawn(0, 3)),
}
