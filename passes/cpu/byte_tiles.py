"""Products of tiles of bytes in registers that hold them: AMX of x86.

A register has 16 rows of 64 bytes. On the left a row is one of the block, with 64 steps of the depth; on the right it
is four steps of the depth, for each of 16 columns. One instruction adds all 16 x 16 sums of 64 products to a register
of 32-bit sums (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBSSD). Panels are those of
`narrow_products`, with zeros on the left beyond the depth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dialect.mlir import arith, func, ir, llvm, memref, vector
from passes.emit.accumulation import Product
from passes.emit.index_emission import IndexEmitter
from passes.emit.memory import strided_view
from passes.emit.regions import branches, loop
from passes.loops.index_space import IndexSpace
from tensorkiln import expr
from tensorkiln.expr import Dim, symbol

from .blocking import BYTE_TILE
from .micro_kernel import MicroKernel
from .narrow_products import WORD_BITS
from .shared_functions import declare

WORD_BYTES: Final = WORD_BITS // 8
LEFT: Final = 7
RIGHT: Final = (5, 6)
"""Registers of the operands, the latter by turns; sums have the first ones."""
CONFIGURE, RELEASE = "llvm.x86.ldtilecfg", "llvm.x86.tilerelease"
CLEAR, LOAD, STORE = "llvm.x86.tilezero", "llvm.x86.tileloadd64", "llvm.x86.tilestored64"
REGISTERS, PALETTE, CONFIGURATION_BYTES = 8, 1, 64
ROW_BYTES_AT, ROWS_AT = 16, 48
"""Where a configuration has the bytes of a row, 16 bits for each register, and its rows."""


@dataclass(frozen=True, slots=True)
class TileProduct(Product):
    """The products of tiles of bytes in `module`, with and without a sign on the left and on the right."""

    module: ir.Operation
    is_left_signed: bool
    is_right_signed: bool

    def __str__(self) -> str:
        return f"tiles_{self._signs}_to_{self.dtype}"

    @property
    def instruction(self) -> str:
        """LLVM's name of the instruction (llvm/include/llvm/IR/IntrinsicsX86.td)."""
        return f"llvm.x86.tdpb{self._signs}d"

    @property
    def _signs(self) -> str:
        return "".join("s" if each else "u" for each in (self.is_left_signed, self.is_right_signed))


class ByteTiles(MicroKernel):
    """Emits the loops over the tiles of a block, and the products of each tile in registers that hold it."""

    def define(self, last: int) -> None:
        """Emit the loops between the configuration of the registers and their release."""
        assert isinstance(self.product, TileProduct), "other products take vectors"
        self.module, self.instruction = self.product.module, self.product.instruction
        self._configure()
        super().define(last)
        self._call(RELEASE)

    def _configure(self) -> None:
        row, rows = BYTE_TILE * WORD_BYTES, BYTE_TILE
        held = bytearray(CONFIGURATION_BYTES)
        held[0] = PALETTE
        for number in range(REGISTERS):
            held[ROW_BYTES_AT + 2 * number] = row
            held[ROWS_AT + number] = rows
        byte = ir.IntegerType.get_signless(8)
        kind = ir.VectorType.get([CONFIGURATION_BYTES], byte)
        memory = memref.AllocaOp(ir.MemRefType.get([CONFIGURATION_BYTES], byte), [], []).result
        values = ir.DenseElementsAttr.get([ir.IntegerAttr.get(byte, each) for each in held], kind)
        index = IndexEmitter(IndexSpace({}), {})
        view = strided_view(memory, 0, (CONFIGURATION_BYTES,), (1,), index)
        vector.StoreOp(arith.constant(kind, values), view, [index(0)])
        self._call(CONFIGURE, _pointer(view, index(0)))

    def _tile(self, vectors: int, index: IndexEmitter) -> None:
        """Emit one row of tiles, `vectors` of them, over the whole packed depth."""
        assert self.of_left.row is not None, "packed rows are equally far apart"
        top, stride = expr.mul(symbol("row"), BYTE_TILE), self.results.run or symbol("stride")
        results = [(number, self._place(top, number)) for number in range(vectors)]
        for is_first, region in branches(self.starts, index):
            with region as here:
                for number, place in results:
                    if is_first:
                        self._call(CLEAR, _register(number))
                    else:
                        self._move(LOAD, number, self.result, place, stride, here)
        index.space.bound("chunk", 0, 1 << 40)
        begin = symbol("left_first") + symbol("row") * symbol("left_panel")
        with loop("chunk", 0, self.depth, 1, index) as here:
            step = expr.mul(symbol("chunk"), BYTE_TILE)
            self._move(LOAD, LEFT, self.left, expr.add(begin, step), self.of_left.row, here)
            for number in range(vectors):
                right = RIGHT[number % len(RIGHT)]
                place = self._on_the_right(symbol("column"), number * self.lanes, step)
                self._move(LOAD, right, self.right, place, self.of_right, here)
                self._call(self.instruction, *map(_register, (number, LEFT, right)))
        for number, place in results:
            self._move(STORE, number, self.result, place, stride, index)

    def _move(
        self, instruction: str, register: int, memory: ir.Value, place: Dim, stride: Dim, index: IndexEmitter
    ) -> None:
        """Load or store a register, whose rows are `stride` elements apart, the first one at `place`."""
        view = strided_view(memory, place, (BYTE_TILE, BYTE_TILE), (stride, 1), index)
        between = arith.index_cast(ir.IntegerType.get_signless(64), index(expr.mul(stride, WORD_BYTES)))
        self._call(instruction, _register(register), _pointer(view, index(expr.mul(place, WORD_BYTES))), between)

    def _call(self, instruction: str, *operands: ir.Value) -> None:
        declare(self.module, instruction, [each.type for each in operands])
        func.CallOp([], instruction, operands)


def _register(number: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(8), number)


def _pointer(view: ir.Value, offset: ir.Value) -> ir.Value:
    """The address `offset` bytes after the memory of a view."""
    place = arith.addi(memref.extract_aligned_pointer_as_index(view), offset)
    word = arith.index_cast(ir.IntegerType.get_signless(64), place)
    return llvm.IntToPtrOp(llvm.PointerType.get(), word).result
