"""cholesky and triangular_solve: factors of matrices and systems of triangular ones, as JAX exports them for a TPU."""

from __future__ import annotations

from typing import Final

from dialect.mlir import stablehlo
from tensorkiln import build
from tensorkiln.build import Tensor
from tensorkiln.build.conversion import widened
from tensorkiln.frontends.composed.triangular import cholesky, triangular_solution

from .op import Op
from .table import Translator
from .value import Value


def matrices(op: Op, *, is_square: bool = False) -> Tensor:
    """The first operand: one or several matrices of floats. InvalidGraphError for anything else."""
    x = op.tensor(0) if op.operands else op.invalid("it has no operand")
    if x.rank < 2 or not x.dtype.is_float or (is_square and x.shape[-1] != x.shape[-2]):
        kind = "square matrices" if is_square else "matrices"
        op.invalid(f"it takes {kind} of floats, not {x.dtype} of ({', '.join(map(str, x.shape))})")
    return x


def lower_factor(x: Tensor, *, is_lower: bool) -> Tensor:
    """The factor of symmetric matrices of which only this triangle is read: L, or else its transpose."""
    wide = widened(x)
    return (cholesky(wide) if is_lower else build.transpose(cholesky(build.transpose(wide)))).cast(x.dtype)


def solution(
    op: Op, x: Tensor, right: Tensor, *, is_left: bool, is_lower: bool, is_unit: bool, is_transposed: bool
) -> Tensor:
    """The solution s of `x @ s = right`, or with x on the right of `s @ x = right`; x may be transposed.

    InvalidGraphError when the shapes do not fit.
    """
    # `s @ x = right` is `x.T @ s.T = right.T`.
    if is_transposed is is_left:
        x, is_lower = build.transpose(x), not is_lower
    given = right if is_left or right.rank < 2 else build.transpose(right)
    if given.dtype is not x.dtype or given.shape[:-1] != x.shape[:-1]:
        op.invalid(
            f"a system of ({', '.join(map(str, x.shape))}) has no right side of {', '.join(map(str, right.shape))}"
        )
    found = triangular_solution(widened(x), widened(given), is_lower=is_lower, is_unit=is_unit).cast(x.dtype)
    return found if is_left else build.transpose(found)


def _cholesky(op: Op) -> Value:
    return lower_factor(matrices(op, is_square=True), is_lower=op.flag("lower"))


def _triangular_solve(op: Op) -> Value:
    kinds = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
    return solution(
        op,
        matrices(op, is_square=True),
        op.tensor(1),
        is_left=op.flag("left_side"),
        is_lower=op.flag("lower"),
        is_unit=op.flag("unit_diagonal"),
        is_transposed=op.choice("transpose_a", stablehlo.TransposeAttr, kinds) != "NO_TRANSPOSE",
    )


OPERATORS: Final[dict[str, Translator]] = {
    "stablehlo.cholesky": _cholesky,
    "stablehlo.triangular_solve": _triangular_solve,
}
