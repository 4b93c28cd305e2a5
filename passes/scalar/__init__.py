"""Arithmetic on single elements: exact semantics of every elementwise node, emitted as arith and math operations.

All functions work at the active insertion point and location, on signless MLIR scalars, and without branches, so that a
loop around the code vectorises. `traits` describes the target; the default is right on every target.
"""

from .conversion import bitcast_same_width, cast
from .form import mlir_scalar
from .number import constant
from .operations import binop, ternary, unary
from .reduce import reduce_combine, reduce_identity
from .threefry import threefry
from .traits import PORTABLE, Traits, traits_of

__all__ = [
    "PORTABLE",
    "Traits",
    "binop",
    "bitcast_same_width",
    "cast",
    "constant",
    "mlir_scalar",
    "reduce_combine",
    "reduce_identity",
    "ternary",
    "threefry",
    "traits_of",
    "unary",
]
