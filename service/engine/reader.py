"""Reads requests and writes answers, in short tasks of the sandbox that wait for turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from service.fairness.turns import Turns
from service.identity.tenancy import Tenancy
from service.sandbox.connection import Spending
from service.sandbox.control import Limits
from service.sandbox.frames import Message
from service.sandbox.sandbox import Sandbox
from service.store.blobs import Blobs
from service.wire.body import Body
from tensorkiln.compiler_build import build
from tensorkiln.errors import TensorkilnError

from .reproducer import needs_reproducer, with_reproducer
from .task_answers import believed

_MODULE: Final = b'"stablehlo"'
"""Occurs in every body with a StableHLO module instead of a graph."""
T = TypeVar("T")


class Reader:
    """Runs short tasks in `sandbox` within `limits`, by `turns`; a body that kills its task is stored in `blobs`.

    Bodies with a StableHLO module are read in `compiler`, if there is one, which has the reader of modules loaded. That
    is a guess by the bytes. A wrong guess only costs time, as both sandboxes can read every body.
    """

    def __init__(
        self, sandbox: Sandbox, compiler: Sandbox | None, limits: Limits, turns: Turns, tenancy: Tenancy, blobs: Blobs
    ) -> None:
        self._sandbox = sandbox
        self._compiler = compiler or sandbox
        self._limits = limits
        self._turns = turns
        self._tenancy = tenancy
        self._blobs = blobs

    async def run(
        self,
        kind: str,
        body: Body,
        read: Callable[[Message], T],
        request: Message | None = None,
        on_progress: Callable[[str], None] = lambda _: None,
    ) -> T:
        """Run a task on `body`, or on `request` if it is given; what `read` makes of its answer."""
        sandbox = self._compiler if _MODULE in body.content else self._sandbox
        try:
            async with self._turns.turn(len(body.content)) as turn:
                request = request or of_body(body)
                answer = await sandbox.run(kind, request, self._limits, on_progress, spending=Spending(turn.charge))
                return await believed(read, answer)
        except TensorkilnError as error:
            if not needs_reproducer(error) or not self._tenancy.may_compile:
                raise
            raise await with_reproducer(error, body.content, self._blobs) from None


def of_body(body: Body, header: Mapping[str, str] | None = None) -> Message:
    return Message(header or {}, {"body": body.content})


def of_actions(body: Body, salt: str) -> Message:
    """The request of a task that reads a body and names the actions that it asks for."""
    return of_body(body, {"build_id": build().build_id, "salt": salt})
