"""The body of a compile request to its answer, where all that it asks for is stored."""

from __future__ import annotations

from service.sandbox.child import Outlet
from service.sandbox.frames import Message

from .prepare import prepare
from .render import render


def answer(request: Message, outlet: Outlet) -> Message:
    """The request is that of the task `prepare`, whose answer is the question: which programs are there?

    The response has the header and the programs of a request for the task `render`, whose answer is that of this one.
    To a response without programs there is none.
    """
    prepared = prepare(request, outlet)
    outlet.stage("look-up")
    stored = outlet.ask(prepared)
    if not stored.parts:
        return Message()
    return render(Message(stored.header, {**stored.parts, "renaming": prepared.parts["renaming"]}), outlet)
