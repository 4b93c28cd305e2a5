"""Every legality rule: a node that breaks it is refused, and the error points at the field."""

from typing import Any

import pytest

from tests.contract.test_inferred_types import I32, METADATA, NEG, U8, B, F, N, binop, node, tracker
from tests.contract.wire import OUT, Type, Wire, around, placeholder, refuse, wire

X: list[Type] = [(F, [3])]
XY: list[Type] = [(F, [3]), (F, [3])]


def kernel(**fields: Any) -> Wire:
    return {**node("kernel", F, ast=NEG, input_vars=[0], output_vars=[OUT], metadata=METADATA), **fields}


def sort(*attributes: Wire) -> Wire:
    return node("custom", F, op_name="sort", in_vars=[0], attributes=list(attributes))


def scatter(dtype: str = F, **fields: Any) -> Wire:
    return node("scatter", dtype, indices_var=0, updates_var=1, axis=0, shape=[9], **fields)


MATRICES: list[Type] = [("float64", [2, 2]), ("float64", [2, 2]), (F, [2, 2])]
CASES: list[tuple[Wire, list[Type], str]] = [
    (binop("add"), [(F, [3]), (F, [1])], "a_var"),
    (binop("add"), [(F, [3]), (F, [1, 3])], "a_var"),
    (binop("add"), [(F, [3]), ("float64", [3])], "a_var"),
    (binop("add", "float64"), XY, "dtype"),
    (binop("sub", B), [(B, [3]), (B, [3])], "op"),
    (binop("idiv"), XY, "op"),
    (binop("fdiv", I32), [(I32, [3]), (I32, [3])], "op"),
    (binop("xor"), XY, "op"),
    (binop("shl"), XY, "op"),
    (binop("shl", I32), [(I32, [3]), (U8, [3])], "a_var"),
    (binop("cmplt", I32), XY, "dtype"),
    (node("unary", I32, op="sin", in_var=0), [(I32, [3])], "op"),
    (node("unary", I32, op="trunc", in_var=0), [(I32, [3])], "op"),
    (node("unary", I32, op="neg", in_var=0), X, "dtype"),
    (node("ternary", F, op="where", a_var=0, b_var=1, c_var=2), [(I32, [3]), *XY], "a_var"),
    (node("ternary", F, op="where", a_var=0, b_var=1, c_var=2), [(B, [3]), (F, [3]), (I32, [3])], "c_var"),
    (node("ternary", F, op="where", a_var=0, b_var=1, c_var=2), [(B, [3]), (F, [4]), (F, [])], "a_var"),
    (node("ternary", F, op="mulacc", a_var=0, b_var=1, c_var=2), [(I32, [3]), *XY], "a_var"),
    (node("reshape", F, in_var=0, new_shape=[4]), X, "new_shape"),
    (node("reshape", F, in_var=0, new_shape=[-1]), X, ""),
    (node("permute", F, in_var=0, axes_permutation=[0, 0]), [(F, [2, 2])], "axes_permutation"),
    (node("permute", F, in_var=0, axes_permutation=[0]), [(F, [2, 2])], "axes_permutation"),
    (node("expand", F, in_var=0, new_target_shape=[6]), X, "new_target_shape"),
    (node("expand", F, in_var=0, new_target_shape=[2, 3]), X, "new_target_shape"),
    (node("pad", F, in_var=0, pad_width=[[0, -1]]), X, "pad_width"),
    (node("pad", F, in_var=0, pad_width=[]), X, "pad_width"),
    (node("shrink", F, in_var=0, limits=[[0, 4]]), X, "limits"),
    (node("shrink", F, in_var=0, limits=[[2, 1]]), X, "limits"),
    (node("shrink", F, in_var=0, limits=[[-1, 1]]), X, "limits"),
    (node("flip", F, in_var=0, axes=[-1]), X, "axes"),
    (node("flip", F, in_var=0, axes=[0, 0]), X, "axes"),
    (node("cat", F, in_vars=[], axis=0), X, "in_vars"),
    (node("cat", F, in_vars=[0], axis=1), X, "axis"),
    (node("cat", F, in_vars=[0], axis=0), [(F, [])], "axis"),
    (node("cat", F, in_vars=[0, 1], axis=0), [(F, [2, 3]), (F, [2, 4])], "in_vars"),
    (node("cat", F, in_vars=[0, 1], axis=0), [(F, [2]), (I32, [2])], "in_vars"),
    (node("reduce_axis", F, in_var=0, reduce_op_kind="sum", axes=[1]), X, "axes"),
    (node("reduce_axis", F, in_var=0, reduce_op_kind="sum", axes=[-1]), X, "axes"),
    (node("view", F, in_var=0, shape_tracker=tracker([3], [2])), X, "shape_tracker/views/0"),
    (node("view", F, in_var=0, shape_tracker=tracker([3], [1], -1)), X, "shape_tracker/views/0"),
    (node("view", F, in_var=0, shape_tracker=tracker([5], [1], -1, [[0, 4]])), X, "shape_tracker/views/0"),
    (node("view", F, in_var=0, shape_tracker=tracker([3], [1, 1])), X, "shape_tracker/views/0/strides"),
    (node("view", F, in_var=0, shape_tracker=tracker([3], [1], 0, [])), X, "shape_tracker/views/0/mask"),
    (node("view", F, in_var=0, shape_tracker={"views": [], "shape": []}), X, "shape_tracker/views"),
    (node("view", F, in_var=0, shape_tracker={**tracker([3], [1]), "shape": [2]}), X, "shape_tracker"),
    (node("valid", F, in_var=0, shape_tracker=tracker([4], [1])), X, "in_var"),
    (node("valid", B, in_var=0, shape_tracker=tracker([3], [1])), X, "dtype"),
    (node("index", F, in_var=0, idx_var=1, valid_var=None), XY, "idx_var"),
    (node("index", F, in_var=0, idx_var=1, valid_var=2), [(F, [3]), (I32, [2]), (B, [])], "valid_var"),
    (node("index", F, in_var=0, idx_var=1, valid_var=2), [(F, [3]), (I32, [2]), (I32, [2])], "valid_var"),
    (node("gep", F, in_var=0, indices=[3]), X, "indices"),
    (node("gep", F, in_var=0, indices=[-1]), X, "indices"),
    (node("gep", F, in_var=0, indices=[]), X, "indices"),
    (node("gep", F, in_var=0, indices=[0]), [(F, [])], "indices"),
    (node("vectorize", F, in_vars=[0]), X, "in_vars"),
    (node("vectorize", F, in_vars=[0, 1]), [(F, [2]), (F, [3])], "in_vars"),
    (node("vectorize", F, in_vars=[0, 1]), [(F, [2]), (I32, [2])], "in_vars"),
    (node("wmma", F, a_var=0, b_var=1, c_var=2, m=2, n=2, k=3), [(F, [2, 2])] * 3, "a_var"),
    (node("wmma", F, a_var=0, b_var=1, c_var=2, m=2, n=2, k=2), MATRICES, "c_var"),
    (node("wmma", F, a_var=0, b_var=1, c_var=2, m=2, n=2, k=2), [(B, [2, 2]), (B, [2, 2]), (F, [2, 2])], "a_var"),
    (node("cast", F, in_var=0, target_dtype=I32), X, "target_dtype"),
    (node("cast", "unit", in_var=0, target_dtype="unit"), X, "target_dtype"),
    (node("bitcast", "float64", in_var=0, target_dtype="float64"), X, "in_var"),
    (node("bitcast", U8, in_var=0, target_dtype=U8), [(F, [])], "in_var"),
    (node("contiguous", I32, in_var=0), X, "dtype"),
    (node("fuse", I32, in_var=0), X, "dtype"),
    (node("unroll", F, loop_var=0, unroll_factor=0), X, "unroll_factor"),
    (node("copy", F, in_var=0, target_device="METAL", clone=False), X, "target_device"),
    (node("noop", I32, in_var=0), X, "dtype"),
    (node("const_scalar", F, value=1e39), [], "value"),
    (node("const_scalar", F, value="infinity"), [], "value"),
    (node("const_scalar", F, value=True), [], "value"),
    (node("const_scalar", I32, value=1.0), [], "value"),
    (node("const_scalar", I32, value=2**31), [], "value"),
    (node("const_scalar", "uint64", value=-1), [], "value"),
    (node("const_scalar", B, value=1), [], "value"),
    (node("const_scalar", "unit", value=0), [], "value"),
    (node("const_scalar", F, value=[1.0]), [], "value"),
    (node("vconst", U8, values=[0, 256]), [], "values"),
    (node("buffer", F, size_in_elements=-1, device="CPU"), [], "size_in_elements"),
    (node("buffer", F, size_in_elements=1, device="CPU:0"), [], "device"),
    (node("buffer", F, size_in_elements=1, device="CUDA:01"), [], "device"),
    (node("buffer", "unit", size_in_elements=1, device="CPU"), [], "dtype"),
    (node("buffer_view", F, buffer_var=0, size=3, offset=1), X, "size"),
    (node("buffer_view", F, buffer_var=0, size=-1, offset=1), X, "size"),
    (node("buffer_view", F, buffer_var=0, size=1, offset=-1), X, "offset"),
    (node("buffer_view", "float64", buffer_var=0, size=2, offset=0), X, "size"),
    (node("define_var", F, sym_var={"name": "n", "min_val": 0, "max_val": 64}), [], "dtype"),
    (node("define_var", U8, sym_var={"name": "m", "min_val": 0, "max_val": 256}), [], "sym_var"),
    (node("define_var", I32, sym_var={"name": "n", "min_val": 0, "max_val": 63}), [], "sym_var"),
    (node("define_var", I32, sym_var={"name": "m", "min_val": 2, "max_val": 1}), [], "sym_var"),
    (node("bind", I32, sym_var=0, value=1), [(I32, [])], "sym_var"),
    (node("unique", F, id=1), [], "dtype"),
    (node("unique", I32, id=2**31), [], "id"),
    (node("device", F, device_name="CPU"), [], "dtype"),
    (node("multi", F, device_vars=[], axis=None, real_mask=[]), X, "device_vars"),
    (node("multi", F, device_vars=[0, 1], axis=None, real_mask=[]), [(F, [3]), (F, [4])], "device_vars"),
    (node("multi", F, device_vars=[0, 1], axis=-1, real_mask=[True, True]), XY, "axis"),
    (node("multi", F, device_vars=[0, 1], axis=0, real_mask=[True]), XY, "real_mask"),
    (node("multi", F, device_vars=[0, 1], axis=0, real_mask=[False, False]), XY, "real_mask"),
    (node("contract", F, in_vars=[0], contraction_axes=[]), X, "in_vars"),
    (node("contract", F, in_vars=[0, 1], contraction_axes=[[0, 0]]), [(F, [3]), (F, [4])], "contraction_axes"),
    (
        node("contract", F, in_vars=[0, 1], contraction_axes=[[0, 0], [0, 1]]),
        [(F, [3]), (F, [3, 3])],
        "contraction_axes",
    ),
    (node("contract", F, in_vars=[0, 1], contraction_axes=[[-1, 0]]), XY, "contraction_axes"),
    (node("threefry", "uint32", ctr_var=0, key_var=1), [("uint32", [2]), ("uint32", [2])], "ctr_var"),
    (node("threefry", I32, ctr_var=0, key_var=1), [(I32, [3]), (I32, [3])], "ctr_var"),
    (node("threefry", I32, ctr_var=0, key_var=1), [(I32, [3, 2]), (I32, [])], "key_var"),
    (node("gather", F, src_var=0, indices_var=1, axis=0), [(F, [3, 3]), (I32, [3])], "indices_var"),
    (node("gather", F, src_var=0, indices_var=1, axis=0), [(F, [3, 3]), (I32, [3, 4])], "indices_var"),
    (node("gather", F, src_var=0, indices_var=1, axis=-1), [(F, [3]), (I32, [3])], "axis"),
    (node("gather", F, src_var=0, indices_var=1, axis=0), XY, "indices_var"),
    (node("gather", F, src_var=0, indices_var=1, axis=0), [(F, []), (I32, [])], "axis"),
    (node("scatter", F, indices_var=0, updates_var=1, axis=0, shape=[9]), [(I32, [3]), (F, [4])], "updates_var"),
    (node("scatter", F, indices_var=0, updates_var=1, axis=0, shape=[9, 1]), [(I32, [3, 2]), (F, [3, 2])], "shape"),
    (scatter(reduction="mean"), [(I32, [3]), (F, [3])], "reduction"),
    (scatter(reduction=None), [(I32, [3]), (F, [3])], "reduction"),
    (scatter("int4", reduction="add"), [(I32, [3]), ("int4", [3])], "reduction"),
    (scatter(init_var=2), [(I32, [3]), (F, [3]), (F, [8])], "init_var"),
    (scatter(init_var=2), [(I32, [3]), (F, [3]), ("float16", [9])], "init_var"),
    (scatter(init_var=7), [(I32, [3]), (F, [3])], "init_var"),
    (node("assign", F, target_var=0, updates=[[1, 1, None]]), XY, "updates/0/1"),
    (node("assign", F, target_var=0, updates=[[1, 0, None]]), [(F, [3]), (F, [])], "updates/0/0"),
    (node("assign", F, target_var=0, updates=[[1, 0, None]]), [(F, [3]), (I32, [3])], "updates/0/0"),
    (node("assign", F, target_var=0, updates=[[1, 0, [1, 4]]]), XY, "updates/0/2"),
    (node("assign", F, target_var=0, updates=[[1, 0, [0, 2]]]), XY, "updates/0/0"),
    (node("assign", F, target_var=0, updates=[[1, 0, [2, 1]]]), XY, "updates/0/2"),
    (kernel(input_vars=[]), X, "input_vars"),
    (kernel(output_vars=[]), X, "output_vars"),
    (kernel(output_vars=[OUT, 7]), X, "output_vars"),
    (kernel(ast={**NEG, "out_var": 7}), X, "output_vars"),
    (kernel(dtype=I32), X, "dtype"),
    (kernel(ast={**NEG, "dtype": I32}), X, "ast/dtype"),
    (kernel(ast=placeholder(OUT, F, [3]), input_vars=[]), X, "ast"),
    (kernel(ast={"node": "sink", "deps": [0], "dtype": "unit"}, output_vars=[OUT, 7]), X, "output_vars"),
    (sort(), X, "attributes"),
    (sort({"name": "axis", "kind": "int", "value": 1}), X, "attributes"),
    (sort({"name": "axis", "kind": "int", "value": "1"}), X, "attributes/0"),
]  # fmt: skip


