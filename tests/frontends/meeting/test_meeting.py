"""One network from ONNX, JAX and torch is one graph, and one program of a service's store."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorkiln import Client, reference
from tensorkiln.canonical import canonicalize, graph_digest
from tensorkiln.graph import Graph
from tests.frontends.meeting.networks import FILES, SHAPES, drawn

pytest.importorskip("onnx")
pytest.importorskip("flatbuffers")
NODES = {"mlp": 25, "convnet": 38, "block": 129}


def graphs(name: str, client: Client) -> dict[str, tuple[Graph, list[Any]]]:
    """The graph of a network by its format, with the arrays of its inputs."""
    from tensorkiln.frontends import jax, onnx, torch

    x, parameters = drawn(name)
    first, second = onnx.load(FILES / f"{name}.onnx"), torch.load(FILES / f"{name}.pt2")
    function = jax.load(FILES / f"{name}.jax", client=client).graph
    # A serialized function takes its parameters as it takes its other arguments.
    bound = function.model_copy(update={"parameter_vars": function.input_vars[1:]})
    return {
        "onnx": (first.graph, list(first.arguments(x=x))),
        "torch": (second.graph, list(second.arguments(x=x))),
        "jax": (bound, [x, *parameters.values()]),
    }


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_a_network_is_one_graph_from_all_formats(name: str, client: Client) -> None:
    found = graphs(name, client)
    forms = {door: canonicalize(graph) for door, (graph, _) in found.items()}
    assert {door: len(form.graph.nodes) for door, form in forms.items()} == dict.fromkeys(forms, NODES[name])
    assert len({graph_digest(form) for form in forms.values()}) == 1
    for door, (graph, arrays) in found.items():
        (result,) = reference.evaluate(graph, *arrays)
        for other in ("jax", "torch"):
            np.testing.assert_allclose(result, np.load(FILES / f"{name}.{other}.npy"), 2e-5, 2e-6, err_msg=door)


def test_a_program_of_one_format_is_a_hit_for_another(client: Client) -> None:
    found = graphs("block", client)
    first, *others = [client.compile(graph) for graph, _ in found.values()]
    assert [each.compiled.cache.status for each in others] == ["hit", "hit"]
    results = [each(*arrays) for each, (_, arrays) in zip((first, *others), found.values(), strict=True)]
    assert all(np.array_equal(results[0][0], each[0]) for each in results[1:])
    np.testing.assert_allclose(results[0][0], np.load(FILES / "block.torch.npy"), 2e-5, 2e-6)
