"""What a fork server calls before it forks, so that its tasks begin with everything imported and used once.

These are names: who starts a fork server must not load what it loads.
"""

from __future__ import annotations

from typing import Final

COMPILING: Final = f"{__package__}.tasks.rehearsal:rehearse"
"""For those that compile."""
AFTERWARDS: Final = f"{__package__}.tasks.rehearsal:load_the_rest"
"""For those that compile, in the first quiet moment."""
READING: Final = f"{__package__}.tasks.reading:rehearse"
"""For those that read requests and write answers: the compiler is not loaded."""
