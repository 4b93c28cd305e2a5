"""A store that takes small files and no larger ones: what has happened is told, and what is stored is given."""

from __future__ import annotations

import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from service.store.crashes import MAX_CRASHES
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server, cache

SMALL = 16 << 10


@contextmanager
def small_files_only(server: Server) -> Generator[None]:
    """The service itself writes no file beyond SMALL bytes for the block; its fork servers were there before."""
    before = resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (SMALL, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, before)


def long(name: str) -> dict[str, object]:
    """A graph whose text and answers take more than SMALL bytes: a chain of which every fourth var is an output."""
    wire, last = graph(), 400
    chain = [
        {"node": "unary", "op": "neg", "in_var": var - 1, "out_var": var, "dtype": "float32"} for var in range(2, last)
    ]
    return {**wire, "name": name, "nodes": [wire["nodes"][0], *chain], "output_vars": [*range(4, last, 4)]}


def test_a_hit_whose_answer_cannot_be_kept_is_answered(home: Path) -> None:
    with Server(home) as server:
        first = server.compile(encoded(compile_body(long("long"))))
        assert first.status_code == 200, first.text
        assert len(first.content) > SMALL
        renamed = encoded(compile_body(long("renamed")))
        with small_files_only(server):
            answer = server.compile(renamed)
            assert answer.status_code == 200, answer.text
            assert cache(answer) == ("hit", "same action")
            assert cache(server.compile(renamed)) == ("hit", "same request"), "this service remembers it"
        assert "File too large" in server.log()


def test_a_crash_whose_reproducer_cannot_be_kept_is_a_crash_and_known(home: Path) -> None:
    with Server(home, test_hooks=1) as server, small_files_only(server):
        for number in range(3):
            problem = server.compile(encoded(compile_body(long(f"poison{number}"))), "poison:segfault").json()
            assert (problem["code"], problem["details"]["attempts"]) == ("compile.crashed", MAX_CRASHES)
            assert problem["details"].get("cached", False) is (number > 0)
            assert "reproducer" not in problem["details"]
