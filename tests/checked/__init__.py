"""Run a compiled CPU program under check: its arrays against inaccessible pages, its work-groups in random order."""

from .fault import CheckedFault
from .run import ready, run, run_graph

__all__ = ["CheckedFault", "ready", "run", "run_graph"]
