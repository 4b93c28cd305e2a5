"""Warm-ups that a fork server calls before it forks, so that tasks start with modules imported and used once.

They are strings, because the process that starts a fork server must not import these modules.
"""

from __future__ import annotations

from typing import Final

COMPILING: Final = f"{__package__}.tasks.rehearsal:rehearse"
"""For fork servers that compile."""
AFTERWARDS: Final = f"{__package__}.tasks.rehearsal:load_the_rest"
"""For fork servers that compile, when first idle."""
READING: Final = f"{__package__}.tasks.reading:rehearse"
"""For fork servers that only read requests and write answers: the compiler is not loaded."""
