"""`python -m tests.farm`: a farm on this machine until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from tests.faults.requests import answered, body

from .topology import Farm

# What a shell reports of a process that Ctrl-C has ended.
_INTERRUPTED: Final = 130


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.farm", description="Run a farm on this machine.")
    parser.add_argument("--services", type=int, default=2, help="processes that answer HTTP (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=4, help="processes that compile (default: %(default)s)")
    parser.add_argument("--home", type=Path, help="directory of store, keys and logs (default: a new one)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kiln-farm-") as temporary:
        home: Path = arguments.home or Path(temporary)
        print("The services and the workers start; that takes some 10 s.", flush=True)
        with Farm(home, services=arguments.services, workers=arguments.workers, anew=True) as farm:
            return _stay(farm)


def _stay(farm: Farm) -> int:
    for url in farm.urls:
        begin = time.monotonic()
        answer = answered(url, body(0))
        print(f"{url}  compiles: {answer.status_code} in {(time.monotonic() - begin) * 1e3:.0f} ms")
        if answer.status_code != 200:
            print(answer.text, file=sys.stderr)
            return 1
    print(f"{len(farm.workers)} workers, store {farm.store}, logs {farm.home}/*.log")
    with suppress(KeyboardInterrupt):
        print("Ctrl-C stops it.", flush=True)
        while True:
            signal.pause()
    # Its end is not to be interrupted: nothing would be left to end what it has not come to.
    _heed_no_signal()
    print("The farm stops; that takes some 15 s.", flush=True)
    statuses = farm.stop()
    print(f"stopped with {statuses}")
    return 0 if not any(statuses) else 1


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """As Ctrl-C, so that whatever it interrupts is ended in order; once, for some end a group of processes twice."""
    _heed_no_signal()
    raise KeyboardInterrupt


def _heed_no_signal() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _interrupt)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
