"""The kiln dialect: the ops of all 45 node kinds, and contexts that load it."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from threading import Lock
from typing import Final

from .constants import ConstScalarOp, VconstOp
from .conversion import BitcastOp, CastOp
from .custom import CustomOp
from .elementwise import BinopOp, TernaryOp, UnaryOp
from .indexing import GatherOp, GepOp, IndexOp, ScatterOp, ValidOp, VectorizeOp
from .loops import WhileOp
from .markers import ContiguousBackwardOp, DetachOp, DeviceOp, FuseOp, NoopOp, UniqueOp, UnrollOp
from .memory import AssignOp, BufferOp, BufferViewOp, ContiguousOp, CopyOp, PlaceholderOp
from .mlir import ir, irdl, search_dialects_in
from .movement import CatOp, ExpandOp, FlipOp, PadOp, PermuteOp, ReshapeOp, ShrinkOp, ViewOp
from .operation import Kiln, KilnOp
from .program import KernelOp, MultiOp, SinkOp
from .random import ThreefryOp
from .reduction import ContractOp, ReduceAxisOp, WmmaOp
from .symbolic import BindOp, DefineVarOp

OPS: dict[str, type[KilnOp]] = {
    op.OPERATION_NAME.removeprefix("kiln."): op
    for op in (
        *(BufferOp, BufferViewOp, PlaceholderOp, ConstScalarOp, VconstOp, BinopOp, UnaryOp, TernaryOp),
        *(ViewOp, ReshapeOp, PermuteOp, ExpandOp, PadOp, ShrinkOp, FlipOp, ReduceAxisOp, ValidOp, IndexOp),
        *(GepOp, VectorizeOp, WmmaOp, CastOp, BitcastOp, ContiguousOp, CopyOp, AssignOp, DefineVarOp, BindOp),
        *(DetachOp, ContiguousBackwardOp, SinkOp, KernelOp, UniqueOp, DeviceOp, MultiOp, FuseOp, UnrollOp),
        *(ContractOp, CatOp, ThreefryOp, GatherOp, ScatterOp, CustomOp, NoopOp, WhileOp),
    )
}
"""The class of each op by the name of its node kind."""

_LOADING = Lock()
_PREPARED: Final[list[ir.Context]] = []
"""At most one context, which nobody uses yet."""

# The bindings look for a Python module of the dialect for every op they return, and cache only success: without a
# package that contains `kiln`, each op costs a failed import of 14 microseconds.
search_dialects_in(__package__ or "dialect")


# Dialects that our passes build; MLIR's passes load others themselves. Few loaded dialects keep passes fast that
# collect the patterns of all of them, as `canonicalize` does.
_DIALECTS: Final = ("arith", "func", "linalg", "llvm", "math", "memref", "scf", "vector")
# Only the GPU passes build these in Python, and import their classes then.
_WITHOUT_CLASSES: Final = ("nvvm",)


@cache
def _definition() -> bytes:
    """The dialect in IRDL, as bytecode: writing and simplifying it takes longer than the rest of a small compile."""
    with ir.Context(load_on_create_dialects=("irdl",)), ir.Location.unknown():
        Kiln.load()
        # The class would keep this context alive.
        definition = Kiln._mlir_module
        del Kiln._mlir_module
        written = BytesIO()
        definition.operation.write_bytecode(written)
    return written.getvalue()


def load(context: ir.Context) -> None:
    """Load the dialect into `context`, unless it is loaded. Safe to call from several threads."""
    # The bindings keep the definition being loaded on the class of the dialect.
    with _LOADING, context, ir.Location.unknown():
        if not context.is_dialect_loaded(Kiln.DIALECT_NAMESPACE):
            irdl.load_dialects(ir.Module.parse(_definition()))
            for operation in Kiln.operations:
                operation._attach_traits()


def new_context() -> ir.Context:
    """A context with the dialect and those that passes build, without a thread pool.

    Passes query the effects of kiln ops in Python. A pool's thread would deadlock on the interpreter lock, which the
    thread in `PassManager.run` holds.
    """
    try:
        return _PREPARED.pop()
    except IndexError:
        return _created()


def prepare_context() -> None:
    """Create the context that `new_context` returns next. A process that forks inherits it, and it has no threads."""
    if not _PREPARED:
        _PREPARED.append(_created())


def _created() -> ir.Context:
    context = ir.Context(load_on_create_dialects=_DIALECTS)
    context.enable_multithreading(False)
    for name in _WITHOUT_CLASSES:
        context.get_dialect_descriptor(name)
    load(context)
    return context
