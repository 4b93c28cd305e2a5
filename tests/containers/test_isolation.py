"""Whatever compiles or reads requests demands isolation, wherever it is deployed; the manual says how to do without."""

from __future__ import annotations

import errno
import os
import re
from typing import Any

import pytest

from service.sandbox import landlock
from service.sandbox.levels import Level
from tensorkiln.trust import is_at_least
from tests.snippets import ROOT, blocks

from .files import DOCKER, KUBERNETES, compose, documents, stages, value

DEMAND = "KILN_REQUIRE_ISOLATION"
COMPOSITIONS = sorted(path.name for path in DOCKER.glob("compose*.yaml"))
MANIFESTS = sorted(path for path in KUBERNETES.rglob("*.yaml") if path.name != "kustomization.yaml")
README, SANDBOX = DOCKER / "README.md", ROOT / "docs" / "sandbox.md"


def is_enough(level: str) -> bool:
    return is_at_least(Level(level), Level.LANDLOCK)


def ours(image: str) -> bool:
    return image.partition(":")[0].rpartition("/")[2] in ("tensorkiln", "tensorkiln-worker")


def literals(generator: dict[str, Any]) -> dict[str, str]:
    return dict(literal.split("=", 1) for literal in generator["literals"])


def generated() -> dict[str, str]:
    """The settings of the base."""
    (kustomization,) = documents(KUBERNETES / "base/kustomization.yaml")
    return {name: text for each in kustomization["configMapGenerator"] for name, text in literals(each).items()}


def containers(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """The containers of a workload that do what an image of this project is for."""
    pod = manifest.get("spec", {}).get("template", {}).get("spec", {})
    each = [*pod.get("containers", ()), *pod.get("initContainers", ())]
    return [container for container in each if ours(container["image"]) and "command" not in container]


@pytest.mark.parametrize("image", ["worker", "api"])
def test_an_image_demands_it_of_whoever_runs_it_by_hand(image: str) -> None:
    stated = dict(rest.split("=", 1) for word, rest in stages()[image] if word == "ENV" and rest.startswith(DEMAND))
    assert is_enough(stated[DEMAND])


def test_the_image_without_an_engine_demands_the_same() -> None:
    (stated,) = re.findall(rf"\b{DEMAND}=([\w+]+)", (DOCKER / "run-in-debian-root").read_text())
    assert f"{DEMAND}={stated}" in value("api", "ENV")


@pytest.mark.parametrize("file", COMPOSITIONS)
def test_a_composition_demands_it_unless_it_is_told_not_to(file: str) -> None:
    found = 0
    for service in compose(file)["services"].values():
        # Another entry point than the image's neither compiles nor reads requests.
        if ours(service["image"]) and "entrypoint" not in service:
            stated = re.fullmatch(rf"\$\{{{DEMAND}:-(.+)\}}", service["environment"][DEMAND])
            assert stated is not None
            assert is_enough(stated[1])
            found += 1
    assert found


def test_every_workload_of_a_cluster_demands_it() -> None:
    found = 0
    for manifest in (manifest for path in MANIFESTS for manifest in documents(path)):
        for container in containers(manifest):
            assert {"configMapRef": {"name": "kiln"}} in container["envFrom"]
            assert DEMAND not in {entry["name"] for entry in container.get("env", ())}
            found += 1
    assert found == 2
    assert is_enough(generated()[DEMAND])


def test_a_composition_may_ask_for_less_as_the_manual_says() -> None:
    commands = [line for block in blocks(README, "sh") for line in block.text.splitlines() if DEMAND in line]
    for command in commands:
        setting, *rest = command.split()
        assert Level(setting.removeprefix(f"{DEMAND}=")) is Level.PROCESS
        assert rest[:3] == ["docker", "compose", "-f"]
        assert (ROOT / rest[3]).name in COMPOSITIONS
    assert commands


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM])
def test_the_manual_knows_why_a_node_has_no_landlock(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(landlock, "_call", refuse)
    assert f"| `{landlock.support().reason}` |" in SANDBOX.read_text("utf-8")
