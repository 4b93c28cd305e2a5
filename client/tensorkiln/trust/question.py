"""The client's request in the form in which the answer is signed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from ..canonical import Canonical, canonicalize, graph_digest
from ..graph import Graph
from ..options import CompileOptions
from ..request import WrittenGraph
from ..spec import CacheInfo, CompiledProgram
from ..spec.abi import ABI_VERSION
from ..target import Target
from .encoding import canonical_json
from .record import ActionRecord, RequestedAction
from .verify import refused


@dataclass(frozen=True, slots=True)
class Question:
    """A graph in canonical form, with targets and options. The client canonicalizes the graph itself, so it does not
    trust the service on whether a program belongs to the graph, or on the order of its inputs."""

    name: str
    schema: int
    graph: str
    canonical: Canonical
    targets: tuple[Target, ...]
    options: CompileOptions

    @staticmethod
    def of(source: WrittenGraph, targets: Sequence[Target], options: CompileOptions) -> Question:
        """The question of a compile request. Raises the graph's error when it is not valid."""
        graph = _graph(source)
        canonical = canonicalize(graph)
        digest = graph_digest(canonical)
        return Question(graph.name, graph.schema_version, digest, canonical, tuple(targets), options)

    def requested(self, target: Target) -> RequestedAction:
        """The request that a record of the answer must state."""
        return RequestedAction(
            abi=ABI_VERSION,
            graph=self.graph,
            options=self.options.model_dump(mode="json", exclude={"dump_stages"}),
            schema=self.schema,
            target=target.model_dump(mode="json"),
        )

    def key(self, target: Target) -> str:
        """The cache key of the answer."""
        requested = self.requested(target).model_dump(mode="json", by_alias=True)
        return sha256(canonical_json({**requested, "dumps": self.options.dump_stages})).hexdigest()

    def require(self, record: ActionRecord, target: Target) -> None:
        """UntrustedArtifactError when `record` answers another question."""
        stated, requested = record.request, self.requested(target)
        if self.options.is_answered_by(stated.options):
            stated = stated.model_copy(update={"options": requested.options})
        different = [name for name in RequestedAction.model_fields if getattr(stated, name) != getattr(requested, name)]
        if different:
            names = ", ".join(different)
            raise refused("swapped_action", f"The program {record.action} is for another {names}.", record.action)

    def in_its_names(self, program: CompiledProgram, cache: CacheInfo) -> CompiledProgram:
        """Rename a program from canonical names to those of the question's graph."""
        names = self.canonical
        renamed = program.renamed(names.symbols, names.vars, names.nodes)
        return renamed.model_copy(update={"name": self.name, "cache": cache})


def _graph(source: WrittenGraph) -> Graph:
    if isinstance(source, Graph):
        return source
    return Graph.model_validate(dict(source)) if isinstance(source, Mapping) else Graph.model_validate_json(source)
