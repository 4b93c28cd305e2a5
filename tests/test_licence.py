"""Both distributions may be used: they say under which licence, and have its text inside."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"tensorkiln": ROOT / "client", "tensorkiln-server": ROOT}
APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
"""SHA-256 of the text at apache.org/licenses/LICENSE-2.0.txt."""
DISTRIBUTIONS = pytest.mark.parametrize("name", FOLDERS)


def project(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDERS[name] / "pyproject.toml").read_text("utf-8"))["project"]


@DISTRIBUTIONS
def test_the_licence_of_a_distribution_is_the_whole_text_of_apache_2(name: str) -> None:
    for stated in project(name)["license-files"]:
        assert hashlib.sha256((FOLDERS[name] / stated).read_bytes()).hexdigest() == APACHE_2


@DISTRIBUTIONS
def test_a_distribution_says_what_an_index_shows(name: str) -> None:
    stated = project(name)
    assert stated["name"] == name
    assert stated["license"] == "Apache-2.0"
    assert stated["authors"] == [{"name": "The tensorkiln authors"}]
    assert (FOLDERS[name] / stated["readme"]).is_file()
    # A licence among the classifiers would contradict the expression (PEP 639).
    assert not [each for each in stated["classifiers"] if each.startswith("License ::")]
    assert "Programming Language :: Python :: 3.11" in stated["classifiers"]


def contents(made: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a wheel or an sdist."""
    if made.suffix == ".whl":
        with zipfile.ZipFile(made) as wheel:
            yield from ((each, wheel.read(each)) for each in wheel.namelist())
        return
    with tarfile.open(made) as source:
        for member in source:
            if (file := source.extractfile(member)) is not None:
                yield member.name, file.read()


@DISTRIBUTIONS
def test_a_wheel_and_an_sdist_have_licence_and_readme_inside(name: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed; the extra dev has it")
    command = [sys.executable, "-m", "hatchling", "build", "-d", tmp_path, "-t", "wheel", "-t", "sdist"]
    subprocess.run(command, cwd=FOLDERS[name], check=True, capture_output=True)
    made = sorted(tmp_path.iterdir(), key=lambda path: path.suffix)
    assert [path.suffix for path in made] == [".gz", ".whl"]
    for path, described in zip(made, ("PKG-INFO", "METADATA"), strict=True):
        files = dict(contents(path))
        texts = [content for file, content in files.items() if file.rpartition("/")[2] == "LICENSE"]
        assert texts
        assert {hashlib.sha256(text).hexdigest() for text in texts} == {APACHE_2}
        (metadata,) = (content for file, content in files.items() if file.rpartition("/")[2] == described)
        read = Parser().parsestr(metadata.decode())
        assert (read["Name"], read["License-Expression"], read["License-File"]) == (name, "Apache-2.0", "LICENSE")
        assert "# tensorkiln" in read.get_payload()
