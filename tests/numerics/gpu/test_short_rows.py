"""Short rows side by side, whose kernel reads again what it has stored."""

from __future__ import annotations

import numpy as np

from tensorkiln.build import Builder, exp
from tests.compiled import compiled
from tests.emulated import TARGET, Emulation


def test_a_thread_without_a_row_reads_nothing_that_another_stores() -> None:
    b = Builder("short")
    x = b.input("float32", (300, 8))
    powers = exp(x - x.max(axis=1, keepdims=True))
    b.output(powers, powers / powers.sum(axis=1, keepdims=True))
    compilation = compiled(b.graph(), TARGET, texts=["translate"])
    (kernel,) = compilation.program.kernels
    assert kernel.global_size[0] == 2, "the last work-group has threads without a row"
    array = np.random.default_rng(2).standard_normal((300, 8)).astype(np.float32)
    kept, shares = Emulation(compilation, [array], {}).run(watched=True)
    expected = np.exp(array - array.max(axis=1, keepdims=True))
    np.testing.assert_allclose(kept, expected, rtol=1e-5)
    np.testing.assert_allclose(shares, expected / expected.sum(axis=1, keepdims=True), rtol=1e-5)
