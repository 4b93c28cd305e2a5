"""Inputs that are fixed once and stay on the device."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ...errors import DeviceError
from ...spec import CompiledProgram
from ..arguments import InputSpec
from .context import Context
from .driver import Driver
from .loaded import Session
from .operands import DeviceOperand, HostOperand, operands_of


class Held:
    """Keeps an array of another library alive until this is garbage-collected and the device is idle."""

    def __init__(self, driver: Driver, owner: object) -> None:
        weakref.finalize(self, _wait_for_device, driver, owner).atexit = False


def _wait_for_device(driver: Driver, owner: object) -> None:
    with suppress(DeviceError), driver.scope():
        driver.synchronize_all()
    del owner


def make_resident(
    program: CompiledProgram, session: Session, specs: Mapping[int, InputSpec], params: Mapping[int, Any]
) -> dict[int, DeviceOperand]:
    """The arrays `params`, by var, as operands of every call. Host arrays are copied to the device.

    CallInputError when an array does not fit.
    """
    context, stream = session.context, session.lane.stream
    alignment = _strictest_alignment(program)
    resident: dict[int, DeviceOperand] = {}
    for var, spec in specs.items():
        (operand,) = operands_of([spec], [params[var]], context, stream)
        if isinstance(operand, HostOperand):
            block = context.heap.allocate(operand.array.nbytes)
            context.upload([(block, operand.array)])
            resident[var] = DeviceOperand(block.address, operand.dtype, operand.shape, block)
        elif operand.address % alignment:
            resident[var] = _copied(context, session, operand)
        else:
            owner = Held(context.driver, operand.owner) if operand.is_foreign else operand.owner
            resident[var] = DeviceOperand(operand.address, operand.dtype, operand.shape, owner, block=operand.block)
        if isinstance(operand, DeviceOperand) and operand.ready is not None:
            operand.ready.wait()
    # This stream waits for writes of other libraries. Later calls may use other streams, so wait for them here.
    context.driver.synchronize(stream.handle)
    return resident


def _copied(context: Context, session: Session, operand: DeviceOperand) -> DeviceOperand:
    block = context.heap.allocate(operand.nbytes)
    if operand.nbytes:
        context.driver.copy(block.address, operand.address, operand.nbytes, session.lane.stream.handle)
    return DeviceOperand(block.address, operand.dtype, operand.shape, block)


def _strictest_alignment(program: CompiledProgram) -> int:
    demanded = [alignment for kernel in program.kernels for alignment in kernel.alignments]
    return max([*demanded, *(max(binding.dtype.itemsize, 1) for binding in program.inputs)], default=1)
