"""What a fork server calls before it forks, so that its jobs begin with everything imported and used once.

These are names: who starts a fork server must not load what it loads.
"""

from __future__ import annotations

from typing import Final

COMPILING: Final = "service.sandbox.jobs.rehearsal:rehearse"
"""For every kind of job."""
READING: Final = "service.sandbox.jobs.reading:rehearse"
"""For a service whose farm compiles: the compiler is not loaded."""
