"""Short calls in machine code: check arrays, allocate results and run kernels without executing Python code.

LLVM compiles `native_call.ll` once per process, so an installation needs no compiler. The code reads the description of
a call from tables, and CPython and NumPy objects by their binary interfaces. Numbers that depend on the symbols are
passed to each call, which writes them into the tables. Where the interpreter's objects have another layout, or arrays
do not match the tables exactly, `executor.py` does the call in Python.
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
from typing import Any, Final

import numpy as np

from ..expr import INT64_MAX, INT64_MIN
from ..expr.size_function import Value
from .call_sizes import Argument, ArraySizes, CallSizes, LaunchSizes
from .engine import engine_of_module
from .memory import ALIGNMENT, Array, arrays_begin_with_address

_METH_FASTCALL: Final = 0x80
_NUMPY_API: Final = {"ndarray": 2, "new_from_descr": 94, "set_base_object": 282}
"""Indices into the table `_ARRAY_API` (numpy/__multiarray_api.h), which are stable across NumPy versions."""


class _Place(ctypes.Structure):
    """A slot for the address of an array, and the offset to add to it."""

    _fields_ = (("slot", ctypes.c_void_p), ("offset", ctypes.c_int64))


class _Array(ctypes.Structure):
    """The required form of an input array, or that of a result, which starts at the first aligned of `size` bytes."""

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
    """A place in the tables for the call's number at position `which`, and the addend `plus`."""

    _fields_ = (("place", ctypes.c_void_p), ("which", ctypes.c_int64), ("plus", ctypes.c_int64))


class _Call(ctypes.Structure):
    """The tables of a call, guarded by the GIL. `busy` marks a running call, which may have released the GIL."""

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
"""Takes the numbers of a binding and the arrays of a call, and returns its results; None when nothing has run.

MemoryError when there is no room for a result.
"""
SizesAt = Callable[..., tuple[Any, ...] | None]
"""Takes the symbols and the address of a block. Returns the bytes needed in the block, the bytes that a call holds, the
size and the dimensions of each result in turn, and the numbers of the call.
"""


@dataclass(frozen=True, slots=True)
class NativeCalls:
    """The calls of a program, one at a time.

    `call` allocates the results. `call_into` takes them after the input arrays, None for a result to allocate.
    """

    call: NativeCall
    call_into: NativeCall
    sizes_at: SizesAt


def native_calls(sizes: CallSizes) -> NativeCalls | None:
    """The calls of these sizes; None where this interpreter's objects have an unknown layout."""
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
    """The tables of a program that the machine code reads. The result of `function` keeps them alive."""

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
        """The numbers that each call passes, in order."""
        return tuple(self._which)

    def function(self, code: _Method, *, takes_results: bool) -> NativeCall:
        """A builtin function: its `self` holds the address of the tables, its module keeps them alive."""
        words = (ctypes.addressof(self._call), int(takes_results))
        return _NEW_FUNCTION(ctypes.addressof(code), struct.pack("2Q", *words), self)

    def _table(self, kind: Any, count: int) -> Any:
        made = (kind * count)()
        self._kept.append(made)
        return made

    def _set(self, owner: Any, place: int, value: Value) -> None:
        """Write a 64-bit value at byte `place` of a table: a constant now, any other value at each call."""
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
    """The compiled function; None where objects of this interpreter or of NumPy have an unknown layout."""
    if not is_known_layout():
        return None
    engine = engine_of_module("native_call.ll")
    method = _Method(b"call", engine.get_function_address("call"), _METH_FASTCALL, None)
    _FOR_GOOD.extend((engine, method))
    return method


_FOR_GOOD: Final[list[object]] = []
"""Keeps the engine, which keeps its code mapped, and the method definition, which functions read while they exist."""


def is_known_layout() -> bool:
    """Whether objects start with a reference count and a type of 8 bytes each, followed by the fields of an array."""
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
    """The addresses that the code calls or compares with, in the order of `native_call.ll`."""
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
