"""What is locked is what an index gives today, for both kinds of processors, and pip takes nothing else.

It needs the index that pip asks. (The images themselves need an engine.)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from tests.snippets import ROOT

from .files import stages
from .locks import OURS, PLATFORMS, Locked, entries, lock, project, tool

# Its index keeps the newest release alone, and its makers make one every month.
KEPT_FOR_A_WHILE = "torch-mlir"
UNREACHED = ("Failed to fetch", "dns error", "error sending request", "Connection", "Temporary failure")


def run(command: list[str], folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200)


def need(done: subprocess.CompletedProcess[str]) -> None:
    """Skip when nothing could be asked, and fail when it could."""
    if done.returncode and any(sign in done.stderr for sign in UNREACHED):
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr


def index() -> list[str]:
    """uv's option for the index that pip asks: it reads no setting of pip's."""
    stated = run([sys.executable, "-m", "pip", "config", "get", "global.index-url"])
    url = os.environ.get("PIP_INDEX_URL") or stated.stdout.strip()
    return ["--default-index", url] if url else []


def resolved(name: str, platform: str, folder: Path) -> dict[str, Locked]:
    """What `make lock` makes now, on another platform, when the versions have to be those that are locked."""
    uv = tool("uv")
    if uv is None:
        pytest.skip("uv is not installed")
    made = run(["make", "--dry-run", "--always-make", "lock"]).stdout.splitlines()
    (own,) = [line.replace("'make lock'", "lock").split() for line in made if f"docker/lock/{name}.in" in line]
    versions = folder / "versions"
    versions.write_text("".join(f"{each}=={entry.version}\n" for each, entry in lock(name).items()))
    command = [uv, *own[1:-1], str(folder / "lock"), "--constraints", str(versions), *index()]
    command[command.index("--python-platform") + 1] = platform
    done = run(command)
    if f"there is no version of {KEPT_FOR_A_WHILE}==" in done.stderr:
        pytest.skip(f"the index has another {KEPT_FOR_A_WHILE}: run make lock")
    need(done)
    return entries((folder / "lock").read_text())


@pytest.mark.parametrize("platform", PLATFORMS.values())
@pytest.mark.parametrize("name", ["images", "tools"])
def test_the_lock_is_whole_and_its_hashes_are_those_of_the_index(name: str, platform: str, tmp_path: Path) -> None:
    locked, now = lock(name), resolved(name, platform, tmp_path)
    assert now.keys() == locked.keys()
    for each, entry in locked.items():
        assert entry.version == now[each].version
        # Of a version there may be more files by now.
        assert entry.hashes <= now[each].hashes, each


def in_stage(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command of the stage that makes the wheels, with its places below `folder` and the sources in one of them."""
    for place in ("/tools", "/wheels", "/opt/build"):
        command = command.replace(f" {place}", f" {folder}{place}").replace(f"={place}", f"={folder}{place}")
    return run(["bash", "-euc", command], folder / "src")


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    """A folder with the sources, as the stage has them."""
    for word, rest in stages()["wheels"]:
        if word == "COPY":
            for source in rest.split()[:-1]:
                place = tmp_path / "src" / source
                place.parent.mkdir(parents=True, exist_ok=True)
                made = shutil.ignore_patterns("__pycache__", "*.egg-info")
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, place, ignore=made)
                else:
                    shutil.copy(ROOT / source, place)
    return tmp_path


def test_both_distributions_are_built_by_the_backend_that_is_locked(stage: Path) -> None:
    downloads, builds = (rest for word, rest in stages()["wheels"] if word == "RUN")
    tools, images = downloads.split(" && ")
    assert images.split() == tools.replace("tools.txt", "images.txt").replace("/tools", "/wheels").split()
    need(in_stage(tools, stage))
    built = in_stage(builds, stage)
    assert built.returncode == 0, built.stderr
    versions = {name: project(name)["project"]["version"] for name in OURS}
    stated = {f"{name.replace('-', '_')}-{version}-py3-none-any.whl" for name, version in versions.items()}
    assert {path.name for path in (stage / "wheels").iterdir()} == stated


def test_a_release_that_the_index_has_dropped_is_taken_from_the_wheelhouse(
    stage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel is one that no index has, and none is asked that answers."""
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    stated = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull}
    for name, value in stated.items():
        monkeypatch.setenv(name, value)
    wheel = stage / "src/docker/wheelhouse/dropped-20261001-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(
            "dropped-20261001.dist-info/METADATA", "Metadata-Version: 2.1\nName: dropped\nVersion: 20261001\n"
        )
        archive.writestr("dropped-20261001.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("dropped-20261001.dist-info/RECORD", "")
    digest = sha256(wheel.read_bytes()).hexdigest()
    (_, images) = next(rest for word, rest in stages()["wheels"] if word == "RUN").split(" && ")
    for stated_digest, status in ((digest[::-1], 1), (digest, 0)):
        (stage / "src/docker/lock/images.txt").write_text(f"dropped==20261001 --hash=sha256:{stated_digest}\n")
        done = in_stage(images, stage)
        assert done.returncode == status, done.stderr
    assert [path.name for path in (stage / "wheels").iterdir()] == [wheel.name]
