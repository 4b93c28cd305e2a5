"""Unrealized tensors of tinygrad, as a model for any number of rows."""

import numpy as np
from tinygrad import Tensor, Variable, nn

from tensorkiln import Client
from tensorkiln.frontends.tinygrad import model

layer = nn.Linear(6, 3)
Tensor.realize(*nn.state.get_parameters(layer))
rows = Variable("rows", 1, 64).bind(4)
x = Tensor.empty(64, 6)[:rows]

with Client() as client:
    compiled = model({"scores": layer(x).relu()}, inputs={"x": x}).compile(client=client)
for count in (4, 50):
    given = np.linspace(-1, 1, count * 6, dtype=np.float32).reshape(count, 6)
    wanted = np.maximum(given @ layer.weight.numpy().T + layer.bias.numpy(), 0)
    np.testing.assert_allclose(compiled(given)["scores"], wanted, atol=1e-6)
    print(count, "rows, as NumPy computes them")
