"""The table of the manual: what is translated, by family."""

from __future__ import annotations

from .operators import FAMILIES


def support_table() -> str:
    """The operations by family, in Markdown."""
    rows = [
        f"| {family} | {', '.join(f'`{_short(name)}`' for name in sorted(names))} |"
        for family, names in FAMILIES.items()
    ]
    return "\n".join(["| family | operations |", "|---|---|", *rows])


def _short(name: str) -> str:
    return name.removeprefix("stablehlo.")
