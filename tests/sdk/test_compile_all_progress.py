"""How far a run of `kiln compile-all` is, as those see it who watch a log."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tensorkiln.cli.compile_all import progress
from tensorkiln.cli.compile_all.files import GraphFile
from tensorkiln.cli.compile_all.progress import Progress
from tensorkiln.cli.compile_all.result import Result
from tensorkiln.errors import CrashedError
from tests.sdk.conftest import PROGRESS

DONE = Result(GraphFile("one", Path("one.json")), "cpu:x86-64-v2")
FAILED = Result(GraphFile("two", Path("two.json")), "cpu:x86-64-v2", error=CrashedError("gone"))


def shown(_: str) -> None:
    """A terminal, which is not looked at."""


@pytest.mark.parametrize(("every_s", "lines"), [(-1.0, 2), (3600.0, 0)])
def test_a_log_hears_of_it_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, every_s: float, lines: int
) -> None:
    monkeypatch.setattr(progress, "EVERY_S", every_s)
    told = Progress(2, shown, is_annotated=False)
    for result in (DONE, FAILED):
        told.tell(result)
    said = capsys.readouterr().err
    found = PROGRESS.findall(said)
    assert len(found) == lines
    assert found[1:] == ["2 of 2, 0 hits, 1 failed, the slowest took 0.0 s\n"][:lines]
    assert PROGRESS.sub("", said).startswith("two.json for cpu:x86-64-v2: ")


def test_a_terminal_sees_each_and_no_line_of_a_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY_S", -1.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    steps: list[str] = []
    told = Progress(2, steps.append, is_annotated=False)
    told.tell(DONE)
    assert [each[:6] for each in steps] == ["0 of 2", "1 of 2"]
    assert capsys.readouterr().err == ""
