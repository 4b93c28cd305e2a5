"""Programs that the tests of reports show."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from passes.compile import Compilation
from tensorkiln.build import Builder, relu, softmax
from tensorkiln.graph import Graph
from tensorkiln.report import Report
from tensorkiln.schedule.items import ItemAnalysis
from tests.compiled import EVERY, compiled

HOSTILE = '</script><img src=x onerror="window.attacked=1">\u2028&lt;\u2029'
"""What would run if it were taken for more than text."""


@cache
def layer() -> Graph:
    """Two kernels on a CPU, of a symbol."""
    b = Builder("layer")
    x, w = b.input("float32", (b.symbol("n", 1, 4096), 64)), b.input("float32", (64, 10))
    b.output(softmax(relu(x @ w), 1))
    return b.graph()


def compiled_layer(target: str = "cpu:x86-64-v3") -> Compilation:
    """The layer with the texts of its stages."""
    return _compiled(target)


@cache
def _compiled(target: str) -> Compilation:
    return compiled(layer(), target, texts=EVERY)


def report_of_layer(target: str = "cpu:x86-64-v3") -> Report:
    """All that a report may have of it, but for a signature and a profile."""
    made = compiled_layer(target)
    return Report.of(made.program, graph=layer(), stages=made.dumps, artifacts=made.artifacts)


def made_program(
    works: Sequence[ItemAnalysis], ranges: Mapping[str, tuple[int, int]], depends_on: Sequence[Sequence[int]] = ()
) -> dict[str, Any]:
    """The record of a program on a CPU whose items come to `works`, each the same kernel, after those in `depends_on`.

    Its symbols have these ranges. Without `depends_on`, no item waits for another.
    """
    program = json.loads(report_of_layer().parts["program"])
    item, kernel = program["schedule"]["items"][1], program["kernels"][1]
    before = [tuple(depends_on[at]) if depends_on else () for at in range(len(works))]
    program["symbols"] = [{"name": name, "min_val": low, "max_val": high} for name, (low, high) in ranges.items()]
    program["kernels"] = [{**kernel, "vars": [], "global_size": [1, 1, 1]} for _ in works]
    program["schedule"]["items"] = [
        {
            **item,
            "item_id": at,
            "operation": {**item["operation"], "kernel_id": at},
            "depends_on": list(before[at]),
            "dependents": [after for after, those in enumerate(before) if at in those],
        }
        for at in range(len(works))
    ]
    program["schedule"] |= {"analysis": [work.model_dump(mode="json") for work in works], "fusion_opportunities": []}
    return program


def long_chain(kernels: int, nodes: int) -> dict[str, bytes]:
    """The parts of a program of so many kernels in a row, with so many nodes each, as records would spell them."""
    made = compiled_layer().program.model_dump(mode="json")
    item, analysis = made["schedule"]["items"][1], made["schedule"]["analysis"][1]
    kernel, buffer = made["kernels"][1], made["buffers"][3]
    count = kernels * nodes
    made["schedule"]["items"] = [
        {
            **item,
            "item_id": at,
            "operation": {
                **item["operation"],
                "kernel_id": at,
                "kernel_name": f"kernel_{at}",
                "ops": [{"node": 1 + at * nodes + each, "kind": "unary"} for each in range(nodes)],
            },
            "depends_on": [at - 1] if at else [],
            "dependents": [at + 1] if at + 1 < kernels else [],
        }
        for at in range(kernels)
    ]
    made["schedule"] |= {
        "analysis": [{**analysis, "item_id": at} for at in range(kernels)],
        "dependencies": [],
        "fusion_opportunities": [],
    }
    made["kernels"] = [
        {**kernel, "name": f"kernel_{at}", "entry": f"kernel_{at}", "buffers": [at], "ins": [0], "outs": [0]}
        for at in range(kernels)
    ]
    made["buffers"] = [
        {**buffer, "id": at, "alias_group": None, "role": "temp", "lifetime": [at, min(at + 1, kernels - 1)]}
        for at in range(kernels)
    ]
    made |= {"inputs": [], "outputs": []}
    metadata = {"dtype": "float32", "shape": ["n", 10], "device": None}
    graph: dict[str, Any] = {
        "schema": 1,
        "name": "chain",
        "nodes": [
            {"node": "placeholder", "out_var": 0, "dtype": "float32", "shape": ["n", 10]},
            *(
                {"node": "unary", "op": "exp2", "in_var": at, "out_var": at + 1, "dtype": "float32"}
                for at in range(count)
            ),
        ],
        "vars_metadata": {str(at): metadata for at in range(count + 1)},
        "input_vars": [0],
        "output_vars": [count],
        "symbolic_vars": made["symbols"],
    }
    return {"program": json.dumps(made).encode(), "graph": json.dumps(graph).encode()}


def long_texts(nodes: int) -> dict[str, bytes]:
    """The parts of texts of stages with lines for so many nodes: those of a node are alike but for their numbers."""
    texts: dict[str, bytes] = {}
    for stage in ("form-kernels", "realise", "lower", "entries", "translate"):
        lines = [
            f"    %{3 * at} = kiln.unary %{3 * at - 1} exp2 : tensor<?x10xf32> loc(#loc{at})\n"
            f"    %{3 * at + 1} = llvm.getelementptr inbounds %a[%{3 * at}] : (!llvm.ptr, i64) -> !llvm.ptr, f32\n"
            f"    %{3 * at + 2} = llvm.load %{3 * at + 1} {{alignment = 4 : i64}} : !llvm.ptr -> f32"
            for at in range(nodes)
        ]
        texts[f"stage:{stage}"] = json.dumps(f"// {stage}\n" + "\n".join(lines)).encode()
    return texts


def hostile(value: Any, kept: frozenset[str] = frozenset(), name: str = "") -> Any:
    """JSON in which every text is one that attacks, but for the values of the fields `kept`."""
    if isinstance(value, dict):
        return {key: hostile(each, kept, key) for key, each in value.items()}
    if isinstance(value, list):
        return [hostile(each, kept, name) for each in value]
    return f"{value}{HOSTILE}" if isinstance(value, str) and name not in kept else value
