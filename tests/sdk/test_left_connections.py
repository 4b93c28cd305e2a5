"""A connection that a signal took somebody from in the middle is given to nobody else."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from tensorkiln import Client
from tests.sdk.scripted import ScriptedServer
from tests.sdk.test_closed import arrived


@pytest.fixture(params=[KeyboardInterrupt, ZeroDivisionError], ids=["Ctrl-C", "a handler of one's own"])
def raised(request: pytest.FixtureRequest) -> Generator[type[BaseException]]:
    """What the handler of SIGINT raises meanwhile."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("a signal is the main thread's")

    def handle(number: int, frame: object) -> None:
        raise request.param

    before = signal.signal(signal.SIGINT, handle)
    yield request.param
    signal.signal(signal.SIGINT, before)


def test_the_next_request_waits_for_none_that_was_left(
    scripted: ScriptedServer, tmp_path: Path, raised: type[BaseException]
) -> None:
    def interrupt() -> None:
        arrived(scripted, 1)
        os.kill(os.getpid(), signal.SIGINT)

    scripted.answers_with(b'{"first": 1}', delay_s=60.0)
    scripted.answers_with(b'{"second": 2}')
    interrupting = threading.Thread(target=interrupt)
    with Client(scripted.url, cache_dir=tmp_path, timeout_s=30) as client:
        interrupting.start()
        with pytest.raises(raised):
            client.capabilities()
        interrupting.join()
        assert client.capabilities() == {"second": 2}
