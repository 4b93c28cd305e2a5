"""The strategy without a schedule: the linalg of a kernel, lowered by MLIR's own passes alone.

It is a second implementation of every kernel that shares no code generation with the other strategies, so comparing
results tells which of the two is wrong. It has one work-group, one thread, and the loops in source order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from dialect.mlir import PassManager, bufferization, func, ir, memref
from dialect.named_ops import copy as copy_memory
from passes.schedule.choice import Choice, Scratch
from passes.schedule.cost import Cost, Evaluate
from passes.schedule.tiling import locals_of
from passes.schedule.work import flops, moved_bytes
from passes.to_linalg.write_kernel import SUFFIX
from tensorkiln import expr
from tensorkiln.expr import Dim
from tensorkiln.schedule import KernelItem

from .emit.arguments import as_pointer_to
from .emit.index_emission import IndexEmitter
from .emit.memory import strided_view
from .loops.body import KernelBody
from .strategy import Strategies, Strategy, every
from .values import functions_of

M = TypeVar("M")
F = TypeVar("F")

NAME = "none"
SCALAR = 2.0
"""Cycles of a scalar operation, or of moving a 32-bit element."""

# Canonicalization, which inlining runs otherwise, folds the copy that a scatter into initial values begins with. Then
# bufferization allocates the copy: it may not write to an input.
BUFFERIZATION = ("inline{default-pipeline=}", "one-shot-bufferize")


def strategies(item: Callable[[str, M], KernelItem], names: Callable[[F], Mapping[str, ir.Value]]) -> Strategies[M, F]:
    """The table of this strategy alone.

    `item` gives the record of a kernel by its name; `names` has the values of the symbols in a frame.
    """

    def candidates(body: KernelBody, machine: M) -> Iterator[Choice]:
        yield _choice(body, item(body.function.name, machine))

    def realise(body: KernelBody, item: KernelItem, frame: Any) -> None:
        index = IndexEmitter(body.space, names(frame))
        _emit(body, frame.linalg, frame.buffers, index, frame.entry)

    return {NAME: Strategy(every, candidates, realise, scatters=None)}


def _choice(body: KernelBody, item: KernelItem) -> Choice:
    """One work-group for the whole kernel, with schedule `item`; values passed between stages are in buffers."""
    kept = [body.operands[number] for number in locals_of(body)]
    scratch = tuple(Scratch(value.dtype, expr.product(value.shape), is_private=False) for value in kept)

    def cost(at: Evaluate) -> Cost:
        moved = moved_bytes(body, at)
        return Cost(SCALAR * (at(flops(body)) + moved / 4), moved)

    return Choice(NAME, item, scratch, cost)


def _emit(
    body: KernelBody, computes: ir.Operation, buffers: Sequence[ir.Value], index: IndexEmitter, entry: ir.Block
) -> None:
    """Call a copy of the function `computes`, the kernel's linalg, on tensors in `buffers`.

    The buffers are the kernel's arguments, its results, and the values passed between stages.
    """
    _ = computes.context.dialects["bufferization"]  # loads the dialect, which most compiles do not need
    function = _copied(computes, entry.owner)
    given = len(body.function.arguments)
    numbers = [*range(given), *_take_targets(function, body)]
    kinds = [argument.type for argument in function.regions[0].blocks[0].arguments]
    symbols = [index(expr.symbol(name)) for name in body.function.symbols]
    kinds = [*kinds[:given], *kinds[given + len(symbols) :]]
    views = {
        number: _view(buffers[number], kind, body.operands[number].shape, index)
        for number, kind in zip(numbers, kinds, strict=True)
    }
    tensors = [
        bufferization.ToTensorOp(kind, views[number], restrict=True, writable=number >= given).result
        for number, kind in zip(numbers, kinds, strict=True)
    ]
    returned: Any = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results
    callee = ir.StringAttr(function.attributes["sym_name"]).value
    call = func.CallOp(list(returned), callee, [*tensors[:given], *symbols, *tensors[given:]])
    for value, result in zip(body.function.results, call.results, strict=True):
        target = views[body.numbers[value]]
        bufferization.MaterializeInDestinationOp(None, result, target, restrict=True, writable=True)


def _copied(computes: ir.Operation, kernel: ir.Operation) -> ir.Operation:
    """Copy a function into the module of a kernel, with its callees."""
    module = kernel.parent.regions[0].blocks[0]
    source, known = (functions_of(each.parent.opview) for each in (computes, kernel))
    calls = _named("func.call", computes)
    for name in dict.fromkeys(ir.FlatSymbolRefAttr(call.attributes["callee"]).value for call in calls):
        if name not in known:
            source[name].clone(ip=ir.InsertionPoint(module))
    made = computes.clone(ip=ir.InsertionPoint(module)).operation
    made.attributes["sym_name"] = ir.StringAttr.get(ir.StringAttr(kernel.attributes["sym_name"]).value + SUFFIX)
    return made


def _take_targets(function: ir.Operation, body: KernelBody) -> list[int]:
    """Make a function take its results' destinations as arguments; returns their operand numbers, in order."""
    block = function.regions[0].blocks[0]
    returned = list(dict.fromkeys(block.operations[len(block.operations) - 1].operands))
    numbers = {value: len(body.function.arguments) + place for place, value in enumerate(returned)}
    made: dict[int, ir.Operation] = {}
    written = [op.operation for op in block.operations if op.operation.name in ("linalg.generic", "scf.for")]
    # A loop begins with the result of a generic: both have one destination.
    begun = {operand for operation in written if operation.name == "scf.for" for operand in operation.operands}
    for operation in written:
        count = len(operation.results)
        for result, target in zip(operation.results, list(operation.operands)[-count:], strict=True):
            if result in begun:
                continue
            empty = target.owner.operation
            while empty.name != "tensor.empty":
                empty = empty.operands[len(empty.operands) - 1].owner.operation
            number = numbers.setdefault(result, len(body.function.arguments) + len(numbers))
            made[number] = empty
    for empty in made.values():
        argument = block.add_argument(empty.results[0].type, empty.location)
        empty.results[0].replace_all_uses_with(argument)
        empty.erase()
    inputs = [argument.type for argument in block.arguments]
    kind: Any = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, list(kind.results)))
    return list(made)


def _view(pointer: ir.Value, tensor: ir.Type, shape: Sequence[Dim], index: IndexEmitter) -> ir.Value:
    """The memory behind a pointer as a memref with the shape and elements of a tensor."""
    kind: Any = ir.RankedTensorType(tensor)
    base = as_pointer_to(kind.element_type, pointer)
    strides = [expr.product(shape[axis + 1 :]) for axis in range(len(shape))]
    view = strided_view(base, 0, shape, strides, index)
    return memref.cast(ir.MemRefType.get(kind.shape, kind.element_type), view)


def bufferize(module: ir.Module) -> ir.Module:
    """Replace tensors by the kernels' buffers."""
    with module.context:
        PassManager.parse(f"builtin.module({','.join(BUFFERIZATION)})").run(module.operation)
        _open_copies(module)
    return module


def _open_copies(module: ir.Module) -> None:
    """Turn copies into loops; with unknown strides they would become calls of a runtime library."""
    for copy in _named("memref.copy", module.operation):
        source, target = copy.operands
        with ir.InsertionPoint(copy), copy.location:
            copy_memory(source, target)
        copy.erase()


def _named(name: str, root: ir.Operation) -> list[ir.Operation]:
    """The operations of this name in another one."""
    found: list[ir.Operation] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name == name:
            found.append(operation)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return found
