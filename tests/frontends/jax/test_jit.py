"""`jit` beside JAX itself, where that is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorkiln import Client
from tensorkiln.errors import CallBoundsError, CallInputError, RequestError, UnsupportedGraphError
from tensorkiln.frontends import jax as kiln_jax

jax: Any = pytest.importorskip("jax")
jnp: Any = pytest.importorskip("jax.numpy")
pytest.importorskip("jax.export")

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def near(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=2e-5, atol=1e-6)


def test_a_function_of_trees_gives_the_tree_that_it_gives_in_jax(client: Client) -> None:
    def function(tree: Any, *, scale: Any) -> Any:
        return {"a": tree["x"] * scale, "b": (tree["y"][0] @ tree["x"].T, None)}

    tree = {"x": X, "y": [X + 1]}
    found = kiln_jax.jit(function, client=client)(tree, scale=2.0)
    expected = function({"x": jnp.asarray(X), "y": [jnp.asarray(X + 1)]}, scale=2.0)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    jax.tree.map(near, found, expected)


def test_results_are_of_the_kind_that_the_arguments_are(client: Client) -> None:
    double = kiln_jax.jit(lambda x: x * 2, client=client)
    assert type(double(X)) is np.ndarray
    assert isinstance(double(jnp.asarray(X)), jax.Array)


def test_each_signature_is_compiled_once(client: Client) -> None:
    traces: list[tuple[int, ...]] = []

    @kiln_jax.jit(client=client)
    def function(x: Any) -> Any:
        traces.append(x.shape)
        return x + 1

    for array in (X, X + 1, X[:2], X.astype(np.int32), X):
        near(function(array), array + 1)
    assert function.signatures == 3
    assert len(traces) == 3
    near(function(1.5), 2.5)
    assert function.signatures == 4


def test_static_arguments_are_part_of_the_signature(client: Client) -> None:
    def function(x: Any, times: Any, mode: Any = "sum") -> Any:
        for _ in range(times):
            x = x + 1
        return x.sum() if mode == "sum" else x.max()

    compiled = kiln_jax.jit(function, static_argnums=1, static_argnames="mode", client=client)
    for arguments in ((X, 1), (X, 3), (X, 3, "max"), (X, 3, "sum")):
        near(compiled(*arguments), function(jnp.asarray(arguments[0]), *arguments[1:]))
    near(compiled(X, times=2, mode="max"), X.max() + 2)
    assert compiled.signatures == 5
    with pytest.raises(RequestError, match="cannot be hashed"):
        compiled(X, [1])
    with pytest.raises(RequestError, match="static_argnames has 'other'"):
        kiln_jax.jit(function, static_argnames="other")
    with pytest.raises(RequestError, match="static_argnums has 5"):
        kiln_jax.jit(function, static_argnums=5)


def test_a_signature_is_of_the_width_that_jax_computes_in(client: Client) -> None:
    function = kiln_jax.jit(lambda x: (x * 2, jnp.arange(3)), client=client)
    assert function(X[0])[1].dtype == np.int32
    jax.config.update("jax_enable_x64", True)
    try:
        assert function(X[0])[1].dtype == np.int64
    finally:
        jax.config.update("jax_enable_x64", False)
    assert function(X[0])[1].dtype == np.int32
    assert function.signatures == 2


def test_static_arguments_that_are_equal_and_not_the_same_are_other_signatures(client: Client) -> None:
    whole = kiln_jax.jit(lambda x, by: x + by[0], static_argnums=1, client=client)
    assert whole(np.ones(2, np.int32), (1,)).dtype == np.int32
    assert whole(np.ones(2, np.int32), (1.0,)).dtype == np.float32
    zero = kiln_jax.jit(lambda x, sign: jnp.copysign(x, sign), static_argnums=1, client=client)
    assert zero(X[0] ** 2, 0.0).tolist() == (X[0] ** 2).tolist()
    assert zero(X[0] ** 2, -0.0).tolist() == (-(X[0] ** 2)).tolist()


def test_closed_over_arrays_are_bound_parameters(client: Client) -> None:
    weight = jax.random.normal(jax.random.key(0), (4, 300))
    bias = np.arange(3, dtype=np.float32)[:, None]
    inner = jax.jit(lambda x: x @ weight)

    @kiln_jax.jit(client=client)
    def function(x: Any) -> Any:
        return inner(x) + jnp.tanh(x @ (weight * 2)) + bias

    near(function(X), jnp.asarray(X) @ weight + jnp.tanh(jnp.asarray(X) @ (weight * 2)) + bias)
    model = function.model(X)
    assert [array.shape for array in model.model.parameters.values()] == [(4, 300)]
    assert len(model.graph.to_json()) < 12_000


def test_symbolic_sizes_are_one_signature(client: Client) -> None:
    @kiln_jax.jit(shapes=("n, 4", "m, n"), symbols={"n": (1, 8), "m": (1, 8)}, client=client)
    def function(x: Any, y: Any) -> Any:
        return jax.nn.softmax(y @ x) + y.shape[1]

    for n, m in ((3, 2), (5, 1), (8, 8)):
        x, y = np.ones((n, 4), np.float32), np.linspace(0, 1, m * n, dtype=np.float32).reshape(m, n)
        near(function(x, y), jax.nn.softmax(jnp.asarray(y) @ x) + n)
    assert function.signatures == 1
    with pytest.raises(CallBoundsError, match="n"):
        function(np.ones((9, 4), np.float32), np.ones((2, 9), np.float32))


def test_a_gradient_is_compiled_like_any_function(client: Client) -> None:
    def loss(weights: Any, x: Any) -> Any:
        return (jnp.tanh(x @ weights["w"]) ** 2).mean() + (weights["b"] ** 2).sum()

    weights = {"w": np.ones((4, 2), np.float32) / 3, "b": np.ones(2, np.float32)}
    found = kiln_jax.jit(jax.value_and_grad(loss), client=client)(weights, X)
    jax.tree.map(near, found, jax.value_and_grad(loss)(jax.tree.map(jnp.asarray, weights), jnp.asarray(X)))


def test_a_method_is_compiled_for_its_object(client: Client) -> None:
    class Layer:
        def __init__(self) -> None:
            self.weight = jnp.ones((4, 2))

        @kiln_jax.jit(static_argnums=0, client=client)
        def __call__(self, x: Any) -> Any:
            return x @ self.weight

    near(Layer()(X), X @ np.ones((4, 2)))


def test_a_class_that_jax_knows_is_a_tree(client: Client) -> None:
    class Pair:
        def __init__(self, left: Any, right: Any) -> None:
            self.left, self.right = left, right

    jax.tree_util.register_pytree_node(
        Pair, lambda pair: ((pair.left, pair.right), None), lambda _, parts: Pair(*parts)
    )
    found = kiln_jax.jit(lambda pair: Pair(pair.right, pair.left + 1), client=client)(Pair(X, X[0]))
    assert isinstance(found, Pair)
    near(found.right, X + 1)


def test_keys_are_arguments_and_results(client: Client) -> None:
    @kiln_jax.jit(client=client)
    def function(key: Any) -> Any:
        return jax.random.normal(key, (5,)), jax.random.key_data(jax.random.split(key)[0])

    key = jax.random.key(7)
    values, words = function(key)
    near(values, jax.random.normal(key, (5,)))
    assert np.array_equal(words, jax.random.key_data(jax.random.split(key)[0]))


def test_a_loop_goes_on_as_long_as_its_data_says(client: Client) -> None:
    def function(x: Any) -> Any:
        return jax.lax.while_loop(lambda pair: pair[1].sum() < 90, lambda pair: (pair[0] + 1, pair[1] * 1.5), (0, x))

    looping = kiln_jax.jit(function, client=client)
    for x in (jnp.asarray(X) * 0 + 1.0, jnp.asarray(X) * 0 + 100.0):
        for one, other in zip(looping(x), function(x), strict=True):
            near(one, other)


def test_functions_that_cannot_be_compiled_are_refused(client: Client) -> None:
    double = kiln_jax.jit(lambda x: x * 2, client=client)
    with pytest.raises(CallInputError, match="transform the function before"):
        jax.grad(lambda x: double(x).sum())(jnp.asarray(X))
    with pytest.raises(CallInputError, match="a str is not an array"):
        double("x")
    printing = kiln_jax.jit(lambda x: (jax.debug.print("{}", x.sum()), x)[1], client=client)
    with pytest.raises(UnsupportedGraphError, match="side effects"):
        printing(X)


def test_complex_arrays_are_arguments_results_and_parameters(client: Client) -> None:
    closed_over = np.exp(1j * np.arange(160)).astype(np.complex64)

    @kiln_jax.jit(client=client)
    def function(x: Any, scale: Any) -> Any:
        return {"whole": jnp.fft.ifft(jnp.fft.fft(x) * jnp.asarray(closed_over)) * scale, "size": jnp.abs(x)}

    x = (np.arange(160) - 1j * np.arange(160)[::-1]).astype(np.complex64) / 80
    found = function(x, 2 - 1j)
    near(found["whole"], np.fft.ifft(np.fft.fft(x) * closed_over) * (2 - 1j))
    near(found["size"], np.abs(x))
    assert found["whole"].dtype == np.complex64
    assert isinstance(function(jnp.asarray(x), 1.0)["whole"], jax.Array)


def test_keys_of_xlas_own_generator_draw_what_they_draw_in_jax(client: Client) -> None:
    def function(key: Any) -> Any:
        return jax.random.normal(key, (5,)), jax.random.split(key)

    key = jax.random.key(5, impl="rbg")
    drawn, keys = function(key)
    exported = jax.export.export(jax.jit(function))(key).serialize()
    found = kiln_jax.load(exported, client=client).compile(client=client)(np.asarray(jax.random.key_data(key)))
    near(found[0], drawn)
    assert np.array_equal(found[1], jax.random.key_data(keys))
    assert np.array_equal(jax.random.key_data(kiln_jax.jit(function, client=client)(key)[1]), jax.random.key_data(keys))


def test_arrays_that_are_changed_later_change_nothing(client: Client) -> None:
    first, second = np.ones((32, 32), np.float32), np.ones(300, np.int64)
    tied = np.ones((4, 2), np.float32)
    closing = kiln_jax.jit(lambda x: (x @ first, second + 1), client=client)
    partial = kiln_jax.jit(jax.tree_util.Partial(lambda weight, x: x @ weight, tied), client=client)
    x = np.ones((1, 32), np.float32)
    for _ in range(2):
        product, whole = closing(x)
        assert product.tolist() == [[32.0] * 32]
        assert (whole.dtype, set(whole.tolist())) == (np.int32, {2})
        near(partial(X), X @ np.ones((4, 2)))
        first[:], second[:], tied[:] = 2, 5, 3


def test_a_method_of_a_tree_binds_the_arrays_of_its_object(client: Client) -> None:
    class Layer:
        def __init__(self, weight: Any) -> None:
            self.weight = weight

        def __call__(self, x: Any) -> Any:
            return x @ self.weight

    jax.tree_util.register_pytree_node(Layer, lambda layer: ((layer.weight,), None), lambda _, parts: Layer(*parts))
    layer = Layer(np.ones((4, 2), np.float32))
    for callable_ in (layer, layer.__call__):
        compiled = kiln_jax.jit(callable_, client=client)
        near(compiled(X), X @ np.ones((4, 2)))
        assert len(compiled.model(X).graph.parameter_vars) == 1
