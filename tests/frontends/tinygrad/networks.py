"""Layers, losses, attention, and their gradients."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .recipe import Recipe, floats, tinygrad, truths, whole

IMAGE: Final = floats(1, 3, 8, 7)
KERNEL: Final = floats(4, 3, 3, 3)
ROWS: Final = floats(5, 6)
CLASSES: Final = np.array([1, 0, 3, 5, 2], np.int32)
HEADS: Final = (floats(1, 2, 4, 6), floats(1, 2, 4, 6) * 0.5, floats(1, 2, 4, 6) + 1)


def _layer(make: Any, array: Any) -> Recipe:
    """A layer of `tinygrad.nn` with weights from one seed, realized."""

    def run(x: Any) -> Any:
        nn, tensor = tinygrad().nn, tinygrad().Tensor
        layer = make(nn)
        for place, each in enumerate(nn.state.get_parameters(layer)):
            if each.dtype.name == "float":
                each.replace(tensor(np.abs(floats(*each.shape, low=-0.9 + 0.1 * place, high=0.9))).realize())
        found = layer(x)
        return list(found) if isinstance(found, tuple) else found

    return Recipe(run, (array,))


def _training(x: Any) -> Any:
    """The normalised batch, and the statistics that it leaves."""
    layer = tinygrad().nn.BatchNorm2d(3)
    with tinygrad().Context(TRAINING=1):
        return [layer(x), layer.running_mean + 0, layer.running_var + 0]


def _gradients(loss: Any) -> Any:
    return lambda *tensors: list(loss(*tensors).gradient(*tensors))


RECIPES: Final = {
    "matmul": Recipe(lambda x, y: x @ y, (ROWS, floats(6, 3))),
    "matmul_batched": Recipe(lambda x, y: x @ y, (floats(2, 3, 4), floats(4, 5))),
    "matmul_int": Recipe(lambda x, y: x @ y, (whole(3, 4), whole(4, 2))),
    "matmul_half": Recipe(lambda x, y: x.half() @ y.half(), (ROWS, floats(6, 3))),
    "dot": Recipe(lambda x, y: x.dot(y), (floats(6), floats(6) + 1)),
    "einsum": Recipe(lambda x, y: type(x).einsum("bij,bkj->bik", x, y), (floats(2, 3, 4), floats(2, 5, 4))),
    "einsum_trace": Recipe(lambda x: type(x).einsum("ii->i", x), (floats(4, 4),)),
    "linear": _layer(lambda nn: nn.Linear(6, 3), ROWS),
    "embedding": _layer(lambda nn: nn.Embedding(7, 3), CLASSES),
    "conv2d": Recipe(lambda x, w: x.conv2d(w, padding=1), (IMAGE, KERNEL)),
    "conv2d_strided": Recipe(lambda x, w: x.conv2d(w, stride=2, dilation=2, padding=(1, 2)), (IMAGE, KERNEL)),
    "conv2d_grouped": Recipe(lambda x, w: x.conv2d(w, groups=3), (IMAGE, floats(6, 1, 3, 3))),
    "conv_layer": _layer(lambda nn: nn.Conv2d(3, 4, 3, padding=1), IMAGE),
    "conv1d": _layer(lambda nn: nn.Conv1d(3, 4, 3), floats(1, 3, 9)),
    "conv_transpose": Recipe(lambda x, w: x.conv_transpose2d(w, stride=2), (IMAGE, floats(3, 2, 3, 3))),
    "max_pool": Recipe(lambda x: x.max_pool2d((2, 2)), (IMAGE,)),
    "max_pool_places": Recipe(lambda x: list(x.max_pool2d((3, 3), stride=2, return_indices=True)), (IMAGE,)),
    "avg_pool": Recipe(lambda x: x.avg_pool2d((3, 2), padding=1), (IMAGE,)),
    "batch_norm": _layer(lambda nn: nn.BatchNorm2d(3), IMAGE),
    "batch_norm_training": Recipe(_training, (IMAGE,)),
    "layer_norm": _layer(lambda nn: nn.LayerNorm(6), ROWS),
    "group_norm": _layer(lambda nn: nn.GroupNorm(3, 3), IMAGE),
    "instance_norm": _layer(lambda nn: nn.InstanceNorm(3), IMAGE),
    "rms_norm": _layer(lambda nn: nn.RMSNorm(6), ROWS),
    "lstm_cell": _layer(lambda nn: nn.LSTMCell(6, 2), ROWS),
    "attention": Recipe(lambda q, k, v: q.scaled_dot_product_attention(k, v), HEADS),
    "attention_causal": Recipe(lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True), HEADS),
    "attention_masked": Recipe(
        lambda q, k, v, m: q.scaled_dot_product_attention(k, v, attn_mask=m),
        (*HEADS, truths(4, 4) | np.eye(4, dtype=bool)),
    ),
    "cross_entropy": Recipe(lambda x, y: x.cross_entropy(y), (ROWS, CLASSES)),
    "cross_entropy_smooth": Recipe(
        lambda x, y: x.cross_entropy(y, reduction="none", label_smoothing=0.1), (ROWS, CLASSES)
    ),
    "sparse_cross_entropy": Recipe(lambda x, y: x.sparse_categorical_crossentropy(y), (ROWS, CLASSES)),
    "binary_cross_entropy": Recipe(
        lambda x, y: x.sigmoid().binary_crossentropy(y), (ROWS, truths(5, 6).astype(np.float32))
    ),
    "binary_logits": Recipe(lambda x, y: x.binary_crossentropy_logits(y), (ROWS, truths(5, 6).astype(np.float32))),
    "nll_loss": Recipe(lambda x, y: x.log_softmax(1).nll_loss(y), (ROWS, CLASSES)),
    "gradient_of_product": Recipe(_gradients(lambda x, w: (x @ w).relu().square().sum()), (ROWS, floats(6, 3))),
    "gradient_of_conv": Recipe(_gradients(lambda x, w: x.conv2d(w, padding=1).tanh().sum()), (IMAGE, KERNEL)),
    "gradient_of_pool": Recipe(_gradients(lambda x: x.max_pool2d((2, 2)).square().sum()), (IMAGE,)),
    "gradient_of_softmax": Recipe(_gradients(lambda x: (x.softmax(1) * x).sum()), (ROWS,)),
    "gradient_of_attention": Recipe(
        _gradients(lambda q, k, v: q.scaled_dot_product_attention(k, v).square().sum()), HEADS
    ),
    "gradient_of_norm": Recipe(_gradients(lambda x: x.layernorm().sin().sum()), (ROWS,)),
    "gradient_of_loss": Recipe(lambda x, y: list(x.cross_entropy(y).gradient(x)), (ROWS, CLASSES)),
    "gradient_of_index": Recipe(lambda x, i: list(x[i].square().sum().gradient(x)), (ROWS, CLASSES % 4)),
}
