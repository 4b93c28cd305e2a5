"""Split the body of a batch into the bodies of its compile requests."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from service.sandbox.child import Outlet
from service.sandbox.frames import Message
from service.wire.body import MAX_BATCH
from tensorkiln.errors import LimitExceededError, RequestError

from .envelope import OF_COMPILE, check_fields, parse_object

REQUESTS: Final = "requests"


class _Batch(msgspec.Struct):
    requests: list[msgspec.Raw]


def split(request: Message, outlet: Outlet) -> Message:
    """Split the part `body`, an object whose `requests` are bodies of compile requests.

    The answer's header has `refused`: by position, a problem for each request with wrong fields. Every other request is
    a part named by its position, with the bytes as sent, so that its hash equals that of the same request sent alone.
    """
    outlet.stage("parse")
    body = request.parts["body"]
    wanted = check_fields(parse_object(body), (REQUESTS,))[REQUESTS]
    if not isinstance(wanted, list) or not wanted:
        raise RequestError(f"{REQUESTS} is not a list of requests.", pointers=[f"/{REQUESTS}"])
    requests: list[Any] = wanted
    if len(requests) > MAX_BATCH:
        raise LimitExceededError(
            f"The batch has {len(requests)} requests; the limit is {MAX_BATCH}.",
            pointers=[f"/{REQUESTS}"],
            limit="batch",
            maximum=MAX_BATCH,
            actual=len(requests),
        )
    refused: dict[str, Any] = {}
    parts: dict[str, bytes] = {}
    texts = msgspec.json.decode(body, type=_Batch).requests
    for position, (each, text) in enumerate(zip(requests, texts, strict=True)):
        try:
            check_fields(each, *OF_COMPILE)
        except RequestError as error:
            refused[str(position)] = error.to_problem()
        else:
            parts[str(position)] = bytes(text)
    return Message({"refused": refused}, parts)
