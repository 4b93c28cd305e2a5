"""Casts between dtypes, and reinterpretation of bits."""

from __future__ import annotations

from dialect.mlir import ir
from tensorkiln.dtypes import DType

from .form import BF16, F32, F64, I8, I32, I64, Form, form_of
from .narrow import low_bits
from .number import Number, choose
from .traits import PORTABLE, Traits
from .working import held, load, store


def cast(source: DType, target: DType, x: ir.Value, *, traits: Traits = PORTABLE) -> ir.Value:
    """The value in another dtype.

    Integers wrap; floats round to nearest even, once; everything but 0 is true (NaN too); float to integer truncates
    and follows the rules of `truncated`. Raises UnsupportedGraphError for unit.
    """
    number = load(traits, source, x)
    if source is target:
        return x
    if target.is_bool:
        return number.differs(0).value
    if source.wide.is_float:
        return store(traits, target, truncated(number, target.wide) if target.wide.is_integer else number)
    if target.wide.is_float:
        form = BF16 if target.is_narrow else form_of(target)
        return store(traits, target, _integer_to_float(source.wide, number, form))
    form = form_of(target.wide)
    if form.bits < number.form.bits:
        return store(traits, target, number.truncated(form))
    extended = number.sign_extended(form) if source.wide.is_signed else number.zero_extended(form)
    return store(traits, target, extended)


def _integer_to_float(source: DType, number: Number, form: Form) -> Number:
    """A float that rounds to `form` as the integer does: of that form, or of a wider one without double rounding.

    A float that is precise enough for BF16 also is for the narrow floats.
    """
    if number.form.bits == 1:
        number = number.zero_extended(I8)
    if form in (F32, F64):
        return number.to_float(form, signed=source.is_signed)
    # A float16 above 65504 is infinite, and up to 2**24 float32 is exact; of 16 bits and less it always is.
    if form != BF16 or number.form.bits <= 16:
        return number.to_float(F32, signed=source.is_signed)
    if number.form.bits == 32:
        return number.to_float(F64, signed=source.is_signed)
    return _sticky(number, is_signed=source.is_signed).to_float(F64, signed=source.is_signed)


def _sticky(number: Number, *, is_signed: bool) -> Number:
    """A 64-bit integer that float64 holds exactly, on the same side of every rounding boundary of bfloat16.

    From 2**53 on, the low 12 bits are replaced by a sticky bit; boundaries there are multiples of 2**44.
    """
    low = number & 0xFFF
    folded = (number ^ low) | choose(low.differs(0), number.literal(1 << 11), 0)
    size = choose(number.less(0), -number, number) if is_signed else number
    return choose((size >> 53).differs(0), folded, number)


def truncated(x: Number, target: DType) -> Number:
    """A float towards 0 as an integer dtype; NaN is 0.

    int32 and int64 saturate. int8, int16, uint8 and uint16 are the low bits of a saturated int32, uint32 those of a
    saturated int64. uint64 is the low bits of a saturated int64 for negative values and saturates above.
    """
    if target is DType.UINT64:
        return _to_uint64(x)
    wide = I64 if target in (DType.INT64, DType.UINT32) else I32
    return saturated(x, wide).truncated(form_of(target))


def saturated(x: Number, form: Form) -> Number:
    """A float truncated to a signed integer, saturated at its bounds; 0 for NaN."""
    limit = 2.0 ** (form.bits - 1)
    is_inside = x.at_least(-limit) & x.less(limit)
    inside = choose(is_inside, x, 0.0).to_integer(form)
    not_above = choose(x.at_least(limit), (1 << (form.bits - 1)) - 1, inside)
    return choose(x.less(-limit), -(1 << (form.bits - 1)), not_above)


def _to_uint64(x: Number) -> Number:
    is_upper = x.at_least(2.0**63)
    is_too_large = x.at_least(2.0**64)
    # The subtraction is exact: both are multiples of the larger's unit in the last place.
    lower = saturated(choose(is_upper, x - 2.0**63, x), I64)
    upper = choose(is_upper, lower.literal(1 << 63), 0)
    return choose(is_too_large, -1, lower + upper)


def bitcast_same_width(source: DType, target: DType, x: ir.Value) -> ir.Value:
    """The bits as another dtype of the same size in memory; a byte read as bool is true unless 0.

    Bits of a byte above those of either dtype become 0. Raises ValueError for dtypes of different sizes.
    """
    if source.itemsize != target.itemsize:
        raise ValueError(f"{source} and {target} differ in size")
    number = held(source, x)
    if source.is_narrow or target.is_narrow:
        number = low_bits(source, number)
        number = low_bits(target, number.zero_extended(I8) if source.is_bool else number)
        return (number.differs(0) if target.is_bool else number).value
    if target.is_bool:
        return number.differs(0).value
    if source.is_bool:
        number = number.zero_extended(I8)
    return number.reinterpreted(form_of(target)).value
