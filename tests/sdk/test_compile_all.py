"""`kiln compile-all`, as a build machine runs it."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tensorkiln import Client
from tensorkiln.bundle import read_bundle
from tensorkiln.cli.compile_all.result import locked
from tensorkiln.errors import CrashedError
from tensorkiln.spec import CacheInfo
from tensorkiln.trust import SignedRecord
from tests.sdk.conftest import Kiln, complaint, succeeded
from tests.sdk.hung import broken_off, opened
from tests.sdk.scripted import ScriptedServer
from tests.sdk.test_batch import broken
from tests.service.bodies import graph
from tests.service.server import Server

TARGETS = "x86-64-v2,cpu:x86-64-v3"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "tensorkiln.cli", "compile-all", *arguments]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    return {**clean, "KILN_HOME": str(tmp_path / "home"), "COLUMNS": "200", "NO_COLOR": "1"}


def written_graphs(folder: Path, names: Sequence[str], first_row: int) -> None:
    """Write graphs of these names into a folder, each of one more row than the one before."""
    for row, name in enumerate(names, first_row):
        path = folder / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(graph("sqrt", rows=row)))


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    """Two graphs, one of them in a folder of the folder, and what is not to be found."""
    folder = tmp_path / "graphs"
    written_graphs(folder, ["one", "deep/two"], 101)
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "three.json").write_text("{}")
    (folder / "notes.txt").write_text("none")
    return folder


def report(tmp_path: Path) -> dict[str, Any]:
    return json.loads((tmp_path / "report.json").read_text())


REPORTS = ("--json", "report.json", "--junit", "report.xml")


def test_a_folder_is_compiled_written_and_locked(kiln_all: Kiln, graphs: Path, tmp_path: Path) -> None:
    succeeded(kiln_all("graphs", "--targets", TARGETS, "--lock", "kiln.lock", *REPORTS))
    told = report(tmp_path)
    assert told["totals"] == {"results": 4, "ok": 4, "failed": 0, "not cached": 0, "not run": 0, "hits": 0}
    assert {(each["graph"], each["target"]) for each in told["results"]} == {
        (name, target) for name in ("one", "deep/two") for target in ("cpu:x86-64-v2", "cpu:x86-64-v3")
    }
    manifest = json.loads((tmp_path / "dist" / "manifest.json").read_text())["programs"]
    lock = json.loads((tmp_path / "kiln.lock").read_text())["graphs"]
    for name, targets in manifest.items():
        for target, entry in targets.items():
            bundle = read_bundle(tmp_path / "dist" / entry["file"])
            assert entry["file"] == f"{name}/{target.replace(':', '-')}/{entry['digest']}.kiln"
            assert bundle.program.digest == entry["digest"]
            assert locked(bundle.program, entry["bytes"]).program == entry["program"]
            assert sum(map(len, bundle.artifacts.values())) == entry["bytes"]
            assert SignedRecord.model_validate_json(json.dumps(entry["signature"])).record.action == entry["digest"]
            assert lock[name][target]["digest"] == entry["digest"]
    suites = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert [suite.get("name") for suite in suites] == ["cpu:x86-64-v2", "cpu:x86-64-v3"]
    assert all(suite.get("tests") == "2" and suite.get("failures") == "0" for suite in suites)

    before = {path: path.read_bytes() for path in (tmp_path / "dist").rglob("*") if path.is_file()}
    again = kiln_all(
        "graphs", "-t", TARGETS, "--lock", "kiln.lock", "--fail-on", "cache-miss,size-regression", *REPORTS
    )
    assert again.returncode == 0, again.stdout
    assert report(tmp_path)["totals"]["hits"] == 4
    assert {path: path.read_bytes() for path in (tmp_path / "dist").rglob("*") if path.is_file()} == before
    assert list(tmp_path.glob(".*")) == []


def test_a_check_compares_with_the_lock_and_writes_nothing(kiln_all: Kiln, graphs: Path, tmp_path: Path) -> None:
    asked = ("graphs", "-t", "cpu:x86-64-v3", "--lock", "kiln.lock")
    assert kiln_all(*asked, "--check").returncode == 4
    assert not (tmp_path / "kiln.lock").exists()
    assert kiln_all(*asked).returncode == 0
    lock = (tmp_path / "kiln.lock").read_text()
    succeeded(kiln_all(*asked, "--check", "--out", "other"))
    assert not (tmp_path / "other").exists()

    (graphs / "one.json").write_text(json.dumps(graph("sqrt", rows=103)))
    changed = kiln_all(*asked, "--check")
    assert changed.returncode == 4
    assert "one for cpu:x86-64-v3 is locked as" in changed.stdout
    assert kiln_all(*asked).returncode == 0
    (graphs / "one.json").unlink()
    gone = kiln_all(*asked, "--check")
    assert gone.returncode == 4
    assert "one is locked and gone from the folder" in gone.stdout
    assert (tmp_path / "kiln.lock").read_text() != lock


def test_a_lock_made_with_other_options_is_called_that(kiln_all: Kiln, graphs: Path, tmp_path: Path) -> None:
    asked = ("graphs", "-t", "x86-64-v3", "--lock", "kiln.lock")
    assert kiln_all(*asked).returncode == 0
    checked = kiln_all(*asked, "--fast-math", "--check")
    assert checked.returncode == 4
    assert "made with other options: fast_math is off there and on here" in checked.stdout
    assert "is not locked" not in checked.stdout
    renewed = kiln_all(*asked, "--fast-math")
    assert renewed.returncode == 0
    assert "is written anew: fast_math is off there and on here" in renewed.stdout
    assert kiln_all(*asked, "--fast-math", "--check").returncode == 0


def test_another_program_for_a_locked_question_fails_verification(kiln_all: Kiln, graphs: Path, tmp_path: Path) -> None:
    asked = ("graphs", "-t", "cpu:x86-64-v3", "--lock", "kiln.lock")
    assert kiln_all(*asked).returncode == 0
    lock = json.loads((tmp_path / "kiln.lock").read_text())
    lock["graphs"]["one"]["cpu:x86-64-v3"]["program"] = "0" * 64
    (tmp_path / "kiln.lock").write_text(json.dumps(lock))
    assert kiln_all(*asked, "--check").returncode == 5


def test_a_program_is_the_same_however_it_was_asked_for_and_compiled(served: str, tmp_path: Path) -> None:
    with Client(served, cache_dir=tmp_path) as client:
        (program,) = client.compile_for(graph("sqrt", rows=104), ["cpu"])
    before = locked(program, 1)
    dumped = tuple(stage.model_copy(update={"dump": "a" * 64, "seconds": 7.0}) for stage in program.stages)
    assert dumped
    elsewhere = program.provenance.model_copy(update={"isolation": "external"})
    same = program.model_copy(
        update={"stages": dumped, "provenance": elsewhere, "cache": CacheInfo(status="hit", reason="same request")}
    )
    assert locked(same, 1) == before
    other = program.model_copy(update={"name": "another"})
    assert locked(other, 1).program != before.program


def test_one_graph_that_fails_ends_no_other_and_is_reported(kiln_all: Kiln, graphs: Path, tmp_path: Path) -> None:
    (graphs / "one.json").write_text(json.dumps(graph("sqrt", rows=105)))
    (graphs / "deep" / "two.json").write_text(json.dumps(graph("sqrt", rows=106)))
    (graphs / "broken|%.json").write_text(json.dumps(broken()))
    page = tmp_path / "summary.md"
    done = kiln_all(
        *("graphs", "-t", "x86-64-v3", "--lock", "kiln.lock", *REPORTS),
        GITHUB_ACTIONS="true",
        GITHUB_STEP_SUMMARY=str(page),
    )
    assert (done.returncode, done.stderr) == (1, "")
    told = report(tmp_path)
    assert told["exit_code"] == 1
    assert told["totals"] == {"results": 3, "ok": 2, "failed": 1, "not cached": 0, "not run": 0, "hits": 0}
    (failed,) = [each for each in told["results"] if each["status"] == "failed"]
    assert (failed["graph"], failed["error"]["code"]) == ("broken|%", "graph.invalid")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("::error")]
    assert line.startswith("::error file=graphs/broken|%25.json,title=graph.invalid for cpu%3Ax86-64-v3::")
    assert "/nodes/1/in_var" in line
    text = page.read_text()
    assert "| broken\\|% | cpu:x86-64-v3 | graph.invalid: " in text
    assert "| one | cpu:x86-64-v3 | ok | miss | " in text
    assert "Cache: 0 hits of 2 (0%)" in text
    assert "Cache healthy: yes" in text
    (suite,) = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    (failure,) = suite.iter("failure")
    assert failure.get("type") == "graph.invalid"
    assert json.loads((tmp_path / "kiln.lock").read_text())["graphs"].keys() == {"one", "deep/two"}
    outside = kiln_all("graphs", "-t", "x86-64-v3")
    assert "graphs/broken|%.json for cpu:x86-64-v3: error[graph.invalid]" in outside.stderr
    assert "::error" not in outside.stdout


def test_policies_have_an_exit_code_of_their_own(kiln_all: Kiln, graphs: Path, tmp_path: Path) -> None:
    asked = ("graphs", "-t", "x86-64-v2", "--lock", "kiln.lock", *REPORTS)
    (graphs / "one.json").write_text(json.dumps(graph("sqrt", rows=104)))
    missed = kiln_all(*asked, "--fail-on", "cache-miss")
    assert missed.returncode == 4
    assert "one for cpu:x86-64-v2 was not in the cache" in missed.stdout
    lock = json.loads((tmp_path / "kiln.lock").read_text())
    lock["graphs"]["one"]["cpu:x86-64-v2"]["bytes"] -= 10
    (tmp_path / "kiln.lock").write_text(json.dumps(lock))
    assert kiln_all(*asked, "--check").returncode == 0
    for policy in ("size-regression", "warning"):
        assert kiln_all(*asked, "--check", "--fail-on", policy).returncode == 4
    (violation,) = report(tmp_path)["violations"]
    assert "grown by 10 bytes" in violation


@pytest.mark.parametrize(
    "arguments",
    [
        ("nowhere", "-t", "cpu"),
        ("graphs", "-t", "cpu:pentium"),
        ("graphs",),
        ("graphs", "-t", "cpu", "--fail-on", "rain"),
        ("graphs", "-t", "cpu", "--check"),
        ("graphs", "-t", "cpu", "--offline", "--read-only-cache"),
        ("graphs", "-t", "cpu", "--fail-on", "size-regression"),
        ("graphs", "-t", "cpu", "--jobs", "0"),
        ("graphs/.hidden/..", "-t", "cpu", "--lock", "graphs/notes.txt"),
        ("empty", "-t", "cpu"),
        ("twice", "-t", "cpu"),
    ],
)
def test_wrong_usage_compiles_nothing(kiln_all: Kiln, graphs: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "twice").mkdir()
    for name in ("a.json", "a.onnx"):
        (tmp_path / "twice" / name).write_text("{}")
    refused = kiln_all(*arguments, url="http://127.0.0.1:1")
    assert refused.returncode == 2, refused.stderr
    assert not (tmp_path / "dist").exists()


def test_without_a_service_nothing_has_run_and_the_report_says_so(kiln_all: Kiln, graphs: Path, tmp_path: Path) -> None:
    assert "error[infra.unavailable]" in complaint(
        kiln_all("graphs", "-t", "cpu", *REPORTS, url="http://127.0.0.1:1"), 3
    )
    told = report(tmp_path)
    assert (told["exit_code"], told["totals"]["not run"]) == (3, 2)
    (suite,) = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert suite.get("skipped") == "2"


def test_offline_gives_what_was_compiled_here_before(kiln_all: Kiln, graphs: Path, served: str, tmp_path: Path) -> None:
    assert kiln_all("graphs", "-t", "cpu", "--lock", "kiln.lock").returncode == 0
    succeeded(kiln_all("graphs", "-t", "cpu", "--lock", "kiln.lock", "--check", "--offline"))
    assert kiln_all("graphs", "-t", "x86-64-v4", "--offline").returncode == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_cancels_its_jobs_and_writes_what_it_has(
    busy: Server, graphs: Path, tmp_path: Path, environment: dict[str, str], number: signal.Signals
) -> None:
    (graphs / "broken.json").write_text("no JSON")
    before = opened(busy)
    arguments = command("graphs", "-t", "x86-64-v3", "--lock", "kiln.lock", "--url", busy.url, *REPORTS)
    ended = broken_off(arguments, lambda: len(opened(busy) - before) >= 2, number, cwd=tmp_path, env=environment)
    assert ended.returncode == 130
    assert ended.stderr.endswith("interrupted\n")
    assert opened(busy) <= before
    told = report(tmp_path)
    assert told["exit_code"] == 130
    assert told["totals"] == {"results": 3, "ok": 0, "failed": 1, "not cached": 0, "not run": 2, "hits": 0}
    assert (tmp_path / "report.xml").is_file()


def test_a_crash_fails_the_graph(scripted: ScriptedServer, graphs: Path, tmp_path: Path, kiln_all: Kiln) -> None:
    (graphs / "deep" / "two.json").unlink()
    problem = CrashedError("It \x00 crashed.", details={"reproducer": "f" * 64}).to_problem()
    scripted.answers_with(b"{}")
    job = {"id": "0" * 32, "state": "failed", "error": problem, "programs": []}
    scripted.answers_with(json.dumps(job).encode())
    done = kiln_all("graphs", "-t", "cpu", *REPORTS, url=scripted.url)
    assert done.returncode == 1
    (failure,) = ElementTree.parse(tmp_path / "report.xml").getroot().iter("failure")
    assert failure.get("message") == "It � crashed."
    assert f"reproducer: {'f' * 64}" in (failure.text or "")


# So near to the longest path there is, only the shorter name fits.
@pytest.mark.parametrize(("name", "out"), [("one", Path("dist")), ("n" * 240, Path(*["d" * 250] * 15))])
def test_an_unwritable_program_fails_its_graph_alone(
    kiln_all: Kiln, graphs: Path, tmp_path: Path, name: str, out: Path
) -> None:
    (graphs / "one.json").rename(graphs / f"{name}.json")
    said = "cannot be written: File name too long; make room, or write elsewhere."
    if name == "one":
        (tmp_path / "dist").mkdir()
        (tmp_path / "dist" / "one").write_text("in the way of a folder")
        said = f"one.json for cpu:x86-64-v3: error[request.invalid]: {out / 'one'}"
    asked = ("graphs", "-t", "x86-64-v3", "--lock", "kiln.lock", *REPORTS, "--out", str(out))
    assert said in complaint(kiln_all(*asked), 2)
    told = report(tmp_path)
    assert {each["graph"]: each["status"] for each in told["results"]} == {"deep/two": "ok", name: "failed"}
    assert told["totals"]["not run"] == 0
    assert json.loads((tmp_path / "kiln.lock").read_text())["graphs"].keys() == {"deep/two"}
    assert json.loads((tmp_path / out / "manifest.json").read_text())["programs"].keys() == {"deep/two"}
    assert (tmp_path / "report.xml").is_file()


@pytest.mark.parametrize("unwritten", ["--out", "--lock", "--junit", "--json"])
def test_an_unwritable_file_spares_the_others(kiln_all: Kiln, graphs: Path, tmp_path: Path, unwritten: str) -> None:
    files = {"--lock": "kiln.lock", "--junit": "report.xml", "--json": "report.json"}
    # Nobody makes a file in /proc.
    asked = {name: f"/proc/{path}" if name == unwritten else path for name, path in files.items()}
    (tmp_path / "dist" / ("SHA256SUMS" if unwritten == "--out" else "other")).mkdir(parents=True)
    page = tmp_path / "summary.md"
    options = [word for option in asked.items() for word in option]
    done = kiln_all("graphs", "-t", "x86-64-v3", *options, GITHUB_STEP_SUMMARY=str(page))
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert "| one | cpu:x86-64-v3 | ok |" in page.read_text()
    assert "deep/two" in done.stdout
    assert all((tmp_path / path).is_file() for name, path in files.items() if name != unwritten)
    assert (tmp_path / "dist" / "manifest.json").is_file() == (unwritten != "--out")
    if unwritten != "--json":
        assert report(tmp_path)["exit_code"] == 2
