"""Every node kind: the type that inference gives it."""

from typing import Any

import pytest

from tensorkiln.expr import from_wire
from tensorkiln.nodes import NODE_KINDS
from tests.contract.wire import OUT, Type, Wire, accept, around, placeholder, wire

F, I32, U8, B = "float32", "int32", "uint8", "bool"
N = {"n": (0, 64)}


def node(kind: str, dtype: str, **fields: Any) -> Wire:
    return {"node": kind, **fields, "out_var": OUT, "dtype": dtype}


def binop(op: str, dtype: str = F) -> Wire:
    return node("binop", dtype, op=op, a_var=0, b_var=1)


def tracker(shape: list[Any], strides: list[Any], offset: Any = 0, mask: Any = None) -> Wire:
    return {"views": [{"shape": shape, "strides": strides, "offset": offset, "mask": mask}], "shape": shape}


def expr(op: str, *args: Any) -> Wire:
    return {"op": op, "args": list(args)}


METADATA = {"name": "k", "local_dims": 1, "upcasted": 0, "dont_use_locals": False}
NEG = node("unary", F, op="neg", in_var=0)

CASES: list[tuple[Wire, list[Type], Type]] = [
    (binop("add"), [(F, [2, "n"]), (F, [2, "n"])], (F, [2, "n"])),
    (binop("add"), [(F, []), (F, [2, "n"])], (F, [2, "n"])),
    (binop("add"), [(F, [3]), (F, [])], (F, [3])),
    (binop("add", B), [(B, [3]), (B, [3])], (B, [3])),
    (binop("cmplt", B), [(F, [3]), (F, [3])], (B, [3])),
    (binop("cmpne", U8), [(I32, [3]), (I32, [3])], (U8, [3])),
    (binop("shl", "int64"), [("int64", [3]), ("uint32", [3])], ("int64", [3])),
    (binop("pow", I32), [(I32, [3]), (I32, [])], (I32, [3])),
    (node("unary", "bfloat16", op="exp2", in_var=0), [("bfloat16", [0])], ("bfloat16", [0])),
    (node("unary", B, op="neg", in_var=0), [(B, [])], (B, [])),
    (node("ternary", F, op="where", a_var=0, b_var=1, c_var=2), [(U8, [4]), (F, []), (F, [])], (F, [4])),
    (node("ternary", F, op="where", a_var=0, b_var=1, c_var=2), [(B, []), (F, []), (F, [4])], (F, [4])),
    (node("ternary", I32, op="mulacc", a_var=0, b_var=1, c_var=2), [(I32, [4]), (I32, [4]), (I32, [])], (I32, [4])),
    (node("reshape", F, in_var=0, new_shape=[expr("mul", "n", 6)]), [(F, [2, "n", 3])], (F, [expr("mul", "n", 6)])),
    (node("reshape", F, in_var=0, new_shape=[0, 7]), [(F, [3, 0])], (F, [0, 7])),
    (node("permute", F, in_var=0, axes_permutation=[2, 0, 1]), [(F, [2, 3, "n"])], (F, ["n", 2, 3])),
    (node("expand", F, in_var=0, new_target_shape=[5, "n"]), [(F, [1, "n"])], (F, [5, "n"])),
    (node("pad", F, in_var=0, pad_width=[[1, 2], [0, "n"]]), [(F, [3, "n"])], (F, [6, expr("mul", 2, "n")])),
    (node("shrink", F, in_var=0, limits=[[1, 3], [0, "n"]]), [(F, [3, "n"])], (F, [2, "n"])),
    (node("flip", F, in_var=0, axes=[1]), [(F, [3, "n"])], (F, [3, "n"])),
    (node("cat", F, in_vars=[0, 1, 0], axis=-1), [(F, [2, "n"]), (F, [2, 3])], (F, [2, expr("add", "n", "n", 3)])),
    (node("reduce_axis", F, in_var=0, reduce_op_kind="sum", axes=[0]), [(F, [2, "n"])], (F, [1, "n"])),
    (node("reduce_axis", B, in_var=0, reduce_op_kind="prod", axes=[]), [(B, [2])], (B, [2])),
    (node("view", F, in_var=0, shape_tracker=tracker([3, 2], [-1, 0], 2)), [(F, [3])], (F, [3, 2])),
    (node("valid", F, in_var=0, shape_tracker=tracker([3], [1], 0, [[1, 2]])), [(F, [3])], (F, [3])),
    (node("valid", B, in_var=0, shape_tracker=tracker([3], [1], 9, [[1, 2]])), [(B, [])], (B, [3])),
    (node("index", F, in_var=0, idx_var=1, valid_var=2), [(F, [9]), ("uint16", [2, 2]), (B, [2, 2])], (F, [2, 2])),
    (node("index", F, in_var=0, idx_var=1, valid_var=None), [(F, [3, 3]), (I32, [])], (F, [])),
    (node("gep", F, in_var=0, indices=[3]), [(F, [2, 4])], (F, [2])),
    (node("gep", F, in_var=0, indices=[3, 3, 0]), [(F, [2, 4])], (F, [2, 3])),
    (node("vectorize", F, in_vars=[0, 1]), [(F, ["n"]), (F, ["n"])], (F, ["n", 2])),
    (
        node("wmma", F, a_var=0, b_var=1, c_var=2, m=2, n=3, k=4),
        [("float16", [2, 4]), ("float16", [4, 3]), (F, [2, 3])],
        (F, [2, 3]),
    ),
    (node("cast", "uint64", in_var=0, target_dtype="uint64"), [(B, [3])], ("uint64", [3])),
    (node("bitcast", I32, in_var=0, target_dtype=I32), [(F, [])], (I32, [])),
    (node("bitcast", U8, in_var=0, target_dtype=U8), [(F, ["n"])], (U8, [expr("mul", 4, "n")])),
    (node("bitcast", "float64", in_var=0, target_dtype="float64"), [(F, [2, 6])], ("float64", [2, 3])),
    (node("contiguous", F, in_var=0), [(F, [3])], (F, [3])),
    (node("detach", F, in_var=0), [(F, [3])], (F, [3])),
    (node("contiguous_backward", F, in_var=0), [(F, [3])], (F, [3])),
    (node("fuse", F, in_var=0), [(F, [3])], (F, [3])),
    (node("unroll", F, loop_var=0, unroll_factor=4), [(F, [3])], (F, [3])),
    (node("copy", F, in_var=0, target_device="cuda:1", clone=True), [(F, [3])], (F, [3])),
    (node("noop", F, in_var=0), [(F, [3])], (F, [3])),
    (node("noop", F, in_var=None), [], (F, [])),
    (node("const_scalar", F, value="-inf"), [], (F, [])),
    (node("const_scalar", "uint64", value=2**64 - 1), [], ("uint64", [])),
    (node("vconst", F, values=[1, 0.5, "nan"]), [], (F, [3])),
    (node("buffer", F, size_in_elements="n", device="CPU"), [], (F, ["n"])),
    (node("define_var", I32, sym_var={"name": "n", "min_val": 0, "max_val": 64}), [], (I32, [])),
    (node("unique", I32, id=7), [], (I32, [])),
    (node("device", I32, device_name="Rocm:12"), [], (I32, [])),
    (node("multi", F, device_vars=[0, 1], axis=None, real_mask=[]), [(F, [3]), (F, [3])], (F, [3])),
    (node("multi", F, device_vars=[0, 1], axis=0, real_mask=[True, True]), [(F, [3]), (F, [4])], (F, [7])),
    (node("multi", F, device_vars=[0, 1], axis=0, real_mask=[True, False]), [(F, [3]), (F, [4])], (F, [3])),
    (node("contract", F, in_vars=[0, 1], contraction_axes=[[1, 0]]), [(F, [2, "n"]), (F, ["n", 5])], (F, [2, 5])),
    (node("contract", F, in_vars=[0, 1], contraction_axes=[]), [(F, [2]), (F, [3])], (F, [2, 3])),
    (node("threefry", "uint64", ctr_var=0, key_var=1), [("uint64", [3]), ("uint64", [])], ("uint64", [3])),
    (node("threefry", I32, ctr_var=0, key_var=1), [(I32, [3, 2]), (I32, [3, 2])], (I32, [3, 2])),
    (node("gather", F, src_var=0, indices_var=1, axis=1), [(F, [4, 3]), ("int64", [2, 7])], (F, [2, 7])),
    (node("scatter", F, indices_var=0, updates_var=1, axis=0, shape=[9, 3]), [(I32, [4, 3]), (F, [4, 3])], (F, [9, 3])),
    (
        node("scatter", F, indices_var=0, updates_var=1, init_var=2, axis=0, shape=["n", 3], reduction="max"),
        [(I32, [4, 3]), (F, [4, 3]), (F, ["n", 3])],
        (F, ["n", 3]),
    ),
    (node("assign", F, target_var=0, updates=[[1, 0, None], [2, 0, [1, 3]]]), [(F, [4]), (F, [4]), (F, [2])], (F, [4])),
    (node("sink", "unit", deps=[0]), [(F, [3])], ("unit", [])),
    (node("kernel", F, ast=NEG, input_vars=[0], output_vars=[OUT], metadata=METADATA), [(F, [3])], (F, [3])),
    (
        node(
            "custom",
            F,
            op_name="sort",
            in_vars=[0],
            attributes=[{"name": "axis", "kind": "int", "value": -1}],
        ),
        [(F, [3, "n"])],
        (F, [3, "n"]),
    ),
]  # fmt: skip
ELSEWHERE = {"placeholder", "buffer_view", "bind", "while"}


