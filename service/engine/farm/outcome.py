"""What has come of an order of a farm: what a worker made is taken from the store, if it is to be believed."""

from __future__ import annotations

import asyncio
from typing import Final

from service import clock
from service.engine.order import Made, Order, Wanted
from service.store.blobs import Blobs
from service.store.programs import Entry, Miss, Programs
from tensorkiln.errors import UnavailableError, UntrustedArtifactError, error_from_problem

from .ledger import Result

_PAUSE_S: Final = 1.0
# A key that a worker has just made is seen a second later, where the directory is the same.
_KEY_PATIENCE_S: Final = 3.0


class Outcome:
    """Looks in `programs` and `blobs`."""

    def __init__(self, programs: Programs, blobs: Blobs) -> None:
        self._programs = programs
        self._blobs = blobs

    async def of(self, order: Order, result: Result, attempt: int) -> Made:
        """What the result of this attempt says, or the error that it is.

        UnavailableError when what was made is gone. UntrustedArtifactError when the farm's settings keep it from being
        believed.
        """
        if result.problem is None:
            return await self._made(order.wanted, result, attempt)
        # Of an order that was given up, what a worker said may be lost, or not believed, and not what it made.
        is_given_up = not result.worker and not order.replaces
        if is_given_up and isinstance(await self._find(order.wanted), Entry):
            return await self._made(order.wanted, result, attempt)
        raise error_from_problem(result.problem)

    async def _made(self, wanted: Wanted, result: Result, attempt: int) -> Made:
        found = await self._find(wanted)
        program = await self._blobs.get(found.program) if isinstance(found, Entry) else None
        if not isinstance(found, Entry) or program is None:
            raise UnavailableError("The program that the farm compiled is not in the store; send the request again.")
        return Made(program, found, None, attempt + result.attempts - 1)

    async def _find(self, wanted: Wanted) -> Entry | Miss:
        until = clock.monotonic() + _KEY_PATIENCE_S
        while True:
            found = await self._programs.find(wanted.action, with_dumps=wanted.with_dumps)
            doubt = await self._programs.doubt(wanted.action) if isinstance(found, Miss) else None
            if doubt is None:
                return found
            if doubt.details["reason"] != "unknown_key" or clock.monotonic() > until:
                raise _unlike(doubt)
            await asyncio.sleep(_PAUSE_S)


def _unlike(doubt: UntrustedArtifactError) -> UntrustedArtifactError:
    """The end of an order that the same workers would only make again, to be believed no more than now."""
    setting = "KILN_REQUIRE_ISOLATION" if doubt.details["reason"] == "isolation" else "KILN_KEYS"
    return UntrustedArtifactError(
        f"{doubt.message} Services and workers of a farm need the same {setting}.", details=doubt.details
    )
