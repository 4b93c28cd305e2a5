"""Functions shared by the kernels of a module: compiled once, never inlined; and instructions of the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dialect.mlir import func, ir
from passes.codegen.vectorised import SCALAR
from passes.origins import shared

INTERNAL = "#llvm.linkage<internal>"


def module_of(block: ir.Block) -> ir.Operation:
    """The module that a block is in."""
    operation = block.owner
    while operation.parent is not None:
        operation = operation.parent
    return operation


def internal_function(name: str, arguments: Sequence[ir.Type], visibility: str | None = None) -> Any:
    """Define a function that only the module calls; memref arguments do not alias."""
    function = func.FuncOp(name, (list(arguments), []), visibility=visibility)
    function.attributes["llvm.linkage"] = ir.Attribute.parse(INTERNAL)
    plain, unshared = ir.DictAttr.get({}), ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get()})
    function.arg_attrs = ir.ArrayAttr.get(
        [unshared if isinstance(kind, ir.MemRefType) else plain for kind in arguments]
    )
    return function


def shared_function(
    module: ir.Operation,
    name: str,
    arguments: Sequence[ir.Type],
    define: Callable[[Sequence[ir.Value]], None],
    *,
    stays_scalar: bool = False,
) -> str:
    """Define the function `name` in `module` if needed, and return its name; memref arguments do not alias.

    LLVM does not vectorise the loops of a function that `stays_scalar`.
    """
    if _has_function(module, name):
        return name
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), shared():
        function = internal_function(name, arguments, "private")
    function.attributes["llvm.no_inline"] = ir.UnitAttr.get()
    if stays_scalar:
        function.attributes["llvm.passthrough"] = ir.ArrayAttr.get([ir.StringAttr.get(SCALAR)])
    block = function.add_entry_block()
    with ir.InsertionPoint(block), shared():
        define(list(block.arguments))
        func.ReturnOp([])
    return name


def declare(module: ir.Operation, name: str, arguments: Sequence[ir.Type], *results: ir.Type) -> None:
    """Declare an instruction of the target by LLVM's name of its intrinsic function, unless `module` has it."""
    if not _has_function(module, name):
        with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), shared():
            func.FuncOp(name, (list(arguments), list(results)), visibility="private")


def _has_function(module: ir.Operation, name: str) -> bool:
    defined = (op.operation for op in module.regions[0].blocks[0].operations)
    return any("sym_name" in op.attributes and ir.StringAttr(op.attributes["sym_name"]).value == name for op in defined)
