"""A JAX function, compiled when it is called: one program for any number of rows, with weights that are bound once."""

import jax
import jax.numpy as jnp
import numpy as np

from tensorkiln import Client
from tensorkiln.frontends import jax as kiln_jax


def layer(weights, x):
    return jax.nn.softmax(jnp.tanh(x @ weights["w"]) + weights["b"])


weights = {"w": jnp.linspace(-1, 1, 12).reshape(4, 3), "b": jnp.zeros(3)}
with Client() as client:
    compiled = kiln_jax.jit(
        jax.tree_util.Partial(layer, weights), shapes=("rows, 4",), symbols={"rows": (1, 64)}, client=client
    )
    for rows in (2, 50):
        x = np.linspace(0, 1, rows * 4, dtype=np.float32).reshape(rows, 4)
        y = compiled(x)
        np.testing.assert_allclose(y, layer(weights, x), atol=1e-6)
        print(y.shape, "as JAX computes it")
assert compiled.signatures == 1
