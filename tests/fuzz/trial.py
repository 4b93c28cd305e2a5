"""One case in a process of its own, so that a crash is a failure like any other. `python -m tests.fuzz.trial FILE`
judges the case in a file and prints what comes of it."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from pathlib import Path

from tensorkiln.graph import Graph
from tests.forked import ROOT, Forked

from .composer import Case, Way
from .oracles import judge
from .verdict import Verdict

_SAID = 400
"""Characters that are kept of what a process said before it crashed."""


def written(case: Case) -> str:
    """The case as JSON."""
    ways = [str(way) for way in case.ways]
    graph = json.loads(case.graph.to_json())
    return json.dumps({"seed": case.seed, "symbols": case.symbols, "ways": ways, "graph": graph})


def read(text: str) -> Case:
    """The case that `written` wrote."""
    found = json.loads(text)
    ways = tuple(map(Way.parse, found["ways"]))
    return Case(Graph.model_validate(found["graph"]), found["symbols"], found["seed"], ways)


class Trials:
    """Judges cases one after the other, each in a copy of a process that has loaded the compiler.

    `module` is what judges a case; it takes a file and prints a verdict.
    """

    def __init__(self, module: str = "tests.fuzz.trial") -> None:
        self._module = module
        self._forked = Forked(module, "tests.fuzz.warm")
        self._folder = tempfile.TemporaryDirectory(prefix="kiln-fuzz-")

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *raised: object) -> None:
        self._forked.__exit__(None, None, None)
        self._folder.cleanup()

    def of(self, case: Case) -> Verdict:
        """What comes of a case: that its process crashed, or ended by an error that is not ours, is a problem."""
        path = Path(self._folder.name, "case.json")
        path.write_text(written(case))
        done = self._forked.run(self._module, str(path), cwd=ROOT, env=os.environ)
        if done.returncode == 0:
            return Verdict.from_json(done.stdout)
        said = done.stderr.strip()[-_SAID:]
        if done.returncode < 0:
            return Verdict(f"a crash by {signal.Signals(-done.returncode).name}: {said}")
        return Verdict(f"an error that is not ours: {said}")


def main(path: str) -> None:
    print(judge(read(Path(path).read_text())).to_json())


if __name__ == "__main__":
    main(sys.argv[1])
