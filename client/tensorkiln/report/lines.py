"""Long texts of a report page in few bytes: what lines are alike in is kept once, and their numbers as differences.

The text of a stage repeats some lines with other numbers, for every node. Compression alone finds that only within its
window of 32 KiB, and it finds no numbers that count up.
"""

from __future__ import annotations

import json
import re
from itertools import islice, pairwise
from typing import Final

_HOLE: Final = "\0"
_NUMBER: Final = re.compile(r"(?<![0-9])(?:0|[1-9][0-9]{0,14})(?![0-9])")
"""A decimal that has one spelling, which a double of the browser holds with any difference of two."""


def as_lines(text: str) -> bytes | None:
    """The JSON that `lines.ts` reads back as `text`, exactly; None where that would not help.

    That is a text with NUL, which marks the numbers, and one whose lines are mostly unlike one another.

    `shapes` has each distinct line without its numbers, then a column for each number: how much it is more than in the
    line of that shape before. `lines` has the shape of each line, in their order.
    """
    if _HOLE in text:
        return None
    numbers = iter(map(int, _NUMBER.findall(text)))
    known: dict[str, int] = {}
    rows: list[list[tuple[int, ...]]] = []
    lines: list[int] = []
    for shape in _NUMBER.sub(_HOLE, text).split("\n"):
        at = known.setdefault(shape, len(known))
        if at == len(rows):
            rows.append([])
        rows[at].append(tuple(islice(numbers, shape.count(_HOLE))))
        lines.append(at)
    if 2 * len(known) > len(lines):
        return None
    shapes = [[shape, *map(_differences, zip(*rows[at], strict=True))] for shape, at in known.items()]
    # In ASCII: halves of surrogate pairs, which UTF-8 does not have, come through.
    return json.dumps({"shapes": shapes, "lines": lines}, separators=(",", ":")).encode()


def _differences(column: tuple[int, ...]) -> list[int]:
    return [after - before for before, after in pairwise((0, *column))]
