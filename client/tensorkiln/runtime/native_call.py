"""Short calls in machine code: arrays are looked at, results made, and kernels run without a step of the interpreter.

The code is that of `native_call.ll`, which LLVM's loader compiles once for a process: no compiler is needed where the
package is installed. It reads what a call is from tables, and objects of CPython and NumPy as their binary interfaces
lay them out. Where an interpreter has others, or arrays are not exactly what the tables say, the call is done in Python
(`executor.py`), which is always right.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, Final

import numpy as np

from .arguments import InputSpec
from .blocks import LEAST_LENT
from .engine import engine_of
from .frame import Frame
from .host_launch import HostLaunch
from .memory import ALIGNMENT, Array, Block, arrays_begin_with_address
from .plan import OutputSpec, Plan

MOST_TEMPORARIES: Final = 4 << 20
"""Bytes: a call that takes more takes long enough for the interpreter's share not to matter."""
_METH_FASTCALL: Final = 0x80
_NUMPY_API: Final = {"ndarray": 2, "new_from_descr": 94, "set_base_object": 282}
"""Entries of the table in `_ARRAY_API` (numpy/__multiarray_api.h), which NumPy keeps from version to version."""


class _Place(ctypes.Structure):
    """Where the address of an array goes, and what is added to it."""

    _fields_ = (("slot", ctypes.c_void_p), ("offset", ctypes.c_int64))


class _Array(ctypes.Structure):
    """What an array must be, or is made as. Of a result, `size` bytes are allocated."""

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
        ("first", ctypes.c_int64),
        ("last", ctypes.c_int64),
    )


class _Call(ctypes.Structure):
    """`busy` is where it says that kernels run, without the interpreter's lock, in the block that the call needs."""

    _fields_ = (
        ("busy", ctypes.c_void_p),
        ("inputs", ctypes.c_void_p),
        ("input_count", ctypes.c_int64),
        ("outputs", ctypes.c_void_p),
        ("output_count", ctypes.c_int64),
        ("launches", ctypes.c_void_p),
        ("launch_count", ctypes.c_int64),
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
"""Takes the arrays of a call, and gives its results; None when nothing has run. MemoryError without room for one."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """A block in which one call at a time runs in machine code, of several plans, and whether one does."""

    block: Block
    busy: ctypes.c_int64


def native_call(plan: Plan[HostLaunch], place: Workplace) -> NativeCall | None:
    """The calls of `plan` in a block that is large enough, and that nothing else uses.

    None where this interpreter's objects are laid out otherwise, or the call is no short sequence of kernels on one
    thread: then what the interpreter adds is little.
    """
    if not all(output.is_fresh and output.size < LEAST_LENT for output in plan.outputs):
        return None
    frame = Frame(plan, place.block)
    launches, code = frame.launches, machine_code()
    return None if launches is None or code is None else _Tables(plan, place, frame, launches).function(code)


class _Tables:
    """What the code reads of one plan; it lives as long as the function that `function` gives."""

    def __init__(
        self,
        plan: Plan[HostLaunch],
        place: Workplace,
        frame: Frame,
        launches: Sequence[tuple[int, int, int, int, int]],
    ) -> None:
        self._kept: list[object] = [plan, place, frame]
        inputs = [self._array(*each) for each in zip(plan.inputs, frame.slots.places[0], strict=True)]
        outputs = [self._array(*each) for each in zip(plan.outputs, frame.slots.places[1], strict=True)]
        self._call = _Call(
            busy=ctypes.addressof(place.busy),
            inputs=self._table(_Array, inputs),
            input_count=len(inputs),
            outputs=self._table(_Array, outputs),
            output_count=len(outputs),
            launches=self._table(_Launch, [_Launch(*launch) for launch in launches]),
            launch_count=len(launches),
            api=ctypes.addressof(_api()),
        )

    def function(self, code: _Method) -> NativeCall:
        """A builtin function: its `self` says where the tables are, its module keeps them."""
        address = ctypes.addressof(self._call).to_bytes(_POINTER, sys.byteorder)
        return _NEW_FUNCTION(ctypes.addressof(code), address, self)

    def _table(self, kind: Any, entries: Sequence[Any]) -> int:
        made = (kind * len(entries))(*entries)
        self._kept.append(made)
        return ctypes.addressof(made)

    def _array(self, spec: InputSpec | OutputSpec, places: Sequence[tuple[Any, int, int]]) -> _Array:
        found = [_Place(ctypes.addressof(values) + slot * _POINTER, offset) for values, slot, offset in places]
        self._kept += [values for values, _, _ in places]
        size = spec.size + ALIGNMENT if isinstance(spec, OutputSpec) else 0
        dims = self._table(ctypes.c_int64, spec.shape)
        return _Array(id(spec.dtype), len(spec.shape), dims, size, len(found), self._table(_Place, found))


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
