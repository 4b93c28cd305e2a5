"""Gradients of resizing, pooling and attention: operators of backward passes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .case import Case, drawn, of

aten = torch.ops.aten
IMAGE = (2, 3, 4, 5)
VOLUME = (1, 2, 4, 5, 6)


def smooth(g: Tensor, h: Tensor, line: Tensor, volume: Tensor) -> tuple[Tensor, ...]:
    """Of images of 8 by 7 and 6 by 10 elements, a line of 9, and a volume of 8 by 5 by 3."""
    return (
        aten.upsample_bilinear2d_backward(g, [8, 7], IMAGE, False),
        aten.upsample_bilinear2d_backward(g, [8, 7], IMAGE, True),
        aten.upsample_bilinear2d_backward(h, [6, 10], IMAGE, False, 1.6, 2.0),
        aten.upsample_bicubic2d_backward(g, [8, 7], IMAGE, False),
        aten.upsample_bicubic2d_backward(h, [6, 10], IMAGE, True),
        aten._upsample_bilinear2d_aa_backward(g, [8, 7], (2, 3, 16, 9), False),
        aten.upsample_linear1d_backward(line, [9], (2, 3, 4), False),
        aten.upsample_trilinear3d_backward(volume, [8, 5, 3], VOLUME, False),
        aten.upsample_bilinear2d_backward(g.half(), [8, 7], IMAGE, False),
    )


def nearest(g: Tensor, h: Tensor, line: Tensor, volume: Tensor) -> tuple[Tensor, ...]:
    return (
        aten.upsample_nearest2d_backward(g, [8, 7], IMAGE),
        aten.upsample_nearest2d_backward(h, [6, 10], IMAGE, 1.6, 2.0),
        aten._upsample_nearest_exact2d_backward(g, [8, 7], IMAGE),
        aten.upsample_nearest1d_backward(line, [9], (2, 3, 4)),
        aten.upsample_nearest3d_backward(volume, [8, 5, 3], VOLUME),
        aten._upsample_nearest_exact3d_backward(volume, [8, 5, 3], VOLUME),
        aten.upsample_nearest2d_backward(g.half(), [8, 7], IMAGE),
    )


def pooled(x: Tensor, image: Tensor) -> tuple[Tensor, ...]:
    means = F.avg_pool3d(x, 2, 1, 1)
    greatest, places = F.max_pool3d(x, (2, 3, 2), 2, (1, 1, 0), return_indices=True)
    few = F.adaptive_avg_pool3d(x, (2, 3, 1))
    most, at = F.adaptive_max_pool2d(image, (3, 2), return_indices=True)
    return (
        aten.avg_pool3d_backward(means.sin(), x, [2] * 3, [1] * 3, [1] * 3, False, False, None),
        aten.avg_pool3d_backward(means.sin(), x, [2] * 3, [1] * 3, [1] * 3, False, True, 5),
        aten.max_pool3d_with_indices_backward(greatest.sin(), x, [2, 3, 2], [2] * 3, [1, 1, 0], [1] * 3, False, places),
        aten._adaptive_avg_pool3d_backward(few.sin(), x),
        most,
        at,
        aten.adaptive_max_pool2d_backward(most.sin(), image, at),
        F.adaptive_max_pool2d(image.round(), (2, 1), return_indices=True)[1],
        F.adaptive_max_pool3d(x.round(), (3, 2, 6), return_indices=True)[1],
    )


def replicated(x: Tensor) -> tuple[Tensor, ...]:
    """Of lines, images and volumes with copies of their edges, and with parts removed."""
    cases = [(F.pad(x, widths, "replicate"), x, widths) for widths in ([1, 2, 0, 3], [3, -1, -2, 1], [-2, 4, -3, 0])]
    image = [aten.replication_pad2d_backward(wide.sin(), x, widths) for wide, x, widths in cases]
    volume = F.pad(x, [2, 1, 0, -1, 1, 4], "replicate")
    line = F.pad(x[0], [5, 0], "replicate").half()
    return (
        *image,
        aten.replication_pad3d_backward(volume.cos(), x, [2, 1, 0, -1, 1, 4]),
        aten.replication_pad1d_backward(line, x[0].half(), [5, 0]),
    )


def of_scalars(g: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    return (
        aten._softmax_backward_data(g, F.softmax(x, 0), 0, torch.float32),
        aten._log_softmax_backward_data(g, F.log_softmax(x, -1), -1, torch.float32),
    )


def attended(is_causal: bool):
    """The decompositions of torch replace the forward operator alone, and give the other one weights."""

    def function(g: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        found, logarithms = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, is_causal)
        return aten._scaled_dot_product_flash_attention_for_cpu_backward(g, q, k, v, found, logarithms, 0.0, is_causal)

    return function


RESIZED = (drawn(2, 3, 8, 7), drawn(2, 3, 6, 10), drawn(2, 3, 9), drawn(1, 2, 8, 5, 3))
HEADS = tuple(drawn(2, 4, 6, 8, seed=seed) for seed in range(4))

CASES: dict[str, Case] = {
    "smooth": of(smooth, *RESIZED),
    "nearest": of(nearest, *RESIZED),
    "doubled": of(
        lambda g: aten.upsample_nearest2d_backward(g, [2 * (g.shape[2] // 2), 8], [2, 3, g.shape[2] // 2, 4]),
        drawn(2, 3, 8, 8),
    ),
    "pooled": of(pooled, drawn(*VOLUME), drawn(2, 3, 7, 5)),
    "replicated": of(replicated, drawn(*IMAGE)),
    "replicated_images": of(
        lambda g: aten.replication_pad2d_backward(g, g[:, :, 1:-2, 2:], [2, 0, 1, 2]),
        drawn(2, 3, 8, 6),
        dynamic=({0: (2, 9), 2: (5, 20)},),
        more=[(drawn(4, 3, 5, 6),), (drawn(3, 3, 19, 6),)],
    ),
    "of_scalars": of(of_scalars, drawn(), drawn(seed=1)),
    "attended": of(attended(False), *HEADS),
    "attended_causally": of(attended(True), *HEADS),
}
