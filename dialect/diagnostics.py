"""Convert MLIR diagnostics of a module to an error that names the user's nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorkiln.errors import DiagnosticError

from .locations import node_pointers
from .mlir import ir

MAX_TEXT = 4000
"""Most characters kept of a diagnostic's text; a note may print a whole op with its constants."""


def to_error(error: ir.MLIRError, stage: str) -> DiagnosticError:
    """The error of a stage whose pass, verifier or parser raised `error`.

    Its pointers are the nodes at the locations of the diagnostics and their notes, each once, the reported one first.
    `details` holds `stage` and the text of every diagnostic.
    """
    diagnostics = [diagnostic for top in error.error_diagnostics for diagnostic in _with_notes(top)]
    pointers = dict.fromkeys(pointer for diagnostic in diagnostics for pointer in node_pointers(diagnostic.location))
    texts = [_shortened(diagnostic.message) for diagnostic in diagnostics]
    reason = texts[0] if texts else _shortened(error.message)
    return DiagnosticError(
        f"stage {stage}: {reason}", pointers=tuple(pointers), details={"stage": stage, "diagnostics": texts}
    )


def _with_notes(diagnostic: Any) -> Iterator[Any]:
    yield diagnostic
    for note in diagnostic.notes:
        yield from _with_notes(note)


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"
