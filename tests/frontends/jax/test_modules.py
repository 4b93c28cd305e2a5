"""Modules of Flax NNX and Haiku in `jit`, their arrays as parameters. Runs where JAX and these are installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorkiln import Client
from tensorkiln.errors import UnsupportedGraphError
from tensorkiln.frontends import jax as kiln_jax

jax: Any = pytest.importorskip("jax")
jnp: Any = pytest.importorskip("jax.numpy")
nnx: Any = pytest.importorskip("flax.nnx")
hk: Any = pytest.importorskip("haiku")
pytestmark = pytest.mark.filterwarnings("ignore")

X = np.linspace(-1, 1, 36, dtype=np.float32).reshape(3, 12)


def near(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=2e-5, atol=1e-6)


def parameters(model: kiln_jax.JaxModel) -> list[tuple[int, ...]]:
    """Their shapes, in order."""
    assert model.graph.parameter_vars == tuple(model.model.parameters)
    return sorted(array.shape for array in model.model.parameters.values())


def layers() -> Any:
    rngs = nnx.Rngs(0)
    return nnx.Sequential(nnx.Linear(12, 8, rngs=rngs), nnx.BatchNorm(8, rngs=rngs), nnx.Dropout(0.5, rngs=rngs))


def test_the_arrays_of_a_module_are_parameters_of_any_size(client: Client) -> None:
    module = layers()
    module.eval()
    compiled = kiln_jax.jit(module, client=client)
    near(compiled(X), module(jnp.asarray(X)))
    model = compiled.model(X)
    assert parameters(model)[-1:] == [(12, 8)]
    assert parameters(model).count((8,)) == 5
    assert "vconst" not in model.graph.to_json()


def test_a_method_has_the_arrays_of_its_object(client: Client) -> None:
    module = nnx.MultiHeadAttention(2, 12, decode=False, rngs=nnx.Rngs(0))
    near(kiln_jax.jit(module.__call__, client=client)(X[None]), module(jnp.asarray(X[None])))
    linear = nnx.Linear(12, 2, rngs=nnx.Rngs(0))
    assert parameters(kiln_jax.jit(linear.__call__, client=client).model(X)) == [(2,), (12, 2)]


@pytest.mark.parametrize("place", ["statistics", "counts of random numbers"])
def test_a_module_that_changes_itself_is_refused(place: str, client: Client) -> None:
    module = layers()
    module.layers[1].use_running_average = place != "statistics"
    module.layers[2].deterministic = place == "statistics"
    with pytest.raises(UnsupportedGraphError, match=r"changes its own .*(mean|count).*nnx\.split"):
        kiln_jax.jit(module, client=client)(X)


def test_state_goes_in_and_comes_out_where_it_changes(client: Client) -> None:
    module = layers()
    module.layers[2].deterministic = True
    graph, state = nnx.split(module)

    def step(state: Any, x: Any) -> Any:
        made = nnx.merge(graph, state)
        return made(x), nnx.state(made)

    found, after = kiln_jax.jit(step, client=client)(state, X)
    near(found, module(jnp.asarray(X)))
    jax.tree.map(near, nnx.state(after, nnx.BatchStat), nnx.state(module, nnx.BatchStat))


def test_weights_of_haiku_are_bound_by_a_partial(client: Client) -> None:
    pure = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([9, 2])(x)))
    weights = pure.init(jax.random.key(0), X)
    compiled = kiln_jax.jit(jax.tree_util.Partial(pure.apply, weights), client=client)
    near(compiled(X), pure.apply(weights, X))
    assert parameters(compiled.model(X)) == [(2,), (9,), (9, 2), (12, 9)]


def test_a_gradient_of_a_module_is_compiled(client: Client) -> None:
    graph, state = nnx.split(nnx.Linear(12, 2, rngs=nnx.Rngs(0)))

    def loss(state: Any, x: Any) -> Any:
        return (nnx.merge(graph, state)(x) ** 2).mean()

    found = kiln_jax.jit(jax.grad(loss), client=client)(state, X)
    jax.tree.map(near, found, jax.grad(loss)(state, X))
