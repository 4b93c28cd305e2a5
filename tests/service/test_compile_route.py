"""POST /compile: what is compiled, what is found, and why."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from service.engine.answers import programs_of
from service.engine.compiles import Compiled, Compiles
from service.engine.order import OnProgress, Wanted
from service.engine.reader import Prepared
from service.routes.compile import MAX_WAIT_S, Preference, parse_prefer
from service.sandbox.frames import Message
from service.sandbox.tasks.prepare import prepare
from tensorkiln.compiler_build import build
from tensorkiln.errors import RequestError
from tensorkiln.program import Program
from tensorkiln.spec import CompiledProgram
from tests.service.bodies import V3, compile_body, encoded, graph
from tests.service.server import Server, at_rest, cache
from tests.settled import settled


def stored(server: Server, folder: str = "") -> list[Path]:
    """The files of the store, or of a folder of it, while nothing is under way."""
    store = server.home / "store"
    return [path for path in sorted(at_rest(store)) if not folder or store / folder in path.parents]


def test_a_compiled_graph_runs_with_its_own_names(server: Server) -> None:
    wire = graph("sqrt", name="mine", symbol="batch", first_var=7)
    (program,) = server.compile(encoded(compile_body(wire))).json()["programs"]
    compiled = CompiledProgram.model_validate(program)
    assert compiled.name == "mine"
    assert [symbol.name for symbol in compiled.symbols] == ["batch"]
    assert [binding.var for binding in compiled.inputs] == [7]
    assert [binding.var for binding in compiled.outputs] == [8, 9]
    assert compiled.provenance.isolation == server.http.get("/capabilities").json()["isolation"]["level"]
    assert compiled.provenance.build_id == server.http.get("/capabilities").json()["build_id"]

    def fetch(digest: str) -> bytes:
        content = server.http.get(f"/artifacts/{digest}").content
        assert sha256(content).hexdigest() == digest
        return content

    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    root, negated = Program(compiled, fetch)(x, batch=5)
    np.testing.assert_allclose(root, np.sqrt(x), rtol=1e-6)
    np.testing.assert_array_equal(negated, -x)


@pytest.mark.xdist_group("pair")
def test_the_reason_of_a_miss_names_what_differs(pair: tuple[Server, Server], unusual: Server) -> None:
    server, other_server = pair
    first = encoded(compile_body(graph(rows=71)))
    missed = server.compile(first)
    assert cache(missed) == ("miss", "first request")
    assert cache(server.compile(first)) == ("hit", "same request")
    assert cache(server.compile(first + b" ")) == ("hit", "same action")
    renamed = compile_body(graph(name="other", symbol="m", first_var=100, rows=71))
    hit = server.compile(encoded(renamed))
    assert cache(hit) == ("hit", "same action")
    stages, of_the_miss = (answer.json()["programs"][0]["stages"] for answer in (hit, missed))
    assert stages == of_the_miss
    assert sum(stage["seconds"] for stage in stages) > 0
    fast = compile_body(graph(rows=71), fast_math=True)
    assert cache(server.compile(encoded(fast))) == ("miss", "differs in options.fast_math")
    other = compile_body(graph(rows=71), target="cpu:x86-64-v4")
    assert cache(server.compile(encoded(other))) == ("miss", "differs in target.cpu, target.features")
    assert cache(server.compile(encoded(compile_body(graph("sqrt", rows=71))))) == ("miss", "first request")
    # As after a restart, nothing of it is in the memory of these.
    assert cache(other_server.compile(first)) == ("hit", "same request")
    assert cache(unusual.compile(first)) == ("miss", "differs in salt")


def test_a_repeated_answer_differs_in_its_cache_alone(server: Server) -> None:
    body = encoded(compile_body(graph("exp2", rows=73), ["cpu:x86-64-v3", "cpu:x86-64-v2"]))
    first, second = (server.compile(body).json() for _ in range(2))
    assert [each["cache"]["status"] for each in first["programs"]] == ["miss", "miss"]
    for each in first["programs"]:
        each["cache"] = {"status": "hit", "reason": "same request", "nearest": None, "differs": []}
    assert second == first


def test_several_targets_give_several_programs_in_their_order(server: Server) -> None:
    body = compile_body(graph("sin"), target=["cpu:aarch64", "cpu:x86-64-v2", "cpu:aarch64"])
    programs = server.compile(encoded(body)).json()["programs"]
    assert [program["target"]["cpu"] for program in programs] == ["generic", "x86-64-v2", "generic"]
    assert programs[0]["kernels"] == programs[2]["kernels"] != programs[1]["kernels"]


@pytest.mark.xdist_group("pair")
def test_identical_requests_in_flight_compile_once(patient: Server) -> None:
    before = stored(patient, "programs")
    bodies = [encoded(compile_body(graph(name=f"g{index % 3}", rows=72))) for index in range(12)]
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(patient.compile, bodies))
    assert all(answer.status_code == 200 for answer in answers)
    programs = [answer.json()["programs"][0] for answer in answers]
    assert len({json.dumps(program["stages"]) for program in programs}) == 1
    assert len(stored(patient, "programs")) == len(before) + 1


def test_stages_are_kept_when_asked_for(server: Server) -> None:
    wire = graph("recip")
    plain = server.compile(encoded(compile_body(wire)))
    digest = plain.json()["programs"][0]["digest"]
    name = plain.json()["programs"][0]["stages"][0]["name"]
    assert server.http.get(f"/programs/{digest}/stages/{name}").status_code == 404
    dumped = server.compile(encoded(compile_body(wire, dump_stages=True)))
    assert cache(dumped) == ("miss", "the stored program has no stage dumps")
    (program,) = dumped.json()["programs"]
    assert program["digest"] == digest
    assert program["kernels"] == plain.json()["programs"][0]["kernels"]
    kept = [stage for stage in program["stages"] if stage["dump"] is not None]
    assert kept
    for stage in kept:
        text = server.http.get(f"/programs/{digest}/stages/{stage['name']}")
        assert text.status_code == 200
        assert text.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert sha256(text.content).hexdigest() == stage["dump"]
        assert server.http.get(f"/artifacts/{stage['dump']}").content == text.content
    assert server.http.get(f"/programs/{digest}/stages/nonsense").json()["code"] == "request.not_found"


class Unsaid:
    def stage(self, name: str) -> None:
        del name


async def test_when_one_target_fails_the_others_are_given_up() -> None:
    given_up: list[int] = []

    class Failing:
        async def program(self, wanted: Wanted, on_progress: OnProgress) -> Compiled:
            del wanted
            on_progress({"stage": "codegen"})
            try:
                await asyncio.sleep(0.01 if begun[-1] == 1 else 30.0)
            except asyncio.CancelledError:
                given_up.append(len(begun))
                raise
            raise RequestError("No such target.")

    begun: list[int] = []
    body = encoded(compile_body(target=[V3, "cpu:x86-64-v2", "cpu:x86-64-v4"]))
    header = {"build_id": build().build_id, "salt": ""}
    prepared = Prepared.from_message(prepare(Message(header, {"body": body}), cast(Any, Unsaid())), "")

    with pytest.raises(RequestError, match="No such target"):
        await programs_of(prepared, cast(Compiles, Failing()), lambda news: begun.append(news["target"]))
    await settled()
    assert begun == [0, 1, 2]
    assert len(given_up) == 2


@pytest.mark.parametrize(
    ("headers", "understood"),
    [
        (["respond-async"], Preference(0, "respond-async")),
        (["Respond-Async"], Preference(0, "respond-async")),
        (["wait=5"], Preference(5, "wait=5")),
        (["wait = 5"], Preference(5, "wait=5")),
        (['wait="5"'], Preference(5, "wait=5")),
        (["wait=0"], Preference(0, "wait=0")),
        (["respond-async, wait=10"], Preference(10, "respond-async, wait=10")),
        (["respond-async", "wait=10"], Preference(10, "respond-async, wait=10")),
        (["wait=10;x=y, respond-async; a"], Preference(10, "respond-async, wait=10")),
        (["wait=3, wait=9"], Preference(3, "wait=3")),
        (["return=minimal, wait=3"], Preference(3, "wait=3")),
        (["wait=999999"], Preference(MAX_WAIT_S, f"wait={MAX_WAIT_S}")),
        (["wait=99999999999"], Preference(MAX_WAIT_S, f"wait={MAX_WAIT_S}")),
        (["wait=" + "9" * 5000], Preference(MAX_WAIT_S, f"wait={MAX_WAIT_S}")),
        (["wait=" + "0" * 5000 + "7"], Preference(7, "wait=7")),
        (["wait=soon, respond-async"], Preference(0, "respond-async")),
        (['foo="x, wait=9, y", wait=3'], Preference(3, "wait=3")),
        (['foo="a\\", wait=9", wait=3'], Preference(3, "wait=3")),
        (['wait=3; by="x, wait=9"'], Preference(3, "wait=3")),
        ([], None),
        *(([ignored], None) for ignored in ("", "return=minimal", "wait", "wait=-1", "wait=1.5", "wait=soon", "==")),
        *(([ignored], None) for ignored in ("wait=\u0665", 'foo="x, respond-async, y"', 'foo="x, respond-async')),
    ],
)
def test_preferences_are_understood_or_change_nothing(headers: list[str], understood: Preference | None) -> None:
    assert parse_prefer(headers) == understood


@pytest.mark.parametrize(
    "header",
    ["a=" + " " * (1 << 20) + '"', 'a="\\"' + '\\"' * (1 << 19), '"' * (1 << 20), f"wait={'0' * (1 << 20)}s"],
    ids=["spaces", "escapes", "quotes", "digits"],
)
def test_a_header_of_a_megabyte_is_as_soon_ignored(header: str) -> None:
    assert parse_prefer([header]) is None
