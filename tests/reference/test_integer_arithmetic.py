import pytest

from tests.reference.one_node import array, binop, check

SIGNED = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
UNSIGNED = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}


@pytest.mark.parametrize(("dtype", "bits"), SIGNED.items())
def test_signed_addition_subtraction_and_multiplication_wrap(dtype: str, bits: int) -> None:
    least, greatest = -(1 << bits), (1 << bits) - 1
    a, b = array([greatest, least, least, 3], dtype), array([1, -1, least, -5], dtype)
    check(binop("add", a, b), array([least, greatest, 0, -2], dtype))
    check(binop("sub", a, b), array([greatest - 1, least + 1, 0, 8], dtype))
    check(binop("mul", a, b), array([greatest, least, 0, -15], dtype))


@pytest.mark.parametrize(("dtype", "bits"), UNSIGNED.items())
def test_unsigned_addition_subtraction_and_multiplication_wrap(dtype: str, bits: int) -> None:
    greatest = (1 << bits) - 1
    a, b = array([greatest, 0, 1 << (bits - 1)], dtype), array([1, 1, 2], dtype)
    check(binop("add", a, b), array([0, 1, (1 << (bits - 1)) + 2], dtype))
    check(binop("sub", a, b), array([greatest - 1, greatest, (1 << (bits - 1)) - 2], dtype))
    check(binop("mul", a, b), array([greatest, 0, 0], dtype))


def test_250_plus_10_is_4_in_uint8() -> None:
    check(binop("add", array([250], "uint8"), array([10], "uint8")), array([4], "uint8"))


@pytest.mark.parametrize("op", ["idiv", "div"])
@pytest.mark.parametrize(("dtype", "bits"), SIGNED.items())
def test_signed_division_truncates_is_0_by_0_and_wraps_once(op: str, dtype: str, bits: int) -> None:
    least = -(1 << bits)
    a = array([7, -7, 7, -7, 0, 5, -5, least, least, least, 99], dtype)
    b = array([2, 2, -2, -2, 3, 0, 0, -1, 0, 1, least], dtype)
    check(binop(op, a, b), array([3, -3, -3, 3, 0, 0, 0, least, 0, least, 0], dtype))


@pytest.mark.parametrize(("dtype", "bits"), SIGNED.items())
def test_the_signed_remainder_has_the_sign_of_the_dividend(dtype: str, bits: int) -> None:
    least = -(1 << bits)
    a = array([7, -7, 7, -7, 0, 5, -5, least, least], dtype)
    b = array([2, 2, -2, -2, 3, 0, 0, -1, 0], dtype)
    check(binop("mod", a, b), array([1, -1, 1, -1, 0, 5, -5, 0, least], dtype))


@pytest.mark.parametrize(("dtype", "bits"), UNSIGNED.items())
def test_unsigned_division_and_remainder_use_the_whole_range(dtype: str, bits: int) -> None:
    greatest = (1 << bits) - 1
    a, b = array([greatest, greatest, 9, 0], dtype), array([2, greatest, 0, 0], dtype)
    check(binop("idiv", a, b), array([greatest >> 1, 1, 0, 0], dtype))
    check(binop("mod", a, b), array([1, 0, 9, 0], dtype))


def test_integer_powers_multiply_and_wrap() -> None:
    base, exponent = array([0, 0, 3, -2, 3, 7], "int8"), array([0, 5, 4, 3, 5, 1], "int8")
    check(binop("pow", base, exponent), array([1, 0, 81, -8, 243 - 256, 7], "int8"))
    check(binop("pow", array([3], "uint64"), array([41], "uint64")), array([3**41 % 2**64], "uint64"))


def test_a_negative_exponent_gives_0_unless_the_base_is_1_or_minus_1() -> None:
    base = array([2, 1, -1, -1, 0, -3], "int32")
    exponent = array([-1, -7, -2, -3, -1, -(2**31)], "int32")
    check(binop("pow", base, exponent), array([0, 1, 1, -1, 0, 0], "int32"))


