"""Entry point: translation of an untrusted module to a graph."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from dialect.mlir import ir
from tensorkiln.build import Builder, Tensor
from tensorkiln.errors import InvalidGraphError, LimitExceededError, UnsupportedGraphError
from tensorkiln.expr import Dim, ExprError, ExprLimitError
from tensorkiln.frontends.composed.complex_numbers import Complex, from_pairs, pairs

from . import reading
from .location import place
from .op import Op
from .stated import StatedShapes
from .symbols import SameSize, Symbols
from .types import Typed, typed
from .value import Pair, Value
from .walk import Walk, only_block

Sizes: TypeAlias = Symbols | StatedShapes

MAIN = "main"
"""The function that is compiled, with the functions that it calls."""


@dataclass(frozen=True, slots=True)
class Translated:
    """A graph as a JSON document of the wire format, and the source location of each of its nodes."""

    document: dict[str, Any]
    places: tuple[str, ...]


def translate(
    source: str | bytes,
    dims: Mapping[str, tuple[int, int]] = MappingProxyType({}),
    shapes: Sequence[Sequence[Dim]] | None = None,
) -> Translated:
    """The graph of `@main`: its arguments are the inputs, its results the outputs, in order.

    Complex arguments and results become real ones with their parts on a last axis of 2.

    `source` is MLIR text or the bytes of a portable artifact. `dims` are inclusive bounds of dynamic dimensions, or, if
    `shapes` gives the shapes of the arguments, of the symbols in these.

    InvalidGraphError for an invalid module, UnsupportedGraphError for an unsupported operation, LimitExceededError
    over a limit; those of an operation give its name and location. RequestError for bounds or shapes that do not fit
    the module.
    """
    within = reading.context()
    with within, reading.of_text():
        is_text = isinstance(source, str)
        module = reading.read_text(source, within) if is_text else reading.read_artifact(source, within)
        reading.legalize(module)
        return _translated(module, Symbols(dims) if shapes is None else StatedShapes(dims, shapes))


def _translated(module: ir.Module, symbols: Sizes) -> Translated:
    functions = {
        str(ir.StringAttr(each.attributes["sym_name"]).value): each.operation
        for each in module.body.operations
        if each.operation.name == "func.func"
    }
    main = functions.get(MAIN)
    if main is None:
        raise InvalidGraphError("The module has no function @main.", pointers=["/stablehlo"])
    if isinstance(symbols, StatedShapes):
        symbols.require_fit([_type_of(at, each).shape for at, each in enumerate(_arguments(main))])
    while True:
        with _of_arguments():
            try:
                found = _graph_of(main, functions, symbols)
            except SameSize as same:
                symbols.unify(same)
            else:
                symbols.require_bounds()
                return found


@contextmanager
def _of_arguments() -> Generator[None]:
    """Convert errors of dimension arithmetic in arguments and results, which belong to no operation."""
    try:
        yield
    except ExprLimitError as error:
        raise LimitExceededError(
            f"A dimension of @main is too large an expression: {error}",
            pointers=["/stablehlo"],
            limit=error.limit,
            maximum=error.maximum,
            actual=error.actual,
        ) from None
    except ExprError as error:
        raise UnsupportedGraphError(
            f"A dimension of @main is beyond what is computed with dimensions: {error}", pointers=["/stablehlo"]
        ) from None


def _graph_of(main: ir.Operation, functions: Mapping[str, ir.Operation], symbols: Sizes) -> Translated:
    builder = Builder(MAIN)
    arguments = [_input(builder, at, argument, symbols) for at, argument in enumerate(_arguments(main))]
    walk = Walk(builder, functions, symbols.unbounded)
    results, end = walk.function(main, arguments)
    if not results:
        raise InvalidGraphError("The function @main has no result.", pointers=["/stablehlo"])
    builder.output(*(_output(end, value) for value in results))
    return Translated(builder.document(), walk.locations())


def _arguments(main: ir.Operation) -> Sequence[Any]:
    return list(only_block(main.regions[0]).arguments)


def _input(builder: Builder, position: int, argument: Any, symbols: Sizes) -> Value:
    found = _type_of(position, argument)
    shape = [symbols.dim(builder, position, axis) if dim is None else dim for axis, dim in enumerate(found.shape)]
    if not found.is_complex:
        return builder.input(found.dtype, shape)
    parts = from_pairs(builder.input(found.dtype, [*shape, 2]))
    return Pair(parts.real, parts.imag)


def _output(end: Op, value: Value) -> Tensor:
    """A result as a tensor; complex numbers have their parts on a last axis of 2."""
    if not isinstance(value, Pair):
        return end.as_tensor(value)
    return pairs(Complex(end.as_tensor(value.real), end.as_tensor(value.imag)))


def _type_of(position: int, argument: Any) -> Typed:
    found = typed(argument.type)
    where = place(argument.location)
    at = f"Argument {position} of @main" + (f" ({where})" if where else "")
    if isinstance(found, str):
        raise UnsupportedGraphError(f"{at}: {found}.", pointers=["/stablehlo"])
    return found
