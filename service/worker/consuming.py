"""Whether a worker takes messages from the broker, as the processes see it that it forks."""

from __future__ import annotations

import math
import time
from mmap import mmap
from struct import Struct
from typing import Any, Final

from celery import Celery
from celery.bootsteps import StartStopStep

from service.engine.farm.roster import LEASE_S, SIGN_S

_TIME: Final = Struct("d")


class Consuming:
    """Made, with a connection to the broker, by a worker that begins, before it forks."""

    def __init__(self) -> None:
        self._signed_at = mmap(-1, _TIME.size)
        self.sign()

    def install(self, app: Celery) -> None:
        """Have the worker on `app` sign for as long as it has a connection and its loop goes round."""
        steps: Any = app.steps
        steps["consumer"].add(_signing(self))

    def sign(self) -> None:
        """It does now."""
        _TIME.pack_into(self._signed_at, 0, time.monotonic())

    def end(self) -> None:
        """It does no more, until it signs again."""
        _TIME.pack_into(self._signed_at, 0, -math.inf)

    def goes_on(self) -> bool:
        """Whether it has signed within a lease."""
        (signed_at,) = _TIME.unpack_from(self._signed_at)
        return time.monotonic() - signed_at < LEASE_S


def _signing(consuming: Consuming) -> type[StartStopStep]:
    """What Celery starts when it has a consumer, and stops when it has lost that or shuts down."""

    class Signing(StartStopStep):
        requires = ("celery.worker.consumer:Tasks",)
        _timer: Any = None

        def start(self, parent: Any) -> None:
            consuming.sign()
            self._timer = parent.timer.call_repeatedly(SIGN_S, consuming.sign)

        def stop(self, parent: Any) -> None:
            if self._timer is not None:
                self._timer.cancel()
            consuming.end()

    return Signing
