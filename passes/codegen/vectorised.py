"""Find the functions in which LLVM's vectoriser has nothing to do: their loops are in vectors already.

The full pipeline takes ten times as long for them as the few passes that they need.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

_FUNCTION: Final = re.compile(r"^define [^\n]*?@(?P<name>\w+)\([^\n]*\{\n(?P<text>.*?)^\}$", re.MULTILINE | re.DOTALL)
_BLOCK: Final = re.compile(r"^(?P<label>\d+): +; preds = (?P<before>[^\n]*)$", re.MULTILINE)
_UNKNOWN: Final = re.compile(r"^(?!\d+: +; preds = )[^ \n]+:", re.MULTILINE)
"""A block that is not as the bindings print it."""
_LABEL: Final = re.compile(r"%(\d+)")
_VECTOR: Final = re.compile(r"<\d+ x ")
_CALL: Final = re.compile(r"call void @(?!llvm\.)(\w+)\(")


def vectorised(llvm_ir: str) -> frozenset[str]:
    """The names of the functions of a module, as the bindings print it, without a loop for the vectoriser.

    Every innermost loop uses vectors or calls a function of the module. A function without loops counts with those that
    it calls: they may be inlined.
    """
    texts = {found["name"]: found["text"] for found in _FUNCTION.finditer(llvm_ir)}
    loops = {name: list(_innermost_loops(text)) for name, text in texts.items() if not _UNKNOWN.search(text)}
    own = {name for name, found in loops.items() if all(_VECTOR.search(loop) or _CALL.search(loop) for loop in found)}
    return frozenset(name for name in own if loops[name] or own.issuperset(_CALL.findall(texts[name])))


def _innermost_loops(text: str) -> Iterator[str]:
    """The text of each loop without a loop inside, from its header to the end of its last block.

    Blocks are numbered in order, and those of a loop follow each other, as they were structured control flow.
    """
    blocks = list(_BLOCK.finditer(text))
    ends = {int(block["label"]): after.start() for block, after in pairwise(blocks)}
    inner = len(text)
    for block in reversed(blocks):
        latch = max(map(int, _LABEL.findall(block["before"])))
        if latch >= int(block["label"]):
            end = ends.get(latch, len(text))
            if end <= inner:
                yield text[block.start() : end]
            inner = block.start()
