"""Factors of matrices, and linear systems: what JAX computes with LAPACK on a CPU.

Eigenvectors and singular vectors are unique but for their signs, so functions return what they multiply to.
"""

from __future__ import annotations

from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy import linalg

from tests.frontends.jax.export.recipe import Function, Sizes, normal

_ROWS: Final[tuple[Sizes, ...]] = ({"n": 2}, {"n": 7})


def _definite(x: Any) -> Any:
    return x @ x.mT + jnp.eye(x.shape[-1])


def _of_eigenvectors(x: Any) -> tuple[Any, Any, Any]:
    values, vectors = jnp.linalg.eigh(x + x.mT)
    return values, (vectors * values[..., None, :]) @ vectors.mT, vectors.mT @ vectors


def _of_singular_vectors(is_full: bool):
    def function(x: Any) -> tuple[Any, ...]:
        left, values, right = jnp.linalg.svd(x, full_matrices=is_full)
        count = values.shape[-1]
        whole = (left[..., :count] * values[..., None, :]) @ right[..., :count, :]
        return values, whole, left.mT @ left, right @ right.mT

    return function


def _filtered(turn: Any, noise: Any, seen: Any, errors: Any, measured: Any) -> Any:
    """A Kalman filter."""

    def step(state: tuple[Any, Any], measured: Any) -> tuple[tuple[Any, Any], Any]:
        mean, spread = turn @ state[0], turn @ state[1] @ turn.T + noise @ noise.T
        gain = jnp.linalg.solve(seen @ spread @ seen.T + errors @ errors.T, seen @ spread).T
        mean = mean + gain @ (measured - seen @ mean)
        spread = spread - gain @ seen @ spread
        return (mean, spread), mean

    return lax.scan(step, (jnp.zeros(3), jnp.eye(3)), measured)[1]


def _gaussian_process(x: Any, y: Any, at: Any) -> tuple[Any, Any, Any]:
    def kernel(a: Any, b: Any) -> Any:
        return jnp.exp(-0.5 * ((a[:, None] - b) ** 2).sum(-1))

    factor = jnp.linalg.cholesky(kernel(x, x) + 0.1 * jnp.eye(len(x)))
    weights = linalg.cho_solve((factor, True), y)
    known = linalg.solve_triangular(factor, kernel(x, at), lower=True)
    return kernel(at, x) @ weights, 1 - (known**2).sum(0), jnp.log(jnp.diag(factor)).sum()


FUNCTIONS: Final = (
    Function("factor_cholesky", lambda x: jnp.linalg.cholesky(_definite(x)), (normal(6, 6),)),
    Function("factor_cholesky_upper", lambda x: linalg.cholesky(_definite(x), lower=False), (normal(2, 5, 5),)),
    Function("factor_not_definite", lambda x: jnp.linalg.cholesky(-_definite(x)), (normal(4, 4),)),
    Function(
        "grad_log_determinant", jax.grad(lambda x: jnp.linalg.slogdet(_definite(x))[1] + x.sum()), (normal(5, 5),)
    ),
    Function("grad_cholesky", jax.grad(lambda x: (jnp.linalg.cholesky(_definite(x)) ** 3).sum()), (normal(4, 4),)),
    Function("solve", jnp.linalg.solve, (normal(6, 6), normal(6, 2))),
    Function("solve_of_each", jax.vmap(jnp.linalg.solve), (normal(3, 5, 5), normal(3, 5, 2))),
    Function(
        "solve_wide", jnp.linalg.solve, (normal(5, 5, dtype=jnp.float64), normal(5, dtype=jnp.float64)), wide=True
    ),
    Function(
        "grad_solve", jax.grad(lambda a, b: (jnp.linalg.solve(a, b) ** 2).sum(), (0, 1)), (normal(4, 4), normal(4))
    ),
    Function("inverse", jnp.linalg.inv, (normal(7, 7),)),
    Function("determinant", lambda x: (jnp.linalg.det(x), *jnp.linalg.slogdet(x)), (normal(3, 6, 6),)),
    Function("factor_lu", linalg.lu, (normal(6, 4),)),
    Function("matrix_exponential", linalg.expm, (normal(5, 5),)),
    Function(
        "solve_triangular_transposed",
        lambda a, b: linalg.solve_triangular(a, b, trans=1, lower=True, unit_diagonal=True),
        (normal(4, 4), normal(4, 3)),
    ),
    Function(
        "solve_triangular_from_the_right",
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=False, lower=False),
        (normal(4, 4), normal(3, 4)),
    ),
    Function("factor_qr", lambda x: tuple(jnp.linalg.qr(x)), (normal(6, 4),)),
    Function("factor_qr_complete", lambda x: tuple(jnp.linalg.qr(x, mode="complete")), (normal(2, 6, 4),)),
    Function("eigenvectors", _of_eigenvectors, (normal(7, 7),)),
    Function("eigenvectors_of_each", _of_eigenvectors, (normal(3, 4, 4),)),
    Function("eigenvalues", lambda x: jnp.linalg.eigvalsh(x + x.T), (normal(5, 5),)),
    Function("singular_vectors", _of_singular_vectors(False), (normal(6, 4),)),
    Function("singular_vectors_full", _of_singular_vectors(True), (normal(2, 3, 5),)),
    Function("singular_values", lambda x: jnp.linalg.svd(x, compute_uv=False), (normal(4, 6),)),
    Function("least_squares", lambda a, b: jnp.linalg.lstsq(a, b)[0], (normal(8, 3), normal(8))),
    Function("pseudoinverse", jnp.linalg.pinv, (normal(3, 6),)),
    Function("kalman_filter", _filtered, (normal(3, 3), normal(3, 3), normal(2, 3), normal(2, 2), normal(12, 2))),
    Function("gaussian_process", _gaussian_process, (normal(12, 2), normal(12), normal(4, 2))),
    Function("n_cholesky", lambda x: jnp.linalg.cholesky(_definite(x)), (normal("n", 4, 4),), _ROWS),
    Function("n_solve", jnp.linalg.solve, (normal("n", 4, 4), normal("n", 4, 2)), _ROWS),
    Function(
        "n_ridge", lambda a, b: jnp.linalg.solve(a.T @ a + jnp.eye(3), a.T @ b), (normal("n", 3), normal("n")), _ROWS
    ),
    Function("n_qr", lambda x: tuple(jnp.linalg.qr(x)), (normal("n", 5, 3),), _ROWS),
    Function("n_singular_values", lambda x: jnp.linalg.svd(x, compute_uv=False), (normal("n", 5, 3),), _ROWS),
)
