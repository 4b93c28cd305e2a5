"""What `kiln` prints, where nobody reads it, the disk is full, or it was written by somebody else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from tensorkiln import Graph
from tests.sdk.conftest import Kiln, broken_pipe, complaint, no_time_at
from tests.sdk.scripted import ScriptedServer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="redirects as POSIX's shell does")

CLOSED, FULL, UNREAD = ">&-", ">/dev/full", "| true"
DOCTOR = ("doctor", "--json")
COMMANDS = [("validate", "layer.json"), ("compile", "layer.json"), ("--version",), ("compile", "--help")]
NO_ROOM = "error[file]: [Errno 28] No space left on device: 'standard output'\n"

Redirected: TypeAlias = Callable[..., "tuple[int, str]"]
"""Runs the command with a redirection of the shell: its exit status, and what it says at stderr."""


@contextmanager
def full() -> Generator[int]:
    stdout = os.open(FULL.removeprefix(">"), os.O_WRONLY)
    try:
        yield stdout
    finally:
        os.close(stdout)


@pytest.fixture
def redirected(tmp_path: Path, served: str, graph_file: Path, kiln: Kiln) -> Redirected:
    def run(redirection: str, *arguments: str, **variables: str) -> tuple[int, str]:
        if redirection in (FULL, UNREAD):
            with full() if redirection == FULL else broken_pipe() as stdout:
                done = kiln(*arguments, stdout=stdout, **variables)
            return done.returncode, done.stderr
        own = {"KILN_URL": served, "KILN_HOME": str(tmp_path / "home"), "NO_COLOR": "1", "COLUMNS": "200"}
        hurried, directory = no_time_at(variables.get("KILN_URL", "")), graph_file.parent
        environment = {**os.environ, **own, **variables, **hurried}
        # Python looks when it starts whether a stream is there.
        script = f'{{ "$@"; echo $? >status; }} {redirection}'
        command = ["sh", "-c", script, "sh", sys.executable, "-W", "error", "-m", "tensorkiln.cli", *arguments]
        done = subprocess.run(
            command, cwd=directory, env=environment, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
        return int((tmp_path / "status").read_text()), done.stderr

    return run


# Each that has none is a start of Python: what is written by one library is written so for all commands.
@pytest.mark.parametrize(
    ("redirection", "arguments"),
    [
        *((UNREAD, command) for command in (*COMMANDS, DOCTOR, ("doctor",))),
        *((CLOSED, command) for command in (*COMMANDS[1:], DOCTOR)),
    ],
)
def test_an_unread_output_is_no_failure(redirected: Redirected, redirection: str, arguments: tuple[str, ...]) -> None:
    assert redirected(redirection, *arguments) == (0, "")
    if "doctor" in arguments:
        assert redirected(redirection, *arguments, KILN_URL="http://127.0.0.1:1") == (1, "")


@pytest.mark.parametrize(
    ("arguments", "unbuffered"), [*((each, "") for each in (*COMMANDS, DOCTOR)), (COMMANDS[0], "1"), (DOCTOR, "1")]
)
def test_a_full_output_is_one_line(redirected: Redirected, arguments: tuple[str, ...], unbuffered: str) -> None:
    assert redirected(FULL, *arguments, PYTHONUNBUFFERED=unbuffered) == (2, NO_ROOM)


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_an_error_that_cannot_be_told_is_its_exit_status(redirected: Redirected, redirection: str) -> None:
    status, _ = redirected(redirection, "compile", "layer.json", KILN_URL="http://127.0.0.1:1")
    assert status == 3


HOSTILE = "\x1b[2Jno\x07\x7f\x9b1m\u202e\u2066\r\ud800"
ESCAPED = r"\x1b[2Jno\x07\x7f\x9b1m\u202e\u2066"


def test_a_field_of_a_graph_does_nothing_to_a_terminal(kiln: Kiln, tmp_path: Path, layer: Graph) -> None:
    graph = json.loads(layer.to_json())
    graph["nodes"][0]["\x1b[2Jfield\u202e"] = 1
    (tmp_path / "hostile.json").write_text(json.dumps(graph))
    refused = complaint(kiln("validate", "hostile.json"), 1)
    assert "\x1b" not in refused
    assert "\u202e" not in refused
    assert r"\x1b[2Jfield\u202e" in refused


@pytest.mark.parametrize("command", ["compile", "validate"])
def test_problems_leave_terminals_alone(kiln: Kiln, scripted: ScriptedServer, graph_file: Path, command: str) -> None:
    scripted.refuses_with(422, "graph.invalid", f"{HOSTILE}\nnext", pointers=["/nodes/\x1b]0;title\x07\n"])
    refused = complaint(kiln(command, graph_file.name, url=scripted.url), 1)
    where = r"/nodes/\x1b]0;title\x07\x0a"
    assert refused == f"error[graph.invalid] at {where}: {ESCAPED} \\ud800 next\n"


def test_a_name_does_nothing_to_a_terminal_and_is_no_markup(kiln: Kiln, tmp_path: Path, layer: Graph) -> None:
    name, shown = "a\x1b[2J\x9b\u202eb[red]:x:\\[b]", r"a\x1b[2J\x9b\u202eb[red]:x:\[b]"
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / f"{name}.json").write_text(layer.to_json())
    done = kiln("compile-all", "graphs", "-t", "cpu")
    assert done.returncode == 0, done.stderr
    assert f" {shown} " in done.stdout
    assert f"graphs/{shown}.json is a graph" in kiln("validate", f"graphs/{name}.json").stdout
    missing = kiln("compile", f"graphs/{name}.json", "-o", "a[red]:x:\\[b]/out.json")
    assert repr("a[red]:x:\\[b]/out.json") in missing.stderr
    refused = kiln("compile", f"graphs/{name}.json", "-t", "cpu:[red]:x:")
    assert "cpu:[red]:x:" in refused.stderr
