"""Stored values that need no kernel: their elements lie side by side in a value that is in memory already.

Kernels read such a window as elements of its base, so that their own pointers stay as aligned as storages are. What
takes a buffer as it is, a callback or a result, is given the window.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tensorkiln import expr
from tensorkiln.expr import Dim

from ..loops.domain import Domain, domain_of
from ..loops.index_space import IndexSpace, split_multiple
from ..loops.scalar_dag import Apply, Interner, Load, Node
from ..trace.tracer import Tracer
from ..trace.traces import TRACES
from ..values import Function, Value
from .costs import MOVEMENT
from .materialise import lives_in_memory

AS_IT_IS = frozenset({"custom", "copy", "while", "while_result"})
"""Ops that take a buffer and no elements of it."""
NOT_OURS = frozenset({"argument", "custom", "copy", "while_result"})
"""What makes a value that no kernel stores."""
_WHOLE = frozenset({"scatter", "while"})
"""Ops whose operands lie in memory of their own."""
KEEPING = MOVEMENT | {"bitcast", "contiguous"}
"""Ops whose result holds elements of their operands as they are."""
_STOP = -1
"""Where tracing stops at a value that is in no memory."""


@dataclass(frozen=True, slots=True)
class Window:
    """Where a value lies: from byte `offset` of `base` on, which is in memory itself and no window."""

    base: Value
    offset: Dim

    @property
    def first_element(self) -> Dim:
        """The offset in elements of the base."""
        return split_multiple(self.offset, self.base.dtype.itemsize)[0]

    def is_all_of(self, value: Value) -> bool:
        """Whether `value`, which lies here, takes all of the base."""
        return self.offset == 0 and value.size_bytes == self.base.size_bytes


class Windows:
    """The windows found so far. `numbers` are the positions of the values in memory, found windows included."""

    def __init__(
        self,
        function: Function,
        users: Mapping[Value, Sequence[Value]],
        space: IndexSpace,
        nodes: Interner,
        numbers: dict[Value, int],
    ) -> None:
        self.users, self.space, self.nodes, self.numbers = users, space, nodes, numbers
        self.values = list(numbers)
        self.symbols = function.symbols.keys()
        self.results = frozenset(function.results)
        self.found: dict[Value, Window] = {}
        self._traced = 0

    def find(self, value: Value, domain: Domain, element: Node) -> Window | None:
        """The window that `value` is, whose `element` was traced over `domain`; None when it is better computed."""
        read_by = {user.kind for user in self.users[value]}
        if not read_by.isdisjoint(_WHOLE):
            # A scatter is realised by its operands as they are, a loop by kernels that need them aligned.
            return None
        window = self._of_element(value, domain, element)
        if window is None and read_by <= AS_IT_IS:
            window = self._across_widths(value)
        if window is None or not self._is_readable(value, window) or not self._is_worth(value, window):
            return None
        self.found[value] = window
        return window

    def base(self, value: Value) -> Value:
        """What a kernel reads for `value`, which is in memory."""
        window = self.found.get(value)
        return value if window is None else window.base

    def place_of(self, value: Value) -> Window | None:
        """Where the elements of `value` are, if they lie side by side in memory."""
        return self._within(value, 0) if value in self.numbers else self._across_widths(value) or self.traced_to(value)

    def located(self, load: Load) -> tuple[Value, Load]:
        """What a load reads in a kernel, and the load in its terms."""
        value = self.values[load.operand]
        window = self.found.get(value)
        if window is None:
            return value, load
        address = expr.add(window.first_element, load.address)
        return window.base, Load(load.dtype, self.numbers[window.base], address, load.conditions)

    def _of_element(self, value: Value, domain: Domain, element: Node, stop: Value | None = None) -> Window | None:
        """The window when all elements of `value` are loads that walk memory as `value` is laid out."""
        while isinstance(element, Apply) and element.op == "bitcast" and not element.dtype.is_bool:
            (element,) = element.args
        if not isinstance(element, Load) or element.conditions:
            return None
        source = stop if stop is not None and element.operand == _STOP else self.values[element.operand]
        first = expr.sub(element.address, domain.address)
        # Bytes that are no bool must not become one as they are, nor a byte of a bool be read as a number.
        if not expr.free_symbols(first) <= self.symbols or source.dtype.is_bool != value.dtype.is_bool:
            return None
        return self._within(source, expr.mul(first, source.dtype.itemsize))

    def _within(self, source: Value, offset: Dim) -> Window:
        outer = self.found.get(source)
        return Window(source, offset) if outer is None else Window(outer.base, expr.add(outer.offset, offset))

    def _across_widths(self, value: Value) -> Window | None:
        """The window when a bitcast behind `value` splits or joins elements: that keeps the bytes, not the index."""
        cast = self._cast_behind(value)
        if cast is None or cast.dtype.is_bool:
            return None
        (source,) = cast.operands
        inner = self.place_of(source)
        outer = Window(cast, 0) if cast is value else self.traced_to(value, cast)
        if inner is None or outer is None or outer.base is not cast or source.dtype.is_bool:
            return None
        return Window(inner.base, expr.add(inner.offset, outer.offset))

    def _cast_behind(self, value: Value) -> Value | None:
        """The nearest bitcast across sizes that `value` is a movement of."""
        while value.kind != "bitcast" or value.dtype.itemsize == value.operands[0].dtype.itemsize:
            if len(value.operands) != 1 or value.kind not in KEEPING:
                return None
            (value,) = value.operands
            if value in self.numbers:
                return None
        return value

    def traced_to(self, value: Value, stop: Value | None = None) -> Window | None:
        """The window that `value` is of what is in memory, or of `stop`."""
        self._traced += 1
        domain = domain_of(value, self.space, f"w{self._traced}_")
        stops = self.numbers if stop is None else ChainMap({stop: _STOP}, self.numbers)
        element = Tracer(self.space, stops, TRACES, self.nodes).define(value, domain.index(value.shape))
        return self._of_element(value, domain, element, stop)

    def _is_readable(self, value: Value, window: Window) -> bool:
        """Whether the bytes there are elements of `value`, and start where an element of either type may."""
        base = window.base
        if value.dtype.is_bool and base.kind in NOT_OURS:
            # True may be any byte but 0 where no kernel has stored it.
            return False
        widest = max(value.dtype.itemsize, base.dtype.itemsize)
        # Callers align an array for its own type.
        is_aligned = base.kind != "argument" or value.dtype.itemsize <= base.dtype.itemsize
        return is_aligned and split_multiple(window.offset, widest)[1] == 0

    def _is_worth(self, value: Value, window: Window) -> bool:
        """Whether keeping the base as long as the window costs little: it is kept anyway, or not much larger."""
        base = window.base
        if lives_in_memory(base) or base in self.results:
            return True
        if value in self.results:
            return window.is_all_of(value)
        return self.space.is_nonnegative(expr.sub(expr.mul(2, value.size_bytes), base.size_bytes))
