"""Reading a task's answer while it arrives; and the header of a compile's, validated as untrusted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from tensorkiln.errors import (
    CompileError,
    CrashedError,
    InvalidGraphError,
    LimitExceededError,
    RequestError,
    TensorkilnError,
    UnsupportedGraphError,
    error_from_problem,
)
from tensorkiln.limits import SHA256_PATTERN
from tensorkiln.spec.tuning import Tuning

from . import frames
from .frames import FrameError, Message

FIRST_STAGE: Final = "start"
MAX_STAGE_BYTES: Final = 256
MAX_STAGES: Final = 256
"""A compile has a dozen, and each is reported to its callers."""
MAX_PARTS: Final = 1 << 16
"""A graph of 50 000 constants has one for each."""
_OF_A_TASK: Final = (InvalidGraphError, UnsupportedGraphError, LimitExceededError, CompileError, RequestError)
"""Errors about the request, which a task may report; errors of the service it may not."""
_OF_THE_SERVICE: Final = frozenset({"reproducer", "attempts", "cached", "queue_ms"})
"""Details that only the service may set, because it acts on them: access to reproducers, earlier attempts."""
MOST_TUNING_BYTES: Final = 64 << 20
"""Enough for the record of a program with the most kernels allowed, four candidates each."""
Model = TypeVar("Model", bound=BaseModel)
_Seconds = Annotated[float, Field(strict=True, ge=0.0, allow_inf_nan=False)]
_Digest = Annotated[str, StringConstraints(strict=True, pattern=SHA256_PATTERN)]


class TooMuchOutput(Exception):
    """The task sent more than `max_bytes`."""


class Reply:
    """The answer of one task; `stage` is the last one that it began."""

    def __init__(self, max_bytes: int, on_stage: Callable[[str], None]) -> None:
        self._left = max_bytes
        self._on_stage = on_stage
        self._parts: dict[str, bytes] = {}
        self._stages = 0
        self.stage = FIRST_STAGE

    async def read(self, reader: asyncio.StreamReader) -> Message | TensorkilnError | None:
        """The answer, or the typed error that the task ended with; None when the task broke off.

        FrameError when it breaks the protocol, `TooMuchOutput` when it reached that limit.
        """
        try:
            while True:
                kind, length = frames.decode_prefix(await reader.readexactly(frames.PREFIX.size))
                self._left -= frames.PREFIX.size + length
                if self._left < 0:
                    raise TooMuchOutput
                payload = await reader.readexactly(length)
                if (answer := self._take(kind, payload)) is not None:
                    return answer
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    def _take(self, kind: bytes, payload: bytes) -> Message | TensorkilnError | None:
        if kind == frames.DONE:
            return Message(frames.decode_json(payload), self._parts)
        if kind == frames.FAILED:
            return error_of(frames.decode_json(payload))
        if kind == frames.PART:
            self._keep(*frames.decode_part(payload))
        else:
            self._begin(payload)
        return None

    def _keep(self, name: str, content: bytes) -> None:
        if name in self._parts:
            raise FrameError("two parts have one name")
        if len(self._parts) == MAX_PARTS:
            raise FrameError(f"there are more than {MAX_PARTS} parts")
        self._parts[name] = content

    def _begin(self, name: bytes) -> None:
        self._stages += 1
        if self._stages > MAX_STAGES:
            raise FrameError(f"there are more than {MAX_STAGES} stages")
        if len(name) > MAX_STAGE_BYTES:
            raise FrameError(f"a stage has a name of {len(name)} bytes")
        self.stage = frames.decode_text(name)
        self._on_stage(self.stage)


def error_of(problem: dict[str, Any]) -> TensorkilnError:
    """The error of an untrusted problem document. FrameError when it is invalid or no error that a task may report."""
    pointers, details = problem.get("pointers"), problem.get("details")
    if not isinstance(pointers or [], list) or not isinstance(details or {}, dict):
        raise FrameError("a problem document has invalid pointers or details")
    error = error_from_problem(problem)
    if not isinstance(error, _OF_A_TASK) or isinstance(error, CrashedError):
        raise FrameError(f"a task does not end with {error.code}")
    if _OF_THE_SERVICE.isdisjoint(error.details):
        return error
    own = {name: value for name, value in error.details.items() if name not in _OF_THE_SERVICE}
    return type(error)(error.message, pointers=error.pointers, details=own)


class CompileHeader(BaseModel):
    """The digests of the artifacts, those of the dumps by stage, and the time that each stage took."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    artifacts: tuple[_Digest, ...]
    stages: dict[str, _Digest]
    seconds: dict[str, _Seconds]


def checked(model: type[Model], content: Mapping[str, Any] | bytes) -> Model:
    """Parse a part of an answer, an object or its JSON. CrashedError when it is invalid."""
    try:
        return model.model_validate_json(content) if isinstance(content, bytes) else model.model_validate(content)
    except ValidationError as error:
        what = ".".join(str(step) for step in error.errors(include_input=False)[0]["loc"])
        raise invalid(f"It is wrong at {what[:64]!r}.") from None


def invalid(what: str) -> CrashedError:
    """The error of a task with an invalid answer."""
    return CrashedError(f"The process gave an invalid answer. {what}", details={"stage": "return"})


def require_tuning(answer: Message) -> None:
    """Raise CrashedError unless the part `program` is a `Tuning` record and the answer has no artifacts or stages."""
    content, made = answer.parts.get("program", b""), checked(CompileHeader, answer.header)
    if len(content) > MOST_TUNING_BYTES or made.artifacts or made.stages:
        raise invalid("It has too many measurements, or more than that.")
    checked(Tuning, content)
