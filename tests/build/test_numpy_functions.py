from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorkiln.build import Tensor
from tensorkiln.build.mistakes import OperandError
from tensorkiln.build.numpy_functions import FUNCTIONS, UFUNCS
from tests.build.conftest import Compute

FLOATS = np.array([[1.5, -2.25, 0.5, 4.0], [3.0, -0.75, 2.5, -1.0], [0.25, 6.0, -3.5, 1.0]], np.float32)
POSITIVE = np.abs(FLOATS) + np.float32(0.5)
OTHERS = np.roll(FLOATS, 1) + np.float32(0.125)
NUMBERS = np.array([[1, -2, 3, 4], [7, 5, -6, 0]], np.int32)
AMOUNTS = np.array([[1, 2, 3, 4], [3, 2, 1, 0]], np.int32)
BOOLS = np.array([[True, False, True, False], [True, True, False, False]])

OF_BOOLS = {np.logical_and, np.logical_or, np.logical_xor, np.logical_not}
OF_NUMBERS = {np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift, np.right_shift}
OF_POSITIVE = {np.sqrt, np.log, np.log2, np.log10, np.log1p, np.power}

CALLS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray[Any, Any], ...]]] = {
    "sum": (lambda x: np.sum(x, 1), (FLOATS,)),
    "sum of bools in a dtype": (lambda x: np.sum(x, axis=0, dtype=np.int32), (BOOLS,)),
    "sum, kept": (lambda x: np.sum(a=x, axis=0, keepdims=True), (FLOATS,)),
    "prod": (lambda x: np.prod(x, axis=1), (FLOATS,)),
    "max": (lambda x: np.max(x, axis=1), (FLOATS,)),
    "min": (lambda x: np.min(x, axis=-1, keepdims=True), (NUMBERS,)),
    "amax": (lambda x: np.amax(x), (FLOATS,)),
    "amin": (lambda x: np.amin(x), (FLOATS,)),
    "any": (lambda x: np.any(x, axis=0), (BOOLS,)),
    "all": (lambda x: np.all(x, axis=1), (BOOLS,)),
    "mean": (lambda x: np.mean(x, axis=1), (FLOATS,)),
    "var": (lambda x: np.var(x, axis=1), (FLOATS,)),
    "var, less one": (lambda x: np.var(x, axis=0, ddof=1), (FLOATS,)),
    "std": (lambda x: np.std(x, axis=0, keepdims=True), (FLOATS,)),
    "argmax": (lambda x: np.argmax(x, axis=1), (FLOATS,)),
    "argmin": (lambda x: np.argmin(x, axis=0), (FLOATS,)),
    "reshape": (lambda x: np.reshape(x, (2, -1)), (FLOATS,)),
    "transpose": (lambda x: np.transpose(x), (FLOATS,)),
    "transpose, ordered": (lambda x: np.transpose(x.reshape(3, 2, 2), (2, 0, 1)), (FLOATS,)),
    "T": (lambda x: x.reshape(3, 2, 2).T, (FLOATS,)),
    "swapaxes": (lambda x: np.swapaxes(x, 0, 1), (FLOATS,)),
    "moveaxis": (lambda x: np.moveaxis(x, 0, 1), (FLOATS,)),
    "expand_dims": (lambda x: np.expand_dims(x, 1), (FLOATS,)),
    "squeeze": (lambda x: np.squeeze(x.reshape(3, 1, 4)), (FLOATS,)),
    "broadcast_to": (lambda x: np.broadcast_to(x, (2, 3, 4)), (FLOATS,)),
    "flip": (lambda x: np.flip(x, 1), (FLOATS,)),
    "concatenate": (lambda x, y: np.concatenate([x, y], axis=1), (FLOATS, OTHERS)),
    "concatenate, flat": (lambda x, y: np.concatenate([x, y], axis=None), (FLOATS, OTHERS)),
    "stack": (lambda x, y: np.stack([x, y], 1), (FLOATS, OTHERS)),
    "where": (lambda c, x, y: np.where(c, x, y), (BOOLS, NUMBERS, AMOUNTS)),
    "clip": (lambda x: np.clip(x, -1.0, 2.0), (FLOATS,)),
    "clip, below": (lambda x: np.clip(x, a_min=None, a_max=2.0), (FLOATS,)),
    "round": (lambda x: np.round(x), (FLOATS,)),
    "einsum": (lambda x, y: np.einsum("ij,kj->ik", x, y), (FLOATS, OTHERS)),
    "dot": (lambda x, y: np.dot(x, y.T), (FLOATS, OTHERS)),
    "divmod": (lambda x, y: sum(divmod(x, y)), (FLOATS, OTHERS)),
    "round of Python": (lambda x: round(x) if isinstance(x, Tensor) else np.rint(x), (FLOATS,)),
}


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_a_ufunc_of_tensors_is_that_of_arrays(compute: Compute, ufunc: np.ufunc) -> None:
    arrays = (BOOLS, BOOLS[::-1]) if ufunc in OF_BOOLS else (NUMBERS, AMOUNTS) if ufunc in OF_NUMBERS else None
    arrays = arrays or ((POSITIVE, OTHERS) if ufunc in OF_POSITIVE else (FLOATS, OTHERS))
    if ufunc is np.matmul:
        arrays = (FLOATS, np.ascontiguousarray(OTHERS.T))
    given = tuple(np.ascontiguousarray(each) for each in arrays[: ufunc.nin])
    np.testing.assert_allclose(compute(lambda *tensors: ufunc(*tensors), *given), ufunc(*given), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CALLS)
def test_a_function_of_numpy_writes_what_it_gives_of_arrays(compute: Compute, name: str) -> None:
    function, arrays = CALLS[name]
    found, expected = compute(function, *arrays), np.asarray(function(*arrays))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_each_function_is_tried() -> None:
    named = {name.partition(",")[0].partition(" ")[0] for name in CALLS}
    assert {function.__name__ for function in FUNCTIONS} - named <= {"shape", "ndim"}


def test_shapes_are_asked_of_a_tensor_by_numpy(compute: Compute) -> None:
    def shaped(x: Tensor) -> Tensor:
        assert (np.shape(x), np.ndim(x), x.ndim, len(x)) == ((3, 4), 2, 2, 3)
        return x

    compute(shaped, FLOATS)


def test_scalars_of_numpy_are_operands_from_the_left(compute: Compute) -> None:
    found = compute(lambda x: np.float32(2) * x - np.float32(1), FLOATS)
    np.testing.assert_array_equal(found, np.float32(2) * FLOATS - np.float32(1))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.sum(x, 0, None, x),
        lambda x: np.add(x, x, out=x),
        lambda x: np.add(x, x, where=x > 0),
        lambda x: np.add.outer(x, x),
        lambda x: np.arctan2(x, x),
        lambda x: np.sort(x),
        lambda x: np.reshape(x, (4, 3), order="F"),
        lambda x: np.dot(x.reshape(1, 3, 4), x),
        lambda x: np.ones((3, 4), np.float32) + x,
    ],
)
def test_numpy_functions_without_an_equivalent_are_refused(compute: Compute, call: Callable[[Any], Any]) -> None:
    with pytest.raises(OperandError):
        compute(call, FLOATS)
