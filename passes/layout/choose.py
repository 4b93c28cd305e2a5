"""Choose the values to store in blocks of channels: convolution results, and values computed from them per pixel."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from tensorkiln import expr
from tensorkiln.dtypes import DType
from tensorkiln.expr import Dim, free_symbols

from ..fuse.costs import MOVEMENT
from ..loops.accesses import loads
from ..loops.index_space import IndexSpace, linear_form
from ..loops.scalar_dag import Interner, Load, conditions_on_indices
from ..trace.tracer import Tracer
from ..trace.traces import TRACES
from ..values import Function, Value

POINTWISE = frozenset({"unary", "binop", "ternary", "cast"})
IMAGE_AXES = 2
"""Least number of dimensions behind the channels of an image."""
LONE_DEPTH = 256
"""Least products per pixel for which a single convolution pays for converting the image to blocks and back: with 3x3
windows of 32 and more channels it takes 0.4 to 0.9 of the time in blocks, with 7x7 windows of 3 channels as long."""

LEAST_PIXELS = 512
"""Least pixels for which weights that may change are stored in blocks at each call."""


@dataclass
class Chosen:
    """`axes` has the channel dimension of every value in blocks. `depths` has, for a sum over the channels of such a
    value, their dimension in the summed operand. `readers` are the movement ops between the two. Padded values in
    `summed` are stored, so that products read them in place, and so are `weights`, which depend on the given
    dimensions of their product: those that are not prepared, and those of depthwise convolutions.
    """

    axes: dict[Value, int] = field(default_factory=dict[Value, int])
    depths: dict[Value, int] = field(default_factory=dict[Value, int])
    readers: set[Value] = field(default_factory=set[Value])
    summed: set[Value] = field(default_factory=set[Value])
    weights: dict[Value, frozenset[str]] = field(default_factory=dict[Value, frozenset[str]])

    def is_product(self, summed: Value) -> bool:
        """Whether the summed operand is a product that is not itself stored in blocks."""
        return summed.kind == "binop" and summed.text("op") == "mul" and summed not in self.axes


def places_of(reduction: Value) -> list[int]:
    """The dimensions of the result that are not reduced; the result may keep reduced dimensions with size 1."""
    (operand,), axes = reduction.operands, reduction.ints("axes")
    kept = [axis for axis in range(len(operand.shape)) if axis not in axes]
    return kept if len(reduction.shape) == len(operand.shape) else list(range(len(kept)))


class Chooser:
    """Chooses the values of a graph to store in blocks of `block` channels.

    A convolution begins a region of such values. A region is kept if another convolution sums over its channels, if a
    convolution in it has overlapping windows and at least LONE_DEPTH products per pixel, or if windows that overlap are
    pooled in it.
    """

    def __init__(self, function: Function, prepared: Collection[Value], block: int) -> None:
        self.symbols, self.prepared, self.block = function.symbols, prepared, block
        self.chosen = Chosen()
        self.region: dict[Value, Value] = {}
        self.first: dict[Value, list[Value]] = {}
        self.lone: set[Value] = set()
        self.fixed: set[Value] = set()
        """Sums of products with weights that are prepared."""

    def run(self, live: Sequence[Value]) -> Chosen:
        """Choose, once, among the values that the results need."""
        for value in live:
            if value not in self.prepared:
                self._add(value)
        gains = {self._first(value) for value in (*self.chosen.depths, *self.lone)}
        kept = {value for value in self.region if self._first(value) in gains}
        axes = {value: axis for value, axis in self.chosen.axes.items() if value in kept}
        depths = {value: axis for value, axis in self.chosen.depths.items() if value in kept}
        first = {each for value, padded in self.first.items() if value in kept for each in padded}
        return Chosen(axes, depths, self.chosen.readers, self.chosen.summed | first, self.chosen.weights)

    def _add(self, value: Value) -> None:
        blocked = [operand for operand in value.operands if operand in self.chosen.axes]
        if value.kind == "reduce_axis":
            self._reduction(value)
        elif not blocked:
            return
        elif value.kind in POINTWISE:
            alike = [operand for operand in blocked if operand.shape == value.shape]
            if alike and all(operand.shape in ((), value.shape) for operand in value.operands):
                self._keep(value, self.chosen.axes[alike[0]], alike)
        elif value.kind == "pad":
            axis = self.chosen.axes[blocked[0]]
            if value.dim_pairs("pad_width")[axis] == (0, 0):
                self._keep(value, axis, blocked)
        elif value.kind == "cat":
            axes = {self.chosen.axes[operand] for operand in blocked}
            if len(blocked) == len(value.operands) and len(axes) == 1:
                self._keep(value, axes.pop(), blocked)
        elif value.kind == "permute" and self._is_trained(blocked[0]):
            self._keep(value, value.ints("axes_permutation").index(self.chosen.axes[blocked[0]]), blocked)
        elif value.kind == "reshape":
            self._reshape(value)

    def _is_trained(self, value: Value) -> bool:
        """Whether no weights of the region so far are parameters. In training steps, convolutions of images with their
        channels last continue the region behind a permutation; in inference, products of tokens do, which lose by it.
        """
        return all(self._first(each) is not self._first(value) for each in self.fixed)

    def _reshape(self, value: Value) -> None:
        """Dimensions before the channels may change, and whole blocks may be split from the channels or merged into
        them.
        """
        (source,) = value.operands
        behind = _long(source.shape[self.chosen.axes[source] + 1 :])
        for axis in reversed(range(len(value.shape))):
            if self._fits(value.shape[axis]) and _long(value.shape[axis + 1 :]) == behind:
                self._keep(value, axis, [source])
                return

    def _reduction(self, value: Value) -> None:
        """Handle a sum over channels and window, or a reduction of each channel by itself."""
        (operand,) = value.operands
        is_sum = value.text("reduce_op_kind") == "sum" and self.chosen.is_product(operand)
        reads = [self._read(factor, operand.shape) for factor in (operand.operands if is_sum else (operand,))]
        known = [read for read in reads if read is not None]
        images = [read for read in known if read.source in self.chosen.axes]
        if len(images) > 1 or (is_sum and value.dtype is not DType.FLOAT32):
            return
        reduced = value.ints("axes")
        kept = [axis for axis in range(len(operand.shape)) if axis not in reduced]
        sources = [read.source for read in images]
        result: int | None = None
        if images:
            axis = self._step(images[0], self.chosen.axes[images[0].source])
            if axis is None:
                return
            if axis in reduced:
                self.chosen.depths[value] = axis
                self.chosen.summed.update(sources)
                self._join(value, sources)
            else:
                result = axis
                self._store_weights([read for read in known if read is not images[0]], axis)
        elif not is_sum or value.dtype is not DType.FLOAT32:
            return
        if result is None and is_sum and len(known) == len(reads):
            result = self._filters(known, kept, operand.shape)
            if result is not None and not images:
                self.first[value] = [each for read in known for each in read.path if each.kind == "pad"]
        if result is not None:
            self._keep(value, places_of(value)[kept.index(result)], sources)
            depth = expr.product([operand.shape[axis] for axis in reduced])
            is_deep = not is_sum or _is_at_least(depth, LONE_DEPTH)
            if is_deep and any(_overlaps(read, reduced) for read in known):
                self.lone.add(value)
        if value in self.region and any(read.source in self.prepared for read in known):
            self.fixed.add(value)
        if images:
            self.chosen.readers.update(images[0].path)

    def _store_weights(self, reads: Sequence[_Read], channels: int) -> None:
        """Store weights of each channel by itself, so that those of a block are contiguous."""
        for read in reads:
            used = free_symbols(read.load.address)
            pixels = expr.product([extent for axis, extent in enumerate(read.shape) if f"d{axis}" not in used])
            if f"d{channels}" in used and (read.source in self.prepared or _is_at_least(pixels, LEAST_PIXELS)):
                self.chosen.weights[read.factor] = used

    def _step(self, read: _Read, dimension: int) -> int | None:
        """The dimension of the reader that steps through `dimension` of the operand, if it covers whole blocks only."""
        names = [f"d{axis}" for axis in range(len(read.shape))]
        form = linear_form(read.load.index[dimension], names)
        if form is None or not _is_multiple(form[0], self.block):
            return None
        steps = [axis for axis, stride in enumerate(form[1]) if stride == 1]
        others = [stride for stride in form[1] if stride != 1]
        if len(steps) != 1 or not all(_is_multiple(stride, self.block) for stride in others):
            return None
        return steps[0] if self._fits(read.shape[steps[0]]) else None

    def _filters(self, reads: Sequence[_Read], kept: Sequence[int], shape: Sequence[Dim]) -> int | None:
        """The dimension of a product that counts filters: only the weights have it, and an image follows it.

        Weights that are not prepared pay for an image of LEAST_PIXELS.
        """
        if len(reads) != 2:
            return None
        for weights, image in permutations(reads):
            is_fixed = weights.source in self.prepared
            if image.source in self.prepared or weights.source in self.chosen.axes:
                continue
            axis = self._filters_of(weights, image, kept, shape)
            if axis is not None and not is_fixed:
                if not _is_at_least(expr.product([shape[other] for other in kept if other > axis]), LEAST_PIXELS):
                    return None
                self.chosen.weights[weights.factor] = free_symbols(weights.load.address)
            if axis is not None:
                return axis
        return None

    def _filters_of(self, weights: _Read, image: _Read, kept: Sequence[int], shape: Sequence[Dim]) -> int | None:
        of_weights = {self._step(weights, dimension) for dimension in range(len(weights.load.index))}
        of_image = free_symbols(image.load.address).union(*map(free_symbols, conditions_on_indices(image.load)))
        for axis in kept:
            if axis in of_weights and f"d{axis}" not in of_image:
                behind = [other for other in kept if other > axis]
                pixels = [other for other in behind if shape[other] != 1]
                is_image = len(behind) >= IMAGE_AXES and all(f"d{other}" in of_image for other in pixels)
                return axis if pixels and is_image else None
        return None

    def _fits(self, extent: Dim) -> bool:
        return isinstance(extent, int) and extent > 0 and extent % self.block == 0

    def _read(self, value: Value, shape: Sequence[Dim]) -> _Read | None:
        """The source of a value behind movement ops, and its index; None if more than one element is read."""
        path: list[Value] = []
        source = value
        while source not in self.chosen.axes and source.kind in MOVEMENT and len(source.operands) == 1:
            path.append(source)
            (source,) = source.operands
        space, nodes = IndexSpace(self.symbols), Interner()
        index = tuple(0 if extent == 1 else space.add(f"d{axis}", extent) for axis, extent in enumerate(shape))
        if value.shape != tuple(shape):
            return None
        found = loads((Tracer(space, {source: 0}, TRACES, nodes).element(value, index),), nodes)
        return _Read(source, path, found[0], tuple(shape)) if len(found) == 1 and found[0].index else None

    def _keep(self, value: Value, axis: int, sources: Sequence[Value]) -> None:
        self.chosen.axes[value] = axis
        self._join(value, sources)

    def _join(self, value: Value, sources: Sequence[Value]) -> None:
        self.region.setdefault(value, value)
        for source in sources:
            self.region[self._first(source)] = self._first(value)

    def _first(self, value: Value) -> Value:
        """The representative of a value's region (union-find with path halving)."""
        while self.region[value] is not value:
            self.region[value] = value = self.region[self.region[value]]
        return value


