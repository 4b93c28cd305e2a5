"""`torch.compile` where results share memory with arguments, integers have any value, and threads call. Needs torch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorkiln import Client
from tensorkiln.errors import CallBoundsError, LimitExceededError
from tensorkiln.frontends.torch import backend, growing

torch = pytest.importorskip("torch", reason="torch is no dependency of the project; these tests run where it is")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


@pytest.fixture(scope="module")
def compiled(client: Client) -> Callable[..., Any]:
    def compile_it(function: Any, **options: Any) -> Any:
        return torch.compile(function, backend=backend, fullgraph=True, options={"client": client}, **options)

    return compile_it


VIEWS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: x[x.shape[0] // 2 :],
    "columns": lambda x: x[:, x.shape[1] // 2 :],
    "steps": lambda x: x[1::2, ::3],
    "transposed": lambda x: x.t(),
    "diagonal": lambda x: x.diagonal(),
    "expanded": lambda x: x.unsqueeze(0).expand(3, -1, -1),
    "halves": lambda x: (x[: x.shape[0] // 2], x[x.shape[0] // 2 :]),
    "of_a_result": lambda x: (lambda y: (y, y[: x.shape[0] // 2], y[x.shape[0] // 2 :], y.t()))(x * 2),
    "of_columns": lambda x: (x + 1)[:, 1:],
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_views_are_those_that_torch_gives(name: str, dynamic: bool, compiled: Callable[..., Any]) -> None:
    run = compiled(VIEWS[name], dynamic=dynamic)
    for shape in ((6, 8), (5, 7)):
        x = torch.randn(shape)
        found, wanted = run(x), VIEWS[name](x)
        torch.testing.assert_close(found, wanted)
        for own, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, wanted)), strict=True):
            assert own.stride() == other.stride()


@pytest.mark.parametrize("dtype", ["bfloat16", "int64", "bool"])
def test_views_have_every_element_type(dtype: str, compiled: Callable[..., Any]) -> None:
    x = torch.arange(12).reshape(4, 3).to(getattr(torch, dtype))
    found = compiled(lambda x: x[x.shape[0] // 2 :], dynamic=True)(x)
    assert torch.equal(found, x[2:])


def test_an_argument_may_itself_be_a_view(compiled: Callable[..., Any]) -> None:
    whole = torch.randn(9, 10)
    run = compiled(lambda x: x[x.shape[0] // 2 :, 1:], dynamic=True)
    for x in (whole[3:, 2:], whole.t()[1:], whole[:, ::2]):
        torch.testing.assert_close(run(x), x[x.shape[0] // 2 :, 1:])


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_result_may_be_turned_in_place(dynamic: bool, compiled: Callable[..., Any]) -> None:
    def turn(x: Any) -> Any:
        y = x * 2
        y.t_()
        return y, y[1:]

    x = torch.randn(3, 5)
    found, part = compiled(turn, dynamic=dynamic)(x)
    assert torch.equal(found, x.t() * 2)
    assert torch.equal(part, x.t()[1:] * 2)
    assert found.stride() == (1, 5)


def test_gradients_pass_through_views(compiled: Callable[..., Any]) -> None:
    x = torch.randn(6, 4, requires_grad=True)
    twin = x.detach().clone().requires_grad_()
    (compiled(lambda x: (x * x)[x.shape[0] // 2 :].t(), dynamic=True)(x) * 3).sum().backward()
    ((twin * twin)[3:].t() * 3).sum().backward()
    torch.testing.assert_close(x.grad, twin.grad)


def test_log_sigmoid_has_its_gradient(compiled: Callable[..., Any]) -> None:
    x = torch.tensor([-100.0, -2.0, 0.0, 3.0, 90.0], requires_grad=True)
    twin = x.detach().clone().requires_grad_()
    compiled(torch.nn.functional.logsigmoid)(x).sum().backward()
    torch.nn.functional.logsigmoid(twin).sum().backward()
    torch.testing.assert_close(x.grad, twin.grad)


def test_an_integer_may_have_any_value(compiled: Callable[..., Any]) -> None:
    run, x = compiled(lambda x, n: (x * n, n - 1, x + (2 * n + 1)), dynamic=True), torch.arange(4.0)
    for n in (5, -3, 1 << 30, 10**12, -7, 4097):
        product, less, more = run(x, n)
        torch.testing.assert_close(product, x * n)
        assert less == n - 1
        torch.testing.assert_close(more, x + (2 * n + 1))


def test_a_compile_that_fails_leaves_the_bounds_as_they_were(
    compiled: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = compiled(lambda x: x * x.shape[0], dynamic=True)
    x = torch.ones(growing.FIRST_BOUND + 1)
    assert run(x[:3]).tolist() == [3, 3, 3]
    with monkeypatch.context() as patched:
        patched.setattr(growing, "LAST_BOUND", growing.FIRST_BOUND)
        with pytest.raises(LimitExceededError, match="a size is 4097, at most 4096 is taken"):
            run(x)

    def refuse(*_: object) -> None:
        raise CallBoundsError("no")

    with monkeypatch.context() as patched:
        patched.setattr(growing, "translated", refuse)
        with pytest.raises(CallBoundsError):
            run(x)
    assert run(x[:2]).tolist() == [2, 2]
    assert run(x)[0].item() == growing.FIRST_BOUND + 1


def test_threads_share_a_graph_that_grows(compiled: Callable[..., Any]) -> None:
    run = compiled(lambda x: x + x.shape[0], dynamic=True)
    run(torch.zeros(2))
    wrong: list[object] = []

    def call(size: int) -> None:
        try:
            found = run(torch.zeros(size))
            if not np.array_equal(found.numpy(), np.full(size, size, np.float32)):
                wrong.append(size)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=call, args=(size,)) for size in (3, 5000, 4, 70000, 5, 20000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_weights_are_copies_of_the_modules() -> None:
    from tensorkiln.frontends.torch import load

    linear = torch.nn.Linear(2, 3)
    kept = linear.weight.detach().clone().numpy()
    model = load(torch.export.export(linear, (torch.randn(4, 2),)))
    with torch.no_grad():
        linear.weight.zero_()
    assert any(array.shape == kept.shape and np.array_equal(array, kept) for array in model.parameters.values())


def test_narrow_floats_are_refused_by_name() -> None:
    from tensorkiln.errors import CallInputError, UnsupportedGraphError
    from tensorkiln.frontends.torch import load
    from tensorkiln.frontends.torch.arrays import array_of

    class Narrow(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.nn.functional.pad(x.to(torch.float8_e4m3fn), (1, 1)).float()

    with pytest.raises(UnsupportedGraphError, match="float8_e4m3fn is not supported"):
        load(torch.export.export(Narrow(), (torch.randn(8),)))
    with pytest.raises(CallInputError, match="float8_e5m2"):
        array_of(torch.zeros(2).to(torch.float8_e5m2))


def test_a_size_of_a_value_is_refused_with_its_line() -> None:
    from tensorkiln.errors import UnsupportedGraphError
    from tensorkiln.frontends.torch import load

    class Sized(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            n = x.sum().to(torch.int64).item()
            torch._check(n >= 2)
            torch._check(n <= 9)
            return torch.zeros(n) + 1

    with pytest.raises(UnsupportedGraphError, match=r"(?s)depends on the values of a tensor.*\.item\(\)"):
        load(torch.export.export(Sized(), (torch.ones(4),)))


def test_smoothed_resizing_with_aligned_corners_is_refused() -> None:
    from tensorkiln.errors import UnsupportedGraphError
    from tensorkiln.frontends.torch import load

    class Aligned(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.nn.functional.interpolate(x, (3, 3), mode="bilinear", align_corners=True, antialias=True)

    with pytest.raises(UnsupportedGraphError, match="antialias with align_corners is not supported"):
        load(torch.export.export(Aligned(), (torch.ones(1, 1, 6, 6),)))
