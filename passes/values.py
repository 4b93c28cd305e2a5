"""A function of kiln ops as plain Python values, read once, since each access to MLIR is slow.

A `Value` mirrors an op result or a function argument. It holds no handle to the op, so erasing ops leaves no dangling
handles.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dialect.locations import node_pointers
from dialect.mlir import ir
from dialect.module import PARAMETER, symbols
from dialect.operation import KilnOp
from dialect.remembered import Remembered
from dialect.types import type_of
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, mul, product
from tensorkiln.nodes import ViewSpec
from tensorkiln.types import TensorType

from .attributes import decode

ROOT = "kiln.root"
"""The unit attribute of an op whose value a kernel stores."""

ROWS = "kiln.rows"
"""Attribute of a kernel function: the number of leading loops that its roots share."""
NODES = "kiln.nodes"
"""Attribute of a kernel call: the numbers of the nodes that the kernel computes there, each once."""

BODY = "kiln.body"
"""Attribute of a kernel call: the node number of each operation of the kernel, in order; -1 if it has none."""
ROOTS = "kiln.roots"
"""Attribute of a kernel call: for each value that the kernel computes with loops of its own, in order, the numbers of
the nodes that these loops compute."""
APART = "kiln.apart"
"""Attribute of a kernel call: `[operand, writer, reader, reason]` for each node `reader` in it that reads the call's
operand of that number, node `writer` of another kernel, and why they are not fused."""

PREPARE = "kiln.prepare"
"""The unit attribute of a kernel call whose results depend on parameters alone."""

Range = tuple[int, int]


@dataclass(eq=False)
class Value:
    """A tensor in a function: `kind` is the wire name of the op that makes it, or `argument`.

    `position` is the number of its op in the function, or of the argument; `fields` are the op's, by name. A call of a
    kernel has one value per result, all at one position, and the fields `callee`, `nodes`, `apart` and `is_prepared`.
    """

    kind: str
    operands: tuple[Value, ...]
    type: TensorType
    pointer: str
    position: int
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    is_root: bool = False

    @cached_property
    def shape(self) -> tuple[Dim, ...]:
        return self.type.shape

    @property
    def long_dims(self) -> list[Dim]:
        """The dims other than 1; each is a loop."""
        return [extent for extent in self.shape if extent != 1]

    @cached_property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def size_bytes(self) -> Dim:
        """Bytes of all elements."""
        return mul(product(self.shape), self.dtype.itemsize)

    def int(self, name: str) -> int:
        return self.fields[name]

    def ints(self, name: str) -> tuple[int, ...]:
        return self.fields[name]

    def text(self, name: str) -> str:
        return str(self.fields[name])

    def dim(self, name: str) -> Dim:
        return self.fields[name]

    def dim_pairs(self, name: str) -> tuple[tuple[Dim, Dim], ...]:
        return self.fields[name]

    def literal(self, name: str) -> int | float | bool:
        return self.fields[name]

    def views(self) -> tuple[ViewSpec, ...]:
        """The views of the shape tracker, base-most first."""
        return self.fields["shape_tracker"].views


@dataclass(frozen=True, eq=False)
class Function:
    """A function of kiln ops: its arguments, its values in order, and its results.

    `parameters` are the arguments that callers bind once.
    """

    name: str
    arguments: tuple[Value, ...]
    values: tuple[Value, ...]
    results: tuple[Value, ...]
    symbols: Mapping[str, Range]
    parameters: tuple[Value, ...] = ()


def is_kernel(function: ir.Operation) -> bool:
    """Whether a function of a module is a kernel, not the graph function."""
    return ROWS in function.attributes


def kernel_text(function: ir.Operation) -> str:
    """The text of a kernel without its name and locations."""
    # Each stage verifies its result: the printer need not.
    text = function.get_asm(enable_debug_info=False, use_local_scope=True, assume_verified=True)
    return text[text.index("(") :]


def marked_arguments(function: ir.Operation, attribute: str) -> frozenset[int]:
    """The positions of the arguments of a function with an attribute."""
    if "arg_attrs" not in function.attributes:
        return frozenset()
    given = ir.ArrayAttr(function.attributes["arg_attrs"])
    return frozenset(at for at, attributes in enumerate(given) if attribute in ir.DictAttr(attributes))


def functions_of(module: ir.Module) -> dict[str, ir.Operation]:
    """The functions of a module by name."""
    return {ir.StringAttr(op.operation.attributes["sym_name"]).value: op.operation for op in module.body.operations}


def users_of(values: Iterable[Value]) -> dict[Value, list[Value]]:
    """The users of each value among `values`, repeated for each use."""
    users: dict[Value, list[Value]] = defaultdict(list)
    for value in values:
        for operand in value.operands:
            users[operand].append(value)
    return users


def values_behind(value: Value, is_wanted: Callable[[Value], bool]) -> Iterator[Value]:
    """The nearest wanted values that `value` is computed from, each once; the search stops at them."""
    seen: set[Value] = set()
    stack = list(value.operands)
    while stack:
        operand = stack.pop()
        if operand in seen:
            continue
        seen.add(operand)
        if is_wanted(operand):
            yield operand
        else:
            stack.extend(operand.operands)


def read_function(function: ir.Operation, ranges: Mapping[str, Range]) -> Function:
    """The Python mirror of a `func.func` whose body has kiln ops and a return."""
    block = function.regions[0].blocks[0]
    known: dict[Any, Value] = {}
    arguments: list[Value] = []
    for number, argument in enumerate(block.arguments):
        value = Value("argument", (), type_of(argument), "", number)
        known[argument] = value
        arguments.append(value)
    values: list[Value] = []
    results: tuple[Value, ...] = ()
    for number, op in enumerate(block.operations):
        operation = op.operation
        operands = tuple(known[operand] for operand in operation.operands)
        if operation.name == "func.return":
            results = operands
        else:
            for place, result in enumerate(operation.results):
                known[result] = _read_result(op, operands, number, place)
                values.append(known[result])
    name = ir.StringAttr(function.attributes["sym_name"]).value
    parameters = marked_arguments(function, PARAMETER)
    return Function(
        name,
        tuple(arguments),
        tuple(values),
        results,
        ranges,
        tuple(argument for at, argument in enumerate(arguments) if at in parameters),
    )


def _read_result(op: Any, operands: tuple[Value, ...], number: int, place: int) -> Value:
    operation = op.operation
    view = type(op)
    fields: dict[str, Any] = {}
    if issubclass(view, KilnOp):
        attributes = operation.attributes
        fields = {member: entry.decode(attributes[entry.name]) for member, entry in view.fields.items()}
        if operation.name == "kiln.vconst":
            fields["values"] = op.array
    elif operation.name == "func.call":
        fields["callee"] = ir.FlatSymbolRefAttr(operation.attributes["callee"]).value
        fields["is_prepared"] = PREPARE in operation.attributes
        fields["nodes"] = tuple(ir.DenseI64ArrayAttr(operation.attributes[NODES]))
        apart = decode(operation.attributes[APART]) if APART in operation.attributes else ()
        fields["apart"] = tuple(map(tuple, apart))
    return Value(
        kind=operation.name.removeprefix("kiln."),
        operands=operands,
        type=type_of(operation.results[place]),
        pointer=_pointer_of(operation.location),
        position=number,
        fields=fields,
        is_root=ROOT in operation.attributes,
    )


def _pointer_of(location: ir.Location) -> str:
    """The JSON Pointer of the first node in a location; empty if there is none."""
    known, address = _POINTERS.within(location.context), hash(location.attr)
    if address not in known:
        known[address] = next(iter(node_pointers(location)), "")
    return known[address]


_POINTERS = Remembered[int, str]()
"""Pointers by the hash of the location attribute."""


def read_symbols(module: ir.Module) -> dict[str, Range]:
    """The symbols of the graph of a module, and their bounds."""
    return {symbol.name: (symbol.min_val, symbol.max_val) for symbol in symbols(module)}
