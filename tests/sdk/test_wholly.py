"""What must not be left half done is undone for whoever is interrupted, however late it is done."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Generator

import pytest

from tensorkiln import wire
from tensorkiln.immediate import run
from tensorkiln.wire import BlockingWire


@pytest.fixture
def interrupted() -> Generator[None]:
    """Somebody presses Ctrl-C in a moment."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("a signal is the main thread's")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    yield
    timer.join()
    signal.signal(signal.SIGINT, before)


def after(seconds: float, undone: list[str], error: Exception | None = None) -> str:
    async def work() -> str:
        time.sleep(seconds)
        if error is not None:
            raise error
        return "done"

    async def undo(what: str) -> None:
        undone.append(what)

    return run(BlockingWire().wholly(work(), undo))


def test_who_is_not_interrupted_gets_the_result() -> None:
    undone: list[str] = []
    assert after(0.0, undone) == "done"
    with pytest.raises(ZeroDivisionError):
        after(0.0, undone, ZeroDivisionError())
    assert undone == []


@pytest.mark.usefixtures("interrupted")
def test_who_is_interrupted_waits_until_it_is_undone() -> None:
    undone: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        after(0.5, undone)
    assert undone == ["done"]


@pytest.mark.usefixtures("interrupted")
def test_what_takes_too_long_to_wait_for_is_undone_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "SETTLE_S", 0.05)
    undone: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        after(1.0, undone)
    assert undone == []
    while not undone:
        time.sleep(0.02)
    assert undone == ["done"]


@pytest.mark.usefixtures("interrupted")
def test_what_fails_after_the_interrupt_has_nothing_to_undo() -> None:
    undone: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        after(0.5, undone, ZeroDivisionError())
    assert undone == []
