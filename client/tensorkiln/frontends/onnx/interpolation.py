"""Values between elements, by which images are resized and sampled."""

from __future__ import annotations

from typing import Final, TypeVar

from ...build import Tensor
from .value import Host

Away = TypeVar("Away", Tensor, Host)

CUBIC: Final = -0.75
"""The coefficient of cubic convolution that ONNX takes unless it is told another."""


def cubic(away: Away, a: float) -> tuple[Away, Away]:
    """The kernel of cubic convolution (Keys 1981) at a distance of up to 1, and at one of 1 to 2."""
    near = ((a + 2) * away - (a + 3)) * away * away + 1.0
    far = ((a * away - 5 * a) * away + 8 * a) * away - 4 * a
    return near, far
