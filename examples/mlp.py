"""Two layers for any number of rows up to 4096, with their weights bound once."""

import numpy as np

from tensorkiln import Client
from tensorkiln.build import Builder, relu

b = Builder("mlp")
n = b.symbol("n", 1, 4096)
x = b.input("float32", (n, 64))
w1, w2 = b.input("float32", (64, 32)), b.input("float32", (32, 10))
b.output(relu(x @ w1) @ w2)

random = np.random.default_rng(0)
first, second = (random.standard_normal(shape, np.float32) for shape in ((64, 32), (32, 10)))
with Client() as client:
    program = client.compile(b.graph())
for rows in (1, 100):
    given = random.standard_normal((rows, 64), np.float32)
    (y,) = program(given, first, second, n=rows)
    np.testing.assert_allclose(y, np.maximum(given @ first, 0) @ second, rtol=1e-4, atol=1e-4)
    print(y.shape)
