"""A graph that crashes the compiler is compiled twice, and then it is known."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from service.store.crashes import MAX_CRASHES
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server


def attempts(server: Server) -> int:
    """How many compiles have failed, by the log."""
    return server.log().count("a compile failed")


def test_a_graph_that_is_poison_crashes_twice_and_never_again(home: Path) -> None:
    body = encoded(compile_body(graph("exp2", rows=41)))
    with Server(home, test_hooks=1) as server:
        first = server.compile(body, "poison:segfault").json()
        assert (first["code"], first["details"]["attempts"]) == ("compile.crashed", MAX_CRASHES)
        assert attempts(server) == MAX_CRASHES
        again = server.compile(body, "poison:segfault").json()
        assert again == {**first, "details": {**first["details"], "cached": True}}
        assert attempts(server) == MAX_CRASHES
        assert server.http.get(f"/artifacts/{first['details']['reproducer']}").status_code == 200
        assert server.compile(body).status_code == 200
    with Server(home, test_hooks=1) as server:
        assert server.compile(body, "poison:segfault").json()["details"]["cached"]


def test_what_is_no_crash_is_begun_once_and_not_remembered(home: Path) -> None:
    body = encoded(compile_body(graph("exp2", rows=42)))
    with Server(home, test_hooks=1) as server:
        for count in (1, 2):
            problem = server.compile(body, "poison:refuse").json()
            assert problem["code"] == "compile.diagnostic"
            assert attempts(server) == count


def test_services_on_one_store_that_meet_poison_at_once_begin_it_twice_in_all(home: Path) -> None:
    shared: dict[str, Any] = {"store": home / "store", "keys": home / "keys", "test_hooks": 1}
    home.mkdir()
    with (
        Server(home / "one", **shared) as one,
        Server(home / "two", **shared) as two,
        ThreadPoolExecutor(2) as pool,
    ):
        for number in range(1, 6):
            body = encoded(compile_body(graph("exp2", rows=42 + number)))
            asked = [pool.submit(server.compile, body, "poison:segfault") for server in (one, two)]
            for each in asked:
                problem = each.result().json()
                assert (problem["code"], problem["details"]["attempts"]) == ("compile.crashed", MAX_CRASHES)
            assert attempts(one) + attempts(two) == number * MAX_CRASHES
