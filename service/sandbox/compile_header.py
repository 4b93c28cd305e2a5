"""The header of a compile's answer, validated as untrusted: a crafted graph may control the process that wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from tensorkiln.errors import CrashedError
from tensorkiln.limits import SHA256_PATTERN
from tensorkiln.spec.tuning import Tuning

from .frames import Message

MOST_TUNING_BYTES: Final = 64 << 20
"""Enough for the record of a program with the most kernels allowed, four candidates each."""
_Seconds = Annotated[float, Field(strict=True, ge=0.0, allow_inf_nan=False)]
_Digest = Annotated[str, StringConstraints(strict=True, pattern=SHA256_PATTERN)]


class CompileHeader(BaseModel):
    """The digests of the artifacts, those of the dumps by stage, and the time that each stage took."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    artifacts: tuple[_Digest, ...]
    stages: dict[str, _Digest]
    seconds: dict[str, _Seconds]

    @staticmethod
    def of(header: Mapping[str, Any]) -> CompileHeader:
        """Parse the header of an answer. CrashedError when it is invalid."""
        try:
            return CompileHeader.model_validate(header)
        except ValidationError as error:
            what = ".".join(str(step) for step in error.errors(include_input=False)[0]["loc"])
            raise CrashedError(
                f"The compile answered with an invalid header, at {what[:64]!r}.", details={"stage": "return"}
            ) from None


def require_tuning(answer: Message) -> None:
    """Raise CrashedError unless the part `program` is a `Tuning` record and the answer has no artifacts or stages."""
    content, made = answer.parts.get("program", b""), CompileHeader.of(answer.header)
    try:
        if len(content) > MOST_TUNING_BYTES or made.artifacts or made.stages:
            raise ValueError
        Tuning.model_validate_json(content)
    except ValueError:
        raise CrashedError("The compile answered with invalid measurements.", details={"stage": "return"}) from None
