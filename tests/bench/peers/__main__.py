"""`python -m tests.bench.peers`: tensorkiln beside its peers, each in a process and an environment of its own.

Without `--write` the tables are printed; with it they, the raw figures and the plot go into the documents.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.peers.cases import Case, cases
from tests.bench.peers.cold_start import cold_starts
from tests.bench.peers.environments import pythons
from tests.bench.peers.machine import machine
from tests.bench.peers.peers import BY_NAME, PEERS, Peer
from tests.bench.peers.plot import plot
from tests.bench.peers.process import MEMORY, ROOT, Setting
from tests.bench.peers.record import Problem, Record
from tests.bench.peers.report import replaced, report
from tests.bench.peers.serve import PLACES
from tests.bench.peers.turns import PATIENCE_S, ROUNDS, Budget, Turns

DOCS = ROOT / "docs"
PAGE, FIGURES, PLOT = DOCS / "benchmarks.md", DOCS / "benchmarks.json", DOCS / "benchmarks.svg"
COLD = "cold-start"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line."""

    peers: tuple[Peer, ...]
    cases: tuple[Case, ...]
    cores: tuple[int, ...]
    memory: tuple[str, ...]
    places: tuple[str, ...]
    budget: Budget
    starts: int
    installed: bool
    write: bool
    add: bool
    render: bool


def measured(options: Options) -> Record:
    """Run the requested measurements. Networks and models are measured in the default setting only."""
    record = Record(machine(), kinds={case.name: case.kind for case in options.cases})
    found, missing = pythons(options.peers, install=not options.installed)
    record.problems += [Problem("", name, why) for name, why in missing.items()]
    absent = [peer.name for peer in PEERS if peer not in options.peers and not peer.has_weights]
    for cores in options.cores:
        record.problems += [
            Problem(case.name, name, "left out of the run", cores) for case in options.cases for name in absent
        ]
    for cores in options.cores:
        for memory in options.memory:
            plain = memory == ("default" if "default" in options.memory else options.memory[0])
            wanted = [case for case in options.cases if case.kind == "row" or plain]
            if not wanted:
                continue
            with Turns(options.peers, found, Setting(cores, memory), options.budget, record) as turns:
                for case in wanted:
                    print(f"{cores} cores, {memory} memory: {case.name}", file=sys.stderr, flush=True)
                    turns.measure(case, options.places if case.kind == "row" else ("numpy",))
    if options.starts:
        print("cold starts", file=sys.stderr, flush=True)
        cold_starts(options.peers, found, options.starts, record)
    return record


def parsed(arguments: Sequence[str]) -> Options:
    """Parse a command line; exits for an unknown name."""
    everything = cases()
    names = [case.name for case in everything]
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers", description=__doc__)
    add = parser.add_argument
    add("--rows", default="all", help=f"names with commas, or rows, networks, models, all; {COLD}, or none: {names}")
    add("--peers", default=",".join(BY_NAME), help="names with commas, and tensorkiln besides")
    add("--cores", default="1,2", help="numbers of cores with commas")
    add("--memory", default=",".join(MEMORY), help="what becomes of freed memory: default, warm")
    add("--places", default=",".join(PLACES), help="where inputs begin: aligned (to 64 bytes), numpy (16 behind that)")
    add("--budget", type=float, default=0.3, help="seconds for a peer to time one case in one setting")
    add("--rounds", type=int, default=ROUNDS, help="of which there are so many turns")
    add("--patience", type=float, default=PATIENCE_S, help="seconds that a peer may take to compile a case")
    add("--starts", type=int, default=3, help="cold starts of each peer")
    add("--installed", action="store_true", help="make no environments: only the peers that are there")
    add("--write", action="store_true", help="write docs/benchmarks.md, .json and .svg")
    add("--add", action="store_true", help="write, and keep what docs/benchmarks.json has beside what is measured now")
    add("--render", action="store_true", help="measure nothing: the documents from docs/benchmarks.json again")
    given = parser.parse_args(arguments)
    chosen = set(given.rows.split(","))
    wanted = tuple(case for case in everything if chosen & {"all", f"{case.kind}s", case.name})
    unknown = chosen - {"all", "rows", "networks", "models", "none", COLD, *names}
    peers = {"tensorkiln", *given.peers.split(",")}
    unknown |= (peers - BY_NAME.keys()) | (set(given.memory.split(",")) - MEMORY.keys())
    unknown |= set(given.places.split(",")) - PLACES.keys()
    if unknown:
        parser.error(f"not known: {', '.join(sorted(unknown))}")
    return Options(
        peers=tuple(peer for peer in PEERS if peer.name in peers),
        cases=wanted,
        cores=tuple(map(int, given.cores.split(","))),
        memory=tuple(given.memory.split(",")),
        places=tuple(given.places.split(",")),
        budget=Budget(given.budget, given.rounds, given.patience),
        starts=given.starts if chosen & {"all", COLD} else 0,
        installed=given.installed,
        write=given.write,
        add=given.add,
        render=given.render,
    )


def main() -> None:
    """The command line."""
    options = parsed(sys.argv[1:])
    record = Record.read(FIGURES) if options.render else measured(options)
    if options.add and FIGURES.exists():
        record = Record.read(FIGURES).updated(record)
    if options.write or options.add or options.render:
        write(record, PAGE, FIGURES, PLOT)
    else:
        print(report(record))


def write(record: Record, page: Path, figures: Path, picture: Path) -> None:
    """Write page, figures and plot. ValueError, before anything is written, for a page without the markers."""
    before = page.read_text("utf-8")
    replaced(before, "")
    record.write(figures)
    picture.write_text(plot(record), "utf-8")
    page.write_text(replaced(before, report(record, picture)), "utf-8")


if __name__ == "__main__":
    main()
