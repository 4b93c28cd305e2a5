"""`python -m tensorkiln_server`: run the compile service."""

from __future__ import annotations

import sys

from .process.command import FAILED, main
from .process.exit import end_process

if __name__ == "__main__":
    status = main()
    if status == FAILED:
        end_process(status)  # the store may be at work still
    sys.exit(status)
