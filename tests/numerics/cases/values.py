"""Arrays that look for trouble: NaN, infinities, both zeros, denormals, extreme integers, zero divisors."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tensorkiln.dtypes import DType

Array = npt.NDArray[Any]

Flavour = Literal["wild", "moderate", "grid", "special grid", "near one"]
"""wild: edges, small numbers and random bit patterns. moderate: ordinary numbers, integers in -20..20.
grid: floats in eighths up to 4, which float32 sums exactly in any order. special grid: the same with a few NaN and
infinities. near one: ±1 and a few ±2, ±0.5, whose products neither overflow nor underflow in any order.
For integers and bool, whose arithmetic is exact, every flavour but moderate is wild. Of a narrow dtype, all are any
code."""


def array(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...], flavour: Flavour = "wild") -> Array:
    """An array of `shape`; reproducible from the generator's state."""
    if dtype.is_bool:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.is_narrow:
        return np.asarray(rng.integers(0, 1 << dtype.bits, shape, np.uint8)).view(dtype.numpy)
    if dtype.is_integer:
        return _moderate_integers(rng, dtype, shape) if flavour == "moderate" else _wild_integers(rng, dtype, shape)
    return _FLOATS[flavour](rng, dtype, shape)


def related(rng: np.random.Generator, dtype: DType, other: Array) -> Array:
    """An array like `other`: many elements equal to its own, negated, or zeros of either sign."""
    wild = array(rng, dtype, other.shape)
    if dtype.is_bool:
        return wild
    with np.errstate(all="ignore"):
        negated = np.asarray(np.negative(other))
    zeros = np.where(rng.random(other.shape) < 0.5, np.zeros_like(other), np.asarray(np.negative(np.zeros_like(other))))
    choice = rng.random(other.shape)
    near = np.where(choice < 0.3, other, np.where(choice < 0.5, negated, zeros))
    return np.where(choice < 0.7, near, wild)


def integer_edges(dtype: DType) -> list[int]:
    """The integers around 0 and around the bounds of `dtype`, and those that a detour to a float rounds twice."""
    low, high = int(dtype.min), int(dtype.max)
    around = [0, 1, 2, 3, 7, dtype.bits - 1, dtype.bits, high, high - 1, high // 2, high // 2 + 1, low, low + 1]
    half_ways = [(1 << bits) + (1 << (bits - kept)) + 1 for bits, kept in ((28, 8), (40, 8), (60, 24), (60, 53))]
    return [edge for edge in [*around, *half_ways, *(-edge for edge in around)] if low <= edge <= high]


def float_edges(dtype: DType) -> list[float]:
    """Zeros, infinities, NaN, denormals, the bounds of the normal range, where casts to integers turn over, and what a
    detour to a narrower float rounds twice."""
    bits, exponent_bias = {
        DType.FLOAT16: (10, 14),
        DType.BFLOAT16: (7, 126),
        DType.FLOAT32: (23, 126),
        DType.FLOAT64: (52, 1022),
    }[dtype]
    tiny, least, greatest = 2.0 ** -(exponent_bias + bits), 2.0**-exponent_bias, (2 - 2.0**-bits) * 2.0**exponent_bias
    whole = [1.0, 2.0, 3.0, 0.5, 1.5, 2.5, 127.5, 128.0, 255.5, 256.0, 300.7, 32768.0, 65536.0, 2.0**31, 2.0**32]
    large = [2.0**53, 2.0**63, 2.0**64, 1e10, 1e30]
    half_ways = [1 + 2.0**-kept + 2.0 ** -min(bits, 40) for kept in (8, 11, 24)]
    half_ways += [2.0**-134 * (1 + 2.0**-30), 2.0**-25 * (1 + 2.0**-30)]
    special = [0.0, 0.0, 0.0, np.inf, tiny, 3 * tiny, least, least - tiny, greatest * 2, 1 + 2.0**-bits]
    positive = [*special, *whole, *large, *half_ways]
    return [np.nan, *positive, *(-value for value in positive)]


def _wild_integers(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    edges = np.array(integer_edges(dtype), dtype.numpy)
    return _mixed(
        rng,
        shape,
        edges[rng.integers(0, len(edges), shape)],
        _moderate_integers(rng, dtype, shape),
        rng.integers(int(dtype.min), int(dtype.max), shape, dtype.numpy, endpoint=True),
    )


def _moderate_integers(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    return rng.integers(0 if dtype.is_unsigned else -20, 21, shape).astype(dtype.numpy)


def _wild_floats(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    with np.errstate(all="ignore"):
        edges = np.array(float_edges(dtype), np.float64).astype(dtype.numpy)
    bits = rng.integers(0, 1 << 8, (*shape, dtype.itemsize), np.uint8)
    patterns = np.ndarray(shape, dtype.numpy, bits.tobytes()) if bits.size else np.zeros(shape, dtype.numpy)
    return _mixed(rng, shape, edges[rng.integers(0, len(edges), shape)], _moderate_floats(rng, dtype, shape), patterns)


def _moderate_floats(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    return np.asarray(rng.normal(0.0, 2.0, shape)).astype(dtype.numpy)


def _grid(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    return np.asarray(rng.integers(-32, 33, shape) / 8).astype(dtype.numpy)


def _special_grid(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    special = np.array([np.nan, np.inf, -np.inf, -0.0]).astype(dtype.numpy)
    chosen = special[rng.integers(0, len(special), shape)]
    return np.where(rng.random(shape) < 0.05, chosen, _grid(rng, dtype, shape))


def _near_one(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    # At most 12 factors away from 1 in magnitude: 2**±12 and their reciprocals are inside every float format.
    values = rng.choice([-1.0, 1.0], shape)
    flat = values.reshape(-1)
    places = rng.permutation(flat.size)[:12]
    flat[places] *= rng.choice([0.5, 2.0, 1.5, -1.0], places.shape)
    rare = rng.permutation(flat.size)[: int(rng.integers(0, 2))]
    flat[rare] = rng.choice([0.0, -0.0, np.nan, np.inf, -np.inf])
    return values.astype(dtype.numpy)


def _mixed(rng: np.random.Generator, shape: tuple[int, ...], edges: Array, moderate: Array, random: Array) -> Array:
    choice = rng.random(shape)
    return np.where(choice < 0.45, edges, np.where(choice < 0.75, moderate, random))


_FLOATS = {
    "wild": _wild_floats,
    "moderate": _moderate_floats,
    "grid": _grid,
    "special grid": _special_grid,
    "near one": _near_one,
}
