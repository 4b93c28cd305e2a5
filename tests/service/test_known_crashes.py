"""A graph that crashes the compiler is compiled twice. Then the crash is known in the store."""

from __future__ import annotations

from typing import Any

import pytest

from service.store.attempts import MAX_CRASHES
from tests.identity.guarded import Guarded
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server


@pytest.mark.xdist_group("guarded")
def test_it_is_told_again_to_its_tenant_alone(guarded: Guarded) -> None:
    mine, other = guarded.key("crashing"), guarded.key("others")
    body = encoded(compile_body(graph("exp2", rows=43)))

    def crash(key: str) -> dict[str, Any]:
        response = guarded.send(key, "POST", "/compile", body, fails="always:segfault")
        assert response.status_code == 422
        return response.json()

    first, second = crash(mine), crash(mine)
    assert second == {**first, "details": {**first["details"], "cached": True}}
    assert crash(mine) == second
    assert guarded.send(mine, "GET", f"/artifacts/{first['details']['reproducer']}").status_code == 200
    assert "cached" not in crash(other)["details"]


def attempts(*servers: Server) -> int:
    """How many compiles have failed so far, by the logs."""
    return sum(server.log().count("a compile failed") for server in servers)


@pytest.mark.xdist_group("pair")
def test_a_graph_that_is_poison_crashes_twice_and_never_again(pair: tuple[Server, Server]) -> None:
    one, two = pair
    body, before = encoded(compile_body(graph("exp2", rows=41))), attempts(one)
    first = one.compile(body, "always:segfault").json()
    assert (first["code"], first["details"]["attempts"]) == ("compile.crashed", MAX_CRASHES)
    assert attempts(one) - before == MAX_CRASHES
    again = one.compile(body, "always:segfault").json()
    assert again == {**first, "details": {**first["details"], "cached": True}}
    assert attempts(one) - before == MAX_CRASHES
    assert one.http.get(f"/artifacts/{first['details']['reproducer']}").status_code == 200
    assert one.compile(body).status_code == 200
    # The other one, as a service after a restart, has the store alone to know it by.
    assert two.compile(body, "always:segfault").json()["details"]["cached"]


@pytest.mark.xdist_group("pair")
def test_what_is_no_crash_is_begun_once_and_not_remembered(patient: Server) -> None:
    body, before = encoded(compile_body(graph("exp2", rows=42))), attempts(patient)
    for count in (1, 2):
        problem = patient.compile(body, "always:refuse").json()
        assert problem["code"] == "compile.diagnostic"
        assert attempts(patient) - before == count
