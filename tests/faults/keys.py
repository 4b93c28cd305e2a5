"""Is a digest what it should be? `python -m tests.faults.keys [GRAPHS]` prints how many forms of how many graphs agree.

In a process of its own for each PYTHONHASHSEED, and with every change of what matters.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from copy import deepcopy
from random import Random
from typing import Any, Final

from service.action import Action
from service.sandbox.child import Outlet
from service.sandbox.frames import Message
from service.sandbox.tasks.prepare import prepare
from tensorkiln.canonical import canonicalize
from tensorkiln.errors import TensorkilnError
from tensorkiln.graph import Graph
from tests.contract.random_graphs import random_graph
from tests.faults.interpreters import NONE, other_interpreters, run

SEEDS: Final = 10
TARGETS: Final[tuple[Any, ...]] = (
    "cpu:x86-64-v2",
    "cpu:x86-64-v3",
    "cpu:x86-64-v4",
    "cpu:aarch64",
    "cuda:sm_80",
    "cuda:sm_90",
    {"kind": "cpu", "triple": "x86_64-unknown-linux-gnu", "cpu": "x86-64-v3", "features": ["avx", "avx2"]},
    {"kind": "cpu", "triple": "x86_64-unknown-linux-gnu", "cpu": "x86-64-v3", "features": ["avx"]},
    {"kind": "cpu", "triple": "x86_64-unknown-linux-musl", "cpu": "x86-64-v3", "features": ["avx"]},
)
OPTIONS: Final[tuple[Mapping[str, bool], ...]] = ({}, {"fast_math": True}, {"cubin": True})
HEADERS: Final[tuple[Mapping[str, str], ...]] = (
    {"build_id": "a", "salt": ""},
    {"build_id": "b", "salt": ""},
    {"build_id": "a", "salt": "s"},
)


DIGESTS: Final = """
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


def output(script: str, *arguments: str, seed: str) -> str:
    """What a script prints in a process with this PYTHONHASHSEED."""
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    line = [sys.executable, "-c", script, *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=True, timeout=280, env=environment).stdout


def digests_by_seed(graphs: int, seeds: int = SEEDS) -> list[list[str]]:
    """The digests of so many graphs, each written in four ways that agreed, for so many values of PYTHONHASHSEED."""
    return [output(DIGESTS, str(graphs), seed=str(seed)).split() for seed in range(seeds)]


def digests_elsewhere(graphs: int) -> dict[str, list[str]]:
    """The same by the version of every other interpreter there is. RuntimeError for one in which the forms disagree."""
    found: dict[str, list[str]] = {}
    for version, python in other_interpreters().items():
        ran = run(python, DIGESTS, str(graphs))
        if ran.returncode:
            raise RuntimeError(f"Python {version}: {ran.stderr}")
        found[version] = ran.stdout.split()
    return found


def digest(wire: Any, target: Any = "cpu:x86-64-v3", header: Mapping[str, str] = HEADERS[0], **options: bool) -> str:
    """The action digest of a request."""
    body = json.dumps({"graph": wire, "target": target, "options": options}).encode()
    left, right = socket.socketpair()
    with left, right:
        answer = prepare(Message({}, {"body": body}), Outlet(left))
    (asked,) = answer.header["targets"]
    return Action.requested(answer.parts["graph"], asked, answer.header["options"], **header).digest


def requests(wire: Any) -> Iterator[str]:
    """The digests of one graph under everything else that goes into one."""
    for target in TARGETS:
        for options in OPTIONS:
            for header in HEADERS:
                yield digest(wire, target, header, **options)


def changes(seed: int) -> Iterator[tuple[str, str, str]]:
    """A graph with nothing dead, and each of its changes: what was changed, the digest before and that after."""
    live = json.loads(canonicalize(Graph.model_validate(random_graph(Random(seed)))).graph.to_json())
    del live["vars_metadata"]
    before = digest(live)
    for what, changed in _changed(live):
        try:
            yield what, before, digest(changed)
        except TensorkilnError:
            continue  # a graph no longer


def _changed(wire: Any) -> Iterator[tuple[str, Any]]:
    text = json.dumps(wire)
    yield "dtype", json.loads(text.replace('"int32"', '"int64"'))
    for place, node in enumerate(wire["nodes"]):
        for name, value in node.items():
            for other in _others(name, value):
                changed = deepcopy(wire)
                changed["nodes"][place][name] = other
                yield f"{node['node']}.{name}", changed
    for place, symbol in enumerate(wire["symbolic_vars"]):
        changed = deepcopy(wire)
        changed["symbolic_vars"][place]["max_val"] = symbol["max_val"] + 3
        yield "symbol", changed
    if '"shape": [3]' in text:
        yield "shape", json.loads(text.replace('"shape": [3]', '"shape": [5]'))


def _others(name: str, value: Any) -> Iterator[Any]:
    if name == "op":
        yield from (op for op in ("add", "sub", "mul", "neg", "exp2") if op != value)
    elif name == "value" and isinstance(value, int):
        yield value + 3


def main() -> int:
    """The exit status: 1 when two digests are alike that should not be, or the other way round."""
    graphs = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    found = digests_by_seed(graphs)
    agree = sum(len({digests[place] for digests in found}) == 1 for place in range(graphs))
    print(f"{agree} of {graphs} graphs have one digest in 4 forms and with {SEEDS} hash seeds")
    elsewhere = digests_elsewhere(graphs)
    for version, digests in elsewhere.items():
        same = sum(there == here for there, here in zip(digests, found[0], strict=True))
        print(f"{same} of {graphs} have the same one with Python {version}, here {sys.version.split()[0]}")
    if not elsewhere:
        print(f"no other interpreter: {NONE}")
    made = [change for seed in range(graphs) for change in changes(seed)]
    told = sum(before != after for _, before, after in made)
    print(f"{told} of {len(made)} changes of a graph change its digest")
    apart = list(requests(random_graph(Random(0))))
    print(f"{len(set(apart))} of {len(apart)} combinations of what else goes into a digest have one of their own")
    alike = all(digests == found[0] for digests in elsewhere.values())
    return 0 if alike and (agree, told, len(set(apart))) == (graphs, len(made), len(apart)) else 1


if __name__ == "__main__":
    sys.exit(main())
