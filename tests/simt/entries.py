"""The kernels of a module: what a launch has to know about each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from .errors import UnsupportedKernel
from .rewrite import HostText
from .shared import SharedArray
from .sites import Promise
from .text import SYMBOL, lines, plain_name

_BLOCK_BOUND: Final = re.compile(r'"nvvm\.(maxntid|reqntid)"="([\d,]+)"')
_ALIGN: Final = re.compile(r"\balign (\d+)")
_KINDS: Final = frozenset({"ptr", "i64", "i32", "i16", "i8", "i1", "float", "double"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter's type in LLVM IR, and the alignment that an address passed for it must have."""

    kind: str
    alignment: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel; `symbol` is its name with the sigil.

    `max_threads` and `block` are what the kernel declares (`maxntid`, `reqntid`), if it does.
    """

    name: str
    symbol: str
    parameters: tuple[Parameter, ...]
    shared: tuple[SharedArray, ...]
    promises: tuple[Promise, ...]
    suspends: bool
    max_threads: int | None
    block: tuple[int, ...] | None

    @property
    def static_shared_bytes(self) -> int:
        """Bytes of the static shared arrays that the kernel uses, laid out one after the other."""
        end = 0
        for array in self.shared:
            if not array.dynamic:
                end = -(-end // array.alignment) * array.alignment + array.size
        return end

    @property
    def uses_dynamic_shared(self) -> bool:
        """Whether the kernel mentions an array whose size the launch gives."""
        return any(array.dynamic for array in self.shared)


def entries(module: Any, host: HostText) -> Mapping[str, Entry]:
    """The module's kernels by name. UnsupportedKernel when one has a parameter of an unknown kind."""
    symbols = [name.group() for line in lines(module) for name in (_kernel_name(line.text),) if name]
    functions = {function.name: function for function in module.functions}
    return {plain_name(symbol): _entry(symbol, functions[plain_name(symbol)], host) for symbol in symbols}


def _kernel_name(text: str) -> re.Match[str] | None:
    return SYMBOL.search(text) if text.startswith("define ptx_kernel ") else None


def _entry(symbol: str, function: Any, host: HostText) -> Entry:
    reached = host.reached(symbol)
    bounds = {kind: _numbers(value) for kind, value in _BLOCK_BOUND.findall(" ".join(_attributes(function)))}
    mentioned = {name for at in reached for name in host.references[at]}
    largest = bounds.get("maxntid") or bounds.get("reqntid")
    return Entry(
        plain_name(symbol),
        symbol,
        tuple(_parameter(symbol, argument) for argument in function.arguments),
        tuple(array for name, array in host.shared.items() if name in mentioned),
        tuple(promise for promise in host.promises if promise.function in reached),
        not reached.isdisjoint(host.suspending),
        prod(largest) if largest else None,
        bounds.get("reqntid"),
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _attributes(value: Any) -> Iterable[str]:
    return [attribute.decode() for attribute in value.attributes]


def _parameter(symbol: str, argument: Any) -> Parameter:
    kind, attributes = str(argument.type), " ".join(_attributes(argument))
    if kind not in _KINDS or "byval" in attributes:
        raise UnsupportedKernel(f"{symbol} has a parameter of type {kind} {attributes}, which cannot be passed here")
    alignment = _ALIGN.search(attributes)
    return Parameter(kind, int(alignment[1]) if alignment else 1)
