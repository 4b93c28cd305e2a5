"""The end of a process that has used the store."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def end_process(status: int) -> NoReturn:
    """End this process with an exit status. What is registered for its exit is not run.

    The store's library aborts the process, now and then, when the interpreter is taken down under its threads.
    """
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)
