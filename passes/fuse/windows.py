"""Stored values that need no kernel: their elements are contiguous in a value that is already in memory.

Kernels read such a window as elements of its base, so that their pointers keep the alignment of storages. A consumer of
a whole buffer, such as a callback or a result, gets the window itself.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tensorkiln import expr
from tensorkiln.expr import Dim

from ..loops.domain import Domain, domain_of
from ..loops.index_space import IndexSpace
from ..loops.scalar_dag import Apply, Interner, Load, Node
from ..trace.tracer import Tracer
from ..trace.traces import TRACES
from ..values import Function, Value
from .costs import MOVEMENT
from .materialise import lives_in_memory

AS_IT_IS = frozenset({"custom", "copy", "while", "while_result"})
"""Ops that take a whole buffer, not elements of it."""
NOT_OURS = frozenset({"argument", "custom", "copy", "while_result"})
"""Kinds of values that no kernel stores."""
_WHOLE = frozenset({"scatter", "while"})
"""Ops whose operands need storage of their own."""
KEEPING = MOVEMENT | {"bitcast", "contiguous"}
"""Ops whose result holds elements of their operands unchanged."""
_STOP = -1
"""The operand number of a value that tracing stops at although it is not in memory."""


@dataclass(frozen=True, slots=True)
class Window:
    """The place of a value: from byte `offset` on in `base`, which is in memory and is not a window."""

    base: Value
    offset: Dim

    @property
    def first_element(self) -> Dim:
        """The offset in elements of the base."""
        return expr.split_multiple(self.offset, self.base.dtype.itemsize)[0]

    def is_all_of(self, value: Value) -> bool:
        """Whether `value`, which lies here, covers all of the base."""
        return self.offset == 0 and value.size_bytes == self.base.size_bytes


class Windows:
    """The windows found so far. `numbers` are the positions of the values in memory, including windows."""

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
        """The window that `value` is, given its `element` traced over `domain`; None if a kernel should compute it."""
        read_by = {user.kind for user in self.users[value]}
        begins = self._begins_scatters(value)
        if not read_by.isdisjoint(_WHOLE) and not begins:
            # A scatter reads its operands directly, and the kernels of a loop need aligned operands.
            return None
        window = self._of_element(value, domain, element)
        if begins and (window is None or not window.is_all_of(value)):
            return None
        if window is None and read_by <= AS_IT_IS:
            window = self._across_widths(value)
        if window is None or not self._is_readable(value, window) or not self._is_worth(value, window):
            return None
        self.found[value] = window
        return window

    def base(self, value: Value) -> Value:
        """The value that a kernel reads for `value`, which is in memory."""
        window = self.found.get(value)
        return value if window is None else window.base

    def place_of(self, value: Value) -> Window | None:
        """Where the elements of `value` are, if they are contiguous in memory."""
        return self._within(value, 0) if value in self.numbers else self._across_widths(value) or self.traced_to(value)

    def located(self, load: Load) -> tuple[Value, Load]:
        """The value that a load reads in a kernel, and the load at its address there."""
        value = self.values[load.operand]
        window = self.found.get(value)
        if window is None:
            return value, load
        address = expr.add(window.first_element, load.address)
        return window.base, Load(load.dtype, self.numbers[window.base], address, load.conditions)

    def _begins_scatters(self, value: Value) -> bool:
        """Whether the value is where scatters begin, which may take its place, and nothing else reads it whole."""
        whole = [user for user in self.users[value] if user.kind in _WHOLE]
        return bool(whole) and all(user.kind == "scatter" and value not in user.operands[:2] for user in whole)

    def _of_element(self, value: Value, domain: Domain, element: Node, stop: Value | None = None) -> Window | None:
        """The window, if all elements of `value` are loads that walk memory in the layout of `value`."""
        while isinstance(element, Apply) and element.op == "bitcast" and not element.dtype.is_bool:
            (element,) = element.args
        if not isinstance(element, Load) or element.conditions:
            return None
        source = stop if stop is not None and element.operand == _STOP else self.values[element.operand]
        first = expr.sub(element.address, domain.address)
        # Other bytes must not be reinterpreted as bools, nor bools as numbers.
        if not expr.free_symbols(first) <= self.symbols or source.dtype.is_bool != value.dtype.is_bool:
            return None
        return self._within(source, expr.mul(first, source.dtype.itemsize))

    def _within(self, source: Value, offset: Dim) -> Window:
        outer = self.found.get(source)
        return Window(source, offset) if outer is None else Window(outer.base, expr.add(outer.offset, offset))

    def _across_widths(self, value: Value) -> Window | None:
        """The window if a bitcast behind `value` changes the item size: it keeps the bytes, but not the index."""
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
        """The nearest bitcast between item sizes that `value` is reached from by movement ops."""
        while value.kind != "bitcast" or value.dtype.itemsize == value.operands[0].dtype.itemsize:
            if len(value.operands) != 1 or value.kind not in KEEPING:
                return None
            (value,) = value.operands
            if value in self.numbers:
                return None
        return value

    def traced_to(self, value: Value, stop: Value | None = None) -> Window | None:
        """The window of `value` in a value in memory, or in `stop`."""
        self._traced += 1
        domain = domain_of(value, self.space, f"w{self._traced}_")
        stops = self.numbers if stop is None else ChainMap({stop: _STOP}, self.numbers)
        element = Tracer(self.space, stops, TRACES, self.nodes).define(value, domain.index(value.shape))
        return self._of_element(value, domain, element, stop)

    def _is_readable(self, value: Value, window: Window) -> bool:
        """Whether the bytes are valid elements of `value`, at an address aligned for both dtypes."""
        base = window.base
        if value.dtype.is_bool and base.kind in NOT_OURS:
            # In memory that no kernel has stored, true may be any byte but 0.
            return False
        widest = max(value.dtype.itemsize, base.dtype.itemsize)
        # Callers align an array for its own type.
        is_aligned = base.kind != "argument" or value.dtype.itemsize <= base.dtype.itemsize
        return is_aligned and expr.split_multiple(window.offset, widest)[1] == 0

    def _is_worth(self, value: Value, window: Window) -> bool:
        """Whether keeping the base alive for the window costs little: it is kept anyway, or is not much larger."""
        base = window.base
        if lives_in_memory(base) or base in self.results:
            return True
        if value in self.results:
            return window.is_all_of(value)
        return self.space.is_nonnegative(expr.sub(expr.mul(2, value.size_bytes), base.size_bytes))
