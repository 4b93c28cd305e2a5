"""The C structures of DLPack 1.1 (dlpack.h of github.com/dmlc/dlpack), and its element types."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import ml_dtypes
import numpy as np

CPU, CUDA, CUDA_MANAGED = 1, 2, 13
"""`kDLCPU`, `kDLCUDA`, `kDLCUDAManaged`."""

INT, UINT, FLOAT, BFLOAT, BOOL = 0, 1, 2, 4, 6
"""`kDLInt` and so on."""

VERSION: Final = (1, 1)
NAME: Final = b"dltensor"
VERSIONED_NAME: Final = b"dltensor_versioned"


class Device(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32))


class ElementType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", ElementType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


DELETER: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class ManagedTensor(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("manager_ctx", ctypes.c_void_p), ("deleter", DELETER))


class Version(ctypes.Structure):
    _fields_ = (("major", ctypes.c_uint32), ("minor", ctypes.c_uint32))


class VersionedTensor(ctypes.Structure):
    _fields_ = (
        ("version", Version),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


_NAMED: Final = {
    np.dtype(ml_dtypes.bfloat16): (BFLOAT, 16),
    np.dtype(ml_dtypes.float8_e4m3fn): (10, 8),
    np.dtype(ml_dtypes.float8_e4m3fnuz): (11, 8),
    np.dtype(ml_dtypes.float8_e5m2): (12, 8),
    np.dtype(ml_dtypes.float8_e5m2fnuz): (13, 8),
}
"""Code and bits of ml_dtypes' dtypes. Excludes those below 8 bits, which DLPack packs and arrays here do not."""
_KNOWN: Final = {named: dtype for dtype, named in _NAMED.items()}
_CODES: Final = {"i": INT, "u": UINT, "f": FLOAT, "b": BOOL}
_KINDS: Final = {code: kind for kind, code in _CODES.items() if kind != "b"}


def element_type(dtype: np.dtype[Any]) -> ElementType:
    """The DLPack type of `dtype`. BufferError when there is none."""
    if dtype in _NAMED:
        return ElementType(*_NAMED[dtype], 1)
    if dtype.kind not in _CODES or not dtype.isnative:
        raise BufferError(f"DLPack has no element type for {dtype}")
    return ElementType(_CODES[dtype.kind], 8 * dtype.itemsize, 1)


def numpy_dtype(element: ElementType) -> np.dtype[Any] | None:
    """The dtype of an element type, None when NumPy has none."""
    code, bits = int(element.code), int(element.bits)
    if element.lanes != 1:
        return None
    if (code, bits) in _KNOWN:
        return _KNOWN[code, bits]
    if (code, bits) == (BOOL, 8):
        return np.dtype(np.bool_)
    if code not in _KINDS or bits not in (8, 16, 32, 64):
        return None
    try:
        return np.dtype(f"{_KINDS[code]}{bits // 8}")
    except TypeError:
        return None
