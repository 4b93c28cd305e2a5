"""Import of JAX, which only `jit` needs and which is not a dependency."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...errors import RequestError


def installed(name: str = "jax") -> Any:
    """The module of JAX called `name`. RequestError where JAX is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise RequestError(
            f"tensorkiln.frontends.jax.jit needs JAX ({error}): `pip install jax`. Functions that are exported already "
            "are read without it, by tensorkiln.frontends.jax.load."
        ) from None
