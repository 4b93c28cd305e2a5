"""Renaming of a compiled program from the compiler's canonical names to the caller's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel

from ..buffers import Binding
from ..expr import Dim, Expr, free_symbols, substitute, symbol
from ..infer import Constraint
from ..launch import Variable
from ..nodes import SymVar
from ..schedule import OpRef
from .program_spec import ProgramSpec

_POINTER = re.compile(r"^/nodes/(\d+)(?=/|$)")
_T = TypeVar("_T", bound=BaseModel)

INNER = "inner"
"""The field with inner programs, whose vars and nodes belong to the regions of a loop node, not to the graph."""


def node_of(pointer: str) -> int | None:
    """The index of the node that a JSON Pointer into a graph goes through."""
    found = _POINTER.match(pointer)
    return int(found[1]) if found else None


@cache
def fields_with_names(model: type[BaseModel]) -> tuple[str, ...]:
    """The fields of `model` that may hold a dim, a constraint or another record."""
    return tuple(name for name, field in model.model_fields.items() if _may_hold_names(field.annotation))


def _may_hold_names(annotation: Any) -> bool:
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return issubclass(annotation, Expr | Constraint | BaseModel)
    return any(_may_hold_names(argument) for argument in get_args(annotation))


@dataclass(frozen=True)
class Renaming:
    """New names of symbols and vars, and the new index of every node. Missing entries keep their names."""

    symbols: Mapping[str, str]
    vars: Mapping[int, int]
    nodes: tuple[int, ...]
    _dims: dict[Expr, Dim] = field(default_factory=dict[Expr, Dim])

    @cached_property
    def _inside(self) -> Renaming:
        """The renaming of inner programs: only symbols, which they share with the outer program."""
        return Renaming(self.symbols, {}, ())

    def apply(self, program: _T) -> _T:
        """`program` renamed; records that do not change are shared with it."""
        return self._record(program)

    def _value(self, value: Any) -> Any:
        """`value` renamed; the same object when nothing in it changes."""
        if isinstance(value, Expr):
            return self._dim(value)
        if isinstance(value, tuple):
            changed = tuple(self._value(entry) for entry in value)  # type: ignore[reportUnknownArgumentType]
            same = all(new is old for new, old in zip(changed, value, strict=True))  # type: ignore[reportUnknownArgumentType]
            return value if same else changed  # type: ignore[reportUnknownVariableType]
        if isinstance(value, Constraint):
            return self._constraint(value)
        return self._record(value) if isinstance(value, BaseModel) else value

    def _record(self, record: _T) -> _T:
        update = {}
        for name in fields_with_names(type(record)):
            old = getattr(record, name)
            new = self._value(old) if name != INNER else self._inside._value(old)
            if new is not old:
                update[name] = new
        update |= {name: new for name, new in self._names(record).items() if new != getattr(record, name)}
        return record.model_copy(update=update) if update else record

    def _names(self, record: BaseModel) -> dict[str, Any]:
        """The fields of `record` that hold names rather than dims."""
        match record:
            case SymVar(name=name) | Variable(name=name) if name in self.symbols:
                return {"name": self.symbols[name]}
            case ProgramSpec(var_names=names):
                return {"var_names": tuple(self.symbols.get(name, name) for name in names)}
            case Binding(var=var) if var in self.vars:
                return {"var": self.vars[var]}
            case OpRef(node=node) if 0 <= node < len(self.nodes):
                return {"node": self.nodes[node]}
            case _:
                return {}

    def _dim(self, dim: Expr) -> Dim:
        if free_symbols(dim).isdisjoint(self.symbols):
            return dim
        if dim not in self._dims:
            self._dims[dim] = substitute(dim, {old: symbol(new) for old, new in self.symbols.items()})
        return self._dims[dim]

    def _constraint(self, constraint: Constraint) -> Constraint:
        renamed = replace(
            constraint,
            left=self._value(constraint.left),
            right=self._value(constraint.right),
            pointer=_POINTER.sub(self._pointer, constraint.pointer),
            message=self._message(constraint.message),
        )
        return constraint if renamed == constraint else renamed

    def _pointer(self, match: re.Match[str]) -> str:
        node = int(match[1])
        return f"/nodes/{self.nodes[node] if node < len(self.nodes) else node}"

    def _message(self, text: str) -> str:
        """Replace symbols in a message, as whole words; all at once, so that two may swap names."""
        if not self.symbols:
            return text
        words = "|".join(re.escape(name) for name in sorted(self.symbols, key=len, reverse=True))
        return re.sub(rf"(?<![\w.])(?:{words})(?![\w.])", lambda match: self.symbols[match[0]], text)
