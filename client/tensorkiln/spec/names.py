"""The caller's names for a program that is signed and stored with canonical names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeAlias, cast

from pydantic import BaseModel, Field

from ..buffers import Binding
from ..infer import Constraint
from ..nodes import SymVar
from ..nodes.base import Record
from ..nodes.fields import Name
from ..schedule import OpRef
from .compiled_program import CompiledProgram
from .renaming import INNER, fields_with_names, node_of

_Index = Annotated[int, Field(ge=0)]
_Pair: TypeAlias = tuple[type, Any, Any]


class Names(Record):
    """What a graph is called, and what its symbols, its vars and its nodes are called in it, by canonical name.

    `nodes[i]` is the index of canonical node `i`.
    """

    name: str = ""
    symbols: dict[Name, Name] = Field(default_factory=dict[str, str])
    vars: dict[_Index, _Index] = Field(default_factory=dict[int, int])
    nodes: tuple[_Index, ...] = ()

    @staticmethod
    def between(canonical: CompiledProgram, program: CompiledProgram) -> Names:
        """The names that turn `canonical` into `program`; cache, provenance and stages are ignored.

        ValueError when the two differ in more.
        """
        pairs = list(_pairs(_what_runs(canonical), _what_runs(program)))
        nodes = _mapping(pairs, OpRef)
        names = Names(
            name=program.name,
            symbols=_mapping(pairs, SymVar),
            vars=_mapping(pairs, Binding),
            nodes=tuple(nodes.get(node, node) for node in range(max(nodes, default=-1) + 1)),
        )
        if _what_runs(names.of(canonical)) != _what_runs(program):
            raise ValueError("they differ in more than names")
        return names

    def of(self, canonical: CompiledProgram) -> CompiledProgram:
        """`canonical` in these names. ValueError unless they name each symbol and each var exactly once."""
        symbols = {symbol.name for symbol in canonical.symbols}
        variables = {binding.var for binding in (*canonical.inputs, *canonical.outputs)}
        _require_one_to_one("symbols", self.symbols, symbols)
        _require_one_to_one("vars", self.vars, variables)
        return canonical.renamed(self.symbols, self.vars, self.nodes).model_copy(update={"name": self.name})


def _require_one_to_one(what: str, names: Mapping[Any, Any], needed: set[Any]) -> None:
    if set(names) != needed or len(set(names.values())) != len(names):
        raise ValueError(f"its names of {what} are not one for each of the program's")


def _what_runs(program: CompiledProgram) -> CompiledProgram:
    """A program without the fields that may differ between two answers for it."""
    return program.model_copy(
        update={"cache": CompiledProgram.model_fields["cache"].default, "provenance": None, "stages": ()}
    )


def _mapping(pairs: Sequence[_Pair], kind: type) -> dict[Any, Any]:
    return {old: new for of, old, new in pairs if of is kind and old is not None}


def _pairs(old: Any, new: Any) -> Iterator[_Pair]:
    """Pairs of names at the same place in two records, each with the kind of record that holds it."""
    named, other = _name(old), _name(new)
    if named is not None and other is not None:
        yield (*named, other[1])
    elif isinstance(old, tuple) and isinstance(new, tuple):
        members = cast(tuple[Any, ...], old), cast(tuple[Any, ...], new)
        for one, another in zip(*members, strict=True):
            yield from _pairs(one, another)
    elif isinstance(old, BaseModel) and isinstance(new, type(old)):
        for field in fields_with_names(type(old)):
            if field == INNER:
                # Inner programs have their own vars and nodes; their symbols are already paired.
                continue
            yield from _pairs(getattr(old, field), getattr(new, field))


def _name(record: Any) -> tuple[type, Any] | None:
    """The name in a record, or the index of its node, with the record's kind; None for other records."""
    match record:
        case SymVar():
            return SymVar, record.name
        case Binding():
            return Binding, record.var
        case OpRef():
            return OpRef, record.node
        case Constraint():
            return OpRef, node_of(record.pointer)
        case _:
            return None
