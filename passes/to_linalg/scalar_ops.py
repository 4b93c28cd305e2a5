"""Scalar operations of a kernel's linalg: one operation of arith or math if that suffices, else a call.

An operation that needs guards or steps (an integer division, a power, any arithmetic of a 16-bit float) is a function
of the module, defined once, with the operation in its attribute `kiln.scalar`. Both can be read back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from dialect.mlir import arith, func, ir, math
from passes import scalar
from passes.scalar import mlir_scalar
from tensorkiln.dtypes import DType

from ..loops.scalar_dag import COMBINE, Apply
from ..origins import shared
from ..scalar.registers import register_type, to_register, to_scalar

SCALAR: Final = "kiln.scalar"
"""Attribute of a function: its scalar operation, the dtype of its result, and its attributes."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A scalar operation: `op` and `attributes` as in an `Apply`, and the dtypes of the result and the arguments."""

    op: str
    attributes: tuple[object, ...]
    dtype: DType
    args: tuple[DType, ...]


def operation_of(node: Apply) -> Operation:
    """The operation of a node."""
    return Operation(node.op, node.attributes, node.dtype, tuple(arg.dtype for arg in node.args))


_Class = str
_FLOAT, _SIGNED, _UNSIGNED, _BOOL = "float", "signed", "unsigned", "bool"


def _class_of(dtype: DType) -> _Class:
    """How arith treats a dtype; empty for dtypes that it does not compute in directly."""
    if dtype.is_bool:
        return _BOOL
    if dtype.is_float:
        return "" if dtype.is_half else _FLOAT
    if dtype.is_narrow:
        return ""
    return _SIGNED if dtype.is_signed else _UNSIGNED


_INTEGERS: Final = (_SIGNED, _UNSIGNED)
_BINARY: Final[dict[tuple[str, _Class], str]] = {
    **{("add", kind): "addi" for kind in _INTEGERS},
    **{("sub", kind): "subi" for kind in _INTEGERS},
    **{("mul", kind): "muli" for kind in _INTEGERS},
    **{("xor", kind): "xori" for kind in (*_INTEGERS, _BOOL)},
    **{("or", kind): "ori" for kind in (*_INTEGERS, _BOOL)},
    **{("and", kind): "andi" for kind in (*_INTEGERS, _BOOL)},
    ("max", _SIGNED): "maxsi",
    ("min", _SIGNED): "minsi",
    ("max", _UNSIGNED): "maxui",
    ("min", _UNSIGNED): "minui",
    ("add", _FLOAT): "addf",
    ("sub", _FLOAT): "subf",
    ("mul", _FLOAT): "mulf",
    ("fdiv", _FLOAT): "divf",
    ("div", _FLOAT): "divf",
    ("max", _FLOAT): "maximumf",
    ("min", _FLOAT): "minimumf",
}
_BINARY_BY_NAME: Final = {f"arith.{name}": place for place, name in reversed(_BINARY.items())}
_COMBINED: Final = {"sum": ("add", "or"), "prod": ("mul", "and"), "max": ("max", "or")}
"""The binops that combine the numbers, and the bools, of a reduction of this kind."""
_COMBINED_AS: Final = {binop: kind for kind, binops in _COMBINED.items() for binop in binops}
"""The reduction kind of a combining binop."""
_LESS: Final = {_SIGNED: arith.CmpIPredicate.slt, _UNSIGNED: arith.CmpIPredicate.ult, _BOOL: arith.CmpIPredicate.ult}
_COMPARED: Final = {
    ("arith.cmpf", arith.CmpFPredicate.OLT.value): ("cmplt", _FLOAT),
    ("arith.cmpf", arith.CmpFPredicate.UNE.value): ("cmpne", _FLOAT),
    ("arith.cmpi", arith.CmpIPredicate.slt.value): ("cmplt", _SIGNED),
    ("arith.cmpi", arith.CmpIPredicate.ult.value): ("cmplt", _UNSIGNED),
    ("arith.cmpi", arith.CmpIPredicate.ne.value): ("cmpne", _SIGNED),
}
_UNARY: Final = {"arith.negf": "neg", "math.sqrt": "sqrt"}
_CONVERTED: Final = {
    **dict.fromkeys(("arith.extsi", "arith.trunci", "arith.sitofp"), _SIGNED),
    **dict.fromkeys(("arith.extui", "arith.uitofp"), _UNSIGNED),
    **dict.fromkeys(("arith.extf", "arith.truncf"), _FLOAT),
}


