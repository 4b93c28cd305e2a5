"""Run a module that must not outlive its parent: `python -m tensorkiln.parent_watchdog FOLDER MODULE ARGUMENT...`.

The parent holds the other end of standard input. However it ends, the kernel closes that end, and then this process
removes FOLDER, which the parent no longer can, and stops. PR_SET_PDEATHSIG would fire at the end of the *thread* that
started this process, which may be long before the parent's.
"""

from __future__ import annotations

import os
import runpy
import shutil
import signal
import sys
import threading
import time

GRACE_S = 5.0


def _end_with_parent(folder: str) -> None:
    while os.read(0, 4096):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    leads_its_group = os.getpgrp() == os.getpid()
    (os.killpg if leads_its_group else os.kill)(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Run the module named by the second argument as a program, with the arguments that follow."""
    folder, module = sys.argv[1:3]
    sys.argv = sys.argv[2:]
    threading.Thread(target=_end_with_parent, args=(folder,), name="parent-watchdog", daemon=True).start()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
