"""Merge kernel bodies that differ only in sizes into one function with the sizes as parameters.

A network repeats few kinds of kernels at many sizes, and LLVM's time grows with the number of functions. Divisors and
the bounds of short innermost loops, unless these use vectors, stay constants, for better code.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .loop_blocks import is_vectorised, loops

SHORT: Final = 64
"""Iterations below which the bound of an innermost loop stays constant, so that LLVM can unroll and vectorise by it."""

_ALWAYS_INLINED: Final = re.compile(r"^attributes #(\d+) = \{ alwaysinline \}$", re.MULTILINE)
_BODY: Final = (
    r"^define internal void @(?P<name>\w+)\((?P<parameters>[^\n]*)\) #%s \{\n(?P<text>(?:[^}\n][^\n]*+\n|\n)*+)\}\n"
)
_CALL: Final = re.compile(r"call void @(\w+)\((.*)\)$", re.MULTILINE)
# Instructions with 64-bit integer values: no types, no vectors, no arguments that an intrinsic requires constant.
_OPERATION: Final = r"""
    ^\ +(?:
      %\d+\ =\ (?:
        (?:add|sub|mul)(?:\ nuw|\ nsw)*\ i64\ .* | phi\ i64\ .* | select\ i1\ %\d+,\ i64\ .*
        | getelementptr(?:\ inbounds|\ nuw|\ nusw)*\ \w+,\ ptr\ %\d+,\ i64\ .*
        | call\ i64\ @llvm\.[su](?:min|max)\.i64\(.*
        | (?P<bound>icmp\ \w+\ i64\ .*)
      )
      | call\ void\ @(?!llvm\.).*
    )$
"""
_SIZED: Final = re.compile(_OPERATION, re.MULTILINE | re.VERBOSE)
_INTEGER: Final = re.compile(r"i64 (-?\d+)(?=[,)]|$)|, (-?\d+)$|\[ (-?\d+)(?=,)")
"""An integer as one of the groups."""


@dataclass(frozen=True)
class _Body:
    name: str
    parameters: str
    pieces: tuple[str, ...]
    """The text between its sizes."""
    sizes: tuple[str, ...]


def share_bodies(llvm_ir: str) -> str:
    """The module with one body for all that differ only in sizes."""
    inlined = _ALWAYS_INLINED.search(llvm_ir)
    if inlined is None:
        return llvm_ir
    pattern = re.compile(_BODY % inlined[1], re.MULTILINE)
    alike: defaultdict[tuple[str, ...], list[_Body]] = defaultdict(list)
    for found in pattern.finditer(llvm_ir):
        body = _body(found["name"], found["parameters"], found["text"])
        alike[body.parameters, *body.pieces].append(body)
    definitions: dict[str, str] = {}
    calls: dict[str, tuple[str, str]] = {}
    for number, bodies in enumerate(each for each in alike.values() if len(each) > 1):
        _share(f"shared_body_{number}", bodies, definitions, calls)
    if not calls:
        return llvm_ir

    def call(found: re.Match[str]) -> str:
        if found[1] not in calls:
            return found[0]
        name, sizes = calls[found[1]]
        return f"call void @{name}({found[2]}{sizes})"

    return _CALL.sub(call, pattern.sub(lambda found: definitions.get(found["name"], found[0]), llvm_ir))


def _body(name: str, parameters: str, text: str) -> _Body:
    pieces: list[str] = []
    sizes: list[str] = []
    end = 0
    outer = [
        (loop.start, loop.header_end)
        for loop in loops(text)
        if not loop.is_innermost or is_vectorised(text[loop.start : loop.end])
    ]
    for line in _SIZED.finditer(text):
        is_bound = line["bound"] is not None and not any(start < line.start() < after for start, after in outer)
        for found in _INTEGER.finditer(line[0]):
            size = found[found.lastindex or 0]
            if is_bound and abs(int(size)) < SHORT:
                continue
            after = line.start() + found.end()
            pieces.append(text[end : after - len(size)])
            sizes.append(size)
            end = after
    return _Body(name, parameters, (*pieces, text[end:]), tuple(sizes))


def _share(name: str, bodies: Sequence[_Body], definitions: dict[str, str], calls: dict[str, tuple[str, str]]) -> None:
    """Add the shared definition for the first body, none for the others, and the callee and sizes of each call."""
    first = bodies[0]
    columns: list[tuple[str, ...]] = list(zip(*(body.sizes for body in bodies), strict=True))
    varying = list(dict.fromkeys(column for column in columns if len(set(column)) > 1))
    values = {column: f"%size.{number}" for number, column in enumerate(varying)}
    text = first.pieces[0] + "".join(
        values.get(column, column[0]) + piece for column, piece in zip(columns, first.pieces[1:], strict=True)
    )
    parameters = first.parameters + "".join(f", i64 {value}" for value in values.values())
    definitions |= dict.fromkeys((body.name for body in bodies), "")
    definitions[first.name] = f"define internal void @{name}({parameters}) noinline {{\n{text}}}\n"
    for number, body in enumerate(bodies):
        calls[body.name] = name, "".join(f", i64 {column[number]}" for column in varying)
