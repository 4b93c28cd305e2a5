"""The server of tensorkiln under one name: what the distribution `tensorkiln-server` installs.

A wheel has `dialect`, `stablehlo`, `passes` and `service` inside this package. In the repository they lie beside it and
are imported by their own names; the build of a wheel (`hatch_build.py`) rewrites the imports.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

PREFIX: Final = f"{__name__}." if Path(__file__).with_name("service").is_dir() else ""
"""What stands before `service` and the others in the names of modules: empty in the repository."""
