"""Typed keys of `jax.random`, which a program takes as arrays of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from .installed import installed

Kinds: TypeAlias = tuple[str | None, ...]
"""For each leaf the generator of its key; None for an array."""

_GENERATORS: Final = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}


def kinds_of(leaves: Sequence[Any]) -> Kinds:
    """The kind of each leaf."""
    return tuple(_GENERATORS.get(str(getattr(leaf, "dtype", ""))) for leaf in leaves)


def as_words(leaves: Sequence[Any], kinds: Kinds) -> list[Any]:
    """The leaves, with keys replaced by their words; a `jax.ShapeDtypeStruct` by that of its words."""
    jax = installed()

    def words(leaf: Any) -> Any:
        abstract = isinstance(leaf, jax.ShapeDtypeStruct)
        return jax.eval_shape(jax.random.key_data, leaf) if abstract else jax.random.key_data(leaf)

    return [leaf if kind is None else words(leaf) for leaf, kind in zip(leaves, kinds, strict=True)]


def as_keys(leaves: Sequence[Any], kinds: Kinds) -> list[Any]:
    """The leaves, with the words of keys wrapped as keys."""
    wrap = installed().random.wrap_key_data
    return [leaf if kind is None else wrap(leaf, impl=kind) for leaf, kind in zip(leaves, kinds, strict=True)]
