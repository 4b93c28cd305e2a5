"""The inverted residual block with squeeze-and-excite: MobileNetV3 and EfficientNet by its activations."""

from __future__ import annotations

from torch import Tensor, nn


def normal(inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """A convolution that keeps the size but for its stride, and batch normalization."""
    layer = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs, eps=1e-3))


class SqueezeExcite(nn.Module):
    """A factor for each channel, of the means of all channels."""

    def __init__(self, channels: int, squeezed: int, activation: nn.Module, gate: nn.Module) -> None:
        super().__init__()
        self.mean = nn.AdaptiveAvgPool2d(1)
        self.down, self.activation = nn.Conv2d(channels, squeezed, 1), activation
        self.up, self.gate = nn.Conv2d(squeezed, channels, 1), gate

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(self.up(self.activation(self.down(self.mean(x)))))


class Inverted(nn.Module):
    """Expand, filter each channel, excite, project; the input is added where the shapes agree."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int, activation: nn.Module, excite: SqueezeExcite
    ) -> None:
        super().__init__()
        hidden = excite.down.in_channels
        self.layers = nn.Sequential(
            normal(inputs, hidden),
            activation,
            normal(hidden, hidden, kernel, stride, hidden),
            activation,
            excite,
            normal(hidden, outputs),
        )
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(x)
        return x + y if self.adds else y
