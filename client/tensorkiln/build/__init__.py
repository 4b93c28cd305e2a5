"""Write graphs the NumPy way: a `Builder`, its `Tensor`s, and functions that compose the nodes of the wire format.

b = Builder("mlp")
n = b.symbol("n", 1, 4096)
x, w = b.input("float32", (n, 64)), b.input("float32", (64, 10))
b.output(softmax(relu(x @ w)))
graph = b.graph()
"""

from ..uncollected import uncollected

with uncollected():
    from ..expr import ceildiv, floordiv, floormod
    from .activation import elu, gelu, leaky_relu, relu, sigmoid, silu, softplus, tanh
    from .arithmetic import absolute, maximum, minimum, multiply_add, power
    from .bits import bitcast
    from .builder import Builder
    from .comparison import equal, is_nan, less, not_equal
    from .contraction import einsum, matmul
    from .conversion import cast
    from .convolution import conv, conv2d
    from .dimension import dim_value
    from .division import truncating_divide, truncating_remainder
    from .error_function import erf
    from .filled import arange, full, ones, zeros
    from .indexing import gather, one_hot, scatter, take
    from .joining import cat, split, stack
    from .loops import while_loop
    from .movement import expand, flatten, flip, moveaxis, permute, reshape, shrink, squeeze, transpose, unsqueeze, view
    from .normalization import batch_norm, layer_norm, local_response_norm, log_softmax, rms_norm, softmax
    from .packing import pack, pack_array, unpack
    from .padding import pad
    from .pooling import avg_pool, avg_pool2d, max_pool, max_pool2d
    from .random import random_bits, random_normal, random_uniform, threefry
    from .reduction import std, var
    from .rounding import ceil, floor, rint, sign, trunc
    from .search import argmax, argmin
    from .selection import clip, where
    from .tensor import Tensor
    from .transcendental import cos, exp, exp2, expm1, log, log1p, log2, log10, reciprocal, rsqrt, sin, sqrt, tan

__all__ = [
    "Builder",
    "Tensor",
    "absolute",
    "arange",
    "argmax",
    "argmin",
    "avg_pool",
    "avg_pool2d",
    "batch_norm",
    "bitcast",
    "cast",
    "cat",
    "ceil",
    "ceildiv",
    "clip",
    "conv",
    "conv2d",
    "cos",
    "dim_value",
    "einsum",
    "elu",
    "equal",
    "erf",
    "exp",
    "exp2",
    "expand",
    "expm1",
    "flatten",
    "flip",
    "floor",
    "floordiv",
    "floormod",
    "full",
    "gather",
    "gelu",
    "is_nan",
    "layer_norm",
    "leaky_relu",
    "less",
    "local_response_norm",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_softmax",
    "matmul",
    "max_pool",
    "max_pool2d",
    "maximum",
    "minimum",
    "moveaxis",
    "multiply_add",
    "not_equal",
    "one_hot",
    "ones",
    "pack",
    "pack_array",
    "pad",
    "permute",
    "power",
    "random_bits",
    "random_normal",
    "random_uniform",
    "reciprocal",
    "relu",
    "reshape",
    "rint",
    "rms_norm",
    "rsqrt",
    "scatter",
    "shrink",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "softmax",
    "softplus",
    "split",
    "sqrt",
    "squeeze",
    "stack",
    "std",
    "take",
    "tan",
    "tanh",
    "threefry",
    "transpose",
    "trunc",
    "truncating_divide",
    "truncating_remainder",
    "unpack",
    "unsqueeze",
    "var",
    "view",
    "where",
    "while_loop",
    "zeros",
]
