"""What explains a miss: the nearest stored program of the caller's part of the store, by /explain and by a compile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service.action import Action
from service.store.evict import Bounds, evict
from service.store.nearest import MAX_OF_GRAPH, MAX_OF_TARGET, Nearest, Neighbour, entries_of
from service.store.records import Records
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server
from tests.service.test_store import DAMAGES
from tests.trust.stores import Stocked, action, age


def explained(server: Server, body: dict[str, Any]) -> dict[str, Any]:
    answer = server.post("/explain", encoded(body))
    assert answer.status_code == 200, answer.text
    (action,) = answer.json()["actions"]
    return action


def compiled(server: Server, body: dict[str, Any]) -> dict[str, Any]:
    answer = server.compile(encoded(body))
    assert answer.status_code == 200, answer.text
    (only,) = answer.json()["programs"]
    return only


def test_an_explanation_says_what_the_compile_after_it_says(server: Server) -> None:
    mine, other = graph(rows=81), graph("sqrt", rows=81)
    bodies = [
        compile_body(mine),
        compile_body(graph(name="other", symbol="m", first_var=100, rows=81)),
        compile_body(mine, fast_math=True),
        compile_body(mine, fast_math=True, dump_stages=True),
        compile_body(mine, target="cpu:x86-64-v4"),
        compile_body(other),
        compile_body(other, "cpu:aarch64"),
    ]
    for body in bodies:
        before = explained(server, body)
        without_dumps = before["cache"]["reason"] == "the stored program has no stage dumps"
        assert before["stored"] is (before["cache"]["status"] == "hit" or without_dumps)
        assert explained(server, body) == before, "an explanation changes nothing"
        made = compiled(server, body)
        assert (before["digest"], before["cache"]) == (made["digest"], made["cache"])
        after = explained(server, body)
        assert (after["stored"], after["cache"]) == (True, compiled(server, body)["cache"])
        assert before["components"] == after["components"]
        assert before["components"]["target"] == made["target"]
        if before["cache"]["nearest"] is not None:
            assert server.http.get(f"/programs/{before['cache']['nearest']}").status_code == 200


@pytest.mark.xdist_group("pair")
def test_differences_are_explained_with_values(patient: Server, unusual: Server) -> None:
    mine = graph(rows=82)
    v3 = compiled(patient, compile_body(mine))
    v4 = explained(patient, compile_body(mine, target="cpu:x86-64-v4"))
    assert v4["stored"] is False
    differs = ["target.cpu", "target.features"]
    reason = "differs in target.cpu, target.features"
    assert v4["cache"] == {"status": "miss", "reason": reason, "nearest": v3["digest"], "differs": differs}
    cpu, features = v4["differences"]
    assert cpu == {"component": "target.cpu", "requested": "x86-64-v4", "stored": "x86-64-v3"}
    assert "avx512f" in features["requested"]
    assert features["stored"] == []
    other = explained(patient, compile_body(graph("sqrt", rows=82)))
    assert (other["cache"]["reason"], other["cache"]["differs"]) == ("first request", ["graph"])
    assert other["differences"][0]["stored"] == v4["components"]["graph"]
    salted = explained(unusual, compile_body(mine))
    assert (salted["cache"]["differs"], salted["differences"]) == (["salt"], [])
    assert salted["cache"]["nearest"] == v3["digest"]
    assert "a secret" not in str(salted)


def of_graph(base: Action, number: int) -> Action:
    return replace(base, options={"number": number}, target={"kind": "cpu", "features": [str(number)]})


def trusting(records: Records) -> Nearest:
    async def is_there(digest: str) -> bool:
        return True

    return Nearest(records, is_there)


async def found(nearest: Nearest, wanted: Action) -> Neighbour:
    neighbour = await nearest.to(wanted, "")
    assert neighbour is not None
    return neighbour


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"abi": 2}, ("abi",)),
        ({"build_id": "other"}, ("build_id",)),
        ({"schema": 2}, ("schema",)),
        ({"salt": "secret"}, ("salt",)),
        ({"options": {"fast_math": True}}, ("options.fast_math",)),
        ({"target": {"kind": "cpu", "features": ["avx2"]}}, ("target.features",)),
        ({"target": {"kind": "cuda", "features": ["avx"]}, "abi": 2}, ("abi", "target.kind")),
        ({"graph": "0" * 64}, ("graph",)),
        ({"graph": "0" * 64, "build_id": "other"}, ("build_id", "graph")),
    ],
)
async def test_every_difference_is_named(stocked: Stocked, change: dict[str, Any], differs: tuple[str, ...]) -> None:
    stored = await stocked.save(1)
    wanted = replace(stored, **change)
    near = await found(stocked.nearest, wanted)
    assert (near.digest, tuple(near.differs)) == (stored.digest, differs)
    assert wanted.digest != stored.digest


async def test_the_nearest_is_of_the_same_graph_and_differs_least(stocked: Stocked) -> None:
    nearest = trusting(stocked.records)
    wanted = action(1)
    far = replace(wanted, abi=2, build_id="other", schema=2)
    near = replace(wanted, abi=2, build_id="other")
    for each in (near, far, replace(wanted, graph="0" * 64)):
        nearest.add(each, "")
    assert (await found(nearest, wanted)).digest == near.digest
    assert await nearest.to(of_graph(action(2), 2), "") is None, "graph and target are new"


async def test_programs_of_another_namespace_are_near_to_nothing(stocked: Stocked) -> None:
    stored = await stocked.save(1)
    stocked.nearest.add(replace(stored, abi=3), "another's")
    for scope in ("mine", ""):
        near = await stocked.nearest.to(replace(stored, abi=3), scope)
        assert near is None or near.digest == stored.digest


async def test_salts_are_neither_stored_nor_told(stocked: Stocked) -> None:
    stocked.nearest.add(replace(action(1), salt="geheim"), "")
    await stocked.nearest.settle()
    assert "geheim" not in str(await found(trusting(stocked.records), action(1)))
    assert not any(b"geheim" in path.read_bytes() for path in stocked.files())


async def test_a_program_that_is_gone_explains_nothing_and_is_forgotten(stocked: Stocked) -> None:
    stored = await stocked.save(1)
    stocked.path(stored).unlink()
    assert await stocked.nearest.to(replace(stored, abi=2), "") is None
    assert stocked.files("nearest") == []


async def test_an_eviction_counts_index_records_and_removes_stale_explanations(stocked: Stocked) -> None:
    old, new = await stocked.save(1), await stocked.save(2)
    age(stocked.path(old), 3 * 3600)
    evicted = await evict(stocked.store, Bounds(max_age_s=3600))
    assert evicted.held_bytes == sum(path.stat().st_size for path in stocked.files())
    assert (await found(stocked.nearest, replace(old, abi=2))).digest == new.digest
    contents = b"".join(path.read_bytes() for path in stocked.files("nearest"))
    assert old.digest.encode() not in contents
    await evict(stocked.store, Bounds(max_bytes=0))
    assert stocked.files("nearest") == []


async def test_records_are_bounded_and_keep_the_newest(stocked: Stocked) -> None:
    nearest = trusting(stocked.records)
    base = action(1)
    for number in range(MAX_OF_GRAPH + 5):
        nearest.add(of_graph(base, number), "")
    await nearest.settle()
    sizes = [len(entries_of(await stocked.records.get(str(path.relative_to(stocked.root)))))
             for path in stocked.files("nearest")]  # fmt: skip
    assert max(sizes) == MAX_OF_GRAPH
    newest = of_graph(base, MAX_OF_GRAPH + 4)
    assert (await found(nearest, replace(newest, abi=2))).digest == newest.digest
    others = [replace(base, graph=f"{number:064}") for number in range(MAX_OF_TARGET + 3)]
    for other in others:
        nearest.add(other, "")
    await nearest.settle()
    assert (await found(nearest, replace(base, graph="f" * 64))).digest == others[-1].digest


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_record_is_written_anew(stocked: Stocked, damage: Callable[[Path], None]) -> None:
    stored = await stocked.save(1)
    for path in stocked.files("nearest"):
        damage(path)
    assert await stocked.nearest.to(replace(stored, abi=2), "") is None
    stocked.nearest.add(stored, "")
    assert await stocked.nearest.to(replace(stored, abi=2), "") is not None


@pytest.mark.parametrize("content", [{}, {"entries": 3}, {"entries": [{"digest": "x", "components": {}}]}])
async def test_a_record_of_another_form_explains_nothing(stocked: Stocked, content: dict[str, Any]) -> None:
    stored = await stocked.save(1)
    for path in stocked.files("nearest"):
        await stocked.records.put(str(path.relative_to(stocked.root)), content)
    assert await stocked.nearest.to(replace(stored, abi=2), "") is None
    for path in stocked.files("nearest"):
        age(path, 3 * 3600)
    await evict(stocked.store, Bounds(max_age_s=3600))
    assert stocked.files("nearest") == []


async def test_programs_that_are_stored_at_once_are_all_remembered(stocked: Stocked) -> None:
    nearest = trusting(stocked.records)
    variants = [of_graph(action(1), number) for number in range(MAX_OF_GRAPH)]
    for each in variants:
        nearest.add(each, "")
    for each in variants:
        assert (await found(nearest, replace(each, abi=2))).digest == each.digest
