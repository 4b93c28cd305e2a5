"""A tenant that floods a farm has no more orders in the store than the farm can soon do; others take turns with it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from service.identity.caller import Scope
from service.identity.keyring import Keyring
from service.store.claims import BEAT_S
from tests.farm.topology import Farm
from tests.faults.requests import HTTP, slow_body
from tests.faults.size import figures
from tests.service.server import JSON

pytestmark = pytest.mark.xdist_group("farm")
FLOOD = 40
# The share of one service with one worker, and what begins and ends while somebody looks.
FEW = 10


def test_an_order_is_done_soon_though_another_tenant_has_forty_before_it(tmp_path: Path) -> None:
    keyring = Keyring(tmp_path / "farm" / "identity")
    flooder, other = (
        {**JSON, "Authorization": f"Bearer {keyring.make('test', tenant, list(Scope), None).text}"}
        for tenant in ("flooder", "other")
    )
    with Farm(tmp_path / "farm", services=1, workers=1) as farm, ThreadPoolExecutor(4) as pool:
        (url,) = farm.urls
        time.sleep(2 * BEAT_S)  # until the service has seen the worker

        def accept(headers: dict[str, str], number: int) -> str:
            wanted = {**headers, "Prefer": "respond-async"}
            answer = HTTP.post(f"{url}/compile", content=slow_body(number, 1500), headers=wanted)
            assert answer.status_code == 202, answer.text
            return answer.json()["id"]

        def state(headers: dict[str, str], identifier: str) -> Any:
            return HTTP.get(f"{url}/jobs/{identifier}", headers=headers).json()["state"]

        flood = list(pool.map(lambda number: accept(flooder, number), range(FLOOD)))
        before = sum(state(flooder, each) == "done" for each in flood)
        assert before < FLOOD - 2 * FEW
        begin, own = time.monotonic(), accept(other, FLOOD)
        while (end := state(other, own)) in ("queued", "running"):
            time.sleep(0.02)
        took = time.monotonic() - begin
        after = sum(state(flooder, each) == "done" for each in flood)
    figures("another tenant's flood", orders=FLOOD, done_before_ours=after - before, seconds=took)
    assert end == "done"
    assert after - before <= FEW
