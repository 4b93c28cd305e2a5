"""A client compiles and loads graphs, in a program that waits and in an event loop."""

from __future__ import annotations

import inspect
import json
import platform
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorkiln import AsyncClient, Client, Graph, reference
from tensorkiln.build import Builder, relu
from tensorkiln.errors import (
    DeviceError,
    InvalidGraphError,
    LimitExceededError,
    NotFoundError,
    RequestError,
    UnavailableError,
)
from tensorkiln.limits import MAX_BODY_BYTES
from tensorkiln.nearest import kind_of
from tests.sdk.conftest import Kiln
from tests.sdk.test_batch import broken
from tests.service.bodies import graph


def arrays(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.standard_normal((n, 8), np.float32), generator.standard_normal((8, 3), np.float32)


def test_a_compiled_graph_computes_what_the_reference_computes(client: Client, layer: Graph) -> None:
    program = client.compile(layer)
    for n in (1, 5, 64):
        x, w = arrays(n, seed=n)
        (expected,) = reference.evaluate(layer, x, w, n=n)
        (actual,) = program(x, w, n=n)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_a_graph_may_be_json_text_bytes_or_an_object(client: Client, layer: Graph) -> None:
    text = layer.to_json()
    digests = {client.compile(form).compiled.digest for form in (layer, text, text.encode(), json.loads(text))}
    assert len(digests) == 1


def test_a_program_outlives_its_client(home: Path, layer: Graph) -> None:
    with Client(cache_dir=home) as client:
        program = client.compile(layer, threads=1)
    x, w = arrays(4)
    assert program(x, w, n=4)[0].shape == (4, 3)
    with pytest.raises(UnavailableError, match="closed"):
        client.compile(layer)


def test_a_symbol_may_be_called_self(client: Client, kiln: Kiln, tmp_path: Path) -> None:
    b = Builder("rows")
    b.output(relu(b.input("float32", (b.symbol("self", 1, 8), 4))))
    graph = b.graph()
    rows = np.full((3, 4), 2, np.float32)
    np.testing.assert_array_equal(client.compile(graph)(rows, self=3)[0], rows)
    (tmp_path / "rows.json").write_text(graph.to_json())
    assert kiln("run", "rows.json", "--random", "0", "--symbol", "self=3").returncode == 0
    unknown = kiln("run", "rows.json", "--random", "0", "--symbol", "self=3", "--symbol", "program=4")
    assert (unknown.returncode, unknown.stderr.count("\n")) == (6, 1)
    assert "the program has no symbol program; it takes self" in unknown.stderr


def test_several_targets_give_their_programs_in_order(client: Client, layer: Graph) -> None:
    older, newer, arm = client.compile_for(layer, ["cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:aarch64"])
    assert (older.target.cpu, newer.target.cpu) == ("x86-64-v2", "x86-64-v3")
    assert arm.target.triple is not None
    assert arm.target.triple.startswith("aarch64")
    assert len({older.digest, newer.digest, arm.digest}) == 3
    foreign = arm if platform.machine() in ("x86_64", "AMD64") else newer
    with pytest.raises(DeviceError):
        client.load(foreign)


def test_no_target_and_an_unknown_target_and_an_unknown_option_are_refused(client: Client, layer: Graph) -> None:
    with pytest.raises(RequestError, match="at least one target"):
        client.compile_for(layer, [])
    with pytest.raises(RequestError, match="cpu:pentium"):
        client.compile(layer, "cpu:pentium")
    with pytest.raises(RequestError, match="'speed'"):
        client.compile(layer, options={"speed": 11})


def test_threads_share_a_client(client: Client, layer: Graph) -> None:
    x, w = arrays(16)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: client.compile(layer)(x, w, n=16)[0], range(16)))
    for result in results:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ("{", "not JSON: .* line 1, column 2"),
        ('{"value": NaN}', 'NaN is not JSON; write it as the string "nan"'),
        ('{"value": -Infinity}', 'string "-inf"'),
        (b"\xff\xfe", "not UTF-8"),
        ({"value": float("inf")}, "cannot be written as JSON"),
        ({"value": object()}, "cannot be written as JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('"\ud800"', "not UTF-8"),
    ],
)
def test_invalid_json_is_refused_before_it_is_sent(client: Client, graph: str | bytes, message: str) -> None:
    with pytest.raises(InvalidGraphError, match=message):
        client.validate(graph)


@pytest.mark.parametrize("graph", [None, 5, [1], object()])
def test_arguments_other_than_graphs_are_refused(client: Client, graph: Any) -> None:
    for call in (client.validate, client.compile, client.submit):
        with pytest.raises(RequestError, match=f"cannot be {kind_of(graph)}: give a Graph"):
            call(graph)


def test_a_graph_that_is_too_long_is_refused_before_it_is_sent(client: Client) -> None:
    with pytest.raises(LimitExceededError) as refused:
        client.validate(b'"%b"' % (b" " * MAX_BODY_BYTES))
    assert refused.value.details == {"limit": "body_bytes", "maximum": MAX_BODY_BYTES, "actual": MAX_BODY_BYTES + 2}


def public(kind: type[Any]) -> dict[str, Any]:
    members = inspect.getmembers(kind, inspect.isfunction)
    return {name: member for name, member in members if not name.startswith("_") or name == "__init__"}


def test_both_clients_have_the_same_methods_with_the_same_arguments_and_words() -> None:
    one, other = public(Client), public(AsyncClient)
    assert one.keys() == other.keys()
    for name in one:
        stated, given = inspect.signature(one[name]), inspect.signature(other[name])
        assert stated.parameters == given.parameters, name
        if name != "__init__":
            assert one[name].__doc__ == other[name].__doc__
            assert one[name].__doc__


async def test_a_graph_is_compiled_and_loaded_in_a_loop(served: str, layer: Graph, tmp_path: Path) -> None:
    x, w = np.ones((4, 8), np.float32), np.full((8, 3), 0.5, np.float32)
    async with AsyncClient(served, cache_dir=tmp_path) as client:
        program = await client.compile(layer)
        np.testing.assert_array_equal(program(x, w, n=4)[0], np.full((4, 3), 4, np.float32))
        digest = program.compiled.digest
        assert (await client.program(digest)).compiled.digest == digest
        assert (await client.validate(layer))["valid"]
        assert "cpu" in (await client.capabilities())["targets"]
        assert await client.artifact(min(program.compiled.artifacts))
        staged = await client.compile(layer, options={"dump_stages": True})
        name = next(stage.name for stage in staged.compiled.stages if stage.dump)
        assert await client.stage(staged.compiled.digest, name)
        with pytest.raises(InvalidGraphError) as invalid:
            await client.compile(broken())
        assert invalid.value.pointers == ("/nodes/1/in_var",)
        with pytest.raises(NotFoundError):
            await client.program("0" * 64)
        with pytest.raises(RequestError, match="cpu:pentium"):
            await client.compile(graph(), "cpu:pentium")
    with pytest.raises(UnavailableError, match="closed"):
        await client.capabilities()


async def test_a_client_that_waits_may_be_used_inside_a_loop(client: Client, layer: Graph) -> None:
    assert client.compile(layer).compiled.digest
