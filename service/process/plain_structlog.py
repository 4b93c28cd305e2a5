"""structlog without rich, which takes longer to load than the rest of structlog and is never used.

The log is JSON; rich is installed beside the service wherever the command line of the SDK is.
"""

from __future__ import annotations

import sys


def load() -> None:
    """Import structlog, unless it or rich has been imported already."""
    if "structlog" in sys.modules or "rich" in sys.modules:
        return
    # None makes the import of this module fail.
    sys.modules["rich"] = None  # pyright: ignore[reportArgumentType]
    try:
        import structlog as structlog
    finally:
        del sys.modules["rich"]
