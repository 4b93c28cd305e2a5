"""Run a compiled CPU program under check: its arrays against inaccessible pages, its work-groups in random order."""

from .fault import CheckedFault
from .run import compiled_and_run, ready, run

__all__ = ["CheckedFault", "compiled_and_run", "ready", "run"]
