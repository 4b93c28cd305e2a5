"""Reads requests and writes answers, in short tasks of the sandbox that wait for turns.

Answers of tasks are untrusted: a request may have taken control of its process. An invalid answer is a CrashedError
with the stage `return`, as for a compile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from service.action import Action
from service.fairness.turns import Turns
from service.identity.tenancy import Tenancy
from service.sandbox.connection import Spending
from service.sandbox.control import Limits
from service.sandbox.frames import FrameError, Message
from service.sandbox.reply import checked, error_of, invalid
from service.sandbox.sandbox import Sandbox
from service.store.blobs import INLINE_BYTES, Blobs
from service.wire.body import MAX_BATCH, MAX_TARGETS, NODE, Body, in_terms_of_source
from tensorkiln.compiler_build import build
from tensorkiln.errors import TensorkilnError
from tensorkiln.options import CompileOptions
from tensorkiln.target import Target

from .reproducer import needs_reproducer, with_reproducer

_MOST_PLACE: Final = 512
"""Maximum characters of the place that a node was translated from."""
_PROGRAMS: Final = (b'{"programs":[', b"]}")
_OBJECT: Final = (b"{", b"}")
_MODULE: Final = b'"stablehlo"'
"""Occurs in every body with a StableHLO module instead of a graph."""
T = TypeVar("T")


class _Header(BaseModel):
    """What the header of a task's answer has; nothing in it is trusted."""

    model_config = ConfigDict(strict=True, extra="forbid")


class _PreparedHeader(_Header):
    targets: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_TARGETS)]
    options: dict[str, Any]
    dump_stages: bool


class _SplitHeader(_Header):
    refused: Annotated[dict[str, dict[str, Any]], Field(max_length=MAX_BATCH)]


class _Renaming(BaseModel):
    model_config = ConfigDict(strict=True)

    nodes: list[Annotated[int, Field(ge=0)]]
    places: list[Annotated[str, StringConstraints(max_length=_MOST_PLACE)]] = Field(default_factory=list[str])
    placed: list[Annotated[int, Field(ge=0)]] = Field(default_factory=list[int])
    field: Literal["stablehlo", "builder"] = "stablehlo"


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a compile request asks for: the actions in the order of its targets, the canonical graph and the renaming.

    Every action is made here, of this graph, this build and the caller's salt: a malicious request can neither reach
    the part of the store of another tenant, nor change what others find there.
    """

    actions: tuple[Action, ...]
    dump_stages: bool
    graph: bytes
    renaming: bytes

    @classmethod
    def from_message(cls, message: Message, salt: str) -> Self:
        """What the task `prepare` answered to a request of a caller with this salt."""
        header = checked(_PreparedHeader, message.header)
        graph, renaming = _part(message, "graph"), _part(message, "renaming")
        _check(CompileOptions, {**header.options, "dump_stages": header.dump_stages})
        for target in header.targets:
            _check(Target, target)
        versions = {"build_id": build().build_id, "salt": salt}
        actions = tuple(Action.requested(graph, target, header.options, **versions) for target in header.targets)
        return cls(actions, header.dump_stages, graph, renaming)


def described(message: Message) -> bytes:
    """The body of the answer of the task `validate` or `translate`."""
    return _shaped(_part(message, "answer"), _OBJECT)


def split(message: Message) -> tuple[Body | TensorkilnError, ...]:
    """The compile requests of a batch, each a body or its error, in their order."""
    refused = checked(_SplitHeader, message.header).refused
    parts = message.parts
    count = len(refused) + len(parts)
    positions = [str(position) for position in range(count)]
    if not 0 < count <= MAX_BATCH or {*refused, *parts} != {*positions}:
        raise invalid("Its requests are not numbered from 0 on.")
    return tuple(
        _refusal(refused[at]) if at in refused else Body(parts[at], sha256(parts[at]).hexdigest()) for at in positions
    )


def rendered(message: Message) -> bytes:
    """The answer that the task `render` wrote."""
    return believable(_part(message, "answer"))


def believable(answer: bytes) -> bytes:
    """`answer` itself. CrashedError unless it begins and ends as answers to compile requests do."""
    return _shaped(answer, _PROGRAMS)


def in_user_terms(error: TensorkilnError, renaming: bytes) -> TensorkilnError:
    """The same error with the user's node indices, or places in the source. CrashedError when `renaming` is invalid."""
    known = checked(_Renaming, renaming)
    if known.placed and max(known.placed) >= len(known.places):
        raise invalid("It names a place in the module that is not in its own list.")
    if known.placed:
        about_nodes = any(NODE.match(pointer) for pointer in error.pointers)
        told = in_terms_of_source(error, [known.places[at] for at in known.placed], known.field)
        return told if about_nodes else type(error)(told.message, pointers=error.pointers, details=error.details)

    users = dict(enumerate(known.nodes))

    def rename(text: str) -> str:
        return NODE.sub(lambda match: f"/nodes/{users.get(int(match[1]), int(match[1]))}", text)

    pointers = [rename(pointer) for pointer in error.pointers]
    return type(error)(rename(error.message), pointers=pointers, details=error.details)


def _check(model: type[BaseModel], content: Mapping[str, Any]) -> None:
    """CrashedError unless `model` reads `content` and writes the same."""
    found = checked(model, content).model_dump(mode="json")
    if found != content:
        raise invalid("It describes an action otherwise than the service does.")


def _part(message: Message, name: str) -> bytes:
    if name not in message.parts:
        raise invalid(f"It has no {name}.")
    return message.parts[name]


def _shaped(answer: bytes, ends: tuple[bytes, bytes]) -> bytes:
    """`answer` itself, if it has these `ends`. Only its requester reads it: it is not parsed, only extended."""
    if not (answer.startswith(ends[0]) and answer.endswith(ends[1])):
        raise invalid("It is not the JSON that it should be.")
    return answer


def _refusal(problem: dict[str, Any]) -> TensorkilnError:
    try:
        return error_of(problem)
    except FrameError as error:
        raise invalid(f"{error}.") from None


@dataclass(eq=False)
class Reader:
    """Runs short tasks in `sandbox` within `limits`, by `turns`; a body that kills its task is stored in `blobs`.

    Bodies that seem to have a StableHLO module are read in `compiler`, which has the translator loaded.
    """

    _sandbox: Sandbox
    _compiler: Sandbox
    _limits: Limits
    _turns: Turns
    _tenancy: Tenancy
    _blobs: Blobs

    async def prepare(self, body: Body, on_stage: Callable[[str], None] = lambda _: None) -> Prepared:
        """What a compile request asks for."""
        read = partial(Prepared.from_message, salt=self._tenancy.salt)
        return await self.run("prepare", body, read, on_progress=on_stage)

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
                request = request or Message({}, {"body": body.content})
                answer = await sandbox.run(kind, request, self._limits, on_progress, spending=Spending(turn.charge))
                # It hashes the parts, in a thread when they are large.
                is_large = sum(map(len, answer.parts.values())) >= INLINE_BYTES
                return await asyncio.to_thread(read, answer) if is_large else read(answer)
        except TensorkilnError as error:
            if not needs_reproducer(error) or not self._tenancy.may_compile:
                raise
            raise await with_reproducer(error, body.content, self._blobs) from None
