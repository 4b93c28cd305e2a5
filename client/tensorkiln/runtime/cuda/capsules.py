"""Python capsules, through which DLPack hands tensors over.

A capsule owns its tensor until a consumer renames it; the owner of the tensor calls its deleter once.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Final

from . import dlpack_types as types

_new: Final = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_is_valid: Final = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
_pointer: Final = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_set_name: Final = ctypes.pythonapi.PyCapsule_SetName
_set_name.restype, _set_name.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)

Managed = types.ManagedTensor | types.VersionedTensor

_NAMES: Final = (types.NAME, types.VERSIONED_NAME)
_USED: Final = (b"used_dltensor", b"used_dltensor_versioned")
"""A renamed capsule keeps the address of its name, so the names live as long as the process."""

_exported: dict[int, object] = {}
"""What the tensors that other libraries own refer to, by the address of the tensor."""

_offered: list[tuple[int, Any]] = []
"""Addresses and capsules of tensors that nobody had taken over when they were last looked at."""


def export(managed: Managed, name: bytes, keep: object) -> Any:
    """A capsule that owns `managed`, for which `keep` is kept alive."""
    _forget_abandoned()
    managed.deleter = _deleter
    address = ctypes.addressof(managed)
    _exported[address] = (managed, keep)
    capsule = _new(address, name, None)
    _offered.append((address, capsule))
    return capsule


def exported() -> int:
    """How many tensors other libraries own or have been offered."""
    return len(_exported)


def _forget_abandoned() -> None:
    """Release the tensors of capsules that died before anybody took them over.

    A capsule's destructor runs while its consumer's exception is set, when no Python code may run; so there is none,
    and a capsule that only this list still refers to counts as dead.
    """
    for entry in list(_offered):
        address, is_offered = entry[0], any(_is_valid(entry[1], name) for name in _NAMES)
        # References to the capsule of an abandoned entry: the entry's, and that of the argument.
        if not is_offered or sys.getrefcount(entry[1]) <= 2:
            _offered.remove(entry)
            if is_offered:
                _exported.pop(address, None)


@types.DELETER
def _deleter(address: int) -> None:
    _exported.pop(address, None)


# Tensors of other libraries may outlive this module: what they call must not be freed with it.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_deleter))


class Import:
    """The tensor of a capsule, taken over; released when this is."""

    def __init__(self, capsule: object) -> None:
        """BufferError when `capsule` is not a capsule of a tensor of DLPack 0 or 1."""
        kind = next((kind for kind, name in enumerate(_NAMES) if _is_valid(capsule, name)), None)
        if kind is None:
            raise BufferError("__dlpack__ gave something that is not a capsule of a tensor")
        address = _pointer(capsule, _NAMES[kind])
        managed = (types.ManagedTensor, types.VersionedTensor)[kind].from_address(address)
        if isinstance(managed, types.VersionedTensor) and managed.version.major != types.VERSION[0]:
            raise BufferError(f"DLPack {managed.version.major} is not known; {types.VERSION[0]} is")
        _set_name(capsule, _USED[kind])
        self._managed: Managed = managed
        self._address = address

    @property
    def tensor(self) -> types.Tensor:
        return self._managed.tensor

    def __del__(self) -> None:
        if hasattr(self, "_address") and self._managed.deleter:
            self._managed.deleter(self._address)
