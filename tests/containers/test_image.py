"""The images' stages agree with the service. (Building them needs an engine.)"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from hatch_build import FOLDERS as MOVED
from service.server.serve import create_app
from service.settings import Settings
from tensorkiln_server.__main__ import COMMANDS
from tests.snippets import ROOT

from .files import DOCKER, VARIABLES, instructions, stages, value
from .locks import lock

IMAGES = ("cli", "worker", "api")


def routes() -> set[str]:
    return set(create_app(Settings()).openapi()["paths"])


def environment(stage: str) -> dict[str, str]:
    lines = [rest for word, rest in stages()[stage] if word == "ENV"]
    return dict(entry.split("=", 1) for line in lines for entry in shlex.split(line))


def test_the_default_image_is_the_service() -> None:
    assert list(stages())[-1] == "api"


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_runs_as_a_user_without_a_name_to_look_up(image: str) -> None:
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", value(image, "USER"))


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_lists_what_it_is_made_of(image: str) -> None:
    assert any(word == "RUN" and "cyclonedx-py environment" in rest for word, rest in stages()[image])


@pytest.mark.parametrize(("image", "name"), [("cli", "tensorkiln"), ("api", "tensorkiln-server")])
def test_an_image_has_the_extra_of_tools_for_assistants_and_its_packages_are_locked(image: str, name: str) -> None:
    (extras,) = [found[1] for _, rest in stages()[image] if (found := re.search(rf"'{name}\[([\w,]+)\]'", rest))]
    assert "mcp" in extras.split(",")
    assert {"mcp", "jsonschema"} <= lock("images").keys()


@pytest.mark.parametrize("image", ["worker", "api"])
def test_the_store_is_the_volume(image: str) -> None:
    assert environment(image)["KILN_HOME"] == value(image, "VOLUME")
    assert {name for name in environment(image) if name.startswith("KILN_")} <= VARIABLES


def test_the_health_checks_ask_what_is_served() -> None:
    checks = {image: re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)", value(image, "HEALTHCHECK")) for image in IMAGES[1:]}
    assert checks["api"] is not None
    assert checks["api"][1] == value("api", "EXPOSE") == json.loads(value("api", "CMD"))[-1]
    assert checks["api"][2] in routes()
    assert checks["worker"] is not None
    assert (
        checks["worker"][1] == value("worker", "EXPOSE") == environment("worker")["KILN_WORKER_METRICS"].split(":")[1]
    )


@pytest.mark.parametrize("image", IMAGES)
def test_the_command_of_an_image_exists(image: str) -> None:
    command = json.loads(value(image, "ENTRYPOINT"))
    if image == "cli":
        scripts = tomllib.loads((ROOT / "client/pyproject.toml").read_text())["project"]["scripts"]
        assert command == ["kiln"]
        assert "kiln" in scripts
    else:
        assert command[:3] == ["python", "-P", "-m"]
        assert command[3] == "tensorkiln_server"
        assert command[4:] in ([], *([name] for name in COMMANDS))


def test_everything_that_is_copied_exists_and_is_in_the_build_context() -> None:
    ignored = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in ignored if line.startswith("!")}
    for word, rest in instructions():
        if word == "COPY":
            for source in rest.split()[:-1]:
                assert source in allowed
                assert source == "README.md" or (ROOT / source).exists()
    assert not any(fnmatch("tests", pattern) for pattern in allowed)


def test_the_packages_of_the_server_are_all_copied() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = {*project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"], *MOVED, "hatch_build.py"}
    copied = {source for word, rest in instructions() if word == "COPY" for source in rest.split()[:-1]}
    assert {*packages, "client"} <= copied


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_says_what_it_is(image: str) -> None:
    labels = dict(each.split("=", 1) for each in shlex.split(value(image, "LABEL")))
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert labels["org.opencontainers.image.licenses"] == stated["license"]
    assert labels["org.opencontainers.image.title"] == ("tensorkiln" if image == "api" else f"tensorkiln-{image}")
    assert labels["org.opencontainers.image.description"].endswith(".")


def test_the_extras_that_are_installed_exist() -> None:
    for folder, name in ((".", "tensorkiln-server"), ("client", "tensorkiln")):
        known = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        asked = re.findall(rf"'{name}\[(.*?)\]'", (DOCKER / "Dockerfile").read_text())
        assert asked
        assert {extra for extras in asked for extra in extras.split(",")} <= known.keys()


def test_the_linter_of_dockerfiles_finds_nothing() -> None:
    linter = shutil.which("hadolint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if linter is None:
        pytest.skip("hadolint is not installed: it has wheels for x86-64 only")
    found = subprocess.run([linter, DOCKER / "Dockerfile"], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, "")
