"""LLVM IR as LLVM itself prints it: one instruction a line, spelled one way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from .errors import UnsupportedKernel
from .native import llvm

SYMBOL: Final = re.compile(r'@(?:"[^"]*"|[-\w.$]+)')
"""The name of a global, with its sigil."""

_STRING: Final = re.compile(r'"[^"]*"')
_OPENING: Final = "([{<"
_CLOSING: Final = ")]}>"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a module, and the function whose body it belongs to, with its sigil; empty outside of functions."""

    text: str
    function: str


def parsed(text: str) -> Any:
    """The module, verified; old spellings of intrinsics are upgraded on the way. UnsupportedKernel when it is none."""
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise UnsupportedKernel(f"the text is no LLVM IR that this LLVM reads: {error}") from error
    return module


def lines(module: Any) -> Iterator[Line]:
    """The lines of the module without blank lines and comments."""
    function = ""
    for raw in str(module).split("\n"):
        text = "" if raw.startswith((";", "^")) else raw
        if text.startswith("define "):
            name = SYMBOL.search(text)
            function = name.group() if name else ""
        if text:
            yield Line(text, function)
        if text == "}":
            function = ""


def unquoted(text: str) -> str:
    """The text with every string emptied: what may be searched for keywords."""
    return _STRING.sub('""', text)


def operands(text: str) -> list[str]:
    """What stands between the commas that are in no bracket and no string."""
    pieces: list[str] = []
    depth, begin, quoted = 0, 0, False
    for at, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == "," and depth == 0:
            pieces.append(text[begin:at].strip())
            begin = at + 1
    pieces.append(text[begin:].strip())
    return pieces


def plain_name(symbol: str) -> str:
    """The name without sigil and quotes."""
    return symbol.removeprefix("@").strip('"')
