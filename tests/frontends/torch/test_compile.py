"""`torch.compile` with the backend computes what torch does eagerly, forward and backward. Runs where torch is."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorkiln import Client
from tensorkiln.errors import CallInputError, DeviceError, UnsupportedGraphError
from tensorkiln.frontends.torch import backend

torch = pytest.importorskip("torch", reason="torch is no dependency of the project; these tests run where it is")
nn, F = torch.nn, torch.nn.functional
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)


@pytest.fixture(scope="module")
def compiled(client: Client) -> Callable[..., Any]:
    def compile_it(model: Any, **options: Any) -> Any:
        return torch.compile(model, backend=backend, fullgraph=True, options={"client": client}, **options)

    return compile_it


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project, self.result, self.norm = nn.Linear(8, 24), nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        q, k, v = self.project(self.norm(x)).reshape(batch, length, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + F.gelu(self.result(y.transpose(1, 2).reshape(batch, length, width)))


def image(*modules: Any) -> Any:
    return nn.Sequential(*modules, nn.Flatten(), nn.LazyLinear(3))


MODELS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "perceptron": (lambda: nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3)), (4, 6)),
    "convolution": (lambda: image(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)), (2, 3, 6, 6)),
    "strided": (lambda: image(nn.Conv2d(4, 6, 3, stride=2, groups=2, dilation=2, padding=2), nn.SiLU()), (2, 4, 8, 7)),
    "transposed": (lambda: image(nn.ConvTranspose2d(3, 4, 3, 2, 1, 1), nn.Tanh(), nn.AvgPool2d(2)), (2, 3, 4, 4)),
    "batch_norm": (lambda: image(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()), (3, 3, 5, 5)),
    "group_norm": (lambda: image(nn.GroupNorm(2, 4), nn.ELU(), nn.AdaptiveAvgPool2d(1)), (2, 4, 4, 4)),
    "attention": (Attention, (2, 5, 8)),
    "resized": (
        lambda: image(nn.Upsample((7, 5), mode="bicubic"), nn.Conv2d(3, 4, 3), nn.Upsample(scale_factor=2), nn.Tanh()),
        (2, 3, 4, 6),
    ),
    "volume": (
        lambda: image(nn.Conv3d(2, 4, 3, padding=1), nn.MaxPool3d(2), nn.AvgPool3d(2, 1), nn.AdaptiveAvgPool3d(2)),
        (2, 2, 6, 8, 6),
    ),
    "adaptive": (lambda: image(nn.Conv2d(3, 4, 3, padding=1), nn.AdaptiveMaxPool2d((3, 2))), (2, 3, 7, 5)),
}


def fitted(name: str) -> tuple[Any, Any, Any]:
    """A model, its twin with the same weights, and an argument."""
    make, shape = MODELS[name]
    model, x = make(), torch.randn(shape)
    model(x)
    return model, copy.deepcopy(model), x


@pytest.mark.parametrize("name", MODELS)
def test_inference_computes_what_torch_does(name: str, compiled: Callable[..., Any]) -> None:
    model, twin, x = fitted(name)
    with torch.no_grad():
        torch.testing.assert_close(compiled(model.eval())(x), twin.eval()(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_training_gives_the_gradients_and_buffers_that_torch_does(name: str, compiled: Callable[..., Any]) -> None:
    model, twin, x = fitted(name)
    given, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    compiled(model)(given).square().mean().backward()
    twin(other).square().mean().backward()
    torch.testing.assert_close(given.grad, other.grad, rtol=1e-3, atol=1e-5)
    for own, wanted in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(own.grad, wanted.grad, rtol=1e-3, atol=1e-5)
    for own, wanted in zip(model.buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(own, wanted)


def test_a_model_learns_as_it_does_eagerly(compiled: Callable[..., Any]) -> None:
    model, twin, x = fitted("perceptron")
    target = torch.tensor([0, 1, 2, 1])
    losses: list[list[float]] = []
    for trained in (compiled(model), twin):
        optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
        losses.append([])
        for _ in range(5):
            optimizer.zero_grad()
            loss = F.cross_entropy(trained(x), target)
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    assert losses[0][-1] < losses[0][0]


def test_an_embedding_learns(compiled: Callable[..., Any]) -> None:
    model = nn.Sequential(nn.Embedding(7, 4, padding_idx=2), nn.Flatten(), nn.Linear(12, 2))
    twin, n = copy.deepcopy(model), torch.tensor([[1, 2, 1], [6, 0, 1]])
    compiled(model)(n).sum().backward()
    twin(n).sum().backward()
    torch.testing.assert_close(model[0].weight.grad, twin[0].weight.grad)


def test_sizes_are_dynamic_and_may_outgrow_their_first_bound(compiled: Callable[..., Any]) -> None:
    def function(x: Any) -> Any:
        return (x * x.shape[0]).sum(0), x[1:] - x[:-1]

    run = compiled(function, dynamic=True)
    for rows in (3, 17, 9000):
        x = torch.randn(rows, 2)
        torch.testing.assert_close(run(x), function(x), rtol=1e-3, atol=1e-2)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_nested_results_and_arguments_are_kept(compiled: Callable[..., Any]) -> None:
    def function(pair: Any, scale: float, *, bias: Any) -> Any:
        return {"sum": pair[0] + pair[1] * scale, "rest": (bias, [None, 3, pair[0].shape])}

    given = ([torch.ones(2), torch.ones(2)], 2.0)
    found = compiled(function)(*given, bias=torch.zeros(1))
    assert found["sum"].tolist() == [3, 3]
    assert found["rest"][1] == [None, 3, torch.Size([2])]


def test_writes_into_arguments_are_seen(compiled: Callable[..., Any]) -> None:
    def function(x: Any) -> Any:
        x[0] = 5.0
        return x.sum()

    x = torch.ones(3)
    assert compiled(function)(x).item() == 7
    assert x.tolist() == [5, 1, 1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int64", "bool", "uint8"])
def test_element_types_come_and_go(dtype: str, compiled: Callable[..., Any]) -> None:
    x = torch.tensor([0, 1, 1, 0]).to(getattr(torch, dtype))
    found = compiled(lambda x: (x.flip(0), x * x))(x)
    assert [each.dtype for each in found] == [x.dtype, x.dtype]
    assert found[0].tolist() == x.flip(0).tolist()


def test_arguments_need_not_be_contiguous(compiled: Callable[..., Any]) -> None:
    x = torch.randn(4, 6).t()[1:, ::2]
    torch.testing.assert_close(compiled(lambda x: x * 2)(x), x * 2)


def test_uniform_numbers_stay_below_the_end_that_is_left_out(compiled: Callable[..., Any]) -> None:
    drawn = compiled(lambda x: x.uniform_(2, 4))(torch.zeros(12_000, dtype=torch.float16))
    assert 2 <= float(drawn.min()) < 2.01 < 3.99 < float(drawn.max()) < 4


def test_dropout_follows_torchs_seed(compiled: Callable[..., Any]) -> None:
    run, x = compiled(lambda x: F.dropout(x, 0.5)), torch.ones(1000)
    drawn: list[Any] = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(run(x))
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    assert set(drawn[0].tolist()) == {0.0, 2.0}
    assert 400 < int((drawn[0] > 0).sum()) < 600


FACTORS: dict[str, Callable[[Any, Any], Any]] = {
    "inverse": lambda x, b: torch.linalg.inv(x) @ b,
    "determinant": lambda x, b: torch.linalg.det(x) * torch.linalg.slogdet(x)[1],
    "cholesky": lambda x, b: torch.linalg.cholesky(x @ x.mT + torch.eye(4)) @ b,
    "triangular": lambda x, b: torch.linalg.solve_triangular(x, b, upper=True),
    "singular values": lambda x, b: torch.linalg.svdvals(x),
}


@pytest.mark.parametrize("name", FACTORS)
def test_gradients_of_factors_are_those_of_torch(compiled: Callable[..., Any], name: str) -> None:
    x, b = torch.randn(3, 4, 4) + 3 * torch.eye(4), torch.randn(3, 4, 2)
    found: list[list[Any]] = []
    for function in (FACTORS[name], compiled(FACTORS[name])):
        given = [each.clone().requires_grad_() for each in (x, b)]
        result = function(*given)
        result.square().sum().backward()
        found.append([result.detach(), *(each.grad for each in given if each.grad is not None)])
    for wanted, own in zip(*found, strict=True):
        torch.testing.assert_close(own, wanted, rtol=1e-4, atol=1e-4 * float(wanted.abs().max()))


def test_the_gradient_of_a_solved_system_is_refused(compiled: Callable[..., Any]) -> None:
    x, b = (torch.eye(3) * 2).requires_grad_(), torch.randn(3, 2)
    with pytest.raises(Exception, match="the factors of a solved system, which its gradient reads, are not given"):
        compiled(torch.linalg.solve)(x, b)
    torch.testing.assert_close(compiled(torch.linalg.solve)(x.detach(), b), b / 2)


def test_all_operations_that_are_not_supported_are_listed_with_their_lines(compiled: Callable[..., Any]) -> None:
    def function(x: Any) -> Any:
        y = torch.linalg.matrix_exp(x)
        return y + torch.special.bessel_j0(x)[0]

    with pytest.raises(Exception, match=r"2 of the operations") as caught:
        compiled(function)(torch.randn(3, 3))
    text = str(caught.value)
    assert "torch.linalg.matrix_exp(x)" in text
    assert "torch.special.bessel_j0(x)" in text
    assert "test_compile.py" in text


def test_the_backend_is_found_by_its_name() -> None:
    from importlib.metadata import EntryPoint

    entry = EntryPoint("tensorkiln", "tensorkiln.frontends.torch:backend", "torch_dynamo_backends")
    assert entry.load() is backend


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(CallInputError, match="no option 'level'; its options are client, target, threads"):
        backend(None, [], options={"level": 3})


def test_a_tensor_of_another_device_is_refused() -> None:
    from tensorkiln.frontends.torch.arrays import array_of

    with pytest.raises(DeviceError, match="meta"):
        array_of(torch.ones(2, device="meta"))


def test_arguments_and_values_of_other_devices_are_named(compiled: Callable[..., Any]) -> None:
    with pytest.raises(Exception, match=r"the argument l_y_ is a tensor on meta.*move the module"):
        compiled(lambda x, y: (x + 1, y * 2))(torch.ones(2), torch.ones(2, device="meta"))
    with pytest.raises(Exception, match=r"what \w+ gives is a tensor on meta"):
        compiled(lambda x: (x + 1, torch.ones(3, device="meta") * 2))(torch.ones(2))


def test_an_exported_program_is_loaded_as_its_archive_is(client: Client, tmp_path: Any) -> None:
    from tensorkiln.frontends.torch import load

    model, _, x = fitted("convolution")
    exported = torch.export.export(model.eval(), (x,))
    torch.export.save(exported.run_decompositions(), tmp_path / "model.pt2")
    first, second = load(exported), load(str(tmp_path / "model.pt2"))
    assert first.inputs == second.inputs
    assert [node.model_dump() for node in first.graph.nodes] == [node.model_dump() for node in second.graph.nodes]
    (found,) = first.compile(client=client)(x.numpy()).values()
    np.testing.assert_allclose(found, model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_module_returns_its_own_classes(client: Client) -> None:
    from tensorkiln.frontends.torch import load

    class Named(nn.Module):
        def forward(self, x: Any, *, scale: Any) -> Any:
            return torch.max(x * scale, 1)

    x, scale = torch.randn(3, 4), torch.ones(4)
    module = load(torch.export.export(Named(), (x,), {"scale": scale})).compile_module(client=client)
    found = module(x.numpy(), scale=scale.numpy())
    assert type(found) is torch.return_types.max
    np.testing.assert_array_equal(found.values, x.max(1).values.numpy())


def test_complex_arguments_and_results_of_an_export_are_refused_by_name() -> None:
    from tensorkiln.frontends.torch import load

    class Complex(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.fft.fft(x) if x.is_floating_point() else x.abs()

    with pytest.raises(UnsupportedGraphError, match=r"the result '_fft_r2c' is complex.*return torch.view_as_real"):
        load(torch.export.export(Complex(), (torch.randn(8),)))
    with pytest.raises(UnsupportedGraphError, match=r"the input 'x' is of complex64.*give it as torch.view_as_real"):
        load(torch.export.export(Complex(), (torch.randn(8, dtype=torch.complex64),)))


def test_complex_tensors_come_and_go_and_are_kept_for_gradients(compiled: Callable[..., Any]) -> None:
    def function(x: Any, y: Any) -> Any:
        spectrum = torch.fft.rfft(x) * y
        return spectrum.transpose(0, 1), spectrum.abs().sum(0)

    x, y = torch.randn(3, 8), torch.randn(3, 5, dtype=torch.complex64)
    results: list[list[Any]] = []
    for run in (compiled(function), function):
        given = [x.clone().requires_grad_(), y.clone().requires_grad_()]
        found = run(*given)
        (torch.view_as_real(found[0]).square().mean() + found[1].mean()).backward()
        results.append([*found, *(each.grad for each in given)])
    torch.testing.assert_close(results[0], results[1], rtol=1e-4, atol=1e-5)
    assert results[0][0].stride() == results[1][0].stride()


@pytest.mark.parametrize("heads", [1, 2])
def test_heads_of_keys_that_are_shared_get_the_gradients_of_all(heads: int, compiled: Callable[..., Any]) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, scale=0.3, enable_gqa=True), torch.vdot(k[0, 0, 0], v[0, 0, 0])

    given = [torch.randn(2, count, 5, 8) for count in (4, heads, heads)]
    results: list[list[Any]] = []
    for run in (compiled(function), function):
        own = [each.clone().requires_grad_() for each in given]
        found = run(*own)
        (found[0].square().mean() + found[1]).backward()
        results.append([*found, *(each.grad for each in own)])
    torch.testing.assert_close(results[0], results[1], rtol=1e-3, atol=1e-5)


def test_sizes_are_bounded_by_what_the_graph_can_be_compiled_for(compiled: Callable[..., Any]) -> None:
    def function(x: Any, n: Any) -> Any:
        return torch.zeros(x.shape[0], 8).index_add(0, n, x[n]).cumsum(0)

    run = compiled(function, dynamic=True)
    for rows, updates in ((3, 4), (40, 9), (300, 2000)):
        x, n = torch.randn(rows, 8), torch.randint(rows, (updates,))
        torch.testing.assert_close(run(x, n), function(x, n), rtol=1e-4, atol=1e-4)
    with pytest.raises(UnsupportedGraphError, match=r"axis 0 has the extent .*, which may be more than 4096"):
        run(torch.randn(20000, 8), torch.randint(9, (20000,)))
    assert torch.equal(run(x, n), run(x, n))
