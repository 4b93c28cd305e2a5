"""Requests made to be refused: mutations of good ones, and everything that has broken a parser before."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from service.http.coded_bodies import zstd
from tests.contract.random_graphs import random_graph
from tests.faults.altered import STRANGE, mutated, places, scrambled
from tests.service.bodies import compile_body, encoded, graph

ROUTES: Final = ("/compile", "/compile", "/validate", "/explain", "/jobs:batch")
TARGETS: Final = (
    "cpu:x86-64-v3",
    "cpu:aarch64",
    ["cpu:x86-64-v2", "cuda:sm_90"],
    "cpu:native",
    "cuda:sm_1",
    "",
    None,
    {},
)
EVIL: Final = (
    "../../../etc/passwd",
    "x\r\nX-Injected: 1",
    "\x00",
    "a" * 100_000,
    "\u202e\u0000",
    "%s%s%n",
    "${jndi:ldap://x}",
    "'; DROP TABLE jobs; --",
    "<script>",
    "s0",
    "é",
)
SHAPES: Final[tuple[Any, ...]] = (
    [1] * 1_000_000,
    [1 << 62, 4],
    [1 << 40, 1 << 40],
    [-1],
    [0, 1 << 48],
    [(1 << 63) - 1],
    [1 << 64],
    ["n"] * 17,
    [{"op": "mul", "args": ["n"] * 5000}],
    [{"op": "idiv", "args": ["n", 0]}],
    [True],
    [1.0],
    ["undeclared"],
)
NUMBERS: Final = (
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-0",
    b"1" * 5000,
    b"01",
    b"0x1f",
    b"1.",
    b"+1",
    b"1e400",
    b'"\\ud800"',
)


@dataclass(frozen=True)
class Mutant:
    """One request. `kind` says how it was made."""

    kind: str
    path: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict[str, str])


def mutant(chance: Random) -> Mutant:
    """Another one for every state of `chance`."""
    kind, make = chance.choice(_KINDS)
    path = chance.choice(ROUTES)
    content = make(chance)
    body = content if isinstance(content, bytes) else encoded(_envelope(path, content))
    headers = {"Content-Type": "application/json"}
    if kind == "header":
        headers |= dict([chance.choice(_HEADERS)])
    if kind == "coding":
        return _coded(chance, path, body, headers)
    return Mutant(kind, path, body, headers)


def _envelope(path: str, request: Any) -> Any:
    if path == "/jobs:batch":
        return {"requests": [request, {}]}
    if path == "/validate" and isinstance(request, dict):
        return {name: value for name, value in request.items() if name == "graph"}
    return request


def _good(chance: Random) -> dict[str, Any]:
    if chance.random() < 0.5:
        return compile_body(graph(chance.choice(["exp2", "sqrt"])))
    # What is mutated must not be a part of the next graph too.
    return compile_body(deepcopy(random_graph(Random(chance.randint(0, 9)))))


def _tree(chance: Random) -> Any:
    return mutated(chance)


def _bytes(chance: Random) -> bytes:
    return scrambled(encoded(_good(chance)), chance)


def _value(chance: Random) -> Any:
    request = _good(chance)
    *path, last = chance.choice(places(request)[1:])
    parent: Any = request
    for step in path:
        parent = parent[step]
    parent[last] = deepcopy(chance.choice([*STRANGE, *EVIL]))
    return request


def _name(chance: Random) -> Any:
    evil = chance.choice(EVIL)
    return compile_body(graph(symbol=evil) if chance.random() < 0.5 else graph(name=evil))


def _shape(chance: Random) -> Any:
    request = compile_body(graph())
    request["graph"]["nodes"][0]["shape"] = chance.choice(SHAPES)
    return request


def _target(chance: Random) -> Any:
    return {
        **_good(chance),
        "target": chance.choice(TARGETS),
        "options": chance.choice([{}, {"x": 1}, [], {"fast_math": 1}]),
    }


def _number(chance: Random) -> bytes:
    text = encoded(_good(chance))
    digits = [place for place, byte in enumerate(text) if 48 <= byte <= 57]
    place = chance.choice(digits)
    return text[:place] + chance.choice(NUMBERS) + text[place + 1 :]


def _repeated(chance: Random) -> bytes:
    text = encoded(_good(chance))
    keys = [b'"nodes":', b'"graph":', b'"target":', b'"node":']
    key = chance.choice([key for key in keys if key in text])
    return text.replace(key, key + chance.choice([b"[],", b"1,", b'"x",']) + key, 1)


def _nested(chance: Random) -> bytes:
    depth = chance.choice([150, 300, 2000, 100_000])
    opening, closing = chance.choice([(b"[", b"]"), (b'{"graph":', b"}"), (b'{"graph":[', b"]}")])
    return opening * depth + b"1" + closing * chance.choice([depth, 0])


def _long(chance: Random) -> Any:
    request = compile_body(graph())
    count = chance.choice([60_000, 200_000])
    name = chance.choice(["input_vars", "output_vars", "symbolic_vars", "nodes"])
    request["graph"][name] = [0] * count
    return request


def _text(chance: Random) -> bytes:
    text = encoded(_good(chance))
    return chance.choice(
        [
            b"",
            b"null",
            b"[]",
            text[: chance.randrange(len(text))],
            text.decode().encode("utf-16"),
            b"\xef\xbb\xbf" + text,
            chance.randbytes(chance.randint(1, 4000)),
            text + text,
            b"\x00" * 1000,
        ]
    )


def _coded(chance: Random, path: str, body: bytes, headers: dict[str, str]) -> Mutant:
    coding, coded = chance.choice(
        [
            ("zstd", zstd.compress(body)),
            ("gzip", gzip.compress(body)),
            ("zstd", gzip.compress(body)),
            ("gzip", body),
            ("zstd", zstd.compress(body)[: chance.randint(0, 60)]),
            ("zstd", scrambled(zstd.compress(body), chance)),
            ("gzip", scrambled(gzip.compress(body), chance)),
            ("br", body),
            ("gzip, gzip", gzip.compress(gzip.compress(body))),
            ("zstd", zstd.compress(bytes(8 << 20))),
            ("zstd, zstd, zstd", body),
        ]
    )
    return Mutant("coding", path, coded, {**headers, "Content-Encoding": coding})


_HEADERS: Final = (
    ("Content-Type", "text/plain"),
    ("Content-Type", "application/json; charset=utf-7"),
    ("Content-Type", ""),
    ("Prefer", "wait=" + "9" * 5000),
    ("Prefer", "wait=-1, respond-async=\x7f, ;;;"),
    ("Accept-Encoding", ", ;q=" * 500),
    ("Accept", "text/html;q=x"),
    ("If-None-Match", '"' * 1001),
    ("Range", "bytes=-,,,"),
    ("traceparent", "00-" + "z" * 100),
    ("X-Forwarded-For", "127.0.0.1, ::1, x"),
    ("Authorization", "Bearer " + "a" * 4000),
)
_KINDS: Final[tuple[tuple[str, Callable[[Random], Any]], ...]] = (
    ("tree", _tree),
    ("tree", _tree),
    ("bytes", _bytes),
    ("value", _value),
    ("value", _value),
    ("name", _name),
    ("shape", _shape),
    ("target", _target),
    ("number", _number),
    ("repeated key", _repeated),
    ("nesting", _nested),
    ("length", _long),
    ("text", _text),
    ("coding", _value),
    ("header", _good),
)
