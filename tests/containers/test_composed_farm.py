"""The composition of a farm: workers sign, services verify, and nobody has to carry a key from one to the other.

Services and workers are processes of this machine, with the composition's variables and its volumes as folders.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import numpy as np
import pytest

from service.sandbox import landlock
from tensorkiln import Client
from tensorkiln.errors import UntrustedArtifactError
from tests.farm.members import free_port
from tests.service.bodies import graph
from tests.snippets import blocks
from tests.trust.test_public_keys import files, holds_secrets

from .composed import Composed
from .files import DOCKER

FILE = "compose.farm.yaml"
X = np.ones((4, 3), np.float32)
STRANGER = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
READY_S = 60.0
# Services and workers look once a second.
SEEN_S = 1.1

pytestmark = pytest.mark.xdist_group("farm")


@dataclass(frozen=True)
class Up:
    """A service and a worker that are ready: the composition, the URL, an API key, and what `/readyz` said before."""

    composed: Composed
    url: str
    api_key: str
    before: list[int]

    def client(self, cache: Path, *trusted: str) -> Client:
        return Client(self.url, api_key=self.api_key, cache_dir=cache, trusted_keys=trusted)


def status(url: str) -> int:
    # Reading certificates, of which there are none here, would cost more than the request.
    return httpx2.get(f"{url}/readyz", timeout=30, verify=False).status_code


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """`docker compose run --rm key` and `docker compose up`: the service is there long before a key is."""
    folder = tmp_path_factory.mktemp("composed")
    port, metrics = free_port(), free_port()
    # Without Landlock a compile is confined less: that is what the variable is for.
    given = {} if landlock.support().abi else {"KILN_REQUIRE_ISOLATION": "process"}
    composed = Composed(FILE, folder, given, KILN_WORKER_METRICS=f"127.0.0.1:{metrics}", KILN_DISK_FLOOR_MIB="0")
    api_key = composed.run("key")
    service, worker = composed.member("api", "--port", str(port)), composed.member("worker")
    url = f"http://127.0.0.1:{port}"
    try:
        service.start()
        service.await_ready()
        before = [status(url)]
        worker.start()
        worker.await_ready()
        end = time.monotonic() + READY_S
        while status(url) != 200:
            assert time.monotonic() < end, worker.log.read_text()
            time.sleep(0.2)
        yield Up(composed, url, api_key, before)
    finally:
        service.kill()
        worker.kill()


def shown(up: Up) -> Path:
    """Where the service finds the keys that it believes."""
    return Path(up.composed.environment("api")["KILN_KEYS"])


def test_a_service_waits_for_its_first_worker_and_goes_on_by_itself(up: Up) -> None:
    assert up.before == [503]
    assert status(up.url) == 200


def test_signatures_of_a_worker_verify_with_the_keys_of_the_service(up: Up, tmp_path: Path) -> None:
    (public,) = files(shown(up))
    with up.client(tmp_path / "pinned", str(json.loads(public.read_text())["x"])) as client:
        doubled, _ = client.compile(graph())(X, n=3)
    np.testing.assert_array_equal(doubled, 2 * X)
    with up.client(tmp_path / "stranger", STRANGER) as client, pytest.raises(UntrustedArtifactError):
        client.compile(graph("exp2"))


def test_no_volume_of_a_service_holds_what_signs(up: Up) -> None:
    private = Path(up.composed.environment("worker")["KILN_KEYS"])
    assert holds_secrets(private)
    halves = [json.loads(path.read_text())["d"].encode() for path in files(private)]
    mounted = [
        up.composed.volume(source) for name in ("api", "key") for source, _ in up.composed.volumes(name).values()
    ]
    there = [path for folder in mounted for path in folder.rglob("*") if path.is_file()]
    assert there
    assert not any(half in path.read_bytes() for path in there for half in halves)
    assert not (up.composed.path("api", "/var/lib/kiln") / "keys").exists()


def test_a_worker_has_nothing_of_the_keys_of_callers(up: Up) -> None:
    mounted = [up.composed.volume(source) for source, _ in up.composed.volumes("worker").values()]
    names = {path.name for folder in mounted for path in folder.rglob("*")}
    register = Path(up.composed.environment("api")["KILN_IDENTITY"])
    assert register.is_dir()
    assert not {path.name for path in register.iterdir()} & names


def test_keys_are_rotated_as_the_manual_says_and_services_learn_of_it(up: Up, tmp_path: Path) -> None:
    lines = [line.split() for block in blocks(DOCKER / "README.md", "sh") for line in block.text.splitlines()]
    (command,) = [line for line in lines if "exec" in line]
    where, module, *arguments = (word for word in command[command.index("exec") + 1 :] if word[0] != "-")
    assert command[:5] == ["docker", "compose", "-f", f"docker/{FILE}", "exec"]
    assert (where, module) == ("worker", "python")
    up.composed.run(where, *arguments)
    credential = {"Authorization": f"Bearer {up.api_key}"}
    there = {path.stem for path in files(shown(up))}
    assert len(there) == 2
    time.sleep(SEEN_S)
    told = httpx2.get(f"{up.url}/keys", headers=credential, timeout=30, verify=False).json()["keys"]
    assert {key["kid"] for key in told} == there
    assert {path.suffix for path in shown(up).iterdir()} == {".jwk"}
    with up.client(tmp_path, told[0]["x"]) as client:
        client.compile(graph("sin"))
