"""The fields of a service's answers that a client reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, RootModel, ValidationError

from ..errors import NotFoundError, UnavailableError
from ..reasons import reason
from ..trust.programs import Answered
from ..trust.record import SignedRecord
from .asked import Asked

Model = TypeVar("Model", bound=BaseModel)


class Programs(BaseModel):
    """The answer to `POST /compile`."""

    model_config = ConfigDict(frozen=True)

    programs: tuple[Answered, ...]
    signatures: tuple[SignedRecord | None, ...] = ()


class Explained(Answered):
    """What is read of an action that is explained."""

    stored: bool


class Explanation(BaseModel):
    """The answer to `POST /explain`."""

    model_config = ConfigDict(frozen=True)

    actions: tuple[Explained, ...]


class Fields(RootModel[dict[str, Any]]):
    """Any JSON object."""


def read(model: type[Model], answer: bytes) -> Model:
    """Parse an answer as a record; UnavailableError when it does not match the model."""
    try:
        return model.model_validate_json(answer)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = "/" + "/".join(str(part) for part in first["loc"])
        raise UnavailableError(
            f"The service's answer is not one that this SDK understands (at {where}: {reason(first)}); "
            "use the same version of both."
        ) from None


def fields(answer: bytes) -> dict[str, Any]:
    """Parse an answer as a JSON object; UnavailableError when it is not one."""
    return read(Fields, answer).root


def require_each(answered: Sequence[object], asked: Asked) -> None:
    """UnavailableError unless there is one answer for each requested target."""
    if len(answered) != len(asked.targets):
        raise UnavailableError(
            f"The service answered for {len(answered)} targets and was asked for {len(asked.targets)}."
        )


def require_stored(actions: Sequence[Explained], asked: Asked) -> None:
    """NotFoundError unless the program of each requested target is stored; UnavailableError as for `require_each`."""
    require_each(actions, asked)
    for each, wanted in zip(actions, asked.targets, strict=True):
        if not each.stored or each.cache.status != "hit":
            raise NotFoundError(
                f"The service has not stored this graph for {wanted.cpu or wanted.arch}: {each.cache.reason}.",
                details={"cache": each.cache.model_dump(mode="json")},
            )
