"""What a request looked like that killed its process, kept so that it can be sent again."""

from __future__ import annotations

import json

from service.action import Action
from service.store.blobs import Blobs
from tensorkiln.errors import CrashedError, DeadlineExceededError, ResourceExhaustedError, TensorkilnError

_FATAL = (CrashedError, DeadlineExceededError, ResourceExhaustedError)


def needs_reproducer(error: TensorkilnError) -> bool:
    """Whether `error` is the end of a process, not an answer of the compiler."""
    return isinstance(error, _FATAL)


def compile_reproducer(graph: bytes, action: Action) -> bytes:
    """A body of POST /compile that asks for one action; `graph` is the JSON of the canonical graph."""
    rest = {"target": action.target, "options": action.options}
    return b'{"graph":%b,%b' % (graph, json.dumps(rest, separators=(",", ":"), sort_keys=True).encode()[1:])


async def with_reproducer(error: TensorkilnError, body: bytes, blobs: Blobs) -> TensorkilnError:
    """`error` with the digest in `details.reproducer` under which `body` is kept as an artifact."""
    digest = await blobs.put(body)
    return type(error)(error.message, pointers=error.pointers, details={**error.details, "reproducer": digest})
