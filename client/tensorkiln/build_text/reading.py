"""The interpreter: from text to the JSON document of a graph, statement by statement, without executing Python."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import EllipsisType
from typing import Any, Final

from ..build import Builder, Tensor
from ..errors import InvalidGraphError, LimitExceededError, TensorkilnError
from ..limits import MAX_NODES, MAX_RANK
from ..nearest import did_you_mean, kind_of, quoted
from . import names
from .operators import BINARY, COMPARISONS, LONGEST, UNARY, binary, compared, is_long, number, unary
from .place import Place, shortened
from .syntax import PlaceOf, parse, refused

_MODULE: Final = "tensorkiln.build"
_WRONG: Final = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError)
"""Exceptions that Python raises for wrong arguments."""
MAX_ELEMENTS: Final = 1 << 18
"""The most elements of all lists of a text together."""
_LITERALS: Final = (bool, int, float, str, type(None))


@dataclass(frozen=True, slots=True)
class BuilderText:
    """The result of a text: the document of a graph, and for each node its place in the text."""

    document: dict[str, Any]
    places: tuple[str, ...]


def read_builder_text(text: str) -> BuilderText:
    """Interpret a text that builds a graph with one `Builder`; the returned document is not validated.

    InvalidGraphError for a mistake, UnsupportedGraphError for an unsupported construct, LimitExceededError for a text
    that is too long, too deeply nested, or writes too many nodes. `details` has the `line` and the `column`.
    """
    statements, place_of = parse(text)
    reader = _Reader(place_of)
    for statement in statements:
        reader.follow(statement)
    if reader.builder is None:
        raise InvalidGraphError('The text makes no builder; begin with b = Builder("name").')
    return BuilderText(reader.builder.document(), tuple(map(str, reader.places)))


class _Reader:
    """The values of the names so far, the builder, and the places of its nodes."""

    def __init__(self, place_of: PlaceOf) -> None:
        self._place_of = place_of
        self._values: dict[str, Any] = {}
        self._renamed: dict[str, str] = {}
        self.builder: Builder | None = None
        self.places: list[Place] = []
        self._elements = 0

    def follow(self, statement: ast.stmt) -> None:
        """Execute a statement."""
        match statement:
            case ast.ImportFrom():
                self._import(statement)
            case ast.Assign(targets=targets, value=value):
                found = self._value(value)
                for target in targets:
                    self._assign(target, found)
            case ast.Expr(value=ast.Call() as call):
                self._value(call)
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                pass  # a docstring
            case ast.Expr():
                raise self._place_of(statement).error("the statement has no effect; assign its value to a name")
            case _:
                raise refused(statement, self._place_of(statement))

    def _import(self, statement: ast.ImportFrom) -> None:
        place = self._place_of(statement)
        if statement.module == "__future__" and not statement.level:
            return
        if statement.module != _MODULE or statement.level:
            raise refused(statement, place)
        for alias in statement.names:
            if alias.name not in names.OF_BUILD:
                raise place.error(f"{_MODULE} has no {quoted(alias.name)}{did_you_mean(alias.name, names.OF_BUILD)}")
            if alias.asname is not None:
                self._renamed[alias.asname] = alias.name

    def _assign(self, target: ast.expr, value: Any) -> None:
        place = self._place_of(target)
        match target:
            case ast.Name(id=name):
                self._values[name] = value
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                if not isinstance(value, tuple | list):
                    raise place.error(f"{kind_of(value)} is not several values")
                if len(value) != len(targets):
                    raise place.error(f"there are {len(targets)} names for {len(value)} values")
                for inner, each in zip(targets, value, strict=True):
                    self._assign(inner, each)
            case _:
                raise refused(target, place)

    def _value(self, node: ast.expr) -> Any:
        place = self._place_of(node)
        match node:
            case ast.Constant(value=value) if isinstance(value, _LITERALS):
                return self._guarded(place, number, value)
            case ast.Name(id=name):
                return self._named(name, place)
            case ast.Tuple(elts=parts):
                return tuple(self._several(parts, place))
            case ast.List(elts=parts):
                return self._several(parts, place)
            case ast.BinOp(left=left, op=kind, right=right) if type(kind) in BINARY:
                return self._guarded(place, binary, type(kind), self._value(left), self._value(right))
            case ast.UnaryOp(op=kind, operand=operand) if type(kind) in UNARY:
                return self._guarded(place, unary, type(kind), self._value(operand))
            case ast.Compare(left=left, ops=[kind], comparators=[right]) if type(kind) in COMPARISONS:
                return self._guarded(place, compared, type(kind), self._value(left), self._value(right))
            case ast.Attribute(value=owner, attr=name):
                return self._field(self._value(owner), name, place)
            case ast.Subscript(value=owner, slice=key):
                return self._item(self._value(owner), self._key(key), place)
            case ast.Call():
                return self._call(node, place)
            case ast.UnaryOp(op=ast.Not() as inner):
                raise refused(inner, place)
            case _:
                raise refused(node, place)

    def _several(self, parts: list[ast.expr], place: Place) -> list[Any]:
        found = [self._value(part) for part in parts]
        # A name may refer to a nested list, and a list of such names can double the size with each line.
        inner = [each for part, each in zip(parts, found, strict=True) if not isinstance(part, ast.Tuple | ast.List)]
        while inner:
            self._elements += 1
            _require_within("builder_elements", MAX_ELEMENTS, self._elements, place)
            each = inner.pop()
            if isinstance(each, tuple | list):
                inner.extend(each)
        return found

    def _named(self, name: str, place: Place) -> Any:
        if name in self._values:
            return self._values[name]
        known = self._renamed.get(name, name)
        if known in names.FUNCTIONS or known == "Builder":
            raise place.error(f"{quoted(name)} is a function; call it")
        raise place.error(f"there is no {quoted(name)} yet{did_you_mean(name, [*self._values, *names.FUNCTIONS])}")

    def _field(self, owner: Any, name: str, place: Place) -> Any:
        if isinstance(owner, Tensor) and name in names.TENSOR_FIELDS:
            return self._guarded(place, getattr, owner, name)
        methods = _methods_of(owner)
        if name in methods:
            raise place.error(f"{name} is a method; call it")
        fields = [*names.TENSOR_FIELDS] if isinstance(owner, Tensor) else []
        raise place.error(f"{kind_of(owner)} has no {quoted(name)}{did_you_mean(name, [*methods, *fields])}")

    def _key(self, node: ast.expr) -> Any:
        match node:
            case ast.Slice(lower=lower, upper=upper, step=step):
                return slice(*(None if part is None else self._value(part) for part in (lower, upper, step)))
            case ast.Tuple(elts=parts):
                return tuple(self._key(part) for part in parts)
            case ast.Constant(value=EllipsisType()):
                return ...
            case _:
                return self._value(node)

    def _item(self, owner: Any, key: Any, place: Place) -> Any:
        if isinstance(owner, tuple | list) and isinstance(key, int | slice):
            return self._guarded(place, lambda: owner[key])
        if not isinstance(owner, Tensor):
            raise place.error(f"{kind_of(owner)} has no index of this kind")
        return self._guarded(place, lambda: owner[key])

    def _call(self, node: ast.Call, place: Place) -> Any:
        name, function = self._called(node.func, place)
        for each in node.keywords:
            if each.arg is None:
                raise refused(ast.Starred(each.value), self._place_of(each))
        given = [self._value(each) for each in node.args]
        stated = {each.arg or "": self._value(each.value) for each in node.keywords}
        try:
            inspect.signature(function).bind(*given, **stated)
        except TypeError as error:
            raise place.error(f"{name}: {shortened(error)}") from None
        return self._guarded(place, function, *given, **stated)

    def _called(self, node: ast.expr, place: Place) -> tuple[str, Callable[..., Any]]:
        match node:
            case ast.Name(id=given):
                if given in self._values:
                    raise place.error(f"{quoted(given)} is {kind_of(self._values[given])}, not a function")
                name = self._renamed.get(given, given)
                if name == "Builder":
                    return name, self._make_builder
                if name in names.FUNCTIONS:
                    return name, names.FUNCTIONS[name]
                reason = names.why_not(name) or f"there is no function {quoted(given)}" + did_you_mean(
                    given, names.FUNCTIONS
                )
                raise place.error(reason)
            case ast.Attribute(value=inner, attr=name):
                owner = self._value(inner)
                methods = _methods_of(owner)
                if name in methods:
                    return name, partial(methods[name], owner)
                raise place.error(f"{kind_of(owner)} has no method {quoted(name)}{did_you_mean(name, methods)}")
            case _:
                raise refused(node, place)

    def _make_builder(self, name: str = "graph") -> Builder:
        if self.builder is not None:
            raise TypeError("there is a builder already, and a text writes one graph")
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers are users
            raise TypeError(f"the name of a graph is a string, not {kind_of(name)}")
        self.builder = Builder(name)
        return self.builder

    def _guarded(self, place: Place, function: Callable[..., Any], /, *given: Any, **stated: Any) -> Any:
        """Call a function at this place: its errors get the place, and so do the nodes that it writes."""
        try:
            made = number(function(*given, **stated))
        except TensorkilnError as error:
            raise place.located(error) from None
        except _WRONG as error:
            raise place.error(shortened(error) or "the arguments cannot be used") from None
        if isinstance(made, Tensor):
            _require_within("rank", MAX_RANK, len(made.shape), place)
            if any(map(is_long, made.shape)):
                raise place.error(f"a dimension is an expression of more than {LONGEST} characters")
        if self.builder is not None:
            count = self.builder.node_count
            self.places += [place] * (count - len(self.places))
            _require_within("nodes", MAX_NODES, count, place)
        return made


def _require_within(limit: str, maximum: int, actual: int, place: Place) -> None:
    if actual > maximum:
        stated = f"the {limit} limit is {maximum}, the text has {actual}"
        raise place.located(LimitExceededError(stated, limit=limit, maximum=maximum, actual=actual))


def _methods_of(owner: object) -> Mapping[str, Callable[..., Any]]:
    if isinstance(owner, Builder):
        return names.BUILDER_METHODS
    return names.TENSOR_METHODS if isinstance(owner, Tensor) else {}
