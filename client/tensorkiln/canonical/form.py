"""The canonical form of a graph: its JSON, which is hashed for the graph digest, and the graph itself on demand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, Final

import msgspec

from ..expr import Expr, to_wire
from ..graph import Graph, VarMetadata
from ..infer import Inference
from ..nodes import AnyNode, ConstScalar, Custom, Kernel, Scatter, SymVar, Vconst, While
from ..nodes.base import Record, record_of


@dataclass(frozen=True)
class Canonical:
    """The canonical form of the graph `source`, and the way back to the user's names.

    `vars`: the user's var of each canonical var. `symbols`: the user's name of each canonical symbol. `nodes`: the
    user's index of each canonical node. `contents`: the kind of each canonical node, and its fields.
    """

    source: Graph
    vars: dict[int, int]
    symbols: dict[str, str]
    nodes: tuple[int, ...]
    contents: list[tuple[type[AnyNode], dict[str, Any]]]
    vars_metadata: dict[int, VarMetadata]
    input_vars: tuple[int, ...]
    parameter_vars: tuple[int, ...]
    output_vars: tuple[int, ...]
    symbolic_vars: tuple[SymVar, ...]

    @cached_property
    def graph(self) -> Graph:
        """The canonical graph, built at first use; the digest does not need it."""
        fields: dict[str, Any] = {
            "schema_version": 1,
            "name": "",
            "nodes": tuple(record_of(kind, dict(fields)) for kind, fields in self.contents),
            "vars_metadata": self.vars_metadata,
            "input_vars": self.input_vars,
            "parameter_vars": self.parameter_vars,
            "output_vars": self.output_vars,
            "symbolic_vars": self.symbolic_vars,
        }
        inference = self._inference()
        if inference is None:
            # Cannot fail: renaming keeps a valid graph valid.
            return Graph.model_validate(fields)
        return record_of(Graph, fields, private={"_inference": inference})

    def _inference(self) -> Inference | None:
        """The source's inference result, renamed; None where new names could change it.

        They cannot in a graph without symbols, and so without constraints, and without devices.
        """
        types = self.source.types
        if self.source.symbols or any(found.device is not None for found in types.values()):
            return None
        return Inference({number: types[var] for number, var in self.vars.items()}, (), {})


def graph_digest(canonical: Canonical) -> str:
    """SHA-256, in hexadecimal, of the canonical graph's JSON."""
    return sha256(graph_json(canonical)).hexdigest()


def graph_json(canonical: Canonical) -> bytes:
    """The same JSON as `canonical.graph.to_json()`, without building the graph."""
    # Equal metadata is one object here, so each is encoded once.
    texts: dict[int, msgspec.Raw] = {}
    for stated in canonical.vars_metadata.values():
        if id(stated) not in texts:
            texts[id(stated)] = _as_pydantic_spells(stated)
    contents = {
        "schema": 1,
        "name": "",
        "nodes": [_encodable(kind, fields) for kind, fields in canonical.contents],
        "vars_metadata": {var: texts[id(stated)] for var, stated in canonical.vars_metadata.items()},
        "input_vars": canonical.input_vars,
        **({"parameter_vars": canonical.parameter_vars} if canonical.parameter_vars else {}),
        "output_vars": canonical.output_vars,
        "symbolic_vars": canonical.symbolic_vars,
    }
    return msgspec.json.encode(contents, enc_hook=_inside)


def _encodable(kind: type[AnyNode], fields: dict[str, Any]) -> object:
    """A node for msgspec. Some kinds go through pydantic, which formats some floats differently and omits defaults."""
    return _as_pydantic_spells(record_of(kind, fields)) if kind in _AS_RECORDS else fields


def _as_pydantic_spells(record: Record) -> msgspec.Raw:
    return msgspec.Raw(record.model_dump_json().encode())


def _inside(value: Record | Expr) -> object:
    return value.__dict__ if isinstance(value, Record) else to_wire(value)


_AS_RECORDS: Final = frozenset({ConstScalar, Vconst, Custom, Kernel, Scatter, While})
"""The kinds with floats, or with fields that are left out."""
