"""The examples are programs that run, and the page that lists them lists them all."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from tensorkiln.cli.app import app
from tests.service.server import Server
from tests.snippets import ROOT

FOLDER = ROOT / "examples"
PROGRAMS = sorted(path.name for path in FOLDER.glob("*.py"))
NEEDED = {"jax_function.py": "jax", "torch_module.py": "torch", "tinygrad_tensors.py": "tinygrad"}
"""What an example needs beside the project."""
pytestmark = pytest.mark.xdist_group("docs")


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_runs(name: str, server: Server, tmp_path: Path) -> None:
    needed = NEEDED.get(name)
    if needed and find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    if name == "onnx_to_c.py" and shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    # tinygrad computes by Python itself here, which needs no compiler.
    tinygrad = {"DEV": "PYTHON", "CACHELEVEL": "0"}
    environment = {**os.environ, **tinygrad, "KILN_URL": server.url, "KILN_HOME": str(tmp_path / "home")}
    # torch warns of itself.
    warnings = () if needed == "torch" else ("-W", "error")
    command = [sys.executable, *warnings, str(FOLDER / name)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_example_over_http_gets_a_program(server: Server) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    script = FOLDER / "stablehlo_over_http.sh"
    assert os.access(script, os.X_OK)
    environment = {**os.environ, "KILN_URL": server.url}
    done = subprocess.run(["sh", str(script)], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (program,) = json.loads(done.stdout)["programs"]
    assert program["kernels"]


def test_every_example_is_listed() -> None:
    listed = re.findall(r"^\| `([^`]+)`", (FOLDER / "README.md").read_text("utf-8"), re.MULTILINE)
    files = [path for path in FOLDER.rglob("*") if path.suffix in (".py", ".sh", ".yml", ".yaml")]
    assert sorted(listed) == sorted(str(path.relative_to(FOLDER)) for path in files)


def test_the_workflow_calls_kiln_as_it_is() -> None:
    (job,) = yaml.safe_load((FOLDER / "github-workflow.yml").read_text("utf-8"))["jobs"].values()
    (line,) = [step["run"] for step in job["steps"] if step.get("run", "").startswith("kiln ")]
    _, name, *arguments = shlex.split(line)
    command = get_command(app).get_command(None, name)  # type: ignore[union-attr, arg-type]
    assert command is not None
    known = {option for each in command.params for option in each.opts}
    assert {each for each in arguments if each.startswith("--")} <= known