@pytest.mark.parametrize(("tested", "inputs", "field"), CASES, ids=[f"{case[0]['node']}-{case[2]}" for case in CASES])
def test_a_node_that_breaks_a_rule_is_refused_at_its_field(tested: Wire, inputs: list[Type], field: str) -> None:
    pointer = f"/nodes/{len(inputs)}"
    refuse(around(tested, inputs, N), pointer=f"{pointer}/{field}" if field else pointer)


def test_a_sink_is_unit() -> None:
    sink = {"node": "sink", "deps": [0], "dtype": F}
    refuse(wire([placeholder(0, F, [3]), sink], [0], []), pointer="/nodes/1/dtype")


@pytest.mark.parametrize("value", [0, 10])
def test_a_bind_outside_of_the_bounds_is_refused(value: int) -> None:
    define = {"node": "define_var", "sym_var": {"name": "n", "min_val": 1, "max_val": 9}, "out_var": 1, "dtype": I32}
    bind = {"node": "bind", "sym_var": 1, "value": value, "out_var": 2, "dtype": I32}
    refuse(wire([define, bind], [], [2]), pointer="/nodes/1/value")


def test_two_binds_of_a_symbol_to_different_values_are_refused() -> None:
    define = {"node": "define_var", "sym_var": {"name": "n", "min_val": 1, "max_val": 9}, "out_var": 1, "dtype": I32}
    binds = [{"node": "bind", "sym_var": 1, "value": value, "out_var": value, "dtype": I32} for value in (4, 5)]
    refuse(wire([define, *binds], [], []), pointer="/nodes/2/value")


def test_an_unknown_custom_operation_is_not_supported() -> None:
    custom = node("custom", F, op_name="sorted", in_vars=[0], attributes=[])
    error = refuse(around(custom, X), "graph.unsupported", "/nodes/1/op_name")
    assert "sort" in error.message


@pytest.mark.parametrize("kind", ["reshape", "binop", "cast", "gather"])
def test_unit_carries_no_data(kind: str) -> None:
    reads: dict[str, Wire] = {
        "reshape": node("reshape", "unit", in_var=1, new_shape=[1]),
        "binop": node("binop", "unit", op="add", a_var=1, b_var=1),
        "cast": node("cast", F, in_var=1, target_dtype=F),
        "gather": node("gather", "unit", src_var=1, indices_var=1, axis=0),
    }
    unit: dict[str, Any] = {"node": "const_scalar", "value": None, "out_var": 1, "dtype": "unit"}
    refuse(wire([unit, reads[kind]], [], []))


def test_a_unit_value_is_no_output() -> None:
    refuse(wire([{"node": "unique", "id": 1, "out_var": 1, "dtype": "unit"}], [], [1]), pointer="/output_vars/0")
