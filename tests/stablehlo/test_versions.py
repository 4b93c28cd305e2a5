"""Artifacts as older versions wrote them are the module that they were."""

from __future__ import annotations

import pytest

from dialect.mlir import stablehlo
from stablehlo import reading
from stablehlo.translate import translate

from .modules import module

MODULE = module(
    ["4x8xf32", "8x3xf32", "2x1xi32", "1x2x6x6xf32", "3x2x3x3xf32", "2xui64", "4x1xf32"],
    """
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %p = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
    %r0 = stablehlo.tanh %p : tensor<4x3xf32>
    %r1 = stablehlo.reduce(%r0 init: %c) applies stablehlo.add across dimensions = [0]
      : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
    %r2 = "stablehlo.gather"(%r0, %a2) {dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}
      : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
    %r3 = "stablehlo.scatter"(%r0, %a2, %r2) ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}
      : (tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>
    %r4 = stablehlo.convolution(%a3, %a4) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
      window = {stride = [2, 1], pad = [[1, 1], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x2x6x6xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x3x4xf32>
    %r5 = "stablehlo.reduce_window"(%a3, %c) ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.maximum %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) {window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>}
      : (tensor<1x2x6x6xf32>, tensor<f32>) -> tensor<1x2x3x3xf32>
    %r6 = "stablehlo.sort"(%r0) ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %l = stablehlo.compare LT, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %l : tensor<i1>
      }) {dimension = 1 : i64, is_stable = true} : (tensor<4x3xf32>) -> tensor<4x3xf32>
    %n = stablehlo.constant dense<3> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %w:2 = stablehlo.while(%k = %zero, %y = %r0) : tensor<i32>, tensor<4x3xf32>
    cond {
      %l = stablehlo.compare LT, %k, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    } do {
      %k1 = stablehlo.add %k, %one : tensor<i32>
      %y1 = stablehlo.multiply %y, %r0 : tensor<4x3xf32>
      stablehlo.return %k1, %y1 : tensor<i32>, tensor<4x3xf32>
    }
    %q = stablehlo.pad %w#1, %c, low = [0, 1], high = [0, 0], interior = [1, 0]
      : (tensor<4x3xf32>, tensor<f32>) -> tensor<7x4xf32>
    %r7 = stablehlo.slice %q [1:7:2, 0:4] : (tensor<7x4xf32>) -> tensor<3x4xf32>
    %r8, %r9 = stablehlo.rng_bit_generator %a5, algorithm = THREE_FRY
      : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x4xui32>)
    %f = stablehlo.fft %a0, type = RFFT, length = [8] : (tensor<4x8xf32>) -> tensor<4x5xcomplex<f32>>
    %m = stablehlo.constant dense<(0.5,-1.0)> : tensor<4x5xcomplex<f32>>
    %g = stablehlo.multiply %f, %m : tensor<4x5xcomplex<f32>>
    %r10 = stablehlo.imag %g : (tensor<4x5xcomplex<f32>>) -> tensor<4x5xf32>
    %b = stablehlo.broadcast_in_dim %a6, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %t = stablehlo.transpose %b, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %v = stablehlo.dynamic_slice %t, %one, %zero, sizes = [2, 4]
      : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
    %r11 = stablehlo.reverse %v, dims = [1] : tensor<2x4xf32>""",
    *("4x3xf32", "3xf32", "2x3xf32", "4x3xf32", "1x3x3x4xf32", "1x2x3x3xf32", "4x3xf32", "3x4xf32"),
    *("2xui64", "3x4xui32", "4x5xf32", "2x4xf32"),
)
OLDEST = "0.9.0"


@pytest.mark.parametrize(
    "version", [OLDEST, "0.12.0", "0.15.0", "0.18.0", "0.20.0", "1.0.0", "1.5.0", "1.10.0", "newest"]
)
def test_an_artifact_of_an_older_version_is_the_same_graph(version: str) -> None:
    target = stablehlo.get_current_version() if version == "newest" else version
    assert stablehlo.get_minimum_version() == OLDEST
    with reading.context():
        artifact = stablehlo.serialize_portable_artifact_str(MODULE, target)
    assert f"StableHLO_v{target}".encode() in artifact[:40]
    assert translate(artifact).document == translate(MODULE).document
