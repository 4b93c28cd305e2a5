"""Maps in strips whose result is stored in the memory of an operand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tensorkiln.build import Builder, Tensor, pad
from tensorkiln.reference import evaluate
from tests import checked
from tests.compiled import compiled
from tests.filecheck import check_ir
from tests.passes.modules import output

Write = Callable[[Builder], Tensor]


def scaled_in_place(b: Builder) -> Tensor:
    """A padded map that is stored in the place of an operand, since a sum of all of it follows."""
    x, y = b.input("float32", (96, 8, 70)), b.input("float32", (96, 60))
    sums = x.sum(1)
    z = sums * sums.sum((0, 1)) + pad(y, [(0, 0), (3, 7)])
    z = (z * z + 2) * (z + 3) * (z * z + 1)
    return z * z.sum((0, 1))


def rounded_in_place(b: Builder) -> Tensor:
    """The same with a result of another dtype."""
    x, y = b.input("float32", (96, 8, 70)), b.input("float32", (96, 60))
    sums = x.sum(1)
    return ((sums * sums.sum((0, 1)) + pad(y, [(0, 0), (3, 7)])) * 100000.0).cast("int32")


@pytest.mark.parametrize(("write", "element", "tolerance"), [(scaled_in_place, "f32", 0), (rounded_in_place, "i32", 1)])
def test_a_map_in_place_computes_no_point_again(write: Write, element: str, tolerance: int) -> None:
    b = Builder("strips")
    graph = output(b, write(b))
    made = compiled(graph, "cpu:x86-64-v3", texts=["schedule", "realise"])
    check_ir(made.dumps["schedule"], "// CHECK: reuses = {{\\[\\[}}")
    check_ir(made.dumps["realise"], f"// CHECK: vector.maskedstore {{{{.*}}}} vector<8x{element}>")
    rng = np.random.default_rng(0)
    arrays = [rng.random(shape, np.float32) / 1000 for shape in ((96, 8, 70), (96, 60))]
    np.testing.assert_allclose(checked.run(made, *arrays)[0], evaluate(graph, *arrays)[0], rtol=1e-4, atol=tolerance)
