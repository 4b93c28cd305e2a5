"""What a client asks of a service, done in this process."""

from __future__ import annotations

from typing import Any

from service.sandbox.tasks.envelope import OF_TRANSLATE, parse_envelope, sent_graph
from tensorkiln.graph import Graph
from tensorkiln.program import Program
from tensorkiln.stablehlo import StableHlo
from tests.compiled import compiled, program


class Here:
    """Translates and compiles by what a task of the sandbox runs, without a service, a fork and an answer."""

    def translate(self, module: StableHlo) -> Graph:
        """The graph of the module, out of the body that a client would send."""
        return sent_graph(parse_envelope(module.body(), *OF_TRANSLATE)).graph

    def compile(self, graph: Graph, *_: Any, **__: Any) -> Program:
        """The graph compiled for this machine, whatever else is said."""
        return program(compiled(graph), threads=2)
