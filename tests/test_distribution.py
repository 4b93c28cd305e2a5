"""Tests are handed out once each, by group and by file, whatever becomes of a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFTEST = """
from pathlib import Path

import pytest

from tests.distribution import Distribution

LOG = Path(__file__).with_name("log")


def pytest_xdist_make_scheduler(config, log):
    return Distribution(config, log)


@pytest.fixture(autouse=True)
def logged(request, worker_id):
    with LOG.open("a") as log:
        log.write(f"{worker_id} {request.node.nodeid}\\n")
"""
FILE = """
import pytest


@pytest.mark.parametrize("number", range(7))
def test_one(number):
    assert number < 7


@pytest.mark.parametrize("number", range(5))
@pytest.mark.xdist_group("together")
def test_grouped(number):
    assert number < 5
"""
DEADLY = """
import os
from pathlib import Path


def test_that_ends_its_process():
    died = Path(__file__).with_name("died")
    if not died.exists():
        died.touch()
        os._exit(1)
"""
FOLDERS = {f"tests/{folder}/test_{folder}_{name}.py": FILE for folder in ("numerics", "service") for name in "abcd"}


def ran(folder: Path, files: Mapping[str, str]) -> tuple[str, dict[str, list[str]]]:
    """What pytest prints, and the tests that each of three processes began."""
    for name, text in {"conftest.py": CONFTEST, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    # To load the others would take longer than the tests.
    plugins = [f"-pno:{name}" for name in ("anyio", "cacheprovider", "hypothesispytest", "schemathesis", "timeout")]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, "-n3", "--dist=loadgroup", "tests"]
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    paths = os.pathsep.join([str(ROOT), *filter(None, [outside.get("PYTHONPATH")])])
    done = subprocess.run(command, cwd=folder, env={**outside, "PYTHONPATH": paths}, capture_output=True, text=True)
    tests: dict[str, list[str]] = {}
    for line in (folder / "log").read_text().splitlines():
        worker, test = line.split(" ", 1)
        tests.setdefault(worker, []).append(test)
    return done.stdout + done.stderr, tests


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    printed, tests = ran(tmp_path_factory.mktemp("project"), FOLDERS)
    assert "96 passed" in printed
    return tests


def test_every_test_is_done_once(handed_out: dict[str, list[str]]) -> None:
    done = [test for tests in handed_out.values() for test in tests]
    assert (len(done), len({*done})) == (96, 96)


def test_one_process_does_all_of_a_group(handed_out: dict[str, list[str]]) -> None:
    grouped = {worker for worker, tests in handed_out.items() if any(test.endswith("@together") for test in tests)}
    assert len(grouped) == 1


def test_a_process_leaves_a_file_when_nothing_of_it_is_left(handed_out: dict[str, list[str]]) -> None:
    for tests in handed_out.values():
        alone = [test for test in tests if not test.endswith("@together")]
        files = [file for file, _ in groupby(alone, lambda test: test.split("::", 1)[0])]
        assert len(files) == len({*files})


def test_one_process_begins_with_those_that_wait_and_no_other_does(handed_out: dict[str, list[str]]) -> None:
    first = [tests[0].split("/")[1] for tests in handed_out.values()]
    assert sorted(first) == ["numerics", "numerics", "service"]


def test_tests_of_a_dead_process_are_run_by_others(tmp_path: Path) -> None:
    files = {"tests/numerics/test_deadly.py": DEADLY, **FOLDERS}
    printed, tests = ran(tmp_path, files)
    assert "crashed while running 'tests/numerics/test_deadly.py::test_that_ends_its_process'" in printed
    assert len({test for each in tests.values() for test in each}) == 97
