"""Compiles and runs a small graph when it is imported: what processes that are forked afterwards need not load."""

from __future__ import annotations

import numpy as np

from tensorkiln.build import Builder, gelu
from tests.compiled import run

_b = Builder("warm")
_x = _b.input("float32", (8, 8))
_b.output(gelu(_x) @ _x)
run(_b.graph(), np.ones((8, 8), np.float32))
