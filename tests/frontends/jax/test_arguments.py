"""Numbers as arguments of a program, and static arguments as a part of its key."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorkiln import Client
from tensorkiln.dtypes import DType
from tensorkiln.errors import CallInputError
from tensorkiln.frontends.jax import load
from tensorkiln.frontends.jax.complex_arrays import as_pairs, from_pairs
from tensorkiln.frontends.jax.model import as_array
from tensorkiln.frontends.jax.statics import Statics
from tests.frontends.jax.functions import FILES


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        *[(True, "bool"), (7, "int32"), (-(2**63), "int64"), (2**64 - 1, "uint64"), (255, "uint8")],
        *[(7, "float32"), (3.5, "float32"), (3.5, "float16"), (3.5, "bfloat16"), (2**70, "float64")],
    ],
)
def test_a_number_takes_the_type_of_its_argument(value: Any, dtype: str) -> None:
    found = as_array(value, DType(dtype), lambda: "args[0]")
    assert found.dtype == DType(dtype).numpy
    assert found.item() == value


def test_a_float_that_is_too_large_is_infinite() -> None:
    assert np.isinf(as_array(1e10, DType.FLOAT16, lambda: "args[0]"))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        *[(3.7, "int32"), (3.0, "int64"), (300, "uint8"), (-1, "uint32"), (2**63, "int64"), (float("nan"), "int8")],
        *[(1, "bool"), (0.0, "bool"), (True, "int32"), (False, "float32"), (2**1024, "float32"), (2**90, "int64")],
    ],
)
def test_a_number_of_another_kind_is_refused(value: Any, dtype: str) -> None:
    with pytest.raises(CallInputError, match=rf"^args\[0\]\['n'\] is {dtype}, and the {type(value).__name__} "):
        as_array(value, DType(dtype), lambda: "args[0]['n']")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *[((1,), (1.0,)), ((1,), (True,)), (((1, 2), 3), ((1, 2.0), 3)), (0.0, -0.0), ((0.0,), (-0.0,))],
        *[(frozenset({1}), frozenset({True})), (complex(0, 0.0), complex(0, -0.0)), (np.float32(0), np.float32(-0.0))],
    ],
)
def test_static_arguments_that_are_equal_and_not_the_same_are_told_apart(one: Any, other: Any) -> None:
    statics = Statics.of(lambda x, mode: x, 1, ())
    assert one == other
    assert statics.apart((0, one), {}).key != statics.apart((0, other), {}).key
    assert statics.apart((0, one), {}).key == statics.apart((0, one), {}).key


def test_a_static_argument_that_is_no_number_is_the_same_as_itself() -> None:
    statics = Statics.of(lambda x, mode: x, 1, ())
    nan = float("nan")
    assert statics.apart((0, nan), {}).key == statics.apart((0, nan), {}).key


def test_an_integer_too_long_to_be_written_is_refused_too() -> None:
    with pytest.raises(CallInputError, match="the int of 20001 bits is not a value of it"):
        as_array(1 << 20_000, DType.FLOAT64, lambda: "args[0]")


def test_a_call_names_the_argument_whose_number_is_of_another_kind(client: Client) -> None:
    program = load(FILES / "elementwise" / "integer_power.jax", client=client).compile(client=client)
    with pytest.raises(CallInputError, match=r"^args\[0\] is float32, and the bool True is not a value of it"):
        program(True)


def test_a_complex_array_is_taken_as_it_is_and_a_number_in_the_type_of_its_argument(client: Client) -> None:
    content = (FILES / "spectra" / "fft.jax").read_bytes()
    program = load(bytearray(content), client=client).compile(client=client)
    x = (np.arange(36).reshape(3, 12) * (1 - 2j)).astype(np.complex64)
    whole = program(x)
    assert whole.dtype == np.complex64
    np.testing.assert_allclose(whole, np.fft.fft(x), rtol=1e-5)
    assert np.array_equal(program(x[:, ::-1][:, ::-1]), whole)
    assert np.array_equal(program(np.asfortranarray(x)), whole)
    for other in (x.astype(np.complex128), x.real):
        with pytest.raises(CallInputError, match=rf"args\[0\] is {other.dtype}; the function takes complex64"):
            program(other)
    with pytest.raises(CallInputError):
        program(x[:, :5])
    for number in (3, 2.5, 1 - 2j):
        pair = as_pairs(number, DType.FLOAT64, lambda: "args[0]")
        assert pair.tolist() == [complex(number).real, complex(number).imag]
        assert from_pairs(pair) == number
