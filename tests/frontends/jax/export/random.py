"""`jax.random` with threefry keys: bit for bit what JAX draws, where it draws whole values."""

from __future__ import annotations

from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import random

from tests.frontends.jax.export.recipe import Function, key, normal


def _of(draw: Any):
    return lambda words: draw(random.wrap_key_data(words, impl="threefry2x32"))


def _dropout(words, x):
    keep = random.bernoulli(random.wrap_key_data(words, impl="threefry2x32"), 0.8, x.shape)
    return jnp.where(keep, x / 0.8, 0)


FUNCTIONS: Final = (
    Function("random_bits", _of(lambda k: random.bits(k, (5,))), (key(),)),
    Function("random_bits_narrow", _of(lambda k: random.bits(k, (5,), jnp.uint8)), (key(),)),
    Function("random_split", _of(lambda k: random.key_data(random.split(k, 3))), (key(),)),
    Function("random_fold_in", _of(lambda k: random.key_data(random.fold_in(k, 7))), (key(),)),
    Function("random_uniform", _of(lambda k: random.uniform(k, (4, 3), minval=-1, maxval=2)), (key(),)),
    Function("random_normal", _of(lambda k: random.normal(k, (4, 3))), (key(),)),
    Function("random_randint", _of(lambda k: random.randint(k, (9,), -5, 100)), (key(),)),
    Function("random_bernoulli", _of(lambda k: random.bernoulli(k, 0.3, (9,))), (key(),)),
    Function("random_categorical", lambda w, x: random.categorical(random.wrap_key_data(w), x), (key(), normal(4, 5))),
    Function("random_gumbel", _of(lambda k: random.gumbel(k, (6,))), (key(),)),
    Function("random_exponential", _of(lambda k: random.exponential(k, (6,))), (key(),)),
    Function("random_laplace", _of(lambda k: random.laplace(k, (6,))), (key(),)),
    Function("random_truncated_normal", _of(lambda k: random.truncated_normal(k, -1, 1, (6,))), (key(),)),
    Function("random_permutation", _of(lambda k: random.permutation(k, 8)), (key(),)),
    Function("random_choice", _of(lambda k: random.choice(k, 10, (5,))), (key(),)),
    Function("random_dropout", _dropout, (key(), normal(4, 6))),
    Function("random_of_a_seed", lambda x: x + random.normal(random.key(3), (4,)), (normal(4),)),
    Function("random_vmap", jax.vmap(_of(lambda k: random.normal(k, (2,)))), (key(3),)),
    Function("random_rademacher", _of(lambda k: random.rademacher(k, (9,))), (key(),)),
)
