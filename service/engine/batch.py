"""The requests of a batch."""

from __future__ import annotations

import asyncio
from hashlib import sha256

from service.body import Body
from service.sandbox.frames import Message
from tensorkiln.errors import TensorkilnError, error_from_problem


async def bodies_of(split: Message) -> tuple[Body | TensorkilnError, ...]:
    """What the job `split` made of a batch, in the order of the requests."""
    return await asyncio.to_thread(_bodies_of, split)


def _bodies_of(split: Message) -> tuple[Body | TensorkilnError, ...]:
    refused, parts = split.header["refused"], split.parts
    found: list[Body | TensorkilnError] = []
    for position in map(str, range(len(refused) + len(parts))):
        if position in refused:
            found.append(error_from_problem(refused[position]))
        else:
            found.append(Body(parts[position], sha256(parts[position]).hexdigest()))
    return tuple(found)
