"""Limits on a module between two stages: the number of operations, and their dialects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dialect.locations import node_pointers
from dialect.mlir import ir
from tensorkiln.compile_limits import MAX_CODE_BYTES, MAX_OPERATIONS
from tensorkiln.errors import DiagnosticError, LimitExceededError

from .census import census, count_flat, count_nested, heaviest_nodes
from .legality import are_only

Dialects = frozenset[str]
"""Names of dialects, and of single operations of other dialects."""

KILN: Final[Dialects] = frozenset({"builtin", "func", "kiln"})
TENSORS: Final[Dialects] = KILN | {"affine", "arith", "linalg", "math", "scf", "tensor"}
SCALING: Final[Dialects] = frozenset({"llvm.intr.ldexp", "llvm.intr.lrint"})
"""Operations that the math dialect lacks."""
ADDRESSES: Final[Dialects] = frozenset({"llvm.inttoptr"})
"""Operands of instructions that take an address."""
_CODE: Final[Dialects] = frozenset({"arith", "builtin", "func", "linalg", "math", "memref", "scf", "vector"})
LOOPS: Final[Dialects] = _CODE | SCALING | ADDRESSES
AFFINE: Final[Dialects] = frozenset({"affine"})
UNBUFFERED: Final[Dialects] = LOOPS | AFFINE | {"bufferization", "tensor"}
LLVM: Final[Dialects] = frozenset({"builtin", "llvm"})

OUTSIDE: Final = frozenset(
    {
        *("llvm.inline_asm", "llvm.call_intrinsic"),
        *("llvm.mlir.global_ctors", "llvm.mlir.global_dtors", "llvm.mlir.ifunc", "llvm.mlir.alias"),
        *("llvm.invoke", "llvm.landingpad", "llvm.resume", "llvm.va_arg", "llvm.indirectbr"),
    }
)
"""Operations of listed dialects that are never allowed: foreign code, and code that runs outside calls of kernels."""
CAST: Final = "builtin.unrealized_conversion_cast"
"""Casts a pointer to another element type until `lower`; allowed among loops only."""

_ADVICE: Final = "cut the graph into smaller ones, at values that you store"
_NAMED: Final = 8
_NESTING: Final[Dialects] = frozenset({"linalg", "scf"})
"""Dialects with nested operations, besides functions."""


def require(stage: str, module: ir.Module, allowed: Dialects) -> None:
    """Check the module that `stage` leaves, which need not be valid.

    Raises LimitExceededError above MAX_OPERATIONS, with the nodes that most operations come from; and DiagnosticError
    for an operation of a dialect not in `allowed`, or one in `OUTSIDE`, with the nodes of the first.
    """
    loops = not allowed.isdisjoint(_NESTING)
    # Every compile pays for this: a walk over all operation names would take several times as long.
    total = count_nested(module) if loops else count_flat(module)
    if total > MAX_OPERATIONS:
        raise _beyond("operations", MAX_OPERATIONS, total, "operations of the graph", stage, module)
    outside = OUTSIDE if loops else OUTSIDE | {CAST}
    if not are_only([module.operation], allowed, outside, module.context):
        names = census(module.operation)
        foreign = sorted(
            name for name in names if allowed.isdisjoint({name, name.partition(".")[0]}) or name in outside
        )
        raise DiagnosticError(
            f"stage {stage} left operations that do not belong there: {', '.join(foreign[:_NAMED])}",
            pointers=_places(module, foreign),
            details={"stage": stage, "operations": foreign},
        )


def require_code(stage: str, codes: Iterable[bytes], module: ir.Module) -> None:
    """Check the size of the code of `module`: raises LimitExceededError above MAX_CODE_BYTES, with nodes of the largest
    function.
    """
    size = sum(map(len, codes))
    if size > MAX_CODE_BYTES:
        raise _beyond("code_bytes", MAX_CODE_BYTES, size, "bytes of code", stage, module)


def _beyond(limit: str, maximum: int, actual: int, what: str, stage: str, module: ir.Module) -> LimitExceededError:
    return LimitExceededError(
        f"stage {stage} made {actual} {what}; the limit is {maximum}: {_ADVICE}",
        pointers=heaviest_nodes(module),
        details={"stage": stage},
        limit=limit,
        maximum=maximum,
        actual=actual,
    )


def _places(module: ir.Module, names: Iterable[str]) -> tuple[str, ...]:
    """The nodes of the first operation of each name."""
    missing = set(names)
    pointers: dict[str, None] = {}

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name in missing:
            missing.discard(operation.name)
            pointers.update(dict.fromkeys(node_pointers(operation.location)))
        return ir.WalkResult.ADVANCE if missing else ir.WalkResult.INTERRUPT

    module.operation.walk(visit)
    return tuple(pointers)
