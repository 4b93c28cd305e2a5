"""Where the elements of an array begin, as NumPy says it and as the struct has it."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tensorkiln.runtime.memory import address_of, arrays_begin_with_address

ARRAYS: dict[str, np.ndarray[Any, Any]] = {
    "vector": np.arange(5.0),
    "scalar": np.array(3),
    "empty": np.empty((0, 4)),
    "strided": np.arange(24).reshape(4, 6)[1::2, ::-1],
    "read-only": np.frombuffer(b"abcdefgh", np.uint8),
    "structured": np.zeros(3, [("a", "i4"), ("b", "f8")]),
    "subclass": np.arange(3).view(np.recarray),
    "in memory of another": np.ndarray((2,), np.float32, bytearray(64), 20),
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_the_address_of_an_array_is_the_one_that_numpy_gives(array: np.ndarray[Any, Any]) -> None:
    assert address_of(array) == array.ctypes.data


def test_arrays_of_this_interpreter_begin_with_their_address() -> None:
    assert arrays_begin_with_address()


def test_an_interpreter_whose_objects_have_no_address_is_not_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(name="pypy"))
    assert not arrays_begin_with_address()
