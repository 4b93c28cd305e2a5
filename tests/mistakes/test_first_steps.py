from __future__ import annotations

import shutil
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tensorkiln.build import Builder, zeros
from tensorkiln.expr import floordiv
from tensorkiln.large_graph import LargeGraphWarning
from tests.mistakes.tables import SETUP
from tests.snippets import ROOT

BLOCK = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Missing())
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == {package!r} else find(name, package)
{code}
"""


@pytest.mark.parametrize(
    ("package", "code", "said"),
    [
        ("onnx", "from tensorkiln.frontends import onnx", SETUP["from tensorkiln.frontends import onnx"]),
        ("flatbuffers", "from tensorkiln.frontends import jax", SETUP["from tensorkiln.frontends import jax"]),
        ("jax", "from tensorkiln.frontends import jax; jax.jit(lambda x: x)(1)", "pip install jax"),
        (
            "tinygrad",
            "from tensorkiln.frontends import tinygrad; tinygrad.jit(lambda x: x)(1)",
            "pip install 'tensorkiln[tinygrad]'",
        ),
        ("typer", "from tensorkiln.cli import main; main()", SETUP["kiln"]),
        (
            "llvmlite",
            "from tensorkiln import Target; Target.parse('cpu:native')",
            SETUP['Target.parse("cpu:native")'],
        ),
    ],
)
def test_a_package_that_is_missing_is_named_with_the_command_that_installs_it(
    package: str, code: str, said: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCK.format(package=package, code=code)], capture_output=True, text=True, check=False
    )
    assert done.returncode
    assert said in done.stderr.strip().splitlines()[-1]


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_setup_says_which_python_it_needs(tmp_path: Path) -> None:
    old = tmp_path / "python3.10"
    old.write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'import sys; sys.version_info = (3, 10, 4); exec(sys.argv[1])' \"$2\"\n"
    )
    old.chmod(old.stat().st_mode | stat.S_IXUSR)
    done = subprocess.run(
        ["make", "setup", f"PYTHON={old}", f"VENV={tmp_path / 'venv'}"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode
    said = SETUP["make setup PYTHON=python3.10"].replace("python3.10 is", f"{old} is")
    assert said in done.stderr
    assert not (tmp_path / "venv").exists()


def test_two_inputs_of_40_gb_are_warned_of() -> None:
    b = Builder("large")
    x, y = b.input("float32", (100_000, 100_000), "x"), b.input("float32", (100_000, 100_000), "y")
    b.output((x + y).sum())
    with pytest.warns(LargeGraphWarning) as caught:
        b.graph()
    assert str(caught[0].message) == SETUP["large.graph()"]
    assert caught[0].filename == __file__


def test_symbols_count_with_their_least_values() -> None:
    b = Builder("open")
    n = b.symbol("n", 1, 1 << 40)
    b.output(b.input("float32", (n, n)) * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        b.graph()
    b = Builder("undivided")
    n = b.symbol("n", 2, 64)
    b.output(zeros(b, [floordiv(n, floordiv(n, 3))], "float32"), b.input("float32", (n,)))
    b.graph()
    b = Builder("large")
    n = b.symbol("n", 1 << 18, 1 << 20)
    b.output(b.input("float32", (n, n)))
    with pytest.warns(LargeGraphWarning, match="at the least values of its symbols"):
        b.graph()
