"""Short calls in machine code: arrays are looked at, results made, and kernels run without a step of the interpreter.

The code is that of `native_call.ll`, which LLVM's loader compiles once for a process: no compiler is needed where the
package is installed. It reads what a call is from tables, and objects of CPython and NumPy as their binary interfaces
lay them out. What depends on the symbols, each call brings as numbers, which are written to the tables. Where an
interpreter has other objects, or arrays are not exactly what the tables say, the call is done in Python
(`executor.py`), which is always right.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, Final

import numpy as np

from ..expr import INT64_MAX, INT64_MIN
from ..expr.size_function import Value
from .call_sizes import Argument, ArraySizes, CallSizes, LaunchSizes
from .engine import engine_of
from .memory import ALIGNMENT, Array, arrays_begin_with_address

_METH_FASTCALL: Final = 0x80
_NUMPY_API: Final = {"ndarray": 2, "new_from_descr": 94, "set_base_object": 282}
"""Entries of the table in `_ARRAY_API` (numpy/__multiarray_api.h), which NumPy keeps from version to version."""


class _Place(ctypes.Structure):
    """Where the address of an array goes, and what is added to it."""

    _fields_ = (("slot", ctypes.c_void_p), ("offset", ctypes.c_int64))


class _Array(ctypes.Structure):
    """What an array must be, or is made as, at the first aligned one of `size` bytes."""

    _fields_ = (
        ("dtype", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("places", ctypes.c_void_p),
    )


class _Launch(ctypes.Structure):
    _fields_ = (
        ("function", ctypes.c_void_p),
        ("pointers", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("groups", ctypes.c_int64),
    )


class _Patch(ctypes.Structure):
    """Where a number of a call goes, the one at the position `which`, and what is added to it."""

    _fields_ = (("place", ctypes.c_void_p), ("which", ctypes.c_int64), ("plus", ctypes.c_int64))


class _Call(ctypes.Structure):
    """`busy` says that a call is under way, maybe without the interpreter's lock, which all of this belongs to."""

    _fields_ = (
        ("busy", ctypes.c_int64),
        ("inputs", ctypes.c_void_p),
        ("input_count", ctypes.c_int64),
        ("outputs", ctypes.c_void_p),
        ("output_count", ctypes.c_int64),
        ("launches", ctypes.c_void_p),
        ("launch_count", ctypes.c_int64),
        ("patches", ctypes.c_void_p),
        ("patch_count", ctypes.c_int64),
        ("api", ctypes.c_void_p),
    )


class _Method(ctypes.Structure):
    """`PyMethodDef`."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


NativeCall = Callable[..., tuple[Array, ...] | None]
"""Takes the numbers of a binding and the arrays of a call, and gives its results; None when nothing has run.

MemoryError without room for a result.
"""
SizesAt = Callable[..., tuple[Any, ...] | None]
"""Of the symbols and the address of a block: the bytes that the block must have, those that a call holds, the size and
the shape of each result one after the other, and the numbers of the call.
"""


@dataclass(frozen=True, slots=True)
class NativeCalls:
    """The calls of a program, one at a time.

    `call` makes the results, `call_into` takes them behind the arrays, with None in the place of one to make.
    """

    call: NativeCall
    call_into: NativeCall
    sizes_at: SizesAt


def native_calls(sizes: CallSizes) -> NativeCalls | None:
    """The calls of these sizes; None where this interpreter's objects are laid out otherwise."""
    code = machine_code()
    if code is None:
        return None
    tables = _Tables(sizes)
    results = (value for output in sizes.outputs for value in (output.size, *output.dims))
    return NativeCalls(
        tables.function(code, takes_results=False),
        tables.function(code, takes_results=True),
        sizes.function.compiled((sizes.block_size, sizes.held, *results), tables.numbers),
    )


