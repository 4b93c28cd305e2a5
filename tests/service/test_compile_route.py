"""POST /compile: what is compiled, what is found, and why."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import httpx2
import numpy as np
import pytest

from service.engine.answers import programs_of
from service.engine.compiles import Compiled, Compiles
from service.engine.order import OnProgress, Wanted
from service.engine.reader import Prepared
from service.sandbox.frames import Message
from service.sandbox.tasks.prepare import prepare
from tensorkiln.compiler_build import build
from tensorkiln.errors import RequestError
from tensorkiln.program import Program
from tensorkiln.spec import CompiledProgram
from tests.service.bodies import V3, compile_body, encoded, graph
from tests.service.server import Server, cache
from tests.service.stored import at_rest
from tests.service.test_store import flip
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


def test_a_scatter_that_combines_is_compiled_and_its_stated_defaults_change_nothing(server: Server) -> None:
    nodes: list[dict[str, Any]] = [
        {"node": "placeholder", "out_var": var, "dtype": dtype, "shape": [size]}
        for var, (dtype, size) in enumerate((("int64", 4), ("float32", 4), ("float32", 3)))
    ]
    put = {"node": "scatter", "indices_var": 0, "updates_var": 1, "axis": 0, "shape": [3]}

    def compiled(**fields: Any) -> CompiledProgram:
        made = [*nodes, {**put, **fields, "out_var": 3, "dtype": "float32"}]
        wire = {"schema": 1, "name": "put", "nodes": made, "input_vars": [0, 1, 2], "output_vars": [3]}
        (program,) = server.compile(encoded(compile_body(wire))).json()["programs"]
        return CompiledProgram.model_validate(program)

    assert compiled().digest == compiled(init_var=None, reduction="none").digest
    added = Program(compiled(init_var=2, reduction="add"), lambda of: server.http.get(f"/artifacts/{of}").content)
    updates, x = np.array([1, 2, 4, 8], np.float32), np.array([10, 20, 30], np.float32)
    (found,) = added(np.array([2, 0, 2, -1]), updates, x)
    np.testing.assert_array_equal(found, [12, 20, 35])


@pytest.mark.xdist_group("pair")
def test_the_reason_of_a_miss_names_what_differs(pair: tuple[Server, Server], unusual: Server) -> None:
    server, other_server = pair
    first = encoded(compile_body(graph(rows=71)))
    assert cache(server.compile(first)) == ("miss", "first request")
    assert cache(server.compile(first)) == ("hit", "same request")
    assert cache(server.compile(first + b" ")) == ("hit", "same action")
    renamed = compile_body(graph(name="other", symbol="m", first_var=100, rows=71))
    assert cache(server.compile(encoded(renamed))) == ("hit", "same action")
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


def test_the_order_of_nodes_does_not_matter_and_the_outputs_keep_theirs(server: Server) -> None:
    left = server.compile(encoded(compile_body(graph("log2")))).json()["programs"][0]
    right = server.compile(encoded(compile_body(graph("log2", reverse=True)))).json()["programs"][0]
    assert right["cache"] == {"status": "hit", "reason": "same action", "nearest": None, "differs": []}
    assert right["digest"] == left["digest"]
    assert [binding["var"] for binding in right["outputs"]] == [binding["var"] for binding in left["outputs"]]


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


def check_answer(server: Server, answer: httpx2.Response, kernels: list[Any]) -> None:
    assert answer.status_code == 200, answer.text
    (program,) = answer.json()["programs"]
    assert program["kernels"] == kernels
    for kernel in kernels:
        content = server.http.get(f"/artifacts/{kernel['artifact']}")
        assert sha256(content.content).hexdigest() == kernel["artifact"]


def test_damaged_entries_are_compiled_again(home: Path) -> None:
    body = encoded(compile_body())
    with Server(home) as server:
        kernels = server.compile(body).json()["programs"][0]["kernels"]
        # Of one that has just begun, tests/faults/test_heal.py has every kind of file in each of these ways.
        for path in (path for path in stored(server) if path.name != "canary"):
            flip(path)
            check_answer(server, server.compile(body), kernels)
            # Spaces make it another request for the same action, which is not answered from memory.
            check_answer(server, server.compile(body + b" "), kernels)
        for path in stored(server):
            path.unlink()
        answer = server.compile(body)
        assert cache(answer)[0] == "miss"
        check_answer(server, answer, kernels)
        assert cache(server.compile(body)) == ("hit", "same request")


class Unsaid:
    """An outlet for a job that nobody listens to."""

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
