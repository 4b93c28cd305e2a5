"""The canonical form of a graph, which its digest and the compiler see."""

from .canonicalize import Canonical, canonicalize, graph_digest, graph_json

__all__ = ["Canonical", "canonicalize", "graph_digest", "graph_json"]