class ScalarFunctions:
    """Writes scalar operations in a module; a function is added to the end of the module at its first call."""

    def __init__(self, module_body: ir.Block) -> None:
        self.module_body = module_body
        operations = (op.operation for op in module_body.operations)
        self._known = {ir.StringAttr(op.attributes["sym_name"]).value for op in operations}

    def __call__(self, operation: Operation, args: Sequence[ir.Value]) -> ir.Value:
        """The result of an operation on values in their register types: one op, or a call of a module's function."""
        value = _emit_direct(operation, args)
        if value is not None:
            return value
        name = _name(operation)
        if name not in self._known:
            self._known.add(name)
            _define(name, operation, self.module_body)
        return func.CallOp([register_type(operation.dtype)], name, list(args)).results[0]


def _emit_direct(operation: Operation, args: Sequence[ir.Value]) -> ir.Value | None:
    match (operation.op, *operation.attributes):
        case ("binop", "cmplt" | "cmpne" as kind, DType() as dtype, _) if operation.dtype.is_bool:
            return _compared(str(kind), _class_of(dtype), *args)
        case ("binop", str(kind), DType() as dtype, _):
            return _binary(_BINARY.get((kind, _class_of(dtype))), args)
        case (op, str(kind)) if op == COMBINE:
            of = _class_of(operation.dtype)
            return _binary(_BINARY.get((_COMBINED[kind][of == _BOOL], of)), args)
        case ("unary", "neg") if _class_of(operation.dtype) == _FLOAT:
            return arith.negf(args[0])
        case ("unary", "sqrt") if _class_of(operation.dtype) == _FLOAT:
            return math.sqrt(args[0])
        case ("ternary", "where", DType() as condition) if condition.is_bool and not (
            operation.dtype.is_half or operation.dtype.is_narrow
        ):
            return arith.select(*args)
        case ("cast", DType() as source):
            return _cast(source, operation.dtype, args[0])
        case ("bitcast", DType() as source):
            return _bitcast(source, operation.dtype, args[0])
        case _:
            return None


def _binary(name: str | None, args: Sequence[ir.Value]) -> ir.Value | None:
    if name is None:
        return None
    emit: Callable[..., ir.Value] = getattr(arith, name)
    return emit(*args)


def _compared(kind: str, sort: _Class, left: ir.Value, right: ir.Value) -> ir.Value | None:
    if not sort:
        return None
    if sort == _FLOAT:
        predicate = arith.CmpFPredicate.OLT if kind == "cmplt" else arith.CmpFPredicate.UNE
        return arith.cmpf(predicate, left, right)
    return arith.cmpi(_LESS[sort] if kind == "cmplt" else arith.CmpIPredicate.ne, left, right)


def _cast(source: DType, target: DType, value: ir.Value) -> ir.Value | None:
    have, want = _class_of(source), _class_of(target)
    kind = mlir_scalar(target)
    if not have or not want or (have == _FLOAT and want in _INTEGERS):
        return None
    if want == _BOOL:
        return _compared("cmpne", have, value, scalar.constant(source, 0))
    if have == want == _FLOAT:
        return (arith.extf if target.bits > source.bits else arith.truncf)(kind, value)
    if want == _FLOAT:
        return (arith.sitofp if have == _SIGNED else arith.uitofp)(kind, value) if have != _BOOL else None
    if target.bits <= source.bits:
        return value if target.bits == source.bits else arith.trunci(kind, value)
    return (arith.extsi if have == _SIGNED else arith.extui)(kind, value)


def _bitcast(source: DType, target: DType, value: ir.Value) -> ir.Value | None:
    have, want = _class_of(source), _class_of(target)
    if not have or not want or _BOOL in (have, want):
        return None
    return value if have != _FLOAT and want != _FLOAT else arith.bitcast(mlir_scalar(target), value)


def combined_kind(combination: Apply) -> str:
    """The reduction kind of a combination."""
    kind = str(combination.attributes[0])
    return kind if combination.op == COMBINE else _COMBINED_AS[kind]


