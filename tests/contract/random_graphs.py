"""Random graphs with symbols, storage and assigns, and random graphs that mean the same."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.contract.wire import Wire, placeholder, wire

I32 = "int32"
SHAPES: list[list[Any]] = [["n"], ["m"], [3], ["n", "m"], [{"op": "add", "args": ["n", "m"]}], []]
SYMBOLS = {"n": (1, 4), "m": (1, 4), "k": (0, 7), "j": (0, 7)}


def random_graph(random: Random, size: int = 12) -> Wire:
    """A graph of int32 values whose nodes read and write what is already there."""
    nodes: list[Wire] = []
    shapes: dict[int, int] = {}
    inputs = list(range(random.randint(1, 3)))
    for var in inputs:
        shapes[var] = random.randrange(len(SHAPES))
        nodes.append(placeholder(var, I32, SHAPES[shapes[var]]))
    while len(nodes) < size:
        out = len(shapes)
        node, shape = _random_node(random, shapes, out)
        nodes.append(node)
        shapes[out] = shape
    outputs = [random.randrange(len(shapes)) for _ in range(random.randint(1, 3))]
    return wire(nodes, inputs, outputs, SYMBOLS)


def _random_node(random: Random, shapes: dict[int, int], out: int) -> tuple[Wire, int]:
    source = random.randrange(len(shapes))
    shape = shapes[source]
    alike = [var for var, other in shapes.items() if other == shape]
    common: Wire = {"out_var": out, "dtype": I32}
    match random.choice(["binop", "binop", "unary", "assign", "assign", "buffer", "buffer_view", "symbol", "constant"]):
        case "binop":
            op = random.choice(["add", "sub", "mul"])
            return {"node": "binop", "op": op, "a_var": source, "b_var": random.choice(alike), **common}, shape
        case "unary":
            return {"node": "unary", "op": "neg", "in_var": source, **common}, shape
        case "assign":
            updates = [[random.choice(alike), source, None] for _ in range(random.randint(1, 2))]
            return {"node": "assign", "target_var": source, "updates": updates, **common}, shape
        case "buffer":
            return {"node": "buffer", "size_in_elements": "n", "device": "CPU", **common}, 0
        case "buffer_view" if shape in (0, 1, 2):
            size = SHAPES[shape][0]
            return {"node": "buffer_view", "buffer_var": source, "size": size, "offset": 0, **common}, shape
        case "symbol":
            name = random.choice(["n", "m"])
            sym_var = {"name": name, "min_val": SYMBOLS[name][0], "max_val": SYMBOLS[name][1]}
            return {"node": "define_var", "sym_var": sym_var, **common}, 5
        case _:
            return {"node": "const_scalar", "value": random.randint(0, 2), **common}, 5


def disguised(random: Random, graph: Wire) -> Wire:
    """A graph that means the same, with other names, another order, more dead nodes and a destination."""
    nodes = _reordered(random, graph["nodes"])
    names = list(graph["symbolic_vars"])
    random.shuffle(names)
    symbols = {found["name"]: f"z{position}" for position, found in enumerate(names)}
    defined = [node["out_var"] for node in nodes]
    numbers = random.sample(range(1000), len(defined))
    numbering = dict(zip(defined, numbers, strict=True))
    renamed = [_renamed(node, numbering, symbols) for node in nodes]
    dead = {"node": "unary", "op": "neg", "in_var": renamed[0]["out_var"], "out_var": 1001, "dtype": I32}
    renamed.insert(random.randint(1, len(renamed)), dead)
    renamed.append({"node": "sink", "deps": [1001], "dtype": "unit"})
    return {
        **graph,
        "name": "other",
        "nodes": _with_a_destination(random, renamed),
        "input_vars": [numbering[var] for var in graph["input_vars"]],
        "output_vars": [numbering[var] for var in graph["output_vars"]],
        "symbolic_vars": [{**found, "name": symbols[found["name"]]} for found in names],
    }


def _with_a_destination(random: Random, nodes: list[Wire]) -> list[Wire]:
    """Declares a buffer first for one scalar result."""
    scalars = [node for node in nodes if node["node"] in ("const_scalar", "define_var")]
    if not scalars:
        return nodes
    out = random.choice(scalars)["out_var"]
    return [{"node": "buffer", "size_in_elements": 1, "device": "cpu", "out_var": out, "dtype": I32}, *nodes]


def _renamed(value: Any, numbering: dict[int, int], symbols: dict[str, str]) -> Any:
    renamed: Wire = {}
    for key, field in value.items():
        if key.endswith("_var") and isinstance(field, int):
            renamed[key] = numbering[field]
        elif key == "updates":
            renamed[key] = [[numbering[source], numbering[target], span] for source, target, span in field]
        elif key == "sym_var":
            renamed[key] = {**field, "name": symbols[field["name"]]}
        else:
            renamed[key] = _renamed_dims(field, symbols) if key in ("shape", "size", "size_in_elements") else field
    return renamed


def _renamed_dims(value: Any, symbols: dict[str, str]) -> Any:
    if isinstance(value, str):
        return symbols.get(value, value)
    if isinstance(value, list):
        return [_renamed_dims(item, symbols) for item in value]
    return {**value, "args": _renamed_dims(value["args"], symbols)} if isinstance(value, dict) else value


def _reordered(random: Random, nodes: list[Wire]) -> list[Wire]:
    """Another order in which everything still sees the same values."""
    storage: dict[int, int] = {}
    reads: list[set[int]] = []
    touches: list[set[int]] = []
    for node in nodes:
        operands = _operands(node)
        reads.append(operands)
        touches.append({storage.get(var, var) for var in operands})
        if node["node"] == "buffer_view":
            base: int = node["buffer_var"]
            storage[node["out_var"]] = storage.get(base, base)
            touches[-1] = set()
    left = list(range(len(nodes)))
    result: list[Wire] = []
    while left:
        waiting = {
            at for at in left for other in left
            if other < at and _precedes(nodes, storage, reads, touches, other, at)
        }  # fmt: skip
        chosen = random.choice([at for at in left if at not in waiting])
        left.remove(chosen)
        result.append(nodes[chosen])
    return result


def _operands(node: Wire) -> set[int]:
    read = {field for key, field in node.items() if key in ("a_var", "b_var", "in_var", "target_var", "buffer_var")}
    return read | {update[0] for update in node.get("updates", [])}


def _precedes(
    nodes: list[Wire], storage: dict[int, int], reads: list[set[int]], touches: list[set[int]], first: int, second: int
) -> bool:
    if nodes[first]["out_var"] in reads[second]:
        return True
    written = {
        storage.get(node["target_var"], node["target_var"])
        for node in (nodes[first], nodes[second])
        if node["node"] == "assign"
    }
    return bool(written & touches[first] & touches[second])
