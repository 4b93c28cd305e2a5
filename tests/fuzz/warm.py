"""Judges a small graph when it is imported: what processes that are forked afterwards need not load.

On this machine and in the emulator of a GPU, with the texts of all stages.
"""

from __future__ import annotations

from tensorkiln.build import Builder, gelu
from tensorkiln.sdk import NATIVE
from tests.emulated import TARGET

from .composer import Case, Way
from .oracles import judge

_b = Builder("warm")
_x = _b.input("float32", (8, 8))
_b.output(gelu(_x) @ _x)
judge(Case(_b.graph(), {}, 0, (Way(NATIVE), Way(TARGET))))
