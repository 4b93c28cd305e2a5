"""Weights that `torch.compile` binds: who changes or replaces them gets what torch computes. Runs where torch is."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tensorkiln import Client, Program
from tensorkiln.errors import CallInputError
from tensorkiln.frontends.torch import backend

torch = pytest.importorskip("torch", reason="torch is no dependency of the project; these tests run where it is")
nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore")
Model = Any


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many weights were bound, each time that some were."""
    counts: list[int] = []
    original = Program.bind

    def bind(self: Program, params: Any) -> Program:
        counts.append(len(params))
        return original(self, params)

    monkeypatch.setattr(Program, "bind", bind)
    return counts


@pytest.fixture(scope="module")
def compiled(client: Client) -> Callable[[Any], Any]:
    def compile_it(model: Any) -> Any:
        return torch.compile(model, backend=backend, fullgraph=True, options={"client": client, "weights": "bound"})

    return compile_it


def perceptron() -> Any:
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))


def check(run: Any, model: Any, x: Any, times: int = 3) -> None:
    for _ in range(times):
        torch.testing.assert_close(run(x), model(x), rtol=1e-4, atol=1e-5)


def _in_place(model: Model) -> None:
    model[0].weight.mul_(2)


def _loaded(model: Model) -> None:
    model.load_state_dict({name: torch.rand_like(value.float()) for name, value in model.state_dict().items()})


def _assigned(model: Model) -> None:
    state = {name: torch.rand_like(value.float()) for name, value in model.state_dict().items()}
    model.load_state_dict(state, assign=True)


def _replaced(model: Model) -> None:
    model[2].weight = nn.Parameter(torch.randn(3, 8))


def _data_replaced(model: Model) -> None:
    model[2].weight.data = torch.randn(3, 8)


def _buffer(model: Model) -> None:
    model[1].running_mean.add_(1.0)


def _by_a_view(model: Model) -> None:
    model[0].weight[1:3].zero_()


def _in_inference(model: Model) -> None:
    with torch.inference_mode():
        model[0].weight.mul_(3)


def _foreach(model: Model) -> None:
    torch._foreach_add_(list(model.parameters()), 1.0)


def _step(model: Model) -> None:
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    for fused in (False, True):
        torch.optim.Adam(model.parameters(), lr=0.1, fused=fused).step()


def test_weights_are_bound_once_and_every_change_is_seen(compiled: Callable[[Any], Any], bound: list[int]) -> None:
    model, x = perceptron().eval(), torch.randn(4, 6)
    run = compiled(model)
    with torch.no_grad():
        check(run, model, x, 6)
        assert bound == [8]
        changes = [_in_place, _loaded, _replaced, _data_replaced, _buffer, _by_a_view, _in_inference, _foreach, _step]
        for number, change in enumerate([*changes, _assigned], 1):
            change(model)
            check(run, model, x, 2 + number)
            assert len(bound) == 1 + number, change
    # A weight that lies elsewhere is no other graph.
    assert set(bound) == {8}


def test_weights_that_lie_where_freed_ones_lay_are_others(compiled: Callable[[Any], Any]) -> None:
    layer, x = nn.Linear(5, 3, bias=False), torch.randn(2, 5)
    run = compiled(layer)
    with torch.no_grad():
        for _ in range(40):
            layer.weight = nn.Parameter(torch.randn(3, 5))
            check(run, layer, x, 2)


def test_training_binds_no_weight_that_it_changes(compiled: Callable[[Any], Any], bound: list[int]) -> None:
    model = perceptron()
    twin, x = copy.deepcopy(model), torch.randn(4, 6)
    run = compiled(model)
    for own in (model, twin):
        optimizer = torch.optim.SGD(own.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            (run(x) if own is model else twin(x)).square().mean().backward()
            optimizer.step()
    torch.testing.assert_close(model.state_dict(), twin.state_dict())
    assert not bound
    with torch.no_grad():
        check(compiled(model.eval()), twin.eval(), x)
    assert bound == [8]


def test_frozen_weights_are_bound_while_others_are_trained(compiled: Callable[[Any], Any], bound: list[int]) -> None:
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    model[0].requires_grad_(False)
    twin, x = copy.deepcopy(model), torch.randn(4, 6)
    run = compiled(model)
    for own in (model, twin):
        optimizer = torch.optim.SGD([each for each in own.parameters() if each.requires_grad], lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            (run(x) if own is model else twin(x)).square().mean().backward()
            optimizer.step()
    torch.testing.assert_close(model.state_dict(), twin.state_dict())
    assert bound == [2]


def test_writes_that_torch_does_not_count_are_read_where_weights_are_not_bound(client: Client) -> None:
    model, x = perceptron().eval(), torch.randn(4, 6)
    run = torch.compile(model, backend=backend, fullgraph=True, options={"client": client})
    with torch.no_grad():
        check(run, model, x)
        model[0].weight.data.mul_(2)
        check(run, model, x)
        model[2].bias.numpy()[:] = 5
        check(run, model, x)


def test_another_word_for_weights_is_refused() -> None:
    with pytest.raises(CallInputError, match="weights are 'frozen'; they may be 'read' or 'bound'"):
        backend(None, [], options={"weights": "frozen"})
