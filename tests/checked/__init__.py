"""Checked runs of CPU programs: arrays at inaccessible guard pages, work-groups in random order."""

from .fault import CheckedFault
from .run import ready, run, run_graph

__all__ = ["CheckedFault", "ready", "run", "run_graph"]
