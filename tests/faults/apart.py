"""The same requests to a service with a store of its own: what a farm made under faults is held to what that makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.faults.requests import HTTP
from tests.service.server import Server


@dataclass(frozen=True, slots=True)
class Made:
    """A program less the seconds that its stages took, and the digests of its artifacts as they are signed."""

    program: Mapping[str, Any]
    artifacts: tuple[str, ...]


def made(answer: Any) -> Made:
    """What the answer to a compile, or a job that is done, has to say of its only program."""
    (program,), (signed,) = answer["programs"], answer["signatures"]
    stages = [stage["name"] for stage in program["stages"]]
    return Made({**program, "stages": stages, "cache": None}, tuple(signed["record"]["artifacts"]))


def made_apart(home: Path, contents: Sequence[bytes]) -> list[Made]:
    """What comes of these requests where nothing is stored; every one of them is compiled."""
    with Server(home) as server, ThreadPoolExecutor(2) as pool:
        answers = [answer.json() for answer in pool.map(server.compile, contents)]
    assert [each["programs"][0]["cache"]["status"] for each in answers] == ["miss"] * len(contents)
    return [made(answer) for answer in answers]


def are_served(url: str, artifacts: Sequence[str]) -> bool:
    """Whether a service gives the bytes that these digests are of."""
    return all(sha256(HTTP.get(f"{url}/artifacts/{each}").content).hexdigest() == each for each in artifacts)
