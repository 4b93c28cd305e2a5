"""The device's limits for launches, checked before anything is dispatched."""

from __future__ import annotations

from collections.abc import Iterator

from ...architectures import STATIC_SHARED_BYTES
from ...errors import CallBoundsError
from ...launch import LaunchDims
from .driver import DeviceProperties, Function

_AXES = "xyz"


def check_launch(
    kernel: str, launch: LaunchDims, dynamic_bytes: int, function: Function, device: DeviceProperties
) -> None:
    """CallBoundsError naming kernel, limit and value when the device does not allow the launch."""
    for limit, value, maximum in _limits(launch, dynamic_bytes, function, device):
        if value > maximum:
            raise CallBoundsError(
                f"kernel {kernel} has {value} as its {limit}, and the GPU ({device.name}) allows {maximum}",
                details={"kernel": kernel, "limit": limit, "value": value, "maximum": maximum},
            )


def _limits(
    launch: LaunchDims, dynamic_bytes: int, function: Function, device: DeviceProperties
) -> Iterator[tuple[str, int, int]]:
    block = launch.local_size or (1, 1, 1)
    for axis, value, maximum in zip(_AXES, launch.global_size, device.max_grid, strict=True):
        yield f"grid in {axis}", value, maximum
    for axis, value, maximum in zip(_AXES, block, device.max_block, strict=True):
        yield f"block in {axis}", value, maximum
    threads = block[0] * block[1] * block[2]
    yield "threads per block", threads, min(device.max_threads, function.max_threads)
    shared = function.static_shared_bytes + dynamic_bytes
    yield "bytes of shared memory per block", shared, device.max_shared_bytes


def needs_permission(function: Function, dynamic_bytes: int) -> bool:
    """Whether the launch needs more shared memory than a kernel gets without `allow_shared`."""
    return function.static_shared_bytes + dynamic_bytes > STATIC_SHARED_BYTES
