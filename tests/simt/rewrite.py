"""From the LLVM IR that becomes PTX to LLVM IR for the host."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from .accesses import ACCESSES, Watcher
from .errors import UnsupportedKernel
from .intrinsics import STUBS, Stub
from .intrinsics.registers import POSITIONS
from .native import host_machine, native
from .shared import SharedArray, shared_arrays
from .sites import Promise, Site
from .text import SYMBOL, lines, plain_name, unquoted

_ADDRESS_SPACE: Final = re.compile(r",? addrspace\((\d+)\)")
_FLAT: Final = frozenset({"0", "1", "3", "4", "5"})
_NVVM: Final = re.compile(r"@llvm\.nvvm\.([\w.]+)")
_RANGE: Final = re.compile(r"\brange\(i\d+ (-?\d+), (-?\d+)\) ")
_LINKAGE: Final = re.compile(r" = (?:private|internal) ")
_CONSTANT: Final = re.compile(r"^@\S+ = (?:[\w()]+ )*?constant ")
_SCOPE: Final = re.compile(r' syncscope\("[^"]*"\)')
_NARROW_ADDRESS: Final = re.compile(r"ptrtoint \(?ptr addrspace\(3\).* to i(?!64\b)")
_DEVICE_ATTRIBUTE: Final = re.compile(r' "(?:target-cpu|target-features|tune-cpu|nvvm\.[^"]*)"(?:="[^"]*")?')


@dataclass(frozen=True, slots=True)
class HostText:
    """A module for the host, in pieces.

    `references` are the symbols that each function mentions, `suspending` the functions in which a thread may have to
    wait for others, `constants` the module's own global variables outside of shared memory. All symbols have their
    sigils.
    """

    outside: str
    functions: Mapping[str, str]
    stubs: Mapping[str, str]
    sites: tuple[Site, ...]
    promises: tuple[Promise, ...]
    shared: Mapping[str, SharedArray]
    references: Mapping[str, frozenset[str]]
    suspending: frozenset[str]
    constants: tuple[str, ...]

    def reached(self, symbol: str) -> frozenset[str]:
        """The function and all that it calls, directly or not."""
        seen, waiting = {symbol}, [symbol]
        while waiting:
            fresh = {name for name in self.references[waiting.pop()] if name in self.references} - seen
            seen |= fresh
            waiting += fresh
        return frozenset(seen)

    def text(self, symbol: str) -> str:
        """A module with the function and what it needs."""
        body = "\n".join(self.functions[name] for name in sorted(self.reached(symbol)))
        stubs = (self.stubs[name] for name in sorted(set(SYMBOL.findall(body)) & self.stubs.keys()))
        return "\n".join((self.outside, body, *stubs))


def host_text(module: Any, watcher: Watcher | None = None) -> HostText:
    """The module, which `text.parsed` returned, for the host; with a watcher, every access goes through it.

    Raises UnsupportedKernel with the instruction when something has no equivalent here.
    """
    result = _Rewriter(module, watcher).result(module)
    if watcher is not None:
        _require_all_followed(module, result)
    return result


class _Rewriter:
    def __init__(self, module: Any, watcher: Watcher | None) -> None:
        self._watcher = watcher
        self._sites: list[Site] = []
        self._promises: list[Promise] = []
        self._stubs: dict[str, Stub] = {}
        self._references: dict[str, set[str]] = {}
        self._suspending: set[str] = set()
        self._constants: list[str] = []
        self._shared = shared_arrays(module, host_machine().target_data)
        named = (function.name for function in module.functions if function.is_declaration)
        self._undefined = frozenset(name for name in named if not name.startswith("llvm."))

    def result(self, module: Any) -> HostText:
        outside: list[str] = []
        functions: dict[str, list[str]] = {}
        for line in lines(module):
            if not line.function:
                outside += self._outside(line.text)
                continue
            self._references.setdefault(line.function, set()).update(SYMBOL.findall(line.text))
            inside = line.text.startswith("  ")
            rewritten = self._instruction(line.text, line.function) if inside else self._outside(line.text)
            functions.setdefault(line.function, []).extend(rewritten)
        runtime = native()
        declared = {symbol: text for text in outside if (symbol := _declared(text))}
        needed = {_declared(text): text for stub in self._stubs.values() for text in stub.declarations}
        return HostText(
            "\n".join((*outside, *(text for symbol, text in needed.items() if symbol not in declared))),
            {name: "\n".join(texts) for name, texts in functions.items()},
            {stub.symbol: stub.definition(runtime.address) for stub in self._stubs.values()},
            tuple(self._sites),
            tuple(self._promises),
            self._shared,
            {name: frozenset(symbols) for name, symbols in self._references.items()},
            frozenset(self._suspending),
            tuple(self._constants),
        )

    def _outside(self, text: str) -> Iterable[str]:
        if text.startswith("module asm"):
            raise UnsupportedKernel(f"assembly is not emulated: {text}")
        if text.startswith(("target ", "source_filename")):
            return []
        if text.startswith("declare "):
            return self._declaration(text)
        if text.startswith("@"):
            return self._variable(text)
        if text.startswith("attributes "):
            # A group must not become empty.
            return [_DEVICE_ATTRIBUTE.sub("", text).replace("{", '{ "simt"', 1)]
        return [self._flat(re.sub(r"^define (?:ptx_kernel|ptx_device) ", "define ", text))]

    def _declaration(self, text: str) -> Iterable[str]:
        name = plain_name(_declared(text))
        return [] if name.startswith("llvm.nvvm.") or name in self._undefined else [self._flat(text)]

    def _variable(self, text: str) -> Iterable[str]:
        symbol = SYMBOL.match(text)
        name = symbol.group() if symbol else ""
        if name in self._shared or name.startswith("@llvm."):
            return []
        if not _CONSTANT.search(unquoted(text)):
            raise UnsupportedKernel(f"a variable that outlives its block is not emulated: {text[:200]}")
        self._constants.append(name)
        return [self._flat(_LINKAGE.sub(" = ", text))]

    def _instruction(self, text: str, function: str) -> Iterable[str]:
        bare = unquoted(text)
        if " asm " in bare:
            raise UnsupportedKernel(f"assembly is not emulated: {text.strip()}")
        if _NARROW_ADDRESS.search(bare):
            raise UnsupportedKernel(f"shared memory has 64-bit addresses here: {text.strip()}")
        missing = self._undefined.intersection(map(plain_name, SYMBOL.findall(text)))
        if missing:
            raise UnsupportedKernel(f"the module does not define {', '.join(sorted(missing))}: {text.strip()}")
        called = _NVVM.search(text)
        if called:
            return [self._flat(self._intrinsic(text, function, called[1]))]
        flat = self._flat(_SCOPE.sub("", text))
        if self._watcher is None:
            return [flat]
        around = list(self._watcher.around(flat, len(self._sites)))
        if len(around) > 1:
            self._sites.append(Site(function, text, is_access=True))
        return around

    def _intrinsic(self, text: str, function: str, name: str) -> str:
        stub = STUBS.get(name)
        if stub is None:
            raise UnsupportedKernel(f"llvm.nvvm.{name} is not emulated: {text.strip()}")
        self._stubs[name] = stub
        if stub.suspends:
            self._suspending.add(function)
        promise = _RANGE.search(text)
        if promise and name in POSITIONS:
            self._promises.append(Promise(function, name, int(promise[1]), int(promise[2])))
        site = ""
        if stub.takes_site:
            site = f"i32 {len(self._sites)}" + (", " if stub.parameters else "")
            self._sites.append(Site(function, text, is_access=False))
        text = re.sub(r", !range !\d+", "", _RANGE.sub("", text))
        return text.replace(f"@llvm.nvvm.{name}(", f"{stub.symbol}({site}")

    def _flat(self, text: str) -> str:
        for space in _ADDRESS_SPACE.findall(text):
            if space not in _FLAT:
                raise UnsupportedKernel(f"memory of address space {space} is not emulated: {text.strip()}")
        text = _ADDRESS_SPACE.sub("", text).replace("addrspacecast ", "bitcast ")
        return SYMBOL.sub(self._shared_address, text) if self._shared else text

    def _shared_address(self, symbol: re.Match[str]) -> str:
        array = self._shared.get(symbol.group())
        return symbol.group() if array is None else f"inttoptr (i64 {array.address} to ptr)"


def _require_all_followed(module: Any, host: HostText) -> None:
    """UnsupportedKernel when LLVM knows of more accesses than the text was found to have."""
    instructions = (i for function in module.functions for block in function.blocks for i in block.instructions)
    present = sum(instruction.opcode in ACCESSES for instruction in instructions)
    followed = sum(site.is_access for site in host.sites)
    if present != followed:
        raise UnsupportedKernel(f"a watched launch would follow {followed} of the module's {present} accesses")


def _declared(text: str) -> str:
    """The symbol of a declaration; empty for anything else."""
    found = SYMBOL.search(text) if text.startswith("declare ") else None
    return found.group() if found else ""
