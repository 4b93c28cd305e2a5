from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from service.sandbox import landlock
from service.sandbox.levels import Level, Wall
from tests.sandbox.shared import Boxes
from tests.service.server import Server

LEVELS: Final = {
    Wall.PROCESS: Level.PROCESS,
    Wall.AUTO: Level.LANDLOCK if landlock.support().abi else Level.PROCESS,
    Wall.BWRAP: Level.EXTERNAL,
}


@pytest.fixture(scope="package")
def boxes() -> Iterator[Boxes]:
    """Sandboxes for tests that leave their fork servers as they are."""
    with Boxes() as made:
        yield made


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Wall], Server]]:
    """The service behind a wall, which requires its level, for tests that compile graphs of their own."""
    made: dict[Wall, Server] = {}
    with ExitStack() as running:

        def service(wall: Wall) -> Server:
            if wall not in made:
                walled: dict[str, Any] = {"isolation": wall.value, "require_isolation": LEVELS[wall].value}
                home = tmp_path_factory.mktemp(wall.value)
                made[wall] = running.enter_context(Server(home, fails=True, compile_deadline_s=10, **walled))
            return made[wall]

        yield service
