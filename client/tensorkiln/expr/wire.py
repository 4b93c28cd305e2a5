"""Dims as JSON: an integer, a symbol's name, or `{"op": …, "args": […]}`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from ..limits import MAX_EXPRESSION_DEPTH, MAX_EXPRESSION_TERMS
from ..nearest import quoted
from .algebra import (
    MAX_TERMS,
    Atom,
    Dim,
    Expr,
    ExprError,
    ExprLimitError,
    add,
    depth,
    floordiv,
    floormod,
    idiv,
    maximum,
    minimum,
    mod,
    mul,
    neg,
    sub,
    symbol,
)

SYMBOL_PATTERN = r"[A-Za-z_][A-Za-z0-9_.]{0,63}"
_SYMBOL = re.compile(SYMBOL_PATTERN)
_MANY = 1 << 30

MAX_DERIVED_DEPTH = 88
"""The most levels of an expression that the compiler derives: a count of elements, a launch size, a condition.

Each level takes two brackets, and a program has 14 levels of JSON around its expressions: together they stay below
`tensorkiln.limits.MAX_JSON_DEPTH`.
"""

_OPS: dict[str, tuple[Callable[..., Dim], int, int]] = {
    "add": (add, 2, _MANY),
    "mul": (mul, 2, _MANY),
    "max": (maximum, 2, _MANY),
    "min": (minimum, 2, _MANY),
    "sub": (sub, 2, 2),
    "idiv": (idiv, 2, 2),
    "mod": (mod, 2, 2),
    "floordiv": (floordiv, 2, 2),
    "floormod": (floormod, 2, 2),
    "neg": (neg, 1, 1),
}


def from_wire(value: object) -> Dim:
    """Parse a dim from a JSON value of a graph. ExprError when it is not a dim, ExprLimitError beyond a limit.

    The canonical form is within the limits, too, so that a parsed dim can be written and parsed again.
    """
    return _read(value, MAX_EXPRESSION_DEPTH, MAX_EXPRESSION_TERMS, 1)


def from_derived_wire(value: object) -> Dim:
    """`from_wire` for expressions derived by the compiler: sizes, offsets, conditions.

    These may have as many terms as the algebra allows, and more levels than the dims of a graph.
    """
    return _read(value, MAX_DERIVED_DEPTH, MAX_TERMS, 1)


def _read(value: object, most_levels: int, most_terms: int, level: int) -> Dim:
    if type(value) is int:
        return value
    if level > most_levels:
        raise ExprLimitError("expression_depth", most_levels, level)
    if isinstance(value, Expr):
        return value
    if isinstance(value, str):
        return _symbol(str(value))
    if not isinstance(value, dict) or value.keys() != {"op", "args"}:
        raise ExprError('a dimension is an integer, a symbol\'s name, or {"op": …, "args": […]}')
    return _read_call(value["op"], value["args"], most_levels, most_terms, level)  # type: ignore[reportUnknownArgumentType]


@lru_cache(1024)
def _symbol(name: str) -> Dim:
    if not _SYMBOL.fullmatch(name):
        raise ExprError(
            f"{quoted(name)} is not the name of a symbol, which is letters, digits, _ and .; "
            'write arithmetic as {"op": "mul", "args": ["n", 2]}'
        )
    return symbol(name)


def _read_call(op: object, args: object, most_levels: int, most_terms: int, level: int) -> Dim:
    if not isinstance(op, str) or op not in _OPS:
        raise ExprError(f"an expression's op is one of {', '.join(_OPS)}")
    build, least, most = _OPS[op]
    if not isinstance(args, list | tuple) or not least <= len(args) <= most:  # type: ignore[reportUnknownArgumentType]
        wanted = f"{least}" if least == most else f"{least} or more"
        raise ExprError(f"the expression {op} takes {wanted} arguments")
    dim = build(*(_read(arg, most_levels, most_terms, level + 1) for arg in args))  # type: ignore[reportUnknownVariableType]
    if isinstance(dim, Expr) and len(dim.terms) > most_terms:
        raise ExprLimitError("expression_terms", most_terms, len(dim.terms))
    if (levels := depth(dim)) > most_levels:
        raise ExprLimitError("expression_depth", most_levels, levels)
    return dim


def to_wire(dim: Dim) -> Any:
    """The JSON spelling of `dim`'s canonical form."""
    if isinstance(dim, int):
        return dim
    # A difference is written as one: -1 * x would be a level deeper than the original may have been.
    added = [_term_to_wire(monomial, coefficient) for monomial, coefficient in dim.terms if coefficient > 0]
    taken = [_term_to_wire(monomial, -coefficient) for monomial, coefficient in dim.terms if coefficient < 0]
    if not taken:
        return _sum(added)
    return {"op": "sub", "args": [_sum(added), _sum(taken)]} if added else {"op": "neg", "args": [_sum(taken)]}


def _sum(terms: list[Any]) -> Any:
    return terms[0] if len(terms) == 1 else {"op": "add", "args": terms}


def _term_to_wire(monomial: tuple[Atom, ...], coefficient: int) -> Any:
    factors = [_atom_to_wire(atom) for atom in monomial]
    if not factors:
        return coefficient
    if coefficient != 1:
        factors.insert(0, coefficient)
    return factors[0] if len(factors) == 1 else {"op": "mul", "args": factors}


def _atom_to_wire(atom: Atom) -> Any:
    if atom.op == "symbol":
        return atom.key
    return {"op": atom.op, "args": [to_wire(arg) for arg in atom.args]}


_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "integer"},
        {"type": "string", "pattern": f"^{SYMBOL_PATTERN}$"},
        {
            "type": "object",
            "properties": {"op": {"enum": list(_OPS)}, "args": {"type": "array", "minItems": 1}},
            "required": ["op", "args"],
            "additionalProperties": False,
        },
    ]
}

WireDim = Annotated[Dim, PlainValidator(from_wire), PlainSerializer(to_wire), WithJsonSchema(_SCHEMA)]
"""A pydantic field that reads and writes a dim."""
