"""The services of a composition as processes of this machine, each with the volumes that it mounts and no others."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from tests.farm.members import Member
from tests.snippets import ROOT

from .files import compose, stages, value

_VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


class Composed:
    """Volumes are folders of `folder`; what a service does not mount is its own. `given` is the caller's environment.

    `instead` has what a process of this machine needs otherwise, as a port.
    """

    def __init__(self, file: str, folder: Path, given: dict[str, str], **instead: str) -> None:
        self._services: dict[str, dict[str, Any]] = compose(file)["services"]
        self._folder = folder
        self._given = given
        self._instead = instead

    def volumes(self, name: str) -> dict[PurePosixPath, tuple[str, bool]]:
        """By place: the volume that a service mounts there, and whether it may only be read."""
        mounts = (text.split(":") for text in self._services[name].get("volumes", ()))
        return {PurePosixPath(place): (source, mode == ["ro"]) for source, place, *mode in mounts}

    def volume(self, source: str) -> Path:
        """The folder of a volume."""
        path = self._folder / "volumes" / source
        path.mkdir(parents=True, exist_ok=True)
        return path

    def path(self, name: str, place: str) -> Path:
        """Where a service finds this path of its container."""
        inside = PurePosixPath(place)
        for mounted, (source, _) in self.volumes(name).items():
            if inside.is_relative_to(mounted):
                return self.volume(source) / inside.relative_to(mounted)
        return self._folder / name / inside.relative_to("/")

    def environment(self, name: str) -> dict[str, str]:
        """What a service has of its image and of the composition, in the names of this machine's paths."""
        lines = [rest for word, rest in stages()[self._services[name]["build"]["target"]] if word == "ENV"]
        stated = dict(entry.split("=", 1) for line in lines for entry in shlex.split(line))
        stated |= self._services[name].get("environment", {})
        ours = {key: self._substituted(text) for key, text in stated.items() if key.startswith("KILN_")}
        paths = {key: str(self.path(name, text)) for key, text in ours.items() if text.startswith("/")}
        return {**ours, **paths, **self._instead}

    def _substituted(self, text: str) -> str:
        def replaced(found: re.Match[str]) -> str:
            if found[1] in self._given:
                return self._given[found[1]]
            if found[2] != "-":
                raise KeyError(found[1])
            return found[3]

        return _VARIABLE.sub(replaced, text)

    def member(self, name: str, *arguments: str) -> Member:
        """The process of a service's image, not started."""
        entry = json.loads(value(self._services[name]["build"]["target"], "ENTRYPOINT"))
        module, *words = entry[entry.index("-m") + 1 :]
        self._folder.mkdir(parents=True, exist_ok=True)
        return Member(module, [*words, *arguments], self.environment(name), self._folder / f"{name}.log")

    def run(self, name: str, module: str = "", *arguments: str) -> str:
        """What a command of a service prints: its own, or this one beside it. CalledProcessError when it fails."""
        own = [*self._services[name].get("entrypoint", ())[3:], *self._services[name].get("command", ())]
        words = [module, *arguments] if module else own
        clean = {key: text for key, text in os.environ.items() if not key.startswith("KILN_")}
        environment = {**clean, **self.environment(name)}
        command = [sys.executable, "-m", *words]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=True
        )
        return done.stdout.strip()
