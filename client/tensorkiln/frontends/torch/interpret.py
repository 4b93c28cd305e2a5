"""Translation of a program to a graph, operation by operation. One error lists all unsupported operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ... import build
from ...build import Builder, Tensor
from ...dtypes import DType
from ...errors import InvalidGraphError, UnsupportedGraphError
from ...expr import Dim, Expr, ExprError, free_symbols, sub
from ..composed.complex_numbers import Complex
from .call import Call, Operator, Value
from .complex_operators import COMPLEX
from .exported import COMPLEX_PARTS, Argument, Array, Exported, Operation, Ref, TensorType
from .refused import REFUSED
from .symbolic_numbers import NUMBERS

MAX_LISTED = 50
"""The most operations in an error's message; the rest are counted, and its details list all."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An operation that is not supported, and why."""

    operation: Operation
    reason: str

    def __str__(self) -> str:
        where = f"\n      {self.operation.line}" if self.operation.line else ""
        return f"  {self.operation.target} ({self.operation.name}): {self.reason}{where}"


@dataclass
class Interpreter:
    """Translates operations; `values` are the results so far, by name.

    `arrays` collects the arrays of parameters by var; `random_key` is the input that random numbers are derived from.
    """

    builder: Builder
    exported: Exported
    operators: Mapping[str, Operator]
    values: dict[str, Value]
    arrays: dict[int, Array]
    random_key: Tensor | None = None
    problems: list[Problem] = field(default_factory=list[Problem])
    _drawn: int = 0

    def run(self) -> None:
        """Translate every operation. UnsupportedGraphError, which lists all unsupported operations."""
        read = frozenset(self.exported.references())
        for operation in self.exported.operations:
            self._run(replace(operation, results=tuple(name if name in read else "" for name in operation.results)))
        if self.problems:
            raise _unsupported(self.exported.name, self.problems)

    def resolve(self, argument: Argument) -> Value:
        """The value of an argument, with references resolved."""
        if isinstance(argument, Ref):
            return self._value(argument.name)
        if isinstance(argument, tuple):
            return tuple(self.resolve(each) for each in argument)  # pyright: ignore[reportReturnType]
        return argument

    def _value(self, name: str) -> Value:
        if name in self.values:
            return self.values[name]
        known = self.exported.types.get(name)
        if isinstance(known, int | Expr):
            return known
        raise UnsupportedGraphError(f"no operation gives the value {name!r}")

    def _run(self, operation: Operation) -> None:
        types = [self.exported.types.get(name) if name else None for name in operation.results]
        sizes = {
            name: known for name, known in zip(operation.results, types, strict=True) if isinstance(known, int | Expr)
        }
        if sizes and len(sizes) == len(operation.results):
            # torch records the symbolic size of the result, so the operation need not be translated.
            self.values.update(sizes)
            free = {symbol for dim in sizes.values() if isinstance(dim, Expr) for symbol in free_symbols(dim)}
            if not free <= self.builder.symbols.keys():
                self._miss(operation, types, "a size that depends on the values of a tensor is not supported")
            return
        try:
            self._compute(operation, [each if isinstance(each, TensorType) else None for each in types])
        except UnsupportedGraphError as error:
            self._miss(operation, types, error.message)
        except InvalidGraphError as error:
            if self.problems:
                # This may be a consequence of an unsupported operation.
                raise _unsupported(self.exported.name, self.problems) from error
            raise InvalidGraphError(
                f"{operation.target} ({operation.name}): {error.message}"
                + (f"\n  {operation.line}" * bool(operation.line)),
                pointers=error.pointers,
            ) from error
        except (ExprError, MemoryError) as error:
            self._miss(operation, types, f"this cannot be computed at the import: {error}")
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, AssertionError) as error:
            # Contents of an archive that torch would not write: invalid axes, lists of a wrong length.
            raise InvalidGraphError(f"{operation.target} ({operation.name}): {error}") from error

    def _compute(self, operation: Operation, types: Sequence[TensorType | None]) -> None:
        if operation.target in NUMBERS:
            arguments = [self.resolve(argument) for argument in operation.arguments.values()]
            for name in operation.results:
                self.values[name] = NUMBERS[operation.target](self.builder, arguments)
            return
        arguments = {name: self.resolve(argument) for name, argument in operation.arguments.items()}
        if any(each is not None and each.is_complex for each in types) or any(map(_is_complex, arguments.values())):
            run, types = self._complex(operation, types)
        elif operation.target in self.operators:
            run = self.operators[operation.target]
        else:
            raise UnsupportedGraphError(REFUSED.get(operation.target, "this operator is not supported"))
        for each in types:
            if each is not None and each.dtype is None:
                raise UnsupportedGraphError(f"the element type {each.spelled} is not supported")
        call = Call(operation, self.builder, arguments, tuple(types), self._key, self._parameter, self.exported.types)
        with np.errstate(all="ignore"):
            found = run(call)
        results = [found] if isinstance(found, Tensor | Complex) else list(found)
        for place, name in enumerate(operation.results):
            if name:
                known = types[place]
                result = results[place] if place < len(results) else None
                if result is None or known is None:
                    raise UnsupportedGraphError(f"result {place} is not supported")
                if isinstance(result, Complex) is not known.is_complex:
                    raise UnsupportedGraphError(f"result {place} has the type {known.spelled}, which is not supported")
                for part in (result.real, result.imag) if isinstance(result, Complex) else (result,):
                    _check(self.builder, part, known)
                self.values[name] = result

    def _complex(
        self, operation: Operation, types: Sequence[TensorType | None]
    ) -> tuple[Callable[[Call], Tensor | Complex | Sequence[Tensor | Complex]], list[TensorType | None]]:
        """The complex version of the operator, and the result types, with complex dtypes replaced by their parts'."""
        if operation.target not in COMPLEX:
            raise UnsupportedGraphError("this operator is not supported for complex numbers")
        parts = [
            replace(each, dtype=COMPLEX_PARTS[each.spelled]) if each is not None and each.is_complex else each
            for each in types
        ]
        return COMPLEX[operation.target], parts

    def _miss(self, operation: Operation, types: Sequence[object], reason: str) -> None:
        """Record a problem, and replace the results by inputs, to go on and find all problems."""
        self.problems.append(Problem(operation, reason))
        for name, known in zip(operation.results, types, strict=True):
            if name and isinstance(known, TensorType):
                try:
                    stand_in = self.builder.input(known.dtype or DType.FLOAT32, known.shape, f"missing/{name}")
                except InvalidGraphError:
                    # The shape has a symbol without an input, so dependent operations cannot be checked.
                    raise _unsupported(self.exported.name, self.problems) from None
                self.values[name] = stand_in
            elif name:
                self.values[name] = 1

    def _parameter(self, array: Array) -> Tensor:
        """Add a table as a parameter, bound together with the weights."""
        tensor = self.builder.parameter(DType.from_numpy(array.dtype), array.shape, f"tables/{len(self.arrays)}")
        self.arrays[tensor.var] = array
        return tensor

    def _key(self) -> Tensor:
        """A new key for an operation that draws random numbers, derived from the call's key and a counter."""
        if self.random_key is None:
            raise UnsupportedGraphError("random numbers need a key")
        self._drawn += 1
        return build.threefry(self.builder.scalar(self._drawn, DType.UINT64), self.random_key)


