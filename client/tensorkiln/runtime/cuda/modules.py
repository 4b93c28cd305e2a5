"""Code on a device: the choice of its form, checks, and loading."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import Final

from ...architectures import ARCHITECTURES
from ...errors import DeviceError
from ...ptx_rules import external_declarations
from ...spec import ProgramSpec
from .driver import DeviceProperties, Driver, Function

_ELF: Final = b"\x7fELF"
_TOLD_OF_PROBLEMS: Final = 8


class Module:
    """Loaded code, unloaded when garbage-collected. DeviceError when it cannot be loaded or fails `require_kernels`."""

    def __init__(self, driver: Driver, code: bytes) -> None:
        require_kernels(code)
        self._driver = driver
        self._handle = driver.load_module(code)
        self._functions: dict[str, Function] = {}
        weakref.finalize(self, _unload, driver, self._handle).atexit = False

    def function(self, name: str) -> Function:
        """The kernel of that name. DeviceError when there is none."""
        found = self._functions.get(name)
        if found is None:
            found = self._functions[name] = self._driver.function(self._handle, name)
        return found


def _unload(driver: Driver, handle: int) -> None:
    with suppress(DeviceError), driver.scope():
        driver.synchronize_all()
        driver.unload_module(handle)


def require_kernels(code: bytes) -> None:
    """DeviceError when PTX has external declarations that no kernel needs. Assembled code is not checked."""
    found = [] if code.startswith(_ELF) else external_declarations(code.decode("utf-8", "replace"))
    if found:
        raise DeviceError(
            f"the program's code has a part that no kernel has: {'; '.join(found[:_TOLD_OF_PROBLEMS])}; "
            "compile it again with a service that you trust",
            details={"problems": found},
        )


def require_device(arch: str, device: DeviceProperties) -> None:
    """DeviceError when code for `arch`, PTX or binary, cannot run on the device."""
    if not ARCHITECTURES[arch].runs_on(device.capability):
        major, minor = device.capability
        raise DeviceError(
            f"the program is for {arch} and the GPU ({device.name}) is sm_{major}{minor}; "
            f"compile it for cuda:sm_{major}{minor}",
            details={"program": arch, "device": f"sm_{major}{minor}"},
        )


def code_digest(spec: ProgramSpec, arch: str, device: DeviceProperties) -> str:
    """The digest of the code to load: the binary for exactly this device, else the PTX, which its driver compiles.

    DeviceError when the kernel has no code.
    """
    if spec.artifact is None:
        raise DeviceError(f"kernel {spec.name} has no code; compile the program for a cuda target")
    if spec.binary is not None and ARCHITECTURES[arch].capability == device.capability:
        return spec.binary
    return spec.artifact
