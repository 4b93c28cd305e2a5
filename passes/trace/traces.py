"""Every op that can be computed element by element, and the function that traces it."""

from __future__ import annotations

from .constants import CONSTANTS
from .elementwise import ELEMENTWISE
from .indexing import INDEXING
from .movement import MOVEMENT
from .tracer import Trace

TRACES: dict[str, Trace] = {**CONSTANTS, **ELEMENTWISE, **INDEXING, **MOVEMENT}
