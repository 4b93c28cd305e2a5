"""`python -m service`: run the compile service."""

from __future__ import annotations

import sys

from .command import FAILED, main
from .leave import leave

if __name__ == "__main__":
    status = main()
    if status == FAILED:
        leave(status)  # the store may be at work still
    sys.exit(status)
