"""The report of a compiled program: one HTML file with all that is known of it, that needs no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..on_first_use import on_first_use

if TYPE_CHECKING:
    from .report import Report as Report

# Whatever answers requests imports `.page` alone, and none of the models of programs.
__getattr__ = on_first_use(__name__, {"report": "Report"})

__all__ = ["Report"]
