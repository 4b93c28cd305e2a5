"""Attach attributes to every function defined in LLVM IR text; llvmlite has no call for it."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = re.compile(r'@(?:"[^"]*"|[-\w.$]+)\(')
_PAREN = re.compile(r'"[^"]*"|[()]')
# What the grammar allows between the parameter list and the function's attributes.
_BEFORE_ATTRIBUTES = re.compile(r"\s*(?:(?:local_)?unnamed_addr|addrspace\(\d+\))?")


def attach(text: str, attributes: Mapping[str, str]) -> str:
    """The module with these string attributes on each definition.

    An attribute that a function already has takes precedence over the target's default.
    """
    group = " ".join(f'"{name}"="{value}"' for name, value in attributes.items())
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line.startswith("define "):
            at = _attribute_position(line)
            lines[number] = f"{line[:at]} {group}{line[at:]}"
    return "\n".join(lines)


def _attribute_position(line: str) -> int:
    """Where attributes go; the end of a line that is no definition, so that LLVM's parser reports it."""
    name = _NAME.search(line)
    if name is None:
        return len(line)
    depth = 0
    for token in _PAREN.finditer(line, name.end() - 1):
        depth += {"(": 1, ")": -1}.get(token.group(), 0)
        if depth == 0:
            between = _BEFORE_ATTRIBUTES.match(line, token.end())
            return between.end() if between else token.end()
    return len(line)
