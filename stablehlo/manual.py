"""The manual's table of supported operations, by family."""

from __future__ import annotations

from .operators import COMPLEX, FAMILIES


def support_table() -> str:
    """The operations by family, in Markdown."""
    rows = [
        f"| {family} | {', '.join(f'`{_short(name)}`' for name in sorted(names))} |"
        for family, names in FAMILIES.items()
    ]
    numbers = ", ".join(f"`{_short(name)}`" for name in sorted(COMPLEX))
    return "\n".join(
        ["| family | operations |", "|---|---|", *rows, f"| *all that take complex numbers* | {numbers} |"]
    )


def _short(name: str) -> str:
    return name.removeprefix("stablehlo.")
