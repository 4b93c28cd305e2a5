"""`jax.numpy` and `jax.lax`, element by element."""

from __future__ import annotations

from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.frontends.jax.export.recipe import Function, booleans, integers, normal, positive, special, unit

_ANY: Final = ("abs", "negative", "sign", "exp", "exp2", "expm1", "sin", "cos", "tan", "arctan", "sinh", "cosh", "tanh")
_MORE: Final = ("arcsinh", "cbrt", "square", "floor", "ceil", "round", "trunc", "deg2rad", "sinc", "reciprocal")
_POSITIVE: Final = ("log", "log1p", "log2", "log10", "sqrt")
_UNIT: Final = ("arcsin", "arccos", "arctanh")
_SPECIAL: Final = ("isnan", "isfinite", "isinf", "signbit", "nan_to_num")
_PAIRS: Final = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "arctan2", "hypot", "logaddexp")
_COMPARED: Final = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_SIGNED: Final = ("floor_divide", "remainder", "fmod", "copysign", "heaviside", "nextafter")
_BITS: Final = ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")

FUNCTIONS: Final = (
    *(Function(name, getattr(jnp, name), (normal(5, 7),)) for name in (*_ANY, *_MORE)),
    *(Function(name, getattr(jnp, name), (positive(5, 7),)) for name in _POSITIVE),
    *(Function(name, getattr(jnp, name), (unit(5, 7),)) for name in _UNIT),
    *(Function(name, getattr(jnp, name), (special(5, 7),)) for name in _SPECIAL),
    *(Function(name, getattr(jnp, name), (normal(5, 7), normal(7))) for name in _PAIRS),
    *(Function(name, getattr(jnp, name), (integers(-3, 4, 5, 7), integers(-3, 4, 5, 1))) for name in _COMPARED),
    *(Function(name, getattr(jnp, name), (normal(5, 7), normal(5, 7))) for name in _SIGNED),
    *(Function(name, getattr(jnp, name), (integers(0, 30, 5, 7), integers(0, 30, 5, 7))) for name in _BITS),
    Function("arccosh", lambda x: jnp.arccosh(x + 1), (positive(5, 7),)),
    Function("rsqrt", lax.rsqrt, (positive(5, 7),)),
    Function("erf", lax.erf, (normal(5, 7),)),
    Function("erfc", lax.erfc, (normal(5, 7),)),
    Function("erf_inv", lax.erf_inv, (unit(5, 7),)),
    Function("lgamma", lax.lgamma, (positive(5, 7),)),
    Function("digamma", lax.digamma, (positive(5, 7),)),
    Function("power", jnp.power, (positive(5, 7), normal(5, 7))),
    Function("integer_power", lambda x: x**3 + x**-2, (positive(5, 7),)),
    Function("power_of_integers", lambda x: x**3, (integers(-5, 6, 5, 7),)),
    Function("divide_integers", lambda x, y: (x // y, x % y), (integers(-20, 20, 5, 7), integers(1, 6, 7))),
    Function(
        "divide_toward_zero", lambda x, y: (lax.div(x, y), lax.rem(x, y)), (integers(-20, 20, 9), integers(1, 6, 9))
    ),
    Function("invert", jnp.invert, (integers(-99, 99, 5, 7),)),
    Function("logical", lambda p, q: (p & q, p | q, p ^ q, ~p), (booleans(5, 7), booleans(5, 7))),
    Function("population_count", lax.population_count, (integers(0, 1 << 30, 5, 7, dtype=np.uint32),)),
    Function("leading_zeros", lax.clz, (integers(0, 1 << 20, 5, 7),)),
    Function("clip", lambda x: jnp.clip(x, -0.5, 0.5), (normal(5, 7),)),
    Function("where", lambda p, x, y: jnp.where(p, x, y), (booleans(5, 7), normal(5, 7), normal(7))),
    Function("select", lambda x: jnp.select([x < -1, x > 1], [x * 2, x * 3], 0.5), (normal(5, 7),)),
    Function("piecewise", lambda x: jnp.piecewise(x, [x < 0, x >= 0], [jnp.sin, jnp.cos]), (normal(5, 7),)),
    Function("to_whole", lambda x: x.astype(jnp.int32), (normal(5, 7),)),
    Function("to_float", lambda x: x.astype(jnp.float32) / 2, (integers(-9, 9, 5, 7),)),
    Function("to_bool", lambda x: x.astype(bool), (integers(-1, 2, 5, 7),)),
    Function("bytes", lambda x, y: (x + y, x.astype(jnp.int8)), (integers(0, 255, 9, dtype=np.uint8),) * 2),
    Function("half", lambda x: jnp.tanh(x) * 2 + x, (normal(5, 7, dtype=np.float16),)),
    Function("brain_float", lambda x: x * 2 + 1, (normal(5, 7, dtype=jnp.bfloat16),)),
    Function("double", lambda x: jnp.exp(x) + jnp.sin(x), (normal(5, 7, dtype=np.float64),), wide=True),
    Function("long", lambda x: (x * 3) // 7 + (x << 33), (integers(-99, 99, 5, 7, dtype=np.int64),), wide=True),
    Function("bitcast", lambda x: lax.bitcast_convert_type(x, jnp.int32), (normal(5, 7),)),
    Function("frexp", lambda x: jnp.frexp(x), (normal(5, 7),)),
    Function("relu_of_squares", lambda x: jax.nn.relu(x) ** 2, (normal(5, 7),)),
)
