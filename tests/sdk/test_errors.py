"""The classes of errors mirror the codes on the wire."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import pytest

from service.server.app import create_app
from service.settings import Settings
from tensorkiln.errors import (
    AuthError,
    CompileError,
    InfrastructureError,
    RequestError,
    TensorkilnError,
    error_from_problem,
)

CODE = re.compile(r"`([a-z_]+(?:\.[a-z_]+)?)`: ")


def answered() -> dict[str, set[int]]:
    """The codes that the service may answer with, by its own description, and their statuses."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for operations in create_app(Settings()).openapi()["paths"].values():
        for operation in operations.values():
            for status, answer in operation["responses"].items():
                for code in CODE.findall(answer["description"]):
                    found[code].add(int(status))
    return dict(found)


def every(error: type[TensorkilnError] = TensorkilnError) -> Iterator[type[TensorkilnError]]:
    yield error
    for child in error.__subclasses__():
        yield from every(child)


def test_every_code_that_the_service_answers_with_has_its_class() -> None:
    codes = answered()
    assert {"internal", "graph.invalid", "compile.crashed", "rate.limited", "auth.missing"} <= codes.keys()
    for code, statuses in codes.items():
        error = error_from_problem({"code": code, "detail": "No."})
        assert error.code == code
        assert "code" not in error.details
        assert statuses == {error.status} or isinstance(error, RequestError)


@pytest.mark.parametrize("error", [each for each in every() if "code" in vars(each)])
def test_every_class_survives_the_wire(error: type[TensorkilnError]) -> None:
    sent = error("No.", pointers=["/nodes/1"], details={"a": 1})
    read = error_from_problem(sent.to_problem())
    if error.__module__ == TensorkilnError.__module__:
        assert type(read) is error
    assert (read.message, read.pointers, read.details) == ("No.", ("/nodes/1",), {"a": 1})


@pytest.mark.parametrize(
    ("code", "family"),
    [
        ("compile.too_clever", CompileError),
        ("auth.revoked", AuthError),
        ("infra.flooded", InfrastructureError),
        ("billing.overdue", TensorkilnError),
    ],
)
def test_a_code_of_a_later_service_is_an_error_of_its_family(code: str, family: type[TensorkilnError]) -> None:
    error = error_from_problem({"code": code, "detail": "No.", "details": {"a": 1}})
    assert type(error) is family
    assert error.details == {"a": 1, "code": code}
