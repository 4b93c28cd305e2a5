"""Python capsules, which transfer DLPack tensors.

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
"""Objects kept alive for tensors that other libraries own, by the address of the tensor."""

_offered: list[tuple[int, Any]] = []
"""Addresses and capsules of tensors that no consumer had taken over at the last check."""


def export(managed: Managed, name: bytes, keep: object) -> Any:
    """A capsule that owns `managed`, and keeps `keep` alive until the tensor is released."""
    _forget_abandoned()
    managed.deleter = _deleter
    address = ctypes.addressof(managed)
    _exported[address] = (managed, keep)
    capsule = _new(address, name, None)
    _offered.append((address, capsule))
    return capsule


def exported() -> int:
    """The number of tensors that other libraries own or may still take over."""
    return len(_exported)


def _forget_abandoned() -> None:
    """Release the tensors of capsules that were dropped before a consumer took them over.

    Capsules have no destructor: it would run while the consumer's exception is set, when no Python code may run. A
    capsule that only this list refers to counts as dropped.
    """
    for entry in list(_offered):
        address, is_offered = entry[0], any(_is_valid(entry[1], name) for name in _NAMES)
        # An abandoned capsule has two references: the entry, and the argument of getrefcount.
        if not is_offered or sys.getrefcount(entry[1]) <= 2:
            _offered.remove(entry)
            if is_offered:
                _exported.pop(address, None)


@types.DELETER
def _deleter(address: int) -> None:
    _exported.pop(address, None)


# Exported tensors may outlive this module: their deleter must not be freed with it.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_deleter))


class Import:
    """Takes over the tensor of a capsule, and releases it when this object is garbage-collected."""

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
