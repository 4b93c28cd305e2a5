"""A graph of 10 000 nodes, to time the reading of requests."""

from __future__ import annotations

import json

from tests.contract.test_inferred_types import F
from tests.contract.wire import Wire, placeholder, wire

NODES = 10_000


def large_graph() -> str:
    """Nodes of several kinds, and metadata for each: more than 1 MB of JSON."""
    nodes: list[Wire] = [placeholder(0, F, [64, 256])]
    shape = [64, 256]
    metadata = {0: (F, shape)}
    while len(nodes) < NODES:
        last, out = nodes[-1]["out_var"], len(nodes)
        match out % 6:
            case 0:
                node: Wire = {"node": "unary", "op": "exp2", "in_var": last}
            case 1:
                node = {"node": "permute", "in_var": last, "axes_permutation": [1, 0]}
                shape = shape[::-1]
            case 2:
                node = {"node": "reshape", "in_var": last, "new_shape": shape[::-1]}
                shape = shape[::-1]
            case 3:
                node = {"node": "cast", "in_var": last, "target_dtype": F}
            case _:
                node = {"node": "binop", "op": "add", "a_var": last, "b_var": last}
        nodes.append({**node, "out_var": out, "dtype": F})
        metadata[out] = (F, shape)
    return json.dumps(wire(nodes, [0], [NODES - 1], None, metadata))
