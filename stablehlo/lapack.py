"""Custom calls of LAPACK, by which JAX factors matrices on a CPU: loops of the graph take their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Final

from dialect.mlir import ir
from tensorkiln import build
from tensorkiln.build import Tensor
from tensorkiln.dtypes import DType
from tensorkiln.frontends.composed.elimination import lu
from tensorkiln.frontends.composed.reflections import orthogonal, reflected
from tensorkiln.frontends.composed.repeating import diagonal, first_true
from tensorkiln.frontends.composed.rotations import eigenvectors, singular_values

from .factoring import lower_factor, matrices, solution
from .op import Op
from .value import Value

_CONFIG: Final = "mhlo.backend_config"


def _second(op: Op) -> Tensor:
    """The second operand. Sizes of results that depend on symbols come after it."""
    return op.tensor(1) if len(op.operands) > 1 else op.invalid("it takes two operands")


def _letter(op: Op, name: str, known: str) -> str:
    """An option of LAPACK, a letter, from the configuration of the call."""
    if not op.has(_CONFIG):
        op.invalid(f"the attribute {_CONFIG} is missing")
    config = ir.DictAttr(op.attribute(_CONFIG))
    letter = chr(int(ir.IntegerAttr(config[name]).value) & 0x7F) if name in config else "?"
    return letter if letter in known else op.fail(f"the option {name} of this call has to be one of {', '.join(known)}")


def _potrf(op: Op) -> Sequence[Value]:
    """The lower or the upper factor, and the number of the first minor that is not positive, or 0."""
    x = matrices(op, is_square=True)
    found = lower_factor(x, is_lower=_letter(op, "uplo", "LU") == "L")
    return [found, first_true(~(diagonal(found) > 0))]


def _getrf(op: Op) -> Sequence[Value]:
    """The factors, the row exchanges, which count from 1, and the number of the first pivot that is 0, or 0."""
    factors, exchanges = lu(matrices(op))
    return [factors, (exchanges + 1).cast(DType.INT32), first_true(build.equal(diagonal(factors), 0))]


def _trsm(op: Op) -> Sequence[Value]:
    made = solution(
        op,
        matrices(op, is_square=True),
        _second(op),
        is_left=_letter(op, "side", "LR") == "L",
        is_lower=_letter(op, "uplo", "LU") == "L",
        is_unit=_letter(op, "diag", "NU") == "U",
        is_transposed=_letter(op, "trans_x", "NTC") != "N",
    )
    return [made]


def _geqrf(op: Op) -> Sequence[Value]:
    return reflected(matrices(op))


def _orgqr(op: Op) -> Sequence[Value]:
    x, factors = matrices(op), _second(op)
    if factors.shape[:-1] != x.shape[:-2]:
        op.invalid("it takes as many lists of factors as matrices")
    return [orthogonal(x, factors, x.shape[-1])]


def _syevd(op: Op) -> Sequence[Value]:
    """The eigenvectors, the eigenvalues, and 0, or 1 if these are not numbers."""
    x = matrices(op, is_square=True)
    values, vectors = eigenvectors(x if _letter(op, "uplo", "LU") == "L" else build.transpose(x), refuse=op.fail)
    return [vectors, values, _state_of(x)]


def _gesdd(op: Op) -> Sequence[Value]:
    """The overwritten matrix, which nothing reads, the singular values, U, the transpose of V, and 0 or 1.

    In the mode N nothing reads the vectors, and they may be of either size.
    """
    x, mode = matrices(op), _letter(op, "mode", "ASN")
    if op.result_count != 5:
        op.invalid("it has five results")
    left, values, right = singular_values(x, is_full=mode == "A", refuse=op.fail)
    if mode == "N":
        (height, width), (least,) = x.shape[-2:], values.shape[-1:]
        is_full = op.result(2).shape[-2:] == (height, height) and op.result(3).shape[-2:] == (width, width)
        sizes = [(height, height), (width, width)] if is_full else [(height, least), (least, width)]
        left, right = (build.zeros(op.builder, [*x.shape[:-2], *size], x.dtype) for size in sizes)
    return [x, values, left, right, _state_of(x)]


def _state_of(x: Tensor) -> Tensor:
    """0 for matrices of numbers, else 1."""
    return (~(build.absolute(x) < float("inf"))).any([-1, -2]).cast(DType.INT32)


_ROUTINES: Final[dict[str, Callable[[Op], Sequence[Value]]]] = {
    "potrf": _potrf,
    "getrf": _getrf,
    "geqrf": _geqrf,
    "orgqr": _orgqr,
    "syevd": _syevd,
    "gesdd": _gesdd,
}

TARGETS: Final = MappingProxyType(
    {
        f"{library}_{kind}{name}_ffi": routine
        for kind in "sd"
        for library, routines in (("lapack", _ROUTINES), ("lapack", {"trsm": _trsm}), ("blas", {"trsm": _trsm}))
        for name, routine in routines.items()
    }
)
"""The routines of float32 and float64, by the target of the call."""
