"""`python -m tensorkiln_server`: run the compile service."""

from __future__ import annotations

import sys

from .process.interpreter import end_process
from .server.command import FAILED, main

if __name__ == "__main__":
    status = main()
    if status == FAILED:
        end_process(status)  # threads of the store may still run
    sys.exit(status)
