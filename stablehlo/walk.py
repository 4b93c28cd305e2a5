"""Translation of a module's operations in order, starting at `@main`, with calls inlined."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from dialect.mlir import ir
from tensorkiln.build import Builder, Tensor
from tensorkiln.errors import InvalidGraphError, LimitExceededError, UnsupportedGraphError
from tensorkiln.expr import Dim, ExprError, ExprLimitError
from tensorkiln.limits import MAX_NODES

from .constants import Constants
from .folding import folded
from .loops import Captured
from .op import Mode, Op, Surroundings
from .operators import COMPLEX, ELEMENTWISE, OPERATORS, STRUCTURAL
from .table import Translator
from .value import Known, Pair, Value

MAX_DEPTH: Final = 64
"""The most nested calls and regions."""
MAX_STEPS: Final = 500_000
"""The most operations translated, counting all turns of loops."""
_TERMINATORS: Final = frozenset({"func.return", "stablehlo.return"})


class Walk:
    """One translation. `functions` are the module's, by name; `unbounded` are symbols without bounds so far."""

    def __init__(
        self, builder: Builder, functions: Mapping[str, ir.Operation], unbounded: Collection[str] = ()
    ) -> None:
        self._builder = builder
        self._functions = functions
        self._around = Surroundings(
            builder, Constants(builder), self._region, self._called, self._apart, {}, unbounded, self._seen
        )
        self._scopes: list[dict[Any, Value]] = []
        self._depth = 0
        self._steps = 0
        self._calls: list[str] = []
        self._places: list[tuple[int, Op]] = []
        """Operations, each with the number of nodes before it."""

    def function(self, op: ir.Operation, arguments: Sequence[Value]) -> tuple[list[Value], Op]:
        """The results of a function, and its terminator."""
        self._scopes.append({})
        try:
            return self._block(only_block(op.regions[0]), arguments, Mode())
        finally:
            self._scopes.pop()

    def locations(self) -> tuple[str, ...]:
        """The source location of each node of the graph; empty for inputs."""
        found: list[str] = []
        ends = [*(nodes for nodes, _ in self._places[1:]), self._builder.node_count]
        # `strict=False`: without operations, `ends` still has one entry.
        for (begin, op), end in zip(self._places, ends, strict=False):
            if end > begin:
                found += [""] * (begin - len(found)) + [f"{op.name} at {op.where}"] * (end - begin)
        return (*found, *[""] * (self._builder.node_count - len(found)))

    def _called(self, op: Op, name: str, arguments: Sequence[Value]) -> list[Value]:
        target = self._functions.get(name)
        if target is None:
            op.invalid("it calls a function that the module does not have")
        if name in self._calls:
            op.fail("its function calls itself")
        self._calls.append(name)
        self._scopes.append({})
        try:
            return self._inside(target.regions[0], arguments, op.mode)
        finally:
            self._scopes.pop()
            self._calls.pop()

    def _apart(self, op: Op, region: Any) -> _Apart:
        return _Apart(self, op, region)

    def _seen(self, result: Any) -> Value:
        return self._scopes[-1][result]

    def _region(self, region: Any, arguments: Sequence[Value], mode: Mode) -> list[Value]:
        return self._inside(region, arguments, mode)

    def _inside(self, region: Any, arguments: Sequence[Value], mode: Mode) -> list[Value]:
        block = only_block(region)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise LimitExceededError(
                f"Calls and regions are nested more than {MAX_DEPTH} levels deep.",
                pointers=["/stablehlo"],
                limit="nesting",
                maximum=MAX_DEPTH,
                actual=self._depth,
            )
        try:
            return self._block(block, arguments, mode)[0]
        finally:
            self._depth -= 1

    def _block(self, block: Any, arguments: Sequence[Value], mode: Mode) -> tuple[list[Value], Op]:
        scope = self._scopes[-1]
        scope.update(zip(block.arguments, arguments, strict=True))
        for each in block.operations:
            raw = each.operation
            op = Op(raw, [scope[value] for value in raw.operands], mode, self._around)
            if op.name in _TERMINATORS:
                return list(op.operands), op
            with _named(op):
                self._count(op)
                results = self._translated(op)
                scope.update(zip(raw.results, results, strict=True))
        raise InvalidGraphError("A block has no terminator.", pointers=["/stablehlo"])

    def _count(self, op: Op) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            op.over(
                f"more than {MAX_STEPS} operations are walked over, with those of loops for every turn",
                "operations",
                MAX_STEPS,
                self._steps,
            )
        nodes = self._builder.node_count
        if nodes > MAX_NODES:
            op.over(f"the graph has {nodes} nodes so far; the limit is {MAX_NODES}", "nodes", MAX_NODES, nodes)
        if not self._places or self._places[-1][0] != nodes:
            self._places.append((nodes, op))
        else:
            self._places[-1] = (nodes, op)

    def _translated(self, op: Op) -> Sequence[Value]:
        known = folded(op)
        if known is not None:
            return known
        if op.name not in OPERATORS:
            op.fail("the operation is not supported; docs/stablehlo.md lists those that are")
        if op.mode.is_lifted and op.name not in ELEMENTWISE:
            op.fail("inside this region, operations work element by element")
        found = _table(op)[op.name](op)
        results: Sequence[Value] = [found] if isinstance(found, Tensor | Known | Pair) else found
        if len(results) != op.result_count:
            op.fail(f"its translation has {len(results)} results, where the module says {op.result_count}")
        return [_checked(op, place, value) for place, value in enumerate(results)]


