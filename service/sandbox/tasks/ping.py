"""The task that does nothing: whether processes can be forked at all."""

from __future__ import annotations

from service.sandbox.child import Outlet
from service.sandbox.frames import Message


def ping(request: Message, outlet: Outlet) -> Message:
    """The header that came."""
    del outlet
    return Message(request.header)
