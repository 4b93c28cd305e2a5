"""The drivers of the GPUs of this machine, each opened once."""

from __future__ import annotations

import threading
from functools import cache

from ...errors import DeviceError
from .driver import Driver

INSTALL = "pip install 'tensorkiln[cuda]'"
_lock = threading.Lock()


def open_driver(ordinal: int = 0) -> Driver:
    """The driver of GPU number `ordinal`, counted as CUDA counts (`CUDA_VISIBLE_DEVICES` hides and reorders).

    DeviceError when the Python package, NVIDIA's driver or the GPU is missing.
    """
    with _lock:
        return _opened(ordinal)


@cache
def _opened(ordinal: int) -> Driver:
    try:
        from .bindings import BindingsDriver
    except ImportError as error:
        raise DeviceError(f"running a CUDA program needs cuda-bindings: {INSTALL} ({error})") from error
    return BindingsDriver(ordinal)
