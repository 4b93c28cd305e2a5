"""Programs on NVIDIA GPUs. Nothing here imports `cuda.bindings` before a program is called."""

from .array import DeviceArray
from .driver import Arguments, DeviceProperties, Driver, Function, OutOfDeviceMemoryError
from .native import open_driver

__all__ = [
    "Arguments",
    "DeviceArray",
    "DeviceProperties",
    "Driver",
    "Function",
    "OutOfDeviceMemoryError",
    "open_driver",
]
