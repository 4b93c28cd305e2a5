"""The canonical form of a graph, which its digest and the compiler see."""

from .canonicalize import Canonical, canonicalize, graph_digest

__all__ = ["Canonical", "canonicalize", "graph_digest"]
