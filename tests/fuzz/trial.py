"""Cases in a process apart, so that a crash is a failure like any other.

`python -m tests.fuzz.trial MODULE` reads the names of files, and prints a line for each: what came of its case.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from tensorkiln.graph import Graph
from tests.forked import ROOT

from .composer import Case, Way
from .oracles import judge
from .verdict import Verdict

_SAID = 400
"""Characters that are kept of what a process said before it crashed."""
_CASES = 100
"""How many a process judges before another takes its place: a case leaves a megabyte of memory behind."""
_SPENT = 77
"""The exit status of a process that has judged so many."""


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
    """Judges cases one after the other, in a copy of a process that has loaded the compiler: a new one after each that
    ended.

    `module` is what judges a case: its `main` takes a file and prints a verdict on one line.
    """

    def __init__(self, module: str = "tests.fuzz.trial") -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kiln-fuzz-")
        self._complaints = Path(self._folder.name, "complaints.txt")
        with self._complaints.open("w") as complaints:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "error", "-m", "tests.fuzz.trial", module],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
            )

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.communicate(timeout=60)
        self._folder.cleanup()

    def of(self, case: Case) -> Verdict:
        """What comes of a case: that its process crashed, or ended by an error that is not ours, is a problem."""
        path = Path(self._folder.name, "case.json")
        path.write_text(written(case))
        said = self._complaints.stat().st_size
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if answer.startswith("{"):
            return Verdict.from_json(answer)
        complaint = self._complaints.read_bytes()[said:].decode(errors="replace").strip()[-_SAID:]
        if (status := int(answer)) < 0:
            return Verdict(f"a crash by {signal.Signals(-status).name}: {complaint}")
        return Verdict(f"an error that is not ours: {complaint}")


def _serve(module: str) -> None:
    """Have copies of this process judge the files named on the standard input; say how each copy ended early."""
    import_module("tests.fuzz.warm")
    judge_file = import_module(module).main
    gc.freeze()
    while pid := os.fork():
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if not status:
            return
        if status != _SPENT:
            print(status, flush=True)
    for _ in range(_CASES):
        path = sys.stdin.readline()
        if not path:
            return
        judge_file(path.rstrip())
        sys.stdout.flush()
    sys.exit(_SPENT)


def main(path: str) -> None:
    print(judge(read(Path(path).read_text())).to_json())


if __name__ == "__main__":
    _serve(sys.argv[1])