def operation_of_op(op: ir.Operation, args: Sequence[DType], result: DType) -> Operation:
    """The operation of an arith or math op. Integers are signed if the op does not distinguish."""
    name = op.name
    if name in _BINARY_BY_NAME:
        kind, sort = _BINARY_BY_NAME[name]
        dtype = _signed_as(result, sort)
        return Operation("binop", (kind, dtype, dtype), dtype, (dtype, dtype))
    if name in ("arith.cmpi", "arith.cmpf"):
        predicate = ir.IntegerAttr(op.attributes["predicate"]).value
        kind, sort = _COMPARED[name, predicate]
        dtype = _signed_as(args[0], sort)
        return Operation("binop", (kind, dtype, dtype), DType.BOOL, (dtype, dtype))
    if name == "arith.select":
        return Operation("ternary", ("where", DType.BOOL), args[1], (DType.BOOL, args[1], args[2]))
    if name == "arith.bitcast":
        return Operation("bitcast", (args[0],), result, (args[0],))
    if name in _UNARY:
        return Operation("unary", (_UNARY[name],), result, (result,))
    source = _signed_as(args[0], _CONVERTED[name])
    return Operation("cast", (source,), result, (source,))


def _signed_as(dtype: DType, sort: _Class) -> DType:
    return DType(f"uint{dtype.bits}" if sort == _UNSIGNED else f"int{dtype.bits}") if dtype.is_integer else dtype


def _name(operation: Operation) -> str:
    words = [str(part) for part in operation.attributes if not isinstance(part, DType)]
    dtypes = [*operation.args, operation.dtype]
    shown = dict.fromkeys(dtypes) if len(set(dtypes)) == 1 else dtypes
    return ".".join(["kiln", *(words or [operation.op]), *(str(dtype) for dtype in shown)])


def _define(name: str, operation: Operation, module_body: ir.Block) -> None:
    with ir.InsertionPoint(module_body), shared():
        kinds = [register_type(dtype) for dtype in operation.args]
        function = func.FuncOp(name, (kinds, [register_type(operation.dtype)]), visibility="private")
        dtypes = ir.ArrayAttr.get([ir.StringAttr.get(str(dtype)) for dtype in (operation.dtype, *operation.args)])
        parts = [ir.StringAttr.get(str(part)) for part in (operation.op, *operation.attributes)]
        function.attributes[SCALAR] = ir.ArrayAttr.get([dtypes, *parts])
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            values = [to_scalar(dtype, value) for dtype, value in zip(operation.args, block.arguments, strict=True)]
            func.ReturnOp([to_register(operation.dtype, emit_scalar(operation, values, scalar.PORTABLE))])


def operation_at(function: ir.Operation) -> Operation:
    """The operation of a function."""
    dtypes, op, *parts = ir.ArrayAttr(function.attributes[SCALAR])
    dtype, *args = (DType(ir.StringAttr(part).value) for part in ir.ArrayAttr(dtypes))
    texts = [ir.StringAttr(part).value for part in parts]
    attributes = tuple(DType(text) if text in _DTYPES else text for text in texts)
    return Operation(ir.StringAttr(op).value, attributes, dtype, tuple(args))


_DTYPES: Final = frozenset(str(dtype) for dtype in DType)


def emit_scalar(operation: Operation, args: Sequence[ir.Value], traits: scalar.Traits) -> ir.Value:
    """The result of an operation, computed by `passes.scalar` for a target with these traits."""
    dtype = operation.dtype
    match (operation.op, *operation.attributes):
        case ("binop", str(kind), DType() as left, DType() as amount):
            return scalar.binop(kind, left, *args, result_dtype=dtype, amount_dtype=amount, traits=traits)
        case ("unary", str(kind)):
            return scalar.unary(kind, dtype, *args, traits=traits)
        case ("ternary", str(kind), DType() as condition):
            return scalar.ternary(kind, dtype, *args, condition_dtype=condition, traits=traits)
        case ("cast", DType() as source):
            return scalar.cast(source, dtype, *args, traits=traits)
        case ("bitcast" | "low_bits", DType() as source):
            return scalar.bitcast_same_width(source, dtype, *args)
        case ("threefry",):
            return scalar.threefry(*args)
        case (op, str(kind)) if op == COMBINE:
            return scalar.reduce_combine(kind, dtype, *args, traits=traits)
        case _:
            raise AssertionError(f"no scalar operation is called {operation.op} of {operation.attributes}")
