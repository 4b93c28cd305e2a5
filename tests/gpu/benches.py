"""What is timed on a GPU: graphs large enough to fill it, the calls, and the same in PyTorch. Needs the SDK only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorkiln.build import Builder, Tensor, conv2d, exp, layer_norm, matmul, relu, softmax, take, transpose

from .cases import Case, Symbols


@dataclass(frozen=True)
class Bench:
    """A case with one call, what it gives by PyTorch's arrays, and the floating-point operations of its products."""

    case: Case
    torch: Callable[..., Any]
    flops: int = 0


def _bench(
    name: str,
    build: Callable[[Builder], Tensor],
    torch: Callable[..., Any],
    symbols: Symbols | None = None,
    *,
    flops: int = 0,
    below: int = 50,
) -> Bench:
    return Bench(Case(f"bench_{name}", build, (symbols or {},), below=below), torch, flops)


ROWS, COLUMNS = 1 << 14, 4096
SIDE = 4096
HEADS, TOKENS, WIDTH = 64, 1024, 64


def _triad(b: Builder) -> Tensor:
    shape = (b.symbol("n", 1, 1 << 30),)
    return b.input("float32", shape) * 2.0 + b.input("float32", shape)


def _exponential(b: Builder) -> Tensor:
    x, y = b.input("float32", (1 << 26,)), b.input("float32", (1 << 26,))
    return exp(-x * x) * y


def _rows(b: Builder) -> Tensor:
    return b.input("float32", (b.symbol("n", 1, 1 << 20), COLUMNS))


def _normed(b: Builder) -> Tensor:
    return layer_norm(_rows(b), -1, b.input("float32", (COLUMNS,)), b.input("float32", (COLUMNS,)))


def _taken(b: Builder) -> Tensor:
    return take(b.input("float32", (1 << 20, 128)), b.input("int32", (1 << 19,)))


def _product(dtype: str, rows: int, side: int) -> Callable[[Builder], Tensor]:
    return lambda b: matmul(b.input(dtype, (rows, side)), b.input(dtype, (side, side)))


def _attention(b: Builder) -> Tensor:
    queries, keys, values = (b.input("float32", (HEADS, TOKENS, WIDTH)) for _ in range(3))
    return matmul(softmax(matmul(queries, transpose(keys)) * WIDTH**-0.5), values)


def _convolution(b: Builder) -> Tensor:
    return relu(conv2d(b.input("float32", (32, 64, 56, 56)), b.input("float32", (64, 64, 3, 3)), padding=1))


def _torch_norm(x: Any, scale: Any, bias: Any) -> Any:
    return _functional().layer_norm(x, (x.shape[-1],), scale, bias)


def _functional() -> Any:
    import torch.nn.functional as functional  # type: ignore[import-not-found]

    return functional


def _torch_attention(queries: Any, keys: Any, values: Any) -> Any:
    return _functional().scaled_dot_product_attention(queries[None], keys[None], values[None])[0]


BENCHES = (
    _bench("small", lambda b: b.input("float32", (1000,)) + 1.0, lambda x: x + 1),
    _bench("triad", _triad, lambda x, y: x * 2 + y, {"n": 1 << 26}),
    _bench("exponential", _exponential, lambda x, y: (-x * x).exp() * y),
    _bench("row_sums", lambda b: _rows(b).sum(axis=1), lambda x: x.sum(1), {"n": ROWS}),
    _bench("column_sums", lambda b: _rows(b).sum(axis=0), lambda x: x.sum(0), {"n": ROWS}),
    _bench("softmax", lambda b: softmax(_rows(b)), lambda x: x.softmax(1), {"n": ROWS}),
    _bench("layer_norm", _normed, _torch_norm, {"n": ROWS}),
    _bench("transposed", lambda b: transpose(b.input("float32", (8192, 8192))), lambda x: x.T.contiguous()),
    _bench("taken", _taken, lambda x, i: x[i.long()], below=1 << 20),
    _bench("product", _product("float32", SIDE, SIDE), lambda x, y: x @ y, flops=2 * SIDE**3),
    _bench("product_512", _product("float32", 512, 512), lambda x, y: x @ y, flops=2 * 512**3),
    _bench("product_half", _product("float16", SIDE, SIDE), lambda x, y: x @ y, flops=2 * SIDE**3),
    _bench("product_bfloat", _product("bfloat16", SIDE, SIDE), lambda x, y: x @ y, flops=2 * SIDE**3),
    _bench("row_by_matrix", _product("float32", 1, SIDE), lambda x, y: x @ y, flops=2 * SIDE**2),
    _bench("attention", _attention, _torch_attention, flops=4 * HEADS * TOKENS**2 * WIDTH),
    _bench(
        "convolution",
        _convolution,
        lambda x, w: _functional().conv2d(x, w, padding=1).relu(),
        flops=2 * 32 * 64 * 56 * 56 * 64 * 9,
    ),
)
"""PyTorch multiplies float32 as such, not in TF32, unless it is told to."""

NETWORKS = ("squeezenet", "resnet50", "densenet121")
"""Light networks of the `onnx` package, which `make_bundles` compiles with weights as parameters."""
