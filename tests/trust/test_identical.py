"""One digest means one sequence of bytes, whoever compiles; and one graph means one digest, however it is written."""

from __future__ import annotations

import os
import subprocess
import sys
from random import Random
from typing import Any

import pytest

from service.action import Action
from tests.contract.random_graphs import disguised, random_graph
from tests.trust.stores import action

GRAPHS = 8

DIGESTS = """
import json, socket, sys
from random import Random
from typing import Any
from service.sandbox.child import Outlet
from service.sandbox.frames import Message
from service.sandbox.tasks.prepare import prepare
from service.action import Action
from tests.contract.random_graphs import disguised, random_graph
left, right = socket.socketpair()
for seed in range(int(sys.argv[1])):
    plain = random_graph(Random(seed))
    forms = [plain, disguised(Random(seed + 1), plain)]
    texts = [json.dumps(form) for form in forms]
    texts += [json.dumps(plain, indent=1), json.dumps({name: plain[name] for name in reversed(plain)})]
    digests = []
    for text in texts:
        body = b'{"graph": %b, "target": "cpu:x86-64-v3"}' % text.encode()
        answer = prepare(Message({}, {"body": body}), Outlet(left))
        right.recv(1 << 16)
        asked, graph = answer.header, answer.parts["graph"]
        versions = {"build_id": "b", "salt": ""}
        digests += [Action.requested(graph, each, asked["options"], **versions).digest for each in asked["targets"]]
    assert len(set(digests)) == 1, (seed, digests)
    print(digests[0])
"""

COMPILES = """
import sys
from hashlib import sha256
from random import Random
from typing import Any
from passes.compile import CompileRequest, compile_request
from tensorkiln import Graph
from tensorkiln.canonical import canonicalize
from tensorkiln.errors import TensorkilnError
from tensorkiln.options import CompileOptions
from tensorkiln.target import Target
from tests.contract.random_graphs import disguised, random_graph
sys.setrecursionlimit(20_000)
target = Target.parse("cpu:x86-64-v3")
for seed in range(int(sys.argv[1])):
    plain = random_graph(Random(seed))
    form = plain if sys.argv[2] == "plain" else disguised(Random(seed + 1), plain)
    graph = canonicalize(Graph.model_validate(form)).graph
    try:
        made = compile_request(CompileRequest(graph=graph, target=target, options=CompileOptions()))
    except TensorkilnError as error:
        print(seed, error.code)
        continue
    program = made.program.model_copy(update={"stages": ()})
    print(seed, sorted(made.artifacts), sha256(program.model_dump_json().encode()).hexdigest())
"""


def output(script: str, *arguments: str, seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    line = [sys.executable, "-c", script, *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=True, timeout=280, env=environment).stdout


def test_a_digest_has_the_same_bytes_in_every_process() -> None:
    plain = output(COMPILES, str(GRAPHS), "plain", seed="1")
    assert output(COMPILES, str(GRAPHS), "disguised", seed="2") == plain
    compiled = [line for line in plain.splitlines() if "[" in line]
    assert len(compiled) >= GRAPHS // 2


@pytest.mark.parametrize(
    "change",
    [
        {"abi": 2},
        {"build_id": "another"},
        {"graph": "0" * 64},
        {"options": {"fast_math": True}},
        {"salt": "tenant"},
        {"schema": 2},
        {"target": {"kind": "cpu", "features": ["avx", "avx2"]}},
    ],
)
def test_whatever_can_change_the_bytes_changes_the_digest(change: dict[str, Any]) -> None:
    base = action(1)
    assert Action(**{**base.components, **change}).digest != base.digest


def test_graphs_have_one_digest_only_where_all_that_is_live_is_the_same() -> None:
    from tensorkiln import Graph
    from tensorkiln.canonical import canonicalize, graph_digest

    wires = [random_graph(Random(seed)) for seed in range(10 * GRAPHS)]
    forms = [canonicalize(Graph.model_validate(wire)) for wire in wires]
    others = [canonicalize(Graph.model_validate(disguised(Random(1), wire))) for wire in wires]
    assert [graph_digest(form) for form in forms] == [graph_digest(form) for form in others]
    assert len({graph_digest(form) for form in forms}) == len({form.graph.to_json() for form in forms})
