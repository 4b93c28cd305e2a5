"""A service whose store is damaged serves nothing wrong, and makes again what was lost, as whoever asks for it sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from service.store.records import unsealed
from tests.faults.apart import Made, made
from tests.faults.size import figures, sized
from tests.observe.figures import Figures
from tests.service.bodies import compile_body, encoded, graph
from tests.service.server import Server
from tests.service.test_store import flip, truncate

ENTRIES = sized(15, 1000)
"""At the small size each of five files is damaged in each of three ways."""
DAMAGES: list[Callable[[Path], None]] = [flip, truncate, Path.unlink]
KINDS = ("programs", "requests", "blobs")


def content(number: int, name: str = "g") -> bytes:
    return encoded(compile_body(graph(rows=number + 1, name=name)))


def stored(home: Path) -> set[Path]:
    """The files of what can be compiled again: records of programs and requests, programs, code, answers."""
    return {path for kind in KINDS for path in (home / "store" / kind).rglob("*") if path.is_file()}


def is_whole(path: Path) -> bool:
    if not path.exists():
        return False
    held = path.read_bytes()
    return sha256(held).hexdigest() == path.name if path.parts[-3] == "blobs" else unsealed(held) is not None


def asked(server: Server, body: bytes) -> tuple[Made, list[str]]:
    """A program, less its name and who made it, and the digests of the code that is served for it."""
    answer = server.compile(body)
    assert answer.status_code == 200, answer.text
    found = made(answer.json())
    code = [server.http.get(f"/artifacts/{digest}") for digest in found.artifacts]
    assert [each.status_code for each in code] == [200] * len(code)
    return Made({**found.program, "name": ""}, found.artifacts), [sha256(each.content).hexdigest() for each in code]


@dataclass(frozen=True, slots=True)
class Look:
    """What a service that has just begun made of requests: how many answers, wrong ones, compiles, damaged entries."""

    answers: int
    wrong: int
    compiled: int
    counted: dict[str, int]


def look(home: Path, wanted: Sequence[tuple[Made, list[str]]]) -> Look:
    """Ask for everything, by a service that remembers no answer."""
    with Server(home) as server:
        # The same bytes find the answer, the same graph by another name the program.
        right = [
            asked(server, content(number, name)) == each
            for number, each in enumerate(wanted)
            for name in ("g", f"by_{server.pid}")
        ]
        told = Figures(server)
    compiled = int(told("kiln_job_seconds_count", kind="compile", outcome="ok"))
    counted = {kind: int(told("kiln_cache_corrupt_total", kind=kind)) for kind in sorted(told.values("kind"))}
    return Look(len(right), right.count(False), compiled, {kind: count for kind, count in counted.items() if count})


def test_a_service_compiles_again_what_is_damaged_in_its_store(tmp_path: Path) -> None:
    home = tmp_path / "kiln"
    before: list[tuple[Made, list[str]]] = []
    damaged: list[Path] = []
    with Server(home) as server:
        for number in range(ENTRIES):
            known = stored(home)
            before.append(asked(server, content(number)))
            # One of the files of each entry, of every kind in turn.
            files = sorted(stored(home) - known, key=lambda path: (path.parts[-3], path.stat().st_mtime_ns))
            assert len(files) == 5, "a record of the program and of the request; program, code and answer"
            damaged.append(files[number % 5])
    for number, path in enumerate(damaged):
        DAMAGES[number // 5 % 3](path)
    healing, healed = look(home, before), look(home, before)
    figures(
        "a damaged store",
        damaged=dict(Counter(path.parts[-3] for path in damaged)),
        answers=healing.answers,
        wrong=healing.wrong + healed.wrong,
        compiled_again=healing.compiled,
        counted=healing.counted,
        and_the_next_time=(healed.compiled, healed.counted),
    )
    assert (healing.wrong, healed.wrong) == (0, 0)
    # A flip or a cut is met once and counted once. What is gone can only be missed, where an entry is incomplete by it.
    met = sum(count for kind, count in healing.counted.items() if kind != "incomplete")
    assert met == sum(number // 5 % 3 < 2 for number in range(ENTRIES))
    assert healing.compiled >= ENTRIES // 5, "code is made by compiling only"
    # Programs and answers say how long they took: those that are made again may have other names than before.
    assert (healed.compiled, healed.counted) == (0, {})
    assert [path for path in stored(home) if not is_whole(path)] == []
