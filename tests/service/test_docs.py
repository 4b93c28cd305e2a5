"""The documents say what is so: every example is run, every route, code and setting is there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from service.app import create_app
from service.settings import Settings
from tensorkiln.errors import CallError, DeviceError, TensorkilnError
from tests.service.bodies import compile_body, encoded
from tests.service.server import Server

DOCS = Path(__file__).resolve().parents[2] / "docs"
HTTP = (DOCS / "http.md").read_text()
OPERATIONS = (DOCS / "operations.md").read_text()
ANYTHING = "…"


@dataclass(frozen=True)
class Example:
    """A request as the document has it, and what is to come back."""

    request: str
    status: int
    kind: str
    answer: str


def examples() -> list[Example]:
    pattern = re.compile(r"```http\n(.*?)```\n```(\w+) (\d+)\n(.*?)```", re.DOTALL)
    return [Example(match[1], int(match[3]), match[2], match[4]) for match in pattern.finditer(HTTP)]


@pytest.fixture(scope="module")
def variables(server: Server) -> dict[str, str]:
    """The program of the first example, which later ones name."""
    (program,) = send(server, examples()[0], {}).json()["programs"]
    return {
        "$program": program["digest"],
        "$artifact": program["kernels"][0]["artifact"],
        "$body": encoded(compile_body()).decode(),
    }


def send(server: Server, example: Example, variables: dict[str, str]) -> httpx2.Response:
    text = example.request
    for name, value in variables.items():
        text = text.replace(name, value)
    head, _, body = text.partition("\n\n")
    line, *headers = head.splitlines()
    method, path = line.split()
    named = dict(header.split(": ") for header in headers)
    if body.strip():
        named["Content-Type"] = "application/json"
    return server.http.request(method, path, content=body.strip() or None, headers=named)


def agrees(actual: Any, stated: Any) -> bool:
    """Whether `actual` has everything that is stated; lists of the same length."""
    if stated == ANYTHING:
        return True
    if isinstance(stated, dict):
        return isinstance(actual, dict) and all(key in actual and agrees(actual[key], stated[key]) for key in stated)
    if isinstance(stated, list):
        return (
            isinstance(actual, list)
            and len(actual) == len(stated)
            and all(agrees(one, other) for one, other in zip(actual, stated, strict=True))
        )
    return actual == stated


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.request.splitlines()[0])
def test_an_example_is_answered_as_the_document_says(
    server: Server, variables: dict[str, str], example: Example
) -> None:
    answer = send(server, example, variables)
    assert answer.status_code == example.status, answer.text
    if example.kind != "json":
        return
    stated = example.answer
    for name, value in variables.items():
        stated = stated.replace(name, value)
    wanted = json.loads(stated)
    if example == examples()[0]:
        del wanted["programs"][0]["cache"]  # `variables` has sent it already
    assert agrees(answer.json(), wanted), answer.text


def test_the_first_example_is_a_first_request(home: Path) -> None:
    with Server(home) as server:
        answer = send(server, examples()[0], {})
        assert agrees(answer.json(), json.loads(examples()[0].answer))


def test_every_route_is_documented_with_an_example() -> None:
    for path, operations in create_app(Settings()).openapi()["paths"].items():
        assert f"{path}" in HTTP
        for method in operations:
            prefix = f"{method.upper()} {path.partition('{')[0]}"
            assert any(example.request.startswith(prefix) for example in examples()), prefix


def errors(kind: type[TensorkilnError] = TensorkilnError) -> Iterator[type[TensorkilnError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from errors(child)


def test_every_code_that_the_service_sends_is_documented_with_its_status_and_an_example() -> None:
    of_the_sdk = {*errors(CallError), *errors(DeviceError)}
    for error in set(errors()) - of_the_sdk:
        if "code" not in vars(error):
            continue
        row = re.search(rf"^\| `{re.escape(error.code)}` \| (\d+) \|", HTTP, re.MULTILINE)
        assert row is not None, error.code
        assert int(row[1]) == error.status
        heading = re.search(rf"^### .*{re.escape(error.code)}", HTTP, re.MULTILINE)
        assert heading is not None or error is TensorkilnError, error.code


def test_every_setting_is_documented_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `KILN_(\w+)` \| (.*?) \|", OPERATIONS, re.MULTILINE))
    assert set(rows) == {name.upper() for name in Settings.model_fields}
    for name, field in Settings.model_fields.items():
        if isinstance(field.default, int | float) and not isinstance(field.default, bool):
            assert float(rows[name.upper()]) == field.default
