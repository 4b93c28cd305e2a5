"""A task that does nothing: it shows that processes can be forked."""

from __future__ import annotations

from service.sandbox.child import Outlet
from service.sandbox.frames import Message


def ping(request: Message, outlet: Outlet) -> Message:
    """Return the request's header."""
    del outlet
    return Message(request.header)
