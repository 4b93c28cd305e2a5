"""The report of a compiled program: one self-contained HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..on_first_use import on_first_use

if TYPE_CHECKING:
    from .report import Report as Report

# Code that only serves stored records imports `.page` alone, without the program models.
__getattr__ = on_first_use(__name__, {"report": "Report"})

__all__ = ["Report"]