@dataclass(frozen=True)
class _Read:
    """A read of `source` through the movement ops `path`, at the index of `load` by the dimensions of `shape`."""

    source: Value
    path: Sequence[Value]
    load: Load
    shape: tuple[Dim, ...]

    @property
    def factor(self) -> Value:
        """The value that is read behind the movement ops."""
        return self.path[0] if self.path else self.source


def _long(shape: Sequence[Dim]) -> list[Dim]:
    return [extent for extent in shape if extent != 1]


def _overlaps(read: _Read, reduced: Sequence[int]) -> bool:
    """Whether the windows of an image overlap: the step between them is shorter than a window."""
    names = [f"d{axis}" for axis in range(len(read.shape))]
    for dimension in read.load.index:
        form = linear_form(dimension, names)
        if form is None:
            return False
        strides = [(axis, abs(stride)) for axis, stride in enumerate(form[1]) if isinstance(stride, int) and stride]
        steps = [stride for axis, stride in strides if axis not in reduced]
        sizes = [(read.shape[axis], stride) for axis, stride in strides if axis in reduced]
        spans = [(extent - 1) * stride for extent, stride in sizes if isinstance(extent, int)]
        if steps and spans and min(steps) <= sum(spans):
            return True
    return False


def _is_at_least(dim: Dim, least: int) -> bool:
    return isinstance(dim, int) and dim >= least


def _is_multiple(dim: Dim, block: int) -> bool:
    return isinstance(dim, int) and dim % block == 0
