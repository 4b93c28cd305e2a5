"""What `kiln compile-all` takes for graphs, whatever their names, and what it tells those who watch it, or nobody."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tensorkiln import Client
from tensorkiln.cli.compile_all import progress
from tensorkiln.cli.compile_all.files import GraphFile, find_graphs
from tensorkiln.cli.compile_all.progress import Progress
from tensorkiln.cli.compile_all.result import Result
from tensorkiln.cli.kiln_toml import ModelSettings
from tensorkiln.errors import CrashedError, RequestError
from tests.sdk.conftest import PROGRESS, Kiln, broken_pipe, complaint, succeeded
from tests.sdk.test_compile_all import REPORTS, command, environment, graphs, report, written_graphs
from tests.service.bodies import graph

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


TARGET = "cpu:x86-64-v2"
FORGED = "a\n::add-mask::cpu\n::error title=forged::\x1b[2J\u202ename"
LEADING = "::error title=forged::leading"
OLD_STYLE = "b##[error]forged##vso[task.complete]"


def forged(lines: str) -> list[str]:
    """The lines that GitHub's or Azure's runner would obey, less the annotations that are the command's own."""
    own = re.compile(r"::(error|warning) file=graphs/")
    obeyed = re.compile(r"\s*::.*::|.*##\w*\[")
    return [line for line in re.split("[\r\n]", lines) if obeyed.match(line) and not own.match(line)]


def test_no_name_is_a_command_of_the_build_machine(kiln_all: Kiln, tmp_path: Path) -> None:
    names = [FORGED, LEADING, OLD_STYLE]
    written_graphs(tmp_path / "graphs", names, 131)
    (tmp_path / "graphs" / "c\n::error::forged.json").write_text("no JSON")
    page = tmp_path / "summary.md"
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(page)}
    done = kiln_all("graphs", "-t", TARGET, "--fail-on", "cache-miss", "--lock", "kiln.lock", *REPORTS, **github)
    assert done.returncode == 1
    assert forged(done.stdout) == forged(done.stderr) == []
    assert "\x1b" not in done.stdout + done.stderr + page.read_text()
    assert "\u202e" not in done.stdout
    assert f"a\\x0a::add-mask::cpu\\x0a::error title=forged::\\x1b[2J\\u202ename for {TARGET} was not in" in done.stdout
    assert "::error file=graphs/c%0A%3A%3Aerror%3A%3Aforged.json,title=graph.invalid" in done.stdout
    assert {line[:2] for line in page.read_text().splitlines() if "forged" in line} == {"- ", "| "}
    told = report(tmp_path)
    assert {each["graph"]: each["status"] for each in told["results"]} == {
        **dict.fromkeys(names, "ok"),
        "c\n::error::forged": "failed",
    }
    assert json.loads((tmp_path / "kiln.lock").read_text())["graphs"].keys() == set(names)

    for path in (tmp_path / "graphs").iterdir():
        path.unlink()
    written_graphs(tmp_path / "graphs", ["one"], 134)
    gone = kiln_all("graphs", "-t", TARGET, "--lock", "kiln.lock", "--check", **github)
    assert gone.returncode == 4
    assert f"{LEADING} is locked and gone from the folder" in gone.stdout
    assert forged(gone.stdout) == []


def test_two_files_of_one_name_are_shown_harmlessly_too(kiln_all: Kiln, tmp_path: Path) -> None:
    written_graphs(tmp_path / "graphs", [OLD_STYLE], 131)
    (tmp_path / "graphs" / f"{OLD_STYLE}.onnx").write_text("none")
    done = complaint(kiln_all("graphs", "-t", TARGET, GITHUB_ACTIONS="true"), 2)
    assert "would have the same name" in done
    assert forged(done) == []


@pytest.mark.skipif(sys.platform != "linux", reason="file names are Unicode here")
@pytest.mark.parametrize("is_github", [False, True])
def test_a_name_that_is_not_utf_8_fails_its_graph_alone(kiln_all: Kiln, tmp_path: Path, is_github: bool) -> None:
    folder = tmp_path / "graphs"
    written_graphs(folder, ["good"], 135)
    for place in (b"b\xff.json", b"sub\xfe/c.json"):
        path = folder / os.fsdecode(place)
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(graph("sqrt", rows=136)))
    page = tmp_path / "summary.md"
    done = kiln_all(
        *("graphs", "-t", TARGET, "--lock", "kiln.lock", *REPORTS),
        **({"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(page)} if is_github else {}),
    )
    assert done.returncode == 2, done.stderr
    shown = done.stdout if is_github else done.stderr
    assert "graphs/b\\xff.json has a name that is not UTF-8" in shown
    told = report(tmp_path)
    assert told["exit_code"] == 2
    assert {(each["graph"], each["file"], each["status"]) for each in told["results"]} == {
        ("good", "graphs/good.json", "ok"),
        ("b\\xff", "graphs/b\\xff.json", "failed"),
        ("sub\\xfe/c", "graphs/sub\\xfe/c.json", "failed"),
    }
    (suite,) = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert suite.get("failures") == "2"
    assert {case.get("name") for case in suite} == {"good", "b\\xff", "sub\\xfe/c"}
    for path, part in (("dist/manifest.json", "programs"), ("kiln.lock", "graphs")):
        assert json.loads((tmp_path / path).read_text())[part].keys() == {"good"}
    assert page.is_file() == is_github


def test_a_name_that_stdout_has_no_letters_for_is_escaped(kiln_all: Kiln, tmp_path: Path) -> None:
    written_graphs(tmp_path / "graphs", ["グラフ"], 137)
    assert "\\u30b0" in succeeded(kiln_all("graphs", "-t", TARGET, PYTHONIOENCODING="ascii"))


def test_a_graph_with_the_name_of_a_file_that_the_run_writes_fails_alone(kiln_all: Kiln, tmp_path: Path) -> None:
    taken = ["manifest.json", "SHA256SUMS", "SHA256SUMS/below", "kiln.lock", "report.xml/a/b", "report.json"]
    good = ["good", "deep/manifest.json", "SHA256SUMS.old"]
    written_graphs(tmp_path / "graphs", good, 138)
    for name in taken:
        written_graphs(tmp_path / "graphs", [name], 138)
    reports = ("--lock", "dist/kiln.lock", "--json", "dist/report.json", "--junit", "dist/report.xml")
    for _ in range(2):
        done = complaint(kiln_all("graphs", "-t", TARGET, *reports), 2)
        assert "graphs/manifest.json.json would have its programs in the place of dist/manifest.json" in done
        told = json.loads((tmp_path / "dist" / "report.json").read_text())
        assert {each["graph"]: each["status"] for each in told["results"]} == {
            **dict.fromkeys(good, "ok"),
            **dict.fromkeys(taken, "failed"),
        }
        for path, part in (("manifest.json", "programs"), ("kiln.lock", "graphs")):
            assert json.loads((tmp_path / "dist" / path).read_text())[part].keys() == set(good)
        assert len((tmp_path / "dist" / "SHA256SUMS").read_text().splitlines()) == len(good)
    checked = kiln_all("graphs", "-t", TARGET, *reports, "--check")
    assert checked.returncode == 2
    assert "is not locked" not in checked.stdout
