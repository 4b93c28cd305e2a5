"""Reproducers: requests that killed their process, stored so that they can be sent again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import structlog

from service.action import Action
from service.store.blobs import Blobs
from tensorkiln.errors import (
    CrashedError,
    DeadlineExceededError,
    ResourceExhaustedError,
    TensorkilnError,
    UnavailableError,
)

_log = structlog.get_logger()
_BEGINNING: Final = b'{"graph":'
_FATAL = (CrashedError, DeadlineExceededError, ResourceExhaustedError)


def needs_reproducer(error: TensorkilnError) -> bool:
    """Whether `error` says that a process crashed or was killed at a limit."""
    return isinstance(error, _FATAL)


def compile_reproducer(graph: bytes, action: Action) -> bytes:
    """A body of POST /compile that asks for one action; `graph` is the JSON of the canonical graph."""
    return b"%b%b,%b" % (_BEGINNING, graph, _rest(action.target, action.options))


def reproduced_action(reproducer: bytes, build_id: str, salt: str) -> Action | None:
    """The action of a body that `compile_reproducer` made; None for other bytes."""
    try:
        asked = json.loads(reproducer)
        target, options = asked["target"], asked["options"]
        ending = b"," + _rest(target, options)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    graph = reproducer.removeprefix(_BEGINNING).removesuffix(ending)
    return Action.requested(graph, target, options, build_id=build_id, salt=salt)


def _rest(target: Mapping[str, Any], options: Mapping[str, Any]) -> bytes:
    return json.dumps({"target": target, "options": options}, separators=(",", ":"), sort_keys=True).encode()[1:]


async def with_reproducer(error: TensorkilnError, body: bytes, blobs: Blobs) -> TensorkilnError:
    """`error` with the digest of `body`, which is stored, in `details.reproducer`; itself if the store refuses."""
    try:
        digest = await blobs.put(body)
    except UnavailableError as unavailable:
        _log.warning("a reproducer was not stored", reason=unavailable.message)
        return error
    return with_details(error, reproducer=digest)


def with_details(error: TensorkilnError, **more: Any) -> TensorkilnError:
    return type(error)(error.message, pointers=error.pointers, details={**error.details, **more})
