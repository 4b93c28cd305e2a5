"""Operands of a call: host arrays, `DeviceArray`s, and device memory of other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import CallInputError
from ..arguments import InputSpec, mismatch, require_count
from ..host_arrays import as_host_array
from ..memory import Array
from . import dlpack_types as types
from .array import DeviceArray
from .capsules import Import
from .context import Context
from .interface import describe, is_row_major
from .memory import DeviceBlock
from .streams import Event, Stream


@dataclass(frozen=True, slots=True)
class HostOperand:
    """An array in host memory, which has to be copied."""

    array: Array

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape


@dataclass(frozen=True, slots=True)
class DeviceOperand:
    """Row-major elements from `address` on, valid after `ready`, and as long as `owner` is referenced.

    `block` is set for memory of this runtime, whose uses are tracked. `is_foreign`: other libraries can access the
    memory. They get no signal when a call has read it, so the call waits until it has.
    """

    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    owner: object
    ready: Event | None = None
    block: DeviceBlock | None = None
    is_foreign: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


Operand = HostOperand | DeviceOperand


def operands_of(specs: Sequence[InputSpec], arrays: Sequence[Any], context: Context, stream: Stream) -> list[Operand]:
    """The operands of a call on `stream`; the stream waits for foreign arrays that are still being written.

    CallInputError for too few or too many arrays, a wrong dtype or shape, an array on another device, or one on this
    device that is not row-major.
    """
    require_count(specs, arrays)
    operands: list[Operand] = []
    for spec, given in zip(specs, arrays, strict=True):
        operand = _operand(spec, given, context, stream)
        if not spec.fits(operand.dtype, operand.shape):
            raise mismatch(spec, operand.dtype, operand.shape)
        operands.append(operand)
    return operands


def _operand(spec: InputSpec, given: Any, context: Context, stream: Stream) -> Operand:
    if isinstance(given, np.ndarray):
        return HostOperand(given)
    if isinstance(given, DeviceArray):
        return _own(spec, given, context)
    kind, ordinal = _dlpack_device(given)
    if kind in (types.CUDA, types.CUDA_MANAGED):
        _require_device(spec, ordinal, context)
        return _imported(spec, given, stream)
    if hasattr(given, "__cuda_array_interface__"):
        return _described(spec, given, context, stream)
    return HostOperand(as_host_array(spec, given))


def _own(spec: InputSpec, given: DeviceArray, context: Context) -> DeviceOperand:
    _require_device(spec, given.device, context)
    if given.context is not context:
        raise CallInputError(f"{spec} is in the memory of another driver than the program's")
    if given.block.is_exported:
        # Another library may be writing to it on any stream.
        context.driver.synchronize_all()
    return DeviceOperand(
        given.address, given.dtype, given.shape, given, given.ready, given.block, given.block.is_exported
    )


def _dlpack_device(given: Any) -> tuple[int, int]:
    ask = getattr(given, "__dlpack_device__", None)
    if ask is None:
        return types.CPU, 0
    kind, ordinal = ask()
    return int(kind), int(ordinal)


def _require_device(spec: InputSpec, ordinal: int, context: Context) -> None:
    if ordinal != context.driver.ordinal:
        raise CallInputError(f"{spec} is on CUDA device {ordinal}, the program runs on {context.driver.ordinal}")


def _imported(spec: InputSpec, given: Any, stream: Stream) -> DeviceOperand:
    try:
        capsule = given.__dlpack__(stream=stream.protocol_handle, max_version=types.VERSION)
    except TypeError:
        # A producer of DLPack 0 has no `max_version`.
        capsule = given.__dlpack__(stream=stream.protocol_handle)
    owner = Import(capsule)
    tensor = owner.tensor
    dtype = types.numpy_dtype(tensor.dtype)
    if dtype is None:
        element = tensor.dtype
        raise CallInputError(f"{spec} has the DLPack type {element.code} of {element.bits} bits, which is not known")
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    strides = tuple(tensor.strides[axis] for axis in range(tensor.ndim)) if tensor.strides else None
    _require_row_major(spec, shape, strides, 1)
    address = (tensor.data or 0) + tensor.byte_offset
    return DeviceOperand(address, dtype, shape, owner, is_foreign=True)


def _described(spec: InputSpec, given: Any, context: Context, stream: Stream) -> DeviceOperand:
    described = describe(str(spec), given.__cuda_array_interface__)
    _require_row_major(spec, described.shape, described.strides, described.dtype.itemsize)
    if 0 not in described.shape:
        owner = context.driver.owner_of(described.address)
        if owner is None:
            raise CallInputError(f"{spec} claims to be on a GPU, and its address is not in the memory of a GPU")
        _require_device(spec, owner, context)
    if described.stream is not None and described.stream != stream.protocol_handle:
        context.record(Stream(described.stream, given)).hold(stream)
    return DeviceOperand(described.address, described.dtype, described.shape, given, is_foreign=True)


def _require_row_major(spec: InputSpec, shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int) -> None:
    if not is_row_major(shape, strides, itemsize):
        raise CallInputError(f"{spec} has the strides {strides}; make it contiguous first")
