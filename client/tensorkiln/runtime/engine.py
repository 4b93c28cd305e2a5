"""Machine code in memory: object files that LLVM's loader links into the process, each once."""

from __future__ import annotations

import platform
import sys
import threading
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from ..errors import DeviceError
from .object_file import ObjectNeeds, object_needs

if TYPE_CHECKING:
    import llvmlite.binding as llvm

_LINKER_DEFINED: Final = frozenset({"_GLOBAL_OFFSET_TABLE_"})
_TOLD_OF_PROBLEMS: Final = 8
_MACHINE_ALIASES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
_lock = threading.Lock()
_loaded: WeakValueDictionary[str, LoadedObject] = WeakValueDictionary()


def binding() -> Any:
    """llvmlite's binding with the native target ready. DeviceError when llvmlite is not installed."""
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        raise DeviceError("running a CPU program needs llvmlite: pip install 'tensorkiln[cpu]'") from error
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def engine_of(text: str) -> llvm.ExecutionEngine:
    """An engine that compiles a module of LLVM IR for this machine. DeviceError when llvmlite is not installed.

    Without optimisations, the runtime's own modules take 6 ms each instead of 26, and calls as long.
    """
    llvm = binding()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True, opt=0)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)


def engine_of_module(name: str, constants: Mapping[str, str] = MappingProxyType({})) -> llvm.ExecutionEngine:
    """An engine with the code of the runtime's own module `name`, with its `constants` in place of their marks.

    DeviceError when llvmlite is not installed.
    """
    text = files("tensorkiln.runtime").joinpath(name).read_text("utf-8")
    for mark, value in constants.items():
        text = text.replace(mark, value)
    engine = engine_of(text)
    engine.finalize_object()
    return engine


class LoadedObject:
    """A linked object file; its code stays mapped as long as this object exists."""

    def __init__(self, engine: llvm.ExecutionEngine, digest: str) -> None:
        self._engine = engine
        self._digest = digest

    def address_of(self, entry: str) -> int:
        """The address of the function `entry`. DeviceError when the object has none."""
        address = self._engine.get_function_address(entry)
        if not address:
            raise DeviceError(f"artifact {self._digest} has no function {entry}; compile the program again")
        return address


def load_object(content: bytes, digest: str) -> LoadedObject:
    """Link the object with this digest, or return it if it is linked. Callers must have verified the digest.

    DeviceError when it is for another machine, breaks `object_rules`, refers to a symbol that this process lacks, or is
    not an object file; and on every system but Linux.
    """
    with _lock:
        found = _loaded.get(digest)
        if found is None:
            found = _loaded[digest] = _link(content, digest)
        return found


def _link(content: bytes, digest: str) -> LoadedObject:
    if sys.platform != "linux":
        raise DeviceError(f"CPU programs run on Linux, and this system is {sys.platform}")
    llvm = binding()
    # The first engine makes the process's own symbols available to the look-ups below.
    engine = engine_of("")
    needs = object_needs(content)
    host = platform.machine().lower()
    if needs.machine != _MACHINE_ALIASES.get(host, host):
        raise DeviceError(f"the program's code is for {needs.machine} and this machine is {host}")
    _require_kernels(needs)
    for name in needs.undefined:
        if name not in _LINKER_DEFINED and not llvm.address_of_symbol(name):
            raise DeviceError(f"the program's code calls {name}, which this process does not have")
    try:
        code = llvm.ObjectFileRef.from_data(content)
    except RuntimeError as error:
        raise DeviceError(f"artifact {digest} is not an object file: {error}") from error
    engine.add_object_file(code)
    engine.finalize_object()
    return LoadedObject(engine, digest)


def _require_kernels(needs: ObjectNeeds) -> None:
    """DeviceError when the object contains more than kernels; a signature does not exempt it."""
    if needs.foreign:
        raise DeviceError(
            f"the program's code calls {', '.join(needs.foreign[:_TOLD_OF_PROBLEMS])}, which no kernel needs; "
            "compile it again with a service that you trust",
            details={"symbols": list(needs.foreign)},
        )
    if needs.problems:
        raise DeviceError(
            f"the program's code has a part that no kernel has: {'; '.join(needs.problems[:_TOLD_OF_PROBLEMS])}; "
            "compile it again with a service that you trust",
            details={"problems": list(needs.problems)},
        )
