"""`kiln compile-all` on graphs with names that somebody else chose: each is shown harmlessly, and none ends the run."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.sdk.conftest import Kiln, complaint, succeeded
from tests.sdk.test_compile_all import REPORTS, report, written_graphs
from tests.service.bodies import graph

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
