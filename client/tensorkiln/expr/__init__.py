"""Symbolic integers, for dimensions, sizes, offsets and launch extents.

A `Dim` is a plain `int` or an `Expr`. An `Expr` is a polynomial over atoms, an atom being a symbol or a division,
remainder, maximum or minimum that no identity could remove. Two dims equal as polynomials compare and hash equal.
"""

from .algebra import (
    Atom,
    Dim,
    Expr,
    Monomial,
    add,
    ceildiv,
    depth,
    floordiv,
    floormod,
    free_symbols,
    from_ordered,
    idiv,
    maximum,
    minimum,
    mod,
    mul,
    neg,
    product,
    split_multiple,
    sub,
    symbol,
)
from .errors import ExprError, ExprLimitError
from .evaluate import INT64_MAX, INT64_MIN, evaluate
from .interval import bounds, is_nonnegative, slope
from .substitution import CALLS, substitute
from .text import parse_text, to_text
from .wire import WireDim, from_derived_wire, from_wire, to_wire

__all__ = [
    "CALLS",
    "INT64_MAX",
    "INT64_MIN",
    "Atom",
    "Dim",
    "Expr",
    "ExprError",
    "ExprLimitError",
    "Monomial",
    "WireDim",
    "add",
    "bounds",
    "ceildiv",
    "depth",
    "evaluate",
    "floordiv",
    "floormod",
    "free_symbols",
    "from_derived_wire",
    "from_ordered",
    "from_wire",
    "idiv",
    "is_nonnegative",
    "maximum",
    "minimum",
    "mod",
    "mul",
    "neg",
    "parse_text",
    "product",
    "slope",
    "split_multiple",
    "sub",
    "substitute",
    "symbol",
    "to_text",
    "to_wire",
]
