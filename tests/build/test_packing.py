"""Elements of less than 8 bits packed in bytes, and casts that saturate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import helper, numpy_helper

from tensorkiln.build import Builder, pack, pack_array, unpack
from tensorkiln.dtypes import DType
from tensorkiln.errors import InvalidGraphError
from tensorkiln.expr import ceildiv

if TYPE_CHECKING:
    from tests.build.conftest import Compute

PACKED = [dtype for dtype in DType if dtype.is_narrow and dtype.bits < 8]
FLOATS = [dtype for dtype in DType if dtype.is_narrow and dtype.wide.is_float]


def elements(dtype: DType, *shape: int) -> np.ndarray:
    count = int(np.prod(shape))
    return (np.arange(count, dtype=np.uint8) % (1 << dtype.bits)).view(dtype.numpy)[::-1].reshape(shape)


@pytest.mark.parametrize("dtype", PACKED)
@pytest.mark.parametrize("shape", [(3, 5), (1,), (4, 4), (0, 3), ()])
def test_elements_are_packed_and_unpacked(compute: Compute, dtype: DType, shape: tuple[int, ...]) -> None:
    x = elements(dtype, *shape)
    packed = compute(pack, x)
    assert packed.tobytes() == pack_array(x).tobytes()
    assert packed.size == -(-x.size * dtype.bits // 8)
    back = compute(lambda packed: unpack(packed, dtype, shape), packed)
    assert back.tobytes() == np.ascontiguousarray(x).tobytes()


@pytest.mark.parametrize("dtype", PACKED)
def test_the_layout_is_that_of_onnx(dtype: DType) -> None:
    x = elements(dtype, 3, 5)
    assert pack_array(x).tobytes() == numpy_helper.from_array(x).raw_data
    assert helper.np_dtype_to_tensor_dtype(x.dtype) != 0


@pytest.mark.parametrize("dtype", PACKED)
def test_a_symbolic_number_of_elements_is_unpacked(compute: Compute, dtype: DType) -> None:
    x = elements(dtype, 7, 3)
    same = compute(lambda x: unpack(pack(x), dtype, x.shape), x, shapes=[("n", 3)])
    assert same.tobytes() == x.tobytes()


def test_arrays_other_than_packed_bytes_are_refused() -> None:
    b = Builder()
    n = b.symbol("n", 1, 9)
    with pytest.raises(InvalidGraphError, match="15 elements of int4 are packed in 8 bytes, not 7"):
        unpack(b.input("uint8", (7,)), "int4", (3, 5))
    with pytest.raises(InvalidGraphError, match="bytes of uint8, not int8"):
        unpack(b.input("int8", (8,)), "int4", (3, 5))
    with pytest.raises(InvalidGraphError, match="float8_e5m2 fills whole bytes"):
        unpack(b.input("uint8", (8,)), "float8_e5m2", (8,))
    with pytest.raises(InvalidGraphError, match="int8 fills whole bytes"):
        pack(b.input("int8", (8,)))
    with pytest.raises(ValueError, match="float32 fills whole bytes"):
        pack_array(np.zeros(3, np.float32))
    assert unpack(b.input("uint8", (ceildiv(n * 3, 2),)), "int4", (n, 3)).shape == (n, 3)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64", "int32"])
def test_a_saturating_cast_stays_finite(compute: Compute, dtype: DType, source: str) -> None:
    greatest = float(dtype.max)
    numbers = [0.0, 1.0, greatest, greatest + 1, 2 * greatest, 65504.0, -3 * greatest]
    numbers = [number for number in numbers if source != "float16" or abs(number) <= 65504]
    finite = np.array(numbers).astype(DType(source).numpy)
    kept = compute(lambda x: x.cast(dtype, saturate=True), finite).astype(np.float64)
    assert np.isfinite(kept).all()
    assert (np.abs(kept[2:]) == greatest).all()
    if source != "int32":
        special = np.array([np.inf, -np.inf, np.nan]).astype(DType(source).numpy)
        above, below, nan = compute(lambda x: x.cast(dtype, saturate=True), special).astype(np.float64)
        assert (above, below) == (greatest, -greatest)
        assert nan == 0 if dtype is DType.FLOAT4_E2M1FN else np.isnan(nan)


def test_a_cast_that_does_not_saturate_tells_what_is_beyond(compute: Compute) -> None:
    x = np.array([1e6, -1e6], np.float32)
    assert np.isnan(compute(lambda x: x.cast("float8_e4m3fn"), x).astype(np.float32)).all()
    assert compute(lambda x: x.cast("float8_e5m2"), x).astype(np.float32).tolist() == [np.inf, -np.inf]
    assert compute(lambda x: x.cast("float4_e2m1fn"), x).astype(np.float32).tolist() == [6, -6]


def test_arithmetic_is_refused_where_it_is_written() -> None:
    b = Builder()
    x = b.input("float8_e4m3fn", (3,))
    b.output(x + x)
    with pytest.raises(InvalidGraphError, match="cast it to float32"):
        b.graph()
    with pytest.raises(InvalidGraphError, match="cast"):
        x.sum()
