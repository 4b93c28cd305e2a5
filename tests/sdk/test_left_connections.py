"""A connection that a signal took somebody from in the middle is given to nobody else."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from tensorkiln import Client
from tests.sdk.scripted import ScriptedServer


@pytest.mark.parametrize("raised", [KeyboardInterrupt, ZeroDivisionError], ids=["Ctrl-C", "a handler of one's own"])
def test_the_next_request_waits_for_none_that_was_left(
    scripted: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: type[BaseException]
) -> None:
    send = httpx2.HTTPTransport.handle_request

    def left(transport: httpx2.HTTPTransport, request: httpx2.Request) -> httpx2.Response:
        # The answer is there, and nobody has it yet who would close it.
        send(transport, request)
        raise raised

    scripted.answers_with(b'{"first": 1}')
    scripted.answers_with(b'{"second": 2}')
    with Client(scripted.url, cache_dir=tmp_path, timeout_s=5) as client:
        monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", left)
        with pytest.raises(raised):
            client.capabilities()
        monkeypatch.undo()
        assert client.capabilities() == {"second": 2}
