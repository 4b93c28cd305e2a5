"""The table of bits behind the reduction of large arguments."""

from passes.scalar.turns import _BITS, _INVERSE_TURN  # pyright: ignore[reportPrivateUsage]


def _scaled_pi(bits: int) -> int:
    """floor-ish pi * 2**bits by Machin's formula, a few units off at most."""
    guard = bits + 32

    def arctangent_of_inverse(n: int) -> int:
        term = total = (1 << guard) // n
        k, sign = 1, -1
        while term:
            term //= n * n
            k += 2
            total += sign * (term // k)
            sign = -sign
        return total

    return (16 * arctangent_of_inverse(5) - 4 * arctangent_of_inverse(239)) >> 32


def test_the_table_holds_the_bits_of_one_over_two_pi() -> None:
    precision = _BITS + 64
    inverse = (1 << (precision + _BITS)) // (2 * _scaled_pi(precision))
    assert inverse == _INVERSE_TURN
