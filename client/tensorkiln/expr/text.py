"""Dims as canonical text, such as `2*n + floordiv(m, 4) + 1`, for IR attributes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from .algebra import Dim, add, mul, symbol
from .errors import ExprError
from .substitution import CALLS

_TOKEN = re.compile(r"\s*(?:(-?\d+)|([A-Za-z_][A-Za-z0-9_.]*)|([*+(),]))")


def to_text(dim: Dim) -> str:
    """The canonical text of `dim`."""
    return str(dim)


@lru_cache(maxsize=4096)
def parse_text(text: str) -> Dim:
    """Parse the canonical text of a dim. ExprError when `text` is not one."""
    tokens = list(_tokens(text))
    dim, end = _sum(tokens, 0)
    if end != len(tokens):
        raise ExprError("not the text of a dimension")
    return dim


def _tokens(text: str) -> Iterator[str]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExprError("not the text of a dimension")
        position = match.end()
        yield match[match.lastindex or 0]


def _at(tokens: list[str], position: int) -> str:
    return tokens[position] if position < len(tokens) else ""


def _sum(tokens: list[str], position: int) -> tuple[Dim, int]:
    total, position = _product(tokens, position)
    while _at(tokens, position) == "+":
        term, position = _product(tokens, position + 1)
        total = add(total, term)
    return total, position


def _product(tokens: list[str], position: int) -> tuple[Dim, int]:
    total, position = _factor(tokens, position)
    while _at(tokens, position) == "*":
        factor, position = _factor(tokens, position + 1)
        total = mul(total, factor)
    return total, position


def _factor(tokens: list[str], position: int) -> tuple[Dim, int]:
    token = _at(tokens, position)
    if token.lstrip("-").isdigit():
        return int(token), position + 1
    if not token or token in "*+(),":
        raise ExprError("not the text of a dimension")
    if token not in CALLS or _at(tokens, position + 1) != "(":
        return symbol(token), position + 1
    args: list[Dim] = []
    position += 1
    while _at(tokens, position) in ("(", ","):
        arg, position = _sum(tokens, position + 1)
        args.append(arg)
    if _at(tokens, position) != ")":
        raise ExprError("not the text of a dimension")
    if not args or (token not in ("max", "min") and len(args) != 2):
        raise ExprError(f"{token} does not take {len(args)} arguments")
    return CALLS[token](*args), position + 1
