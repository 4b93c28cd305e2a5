"""A function of JAX, compiled as it is called, for any number of rows, and its gradient. Needs `pip install jax`."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tensorkiln.frontends import jax as kiln_jax


def scores(weights: dict[str, Any], x: Any) -> Any:
    return jax.nn.softmax(jax.nn.gelu(x @ weights["first"]) @ weights["second"])


def loss(weights: dict[str, Any], x: Any) -> Any:
    return -jnp.log(scores(weights, x)[:, 0]).mean()


random = np.random.default_rng(0)
weights = {name: random.standard_normal(shape, np.float32) for name, shape in (("first", (8, 16)), ("second", (16, 3)))}
compiled = kiln_jax.jit(scores, shapes=(None, "n, 8"), symbols={"n": (1, 64)})
for rows in (2, 50):
    x = random.standard_normal((rows, 8), np.float32)
    np.testing.assert_allclose(compiled(weights, x), scores(weights, x), rtol=1e-4, atol=1e-5)
print(compiled.signatures, "program for both sizes")

# A compiled function is not differentiated itself: compile the gradient.
gradient = kiln_jax.jit(jax.grad(loss))(weights, x)
for name, expected in jax.grad(loss)(weights, x).items():
    np.testing.assert_allclose(gradient[name], expected, rtol=1e-3, atol=1e-5)
print("the gradient of", ", ".join(sorted(gradient)))
