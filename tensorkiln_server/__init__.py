"""The server of tensorkiln: the only package of the distribution `tensorkiln-server`.

A wheel has `dialect`, `stablehlo`, `passes` and `service` inside this package. In the repository these are top-level
packages; the build of a wheel (`hatch_build.py`) rewrites the imports.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

PREFIX: Final = f"{__name__}." if Path(__file__).with_name("service").is_dir() else ""
"""The prefix of `service` and the other packages in module names; empty in the repository."""
