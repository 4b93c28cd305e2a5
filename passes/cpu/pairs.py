"""Products of narrow integers: an instruction multiplies pairs of 16-bit integers and adds the two products.

A 32-bit element of a packed operand holds two consecutive steps of the depth, so that a register tile takes half as
many steps. The sum of two products wraps around like any 32-bit integer. LLVM joins the instruction with the addition
to the accumulator where the target can (`vpdpwssd` of VNNI).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from dialect.mlir import arith, func, ir, vector
from passes.emit.accumulation import Product
from tensorkiln.dtypes import DType

from .shared_functions import declare

NARROW: Final = frozenset({DType.INT8, DType.UINT8, DType.INT16})
"""Integers that a 16-bit one can hold."""
SUMS: Final = frozenset({DType.INT32, DType.UINT32})
"""Their sums, whose bits are the same with and without a sign."""
STEPS: Final = 2
"""Steps of the depth in a 32-bit element."""
INSTRUCTIONS: Final[Mapping[int, str]] = MappingProxyType(
    {128: "llvm.x86.sse2.pmadd.wd", 256: "llvm.x86.avx2.pmadd.wd", 512: "llvm.x86.avx512.pmaddw.d.512"}
)
"""LLVM's names of the instruction, by bits of the vector (llvm/include/llvm/IR/IntrinsicsX86.td)."""


@dataclass(frozen=True, slots=True)
class PairProduct(Product):
    """The products of pairs of int16 in vectors of int32, declared as a function of `module`."""

    module: ir.Operation

    def __str__(self) -> str:
        return f"pairs_to_{self.dtype}"

    def added(self, left: ir.Value, right: ir.Value, accumulator: ir.Value) -> ir.Value:
        """`accumulator` plus the two products of each pair of `left` and `right`, for vectors."""
        words = ir.VectorType(accumulator.type)
        (lanes,) = words.shape
        pairs = ir.VectorType.get([STEPS * lanes], ir.IntegerType.get_signless(16))
        taken = [vector.BitCastOp(pairs, each).result for each in (left, right)]
        name = INSTRUCTIONS[lanes * 8 * self.dtype.itemsize]
        declare(self.module, name, [pairs, pairs], words)
        return arith.addi(accumulator, func.CallOp([words], name, taken).result)
