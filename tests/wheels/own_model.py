"""A model of somebody's own, and whether a page is its report: `own_model.py write MODEL`, `own_model.py check PAGE`.

`.ci/wheels` runs this file in an environment that has the wheels and nothing of the repository.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any, Final

_DATA: Final = re.compile(
    r'<script type="application/json" data-side="this" data-part="([^"]*)"([^>]*)>(.*?)</script>', re.S
)
STAGES: Final = frozenset({"stage:from-graph", "stage:to-linalg", "stage:translate"})


def write(path: Path) -> None:
    """Two layers whose weights are in the model, for any number of rows."""
    import onnx
    from onnx import TensorProto, helper

    shapes = {"w1": [16, 32], "w2": [32, 4]}
    weights = [
        helper.make_tensor(name, TensorProto.FLOAT, shape, [0.01 * (at % 7) for at in range(shape[0] * shape[1])])
        for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["kept"]),
        helper.make_node("MatMul", ["kept", "w2"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["y"], axis=1),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", size]) for name, size in (("x", 16), ("y", 4))
    ]
    onnx.save(helper.make_model(helper.make_graph(nodes, "mine", ends[:1], ends[1:], weights)), path)


def check(page: Path) -> None:
    """The page has the program with its symbol and kernels, the graph, and the text of every stage."""
    found: dict[str, Any] = {}
    for name, attributes, text in _DATA.findall(page.read_text("utf-8")):
        found[name] = json.loads(gzip.decompress(base64.b64decode(text)) if "gzip" in attributes else text)
    program, graph = found["program"], found["graph"]
    assert [each["name"] for each in program["symbols"]] == ["rows"], program["symbols"]
    assert program["kernels"], "the program has no kernel"
    assert len(graph["nodes"]) > len(program["kernels"])
    assert found.keys() >= STAGES, sorted(found)
    assert page.stat().st_size < 2 << 20


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](Path(sys.argv[2]))
