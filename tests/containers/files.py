"""What stands in the files under docker/."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from service.settings import Settings
from tests.snippets import ROOT

DOCKER = ROOT / "docker"
KUBERNETES = DOCKER / "kubernetes"
VARIABLES = {f"KILN_{name.upper()}" for name in Settings.model_fields}


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, continuation lines joined, comments left out."""
    lines = [line for line in (DOCKER / "Dockerfile").read_text().splitlines() if not line.strip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def stages() -> dict[str, list[tuple[str, str]]]:
    """The instructions of each stage by its name, those of the stage that it begins from before its own."""
    found: dict[str, list[tuple[str, str]]] = {}
    own: list[tuple[str, str]] = []
    for word, rest in instructions():
        if word == "FROM":
            source, name = rest.split(" AS ")
            found[name] = own = [*found.get(source, ())]
        else:
            own.append((word, rest))
    return found


def value(stage: str, name: str) -> str:
    """The last instruction of this name in a stage."""
    return [rest for word, rest in stages()[stage] if word == name][-1]


def compose(name: str) -> dict[str, Any]:
    """A composition, its references resolved."""
    return yaml.safe_load((DOCKER / name).read_text())


def documents(path: Path) -> list[dict[str, Any]]:
    """The documents of a YAML file."""
    return list(yaml.safe_load_all(path.read_text()))


def manifests(folder: str = "base") -> list[dict[str, Any]]:
    """Every object that the files of a folder of `kubernetes` state."""
    files = sorted(path for path in (KUBERNETES / folder).glob("*.yaml") if path.name != "kustomization.yaml")
    return [document for path in files for document in documents(path)]
