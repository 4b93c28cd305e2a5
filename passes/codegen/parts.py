"""Divide LLVM IR text into modules that can be compiled side by side."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .loop_blocks import FUNCTION

SIZE: Final = 50_000
"""Characters of LLVM IR for each part: about 0.1 s of LLVM."""
MOST: Final = 8
"""The most parts of a module. Each is an artifact of the program."""

SMALL: Final = 4096
"""Characters of an internal function that is compiled only once. Every part that calls a smaller one has its own."""

_REFERENCE: Final = re.compile(r"@(\w+)")


@dataclass(frozen=True, slots=True)
class Part:
    """The text of a module, and the names of the functions that others can call in it."""

    llvm_ir: str
    functions: frozenset[str]


def divide(llvm_ir: str) -> tuple[Part, ...]:
    """Up to `MOST` parts, the largest first; each has all functions that its functions refer to.

    Only the text decides, so that the objects of equal programs are equal on machines with any number of processors.
    """
    count = min(len(llvm_ir) // SIZE, MOST)
    functions = {found["name"]: found for found in FUNCTION.finditer(llvm_ir)}
    if count < 2:
        return (Part(llvm_ir, _callable(functions, functions)),)
    module = _Module.of(llvm_ir, functions)
    parts: list[list[str]] = [[] for _ in range(count)]
    sizes = [0] * count
    for group in sorted(module.groups(), key=lambda group: -module.size(group)):
        smallest = sizes.index(min(sizes))
        parts[smallest] += group
        sizes[smallest] += module.size(group)
    by_size = sorted(range(count), key=lambda part: -sizes[part])
    return tuple(module.part(parts[number]) for number in by_size if parts[number])


@dataclass(frozen=True, slots=True)
class _Module:
    llvm_ir: str
    functions: Mapping[str, re.Match[str]]
    references: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, llvm_ir: str, functions: Mapping[str, re.Match[str]]) -> _Module:
        references = {
            name: frozenset(_REFERENCE.findall(found[0])) & functions.keys() for name, found in functions.items()
        }
        return cls(llvm_ir, functions, references)

    def size(self, names: Iterable[str]) -> int:
        return sum(len(self.functions[name][0]) for name in names)

    def groups(self) -> Collection[Sequence[str]]:
        """The functions that are not copied, in groups without references between them."""
        kept = [name for name in self.functions if not self._is_copied(name)]
        group = {name: name for name in kept}

        def first(name: str) -> str:
            while group[name] != name:
                name = group[name]
            return name

        for name in kept:
            for other in self._needed([name]) & group.keys():
                one, two = sorted((first(name), first(other)))
                group[two] = one
        members: defaultdict[str, list[str]] = defaultdict(list)
        for name in kept:
            members[first(name)].append(name)
        return members.values()

    def part(self, names: Iterable[str]) -> Part:
        """The functions of these names, and all that they refer to."""
        needed = self._needed(names)
        pieces: list[str] = []
        end = 0
        for name, found in self.functions.items():
            pieces.append(self.llvm_ir[end : found.end() if name in needed else found.start()])
            end = found.end()
        return Part("".join((*pieces, self.llvm_ir[end:])), _callable(self.functions, needed))

    def _is_copied(self, name: str) -> bool:
        found = self.functions[name]
        return found["internal"] is not None and len(found[0]) < SMALL

    def _needed(self, names: Iterable[str]) -> frozenset[str]:
        """The functions, and all that they refer to."""
        needed: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in needed:
                needed.add(name)
                waiting += self.references[name]
        return frozenset(needed)


def _callable(functions: Mapping[str, re.Match[str]], names: Iterable[str]) -> frozenset[str]:
    """Those of the functions that others can call."""
    return frozenset(name for name in names if functions[name]["internal"] is None)
