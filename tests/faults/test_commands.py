"""The commands of a farm as its page has them; a worker that could not work says why and takes no orders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.service.forked import forked_services
from tests.service.server import children


def worked(home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A worker that ends by itself."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
    environment = {**clean, "KILN_HOME": str(home), **variables}
    return forked_services().run("service.worker", cwd=Path.cwd(), env=environment)


@pytest.mark.xdist_group("farm")
def test_the_script_runs_a_farm_that_loads_no_compiler_but_to_compile_and_ends_it_however_often_it_is_told_to(
    tmp_path: Path,
) -> None:
    arguments = ("--services", "2", "--workers", "1", "--home", str(tmp_path / "farm"))
    command = [sys.executable, "-m", "tests.farm", *arguments]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean) as script:
        assert script.stdout is not None
        assert script.stderr is not None
        printed = [script.stdout.readline()]
        while "Ctrl-C stops it." not in printed[-1]:
            assert printed[-1], script.stderr.read()
            printed.append(script.stdout.readline())
        assert "".join(printed).count("compiles: 200") == 2
        members = children(script.pid)
        assert len(members) == 3
        require_no_compiler([*members, *(child for member in members for child in children(member))])
        for _ in range(3):
            script.send_signal(signal.SIGTERM)
            time.sleep(0.2)
        assert "stopped with [0, 0, 0]" in script.stdout.read()
        assert script.stderr.read() == ""
    assert script.returncode == 0


def require_no_compiler(processes: list[int]) -> None:
    """None of these has loaded LLVM or MLIR, but those that compile and what they are forked from."""
    compilers = 0
    for pid in processes:
        command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
        is_loaded = "libLLVM" in (maps := Path(f"/proc/{pid}/maps").read_text()) or "torch_mlir" in maps
        is_compiler = "rehearsal" in command or "kiln" in Path(f"/proc/{pid}/comm").read_text()
        assert not is_loaded or is_compiler, command
        compilers += is_loaded
    assert compilers > 0, "the worker's fork server has it"


def test_a_worker_says_which_setting_it_cannot_read(tmp_path: Path) -> None:
    done = worked(tmp_path, KILN_OIDC="{x")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("KILN_OIDC: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("KILN_REQUIRE_ISOLATION", "external", "external"),
        ("KILN_KEYS", "file/keys", "cannot be written to"),
        ("KILN_STORE", "file/store", "store"),
    ],
)
def test_a_worker_that_could_not_work_ends_before_it_looks_for_orders(
    tmp_path: Path, variable: str, value: str, reason: str
) -> None:
    (tmp_path / "file").touch()
    stated = value if variable == "KILN_REQUIRE_ISOLATION" else str(tmp_path / value)
    done = worked(tmp_path, **{variable: stated})
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "The worker cannot start: " in done.stderr
    assert reason in done.stderr.splitlines()[-1]
