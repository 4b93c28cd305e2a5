from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dialect.from_graph import from_graph
from dialect.kiln import ConstScalarOp, VconstOp
from dialect.mlir import ir
from dialect.module import kiln_ops
from tensorkiln.dtypes import DType
from tests.dialect.wire import Node, graph_of

VALUES: dict[str, list[Any]] = {
    "float16": [0.1, -0.0, 65504, 5.9e-8, "inf", "-inf", "nan", 2049],
    "bfloat16": [0.1, -0.0, 1 + 2**-8 + 2**-40, 3e38, "inf", "nan", 257],
    "float32": [0.1, -0.0, 1e-45, 16777217, "-inf", "nan"],
    "float64": [0.1, -0.0, 5e-324, 1.7976931348623157e308, "inf", "nan", 2**53 + 1],
    "int8": [-128, 127],
    "int16": [-32768, 32767],
    "int32": [-(2**31), 2**31 - 1],
    "int64": [-(2**63), 2**63 - 1],
    "uint8": [0, 255],
    "uint16": [0, 65535],
    "uint32": [0, 2**32 - 1],
    "uint64": [0, 2**63, 2**64 - 1],
    "bool": [True, False],
    "float8_e4m3fn": [0.1, -0.0, 448, 1.0625 + 2**-40, "nan"],
    "float8_e5m2fnuz": [0.1, -0.0, -57344, 1.125 + 2**-40, "nan"],
    "float8_e5m2": [3, "inf", "-inf", "nan"],
    "float4_e2m1fn": [0.1, -0.0, -6, 2.5],
    "int4": [-8, 7],
    "uint4": [0, 15],
    "int2": [-2, 1],
    "uint2": [0, 3],
}


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float):
        return (math.isnan(one) and math.isnan(other)) or (one, math.copysign(1, one)) == (
            other,
            math.copysign(1, other),
        )
    return type(one) is type(other) and one == other


ROUNDED: dict[str, list[Any]] = {
    "float8_e4m3fn": [0.1015625, -0.0, 448.0, 1.125, math.nan],
    "float8_e5m2fnuz": [0.09375, 0.0, -57344.0, 1.25, math.nan],
    "float8_e5m2": [3.0, math.inf, -math.inf, math.nan],
    "float4_e2m1fn": [0.0, -0.0, -6.0, 2.0],
}


def rounded(values: list[Any], dtype: str) -> list[Any]:
    """The values as their dtype has them; some tell rounding once from rounding by way of float32."""
    if dtype in ROUNDED:
        return ROUNDED[dtype]
    if dtype == "bfloat16":
        return [0.10009765625, -0.0, 1.0078125, math.ldexp(226, 120), math.inf, math.nan, 256.0]
    if not DType(dtype).is_float:
        return values
    return [DType(dtype).numpy.type(float(value)).item() for value in values]


def constant(var: int, value: Any, dtype: str) -> Node:
    return {"node": "const_scalar", "value": value, "dtype": dtype, "out_var": var}


@pytest.mark.parametrize("dtype", VALUES)
def test_scalars_are_rounded_once_to_their_dtype(dtype: str, context: ir.Context) -> None:
    values = VALUES[dtype]
    graph = graph_of([constant(var, value, dtype) for var, value in enumerate(values)], range(len(values)))
    module = from_graph(graph, context)
    ops = [op for op in kiln_ops(module.operation) if isinstance(op, ConstScalarOp)]
    assert all(same(op.value, expected) for op, expected in zip(ops, rounded(values, dtype), strict=True))


@pytest.mark.parametrize("dtype", VALUES)
def test_tables_are_rounded_once_to_their_dtype(dtype: str, context: ir.Context) -> None:
    values = VALUES[dtype]
    graph = graph_of([{"node": "vconst", "values": values, "dtype": dtype, "out_var": 0}], [0])
    module = from_graph(graph, context)
    (op,) = kiln_ops(module.operation)
    assert isinstance(op, VconstOp)
    assert op.array.dtype == DType(dtype).numpy
    elements = op.array.astype(np.float64 if DType(dtype).wide.is_float else DType(dtype).wide.numpy).tolist()
    assert all(same(*pair) for pair in zip(elements, rounded(values, dtype), strict=True))


@pytest.mark.parametrize(("values", "shape"), [([], [0]), ([], [2, 0]), ([3], []), ([True] * 9, [3, 3])])
def test_a_table_may_be_empty_or_of_any_rank(values: list[Any], shape: list[int], context: ir.Context) -> None:
    dtype = "bool" if True in values else "bfloat16"
    node = {"node": "vconst", "values": values, "dtype": dtype, "out_var": 0}
    module = from_graph(graph_of([node], [0], shapes={0: (dtype, shape)}), context)
    (op,) = kiln_ops(module.operation)
    assert isinstance(op, VconstOp)
    assert op.array.shape == tuple(shape)
    assert op.array.ravel().tolist() == values


def test_equal_numbers_that_are_not_the_same_stay_apart(context: ir.Context) -> None:
    nodes = [
        constant(0, 0.0, "float32"),
        constant(1, -0.0, "float32"),
        constant(2, 1, "int32"),
        constant(3, True, "bool"),
    ]
    module = from_graph(graph_of(nodes, [0, 1, 2, 3]), context)
    values = [op.value for op in kiln_ops(module.operation) if isinstance(op, ConstScalarOp)]
    assert [repr(value) for value in values] == ["0.0", "-0.0", "1", "True"]


def test_a_constant_of_unit_has_no_value(context: ir.Context) -> None:
    module = from_graph(graph_of([constant(0, None, "unit"), constant(1, 1, "int8")], [1]), context)
    first, _ = kiln_ops(module.operation)
    assert isinstance(first, ConstScalarOp)
    assert first.value is None
