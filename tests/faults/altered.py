"""Requests that are almost right: trees of JSON with a few changes, and bytes with a few others."""

from __future__ import annotations

import copy
import random
from typing import Any

from tests.service.bodies import compile_body, graph

STRANGE: list[Any] = [
    None,
    True,
    0,
    -1,
    1 << 62,
    1 << 63,
    -(1 << 63) - 1,
    10**400,
    0.5,
    1e308,
    "",
    "\x00",
    "inf",
    "a" * 70,
    "s0",
    "../../etc/passwd",
    "%s%n",
    "é",
    [],
    {},
    [[]] * 20,
    {"op": "idiv", "args": [1, 0]},
    {"op": "mul", "args": ["n"] * 40},
    {"op": "add", "args": [{"op": "neg", "args": ["n"]}, 1 << 40]},
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything inside `value`."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, child in children for place in places(child, (*path, key)))]


def mutated(chance: random.Random) -> Any:
    """A request with up to three changes."""
    body: Any = compile_body(graph(chance.choice(["exp2", "sqrt", "log2"])), fast_math=False)
    for _ in range(chance.randint(1, 3)):
        *path, last = chance.choice(places(body)[1:])
        parent = body
        for key in path:
            parent = parent[key]
        action = chance.randint(0, 4)
        if action == 0:
            parent[last] = copy.deepcopy(chance.choice(STRANGE))
        elif action == 1:
            del parent[last]
        elif action == 2 and isinstance(parent, dict):
            parent[chance.choice(["x", "node", "op", "out_var", ""])] = copy.deepcopy(chance.choice(STRANGE))
        elif action == 3 and isinstance(parent, list):
            parent.insert(chance.randint(0, len(parent)), copy.deepcopy(chance.choice(parent)))
        else:
            parent[last] = copy.deepcopy(chance.choice([*STRANGE, body]))
        if not isinstance(body, dict) or not places(body)[1:]:
            break
    return body


def scrambled(text: bytes, chance: random.Random) -> bytes:
    """A few bytes of `text` changed, removed or repeated."""
    content = bytearray(text)
    for _ in range(chance.randint(0, 3)):
        position = chance.randrange(len(content))
        action = chance.randint(0, 2)
        if action == 0:
            content[position] = chance.choice(b'{}[],:"\\0n\x00\xff')
        elif action == 1:
            del content[position : position + chance.randint(1, 8)]
        else:
            content[position:position] = content[position : position + chance.randint(1, 64)]
    return bytes(content)
