"""Elements picked and replaced by indices that are data."""

from __future__ import annotations

from typing import Final

import jax
import jax.numpy as jnp

from tests.frontends.jax.export.recipe import Function, integers, normal, positive

_X: Final = normal(6, 5)
_I: Final = integers(-6, 6, 4)
_J: Final = integers(0, 5, 4)

FUNCTIONS: Final = (
    Function("index", lambda x, i: x[i], (_X, integers(-6, 6))),
    Function("index_rows", lambda x, i: x[i], (_X, _I)),
    Function("index_columns", lambda x, i: x[:, i], (_X, _J)),
    Function("index_pairs", lambda x, i, j: x[i, j], (_X, _I, _J)),
    Function("index_grid", lambda x, i, j: x[i[:, None], j[None, :]], (_X, _I, _J)),
    Function("index_parts", lambda x, i: x[i, 1:3], (_X, _I)),
    Function("take_fill", lambda x, i: jnp.take(x, i, 0), (_X, integers(-9, 9, 4, 2))),
    Function("take_clip", lambda x, i: jnp.take(x, i, 1, mode="clip"), (_X, integers(-9, 9, 4))),
    Function("take_wrap", lambda x, i: jnp.take(x, i, 1, mode="wrap"), (_X, integers(-9, 9, 4))),
    Function("take_along_axis", lambda x, i: jnp.take_along_axis(x, i, 1), (_X, integers(0, 5, 6, 2))),
    Function("embedding", lambda table, tokens: table[tokens], (normal(10, 4), integers(0, 10, 2, 3))),
    Function("set", lambda x, i: x.at[i].set(1.0), (_X, _I)),
    Function("set_rows", lambda x, i, y: x.at[i].set(y), (_X, integers(0, 1, 1), normal(1, 5))),
    Function("set_slice", lambda x, y: x.at[1:3, ::2].set(y), (_X, normal(2, 3))),
    Function("add_at", lambda x, i, y: x.at[i].add(y), (_X, _I, normal(4, 5))),
    Function("add_at_pairs", lambda x, i, j: x.at[i, j].add(1.0), (_X, _I, _J)),
    Function("max_at", lambda x, i, y: x.at[i].max(y), (_X, _I, normal(4, 5))),
    Function("multiply_at", lambda x, i, y: x.at[:, i].multiply(y), (_X, _J, normal(6, 4))),
    Function("segment_sum", lambda x, i: jax.ops.segment_sum(x, i, 3), (normal(8, 2), integers(0, 3, 8))),
    Function("segment_max", lambda x, i: jax.ops.segment_max(x, i, 3), (normal(8), integers(0, 3, 8))),
    Function("one_hot", lambda i: jax.nn.one_hot(i, 5), (integers(-1, 6, 4),)),
    Function("choose", lambda i, x, y: jnp.choose(i, [x, y], mode="clip"), (integers(0, 2, 4), normal(4), normal(4))),
    Function("interp", lambda x: jnp.interp(x, jnp.arange(4.0), jnp.array([0.0, 2.0, 1.0, 5.0])), (positive(7),)),
    Function(
        "put_along_axis", lambda x, i: jnp.put_along_axis(x, i, 9.0, 1, inplace=False), (_X, integers(0, 5, 6, 1))
    ),
    Function(
        "gather_rows_of_batch",
        lambda x, i: jax.vmap(lambda row, at: row[at])(x, i),
        (normal(3, 7), integers(0, 7, 3, 2)),
    ),
    Function("nonzero", lambda x: jnp.nonzero(x, size=6, fill_value=-1), (integers(0, 2, 8),)),
)
