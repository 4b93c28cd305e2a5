"""A graph that crashes the compiler is compiled twice, and then it is known."""

from __future__ import annotations

from pathlib import Path

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
