"""Factors of matrices, linear systems, determinants and inverses. Matrices are float32 or float64, as in torch."""

from __future__ import annotations

from ... import build
from ...build import Tensor
from ...build.broadcast import broadcast_shape
from ...dtypes import DType
from ...expr import Dim, minimum
from ..composed.elimination import exchanged, lu
from ..composed.reflections import orthogonal, reflected
from ..composed.repeating import diagonal, first_true, unit
from ..composed.rotations import eigenvectors, singular_values
from ..composed.triangular import cholesky, triangular_solution
from .call import Call, Operator
from .exported import Ref, TensorType


def matrices(call: Call, name: str = "A") -> Tensor:
    """An argument that is a batch of matrices, of which none may be empty."""
    x = call.tensor(name)
    if any(x.builder.bounds(dim)[0] == 0 for dim in x.shape[-2:]):
        call.fail(f"matrices of ({', '.join(map(str, x.shape[-2:]))}) may be empty, which have no factors here")
    return x


def _solved(x: Tensor, right: Tensor, *, is_upper: bool, is_unit: bool = False) -> Tensor:
    """The solutions of triangular systems, whose batches are broadcast."""
    x, right = _of_one_batch(x, right)
    return triangular_solution(x, right, is_lower=not is_upper, is_unit=is_unit)


def _of_one_batch(*given: Tensor) -> list[Tensor]:
    """Matrices with their batches broadcast."""
    outer = broadcast_shape(given[0].builder, [each.shape[:-2] for each in given])
    return [each.expand([*outer, *each.shape[-2:]]) for each in given]


def _by_factors(factors: Tensor, exchanges: Tensor, right: Tensor, *, is_transposed: bool = False) -> Tensor:
    """The solutions of systems of the factored matrices, or of their transposes."""
    if not is_transposed:
        below = _solved(factors, exchanged(right, exchanges), is_upper=False, is_unit=True)
        return _solved(factors, below, is_upper=True)
    turned = build.transpose(factors)
    above = _solved(turned, _solved(turned, right, is_upper=False), is_upper=True, is_unit=True)
    return exchanged(above, exchanges, is_undone=True)


def _kept_factors(call: Call, places: tuple[int, int]) -> tuple[Tensor, Tensor, bool]:
    """The factors and exchanges of the matrices or of their transposes, and whether of these.

    torch factors the transposes of contiguous matrices, and its gradients rely on that.
    """
    x, given = matrices(call), call.operation.arguments.get("A")
    known = call.types.get(given.name) if isinstance(given, Ref) else None
    is_transposed = isinstance(known, TensorType) and known.is_dense
    if not is_transposed and any(map(call.is_read, places)):
        call.fail("the factors of matrices that are not contiguous, which gradients read, depend on their layout")
    return *lu(build.transpose(x) if is_transposed else x), is_transposed


def _solve(call: Call) -> list[Tensor]:
    """The solution, the factors, the exchanges, and the number of the first pivot that is 0, or 0."""
    x, right, is_left = matrices(call), call.tensor("B"), call.flag("left", True)
    if call.is_read(1) or call.is_read(2):
        call.fail("the factors of a solved system, which its gradient reads, are not given: solve with linalg.inv")
    factors, exchanges, is_transposed = _kept_factors(call, (1, 2))
    is_vector = right.rank == 1 or (right.rank == x.rank - 1 and right.shape == x.shape[:-1])
    given = right.unsqueeze([-1]) if is_vector else right
    found = _lu_solved(factors, exchanges, given, is_left=is_left, is_transposed=is_transposed)
    found = found.squeeze([-1]) if is_vector else found
    return [found, factors, _counted_from_1(exchanges), first_true(build.equal(diagonal(factors), 0))]


