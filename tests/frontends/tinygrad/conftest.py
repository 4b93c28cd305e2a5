"""tinygrad computes by Python itself here, which needs no compiler; without tinygrad its tests are left out."""

from __future__ import annotations

import os
from importlib.util import find_spec

os.environ.setdefault("DEV", "PYTHON")
os.environ.setdefault("CACHELEVEL", "0")
collect_ignore_glob = [] if find_spec("tinygrad") else ["test_*.py"]