def _is_complex(value: object) -> bool:
    return isinstance(value, Complex) or (isinstance(value, tuple) and any(map(_is_complex, value)))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _check(builder: Builder, result: Tensor, known: TensorType) -> None:
    """UnsupportedGraphError when the dtype or shape of a result differs from torch's: its values would differ too."""
    fits = result.dtype is known.dtype and result.rank == len(known.shape)
    if not fits or any(_differ(builder, own, other) for own, other in zip(result.shape, known.shape, strict=True)):
        raise UnsupportedGraphError(
            f"the result would be {result.dtype}{list(map(str, result.shape))}, torch says "
            f"{known.spelled}{list(map(str, known.shape))}"
        )


def _differ(builder: Builder, own: Dim, other: Dim) -> bool:
    low, high = builder.bounds(sub(own, other))
    return low > 0 or high < 0


def _unsupported(name: str, problems: Sequence[Problem]) -> UnsupportedGraphError:
    listed = "\n".join(map(str, problems[:MAX_LISTED]))
    more = f"\n  and {len(problems) - MAX_LISTED} more" if len(problems) > MAX_LISTED else ""
    details = [
        {
            "operator": problem.operation.target,
            "name": problem.operation.name,
            "reason": problem.reason,
            "line": problem.operation.line,
        }
        for problem in problems
    ]
    return UnsupportedGraphError(
        f"{len(problems)} of the operations of {name} are not supported:\n{listed}{more}",
        details={"operations": details},
    )