@pytest.mark.parametrize(("tested", "inputs", "expected"), CASES, ids=[case[0]["node"] for case in CASES])
def test_a_node_has_the_type_that_its_semantics_give(tested: Wire, inputs: list[Type], expected: Type) -> None:
    if tested["node"] == "sink":
        tested = {name: value for name, value in tested.items() if name != "out_var"}
    graph = accept(around(tested, inputs, N))
    dtype, shape = expected
    if tested["node"] != "sink":
        assert graph.types[OUT].dtype == dtype
        assert graph.types[OUT].shape == tuple(from_wire(dim) for dim in shape)
    assert graph.constraints == ()


def test_every_node_kind_is_in_a_table() -> None:
    assert len(NODE_KINDS) == 45
    assert {case[0]["node"] for case in CASES} | ELSEWHERE == set(NODE_KINDS)


@pytest.mark.parametrize(("shape", "expected"), [([1, 5], (1, 5)), ([5], (5,))])
def test_metadata_decides_whether_reduced_axes_stay(shape: list[int], expected: tuple[int, ...]) -> None:
    reduce = node("reduce_axis", F, in_var=0, reduce_op_kind="max", axes=[0])
    assert accept(around(reduce, [(F, [4, 5])], stated=(F, shape))).types[OUT].shape == expected


