"""GPU operations of a thread in a work-group: one table per vendor, in the vendor's dialect.

Work-groups and threads are numbered along x only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from dialect.mlir import arith, ir, nvvm
from passes.scalar import mlir_scalar
from passes.scalar.registers import to_register, to_scalar
from tensorkiln.dtypes import DType


@dataclass(frozen=True, slots=True)
class Intrinsics:
    """`group` and `thread` are the 32-bit numbers of the work-group and of the thread in it.

    `barrier` synchronises the threads of a work-group and their memory. `exchange(word, distance, wave)` returns the
    32-bit word of the lane whose number differs by an xor with `distance`, in waves of `wave` lanes; all lanes must
    call it. `entry` gives the LLVM-dialect attributes of a kernel run by so many threads.
    """

    dialect: str
    group: Callable[[], ir.Value]
    thread: Callable[[], ir.Value]
    barrier: Callable[[], object]
    exchange: Callable[[ir.Value, int, int], ir.Value]
    entry: Callable[[int], Mapping[str, ir.Attribute]]


def shuffle_xor(intrinsics: Intrinsics, wave: int, dtype: DType, value: ir.Value, distance: int) -> ir.Value:
    """The value, in its register type, of the lane at xor `distance`. All lanes must call it."""

    def exchanged(word: ir.Value) -> ir.Value:
        return intrinsics.exchange(word, distance, wave)

    if dtype is DType.FLOAT32:
        return exchanged(value)
    bits = ir.IntegerType.get_signless(max(8 * dtype.itemsize, 8))
    pattern = _to_bits(dtype, value, bits)
    if bits.width <= 32:
        word = pattern if bits.width == 32 else arith.extui(_i32(), pattern)
        word = exchanged(word)
        return _from_bits(dtype, word if bits.width == 32 else arith.trunci(bits, word))
    half = arith.constant(bits, 32)
    words = (arith.trunci(_i32(), pattern), arith.trunci(_i32(), arith.shrui(pattern, half)))
    low, high = (arith.extui(bits, exchanged(word)) for word in words)
    return _from_bits(dtype, arith.ori(low, arith.shli(high, half)))


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


def _i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)


def _shuffle(word: ir.Value, distance: int, wave: int) -> ir.Value:
    # The last lane as the bound makes all lanes one segment.
    every, offset, bound = (arith.constant(_i32(), number) for number in (-1, distance, wave - 1))
    return nvvm.shfl_sync(every, word, offset, bound, ir.Attribute.parse("#nvvm<shfl_kind bfly>"))


def _kernel(threads: int) -> dict[str, ir.Attribute]:
    return {"nvvm.kernel": ir.UnitAttr.get(), "nvvm.reqntid": ir.DenseI32ArrayAttr.get([threads, 1, 1])}


NVVM: Final = Intrinsics(
    dialect="nvvm",
    group=nvvm.read_ptx_sreg_ctaid_x,
    thread=nvvm.read_ptx_sreg_tid_x,
    barrier=nvvm.BarrierOp,
    exchange=_shuffle,
    entry=_kernel,
)
