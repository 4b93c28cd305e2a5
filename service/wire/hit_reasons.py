"""Why nothing had to be compiled, as answers and figures say it."""

from __future__ import annotations

from typing import Final

from tensorkiln.spec import CacheInfo

SAME_REQUEST: Final = CacheInfo(status="hit", reason="same request")
SAME_ACTION: Final = CacheInfo(status="hit", reason="same action")
