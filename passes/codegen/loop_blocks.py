"""The functions of a module of LLVM IR and their loops, found in the text as the bindings print it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

FUNCTION: Final = re.compile(
    r"^define (?P<internal>internal )?[^\n]*?@(?P<name>\w+)\([^\n]*\{\n(?P<text>(?:[^}\n][^\n]*+\n|\n)*+)\}\n",
    re.MULTILINE,
)
"""A definition; `text` is what is between its braces."""

_BLOCK: Final = re.compile(r"\n(?P<label>\d+): +; preds = (?P<before>[^\n]*)")
_LABEL: Final = re.compile(r"%(\d+)")
_VECTOR: Final = re.compile(r"<\d+ x ")
_CALL: Final = re.compile(r"call void @(?!llvm\.)")
_MEMORY: Final = re.compile(r"\b(?:load|store) ")


@dataclass(frozen=True, slots=True)
class Loop:
    """Positions in the text of a function: of the loop, of its first block behind that, and its end."""

    start: int
    header_end: int
    end: int
    is_innermost: bool


def loops(text: str) -> Iterator[Loop]:
    """The loops of a function's text, the last one first.

    Blocks are numbered in order, and those of a loop follow each other, as they were structured control flow. Blocks
    with other labels are not found.
    """
    blocks = list(_BLOCK.finditer(text))
    ends = {int(block["label"]): after.start("label") for block, after in pairwise(blocks)}
    inner = len(text)
    for block in reversed(blocks):
        label = int(block["label"])
        latch = max(map(int, _LABEL.findall(block["before"])))
        if latch >= label:
            end = ends.get(latch, len(text))
            start = block.start("label")
            yield Loop(start, ends.get(label, len(text)), end, end <= inner)
            inner = start


def is_vectorised(loop: str) -> bool:
    """Whether LLVM's vectoriser has nothing to do in the text of an innermost loop.

    It uses vectors, calls a function of the module, or does not access memory, as one that prefetches.
    """
    return any(pattern.search(loop) for pattern in (_VECTOR, _CALL)) or not _MEMORY.search(loop)
