"""Factors of matrices, linear systems, determinants and inverses. Factors with free signs are multiplied again."""

from __future__ import annotations

import torch
from torch import Tensor, linalg

from .case import Case, drawn, of

X = drawn(3, 4, 4) + 3 * torch.eye(4)
B = drawn(3, 4, 2)
TALL = drawn(2, 5, 3)
DYNAMIC = ({0: ("batch", 2, 8)}, {0: ("batch", 2, 8)})
MORE = [(drawn(5, 4, 4, seed=1) + 3 * torch.eye(4), drawn(5, 4, 2, seed=1))]


def positive(x: Tensor) -> Tensor:
    return x @ x.mT + torch.eye(4)


def rebuilt(x: Tensor) -> tuple[Tensor, ...]:
    u, s, v = linalg.svd(x, full_matrices=False)
    return s, (u * s.unsqueeze(-2)) @ v, linalg.svdvals(x.mT), linalg.matrix_norm(x, 2), linalg.matrix_rank(x)


def spectral(x: Tensor) -> tuple[Tensor, ...]:
    values, vectors = linalg.eigh(x)
    upper = linalg.eigh(x, UPLO="U")
    return values, (vectors * values.unsqueeze(-2)) @ vectors.mT, upper[0], linalg.eigvalsh(x)


def triangular(x: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    return (
        linalg.solve_triangular(x, b, upper=True),
        linalg.solve_triangular(x, b.mT, upper=False, left=False),
        linalg.solve_triangular(x[0], b, upper=False, unitriangular=True),
        torch.triangular_solve(b, x, transpose=True)[0],
    )


def probability(x: Tensor, b: Tensor) -> Tensor:
    normal = torch.distributions.MultivariateNormal(b[..., 0], positive(x), validate_args=False)
    return normal.log_prob(b[..., 1])


def lu_solutions(x: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    factors = linalg.lu_factor(x)
    return (
        linalg.lu_solve(*factors, b, adjoint=True),
        linalg.lu_solve(*factors, b.mT, left=False),
        linalg.lu_solve(*factors, b.mT, left=False, adjoint=True),
    )


CASES: dict[str, Case] = {
    "solve": of(lambda x, b: linalg.solve(x, b), X, B, more=MORE, dynamic=DYNAMIC),
    "solve_forms": of(
        lambda x, b: (linalg.solve(x, b.mT, left=False), linalg.solve(x, b[..., 0]), linalg.solve(x[0], b)), X, B
    ),
    "solve_double": of(lambda x, b: linalg.solve(x, b), X.double(), B.double()),
    "inverse": of(lambda x: (linalg.inv(x), linalg.inv_ex(x)[1], linalg.matrix_power(x, -2), linalg.cond(x, 1)), X),
    "determinant": of(
        lambda x, b: (linalg.det(x), *linalg.slogdet(-x[..., :3, :3]), torch.logdet(positive(x))),
        X,
        B,
        more=MORE,
        dynamic=DYNAMIC,
    ),
    "singular": of(lambda x: (linalg.det(x), *linalg.slogdet(x), linalg.inv_ex(x)[1]), torch.ones(2, 3, 3)),
    "cholesky": of(
        lambda x, b: (linalg.cholesky(positive(x)), linalg.cholesky(positive(x), upper=True)),
        X,
        B,
        more=MORE,
        dynamic=DYNAMIC,
    ),
    "cholesky_solve": of(
        lambda x, b: (
            torch.cholesky_solve(b, linalg.cholesky(positive(x))),
            torch.cholesky_solve(b, torch.cholesky(positive(x), upper=True), upper=True),
            torch.cholesky_inverse(linalg.cholesky(positive(x))),
            linalg.cholesky_ex(x - 9 * torch.eye(4))[1],
        ),
        X,
        B,
    ),
    "qr": of(lambda x: (*linalg.qr(x), *linalg.qr(x, mode="complete"), linalg.qr(x.mT, mode="r")[1]), TALL),
    "geqrf": of(lambda x: tuple(torch.geqrf(x)), TALL),
    "lu": of(lambda x: (*linalg.lu(x), *linalg.lu_factor(x.mT)), TALL),
    "lu_solve": of(lambda x, b: linalg.lu_solve(*linalg.lu_factor(x), b), X, B, more=MORE, dynamic=DYNAMIC),
    "lu_solve_forms": of(lu_solutions, X, B),
    "svd": of(rebuilt, TALL),
    "eigh": of(spectral, X),
    "triangular": of(triangular, X, B),
    "multivariate_normal": of(probability, X, B, more=MORE, dynamic=DYNAMIC),
}
