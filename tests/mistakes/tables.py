"""The tables of mistakes: for each line that is written, the message."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

_TABLES: Final = tomllib.loads((Path(__file__).parent / "mistakes.toml").read_text())

BUILDER: Final[dict[str, str]] = _TABLES["builder"]
DOCUMENTS: Final[dict[str, str]] = _TABLES["documents"]
REQUESTS: Final[dict[str, str]] = _TABLES["requests"]
CALLS: Final[dict[str, str]] = _TABLES["calls"]
SETUP: Final[dict[str, str]] = _TABLES["setup"]
