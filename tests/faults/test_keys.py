"""A digest is the same for what is the same, another for what is not, and stands for the same bytes everywhere."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.contract.random_graphs import disguised, random_graph
from tests.faults.interpreters import NONE, other_interpreters
from tests.faults.keys import DIGESTS, SEEDS, changes, digest, digests_by_seed, digests_elsewhere, output, requests
from tests.service.bodies import compile_body, encoded
from tests.service.server import Server


def test_a_graph_has_one_digest_in_every_form_and_with_every_hash_seed(size: Callable[[int, int], int]) -> None:
    graphs, seeds = size(32, 500), size(3, SEEDS)
    found = digests_by_seed(graphs, seeds)
    assert len({tuple(digests) for digests in found}) == 1
    assert [len(digests) for digests in found] == [graphs] * seeds
    # A few have nothing but an input left once what is dead is gone, and are the same then.
    assert len({*found[0]}) > 3 * graphs / 4
    print(f"{graphs} of {graphs} graphs have one digest in 4 forms and with {seeds} hash seeds")


def test_a_graph_has_one_digest_with_every_python(size: Callable[[int, int], int]) -> None:
    graphs = size(20, 500)
    elsewhere = digests_elsewhere(graphs)
    if not elsewhere:
        pytest.skip(NONE)
    here = output(DIGESTS, str(graphs), seed="0").split()
    assert len(here) == graphs
    for version, digests in elsewhere.items():
        assert digests == here, version
        print(f"{graphs} of {graphs} graphs have one digest here and with Python {version}")


def test_an_interpreter_that_is_named_and_cannot_read_a_request_is_no_reason_to_skip(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KILN_PYTHONS", shutil.which("false") or "")
    with pytest.raises(RuntimeError, match="false, which KILN_PYTHONS names, cannot read a request"):
        other_interpreters()


def test_every_change_of_a_graph_changes_its_digest(size: Callable[[int, int], int]) -> None:
    made = [change for seed in range(size(40, 500)) for change in changes(seed)]
    assert [what for what, before, after in made if before == after] == []
    kinds = Counter(what for what, _, _ in made)
    print(f"{len(made)} of {len(made)} changes of a graph change its digest: {dict(kinds)}")
    assert {"dtype", "shape", "symbol", "binop.op", "const_scalar.value"} <= set(kinds)


def test_every_target_option_build_and_salt_makes_a_digest_of_its_own(size: Callable[[int, int], int]) -> None:
    for seed in range(size(1, 20)):
        wire = random_graph(Random(seed))
        found = list(requests(wire))
        assert len(set(found)) == len(found)
        assert digest(wire, dump_stages=True) == digest(wire), "what changes no byte changes no digest"


def test_a_graph_has_the_same_bytes_from_every_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: Callable[[int, int], int]
) -> None:
    graphs = size(4, 200)
    with ExitStack() as running:
        services: list[Server] = []
        for number in ("1", "2"):
            services.append(running.enter_context(Server(tmp_path / number, worker=f"worker {number}")))
            monkeypatch.setenv("PYTHONHASHSEED", "3")
        compiled = alike = 0
        for seed in range(graphs):
            plain = random_graph(Random(seed))
            forms = (plain, disguised(Random(seed + 1), plain))
            first, second = (_made(service, form) for service, form in zip(services, forms, strict=True))
            compiled += first is not None
            alike += first == second
        print(f"{alike} of {graphs} graphs come to the same from both, {compiled} of them to a program")
        assert alike == graphs
        assert compiled > graphs / 2


def _made(service: Server, wire: Any) -> Any:
    """The program in canonical names, less the time it took and who made it; None when it is refused."""
    answer = service.compile(encoded(compile_body(wire)))
    if answer.status_code != 200:
        assert answer.status_code == 422
        return None
    (named,) = answer.json()["programs"]
    program = service.http.get(f"/programs/{named['digest']}").json()
    artifacts = [kernel["artifact"] for kernel in program["kernels"]]
    contents = [service.http.get(f"/artifacts/{artifact}").content for artifact in artifacts]
    return {**program, "stages": [stage["name"] for stage in program["stages"]]}, contents
