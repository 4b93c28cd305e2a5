"""The canonical form of a graph, which its digest and the compiler see."""

from .canonicalize import canonicalize
from .form import Canonical, graph_digest, graph_json

__all__ = ["Canonical", "canonicalize", "graph_digest", "graph_json"]
