from __future__ import annotations

import gc
import weakref

import pytest

from dialect.kiln import new_context
from dialect.mlir import ir
from dialect.types import element_type, tensor_type, type_of
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, floordiv, maximum, mod, mul, symbol
from tensorkiln.types import TensorType

N, M = symbol("n"), symbol("s0.x")
SHAPES: tuple[tuple[Dim, ...], ...] = (
    (),
    (0,),
    (2, 3),
    (1 << 48,),
    (N,),
    (4, N * 2 + 1),
    (floordiv(N, 4), mod(mul(N, M), 3), maximum(N, M, 7)),
)


@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_tensor_type_survives_the_way_through_mlir(dtype: DType, shape: tuple[Dim, ...], context: ir.Context) -> None:
    tensor = TensorType(dtype, shape)
    assert type_of(tensor_type(tensor)) == tensor
    assert type_of(ir.Type.parse(str(tensor_type(tensor)))) == tensor


@pytest.mark.parametrize(
    ("dtype", "element"),
    [
        *(("bfloat16", "bf16"), ("int8", "i8"), ("uint8", "ui8"), ("uint64", "ui64"), ("bool", "i1"), ("unit", "i0")),
        *(("float8_e4m3fn", "f8E4M3FN"), ("float4_e2m1fn", "f4E2M1FN"), ("int4", "i4"), ("uint2", "ui2")),
    ],
)
def test_signedness_is_in_the_element_type(dtype: str, element: str, context: ir.Context) -> None:
    assert str(element_type(DType(dtype))) == element


def test_only_a_symbolic_type_has_an_encoding(context: ir.Context) -> None:
    assert str(tensor_type(TensorType(DType.FLOAT32, (4, 8)))) == "tensor<4x8xf32>"
    assert str(tensor_type(TensorType(DType.FLOAT32, (N * 2, 4)))) == 'tensor<?x4xf32, ["2*n", "4"]>'


def test_the_device_is_no_part_of_the_type(context: ir.Context) -> None:
    on_device = tensor_type(TensorType(DType.FLOAT32, (4,), "CUDA"))
    assert on_device == tensor_type(TensorType(DType.FLOAT32, (4,)))
    assert type_of(on_device).device is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("memref<4xf32>", "not a ranked tensor"),
        ("tensor<*xf32>", "not a ranked tensor"),
        ("tensor<4xi7>", "elements of type i7"),
        ("tensor<4xsi8>", "elements of type si8"),
        ("tensor<?xf32>", "no encoding"),
        ('tensor<?x4xf32, ["n"]>', "one text per dim"),
        ('tensor<?xf32, "n">', "one text per dim"),
        ('tensor<?xf32, ["n +"]>', "not the text of a dimension"),
        ('tensor<?x4xf32, ["n", "5"]>', "says 5"),
        ('tensor<?xf32, ["5"]>', "says 5"),
        ("tensor<?xf32, [5]>", "one text per dim"),
    ],
)
def test_a_type_that_says_no_tensor_is_refused(text: str, reason: str, context: ir.Context) -> None:
    with pytest.raises(TypeError, match=reason):
        type_of(ir.Type.parse(text))


def test_remembered_types_do_not_keep_their_context_alive() -> None:
    context = new_context()
    with context:
        type_of(tensor_type(TensorType(DType.FLOAT32, (4,))))
    gone = weakref.ref(context)
    del context
    gc.collect()
    assert gone() is None


def test_two_contexts_do_not_share_what_they_remember() -> None:
    tensors = [TensorType(DType.FLOAT32, (4,)), TensorType(DType.INT8, (N, 2))]
    for _ in range(20):
        for tensor in tensors:
            with new_context():
                assert type_of(tensor_type(tensor)) == tensor
