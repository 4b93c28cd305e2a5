"""Parser for the structure of nested arguments and results in an archive."""

from __future__ import annotations

import json
from typing import Any

from ...errors import UnsupportedGraphError
from .exported import Tree

_KINDS = {
    "builtins.tuple": "tuple",
    "builtins.list": "list",
    "builtins.dict": "dict",
    "collections.OrderedDict": "dict",
    "torch.fx.immutable_collections.immutable_list": "list",
    "torch.fx.immutable_collections.immutable_dict": "dict",
}


def tree_of(text: str) -> Tree:
    """Parse a tree written by `torch.utils._pytree.treespec_dumps`, version 1.

    UnsupportedGraphError for a container that needs its own Python class.
    """
    version, spec = json.loads(text)
    if version != 1:
        raise UnsupportedGraphError(f"nested arguments are spelled in the version {version}, and 1 is read")
    return _tree(spec)


def _tree(spec: dict[str, Any]) -> Tree:
    children = tuple(_tree(child) for child in spec["children_spec"])
    kind = spec["type"]
    if kind is None:
        return Tree("leaf")
    if kind not in _KINDS:
        raise UnsupportedGraphError(f"arguments or results in a {kind} are not supported; load the ExportedProgram")
    keys = tuple(json.loads(spec["context"])) if _KINDS[kind] == "dict" else ()
    return Tree(_KINDS[kind], keys, children)
