"""Connections to the broker that hang without an error are given up for new ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.farm.relay import Relay
from tests.farm.topology import Farm
from tests.faults.conftest import require_broker
from tests.faults.requests import body, post
from tests.observe.readiness import await_green

pytestmark = pytest.mark.xdist_group("farm")
AT_ONCE = 6
SOON_S = 120.0
URL = "amqp://guest:guest@127.0.0.1:{port}//"


@pytest.fixture
def relayed(tmp_path: Path) -> Iterator[tuple[Relay, str]]:
    """What is between the broker of a farm and its members, and the URL of its service."""
    require_broker()
    with Relay() as relay:
        farm = Farm(tmp_path, services=1, workers=1, broker=URL.format(port=relay.port))
        relay.upstream = urlsplit(farm.broker.url).port or 0
        with farm:
            yield relay, farm.urls[0]


def compiled(url: str, first: int) -> None:
    """Have new graphs compiled, several at once: again and again while they are refused, but for so long at most."""
    end = time.monotonic() + SOON_S

    def compile_one(number: int) -> None:
        while (answer := post(url, body(number))).status_code != 200:
            assert (answer.status_code, time.monotonic() < end) == (503, True), answer.text
            time.sleep(0.2)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(compile_one, range(first, first + AT_ONCE)))


def test_a_service_finds_the_broker_again_when_its_connections_hang(relayed: tuple[Relay, str]) -> None:
    relay, url = relayed
    compiled(url, 100)
    relay.lose()
    assert post(url, body(200)).status_code == 503
    compiled(url, 200)
    await_green(url)  # which the worker sees to once it has found the broker, too