@pytest.mark.parametrize(
    "stored",
    [
        node("buffer", F, size_in_elements=12, device="cpu"),
        node("vconst", F, values=[0.0] * 12),
        node("buffer_view", F, buffer_var=0, size=12, offset=3),
    ],
    ids=lambda stored: stored["node"],
)
def test_metadata_gives_storage_and_tables_more_axes(stored: Wire) -> None:
    assert accept(around(stored, [(F, [16])], stated=(F, [3, 4]))).types[OUT].shape == (3, 4)
    assert accept(around(stored, [(F, [16])])).types[OUT].shape == (12,)


def test_a_buffer_view_counts_its_size_in_its_own_elements_and_its_offset_in_the_buffers() -> None:
    view = node("buffer_view", U8, buffer_var=0, size=8, offset=2)
    assert accept(around(view, [(F, [4])])).types[OUT].shape == (8,)


def test_a_bind_reads_a_defined_symbol_and_fixes_it() -> None:
    define = {"node": "define_var", "sym_var": {"name": "n", "min_val": 1, "max_val": 9}, "out_var": 1, "dtype": I32}
    bind = {"node": "bind", "sym_var": 1, "value": 4, "out_var": 2, "dtype": "int64"}
    graph = accept(wire([define, bind], [], [2], {"n": (1, 9)}))
    assert graph.types[2].dtype == "int64"
    assert graph.symbols == {"n": (4, 4)}


def test_a_define_var_declares_a_symbol_by_itself() -> None:
    define = {"node": "define_var", "sym_var": {"name": "m", "min_val": -3, "max_val": 9}, "out_var": 1, "dtype": I32}
    assert accept(wire([define], [], [1])).symbols == {"m": (-3, 9)}


def test_a_kernel_around_a_sink_passes_every_dependency_through() -> None:
    sink = {"node": "sink", "deps": [0, 1], "dtype": "unit"}
    kernel = {
        "node": "kernel", "ast": sink, "input_vars": [0, 1], "output_vars": [2, 3], "metadata": METADATA,
        "out_var": 2, "dtype": F,
    }  # fmt: skip
    graph = accept(wire([placeholder(0, F, [3]), placeholder(1, I32, [4]), kernel], [0, 1], [2, 3]))
    assert (graph.types[2].dtype, graph.types[3].dtype) == (F, I32)
    assert graph.types[3].shape == (4,)
