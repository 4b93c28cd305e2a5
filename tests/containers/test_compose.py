"""The compositions agree with the images and the settings."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner

from service.identity.keyring import Keyring
from service.settings import Settings
from tests.snippets import ROOT
from tests.timeouts import Timeouts, stop_s

from .files import DOCKER, VARIABLES, compose, stages, value

FILES = ("compose.yaml", "compose.farm.yaml")
OURS = [("compose.yaml", "kiln"), ("compose.farm.yaml", "api"), ("compose.farm.yaml", "worker")]


def service(file: str, name: str) -> dict[str, Any]:
    return compose(file)["services"][name]


def mounts(file: str, name: str) -> dict[str, list[str]]:
    """By place: the volume that a service mounts there, and the mode if one is stated."""
    split = (volume.split(":") for volume in service(file, name).get("volumes", ()))
    return {place: [source, *mode] for source, place, *mode in split}


@pytest.mark.parametrize("file", FILES)
def test_a_composition_is_one(file: str) -> None:
    arguments = ["--builtin-schema", "vendor.compose-spec", str(DOCKER / file)]
    checked = CliRunner().invoke(check_jsonschema, arguments)
    assert checked.exit_code == 0, checked.output


@pytest.mark.parametrize(("file", "name"), [*OURS, ("compose.yaml", "key"), ("compose.farm.yaml", "key")])
def test_nothing_may_be_written_or_gained(file: str, name: str) -> None:
    ours = service(file, name)
    assert ours["read_only"]
    assert ours["init"]
    assert ours["cap_drop"] == ["ALL"]
    assert ours["security_opt"] == ["no-new-privileges:true"]
    assert ours["build"]["target"] == ("worker" if name == "worker" else "api")


@pytest.mark.parametrize(("file", "name"), OURS)
def test_the_store_is_a_volume_of_the_composition(file: str, name: str) -> None:
    volumes = mounts(file, name)
    assert volumes[value("api", "VOLUME")] == ["store"]
    assert {source for source, *_ in volumes.values()} <= compose(file)["volumes"].keys()


def test_every_volume_is_mounted_where_the_image_has_a_directory_of_its_user_and_in_no_other() -> None:
    made = [rest for word, rest in stages()["server"] if word == "RUN" and "install -d" in rest]
    user = value("server", "USER").replace(":", " -g ")
    modes = {
        place: mode
        for places, mode in (
            (each.split(), each.split()[0]) for each in re.findall(rf"-o {user} -m (.*?)(?:&&|$)", made[0])
        )
        for place in places[1:]
    }
    for file, name in (*OURS, ("compose.farm.yaml", "key")):
        places = [PurePosixPath(place) for place in mounts(file, name)]
        assert {str(place) for place in places} <= modes.keys()
        assert not any(place in other.parents for place in places for other in places)
    private = {place for place, mode in modes.items() if mode == "0700"}
    assert modes.keys() - private == {service("compose.farm.yaml", "worker")["environment"]["KILN_PUBLIC_KEYS"]}


def test_only_workers_mount_the_keys_that_sign_and_services_only_read_the_public_halves() -> None:
    file = "compose.farm.yaml"
    worker, api = service(file, "worker")["environment"], service(file, "api")["environment"]
    (private,) = mounts(file, "worker")[worker["KILN_KEYS"]]
    (public,) = mounts(file, "worker")[worker["KILN_PUBLIC_KEYS"]]
    assert mounts(file, "api")[api["KILN_KEYS"]] == [public, "ro"]
    assert "KILN_PUBLIC_KEYS" not in api
    who = [
        name for name in compose(file)["services"] for source, *_ in mounts(file, name).values() if source == private
    ]
    assert who == ["worker"]


def test_workers_mount_nothing_of_the_keys_of_callers() -> None:
    file = "compose.farm.yaml"
    place = service(file, "api")["environment"]["KILN_IDENTITY"]
    assert mounts(file, "api")[place] not in mounts(file, "worker").values()


@pytest.mark.parametrize(("file", "name"), OURS)
def test_variables_are_known_settings_and_keep_the_order_of_timeouts(file: str, name: str) -> None:
    ours = service(file, name)
    environment: dict[str, str] = ours["environment"]
    assert environment.keys() <= VARIABLES
    stop = float(ours["stop_grace_period"].removesuffix("s"))
    timeouts = Timeouts.of(float(environment["KILN_COMPILE_DEADLINE_S"]), float(environment.get("KILN_QUEUE_AGE_S", 0)))
    if name != "worker":
        grace = float(environment["KILN_SHUTDOWN_GRACE_S"])
        assert timeouts.lets_finish(grace)
        assert stop_s(float(environment.get("KILN_SHUTDOWN_NOTICE_S", 0)), grace) <= stop
    else:
        assert timeouts.worker_s < stop
    if "KILN_COMPILE_MEMORY_MIB" in environment:
        needed_mib = int(environment["KILN_CONCURRENCY"]) * int(environment["KILN_COMPILE_MEMORY_MIB"]) + 512
        assert needed_mib <= int(ours["mem_limit"].removesuffix("g")) * 1024


@pytest.mark.parametrize(("file", "name"), OURS[:2])
def test_the_service_is_published_on_this_machine_alone(file: str, name: str) -> None:
    port = json.loads(value("api", "CMD"))[-1]
    (published,) = service(file, name)["ports"]
    assert re.fullmatch(rf"127\.0\.0\.1:[\d-]+:{port}", published)
    assert f"127.0.0.1:{port}/readyz" in " ".join(service(file, name)["healthcheck"]["test"])


def test_services_have_workers_compile_from_the_store_that_they_share() -> None:
    file = "compose.farm.yaml"
    assert service(file, "api")["environment"]["KILN_FARM"] == "1"
    home = value("api", "VOLUME")
    assert mounts(file, "api")[home] == mounts(file, "worker")[home]


@pytest.mark.parametrize(("file", "name"), OURS[:2])
def test_the_maker_of_keys_writes_where_the_service_reads(file: str, name: str, tmp_path: Path) -> None:
    key = service(file, "key")
    stated = service(file, name)["environment"]
    assert key.get("environment", {}).items() <= stated.items()
    place = stated.get("KILN_IDENTITY", value("api", "VOLUME"))
    assert mounts(file, "key") == {place: mounts(file, name)[place]}
    python, *arguments = key["entrypoint"] + key["command"]
    assert python == "python"
    environment = {**os.environ, "KILN_HOME": str(tmp_path)}
    made = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert Keyring(Settings(home=tmp_path).identity).register.keys[0].last4 == made.stdout.strip()[-4:]
