"""`python -m tests.fuzz`: compose graphs for a time, or judge one again.

python -m tests.fuzz run --seconds 600 --seed 1
python -m tests.fuzz again graph.json --seed 17 --way cpu:native --way cpu:native:unfused --symbol n=5
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tensorkiln.graph import Graph
from tensorkiln.sdk import NATIVE

from .composer import Case, Way
from .coverage import Coverage
from .exploration import GraphFailure, explore, kept
from .trial import Trials

BATCH = 25
TURNS = (
    *("behind_products", "blocks", "behind_products", "many_outputs", "images", "in_place", "blocks"),
    "repeated",
    *("behind_products", "moved_then_reduced", "behind_products", "images", "long_chains"),
)
"""The families by turns: most of the graphs are contractions with what is around them."""


def explored(arguments: argparse.Namespace) -> Coverage:
    """The graphs of one process, until its time is up or it has composed enough."""
    coverage = Coverage()
    ends = time.monotonic() + arguments.seconds
    turn = 0
    with Trials() as trials:
        while time.monotonic() < ends and coverage.graphs["all"] < arguments.graphs:
            family = TURNS[turn % len(TURNS)]
            number = (arguments.seed * 64 + arguments.part) * 10_000 + turn
            turn += 1
            try:
                explore(family, BATCH, number, trials.of, coverage)
            except GraphFailure as failure:
                coverage.graphs["failures"] += 1
                path = kept(failure, arguments.folder, f"{family}-{number}")
                print(f"{path}: {failure}", file=sys.stderr, flush=True)
    return coverage


def run(arguments: argparse.Namespace) -> int:
    """As many processes as there are processors; 1 when a graph failed."""
    if arguments.part is not None:
        print(explored(arguments).to_json())
        return 0
    parts = len(os.sched_getaffinity(0))
    passed = [f"--seconds={arguments.seconds}", f"--seed={arguments.seed}", f"--folder={arguments.folder}"]
    passed += [f"--graphs={-(-arguments.graphs // parts)}"]
    command = [sys.executable, "-m", "tests.fuzz", "run", *passed]
    processes = [
        subprocess.Popen([*command, f"--part={part}"], stdout=subprocess.PIPE, text=True) for part in range(parts)
    ]
    whole = Coverage()
    failed = False
    for process in processes:
        text, _ = process.communicate()
        failed |= process.returncode != 0
        if process.returncode == 0:
            # Before it, hypothesis may have told what failed.
            whole.update(Coverage.from_json(text.splitlines()[-1]))
    print(whole)
    return int(failed or whole.graphs["failures"] > 0)


def again(arguments: argparse.Namespace) -> int:
    """Judge one graph in a process of its own; 1 when it fails."""
    symbols = {name: int(value) for name, _, value in (text.partition("=") for text in arguments.symbol)}
    ways = tuple(map(Way.parse, arguments.way))
    case = Case(Graph.model_validate_json(arguments.graph.read_text()), symbols, arguments.seed, ways or (Way(NATIVE),))
    with Trials() as trials:
        verdict = trials.of(case)
    print(verdict.problem or "every way agrees with the reference")
    return int(bool(verdict.problem))


def _parsed(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    commands = parser.add_subparsers(required=True)
    for_a_time = commands.add_parser("run", help="compose graphs and compare what is compiled of them")
    for_a_time.add_argument("--seconds", type=float, default=600.0)
    for_a_time.add_argument("--graphs", type=int, default=1_000_000)
    for_a_time.add_argument("--seed", type=int, default=1)
    for_a_time.add_argument(
        "--folder", type=Path, default=Path("fuzz-failures"), help="where graphs that fail are kept"
    )
    for_a_time.add_argument("--part", type=int, help=argparse.SUPPRESS)
    for_a_time.set_defaults(command=run)
    once_more = commands.add_parser("again", help="judge a graph once more")
    once_more.add_argument("graph", type=Path)
    once_more.add_argument("--seed", type=int, default=0)
    once_more.add_argument(
        "--way",
        action="append",
        default=[],
        help="a target, with :unfused behind it or not; repeatable, cpu:native unless given",
    )
    once_more.add_argument("--symbol", action="append", default=[], help="the value of a symbol, as n=5")
    once_more.set_defaults(command=again)
    return parser.parse_args(words)


if __name__ == "__main__":
    parsed = _parsed(None)
    sys.exit(parsed.command(parsed))
