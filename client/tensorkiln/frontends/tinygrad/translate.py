"""Translation of a tinygrad graph with the builder, operation by operation."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from ...build import Builder, Tensor
from ...errors import InvalidGraphError, UnsupportedGraphError
from ...expr import ExprError
from .element_types import dtype_of, is_open
from .node import Asked, Node, Operation
from .operations import OPERATIONS
from .sizes import Sizes

MAX_LISTED: Final = 32
"""The most problems in an error's message; its details list all."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An operation that is not supported. `method` is the method of `Tensor` that it comes from, or empty."""

    operation: str
    method: str
    shape: str
    reason: str

    def __str__(self) -> str:
        source = f" of Tensor.{self.method}" if self.method else ""
        return f"  {self.operation}{source}, {self.shape}: {self.reason}"


@dataclass
class Translation:
    """Translates tinygrad values to tensors of one builder. `given` are the inputs; `read` makes parameters."""

    builder: Builder
    read: Callable[[Any], Tensor]
    given: dict[Any, Tensor] = field(default_factory=dict[Any, Tensor])
    known: dict[Asked, Tensor] = field(default_factory=dict[Asked, Tensor])
    problems: dict[Any, Problem] = field(default_factory=dict[Any, Problem])

    def __post_init__(self) -> None:
        self.sizes = Sizes(self.builder)

    def values(self, uops: Sequence[Any]) -> list[Tensor]:
        """The tensors of these values, each in the type that tinygrad realizes it in.

        UnsupportedGraphError, which lists all unsupported operations.
        """
        found: list[Tensor | None] = []
        for uop in uops:
            with self._missing(uop):
                found.append(self._value((uop, dtype_of(uop))))
        if self.problems:
            raise self._unsupported()
        return [each for each in found if each is not None]

    def _value(self, wanted: Asked) -> Tensor | None:
        """Translate a value, without recursion, since graphs may be deep. None when something below is unsupported."""
        waiting: list[tuple[Asked, Sequence[Asked] | None]] = [(wanted, None)]
        while waiting:
            asked, operands = waiting.pop()
            uop, dtype = asked
            if asked in self.known or uop in self.problems:
                continue
            if uop in self.given:
                self.known[asked] = self.given[uop]
                continue
            with self._missing(uop):
                if operands is None:
                    folded = _folded(uop)
                    operands = self._operation(folded).operands(folded, dtype)
                    waiting.append((asked, operands))
                    waiting.extend((each, None) for each in reversed(operands))
                elif all(each in self.known for each in operands):
                    self.known[asked] = self._computed(asked, operands)
                else:
                    # An operand has a problem already: record this value only as a consequence.
                    self.problems.setdefault(uop, _CONSEQUENCE)
        return self.known.get(wanted)

    @contextmanager
    def _missing(self, uop: Any) -> Generator[None]:
        """Record errors in the block as problems of the operation."""
        try:
            yield
        except UnsupportedGraphError as error:
            self._miss(uop, error.message)
        except (InvalidGraphError, ExprError) as error:
            self._miss(uop, str(error))
        except _BEYOND as error:
            # Python numbers outside every element type, and errors of tinygrad's own simplifier.
            self._miss(uop, f"this cannot be computed at the import: {error}")

    def _operation(self, uop: Any) -> Operation:
        found = OPERATIONS.get(uop.op.name)
        if found is None:
            raise UnsupportedGraphError("this operation is not supported")
        return found

    def _computed(self, asked: Asked, operands: Sequence[Asked]) -> Tensor:
        uop, dtype = _folded(asked[0]), asked[1]
        values = [self.known[each] for each in operands]
        node = Node(uop, self.builder, self.sizes, dtype, values, self.read)
        result = OPERATIONS[uop.op.name].rule(node)
        if result.dtype is not dtype or result.rank != len(uop.shape):
            raise UnsupportedGraphError(
                f"the result would be {result.dtype} of rank {result.rank}, tinygrad says {dtype} of {len(uop.shape)}"
            )
        return result

    def _miss(self, uop: Any, reason: str) -> None:
        method = ", ".join(str(each) for each in uop.metadata or ())
        try:
            shape = f"{uop.dtype}{_shown(uop)}"
        except _BEYOND:
            shape = str(uop.dtype)
        self.problems[uop] = Problem(uop.op.name, method, shape, reason)

    def _unsupported(self) -> UnsupportedGraphError:
        own = [each for each in self.problems.values() if each is not _CONSEQUENCE]
        listed = "\n".join(map(str, own[:MAX_LISTED]))
        more = f"\n  and {len(own) - MAX_LISTED} more" if len(own) > MAX_LISTED else ""
        details = [
            {"operation": each.operation, "method": each.method, "shape": each.shape, "reason": each.reason}
            for each in own
        ]
        return UnsupportedGraphError(
            f"{len(own)} of the operations of the tensor graph are not supported:\n{listed}{more}",
            details={"operations": details},
        )


_BEYOND: Final = (ValueError, TypeError, ArithmeticError, LookupError, AssertionError, RuntimeError, MemoryError)
_CONSEQUENCE: Final = Problem("", "", "", "")


def _folded(uop: Any) -> Any:
    """Fold arithmetic on open-typed constants in Python (exact or double precision), as tinygrad does."""
    if is_open(uop) and uop.src and uop.op.name not in ("CAST", "AFTER", "BUFFER") and uop.shape == ():
        simple = uop.simplify()
        return simple if simple.op.name == "CONST" and simple.dtype == uop.dtype else uop
    return uop


def _shown(uop: Any) -> str:
    """The shape as text for a message."""
    sizes = uop._shape or ()  # `shape` raises where there is none.
    return f"[{', '.join(str(size) if isinstance(size, int) else size.render() for size in sizes)}]"
