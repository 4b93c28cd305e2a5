"""Nineteen small models of today, by `torch.export` and `torch.compile`, at several sizes. Runs where torch is.

They are those of `tests/models`; of four CI has the exported programs, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import pytest

from tensorkiln import Client
from tensorkiln.frontends.torch import backend, load
from tests.models.families import FAMILIES

torch = pytest.importorskip("torch", reason="torch is no dependency of the project; these tests run where it is")
pytestmark = pytest.mark.filterwarnings("ignore")

NAMES = tuple(family.name for family in FAMILIES)
Prepared = tuple[Any, Sequence[tuple[Any, ...]], Any]
"""The module, the arguments of each call, and what `torch.export` takes for the axes that vary."""


def prepared(name: str) -> Prepared:
    from tests.models.export.recipe import with_drawn_weights

    (family,) = (family for family in FAMILIES if family.name == name)
    recipe = import_module(f"tests.models.export.{name}").RECIPE
    bounds = family.bounds(family.forms[-1])
    dims = {dim: torch.export.Dim(dim, min=low, max=high) for dim, (low, high) in bounds.items()}
    if "frames" in dims:
        # A guard of torch's own holds for all sizes, which it cannot prove.
        dims["frames"] = torch.export.Dim.AUTO
    model = with_drawn_weights(recipe.model(), seed=0)
    torch.manual_seed(1)
    given = [recipe.inputs(**size) for size in family.sizes]
    shapes = tuple({axis: dims[dim] for axis, dim in recipe.axes[key].items() if dim in dims} for key in given[0])
    return model, [tuple(each.values()) for each in given], shapes


def leaves(result: Any) -> list[Any]:
    return [torch.as_tensor(each) for each in torch.utils._pytree.tree_leaves(result)]


@pytest.mark.parametrize("name", NAMES)
def test_an_exported_model_computes_what_torch_does(name: str, client: Client) -> None:
    model, calls, shapes = prepared(name)
    # What torch sees of an axis of one element is fixed.
    widest = max(calls, key=lambda call: min(dim for each in call for dim in each.shape))
    exported = torch.export.export(model, widest, dynamic_shapes=shapes, strict=False)
    bounds = {"spectrogram_2": (3, 96)} if name == "whisper" else {}
    module = load(exported, symbols=bounds).compile_module(client=client)
    for call in calls:
        with torch.no_grad():
            wanted = leaves(model(*call))
        found = leaves(module(*(each.numpy() for each in call)))
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)


def test_recurrent_layers_of_an_exported_program_are_read_whole() -> None:
    exported = torch.export.export(torch.nn.GRU(3, 4, num_layers=2), (torch.randn(40, 2, 3),), strict=False)
    assert sum(node.node == "while" for node in load(exported).graph.nodes) == 2


@pytest.mark.parametrize("name", NAMES)
def test_a_compiled_model_computes_what_torch_does(name: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch._dynamo.config, "allow_rnn", True)
    model, calls, _ = prepared(name)
    torch._dynamo.reset()
    run: Callable[..., Any] = torch.compile(model, backend=backend, fullgraph=True, options={"client": client})
    for call in calls:
        with torch.no_grad():
            torch.testing.assert_close(leaves(run(*call)), leaves(model(*call)), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "name", ["encoder_decoder", "selective_scan", "recurrence", "message_passing", "vit", "mobilenet"]
)
def test_a_compiled_model_has_torchs_gradients(name: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch._dynamo.config, "allow_rnn", True)
    model, calls, _ = prepared(name)
    torch._dynamo.reset()
    run: Callable[..., Any] = torch.compile(model, backend=backend, fullgraph=True, options={"client": client})
    gradients: list[list[Any]] = []
    for function in (run, model):
        model.zero_grad(set_to_none=True)
        means = [each.square().mean() for each in leaves(function(*calls[0])) if each.requires_grad]
        torch.stack(means).sum().backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-3, atol=1e-4)