class _Tables:
    """What the code reads of a program; it lives as long as the function that `function` gives."""

    def __init__(self, sizes: CallSizes) -> None:
        self._kept: list[object] = [sizes]
        self._sizes = sizes.function
        self._patches: list[_Patch] = []
        self._which: dict[Value, int] = {}
        self._values: dict[tuple[Value, ...], int] = {}
        self._places: dict[tuple[str, int], list[tuple[int, Value]]] = {}
        launches = self._table(_Launch, len(sizes.launches))
        for launch, made in zip(launches, sizes.launches, strict=True):
            self._fill_launch(launch, made)
        inputs, outputs = (self._arrays(base, getattr(sizes, f"{base}s")) for base in ("input", "output"))
        patches = self._table(_Patch, len(self._patches))
        patches[:] = self._patches
        self._call = _Call(
            inputs=ctypes.addressof(inputs),
            input_count=len(inputs),
            outputs=ctypes.addressof(outputs),
            output_count=len(outputs),
            launches=ctypes.addressof(launches),
            launch_count=len(launches),
            patches=ctypes.addressof(patches),
            patch_count=len(patches),
            api=ctypes.addressof(_api()),
        )

    @property
    def numbers(self) -> tuple[Value, ...]:
        """What a call brings, in order."""
        return tuple(self._which)

    def function(self, code: _Method, *, takes_results: bool) -> NativeCall:
        """A builtin function: its `self` says where the tables are, its module keeps them."""
        words = (ctypes.addressof(self._call), int(takes_results))
        return _NEW_FUNCTION(ctypes.addressof(code), struct.pack("2Q", *words), self)

    def _table(self, kind: Any, count: int) -> Any:
        made = (kind * count)()
        self._kept.append(made)
        return made

    def _set(self, owner: Any, place: int, value: Value) -> None:
        """Write 64 bits at a byte of a table, now or at each call."""
        at = ctypes.addressof(owner) + place
        if isinstance(value, int):
            ctypes.c_int64.from_address(at).value = value
        else:
            self._sizes.require_between(INT64_MIN, value, INT64_MAX)
            rest, plus = self._sizes.split(value)
            self._patches.append(_Patch(at, self._which.setdefault(rest, len(self._which)), plus))

    def _numbers(self, values: Sequence[Value]) -> int:
        """The address of an array of 64-bit integers."""
        known = self._values.get(key := tuple(values))
        if known is None:
            table = self._table(ctypes.c_int64, len(values))
            for position, value in enumerate(values):
                self._set(table, position * _POINTER, value)
            known = self._values[key] = ctypes.addressof(table)
        return known

    def _fill_launch(self, launch: _Launch, made: LaunchSizes) -> None:
        pointers = self._table(ctypes.c_void_p, len(made.arguments))
        for position, argument in enumerate(made.arguments):
            self._point(pointers, position * _POINTER, argument)
        launch.function, launch.pointers = made.kernel.address, ctypes.addressof(pointers)
        launch.values = self._numbers(made.values)
        self._set(launch, _Launch.groups.offset, made.groups)

    def _point(self, pointers: Any, place: int, argument: Argument) -> None:
        if argument.base == "memory":
            self._set(pointers, place, argument.offset)
        else:
            places = self._places.setdefault((argument.base, argument.index), [])
            places.append((ctypes.addressof(pointers) + place, argument.offset))

    def _arrays(self, base: str, specs: Sequence[ArraySizes]) -> Any:
        arrays = self._table(_Array, len(specs))
        for position, (array, spec) in enumerate(zip(arrays, specs, strict=True)):
            found = self._places.get((base, position), [])
            places = self._table(_Place, len(found))
            for place, (slot, offset) in zip(places, found, strict=True):
                place.slot = slot
                self._set(place, _Place.offset.offset, offset)
            array.dtype, array.rank, array.dims = id(spec.dtype), len(spec.dims), self._numbers(spec.dims)
            array.count, array.places = len(found), ctypes.addressof(places)
            self._set(array, _Array.size.offset, self._sizes.sum(spec.size, ALIGNMENT))
        return arrays


_POINTER: Final = ctypes.sizeof(ctypes.c_void_p)
_NEW_FUNCTION: Final = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)
_CAPSULE_POINTER: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


@cache
def machine_code() -> _Method | None:
    """The compiled function, or None where the objects of this interpreter or of NumPy are not laid out as it reads."""
    if not is_known_layout():
        return None
    engine = engine_of(files("tensorkiln.runtime").joinpath("native_call.ll").read_text("utf-8"))
    engine.finalize_object()
    method = _Method(b"call", engine.get_function_address("call"), _METH_FASTCALL, None)
    _FOR_GOOD.extend((engine, method))
    return method


_FOR_GOOD: Final[list[object]] = []
"""Code stays mapped as long as its engine lives, and functions read what they are of until they are gone."""


def is_known_layout() -> bool:
    """Whether objects begin with a count and a type of 8 bytes each, and the fields of an array follow."""
    is_plain = sys.implementation.name == "cpython" and object.__basicsize__ == 16 and _POINTER == 8
    if not is_plain or sysconfig.get_config_var("Py_GIL_DISABLED") or not arrays_begin_with_address():
        return False
    sample = np.empty((3, 5), np.int16)
    at = id(sample)
    dims = ctypes.c_void_p.from_address(at + 32).value
    return (
        ctypes.c_void_p.from_address(at + 8).value == id(np.ndarray)
        and ctypes.c_int.from_address(at + 24).value == 2
        and dims is not None
        and list((ctypes.c_int64 * 2).from_address(dims)) == [3, 5]
        and ctypes.c_void_p.from_address(at + 56).value == id(sample.dtype)
        and ctypes.c_int.from_address(at + 64).value & 0x501 == 0x501
        and bytes.__basicsize__ == 33
    )


@cache
def _api() -> ctypes.Array[ctypes.c_void_p]:
    """What the code calls and compares with, in the order in which it knows them."""
    capsule: Any = vars(import_module("numpy._core._multiarray_umath"))["_ARRAY_API"]
    table = _CAPSULE_POINTER(capsule, None)
    numpy = (ctypes.c_void_p * (max(_NUMPY_API.values()) + 1)).from_address(table)
    return (ctypes.c_void_p * 11)(
        numpy[_NUMPY_API["ndarray"]],
        id(np.dtype(np.uint8)),
        numpy[_NUMPY_API["new_from_descr"]],
        numpy[_NUMPY_API["set_base_object"]],
        *(_address(name) for name in ("Py_IncRef", "Py_DecRef", "PyTuple_SetItem")),
        id(None),
        *(_address(name) for name in ("PyTuple_New", "PyEval_SaveThread", "PyEval_RestoreThread")),
    )


def _address(name: str) -> int | None:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
