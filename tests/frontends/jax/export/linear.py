"""Products, convolutions, and what of linear algebra needs no library."""

from __future__ import annotations

from typing import Any, Final

import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.frontends.jax.export.recipe import Function, integers, normal


def _image(*window: str, **more: Any):
    return lambda x, w: lax.conv_general_dilated(x, w, dimension_numbers=window, **more)


_NCHW: Final = ("NCHW", "OIHW", "NCHW")
_NHWC: Final = ("NHWC", "HWIO", "NHWC")

FUNCTIONS: Final = (
    Function("dot", jnp.dot, (normal(7), normal(7))),
    Function("matmul", jnp.matmul, (normal(4, 7), normal(7, 5))),
    Function("matmul_batched", jnp.matmul, (normal(3, 4, 7), normal(3, 7, 5))),
    Function("matmul_broadcast", jnp.matmul, (normal(2, 1, 4, 7), normal(3, 7, 5))),
    Function("vector_by_matrix", jnp.matmul, (normal(7), normal(7, 5))),
    Function(
        "einsum_heads", lambda q, k: jnp.einsum("bthd,bshd->bhts", q, k), (normal(2, 3, 2, 4), normal(2, 5, 2, 4))
    ),
    Function(
        "einsum_three", lambda a, b, c: jnp.einsum("ij,jk,kl->il", a, b, c), (normal(3, 4), normal(4, 5), normal(5, 2))
    ),
    Function("einsum_diagonal", lambda a: jnp.einsum("ii->i", a), (normal(4, 4),)),
    Function("tensordot", lambda a, b: jnp.tensordot(a, b, ((1, 0), (0, 1))), (normal(3, 4, 2), normal(4, 3, 5))),
    Function("outer", jnp.outer, (normal(3), normal(4))),
    Function("inner", jnp.inner, (normal(3, 5), normal(4, 5))),
    Function(
        "matmul_bytes",
        lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32),
        (integers(-9, 9, 4, 7, dtype=np.int8), integers(-9, 9, 7, 5, dtype=np.int8)),
    ),
    Function(
        "matmul_brain_float",
        lambda a, b: lax.dot(a, b, preferred_element_type=jnp.float32),
        (normal(4, 7, dtype=jnp.bfloat16), normal(7, 5, dtype=jnp.bfloat16)),
    ),
    Function("matmul_integers", jnp.matmul, (integers(-9, 9, 4, 7), integers(-9, 9, 7, 5))),
    Function("trace", jnp.trace, (normal(5, 5),)),
    Function("matrix_power", lambda a: jnp.linalg.matrix_power(a, 3), (normal(4, 4),)),
    Function("det", jnp.linalg.det, (normal(3, 3),)),
    Function("cross", jnp.cross, (normal(4, 3), normal(4, 3))),
    Function("conv1d", lambda x, w: jnp.convolve(x, w), (normal(9), normal(4))),
    Function(
        "conv_same", _image(*_NCHW, window_strides=(1, 1), padding="SAME"), (normal(1, 3, 6, 7), normal(4, 3, 3, 3))
    ),
    Function(
        "conv_strided", _image(*_NHWC, window_strides=(2, 2), padding="VALID"), (normal(2, 7, 8, 3), normal(3, 3, 3, 4))
    ),
    Function(
        "conv_dilated",
        _image(*_NCHW, window_strides=(1, 1), padding="SAME", rhs_dilation=(2, 2)),
        (normal(1, 2, 8, 8), normal(3, 2, 3, 3)),
    ),
    Function(
        "conv_grouped",
        _image(*_NCHW, window_strides=(1, 1), padding="SAME", feature_group_count=2),
        (normal(1, 4, 5, 5), normal(6, 2, 3, 3)),
    ),
    Function(
        "conv_depthwise",
        _image(*_NHWC, window_strides=(1, 1), padding="SAME", feature_group_count=4),
        (normal(1, 5, 5, 4), normal(3, 3, 1, 4)),
    ),
    Function(
        "conv_transposed",
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=_NHWC),
        (normal(1, 4, 4, 3), normal(3, 3, 3, 2)),
    ),
    Function(
        "conv3d",
        _image("NCDHW", "OIDHW", "NCDHW", window_strides=(1, 1, 1), padding="SAME"),
        (normal(1, 2, 4, 4, 4), normal(3, 2, 3, 3, 3)),
    ),
    Function(
        "triangular_solve",
        lambda a, b: lax.linalg.triangular_solve(a + 4 * jnp.eye(4), b, left_side=True, lower=True),
        (normal(4, 4), normal(4, 2)),
    ),
)
