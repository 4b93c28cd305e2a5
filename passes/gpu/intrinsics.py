"""What a thread of a work-group can do that other code cannot: the only file that speaks NVVM.

Work-groups and threads are numbered along x only.
"""

from __future__ import annotations

from dialect.mlir import arith, ir, nvvm
from passes.scalar import mlir_scalar
from passes.scalar.registers import to_register, to_scalar
from tensorkiln.dtypes import DType

from .machine import WARP

KERNEL = "nvvm.kernel"
THREADS = "nvvm.reqntid"

_EVERY_LANE = -1
_CLAMP = WARP - 1
"""The operand of a shuffle that makes all lanes of a warp one segment."""


def group_index() -> ir.Value:
    """The number of the work-group."""
    return _index(nvvm.read_ptx_sreg_ctaid_x())


def thread_index() -> ir.Value:
    """The number of the thread in its work-group."""
    return _index(nvvm.read_ptx_sreg_tid_x())


def barrier() -> None:
    """Wait for all threads of the work-group; what each stored before is seen by all after."""
    nvvm.BarrierOp()


def shuffle_xor(dtype: DType, value: ir.Value, distance: int) -> ir.Value:
    """The value, as it travels, of the lane whose number differs in the bits of `distance`. All lanes must call it."""
    if dtype is DType.FLOAT32:
        return _exchange(value, distance)
    bits = ir.IntegerType.get_signless(max(8 * dtype.itemsize, 8))
    pattern = _to_bits(dtype, value, bits)
    if bits.width <= 32:
        word = pattern if bits.width == 32 else arith.extui(_i32(), pattern)
        word = _exchange(word, distance)
        return _from_bits(dtype, word if bits.width == 32 else arith.trunci(bits, word))
    half = arith.constant(bits, 32)
    words = (arith.trunci(_i32(), pattern), arith.trunci(_i32(), arith.shrui(pattern, half)))
    low, high = (arith.extui(bits, _exchange(word, distance)) for word in words)
    return _from_bits(dtype, arith.ori(low, arith.shli(high, half)))


def _exchange(word: ir.Value, distance: int) -> ir.Value:
    every, offset, clamp = (arith.constant(_i32(), number) for number in (_EVERY_LANE, distance, _CLAMP))
    kind = ir.Attribute.parse("#nvvm<shfl_kind bfly>")
    return nvvm.shfl_sync(every, word, offset, clamp, kind)


def _to_bits(dtype: DType, value: ir.Value, bits: ir.Type) -> ir.Value:
    if dtype.is_bool:
        return arith.extui(bits, value)
    scalar = to_scalar(dtype, value)
    return arith.bitcast(bits, scalar) if dtype.is_float else scalar


def _from_bits(dtype: DType, pattern: ir.Value) -> ir.Value:
    if dtype.is_bool:
        return arith.trunci(ir.IntegerType.get_signless(1), pattern)
    scalar = arith.bitcast(mlir_scalar(dtype), pattern) if dtype.is_float else pattern
    return to_register(dtype, scalar)


def _index(number: ir.Value) -> ir.Value:
    return arith.index_castui(ir.IndexType.get(), number)


def _i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)
