"""`vmap`, `grad` and their kin."""

from __future__ import annotations

from typing import Final

import jax
import jax.numpy as jnp
from jax import lax, nn

from tests.frontends.jax.export.recipe import Function, integers, normal, positive


def _mlp(weights, x):
    return jnp.tanh(x @ weights[0]) @ weights[1]


def _loss(weights, x, y):
    return ((_mlp(weights, x) - y) ** 2).mean()


def _entropy(weight, x, labels):
    return -jnp.take_along_axis(nn.log_softmax(x @ weight), labels[:, None], 1).mean()


def _conv(weight, x):
    return nn.relu(lax.conv(x, weight, (1, 1), "SAME")).sum()


def _pool(x):
    return (lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID") ** 2).sum()


@jax.custom_jvp
def _clipped(x):
    return jnp.clip(x, -1, 1)


_clipped.defjvps(lambda tangent, answer, x: tangent)


@jax.custom_vjp
def _doubled(x):
    return x * 2


_doubled.defvjp(lambda x: (x * 2, x), lambda kept, given: (given * kept,))

_WEIGHTS: Final = ([normal(4, 8), normal(8, 3)], normal(5, 4), normal(5, 3))

FUNCTIONS: Final = (
    Function("vmap_matmul", jax.vmap(jnp.dot, (0, None)), (normal(3, 4), normal(4, 5))),
    Function("vmap_axes", jax.vmap(lambda x, y: x * y.sum(), (1, 0), 1), (normal(4, 3), normal(3, 5))),
    Function("vmap_slice", jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (3,))), (normal(4, 8), integers(0, 8, 4))),
    Function(
        "vmap_twice",
        jax.vmap(jax.vmap(lambda x, y: jnp.abs(x - y).sum(), (None, 0)), (0, None)),
        (normal(3, 2), normal(4, 2)),
    ),
    Function("vmap_set", jax.vmap(lambda x, i: x.at[i].set(0.0)), (normal(4, 8), integers(0, 8, 4))),
    Function("vmap_cond", jax.vmap(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x)), (normal(6),)),
    Function("grad_loss", jax.grad(_loss), _WEIGHTS),
    Function("value_and_grad", jax.value_and_grad(_loss), _WEIGHTS),
    Function("grad_cross_entropy", jax.grad(_entropy), (normal(4, 3), normal(5, 4), integers(0, 3, 5))),
    Function("grad_conv", jax.grad(_conv, (0, 1)), (normal(4, 3, 3, 3), normal(1, 3, 5, 6))),
    Function("grad_max_pool", jax.grad(_pool), (normal(6, 6),)),
    Function("grad_gather", jax.grad(lambda x, i: (x[i] ** 2).sum()), (normal(6, 3), integers(0, 6, 4))),
    Function("grad_softmax", jax.grad(lambda x: (nn.softmax(x) ** 2).sum()), (normal(4, 5),)),
    Function("grad_sort", jax.grad(lambda x: (jnp.sort(x) * jnp.arange(7)).sum()), (normal(7),)),
    Function("grad_cumsum", jax.grad(lambda x: (jnp.cumsum(x) ** 2).sum()), (normal(7),)),
    Function("grad_logsumexp", jax.grad(lambda x: nn.logsumexp(x, axis=1).sum()), (normal(3, 4),)),
    Function("grad_of_grad", jax.grad(jax.grad(lambda x: jnp.sin(x) * x**3)), (normal(),)),
    Function("grad_per_example", jax.vmap(jax.grad(_loss), (None, 0, 0)), _WEIGHTS),
    Function("jacfwd", jax.jacfwd(lambda x: jnp.sin(x) * x.sum()), (normal(4),)),
    Function("jacrev", jax.jacrev(lambda x: jnp.exp(x)[:2] * x.sum()), (normal(4),)),
    Function("hessian", jax.hessian(lambda x: (x**3).sum() * x[0]), (positive(3),)),
    Function("jvp", lambda x, t: jax.jvp(jnp.tanh, (x,), (t,)), (normal(4), normal(4))),
    Function("vjp", lambda x, t: jax.vjp(lambda v: v / (1 + v**2), x)[1](t), (normal(4), normal(4))),
    Function("custom_jvp", jax.grad(lambda x: _clipped(x).sum()), (normal(5),)),
    Function("custom_vjp", jax.grad(lambda x: _doubled(x).sum()), (normal(5),)),
    Function("checkpoint", jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), (normal(5),)),
    Function("linearize", lambda x, t: jax.linearize(lambda v: jnp.log1p(v * v), x)[1](t), (normal(5), normal(5))),
    Function("stop_gradient", jax.grad(lambda x: (x * lax.stop_gradient(x)).sum()), (normal(5),)),
)
