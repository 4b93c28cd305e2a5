from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tensorkiln.cli.app import _COMMANDS  # pyright: ignore[reportPrivateUsage]
from tests.farm.members import free_port
from tests.forked import Forked
from tests.sdk.conftest import NOWHERE, no_time_at
from tests.service.forked import forked_embedding
from tests.snippets import ROOT, blocks, every_block, run_python

SDK, CLI = ROOT / "docs" / "sdk.md", ROOT / "docs" / "cli.md"
COMMAND = re.compile(r"^\$ kiln (.*)$", re.MULTILINE)
# The page writes `$ kiln … # exits with 1` where a command shows a failure.
STATED_EXIT_CODE = re.compile(r"# exits with (\d+)$")
KILN = [sys.executable, "-W", "error", "-m", "tensorkiln.cli"]


def test_every_python_block_of_the_sdk_page_runs(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KILN_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    assert len(blocks(SDK, "python")) > 5
    with forked_embedding():
        run_python(SDK)
    assert capsys.readouterr().out


@pytest.mark.timeout(600)
def test_every_command_of_the_cli_page_runs(tmp_path: Path, forked: Forked) -> None:
    environment = {**os.environ, "KILN_HOME": str(tmp_path / "home"), "KILN_CONFIG_DIR": str(tmp_path / "config")}
    port = str(free_port())
    url, ran = f"http://127.0.0.1:{port}", set[str]()
    with ExitStack() as services:
        for block in every_block(CLI):
            if block.language == "python":
                subprocess.run(
                    [sys.executable, "-c", block.text], cwd=tmp_path, env=environment, check=True, timeout=120
                )
            for command in COMMAND.findall(block.text) if block.language == "console" else ():
                words = shlex.split(command.replace("8080", port), comments=True)
                if words[0] == "serve":
                    services.enter_context(serving([*KILN, *words], environment))
                    ran.add(words[0])
                    continue
                # The first compile has a service and a Python of its own; the others need not wait for them each.
                if words[0] in ran or words[0] != "compile":
                    own = {"KILN_URL": url, **no_time_at(NOWHERE if NOWHERE in words else url)}
                    done = forked.run(KILN[-1], *words, cwd=tmp_path, env={**environment, **own})
                else:
                    done = subprocess.run(
                        [*KILN, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
                    )
                ran.add(words[0])
                stated = STATED_EXIT_CODE.search(command)
                expected = int(stated[1]) if stated else 0
                assert done.returncode == expected, f"kiln {command}\n{done.stdout}{done.stderr}"
    # `mcp` is run by its own tests: it waits for whoever talks to it.
    assert ran == {*_COMMANDS} - {"mcp"}


@contextmanager
def serving(command: list[str], environment: dict[str, str]) -> Generator[None, None, None]:
    """Run `kiln serve` until the block ends; the block begins when it is ready."""
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("tensorkiln is ready")
            yield
        finally:
            process.terminate()
    assert process.returncode == 0
