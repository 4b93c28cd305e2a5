"""The job that fails as it is told, for the tests."""

from __future__ import annotations

from service.sandbox import hooks
from service.sandbox.child import Outlet
from service.sandbox.frames import Message


def hook(request: Message, outlet: Outlet) -> Message:
    """`hook` in the header names a test hook."""
    hooks.run(request.header["hook"], outlet)
    return Message()
