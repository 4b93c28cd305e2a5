"""`python -m tests.simulation`: run histories, and print the seeds of those with a broken guarantee."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext

from .faults import FAULTS
from .history import History
from .promises import Broken
from .run import all_broken
from .setting import simulated


def main() -> int:
    """Run the command; the exit status is 0 if no guarantee was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description="Simulate histories of a farm.")
    parser.add_argument("--histories", type=int, default=1000, help="how many (default: 1000)")
    parser.add_argument("--seed", type=int, default=1, help="that of the first; the others follow (default: 1)")
    parser.add_argument("--fault", choices=sorted(FAULTS), default="", help="put this one into the code")
    parser.add_argument("--tell", action="store_true", help="print what happens in the first, and nothing else")
    arguments = parser.parse_args()
    if arguments.tell:
        return _tell(arguments.seed, arguments.fault)
    begin, count = time.monotonic(), 0
    for seed, what in all_broken(arguments.seed, arguments.histories, arguments.fault):
        count += 1
        print(f"seed {seed}: {what}\n  again: python -m tests.simulation --tell --seed {seed}", flush=True)
    seconds = time.monotonic() - begin
    print(
        f"{arguments.histories} histories from seed {arguments.seed} in {seconds:.0f} s, "
        f"{arguments.histories / seconds:.0f} a second; in {count} a promise was broken"
    )
    return int(count > 0)


def _tell(seed: int, fault: str) -> int:
    history = History(seed)
    try:
        with simulated(), FAULTS[fault]() if fault else nullcontext():
            history.run()
    except Broken as error:
        print(*history.told, error, sep="\n")
        return 1
    print(*history.told, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
