"""A custom operation, which has no node of its own: the host computes it between two kernels.

Custom operations are records in `client/tensorkiln/custom/`; this graph uses the existing one, which sorts.
"""

import numpy as np

from tensorkiln import Client
from tensorkiln.build import Builder
from tensorkiln.dtypes import DType

b = Builder("largest")
n = b.symbol("n", 1, 1024)
x = b.input("float32", (n,))
attributes = [
    {"name": "axis", "kind": "int", "value": 0},
    {"name": "descending", "kind": "int", "value": 1},
]
squares = x * x
ordered = b.append("custom", DType.FLOAT32, squares.shape, op_name="sort", in_vars=[squares.var], attributes=attributes)
b.output(ordered.clip(0, 4) + 1)

with Client() as client:
    program = client.compile(b.graph())
    print([item.operation.op for item in program.compiled.schedule.items])
(y,) = program(np.array([1, -3, 0.5], np.float32), n=3)
np.testing.assert_array_equal(y, np.array([5, 2, 1.25], np.float32))
print(y)
