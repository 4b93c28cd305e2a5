"""Counter-based random numbers (Threefry-2x32, 20 rounds): the same key gives the same numbers on every target."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..dtypes import DType
from ..expr import product
from .arithmetic import add, mul
from .bits import shift_right
from .builder_argument import require_builder
from .conversion import cast
from .element_type import DTypeLike, element_type
from .filled import arange
from .movement import reshape
from .operands import Operand, alike, require_tensor
from .transcendental import cos, log, sqrt

if TYPE_CHECKING:
    from .builder import Builder
    from .shape import ShapeLike
    from .tensor import Tensor


def threefry(counter: Tensor, key: Operand) -> Tensor:
    """64 random bits for each uint64 counter under a uint64 key, which may be a scalar."""
    require_tensor(counter, "threefry")
    builder = counter.builder
    if counter.dtype is not DType.UINT64:
        raise builder.error(f"a counter is uint64, not {counter.dtype}")
    counter, key_tensor = alike(counter, key)
    fields = {"ctr_var": counter.var, "key_var": key_tensor.var}
    return builder.append("threefry", DType.UINT64, counter.shape, **fields)


def random_bits(builder: Builder, shape: ShapeLike, key: Operand) -> Tensor:
    """uint64 random bits: element i of the row-major order encrypts the counter i under the key.

    The key is a Python integer or a rank-0 uint64 tensor; use another key for every call.
    """
    require_builder(builder, "random_bits")
    dims = builder.shape(shape)
    return reshape(threefry(arange(builder, product(dims), DType.UINT64), key), dims)


def random_uniform(builder: Builder, shape: ShapeLike, key: Operand, dtype: DTypeLike = DType.FLOAT32) -> Tensor:
    """Floats uniform in [0, 1), as many bits as the dtype's significand has: multiples of 2**-24 in float32."""
    require_builder(builder, "random_uniform")
    return _unit_interval(random_bits(builder, shape, key), element_type(dtype, builder.error))


_SIGNIFICANT_BITS = {DType.FLOAT16: 11, DType.BFLOAT16: 8, DType.FLOAT32: 24, DType.FLOAT64: 53}


def _unit_interval(bits: Tensor, dtype: DType) -> Tensor:
    """The leading bits of each word as a fraction; each is represented exactly."""
    if dtype not in _SIGNIFICANT_BITS:
        raise bits.builder.error(f"random numbers are floats, not {dtype}")
    kept = _SIGNIFICANT_BITS[dtype]
    return mul(cast(shift_right(bits, 64 - kept), dtype), 2.0**-kept)


def random_normal(builder: Builder, shape: ShapeLike, key: Operand, dtype: DTypeLike = DType.FLOAT32) -> Tensor:
    """Floats of the normal distribution with mean 0 and variance 1, by Box and Muller's method from one word each."""
    require_builder(builder, "random_normal")
    kind = element_type(dtype, builder.error)
    wide = DType.FLOAT64 if kind is DType.FLOAT64 else DType.FLOAT32
    bits = random_bits(builder, shape, key)
    # The low half, moved off zero, is the radius; the high half is the angle.
    radius_bits = cast(cast(bits, DType.UINT32), DType.FLOAT64)
    uniform = cast(mul(add(radius_bits, 0.5), 2.0**-32), wide)
    angle = mul(_unit_interval(bits, wide), 2.0 * math.pi)
    return cast(mul(sqrt(mul(log(uniform), -2.0)), cos(angle)), kind)
