"""The task that tries to break out of its confinement."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from service.sandbox.canary.findings import make_attempts
from service.sandbox.canary.victim import Victim
from service.sandbox.child import Outlet
from service.sandbox.frames import Message


def canary(request: Message, outlet: Outlet) -> Message:
    """The header has the fields of a `Victim`; the answer's header has those of a `Findings`."""
    del outlet
    header = request.header
    victim = Victim(
        planted=Path(header["planted"]),
        pid=header["pid"],
        file_bytes=header["file_bytes"],
        memory_bytes=header["memory_bytes"],
        files=tuple(Path(file) for file in header.get("files", ())),
        addresses=tuple(
            (kind, place if isinstance(place, str) else tuple(place)) for kind, place in header.get("addresses", ())
        ),
    )
    return Message(asdict(make_attempts(victim)))
