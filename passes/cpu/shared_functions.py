"""Functions shared by the kernels of a module: compiled once, never inlined; and instructions of the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dialect.mlir import func, ir
from passes.origins import shared

INTERNAL = "#llvm.linkage<internal>"


def module_of(block: ir.Block) -> ir.Operation:
    """The module that a block is in."""
    operation = block.owner
    while operation.parent is not None:
        operation = operation.parent
    return operation


def shared_function(
    module: ir.Operation,
    name: str,
    arguments: Sequence[ir.Type],
    define: Callable[[Sequence[ir.Value]], None],
) -> str:
    """Define the function `name` in `module` if needed, and return its name; memref arguments do not alias."""
    function = _declared(module, name, arguments, [])
    if function is None:
        return name
    function.attributes["llvm.linkage"] = ir.Attribute.parse(INTERNAL)
    function.attributes["llvm.no_inline"] = ir.UnitAttr.get()
    plain, unshared = ir.DictAttr.get({}), ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get()})
    function.arg_attrs = ir.ArrayAttr.get(
        [unshared if isinstance(argument, ir.MemRefType) else plain for argument in arguments]
    )
    block = function.add_entry_block()
    with ir.InsertionPoint(block), shared():
        define(list(block.arguments))
        func.ReturnOp([])
    return name


def declare(module: ir.Operation, name: str, arguments: Sequence[ir.Type], result: ir.Type) -> None:
    """Declare an instruction of the target by LLVM's name of its intrinsic function, unless `module` has it."""
    _declared(module, name, arguments, [result])


def _declared(module: ir.Operation, name: str, arguments: Sequence[ir.Type], results: Sequence[ir.Type]) -> Any | None:
    """A new function without a body; None if the module has one of this name."""
    body = module.regions[0].blocks[0]
    known = (op.operation for op in body.operations)
    if any("sym_name" in op.attributes and ir.StringAttr(op.attributes["sym_name"]).value == name for op in known):
        return None
    with ir.InsertionPoint.at_block_begin(body), shared():
        return func.FuncOp(name, (list(arguments), list(results)), visibility="private")
