"""The documents say what is so: every example is run, every route, code and setting is there."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from itertools import pairwise

import httpx2
import pytest

from service.server.serve import create_app
from service.settings import Settings
from tensorkiln.errors import CallError, DeviceError, JobCancelledError, TensorkilnError, UntrustedArtifactError
from tests.identity.guarded import Guarded
from tests.sdk.test_errors import every
from tests.service.bodies import compile_body, encoded
from tests.service.failing import failing
from tests.service.server import Server
from tests.snippets import ROOT, disagreement, every_block

HTTP_PAGE = ROOT / "docs" / "http.md"
HTTP = HTTP_PAGE.read_text("utf-8")
OPERATIONS = (ROOT / "docs" / "operations.md").read_text("utf-8")


@dataclass(frozen=True)
class Example:
    """A request as the document has it, and what is to come back."""

    request: str
    status: int
    kind: str
    answer: str


def examples() -> list[Example]:
    """Every `http` block with the block after it, which is marked with the status of the answer."""
    return [
        Example(block.text, int(answer.word), answer.language, answer.text)
        for block, answer in pairwise(every_block(HTTP_PAGE))
        if block.language == "http"
    ]


def with_header(request: str, header: str) -> str:
    return request.replace("\n", f"\n{header}\n", 1)


@pytest.fixture(scope="module")
def variables(server: Server) -> dict[str, str]:
    """The program of the first example, which later ones name."""
    first = examples()[0]
    with_job = replace(first, request=with_header(first.request, "Prefer: wait=30"))
    job = send(server, with_job, {}).json()
    (program,) = job["programs"]
    return {
        "$job": job["id"],
        "$program": program["digest"],
        "$artifact": program["kernels"][0]["artifact"],
        "$body": encoded(compile_body()).decode(),
        "$crashing": failing(encoded(compile_body()), "segfault").decode(),
        "$hanging": failing(encoded(compile_body()), "hang").decode(),
        "$growing": failing(encoded(compile_body()), "eat_memory").decode(),
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


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.request.splitlines()[0])
def test_an_example_is_answered_as_documented(server: Server, variables: dict[str, str], example: Example) -> None:
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
    assert disagreement(answer.json(), wanted) is None, answer.text


@pytest.mark.xdist_group("guarded")
def test_the_first_example_is_a_first_request(guarded: Guarded) -> None:
    first = examples()[0]
    # Nothing is stored yet for a new tenant.
    key = guarded.key("reading")
    answer = send(guarded, replace(first, request=with_header(first.request, f"Authorization: Bearer {key}")), {})
    assert disagreement(answer.json(), json.loads(first.answer)) is None


def test_every_route_is_documented_with_an_example() -> None:
    for path, operations in create_app(Settings()).openapi()["paths"].items():
        assert f"{path}" in HTTP
        for method in operations:
            prefix = f"{method.upper()} {path.partition('{')[0]}"
            assert any(example.request.startswith(prefix) for example in examples()), prefix


def test_every_code_that_the_service_sends_is_documented_with_its_status_and_an_example() -> None:
    of_the_sdk = {*every(CallError), *every(DeviceError), *every(UntrustedArtifactError), JobCancelledError}
    for error in set(every()) - of_the_sdk:
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


def test_the_files_that_a_compile_goes_through_are_there_and_few() -> None:
    (figure,) = re.findall(r"^### A compile from end to end$.*?^```\n(.*?)^```", OPERATIONS, re.MULTILINE | re.DOTALL)
    files = set(re.findall(r"[\w/]+\.py", figure))
    assert [file for file in files if not (ROOT / "service" / file).is_file()] == []
    assert 20 <= len(files) <= 25
    assert {line.split()[0] for line in figure.splitlines() if not line.startswith("    ")} == {"service", "task"}
