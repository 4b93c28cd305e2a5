"""A call for which the GPU has no room says what needed it."""

from __future__ import annotations

import numpy as np
import pytest

from tensorkiln.runtime.cuda import OutOfDeviceMemoryError
from tests.runtime.cuda.test_memory import chain


@pytest.mark.parametrize(
    ("count", "what", "size"),
    [
        (50_000, r"a copy of input 0 \(var 100\) takes", 200_000),
        (20_000, "the temporaries of a call take", 160_000),
        (13_000, r"output 0 \(var 106\) takes", 52_000),
    ],
)
def test_a_buffer_without_room_on_the_gpu_is_named_with_its_size(count: int, what: str, size: int) -> None:
    sketch = chain()
    program = sketch.gpu_program(sketch.driver(capacity=200_000))
    with pytest.raises(OutOfDeviceMemoryError, match=f"^{what} [0-9]+ bytes, for which the GPU has no room") as caught:
        program(np.ones(count, np.float32), n=count)
    assert size <= caught.value.details["bytes"] < size + 1000
    assert program(np.ones(5, np.float32), n=5)[0].numpy().tolist() == [64] * 5
