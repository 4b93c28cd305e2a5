"""The arrays of a callable that is a JAX pytree, such as a Flax NNX module or a `jax.tree_util.Partial`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import Any

import numpy as np

from ...errors import UnsupportedGraphError
from .installed import installed


@dataclass(frozen=True)
class Module:
    """A callable as its leaves; those at `places` are arrays, its parameters, in the dtypes that JAX computes in."""

    leaves: tuple[Any, ...]
    tree: Any
    places: tuple[int, ...]

    @staticmethod
    def of(function: Callable[..., Any]) -> Module:
        """Flatten a callable. A plain function has no arrays; a method has the arrays of its object."""
        jax = installed()
        if isinstance(function, MethodType):
            function = jax.tree_util.Partial(function.__func__, function.__self__)
        leaves, tree = jax.tree.flatten(function)
        places = tuple(place for place, leaf in enumerate(leaves) if _is_array(leaf))
        for place in places:
            leaves[place] = jax.numpy.asarray(leaves[place])
        return Module(tuple(leaves), tree, places)

    @property
    def arrays(self) -> list[Any]:
        """The parameters."""
        return [self.leaves[place] for place in self.places]

    def call(self, run: Callable[[Callable[..., Any]], Any], arrays: Sequence[Any]) -> Any:
        """`run` on the callable with its arrays replaced. UnsupportedGraphError when the call changes a leaf."""
        jax = installed()
        leaves = list(self.leaves)
        for place, array in zip(self.places, arrays, strict=True):
            leaves[place] = array
        made = jax.tree.unflatten(self.tree, leaves)
        found = run(made)
        if self.places:
            after, tree = jax.tree.flatten_with_path(made)
            changed = [
                jax.tree_util.keystr(path) for (path, leaf), own in zip(after, leaves, strict=False) if leaf is not own
            ]
            if changed or tree != self.tree:
                raise UnsupportedGraphError(
                    f"the module changes its own {changed[0] if changed else 'structure'} when it is called, and a "
                    "compiled function keeps no state: for inference call .eval() first; otherwise take the state as "
                    "an argument and return the new one, as in jit(lambda state, x: nnx.merge(graph, state)(x)) after "
                    "graph, state = nnx.split(module)"
                )
        return found


def _is_array(leaf: Any) -> bool:
    # A typed key has no NumPy dtype.
    return hasattr(leaf, "shape") and isinstance(getattr(leaf, "dtype", None), np.dtype)