class _Apart(Walk):
    """The translation of a region of `op` to a separate graph."""

    def __init__(self, outer: Walk, op: Op, region: Any) -> None:
        self.builder = outer._builder.inside()
        super().__init__(self.builder, outer._functions, outer._around.unbounded)
        self._outer, self._op, self._own = outer, op, region
        self._captured = Captured(outer._scopes[-1], self.builder)
        self._depth, self._calls, self._steps = outer._depth, outer._calls, outer._steps
        self._scopes.append(self._captured)

    @property
    def taken(self) -> Mapping[int, tuple[Tensor, Tensor]]:
        return self._captured.taken

    def capture(self, value: Value) -> Value:
        return self._captured.capture(value)

    def run(self, arguments: Sequence[Value]) -> list[Value]:
        found = self._inside(self._own, arguments, Mode())
        self._outer._steps = self._steps
        return found

    def tensor(self, value: Value) -> Tensor:
        if isinstance(value, Tensor):
            return value
        if isinstance(value, Pair):
            self._op.fail("it decides by a complex number")
        return self._around.constants.tensor(value, self._op.over)


def _table(op: Op) -> Mapping[str, Translator]:
    """The table with an operation's translator, which depends on whether it is complex."""
    if op.name in STRUCTURAL or not op.is_complex:
        return OPERATORS
    if op.mode.is_lifted:
        op.fail("inside this region there are no complex numbers")
    if op.name not in COMPLEX:
        op.fail("complex numbers are not supported by this operation; docs/stablehlo.md lists those that take them")
    return COMPLEX


def only_block(region: Any) -> Any:
    """The single block of a region. UnsupportedGraphError for a function without a body, and for several blocks."""
    blocks = list(region.blocks)
    if len(blocks) != 1:
        message = f"A function or a region has {len(blocks)} blocks; those with one are translated."
        raise UnsupportedGraphError(message, pointers=["/stablehlo"])
    return blocks[0]


def _checked(op: Op, position: int, value: Value) -> Value:
    """`value`; UnsupportedGraphError unless it has the module's type. Lifted values have other shapes."""
    wanted = op.result(position)
    if value.dtype is not wanted.dtype or isinstance(value, Pair) is not wanted.is_complex:
        op.fail(f"its translation is {value.dtype}, where the module says {wanted.dtype}")
    if op.mode.is_lifted:
        return value
    fits = len(value.shape) == len(wanted.shape) and all(
        theirs is None or op.is_open(own) or op.builder.bounds(own) == (theirs, theirs)
        for own, theirs in zip(value.shape, wanted.shape, strict=True)
    )
    if not fits:
        own, theirs = (_spelled(shape) for shape in (value.shape, wanted.shape))
        op.fail(f"its translation has the shape {own}, where the module says {theirs}")
    return value


def _spelled(shape: Sequence[Dim | None]) -> str:
    return f"({', '.join('?' if dim is None else str(dim) for dim in shape)})"


@contextmanager
def _named(op: Op) -> Generator[None]:
    """Add the operation's name and location to errors of the builder."""
    try:
        yield
    except InvalidGraphError as error:
        if "op" in error.details:
            raise
        op.fail(error.message)
    except ExprLimitError as error:
        op.over(str(error), error.limit, error.maximum, error.actual)
    except ExprError as error:
        op.fail(f"this is beyond what is computed with dimensions: {error}")
