"""A message that a worker has, as Celery keeps it."""

from __future__ import annotations

from typing import Any

from celery.worker.request import Request


class Delivered(Request):
    """One whose acknowledgement ends the connection when it fails, and so has another made.

    Celery logs such a failure. With Redis it is the only sign that the connection is lost, for a worker that has all
    the messages that it may have reads nothing; what it could not give back counts among them for ever.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "connection_errors": ()})
