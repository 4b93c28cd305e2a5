"""The images are made of versions that were chosen, and of files that nobody has changed since."""

from __future__ import annotations

import re
import shlex

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.snippets import ROOT

from .files import DOCKER, instructions
from .locks import LOCKS, OURS, PLATFORMS, entries, lines, lock, project, required

NAMES = ("images", "tools")
PIP = re.compile(r"(?:\S*/)?pip (?:--python \S+ )?(?:download|install|wheel) [^&]*")


def inputs(name: str) -> list[str]:
    return lines((LOCKS / f"{name}.in").read_text())


def installed() -> dict[str, set[str]]:
    """The extras of our distributions that are locked."""
    folders = {f"./{folder.relative_to(ROOT)}".removesuffix("/."): name for name, folder in OURS.items()}
    found = (re.fullmatch(r"(.*)\[(.*)\]", line) for line in inputs("images"))
    return {folders[each[1]]: set(each[2].split(",")) for each in found if each is not None}


@pytest.mark.parametrize("name", NAMES)
def test_a_lock_has_exact_versions_with_hashes_and_says_nothing_of_an_index(name: str) -> None:
    text = (LOCKS / f"{name}.txt").read_text()
    assert len(entries(text)) > 30
    assert "://" not in text
    assert not re.search(r"index|find-links|trusted", text)


@pytest.mark.parametrize("line", ["numpy", "numpy>=2 --hash=sha256:" + "0" * 64, "numpy==2.4.6", "--pre"])
def test_anything_else_is_no_lock(line: str) -> None:
    with pytest.raises(ValueError, match=re.escape(line)):
        entries(line)


def test_the_extras_that_the_images_install_are_those_that_are_locked() -> None:
    text = (DOCKER / "Dockerfile").read_text()
    asked = {name: set(extras.split(",")) for name, extras in re.findall(r"'(tensorkiln[\w-]*)\[(.*?)\]'", text)}
    assert installed() == asked


@pytest.mark.parametrize("machine", PLATFORMS)
def test_everything_that_is_required_is_locked_at_a_version_that_will_do(machine: str) -> None:
    locked = lock("images")
    for name, extras in installed().items():
        for requirement in required(name, extras, machine):
            entry = locked[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(entry.version, prereleases=True), requirement


def test_the_build_backend_is_locked_too() -> None:
    locked = lock("tools")
    backends = {each for name in OURS for each in project(name)["build-system"]["requires"]}
    assert backends <= set(inputs("tools"))
    for requirement in map(Requirement, inputs("tools")):
        assert requirement.specifier.contains(locked[requirement.name].version, prereleases=True)


def test_packages_of_an_index_are_locked_wheels() -> None:
    commands = [shlex.split(each) for word, rest in instructions() if word == "RUN" for each in PIP.findall(rest)]
    indexed = [words for words in commands if "--no-index" not in words and "--no-build-isolation" not in words]
    for words in indexed:
        assert {"download", "--require-hashes", "--no-deps", "--only-binary=:all:"} <= set(words)
    read = [words[words.index("-r") + 1] for words in indexed]
    assert sorted(read) == [f"docker/lock/{name}.txt" for name in NAMES]
    (built,) = [words for words in commands if "wheel" in words]
    assert {"--no-deps", "--no-build-isolation", "./client", "."} <= set(built)
    assert len(commands) == 8


def test_the_base_can_be_another_and_is_named_once() -> None:
    named = [rest for word, rest in instructions() if word == "ARG"]
    assert named == ["PYTHON=python:3.11-slim"]
    text = (DOCKER / "Dockerfile").read_text()
    assert len(re.findall(r"^FROM \$\{PYTHON\} AS ", text, re.MULTILINE)) == 2
    assert not re.search(r"^(?:FROM python|# *syntax)", text, re.MULTILINE)
