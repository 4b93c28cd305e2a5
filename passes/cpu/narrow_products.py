"""Products of narrow integers: an instruction multiplies several of them and adds the products.

A 32-bit element of a packed operand holds consecutive steps of the depth, so that a register tile takes fewer steps:
two 16-bit integers, or four bytes, if those of one operand have a sign and those of the other have none. The sum of the
products wraps around like any 32-bit integer. For 16-bit integers LLVM joins the instruction with the addition to the
accumulator where the target can (`vpdpwssd` of VNNI); for bytes VNNI has `vpdpbusd`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from dialect.mlir import arith, func, ir, vector
from passes.emit.accumulation import Product
from passes.scalar.traits import Traits
from tensorkiln.dtypes import DType

from .machine import PAIR, QUAD
from .shared_functions import declare

WORD_BITS: Final = 32
NARROW: Final = frozenset({DType.INT8, DType.UINT8, DType.INT16})
"""Integers that a 16-bit one can hold."""
BYTES: Final = frozenset({DType.INT8, DType.UINT8})
"""Integers of which an element holds four: for vectors if the operands differ."""
SUMS: Final = frozenset({DType.INT32, DType.UINT32})
"""Their sums, whose bits are the same with and without a sign."""
PAIRS: Final[Mapping[int, str]] = MappingProxyType(
    {128: "llvm.x86.sse2.pmadd.wd", 256: "llvm.x86.avx2.pmadd.wd", 512: "llvm.x86.avx512.pmaddw.d.512"}
)
QUADS: Final[Mapping[int, str]] = MappingProxyType(
    {256: "llvm.x86.avx512.vpdpbusd.256", 512: "llvm.x86.avx512.vpdpbusd.512"}
)
"""LLVM's names of the instructions, by bits of the vector (llvm/include/llvm/IR/IntrinsicsX86.td)."""


def together(left: DType, right: DType, most: int) -> int:
    """Steps of the depth in an element of two operands, of at most so many that vectors of the target multiply at
    once.
    """
    both = frozenset({left, right})
    if most >= QUAD and both == BYTES:
        return QUAD
    return PAIR if most >= PAIR and both <= NARROW else 1


@dataclass(frozen=True, slots=True)
class PairProduct(Product):
    """The products of pairs of int16 in vectors of int32, declared as a function of `module`."""

    module: ir.Operation

    def __str__(self) -> str:
        return f"pairs_to_{self.dtype}"

    def added(self, left: ir.Value, right: ir.Value, accumulator: ir.Value) -> ir.Value:
        """`accumulator` plus the two products of each pair of `left` and `right`, for vectors."""
        taken = [_divided(each, PAIR) for each in (left, right)]
        return arith.addi(accumulator, _called(self.module, PAIRS, taken, accumulator.type))


@dataclass(frozen=True, slots=True)
class QuadProduct(Product):
    """The products of four bytes in vectors of int32, declared as a function of `module`.

    The bytes on the left have a sign if it `is_signed`, and those on the right have one if it is not.
    """

    module: ir.Operation
    is_signed: bool

    def __str__(self) -> str:
        return f"{'signed' if self.is_signed else 'unsigned'}_quads_to_{self.dtype}"

    def added(self, left: ir.Value, right: ir.Value, accumulator: ir.Value) -> ir.Value:
        """`accumulator` plus the four products of each element of `left` and `right`, for vectors."""
        unsigned, signed = (right, left) if self.is_signed else (left, right)
        taken = [_divided(each, QUAD) for each in (unsigned, signed)]
        return _called(self.module, QUADS, [accumulator, *taken], accumulator.type)


def _divided(words: ir.Value, parts: int) -> ir.Value:
    """The integers in the elements of a vector."""
    (lanes,) = ir.VectorType(words.type).shape
    narrow = ir.VectorType.get([parts * lanes], ir.IntegerType.get_signless(WORD_BITS // parts))
    return vector.BitCastOp(narrow, words).result


def _called(
    module: ir.Operation, instructions: Mapping[int, str], operands: Sequence[ir.Value], words: ir.Type
) -> ir.Value:
    """The result of the instruction for vectors of type `words`."""
    (lanes,) = ir.VectorType(words).shape
    name = instructions[lanes * WORD_BITS]
    declare(module, name, [each.type for each in operands], words)
    return func.CallOp([words], name, operands).result


def product_of(dtype: DType, left: DType, steps: int, traits: Traits, module: ir.Operation) -> Product:
    """The product in vectors of operands that hold `steps` of the depth in an element, the left one of dtype `left`."""
    if steps == QUAD:
        return QuadProduct(dtype, None, traits, module, left is DType.INT8)
    return PairProduct(dtype, None, traits, module)
