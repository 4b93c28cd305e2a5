"""A small graph for each of the 45 node kinds: the node writes var 9 and reads the inputs 0, 1 and 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tensorkiln.graph import Graph
from tests.dialect.wire import Node, Shape, graph_of, placeholder

Type = tuple[str, Shape]


@dataclass(frozen=True)
class Example:
    """One node of a kind; `check` is how its op prints, in FileCheck's language, with every operand as `%{{.*}}`."""

    node: dict[str, Any]
    inputs: Sequence[Type]
    result: Type
    check: str
    before: Sequence[Node] = ()
    bounds: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    @property
    def kind(self) -> str:
        return self.node["node"]

    def graph(self) -> Graph:
        places = [placeholder(var, shape, dtype) for var, (dtype, shape) in enumerate(self.inputs)]
        dtype, shape = self.result
        node = self.node if self.kind in ("sink", "while") else {"out_var": 9, "dtype": dtype, **self.node}
        outputs = [0] if dtype == "unit" else [9]
        shapes = {} if self.kind == "sink" else {9: (dtype, shape)}
        return graph_of([*places, *self.before, node], outputs, shapes=shapes, bounds=self.bounds)


N_BOUNDS = {"n": (1, 64)}
TRACKER = {
    "views": [
        {"shape": [2, 3], "strides": [3, 1], "offset": 0, "mask": None},
        {"shape": [3, 3], "strides": [1, 2], "offset": -1, "mask": [[0, 3], [1, 2]]},
    ],
    "shape": [3, 3],
}
METADATA = {"name": "k", "local_dims": 1, "upcasted": 2, "dont_use_locals": True}

COUNTED = [
    placeholder(0, [], "int32"),
    placeholder(1, [], "int32"),
    {"node": "binop", "op": "cmplt", "a_var": 1, "b_var": 0, "out_var": 2, "dtype": "bool"},
]
HALVED = [
    *COUNTED[:2],
    {"node": "const_scalar", "value": 2, "out_var": 3, "dtype": "int32"},
    {"node": "binop", "op": "idiv", "a_var": 0, "b_var": 3, "out_var": 2, "dtype": "int32"},
]