def _lu_solved(factors: Tensor, exchanges: Tensor, right: Tensor, *, is_left: bool, is_transposed: bool) -> Tensor:
    # `s @ x = right` is `x.T @ s.T = right.T`.
    given = right if is_left else build.transpose(right)
    factors, given = _of_one_batch(factors, given)
    exchanges = exchanges.expand([*factors.shape[:-2], exchanges.shape[-1]])
    found = _by_factors(factors, exchanges, given, is_transposed=is_transposed is is_left)
    return found if is_left else build.transpose(found)


def _counted_from_1(exchanges: Tensor) -> Tensor:
    return (exchanges + 1).cast(DType.INT32)


def _inverse(call: Call) -> list[Tensor]:
    x = matrices(call)
    factors, exchanges = lu(x)
    found = _by_factors(factors, exchanges, unit(x.builder, x.shape, x.dtype))
    return [found, first_true(build.equal(diagonal(factors), 0))]


def _sign_of(exchanges: Tensor) -> Tensor:
    """1 for an even number of rows that moved, -1 for an odd one: (...,), int64."""
    moved = build.not_equal(exchanges, build.arange(exchanges.builder, exchanges.shape[-1]))
    return 1 - 2 * (moved.cast(DType.INT64).sum([-1]) % 2)


def _determinant(call: Call) -> list[Tensor]:
    factors, exchanges, _ = _kept_factors(call, (1, 2))
    found = diagonal(factors).prod([-1]) * _sign_of(exchanges).cast(factors.dtype)
    return [found, factors, _counted_from_1(exchanges)]


def _logarithm(call: Call) -> list[Tensor]:
    """The sign of a determinant, and the logarithm of its size."""
    factors, exchanges, _ = _kept_factors(call, (2, 3))
    own = diagonal(factors)
    sign = build.sign(own).prod([-1]) * _sign_of(exchanges).cast(factors.dtype)
    return [sign, build.log(build.absolute(own)).sum([-1]), factors, _counted_from_1(exchanges)]


def _lower(x: Tensor, is_upper: bool) -> Tensor:
    """The factor of symmetric matrices of which this triangle is read."""
    return build.transpose(cholesky(build.transpose(x))) if is_upper else cholesky(x)


def _cholesky(call: Call) -> list[Tensor]:
    """The factor, and the number of the first minor that is not positive, or 0."""
    found = _lower(matrices(call, "self"), call.flag("upper"))
    return [found, first_true(~(diagonal(found) > 0))]


def _by_cholesky(factor: Tensor, right: Tensor, is_upper: bool) -> Tensor:
    lower = build.transpose(factor) if is_upper else factor
    return _solved(build.transpose(lower), _solved(lower, right, is_upper=False), is_upper=True)


def _cholesky_solution(call: Call) -> Tensor:
    return _by_cholesky(matrices(call, "input2"), call.tensor(), call.flag("upper"))


def _cholesky_inverse(call: Call) -> Tensor:
    x = matrices(call, "self")
    return _by_cholesky(x, unit(x.builder, x.shape, x.dtype), call.flag("upper"))


def _triangular(call: Call) -> Tensor:
    x, right = matrices(call, "self"), call.tensor("B")
    is_upper, is_unit = call.flag("upper"), call.flag("unitriangular")
    if call.flag("left", True):
        return _solved(x, right, is_upper=is_upper, is_unit=is_unit)
    found = _solved(build.transpose(x), build.transpose(right), is_upper=not is_upper, is_unit=is_unit)
    return build.transpose(found)


def _triangular_pair(call: Call) -> list[Tensor]:
    """`torch.triangular_solve`: the solution, and the matrices again."""
    x, is_upper, is_turned = matrices(call), call.flag("upper", True), call.flag("transpose")
    given = build.transpose(x) if is_turned else x
    found = _solved(given, call.tensor(), is_upper=is_upper is not is_turned, is_unit=call.flag("unitriangular"))
    return [found, x]


