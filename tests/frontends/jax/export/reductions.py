"""What takes many elements to one, and what sorts them."""

from __future__ import annotations

from functools import partial
from typing import Final

import jax
import jax.numpy as jnp
from jax import lax

from tests.frontends.jax.export.recipe import Function, booleans, integers, normal, positive, special

_PLAIN: Final = ("sum", "mean", "var", "std", "max", "min", "prod", "argmax", "argmin", "cumsum", "cumprod", "sort")

FUNCTIONS: Final = (
    *(Function(name, partial(getattr(jnp, name), axis=1), (normal(5, 6, 3),)) for name in _PLAIN),
    Function("sum_of_all", lambda x: (x.sum(), x.sum((0, 2), keepdims=True)), (normal(5, 6, 3),)),
    Function("any_all", lambda p: (p.any(1), p.all(0)), (booleans(5, 3),)),
    Function("sum_of_integers", lambda x: (x.sum(0), x.max(1)), (integers(-99, 99, 5, 6),)),
    Function("max_of_special", lambda x: (x.max(1), jnp.nanmax(x, 1)), (special(2, 5),)),
    Function("nanmean", lambda x: jnp.nansum(jnp.where(jnp.isinf(x), 0, x), 1), (special(2, 6),)),
    Function("logsumexp", lambda x: jax.nn.logsumexp(x, axis=-1), (normal(5, 6),)),
    Function("cummax", lambda x: lax.cummax(x, 1), (normal(5, 6),)),
    Function("cumsum_reversed", lambda x: lax.cumsum(x, 0, reverse=True), (normal(5, 6),)),
    Function("cumlogsumexp", lambda x: lax.cumlogsumexp(x, 1), (normal(5, 6),)),
    Function("norm", lambda x: (jnp.linalg.norm(x), jnp.linalg.norm(x, axis=1, ord=1)), (normal(5, 6),)),
    Function("average", lambda x, w: jnp.average(x, 0, w), (normal(5, 6), positive(5))),
    Function("count_nonzero", jnp.count_nonzero, (integers(-1, 2, 5, 6),)),
    Function("argsort", lambda x: jnp.argsort(x, 1), (normal(5, 6),)),
    Function("sort_descending", lambda x: jnp.sort(x, 0, descending=True), (normal(5, 6),)),
    Function("sort_pairs", lambda k, v: lax.sort((k, v), num_keys=1), (normal(9), integers(0, 9, 9))),
    Function("top_k", lambda x: lax.top_k(x, 3), (normal(4, 9),)),
    Function("median", lambda x: jnp.median(x, 0), (normal(5, 6),)),
    Function("quantile", lambda x: jnp.quantile(x, 0.3, 1), (normal(5, 6),)),
    Function("searchsorted", lambda x, v: jnp.searchsorted(jnp.cumsum(x), v), (positive(3), normal(5))),
    Function("max_pool", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID"), (normal(6, 8),)),
    Function("sum_pool", lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 3), (1, 2), "SAME"), (normal(6, 8),)),
    Function(
        "dilated_pool",
        lambda x: lax.reduce_window(x, jnp.inf, lax.min, (2, 2), (1, 1), "VALID", window_dilation=(2, 3)),
        (normal(6, 8),),
    ),
    Function("variance_of_groups", lambda x: x.reshape(2, 3, 4).var((1, 2)), (normal(2, 12),)),
    Function("cumulative_mean", lambda x: jnp.cumsum(x) / jnp.arange(1, 10), (normal(9),)),
    Function("bincount", lambda x: jnp.bincount(x, length=5), (integers(0, 5, 20),)),
    Function("reduce_two", lambda x: lax.reduce(x, 1.0, lambda a, b: a * b, (0,)), (positive(4, 3),)),
    Function("ptp", lambda x: jnp.ptp(x, 1), (normal(5, 6),)),
)
