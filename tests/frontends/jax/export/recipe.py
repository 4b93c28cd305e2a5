"""A function to export: what it is called on, and how its arguments are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from zlib import crc32

import jax
import jax.numpy as jnp
import numpy as np

Sizes: TypeAlias = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Draw:
    """An argument: its dims are sizes, or expressions over names of sizes."""

    dims: tuple[int | str, ...]
    dtype: Any
    values: Callable[[np.random.RandomState, tuple[int, ...]], Any]

    @property
    def spec(self) -> str:
        """The dims as `jax.export.symbolic_shape` reads them."""
        return ", ".join(map(str, self.dims))

    def array(self, source: np.random.RandomState, sizes: Sizes) -> np.ndarray[Any, Any]:
        shape = tuple(eval(str(dim), {}, dict(sizes)) for dim in self.dims)
        return np.asarray(jnp.asarray(np.asarray(self.values(source, shape)), self.dtype))


@dataclass(frozen=True, slots=True)
class Function:
    """`arguments` are trees of `Draw`; a function of symbolic sizes is sampled at each of `sizes`.

    `wide` is for functions of 64-bit types, which JAX has off by default.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    sizes: tuple[Sizes, ...] = ({},)
    wide: bool = False

    def drawn(self, place: int) -> tuple[Any, ...]:
        """The arguments of sample number `place`: the same in every run."""
        source = np.random.RandomState(crc32(f"{self.name} {place}".encode()))
        return jax.tree.map(
            lambda draw: draw.array(source, self.sizes[place]),
            self.arguments,
            is_leaf=lambda leaf: isinstance(leaf, Draw),
        )


def normal(*dims: int | str, dtype: Any = np.float32) -> Draw:
    """Values around 0."""
    return Draw(dims, dtype, lambda source, shape: source.standard_normal(shape))


def positive(*dims: int | str, dtype: Any = np.float32) -> Draw:
    """Values between 0.1 and 4."""
    return Draw(dims, dtype, lambda source, shape: source.uniform(0.1, 4.0, shape))


def unit(*dims: int | str, dtype: Any = np.float32) -> Draw:
    """Values between -0.95 and 0.95."""
    return Draw(dims, dtype, lambda source, shape: source.uniform(-0.95, 0.95, shape))


def integers(low: int, high: int, *dims: int | str, dtype: Any = np.int32) -> Draw:
    """Whole values from `low` up to but without `high`."""
    return Draw(dims, dtype, lambda source, shape: source.randint(low, high, shape))


def booleans(*dims: int | str) -> Draw:
    return Draw(dims, np.bool_, lambda source, shape: source.uniform(size=shape) < 0.5)


def special(*dims: int | str) -> Draw:
    """Values around 0, with infinities, NaN and zeros of both signs among them."""

    def values(source: np.random.RandomState, shape: tuple[int, ...]) -> Any:
        drawn = source.standard_normal(shape)
        edges = [np.inf, -np.inf, np.nan, 0.0, -0.0]
        drawn.flat[: len(edges)] = edges[: drawn.size]
        return drawn

    return Draw(dims, np.float32, values)


def key(*dims: int) -> Draw:
    """The two words of a threefry key, or of several."""
    return Draw((*dims, 2), np.uint32, lambda source, shape: source.randint(0, 2**31, shape))
