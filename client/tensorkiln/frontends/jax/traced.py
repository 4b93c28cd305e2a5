"""Tracing of a live function by `jax.export`, to StableHLO."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ...errors import UnsupportedGraphError
from .closure import without_constants
from .exported import Aval, Exported
from .installed import installed
from .model import Array
from .tree import Tree

PLATFORM: Final = "cpu"
"""The platform that JAX lowers for: its modules are pure StableHLO for most functions, and run on any target."""


def traced(
    name: str, function: Callable[..., Sequence[Any]], specs: Sequence[Any], parameters: Sequence[Any]
) -> tuple[Exported, list[Array]]:
    """The export of a function from leaves to leaves, and the arrays that its last arguments are bound to.

    `specs` are the argument leaves as `jax.ShapeDtypeStruct`. The export takes them, then the `parameters`, then the
    arrays that the function closes over. Raises JAX's own error for a function that it cannot trace;
    UnsupportedGraphError for one with side effects.
    """
    jax, export = installed(), installed("jax.export")
    closed = jax.make_jaxpr(function)(*specs, *(_spec(jax, each) for each in parameters))
    if closed.effects:
        raise UnsupportedGraphError(f"The function {name} has side effects; a compiled program has none.")
    whole, constants = without_constants(closed)
    bound = [*parameters, *constants]
    found = export.export(jax.jit(whole), platforms=(PLATFORM,))(*specs, *(_spec(jax, each) for each in bound))
    exported = Exported(
        name=name,
        in_tree=Tree("tuple", (_flat(len(found.in_avals)), Tree("dict"))),
        in_avals=tuple(_aval(each) for each in found.in_avals),
        out_tree=_flat(len(found.out_avals)),
        out_avals=tuple(_aval(each) for each in found.out_avals),
        kept=tuple(found.module_kept_var_idx),
        platforms=tuple(found.platforms),
        devices=found.nr_devices,
        calling_convention=found.calling_convention_version,
        module=found.mlir_module_serialized,
    )
    # Copies, so that later changes of the arrays do not affect the program.
    return exported, [np.array(each) for each in bound]


def _spec(jax: Any, array: Any) -> Any:
    return jax.ShapeDtypeStruct(array.shape, array.dtype, weak_type=jax.typeof(array).weak_type)


def _flat(leaves: int) -> Tree:
    return Tree("tuple", (Tree("leaf"),) * leaves)


def _aval(aval: Any) -> Aval:
    return Aval(str(aval.dtype), tuple(str(dim) for dim in aval.shape))
