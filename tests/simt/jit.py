"""A rewritten kernel as code of the host."""

from __future__ import annotations

import re
from typing import Any, Final, cast

from tensorkiln.runtime.object_file import object_needs

from .entries import Entry
from .errors import UnsupportedKernel
from .native import host_machine, llvm, optimise, runtime_text
from .rewrite import HostText
from .text import plain_name

_CALLER: Final = "simt.call"
_NARROW: Final = re.compile(r"\b(?:half|bfloat)\b")
_LINKER_DEFINED: Final = frozenset({"_GLOBAL_OFFSET_TABLE_"})


class Code:
    """A compiled kernel; the code stays mapped as long as this lives.

    `level` is LLVM's: 0 compiles some ten times faster than 1, and what it compiles runs some three times slower.
    """

    def __init__(self, host: HostText, entry: Entry, level: int) -> None:
        text = host.text(entry.symbol)
        module = llvm.parse_assembly("\n".join((text, _caller(entry), _narrow_floats(text))))
        module.verify()
        machine = host_machine(level)
        optimise(module, machine, level)
        self._sizes = {
            variable.name: machine.target_data.get_abi_size(variable.global_value_type)
            for variable in module.global_variables
        }
        objects: list[bytes] = []
        self._engine: Any = llvm.create_mcjit_compiler(module, machine)
        self._engine.set_object_cache(lambda _, content: objects.append(content))
        self._engine.finalize_object()
        for content in objects:
            _require_symbols(content)

    @property
    def address(self) -> int:
        """Of a function that takes the address of the kernel's arguments, 8 bytes each."""
        return cast(int, self._engine.get_function_address(_CALLER))

    def constant(self, symbol: str) -> tuple[int, int]:
        """Address and bytes of a global variable; 0 bytes when the code does not have it."""
        name = plain_name(symbol)
        if name not in self._sizes:
            return 0, 0
        return cast(int, self._engine.get_global_value_address(name)), cast(int, self._sizes[name])


def _narrow_floats(text: str) -> str:
    """Conversions of 16-bit floats, for hosts without the instructions; nothing when the text has no such type."""
    return runtime_text("narrow.ll") if _NARROW.search(text) else ""


def _require_symbols(content: bytes) -> None:
    """UnsupportedKernel when the object calls what this process lacks: LLVM would jump to address 0."""
    needs = object_needs(content)
    for name in needs.undefined:
        if name not in _LINKER_DEFINED and not llvm.address_of_symbol(name):
            raise UnsupportedKernel(f"the code for this host calls {name}, which the process does not have")


def _caller(entry: Entry) -> str:
    slots = range(len(entry.parameters))
    kinds = [parameter.kind for parameter in entry.parameters]
    loads = "".join(
        f"  %p{slot} = getelementptr i64, ptr %arguments, i64 {slot}\n  %v{slot} = load {kinds[slot]}, ptr %p{slot}\n"
        for slot in slots
    )
    values = ", ".join(f"{kinds[slot]} %v{slot}" for slot in slots)
    return f'define void @"{_CALLER}"(ptr %arguments) {{\n{loads}  call void {entry.symbol}({values})\n  ret void\n}}'
