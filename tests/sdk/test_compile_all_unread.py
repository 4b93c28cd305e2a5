"""`kiln compile-all` when nobody reads what it prints, as in `kiln compile-all … | head`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.sdk.conftest import PROGRESS, Kiln, complaint
from tests.sdk.test_compile_all import REPORTS, command, environment, graphs, report
from tests.sdk.unread import broken_pipe
from tests.service.bodies import graph

__all__ = ["environment", "graphs"]

Unread: TypeAlias = Callable[..., "tuple[int, str]"]
"""Runs a command whose stdout has no reader: its exit code, and what it said on stderr."""


@pytest.fixture
def unread(kiln_all: Kiln) -> Unread:
    def run(*arguments: str, **variables: str) -> tuple[int, str]:
        with broken_pipe() as stdout:
            done = kiln_all(*arguments, stdout=stdout, **variables)
        return done.returncode, done.stderr

    return run


@pytest.mark.parametrize("is_github", [False, True])
def test_a_reader_of_stdout_that_is_gone_changes_nothing(
    unread: Unread, graphs: Path, tmp_path: Path, is_github: bool
) -> None:
    page = tmp_path / "summary.md"
    variables = {"GITHUB_STEP_SUMMARY": str(page), **({"GITHUB_ACTIONS": "true"} if is_github else {})}
    asked = ("graphs", "-t", "x86-64-v2", "--lock", "kiln.lock", *REPORTS)
    assert unread(*asked, **variables) == (0, "")
    assert report(tmp_path)["exit_code"] == 0
    assert "| deep/two | cpu:x86-64-v2 | ok |" in page.read_text()
    assert all((tmp_path / path).is_file() for path in ("report.xml", "kiln.lock", "dist/manifest.json"))

    (graphs / "one.json").write_text("no JSON")
    (tmp_path / "report.json").unlink()
    code, told = unread(*asked, "--check", "--fail-on", "cache-miss", **variables)
    assert (code, report(tmp_path)["exit_code"]) == (1, 1)
    assert "Broken pipe" not in told
    (graphs / "one.json").unlink()
    assert unread(*asked, "--check", **variables) == (4, "")


def test_a_reader_of_both_streams_that_is_gone_ends_no_run(
    graphs: Path, served: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    for number in range(3):
        (graphs / f"broken{number}.json").write_text("no JSON")
    asked = ("graphs", "-t", "x86-64-v2", "--jobs", "1", *REPORTS, "--url", served)
    with broken_pipe() as both:
        done = subprocess.run(command(*asked), cwd=tmp_path, env=environment, stdout=both, stderr=both, timeout=120)
    assert done.returncode == 1
    totals = report(tmp_path)["totals"]
    assert (totals["ok"], totals["failed"], totals["not run"]) == (2, 3, 0)


def test_without_a_stdout_the_reports_are_written(
    graphs: Path, served: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    arguments = command("graphs", "-t", "x86-64-v2", *REPORTS, "--url", served)
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *arguments]
    done = subprocess.run(shell, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True, timeout=120)
    assert (done.returncode, PROGRESS.sub("", done.stderr)) == (0, "")
    assert report(tmp_path)["totals"]["ok"] == 2


def test_a_json_report_that_cannot_be_written_keeps_no_table_from_the_page(
    kiln_all: Kiln, graphs: Path, tmp_path: Path
) -> None:
    page = tmp_path / "summary.md"
    (graphs / "one.json").write_text(json.dumps(graph("sqrt", rows=101)))
    done = complaint(
        kiln_all("graphs", "-t", "x86-64-v2", "--json", "/proc/report.json", GITHUB_STEP_SUMMARY=str(page)), 2
    )
    assert "/proc/report.json cannot be written" in done
    assert "| one | cpu:x86-64-v2 | ok |" in page.read_text()
