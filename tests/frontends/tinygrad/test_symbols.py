"""Variables of tinygrad's are symbols with their bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorkiln import Client
from tensorkiln.errors import CallBoundsError, CallInputError
from tensorkiln.frontends.tinygrad import jit, model
from tensorkiln.reference import evaluate

from .recipe import floats, tinygrad, whole

X = floats(8, 4)


def rows(name: str = "n", bound: int = 3) -> Any:
    return tinygrad().Variable(name, 1, 8).bind(bound)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(0) * 2,
        lambda x: x.mean(),
        lambda x: x.softmax(0),
        lambda x: x @ x.transpose(0, 1),
        lambda x: x.pad(((1, 2), None)).max(0),
        lambda x: (x > 0).where(x, -1).flip(0),
        lambda x: x.reshape(x.shape[0] * 2, 2).sum(1),
    ],
)
def test_a_function_of_any_number_of_rows_gives_what_tinygrad_gives_for_each(function: Any) -> None:
    tensor = tinygrad().Tensor
    given = tensor(X).realize()[: rows()]
    made = model(function(given), {"x": given})
    assert made.graph.symbols == {"n": (1, 8)}
    for count in (1, 5, 8):
        (found,) = evaluate(made.graph, X[:count], n=count)
        np.testing.assert_allclose(found, function(tensor(X[:count])).numpy(), rtol=1e-5, atol=1e-6)


def test_a_variable_is_a_value_and_a_place(client: Client) -> None:
    tensor = tinygrad().Tensor

    @jit(client=client)
    def function(x: Any, start: Any) -> Any:
        return x[start : start + 2] * tensor(start)

    given = tensor(whole(8, 4)).realize()
    for start in (1, 6):
        found = function(given, tinygrad().Variable("start", 1, 6).bind(start))
        assert found.tolist() == (whole(8, 4)[start : start + 2] * start).tolist()
    assert function.signatures == 1


def test_sizes_within_the_bounds_are_one_signature(client: Client) -> None:
    tensor = tinygrad().Tensor
    total = jit(lambda x: x.sum(0), client=client)
    given = tensor(X).realize()
    for count in (2, 8):
        np.testing.assert_allclose(total(given[: rows(bound=count)]).numpy(), X[:count].sum(0), rtol=1e-5)
    assert total.signatures == 1
    compiled = total.model(given[: rows()]).compile(client=client)
    np.testing.assert_allclose(compiled(X[:5])["result"], X[:5].sum(0), rtol=1e-5)
    with pytest.raises(CallBoundsError, match="n"):
        compiled(floats(9, 4))


def test_a_variable_has_one_value_at_a_call(client: Client) -> None:
    given = tinygrad().Tensor(X).realize()
    function = jit(lambda x, y: x.sum() + y.sum(), client=client)
    with pytest.raises(CallInputError, match=r"args\[1\] binds n to 4, and another to 3"):
        function(given[: rows()], given[: rows(bound=4)])
