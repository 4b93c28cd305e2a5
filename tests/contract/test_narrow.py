"""What is done with narrow dtypes, and what is refused with the dtype to cast to."""

from __future__ import annotations

from typing import Any

import pytest

from tensorkiln.dtypes import DType
from tensorkiln.errors import InvalidGraphError
from tensorkiln.graph import Graph
from tests.contract.test_inferred_types import node
from tests.contract.wire import OUT, Type, Wire, accept, around

NARROW = [dtype for dtype in DType if dtype.is_narrow]


def refusal(graph: Wire) -> str:
    with pytest.raises(InvalidGraphError) as refused:
        Graph.model_validate(graph)
    assert refused.value.pointers
    return str(refused.value)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("binop", {"op": "add", "a_var": 0, "b_var": 1}),
        ("binop", {"op": "max", "a_var": 0, "b_var": 1}),
        ("binop", {"op": "and", "a_var": 0, "b_var": 1}),
        ("unary", {"op": "neg", "in_var": 0}),
        ("ternary", {"op": "mulacc", "a_var": 0, "b_var": 1, "c_var": 1}),
        ("reduce_axis", {"in_var": 0, "reduce_op_kind": "max", "axes": [0]}),
        ("contract", {"in_vars": [0, 1], "contraction_axes": [[1, 0]]}),
        ("wmma", {"a_var": 0, "b_var": 1, "c_var": 1, "m": 2, "n": 2, "k": 2}),
    ],
)
def test_arithmetic_nodes_refuse_narrow_types_and_advise_a_cast(
    dtype: DType, kind: str, fields: dict[str, Any]
) -> None:
    operands: list[Type] = [(dtype, [2, 2]), (dtype, [2, 2])]
    message = refusal(around(node(kind, dtype, **fields), operands))
    assert f"cast it to {dtype.wide}" in message


@pytest.mark.parametrize("dtype", NARROW)
def test_a_comparison_and_an_index_are_refused(dtype: DType) -> None:
    operands: list[Type] = [(dtype, [2]), (dtype, [2])]
    assert "cast it" in refusal(around(node("binop", "bool", op="cmplt", a_var=0, b_var=1), operands))
    assert "an index is an integer" in refusal(around(node("index", dtype, in_var=0, idx_var=1), operands))


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(
    ("kind", "fields", "shape"),
    [
        ("flip", {"in_var": 0, "axes": [0]}, ["n", 2]),
        ("pad", {"in_var": 0, "pad_width": [[0, "n"], [1, 0]]}, [{"op": "mul", "args": [2, "n"]}, 3]),
        ("cast", {"in_var": 0}, ["n", 2]),
        ("bitcast", {"in_var": 0}, ["n", 2]),
        ("contiguous", {"in_var": 0}, ["n", 2]),
    ],
)
def test_movement_nodes_take_narrow_types(dtype: DType, kind: str, fields: dict[str, Any], shape: list[Any]) -> None:
    result = "uint8" if kind == "bitcast" else "float32" if kind == "cast" else dtype
    more = {"target_dtype": result} if "cast" in kind else {}
    graph = accept(around(node(kind, result, **fields, **more), [(dtype, ["n", 2])], {"n": (1, 9)}))
    assert graph.types[OUT].dtype == result
    assert len(graph.types[OUT].shape) == len(shape)


@pytest.mark.parametrize("dtype", NARROW)
def test_bytes_are_read_as_8_bits_only(dtype: DType) -> None:
    wide = around(node("bitcast", "uint16", in_var=0, target_dtype="uint16"), [(dtype, [4])])
    view = around(node("buffer_view", "uint8", buffer_var=0, size=4, offset=0), [(dtype, [4])])
    if dtype.bits == 8:
        assert accept(wide).types[OUT].shape == (2,)
        assert accept(view).types[OUT].shape == (4,)
    else:
        for graph in (wide, view):
            assert f"{dtype} has {dtype.bits} bits (cast)" in refusal(graph)


def test_the_wide_dtype_holds_every_value() -> None:
    for dtype in NARROW:
        codes = bytes(range(1 << dtype.bits))
        assert not dtype.wide.is_narrow
        assert dtype.wide.wide is dtype.wide
        assert (dtype.itemsize, len(codes)) == (1, 1 << dtype.bits)
        assert not any((dtype.is_float, dtype.is_integer, dtype.is_bool, dtype.is_half))
        assert dtype.wide.min <= dtype.min < dtype.max <= dtype.wide.max
