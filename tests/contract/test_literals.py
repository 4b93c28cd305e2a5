"""Literals: what JSON may say for a value of each dtype."""

import json
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tensorkiln import reference
from tensorkiln.dtypes import DType
from tensorkiln.errors import InvalidGraphError
from tensorkiln.graph import Graph
from tensorkiln.nodes.literals import ROUNDS_TO_INFINITY, LiteralError, canonical_literal, parse_literal, parse_literals
from tensorkiln.strict_json import with_signed_zeros
from tests.contract.test_inferred_types import node
from tests.contract.wire import OUT, accept, around, wire


@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype.is_integer])
def test_an_integer_dtype_takes_its_whole_range_and_no_more(dtype: DType) -> None:
    for value in (int(dtype.min), int(dtype.max)):
        assert parse_literal(value, dtype) == value
    for value in (int(dtype.min) - 1, int(dtype.max) + 1, 1.0, True, "1", None):
        with pytest.raises(LiteralError):
            parse_literal(value, dtype)


@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype.is_float])
def test_a_float_dtype_takes_finite_numbers_and_three_strings(dtype: DType) -> None:
    assert parse_literal(2, dtype) == 2.0
    assert repr(parse_literal(-0.0, dtype)) == "-0.0"
    assert parse_literal("-inf", dtype) == -math.inf
    assert repr(parse_literal("nan", dtype)) == "nan"
    for value in (math.inf, math.nan, "Infinity", "1", True, None, 10**400):
        with pytest.raises(LiteralError):
            parse_literal(value, dtype)


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32])
def test_a_number_that_rounds_to_infinity_is_outside(dtype: DType) -> None:
    limit = ROUNDS_TO_INFINITY[dtype]
    below = math.nextafter(limit, 0.0)
    with pytest.raises(LiteralError):
        parse_literal(-limit, dtype)
    assert parse_literal(below, dtype) == below
    with np.errstate(over="ignore"):
        assert np.isinf(np.array(limit, dtype.numpy).astype(np.float64))
        if dtype is not DType.BFLOAT16:
            assert np.isfinite(np.array(below, dtype.numpy).astype(np.float64))
    greatest = float(ml_dtypes.finfo(dtype.numpy).max)
    assert parse_literal(greatest, dtype) == greatest


@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype.is_narrow])
def test_a_narrow_dtype_takes_its_finite_range_and_what_it_has_beyond(dtype: DType) -> None:
    for value in (dtype.min, dtype.max, 1):
        assert parse_literal(value, dtype) == value
    for value in (dtype.max + 1, dtype.min - 1, True, "1", None):
        with pytest.raises(LiteralError):
            parse_literal(value, dtype)
    has = {DType.FLOAT8_E5M2: {"inf", "-inf", "nan"}, DType.FLOAT4_E2M1FN: set[str]()}
    for spelled in ("inf", "-inf", "nan"):
        if dtype.wide.is_float and spelled in has.get(dtype, {"nan"}):
            assert str(parse_literal(spelled, dtype)) == spelled
        else:
            with pytest.raises(LiteralError):
                parse_literal(spelled, dtype)
    assert canonical_literal(1, dtype) == 1
    assert type(canonical_literal(1, dtype)) is (float if dtype.wide.is_float else int)


def test_bool_takes_bools_and_unit_takes_null() -> None:
    assert parse_literal(True, DType.BOOL) is True
    assert parse_literal(None, DType.UNIT) is None
    for dtype in (DType.BOOL, DType.UNIT):
        with pytest.raises(LiteralError):
            parse_literal(0, dtype)


def test_a_bad_value_of_a_table_is_named_by_its_position() -> None:
    with pytest.raises(LiteralError, match="value 2"):
        parse_literals([0, 1, 2.5], DType.INT8)


def test_integers_beyond_2_to_the_53_arrive_exactly() -> None:
    for dtype, value in (("int64", -(2**63)), ("int64", 2**53 + 1), ("uint64", 2**64 - 1)):
        graph = accept(around(node("const_scalar", dtype, value=value), []))
        assert getattr(graph.nodes[0], "value") == value  # noqa: B009 - a node of the union need not have a value
        assert str(value) in graph.to_json()


def test_one_float_has_one_spelling() -> None:
    assert repr(canonical_literal(1, DType.FLOAT32)) == "1.0"
    assert canonical_literal("nan", DType.FLOAT16) == "nan"
    assert repr(canonical_literal(1, DType.INT8)) == "1"


def test_a_table_takes_the_shape_of_its_metadata_only_if_it_fills_it() -> None:
    table = node("vconst", "int8", values=[1, 2, 3, 4])
    assert accept(around(table, [], stated=("int8", [2, 2]))).types[OUT].shape == (2, 2)


@pytest.mark.parametrize("encode", [str, str.encode, lambda text: bytearray(text.encode())])
@pytest.mark.parametrize(("spelled", "sign"), [("-0", -1.0), ("-0.0", -1.0), ("-0e7", -1.0), ("0", 1.0), ("1e-0", 1.0)])
def test_zero_has_the_sign_that_is_written(spelled: str, sign: float, encode: Any) -> None:
    constant = {"node": "const_scalar", "value": 7, "out_var": 0, "dtype": "float32"}
    text = json.dumps(wire([constant], [], [0], metadata={0: ("float32", [])}))
    graph = Graph.model_validate_json(encode(text.replace("7", spelled)))
    assert math.copysign(1.0, reference.evaluate(graph)[0]) == sign


def test_an_integer_has_no_sign_at_zero_and_a_string_is_none_of_this() -> None:
    assert with_signed_zeros(r'{"-0": "a\"-0", "b": [-0, -0 ,-01, -0.5, 1e-0, -0]}') == (
        r'{"-0": "a\"-0", "b": [-0.0, -0.0 ,-01, -0.5, 1e-0, -0.0]}'
    )
    with pytest.raises(InvalidGraphError):
        Graph.model_validate_json('{"schema": 1, "nodes": [], "input_vars": [-0], "output_vars": []}')
