"""What a client keeps of its questions: the digest of the program that answered each, and a file of nothing else."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import NoReturn

import pytest

from tensorkiln import Graph
from tensorkiln.artifacts import ArtifactCache
from tensorkiln.cache import LocalCache
from tensorkiln.errors import NotFoundError
from tensorkiln.immediate import inline, run
from tensorkiln.options import CompileOptions
from tensorkiln.target import Target
from tensorkiln.trust.programs import Sources, TrustedPrograms
from tensorkiln.trust.question import Question
from tensorkiln.trust.service_keys import ServiceKeys


async def fetch(_: str) -> NoReturn:
    raise AssertionError("a client that is offline fetches nothing")


@pytest.mark.parametrize(
    "damaged",
    [b"", b"?" * 100_000, b"A" * 64, b"a" * 63, b"a" * 64 + b"\n", b"\xff" * 64],
    ids=["empty", "long", "capitals", "short", "line", "bytes"],
)
def test_a_damaged_pointer_is_removed_and_not_repeated(small: Graph, tmp_path: Path, damaged: bytes) -> None:
    kept = LocalCache(tmp_path / "records", 1 << 20)
    keys = ServiceKeys("a service", None, tmp_path, pins=(), is_private=False)
    programs = TrustedPrograms("a service", keys, "process", Sources(None, ArtifactCache(fetch), kept, inline))
    target = Target.parse("cpu:x86-64-v3")
    question = Question.of(small, [target], CompileOptions())
    with pytest.raises(NotFoundError) as never:
        run(programs.kept(question))
    name = sha256(f"a service\nquestion {question.key(target)}".encode()).hexdigest()
    kept.write(name, damaged)
    with pytest.raises(NotFoundError) as caught:
        run(programs.kept(question))
    assert caught.value.message == never.value.message
    assert kept.read(name) is None
