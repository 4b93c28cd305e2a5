"""Loops of known length, branches, and what is made of them."""

from __future__ import annotations

from typing import Final

import jax
import jax.numpy as jnp
from jax import lax

from tests.frontends.jax.export.recipe import Function, booleans, integers, normal, positive


def _rnn(weight, state, xs):
    def step(state, x):
        state = jnp.tanh(state @ weight + x)
        return state, state.sum()

    return lax.scan(step, state, xs)


def _lstm(weight, xs):
    def step(carry, x):
        hidden, cell = carry
        i, f, g, o = jnp.split(jnp.concatenate([x, hidden]) @ weight, 4)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden

    return lax.scan(step, (jnp.zeros(3), jnp.zeros(3)), xs)[1]


def _newton(x):
    return lax.fori_loop(0, 6, lambda _, y: (y + x / y) / 2, x)


def _power_iteration(a):
    def step(_, v):
        v = a @ v
        return v / jnp.linalg.norm(v)

    return lax.fori_loop(0, 5, step, jnp.ones(4))


def _nested(x):
    return lax.fori_loop(0, 3, lambda i, y: lax.fori_loop(0, 2, lambda j, z: z * 0.5 + i + j, y), x)


def _while(x):
    return lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 1.5), (0, x))[1]


FUNCTIONS: Final = (
    Function("scan_sum", lambda x: lax.scan(lambda c, v: (c + v, c * v), jnp.zeros(3), x), (normal(5, 3),)),
    Function("scan_reversed", lambda x: lax.scan(lambda c, v: (c * 0.5 + v, c), 0.0, x, reverse=True), (normal(6),)),
    Function("scan_rnn", _rnn, (normal(4, 4), normal(4), normal(6, 4))),
    Function("scan_lstm", _lstm, (normal(5, 12), normal(4, 2))),
    Function("scan_unrolled", lambda x: lax.scan(lambda c, v: (c + v, c), 0.0, x, unroll=2), (normal(6),)),
    Function("scan_long", lambda x: lax.scan(lambda c, v: (c * 0.9 + v, None), 0.0, x)[0], (normal(40),)),
    Function("grad_scan", jax.grad(lambda w, s, x: _rnn(w, s, x)[1].sum()), (normal(3, 3), normal(3), normal(4, 3))),
    Function("fori_newton", _newton, (positive(5),)),
    Function("fori_power_iteration", _power_iteration, (positive(4, 4),)),
    Function("fori_nested", _nested, (normal(4),)),
    Function("fori_update", lambda x: lax.fori_loop(1, 6, lambda i, y: y.at[i].set(y[i - 1] + y[i]), x), (normal(6),)),
    Function("while_counted", _while, (normal(4),)),
    Function("cond", lambda p, x: lax.cond(p, lambda v: v * 2, lambda v: v - 1, x), (booleans(), normal(4))),
    Function(
        "cond_nested",
        lambda x: lax.cond(x.sum() > 0, lambda v: lax.cond(v[0] > 0, jnp.sin, jnp.cos, v), jnp.exp, x),
        (normal(4),),
    ),
    Function(
        "switch", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda v: v * v], x), (integers(-1, 4), normal(4))
    ),
    Function("map", lambda x: lax.map(lambda v: v @ v, x), (normal(5, 3),)),
    Function("map_batched", lambda x: lax.map(lambda v: jnp.sort(v), x, batch_size=2), (normal(4, 3),)),
    Function("associative_scan", lambda x: lax.associative_scan(jnp.multiply, x), (positive(9),)),
    Function("nested_jit", lambda x: jax.jit(lambda v: jax.jit(jnp.sin)(v) + v)(x) * 2, (normal(4),)),
)
