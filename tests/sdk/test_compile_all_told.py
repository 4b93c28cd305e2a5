"""What `kiln compile-all` takes for graphs, and what it tells those who watch it, or nobody who reads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tensorkiln import Client
from tensorkiln.cli.compile_all import progress
from tensorkiln.cli.compile_all.files import GraphFile, find_graphs
from tensorkiln.cli.compile_all.progress import Progress
from tensorkiln.cli.compile_all.result import Result
from tensorkiln.cli.kiln_toml import ModelSettings
from tensorkiln.errors import CrashedError, RequestError
from tests.sdk.conftest import PROGRESS, Kiln, broken_pipe
from tests.sdk.test_compile_all import REPORTS, command, environment, graphs, report

__all__ = ["environment", "graphs"]


@pytest.mark.parametrize("is_github", [False, True])
def test_a_lost_reader_of_stdout_changes_nothing(kiln_all: Kiln, graphs: Path, tmp_path: Path, is_github: bool) -> None:
    page = tmp_path / "summary.md"
    variables = {"GITHUB_STEP_SUMMARY": str(page), **({"GITHUB_ACTIONS": "true"} if is_github else {})}
    asked = ("graphs", "-t", "x86-64-v2", "--lock", "kiln.lock", *REPORTS)

    def unread(*options: str) -> tuple[int, str]:
        with broken_pipe() as stdout:
            done = kiln_all(*asked, *options, stdout=stdout, **variables)
        return done.returncode, done.stderr

    assert unread() == (0, "")
    assert report(tmp_path)["exit_code"] == 0
    assert "| deep/two | cpu:x86-64-v2 | ok |" in page.read_text()
    assert all((tmp_path / path).is_file() for path in ("report.xml", "kiln.lock", "dist/manifest.json"))

    (graphs / "one.json").write_text("no JSON")
    (tmp_path / "report.json").unlink()
    code, told = unread("--check", "--fail-on", "cache-miss")
    assert (code, report(tmp_path)["exit_code"]) == (1, 1)
    assert "Broken pipe" not in told
    (graphs / "one.json").unlink()
    assert unread("--check") == (4, "")


def test_lost_readers_end_no_run(graphs: Path, served: str, tmp_path: Path, environment: dict[str, str]) -> None:
    for number in range(3):
        (graphs / f"broken{number}.json").write_text("no JSON")
    asked = ("graphs", "-t", "x86-64-v2", "--jobs", "1", *REPORTS, "--url", served)
    with broken_pipe() as both:
        done = subprocess.run(command(*asked), cwd=tmp_path, env=environment, stdout=both, stderr=both, timeout=120)
    assert done.returncode == 1
    totals = report(tmp_path)["totals"]
    assert (totals["ok"], totals["failed"], totals["not run"]) == (2, 3, 0)


def test_reports_need_no_stdout(graphs: Path, served: str, tmp_path: Path, environment: dict[str, str]) -> None:
    arguments = command("graphs", "-t", "x86-64-v2", *REPORTS, "--url", served)
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *arguments]
    done = subprocess.run(shell, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True, timeout=120)
    assert (done.returncode, PROGRESS.sub("", done.stderr)) == (0, "")
    assert report(tmp_path)["totals"]["ok"] == 2


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


def test_a_terminal_sees_each_result(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY_S", -1.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    steps: list[str] = []
    told = Progress(2, steps.append, is_annotated=False)
    told.tell(DONE)
    assert [each[:6] for each in steps] == ["0 of 2", "1 of 2"]
    assert capsys.readouterr().err == ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "above" / "graphs"
    (made / "deep").mkdir(parents=True)
    for name in ("one.json", "deep/two.json"):
        (made / name).write_text("{}")
    return made


def names(folder: Path, out: Path, *files: Path) -> set[str]:
    return {graph.name for graph in find_graphs(folder, out, files)}


def test_hidden_folders_above_the_root_hide_no_graph(folder: Path, tmp_path: Path) -> None:
    assert names(folder, tmp_path / "dist", Path("/")) == {"one", "deep/two"}
    for out in (tmp_path, folder.parent, folder, folder / ".." / ".."):
        assert names(folder, out) == {"one", "deep/two"}


def test_files_written_by_the_run_are_no_graphs(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    (folder / "lock.json").write_text("{}")
    for lock in (folder / "lock.json", folder / "deep" / ".." / "lock.json", tmp_path / "link" / "lock.json"):
        assert names(folder, folder / "deep", lock) == {"one"}
        assert names(folder, tmp_path / "link" / "deep", lock) == {"one"}


def test_a_link_to_nothing_is_a_graph_that_cannot_be_read(folder: Path, tmp_path: Path) -> None:
    (folder / "gone.json").symlink_to(tmp_path / "nowhere.json")
    found = {graph.name: graph for graph in find_graphs(folder, tmp_path / "dist", [])}
    assert found.keys() == {"one", "deep/two", "gone"}
    with pytest.raises(RequestError, match=r"gone\.json cannot be read"):
        found["gone"].read(ModelSettings(), Client)
