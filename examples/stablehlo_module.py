"""A StableHLO module instead of a graph. `0.0` is dimension 0 of argument 0."""

import numpy as np

from tensorkiln import Client
from tensorkiln.stablehlo import StableHlo

module = StableHlo(
    """
    func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
      %0 = stablehlo.multiply %x, %x : tensor<?x4xf32>
      return %0 : tensor<?x4xf32>
    }
    """,
    {"0.0": (1, 64)},
)
with Client() as client:
    program = client.compile(module)
(symbol,) = (each.name for each in program.compiled.symbols)
(y,) = program(np.full((2, 4), 3, np.float32), **{symbol: 2})
np.testing.assert_array_equal(y, np.full((2, 4), 9, np.float32))
print(y)
