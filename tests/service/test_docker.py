"""The image's files agree with the service and with each other. (Building it needs an engine.)"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from service.app import create_app
from service.identity.keyring import Keyring
from service.settings import Settings

ROOT = Path(__file__).resolve().parents[2]


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, continuation lines joined, comments left out."""
    lines = [line for line in (ROOT / "docker/Dockerfile").read_text().splitlines() if not line.strip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def value(name: str) -> str:
    """The last instruction of this name."""
    return [rest for word, rest in instructions() if word == name][-1]


def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker/compose.yaml").read_text())


def routes() -> set[str]:
    return set(create_app(Settings()).openapi()["paths"])


def test_the_image_runs_as_a_user_without_a_name_to_look_up() -> None:
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", value("USER"))


def test_the_store_is_the_volume() -> None:
    environment = dict(entry.split("=", 1) for entry in shlex.split(value("ENV")))
    assert environment["KILN_HOME"] == value("VOLUME")
    (volume,) = compose()["services"]["kiln"]["volumes"]
    name, _, place = volume.partition(":")
    assert place == value("VOLUME")
    assert name in compose()["volumes"]


def test_the_health_checks_ask_a_route_on_the_port_that_is_served() -> None:
    port = json.loads(value("CMD"))[-1]
    assert value("EXPOSE") == port
    checks = [value("HEALTHCHECK"), " ".join(compose()["services"]["kiln"]["healthcheck"]["test"])]
    for check in checks:
        asked = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)", check)
        assert asked is not None
        assert asked[1] == port
        assert asked[2] in routes()
    assert compose()["services"]["kiln"]["ports"] == [f"127.0.0.1:{port}:{port}"]


def test_everything_that_is_copied_exists_and_is_in_the_build_context() -> None:
    ignored = (ROOT / "docker/Dockerfile.dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in ignored if line.startswith("!")}
    for word, rest in instructions():
        if word == "COPY":
            for source in rest.split()[:-1]:
                assert source in allowed
                assert source == "README.md" or (ROOT / source).exists()
    assert not any(fnmatch("tests", pattern) for pattern in allowed)


def test_the_packages_of_the_server_are_all_copied() -> None:
    packages = re.search(r"packages = \[(.*)\]", (ROOT / "pyproject.toml").read_text())
    assert packages is not None
    copied = {source for word, rest in instructions() if word == "COPY" for source in rest.split()[:-1]}
    assert {name.strip().strip('"') for name in packages[1].split(",")} | {"client"} <= copied


def test_the_composition_sets_what_the_service_knows_and_keeps_the_ladder_of_time_outs() -> None:
    service = compose()["services"]["kiln"]
    known = {f"KILN_{name.upper()}" for name in Settings.model_fields}
    assert service["environment"].keys() <= known
    environment = {name: float(text) for name, text in service["environment"].items()}
    stop = float(service["stop_grace_period"].removesuffix("s"))
    assert environment["KILN_COMPILE_DEADLINE_S"] < environment["KILN_SHUTDOWN_GRACE_S"] < stop
    needed_mib = environment["KILN_CONCURRENCY"] * environment["KILN_COMPILE_MEMORY_MIB"] + 512
    assert needed_mib <= int(service["mem_limit"].removesuffix("g")) * 1024
    assert service["init"]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]


def test_the_maker_of_keys_writes_where_the_service_reads(tmp_path: Path) -> None:
    service, key = compose()["services"]["kiln"], compose()["services"]["key"]
    assert key["volumes"] == service["volumes"]
    assert key["read_only"]
    python, *arguments = key["entrypoint"] + key["command"]
    assert python == "python"
    environment = {**os.environ, "KILN_HOME": str(tmp_path)}
    made = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert Keyring(Settings(home=tmp_path).identity_directory).register.keys[0].last4 == made.stdout.strip()[-4:]