def _above(x: Tensor, rows: Dim) -> Tensor:
    """The first rows, with zeros below the diagonal."""
    kept = x[..., :rows, :]
    places, columns = (build.arange(x.builder, dim) for dim in kept.shape[-2:])
    return build.where(columns >= places.unsqueeze([1]), kept, 0)


def _qr(call: Call) -> list[Tensor]:
    x, mode = matrices(call), call.text("mode", "reduced")
    height, width = x.shape[-2:]
    count = height if mode == "complete" else minimum(height, width)
    found, factors = reflected(x)
    q = build.zeros(x.builder, [0], x.dtype) if mode == "r" else orthogonal(found, factors, count)
    return [q, _above(found, count)]


def _reflections(call: Call) -> list[Tensor]:
    return list(reflected(matrices(call, "self")))


def _eigenvectors(call: Call) -> list[Tensor]:
    x = matrices(call)
    given = build.transpose(x) if call.text("UPLO", "L").upper() == "U" else x
    return list(eigenvectors(given, refuse=call.fail))


def _singular(call: Call) -> list[Tensor]:
    return list(singular_values(matrices(call), is_full=call.flag("full_matrices"), refuse=call.fail))


def _pivoted(call: Call) -> tuple[Tensor, Tensor]:
    if not call.flag("pivot", True):
        call.fail("factors without exchanges of rows are not supported")
    return lu(matrices(call))


def _lu_factors(call: Call) -> list[Tensor]:
    factors, exchanges = _pivoted(call)
    return [factors, _counted_from_1(exchanges), first_true(build.equal(diagonal(factors), 0))]


def _lu(call: Call) -> list[Tensor]:
    """P, L and U, whose product are the matrices."""
    factors, exchanges = _pivoted(call)
    return [order_of(factors, exchanges), *lower_and_upper(factors)]


def order_of(factors: Tensor, exchanges: Tensor) -> Tensor:
    """The matrices P of the exchanges (..., k) of rows of the factors (..., m, n), counted from 0."""
    *outer, height, _ = factors.shape
    return exchanged(unit(factors.builder, [*outer, height, height], factors.dtype), exchanges, is_undone=True)


def lower_and_upper(factors: Tensor) -> tuple[Tensor, Tensor]:
    """L with ones on its diagonal, and U, of factors (..., m, n) that are stored together."""
    count = minimum(*factors.shape[-2:])
    below = factors[..., :count]
    rows, columns = (build.arange(factors.builder, dim) for dim in below.shape[-2:])
    lower = build.where(columns < rows.unsqueeze([1]), below, unit(factors.builder, below.shape, factors.dtype))
    return lower, _above(factors, count)


def _lu_solution(call: Call) -> Tensor:
    exchanges = call.tensor("pivots").cast(DType.INT64) - 1
    return _lu_solved(
        matrices(call, "LU"),
        exchanges,
        call.tensor("B"),
        is_left=call.flag("left", True),
        is_transposed=call.flag("adjoint"),
    )


OPERATORS: dict[str, Operator] = {
    "aten._linalg_det.default": _determinant,
    "aten._linalg_eigh.default": _eigenvectors,
    "aten._linalg_slogdet.default": _logarithm,
    "aten._linalg_solve_ex.default": _solve,
    "aten._linalg_svd.default": _singular,
    "aten.cholesky.default": lambda call: _cholesky(call)[0],
    "aten.cholesky_inverse.default": _cholesky_inverse,
    "aten.cholesky_solve.default": _cholesky_solution,
    "aten.geqrf.default": _reflections,
    "aten.linalg_cholesky_ex.default": _cholesky,
    "aten.linalg_inv_ex.default": _inverse,
    "aten.linalg_lu.default": _lu,
    "aten.linalg_lu_factor_ex.default": _lu_factors,
    "aten.linalg_lu_solve.default": _lu_solution,
    "aten.linalg_qr.default": _qr,
    "aten.linalg_solve_triangular.default": _triangular,
    "aten.triangular_solve.default": _triangular_pair,
}
