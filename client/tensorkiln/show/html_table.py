"""HTML tables for notebooks. All contents are escaped, because names are untrusted text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

MAX_ROWS: Final = 100
_CELL: Final = 'style="text-align:left;vertical-align:top;padding:2px 8px"'


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a title, at most `MAX_ROWS` rows, and the number of omitted rows."""
    made = list(rows)
    head = "".join(f"<th {_CELL}>{escape(each)}</th>" for each in columns)
    body = "".join(
        "<tr>" + "".join(f"<td {_CELL}>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in made[:MAX_ROWS]
    )
    more = f"<p>{len(made) - MAX_ROWS} more</p>" if len(made) > MAX_ROWS else ""
    caption = f'<caption style="text-align:left;font-weight:bold">{escape(title)}</caption>'
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def size_text(size: int) -> str:
    """Bytes in the unit that keeps the number short."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} bytes"


def html_lines(title: str, lines: Iterable[str]) -> str:
    """A title with lines below it."""
    return f"<div><b>{escape(title)}</b>{''.join(f'<br>{escape(line)}' for line in lines)}</div>"