@pytest.mark.parametrize(("dtype", "width"), [("int8", 8), ("int32", 32), ("int64", 64)])
def test_signed_shifts_fill_with_the_sign_and_oversized_ones_shift_everything_out(dtype: str, width: int) -> None:
    a = array([-99, -99, 5, -1, -1, 5], dtype)
    amount = array([2, width, width, -1, width - 1, 100], dtype)
    check(binop("shr", a, amount), array([-25, -1, 0, -1, -1, 0], dtype))
    least = -(1 << (width - 1))
    check(binop("shl", array([3, -1, 1, 1, 1], dtype), array([1, width - 1, width - 1, width, -1], dtype)),
          array([6, least, least, 0, 0], dtype))  # fmt: skip


@pytest.mark.parametrize(("dtype", "width"), [("uint8", 8), ("uint16", 16), ("uint32", 32), ("uint64", 64)])
def test_unsigned_shifts_fill_with_zeros(dtype: str, width: int) -> None:
    greatest = (1 << width) - 1
    a, amount = array([greatest] * 4, dtype), array([1, width - 1, width, 255], dtype)
    check(binop("shr", a, amount), array([greatest >> 1, 1, 0, 0], dtype))
    check(binop("shl", a, amount), array([greatest - 1, 1 << (width - 1), 0, 0], dtype))


def test_the_amount_of_a_shift_may_be_uint32() -> None:
    amount = array([1, 63, 64, 2**32 - 1], "uint32")
    check(binop("shl", array([1] * 4, "int64"), amount), array([2, -(2**63), 0, 0], "int64"))
    check(binop("shr", array([-8] * 4, "int64"), amount), array([-4, -1, -1, -1], "int64"))


def test_bitwise_operations() -> None:
    a, b = array([0b1100, -1], "int8"), array([0b1010, 0x55], "int8")
    check(binop("and", a, b), array([0b1000, 0x55], "int8"))
    check(binop("or", a, b), array([0b1110, -1], "int8"))
    check(binop("xor", a, b), array([0b0110, ~0x55], "int8"))


def test_order_is_signed_for_signed_and_unsigned_for_unsigned() -> None:
    check(binop("max", array([-1], "int8"), array([1], "int8")), array([1], "int8"))
    check(binop("max", array([255], "uint8"), array([1], "uint8")), array([255], "uint8"))
    check(binop("min", array([-1], "int64"), array([1], "int64")), array([-1], "int64"))
    check(binop("min", array([2**64 - 1], "uint64"), array([1], "uint64")), array([1], "uint64"))
    check(binop("cmplt", array([-1], "int64"), array([1], "int64"), "bool"), array([True], "bool"))
    check(binop("cmplt", array([2**64 - 1], "uint64"), array([1], "uint64"), "bool"), array([False], "bool"))


def test_the_result_of_a_comparison_may_be_uint8() -> None:
    a, b = array([1, 2, 3], "int32"), array([2, 2, 2], "int32")
    check(binop("cmplt", a, b, "uint8"), array([1, 0, 0], "uint8"))
    check(binop("cmpne", a, b, "uint8"), array([1, 0, 1], "uint8"))


def test_bool_adds_with_or_and_multiplies_with_and() -> None:
    a, b = array([False, False, True, True], "bool"), array([False, True, False, True], "bool")
    for op, expected in {
        "add": [0, 1, 1, 1],
        "mul": [0, 0, 0, 1],
        "max": [0, 1, 1, 1],
        "min": [0, 0, 0, 1],
        "cmplt": [0, 1, 0, 0],
        "cmpne": [0, 1, 1, 0],
        "xor": [0, 1, 1, 0],
        "or": [0, 1, 1, 1],
        "and": [0, 0, 0, 1],
    }.items():
        check(binop(op, a, b), array(expected, "bool"))
