"""structlog without rich: what that would draw, and takes longer to load than all else of structlog, is never shown.

The log is JSON; rich is installed beside the service wherever the command line of the SDK is.
"""

from __future__ import annotations

import sys


def load() -> None:
    """Import structlog, unless it or rich has been imported already."""
    if "structlog" in sys.modules or "rich" in sys.modules:
        return
    # To Python this is a module that is not there.
    sys.modules["rich"] = None  # pyright: ignore[reportArgumentType]
    try:
        import structlog as structlog
    finally:
        del sys.modules["rich"]
