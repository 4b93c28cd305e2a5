"""The text `ORIGINS`, which maps the lines of stage texts to graph nodes.

It is JSON. `calls` are the calls of kernels in the graph, each with its `kernel`, its `nodes`, the node of each
operation of the kernel (`body`), and those of each value that it computes with loops of its own (`roots`). `origins`
are `[kernel, is_loops, members]`: operations of a kernel by position, or roots. `groups` are lists of origins. `lines`
has runs of lines by text name, in one flat list: `lines without, lines with, group` for each run.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import Any, Final

from dialect.mlir import func, ir, llvm
from dialect.module import graph_function

from .codegen import debug_lines
from .origins import FILE, Origins, numbers_in
from .values import BODY, NODES, ROOTS

ORIGINS: Final = "origins"
"""The name of the text."""
_DEFINITION: Final = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_ALIAS: Final = re.compile(r"#loc\d*")
_LOCATION: Final = re.compile(r" loc\((.*)\)$")


class OriginLines:
    """Collects the origins of the lines of one compile's texts."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._groups: dict[tuple[int, ...], int] = {}
        self._lines: dict[str, list[int]] = {}
        self._calls: list[dict[str, Any]] = []

    def group(self, numbers: tuple[int, ...]) -> int:
        """The number, from 1, of a set of origins; 0 for the empty set."""
        if not numbers:
            return 0
        ordered = tuple(sorted(numbers))
        return self._groups.setdefault(ordered, len(self._groups) + 1)

    def read_calls(self, module: ir.Module) -> None:
        """Record the nodes of each kernel call in `module`."""
        for op in graph_function(module).regions[0].blocks[0].operations:
            if not isinstance(op, func.CallOp) or BODY not in op.attributes:
                continue
            attributes = op.attributes
            roots = ir.ArrayAttr(attributes[ROOTS]) if ROOTS in attributes else ()
            self._calls.append(
                {
                    "kernel": ir.FlatSymbolRefAttr(attributes["callee"]).value,
                    "nodes": list(ir.DenseI64ArrayAttr(attributes[NODES])),
                    "body": list(ir.DenseI64ArrayAttr(attributes[BODY])),
                    "roots": [list(ir.DenseI64ArrayAttr(each)) for each in roots],
                }
            )

    def read_module(self, name: str, located: str) -> None:
        """Record a module text with locations; the text `name` is the same without them."""
        lines = located.split("\n")
        known = _aliases(lines)
        self.keep(name, [self.group(found) for found in _numbers(lines, known)])

    def read_llvm(self, name: str, module: ir.Module, llvm_ir: str) -> list[int]:
        """Record the LLVM IR of `module`; returns the group of each line."""
        known = debug_lines.numbers_of_functions(module, FILE)
        callees = debug_lines.callees(str(llvm.translate_module_to_llvmir(module.operation)))
        groups = debug_lines.numbers_of_lines(llvm_ir, callees, known, self.group)
        self.keep(name, groups)
        return groups

    def keep(self, name: str, groups: list[int]) -> None:
        """Record the group of each line of a text."""
        runs: list[int] = []
        end, at = 0, 0
        while at < len(groups):
            start, group = at, groups[at]
            while at < len(groups) and groups[at] == group:
                at += 1
            if group:
                runs += start - end, at - start, group - 1
                end = at
        if runs:
            self._lines[name] = runs

    def text(self) -> str:
        """The recorded origins, as JSON."""
        return json.dumps(
            {
                "calls": self._calls,
                "origins": [[origin.kernel, int(origin.is_loops), origin.members] for origin in self._origins.all],
                "groups": [[number - 1 for number in numbers] for numbers in self._groups],
                "lines": self._lines,
            },
            separators=(",", ":"),
        )


def _aliases(lines: list[str]) -> dict[str, tuple[int, ...]]:
    """The origins of each location alias."""
    stated = {found[1]: found[2] for line in lines if (found := _DEFINITION.match(line))}
    known: dict[str, tuple[int, ...]] = {}

    def of(alias: str) -> tuple[int, ...]:
        if alias not in known:
            text = stated[alias]
            known[alias] = tuple(
                dict.fromkeys((*numbers_in(text), *(each for inner in _ALIAS.findall(text) for each in of(inner))))
            )
        return known[alias]

    for alias in stated:
        of(alias)
    return known


def _numbers(lines: list[str], known: dict[str, tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The origins of each line that defines no alias; the first line of an operation with regions gets those of the
    operation.
    """
    found: list[tuple[int, ...]] = []
    open_at: defaultdict[int, list[int]] = defaultdict(list)
    for line in lines:
        if line.startswith("#loc"):
            continue
        place = _LOCATION.search(line)
        # The last location of a line is the operation's; others are those of arguments.
        alias = place[1].rpartition("loc(")[2] if place else ""
        here = known.get(alias, ())
        indent = len(line) - len(line.lstrip())
        closes = line.lstrip().startswith("}")
        if closes and not line.endswith("{"):
            for at in open_at.pop(indent, ()):
                found[at] = here
        if line.endswith("{"):
            open_at[indent].append(len(found))
        found.append(here)
    return found