EXAMPLES = (
    Example(
        {"node": "buffer", "size_in_elements": {"op": "mul", "args": ["n", 2]}, "device": "CPU"},
        [],
        ("float32", [2, "n"]),
        '"kiln.buffer"() {device = "CPU", kiln.node = 0 : i64, size_in_elements = "2*n"} : () -> '
        'tensor<2x?xf32, ["2", "n"]>',
        bounds=N_BOUNDS,
    ),
    Example(
        {"node": "buffer_view", "buffer_var": 0, "size": "n", "offset": 2},
        [("uint8", [200])],
        ("int16", ["n"]),
        'kiln.buffer_view"(%arg0) {kiln.node = 1 : i64, offset = 2 : i64, size = "n"} : (tensor<200xui8>) -> '
        'tensor<?xi16, ["n"]>',
        bounds=N_BOUNDS,
    ),
    Example({"node": "placeholder", "shape": [2]}, [], ("float32", [2]), "return %arg0 : tensor<2xf32>"),
    Example(
        {"node": "const_scalar", "value": 0.1},
        [],
        ("float16", []),
        '"kiln.const_scalar"() {kiln.node = 0 : i64, value = 9.997550e-02 : f16} : () -> tensor<f16>',
    ),
    Example(
        {"node": "vconst", "values": [1, 0, 3, 18446744073709551615]},
        [],
        ("uint64", [2, 2]),
        "values = dense<{{\\[\\[}}1, 0], [3, 18446744073709551615]]> : tensor<2x2xui64>} : () -> tensor<2x2xui64>",
    ),
    Example(
        {"node": "binop", "op": "cmplt", "a_var": 0, "b_var": 1},
        [("float32", [2, 3]), ("float32", [])],
        ("bool", [2, 3]),
        '"kiln.binop"(%arg0, %arg1) {kiln.node = 2 : i64, op = "cmplt"} : (tensor<2x3xf32>, tensor<f32>) -> '
        "tensor<2x3xi1>",
    ),
    Example(
        {"node": "unary", "op": "exp2", "in_var": 0},
        [("bfloat16", [2, "n"])],
        ("bfloat16", [2, "n"]),
        '"kiln.unary"(%arg0) {kiln.node = 1 : i64, op = "exp2"} : (tensor<2x?xbf16, ["2", "n"]>)',
        bounds=N_BOUNDS,
    ),
    Example(
        {"node": "ternary", "op": "where", "a_var": 0, "b_var": 1, "c_var": 2},
        [("bool", [4]), ("int64", []), ("int64", [4])],
        ("int64", [4]),
        '"kiln.ternary"(%arg0, %arg1, %arg2) {kiln.node = 3 : i64, op = "where"}',
    ),
    Example(
        {"node": "view", "in_var": 0, "shape_tracker": TRACKER},
        [("float32", [6])],
        ("float32", [3, 3]),
        "{mask = {{\\[\\[}}0, 3], [1, 2]], offset = -1 : i64, shape = [3, 3], strides = [1, 2]}]}} : (tensor<6xf32>)",
    ),
    Example(
        {"node": "reshape", "in_var": 0, "new_shape": [3, 2]},
        [("float32", [2, 3])],
        ("float32", [3, 2]),
        '"kiln.reshape"(%arg0) {kiln.node = 1 : i64} : (tensor<2x3xf32>) -> tensor<3x2xf32>',
    ),
    Example(
        {"node": "permute", "in_var": 0, "axes_permutation": [2, 0, 1]},
        [("float32", [2, 3, 4])],
        ("float32", [4, 2, 3]),
        "{axes_permutation = array<i64: 2, 0, 1>, kiln.node = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>",
    ),
    Example(
        {"node": "expand", "in_var": 0, "new_target_shape": ["n", 3]},
        [("int8", [1, 3])],
        ("int8", ["n", 3]),
        '"kiln.expand"(%arg0) {kiln.node = 1 : i64} : (tensor<1x3xi8>) -> tensor<?x3xi8, ["n", "3"]>',
        bounds=N_BOUNDS,
    ),
    Example(
        {"node": "pad", "in_var": 0, "pad_width": [["n", 1], [0, 2]]},
        [("float32", [2, 3])],
        ("float32", [{"op": "add", "args": ["n", 3]}, 5]),
        'pad_width = {{\\[\\[}}"n", 1], [0, 2]]} : (tensor<2x3xf32>) -> tensor<?x5xf32, ["n + 3", "5"]>',
        bounds=N_BOUNDS,
    ),
    Example(
        {"node": "shrink", "in_var": 0, "limits": [[1, 2], [0, 2]]},
        [("float32", [2, 3])],
        ("float32", [1, 2]),
        "limits = {{\\[\\[}}1, 2], [0, 2]]} : (tensor<2x3xf32>) -> tensor<1x2xf32>",
    ),
    Example(
        {"node": "flip", "in_var": 0, "axes": [1]},
        [("float64", [2, 3])],
        ("float64", [2, 3]),
        '"kiln.flip"(%arg0) {axes = array<i64: 1>, kiln.node = 1 : i64}',
    ),
    Example(
        {"node": "reduce_axis", "in_var": 0, "reduce_op_kind": "prod", "axes": [0, 2]},
        [("int32", [2, 3, 4])],
        ("int32", [3]),
        '{axes = array<i64: 0, 2>, kiln.node = 1 : i64, reduce_op_kind = "prod"} : (tensor<2x3x4xi32>) -> '
        "tensor<3xi32>",
    ),
    Example(
        {"node": "valid", "in_var": 0, "shape_tracker": {"views": TRACKER["views"][1:], "shape": [3, 3]}},
        [("bool", [])],
        ("bool", [3, 3]),
        '"kiln.valid"(%arg0) {kiln.node = 1 : i64, shape_tracker = {shape = [3, 3], views = [{mask = ',
    ),
    Example(
        {"node": "index", "in_var": 0, "idx_var": 1, "valid_var": 2},
        [("float32", [2, 3]), ("int32", [4]), ("bool", [4])],
        ("float32", [4]),
        '"kiln.index"(%arg0, %arg1, %arg2) {kiln.node = 3 : i64} : (tensor<2x3xf32>, tensor<4xi32>, tensor<4xi1>)',
    ),
    Example(
        {"node": "gep", "in_var": 0, "indices": [2]},
        [("float32", [2, 3])],
        ("float32", [2]),
        '"kiln.gep"(%arg0) {indices = array<i64: 2>, kiln.node = 1 : i64} : (tensor<2x3xf32>) -> tensor<2xf32>',
    ),
    Example(
        {"node": "vectorize", "in_vars": [0, 1, 0]},
        [("float32", [2]), ("float32", [2])],
        ("float32", [2, 3]),
        "operandSegmentSizes = array<i32: 3, 0,{{.*}}>} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> "
        "tensor<2x3xf32>",
    ),
    Example(
        {"node": "wmma", "a_var": 0, "b_var": 1, "c_var": 2, "m": 2, "n": 3, "k": 4},
        [("float16", [2, 4]), ("float16", [4, 3]), ("float32", [2, 3])],
        ("float32", [2, 3]),
        '"kiln.wmma"(%arg0, %arg1, %arg2) {k = 4 : i64, kiln.node = 3 : i64, m = 2 : i64, n = 3 : i64}',
    ),
    Example(
        {"node": "cast", "in_var": 0, "target_dtype": "uint8"},
        [("float32", [4])],
        ("uint8", [4]),
        '"kiln.cast"(%arg0) {kiln.node = 1 : i64} : (tensor<4xf32>) -> tensor<4xui8>',
    ),
    Example(
        {"node": "bitcast", "in_var": 0, "target_dtype": "uint8"},
        [("float32", [2, 4])],
        ("uint8", [2, 16]),
        '"kiln.bitcast"(%arg0) {kiln.node = 1 : i64} : (tensor<2x4xf32>) -> tensor<2x16xui8>',
    ),
    Example(
        {"node": "contiguous", "in_var": 0},
        [("float32", [2])],
        ("float32", [2]),
        '"kiln.contiguous"(%arg0) {kiln.node = 1 : i64}',
    ),
    Example(
        {"node": "copy", "in_var": 0, "target_device": "CPU", "clone": True},
        [("float32", [2])],
        ("float32", [2]),
        '"kiln.copy"(%arg0) {clone = true, kiln.node = 1 : i64, target_device = "CPU"}',
    ),
    Example(
        {"node": "assign", "target_var": 0, "updates": [[1, 0, None], [2, 0, [1, 3]]]},
        [("float32", [2, 2]), ("float32", [2, 2]), ("float32", [2])],
        ("float32", [2, 2]),
        '"kiln.assign"({{%[0-9]+}}, %arg2) {kiln.node = 3 : i64, range = array<i64: 1, 3>} : '
        "(tensor<2x2xf32>, tensor<2xf32>)",
    ),
    Example(
        {"node": "define_var", "sym_var": {"name": "n", "min_val": 1, "max_val": 64}},
        [],
        ("int32", []),
        'sym_var = {max_val = 64 : i64, min_val = 1 : i64, name = "n"}} : () -> tensor<i32>',
    ),
    Example(
        {"node": "bind", "sym_var": 5, "value": 7},
        [],
        ("int32", []),
        '"kiln.bind"(%0) {kiln.node = 1 : i64, value = 7 : i64} : (tensor<i32>) -> tensor<i32>',
        before=[
            {
                "node": "define_var",
                "sym_var": {"name": "n", "min_val": 1, "max_val": 64},
                "out_var": 5,
                "dtype": "int32",
            }
        ],
    ),
    Example(
        {"node": "detach", "in_var": 0},
        [("float32", [2])],
        ("float32", [2]),
        '"kiln.detach"(%arg0) {kiln.node = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>',
    ),
    Example(
        {"node": "contiguous_backward", "in_var": 0},
        [("float32", [2])],
        ("float32", [2]),
        '"kiln.contiguous_backward"(%arg0) {kiln.node = 1 : i64}',
    ),
    Example(
        {"node": "sink", "deps": [0, 1, 0], "dtype": "unit"},
        [("float32", [2]), ("bool", [])],
        ("unit", []),
        '"kiln.sink"(%arg0, %arg1, %arg0) {kiln.node = 2 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0,',
    ),
    Example(
        {
            "node": "kernel",
            "ast": {"node": "unary", "op": "neg", "in_var": 0, "out_var": 9, "dtype": "float32"},
            "input_vars": [0],
            "output_vars": [9],
            "metadata": METADATA,
        },
        [("float32", [2])],
        ("float32", [2]),
        'metadata = {dont_use_locals = true, local_dims = 1 : i64, name = "k", upcasted = 2 : i64}}',
    ),
    Example({"node": "unique", "id": -3}, [], ("int32", []), '"kiln.unique"() {id = -3 : i64, kiln.node = 0 : i64}'),
    Example(
        {"node": "device", "device_name": "CUDA:1"},
        [("float32", [])],
        ("unit", []),
        '"kiln.device"() {device_name = "CUDA:1", kiln.node = 1 : i64} : () -> tensor<i0>',
    ),
    Example(
        {"node": "multi", "device_vars": [0, 1, 2], "axis": 1, "real_mask": [True, False, True]},
        [("float32", [2, 3]), ("float32", [2, 2]), ("float32", [2, 2])],
        ("float32", [2, 5]),
        "{axis = 1 : i64, kiln.node = 3 : i64, operandSegmentSizes = array<i32: 1, 2,{{.*}}>, "
        "real_mask = array<i1: true, false, true>}",
    ),
    Example(
        {"node": "fuse", "in_var": 0},
        [("float32", [2])],
        ("float32", [2]),
        '"kiln.fuse"(%arg0) {kiln.node = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>',
    ),
    Example(
        {"node": "unroll", "loop_var": 0, "unroll_factor": 4},
        [("float32", [2])],
        ("float32", [2]),
        '"kiln.unroll"(%arg0) {kiln.node = 1 : i64, unroll_factor = 4 : i64}',
    ),
    Example(
        {"node": "contract", "in_vars": [0, 1], "contraction_axes": [[1, 0], [2, 2]]},
        [("float32", [2, 3, 4]), ("float32", [3, 5, 4])],
        ("float32", [2, 5]),
        "{contraction_axes = [array<i64: 1, 0>, array<i64: 2, 2>], kiln.node = 2 : i64}",
    ),
    Example(
        {"node": "cat", "in_vars": [0, 1, 0], "axis": -1},
        [("float32", [2, 3]), ("float32", [2, 1])],
        ("float32", [2, 7]),
        '"kiln.cat"(%arg0, %arg1, %arg0) {axis = 1 : i64, kiln.node = 2 : i64, operandSegmentSizes = '
        "array<i32: 1, 1, 1, 0",
    ),
    Example(
        {"node": "threefry", "ctr_var": 0, "key_var": 1},
        [("uint64", [4]), ("uint64", [])],
        ("uint64", [4]),
        '"kiln.threefry"(%arg0, %arg1) {kiln.node = 2 : i64} : (tensor<4xui64>, tensor<ui64>) -> tensor<4xui64>',
    ),
    Example(
        {"node": "gather", "src_var": 0, "indices_var": 1, "axis": 0},
        [("float32", [4, 3]), ("int64", [2, 3])],
        ("float32", [2, 3]),
        '"kiln.gather"(%arg0, %arg1) {axis = 0 : i64, kiln.node = 2 : i64} : (tensor<4x3xf32>, tensor<2x3xi64>)',
    ),
    Example(
        {"node": "scatter", "indices_var": 0, "updates_var": 1, "axis": 1, "shape": [2, 5]},
        [("int32", [2, 3]), ("float32", [2, 3])],
        ("float32", [2, 5]),
        '"kiln.scatter"(%arg0, %arg1) {axis = 1 : i64, kiln.node = 2 : i64, reduction = "none"}',
    ),
    Example(
        {
            "node": "scatter",
            "indices_var": 0,
            "updates_var": 1,
            "init_var": 2,
            "axis": 1,
            "shape": [2, 5],
            "reduction": "max",
        },
        [("int32", [2, 3]), ("float32", [2, 3]), ("float32", [2, 5])],
        ("float32", [2, 5]),
        '"kiln.scatter"(%arg0, %arg1, %arg2) {axis = 1 : i64, kiln.node = 3 : i64, reduction = "max"}',
    ),
    Example(
        {
            "node": "custom",
            "op_name": "sort",
            "in_vars": [0],
            "attributes": [
                {"name": "axis", "kind": "int", "value": 0},
                {"name": "descending", "kind": "int", "value": 1},
            ],
        },
        [("float32", [4])],
        ("float32", [4]),
        '{custom_attributes = [{kind = "int", name = "axis", value = 0 : i64}, {kind = "int", name = '
        '"descending", value = 1',
    ),
    Example(
        {
            "node": "while",
            "condition": {"nodes": COUNTED, "input_vars": [0, 1], "output_vars": [2]},
            "body": {"nodes": HALVED, "input_vars": [0, 1], "output_vars": [2]},
            "in_vars": [0, 1],
            "output_vars": [9],
            "most": 40,
        },
        [("int32", []), ("int32", [])],
        ("int32", []),
        '"kiln.while_result"(%0) {kiln.node = 2 : i64, number = 0 : i64} : (tensor<ui8>) -> tensor<i32>',
    ),
    Example(
        {"node": "noop", "in_var": None},
        [],
        ("float32", [2, 3]),
        '"kiln.noop"() {kiln.node = 0 : i64} : () -> tensor<2x3xf32>',
    ),
)
