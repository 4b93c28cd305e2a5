"""The client in an event loop is the other one, awaited."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorkiln import AsyncClient, Client, Graph
from tensorkiln.errors import InvalidGraphError, NotFoundError, RequestError, UnavailableError
from tests.sdk.test_batch import broken
from tests.service.bodies import graph


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


async def test_a_graph_is_compiled_and_loaded_in_a_loop_and_the_errors_are_the_same(
    served: str, layer: Graph, tmp_path: Path
) -> None:
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
