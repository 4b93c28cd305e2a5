"""Programs on a real GPU. Elsewhere these skip, and `tests/runtime/cuda` runs the same cases on the emulated one."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorkiln.errors import CallBoundsError
from tensorkiln.program import Program
from tensorkiln.runtime.cuda import Driver
from tests.gpu.cases import CASES, LARGE
from tests.gpu.check import calls, check, difference


@pytest.fixture
def softmax(bundles: Path) -> Program:
    return Program.from_bundle(bundles / "softmax.kiln")


def rows(n: int, m: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(n).standard_normal((n, m)).astype(np.float32)


@pytest.mark.parametrize("name", [case.name for case in (*CASES, *LARGE)])
def test_a_bundle_gives_what_the_reference_gives(bundles: Path, name: str) -> None:
    assert check(bundles, name, Program.from_bundle(bundles / f"{name}.kiln")) == []


def test_calls_that_overlap_keep_their_results(softmax: Program) -> None:
    arrays = [rows(n, 1000) for n in range(1, 60)]
    results = [softmax(array, n=len(array), m=1000)[0] for array in arrays]
    for array, result in zip(arrays, results, strict=True):
        assert np.allclose(result.numpy().sum(axis=1), 1, atol=1e-4), len(array)


def test_results_flow_from_stream_to_stream(bundles: Path, gpu: Driver) -> None:
    (call,) = calls(bundles, "integers")
    first = Program.from_bundle(bundles / "integers.kiln")
    with gpu.scope():
        second = first.on(gpu.create_stream())
    (expected, other), (value,) = call.inputs, first(*call.inputs)
    for step in range(30):
        (value,) = (second if step % 2 else first)(value, other)
    for _ in range(31):
        expected = expected * other - (expected << 3)
    assert difference(value.numpy(), expected, 0) is None


def test_bound_weights_stay_on_the_device(bundles: Path) -> None:
    (call, *_) = calls(bundles, "matmul")
    program = Program.from_bundle(bundles / "matmul.kiln")
    variables = [binding.var for binding in program.compiled.inputs]
    bound = program.bind(dict(zip(variables[1:], call.inputs[1:], strict=True)))
    for _ in range(3):
        assert difference(bound(call.inputs[0])[0].numpy(), call.outputs[0], call.bounds[0]) is None


def test_a_profile_has_plausible_times(softmax: Program) -> None:
    (item,) = softmax.profile(rows(1000, 1000), n=1000, m=1000)
    assert 500 < item.ns < 1_000_000_000


def test_an_error_of_a_call_leaves_the_device_usable(softmax: Program) -> None:
    with pytest.raises(CallBoundsError):
        softmax(rows(2, 2), n=2, m=1 << 20)
    assert softmax(rows(2, 2), n=2, m=2)[0].numpy().shape == (2, 2)


@pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
def test_arrays_go_to_pytorch_and_come_from_it(softmax: Program) -> None:
    import torch  # type: ignore[import-not-found]

    given: Any = torch.randn(100, 300, device="cuda")
    (result,) = softmax(given, n=100, m=300)
    seen = torch.from_dlpack(result)
    assert seen.data_ptr() == result.address
    assert torch.allclose(seen, torch.softmax(given, 1), atol=1e-5)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        ahead = torch.randn(100, 300, device="cuda") * 2
        (after,) = softmax.on(stream.cuda_stream)(ahead, n=100, m=300)
        assert torch.allclose(torch.from_dlpack(after), torch.softmax(ahead, 1), atol=1e-5)
    del result
    (again,) = softmax(given + 1, n=100, m=300)
    assert torch.allclose(torch.from_dlpack(again), torch.softmax(given + 1, 1), atol=1e-5)
    assert torch.allclose(seen, torch.softmax(given, 1), atol=1e-5)


@pytest.mark.skipif(find_spec("cupy") is None, reason="needs CuPy")
def test_arrays_go_to_cupy_and_come_from_it(softmax: Program) -> None:
    import cupy  # type: ignore[import-not-found]

    given: Any = cupy.random.standard_normal((50, 70), dtype=cupy.float32)
    (result,) = softmax(given, n=50, m=70)
    for seen in (cupy.from_dlpack(result), cupy.asarray(result)):
        assert seen.data.ptr == result.address
        exponent = cupy.exp(given - given.max(axis=1, keepdims=True))
        assert bool(cupy.allclose(seen, exponent / exponent.sum(axis=1, keepdims=True), atol=1e-5))
