"""Which exports are refused and why; all others are usable. The table of docs/models.md is made of this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.models.exports import EXPORTS
from tests.models.families import EXPORTERS, FAMILIES, FORMS

REFUSALS: Final[Mapping[str, str]] = {}
"""The message of the UnsupportedGraphError for each export that has one."""

USABLE: Final = tuple(export for export in EXPORTS if str(export) not in REFUSALS)
REFUSED: Final = tuple(export for export in EXPORTS if str(export) in REFUSALS)


def rendered(refusals: Mapping[str, str]) -> str:
    """A row for each family and exporter, a column for each form; the reasons, each once, below."""
    reasons = list(dict.fromkeys(_reason(message) for message in refusals.values()))
    lines = [f"| model | exporter | {' | '.join(FORMS)} |", "|---" * (2 + len(FORMS)) + "|"]
    for family in FAMILIES:
        for exporter in EXPORTERS:
            cells = ["-"] * len(FORMS)
            for place, form in enumerate(family.forms):
                message = refusals.get(f"{family.name}-{exporter}-{form}")
                cells[place] = "usable" if message is None else f"refused ({reasons.index(_reason(message)) + 1})"
            lines.append(f"| {family.name} | {exporter} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"{number}. {reason}" for number, reason in enumerate(reasons, 1))])


def _reason(message: str) -> str:
    """The message without the name of the node."""
    node, _, reason = message.partition(": ")
    return f"`{node.partition(' ')[0]}`: {reason}"
