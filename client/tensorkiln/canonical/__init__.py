"""The canonical form of a graph, the input of its digest and of the compiler."""

from .canonicalize import canonicalize
from .form import Canonical, graph_digest, graph_json

__all__ = ["Canonical", "canonicalize", "graph_digest", "graph_json"]
