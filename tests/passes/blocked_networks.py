"""Networks whose images lie in blocks of channels, and some that do not."""

from __future__ import annotations

from collections.abc import Callable

from tensorkiln.build import Builder, Tensor, avg_pool2d, batch_norm, cat, conv2d, max_pool2d, pad, relu, sigmoid, where

Write = Callable[[Builder], Tensor]
AVX2, AVX512 = "cpu:x86-64-v3", "cpu:x86-64-v4"


def convolved(b: Builder, x: Tensor, filters: int, size: int = 3, *, stride: int = 1, groups: int = 1) -> Tensor:
    """A convolution with a bias that keeps the size of the image, divided by the stride."""
    channels = x.shape[1]
    assert isinstance(channels, int)
    weights = b.parameter("float32", (filters, channels // groups, size, size))
    bias = b.parameter("float32", (filters,)).reshape((1, filters, 1, 1))
    pads = (size // 2, size // 2)
    return conv2d(x, weights, stride=stride, padding=pads, groups=groups) + bias


def image(b: Builder, channels: int = 3, height: int = 9, width: int = 14) -> Tensor:
    return b.input("float32", (1, channels, height, width))


def plain(b: Builder) -> Tensor:
    return convolved(b, relu(convolved(b, image(b), 32)), 32)


def unbiased(b: Builder) -> Tensor:
    """A convolution, and a pooling that reads its image more than once."""
    x = conv2d(image(b, 8), b.parameter("float32", (48, 8, 1, 1)))
    return convolved(b, max_pool2d(x, 3, padding=(1, 1)), 16, 1)


def strided(b: Builder) -> Tensor:
    return convolved(b, relu(convolved(b, image(b), 16, stride=2)), 48, stride=2)


def residual(b: Builder) -> Tensor:
    x = relu(convolved(b, image(b), 32))
    y = convolved(b, relu(convolved(b, x, 16, 1)), 32)
    return relu(convolved(b, x + y, 32, 1) + x)


def normalised(b: Builder) -> Tensor:
    x = convolved(b, image(b), 32)
    mean, variance, scale, shift = (b.parameter("float32", (32,)) for _ in range(4))
    return convolved(b, relu(batch_norm(x, scale, shift, mean, variance * variance)), 16)


def pooled(b: Builder) -> Tensor:
    x = max_pool2d(relu(convolved(b, image(b), 32)), 3, stride=2, padding=(1, 1))
    return avg_pool2d(convolved(b, x, 32), 2)


def joined(b: Builder) -> Tensor:
    x = relu(convolved(b, image(b), 16))
    for _ in range(3):
        x = cat([x, relu(convolved(b, convolved(b, x, 32, 1), 16))], axis=1)
    return convolved(b, x, 32, 1)


def alone_with_long_sums(b: Builder) -> Tensor:
    return relu(convolved(b, image(b, 32), 32))


def alone_with_a_pool(b: Builder) -> Tensor:
    """Of few products for each pixel, and pooled by windows that overlap."""
    return max_pool2d(relu(convolved(b, image(b), 32)), 3, stride=2, padding=1)


def shuffled(b: Builder) -> Tensor:
    """Groups of 10 channels in another order, each scaled in the padded image of a depthwise convolution."""
    x = convolved(b, image(b, 40), 40, 1, groups=4)
    x = x.reshape((1, 4, 10, 9, 14)).permute((0, 2, 1, 3, 4)).reshape((1, 40, 9, 14))
    scale, shift = b.parameter("float32", (40, 1, 1)), b.parameter("float32", (40, 1, 1))
    x = convolved(b, relu(x * scale + shift), 40, 3, stride=2, groups=40)
    return convolved(b, x, 40, 1, groups=4)


def joined_with_what_is_plain(b: Builder) -> Tensor:
    x = relu(convolved(b, image(b), 16))
    return convolved(b, cat([x, b.input("float32", (1, 16, 9, 14))], axis=1), 16)


def grouped(b: Builder) -> Tensor:
    return convolved(b, relu(convolved(b, image(b), 64)), 96, groups=2)


def groups_of_parts_of_blocks(b: Builder) -> Tensor:
    x = relu(convolved(b, image(b), 32))
    return convolved(b, convolved(b, x, 32, groups=4), 32, 1)


def depthwise(b: Builder) -> Tensor:
    x = relu(convolved(b, image(b), 32, 1))
    return convolved(b, relu(convolved(b, x, 32, groups=32)), 16, 1)


def depthwise_around_lines(b: Builder) -> Tensor:
    """Windows of many sizes and steps, which read padding under conditions."""
    x = relu(convolved(b, image(b, 3, 11, 14), 32, 1))
    x = relu(convolved(b, x, 32, 5, groups=32))
    x = relu(convolved(b, x, 32, 3, stride=2, groups=32))
    weights = b.parameter("float32", (32, 1, 3, 3))
    x = relu(conv2d(x * 2.0 + 1.0, weights, padding=((2, 1), (0, 3)), dilation=2, groups=32))
    return convolved(b, x, 16, 1)


def depthwise_of_any_batch(b: Builder) -> Tensor:
    x = b.input("float32", (b.symbol("n", 1, 9), 3, 9, 14))
    x = relu(convolved(b, relu(convolved(b, x, 32, 1)), 32, groups=32))
    return convolved(b, relu(convolved(b, x, 32, 7, groups=32)), 16, 1)


def depthwise_of_arguments(b: Builder) -> Tensor:
    """Weights of a depthwise convolution that may change are stored in blocks at each call if the pixels are many."""
    x = relu(convolved(b, image(b, 16, 24, 26), 32))
    x = relu(conv2d(x, b.input("float32", (32, 1, 3, 3)), groups=32))
    return convolved(b, conv2d(x, b.input("float32", (32, 1, 3, 3)), stride=2, groups=32), 16, 1)


def channels_last(b: Builder) -> Tensor:
    """A training step's convolutions of images with their channels last, statistics of a batch between them."""
    x = b.input("float32", (b.symbol("n", 1, 9), 24, 26, 16))
    for filters in (32, 16):
        weights = b.input("float32", (3, 3, x.shape[3], filters)).permute((3, 2, 0, 1))
        x = conv2d(x.permute((0, 3, 1, 2)), weights, padding=(1, 1)).permute((0, 2, 3, 1))
        x = relu(x - x.mean((0, 1, 2), keepdims=True).expand(x.shape)) * 0.1
    return x


def squeezed(b: Builder) -> Tensor:
    x = relu(convolved(b, image(b), 32))
    scale = sigmoid(convolved(b, x.mean((2, 3), keepdims=True), 32, 1))
    return convolved(b, x * scale.expand(x.shape), 16, 1)


def returned(b: Builder) -> Tensor:
    """What lies in blocks is a result, too, and is read by more than convolutions."""
    x = relu(convolved(b, image(b), 32))
    b.output(x, x.permute((0, 2, 3, 1)) * 2.0)
    return convolved(b, x, 16) + x.sum((1, 2, 3), keepdims=True).expand((1, 16, 9, 14))


def padded_channels(b: Builder) -> Tensor:
    x = relu(convolved(b, image(b), 32))
    return convolved(b, pad(x, ((0, 0), (16, 16), (1, 0), (0, 2))), 16)


def compared(b: Builder) -> Tensor:
    """Elements of other types lie in blocks as well."""
    x = convolved(b, image(b), 32)
    return convolved(b, where(x > 0.0, x, x * 0.1), 16)


def of_any_batch(b: Builder) -> Tensor:
    x = b.input("float32", (b.symbol("n", 1, 40), 3, 9, 14))
    return convolved(b, relu(convolved(b, x, 32)), 32)


def of_any_height(b: Builder) -> Tensor:
    x = b.input("float32", (1, 3, b.symbol("h", 4, 40), 14))
    return convolved(b, relu(convolved(b, x, 32)), 32)


def flattened(b: Builder) -> Tensor:
    x = max_pool2d(relu(convolved(b, relu(convolved(b, image(b), 16)), 32)), 2)
    return x.reshape((1, 32 * 4 * 7)) @ b.parameter("float32", (32 * 4 * 7, 10))


def of_squares(b: Builder) -> Tensor:
    """The variance of each image: a sum of products that lie in blocks."""
    x = convolved(b, image(b), 32)
    spread = (x * x).sum((2, 3), keepdims=True)
    return convolved(b, x / (spread + 1.0).expand(x.shape), 16)


def of_weights_that_change(b: Builder) -> Tensor:
    """It reads blocks, stores rows, and is added to what lies in blocks."""
    x = relu(convolved(b, image(b), 32))
    y = conv2d(x, b.input("float32", (32, 32, 1, 1)))
    return convolved(b, x + y, 16)


def of_arguments_on_many_pixels(b: Builder) -> Tensor:
    """Weights that may change are stored in blocks at each call."""
    x = relu(conv2d(image(b, 3, 24, 26), b.input("float32", (32, 3, 3, 3)), padding=(1, 1)))
    return conv2d(x, b.input("float32", (64, 16, 3, 3)), groups=2)


def of_a_padded_image(b: Builder) -> Tensor:
    """What is padded for a product is added to its result."""
    x = pad(image(b, 16), ((0, 0), (0, 0), (1, 1), (2, 2)))
    y = conv2d(x, b.parameter("float32", (16, 16, 1, 1)))
    return convolved(b, y + x, 16)


CASES: dict[str, Write] = (
    {
        each.__name__: each
        for each in (
            plain,
            strided,
            residual,
            normalised,
            pooled,
            joined,
            joined_with_what_is_plain,
            alone_with_long_sums,
            alone_with_a_pool,
            shuffled,
            grouped,
            depthwise,
            depthwise_of_arguments,
            channels_last,
            unbiased,
        )
    }
    | {
        each.__name__: each
        for each in (groups_of_parts_of_blocks, squeezed, returned, padded_channels, compared, of_any_batch, flattened)
    }
    | {each.__name__: each for each in (of_any_height, of_squares, of_weights_that_change, of_a_padded_image)}
    | {each.__name__: each for each in (of_arguments_on_many_pixels, depthwise_around_lines, depthwise_of_any_batch)}
)


PLAIN = {("of_any_height", AVX2), ("of_any_height", AVX512)} | {
    ("joined_with_what_is_plain", AVX2),
    ("joined_with_what_is_plain", AVX512),
    ("groups_of_parts_of_blocks", AVX512),
    ("shuffled", AVX2),
    ("shuffled", AVX512),
}
"""What is not read in blocks: windows of any height, a cat of which not all is, and groups that end within a block."""
