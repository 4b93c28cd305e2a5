"""What moves elements, and makes them of nothing."""

from __future__ import annotations

from typing import Final

import jax.numpy as jnp
from jax import lax

from tests.frontends.jax.export.recipe import Function, integers, normal

FUNCTIONS: Final = (
    Function("reshape", lambda x: x.reshape(6, 2, 2), (normal(4, 6),)),
    Function("transpose", lambda x: x.transpose(2, 0, 1), (normal(2, 3, 4),)),
    Function("moveaxis", lambda x: jnp.moveaxis(x, 0, -1), (normal(2, 3, 4),)),
    Function("broadcast_to", lambda x: jnp.broadcast_to(x, (4, 3, 5)), (normal(3, 1),)),
    Function("squeeze", lambda x: jnp.squeeze(jnp.expand_dims(x, 0), 2), (normal(3, 1),)),
    Function("concatenate", lambda x, y: jnp.concatenate([x, y, x], 1), (normal(3, 2), normal(3, 4))),
    Function("stack", lambda x, y: jnp.stack([x, y], 1), (normal(3, 2), normal(3, 2))),
    Function("split", lambda x: jnp.split(x, [2, 3], 1), (normal(3, 7),)),
    Function("tile", lambda x: jnp.tile(x, (2, 3)), (normal(2, 3),)),
    Function("repeat", lambda x: jnp.repeat(x, 3, 1), (normal(2, 3),)),
    Function("flip", lambda x: jnp.flip(x, (0, 2)), (normal(2, 3, 4),)),
    Function("roll", lambda x: jnp.roll(x, (1, -2), (0, 1)), (normal(3, 5),)),
    Function("rot90", jnp.rot90, (normal(3, 5),)),
    Function("pad_constant", lambda x: jnp.pad(x, ((1, 2), (0, 3)), constant_values=1.5), (normal(3, 5),)),
    Function("pad_edge", lambda x: jnp.pad(x, ((1, 2), (2, 1)), "edge"), (normal(3, 5),)),
    Function("pad_reflect", lambda x: jnp.pad(x, ((1, 2), (2, 1)), "reflect"), (normal(3, 5),)),
    Function("pad_wrap", lambda x: jnp.pad(x, ((1, 2), (2, 1)), "wrap"), (normal(3, 5),)),
    Function("pad_between", lambda x: lax.pad(x, 2.0, [(1, 0, 2), (-1, -1, 1)]), (normal(3, 5),)),
    Function("triangles", lambda x: (jnp.tril(x), jnp.triu(x, 1)), (normal(4, 5),)),
    Function("diagonals", lambda x: (jnp.diag(x[0]), jnp.diagonal(x)), (normal(4, 5),)),
    Function("made", lambda x: x + jnp.arange(5) + jnp.eye(4, 5) + jnp.linspace(0, 1, 5), (normal(4, 5),)),
    Function("meshgrid", jnp.meshgrid, (normal(3), normal(4))),
    Function("kron", jnp.kron, (normal(2, 3), normal(3, 2))),
    Function("slices", lambda x: (x[1:3], x[::2, 1:], x[::-1, -2:], x[None, 1]), (normal(5, 6),)),
    Function("strided_slice", lambda x: lax.slice(x, (1, 0), (5, 6), (2, 3)), (normal(5, 6),)),
    Function("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, i + 1), (2, 3)), (normal(5, 6), integers(0, 6))),
    Function(
        "dynamic_update_slice",
        lambda x, y, i: lax.dynamic_update_slice(x, y, (i, 0)),
        (normal(5, 6), normal(2, 4), integers(0, 6)),
    ),
    Function("iota", lambda x: lax.broadcasted_iota(jnp.int32, (3, 4), 1) + x, (integers(0, 9, 3, 4),)),
    Function("outer_sum", lambda x, y: x[:, None] + y[None, :], (normal(4), normal(5))),
    Function("vander", lambda x: jnp.vander(x, 4), (normal(5),)),
    Function(
        "trees",
        lambda t: {"sum": t["a"] + t["b"][0], "pair": (t["b"][1], None)},
        ({"a": normal(3), "b": [normal(3), normal(2)]},),
    ),
    Function("empty", lambda x: jnp.concatenate([x, jnp.zeros((2, 3))]).sum(0), (normal(0, 3),)),
    Function("scalars", lambda x, y: x * y + 1, (normal(), normal())),
    Function("unused", lambda x, y: x + 1, (normal(3), normal(4))),
    Function("constant_output", lambda x: (x, jnp.float32(3.5), jnp.arange(4)), (normal(3),)),
)
