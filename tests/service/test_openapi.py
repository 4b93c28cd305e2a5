"""The OpenAPI document is true: schemathesis calls every route by it and finds nothing."""

from __future__ import annotations

import re
from copy import copy, deepcopy
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from service.server.app import create_app
from service.settings import Settings
from tests.faults.size import sized
from tests.service.server import Server

EXAMPLES = sized(5, 25)

# A graph that the schema allows is seldom a valid one: the rules between its nodes are beyond a schema.
REFUSALS = ["2xx", 400, 404, 413, 422]


READING, WRITING = ("GET", "HEAD", "DELETE"), ("POST",)


@pytest.fixture(scope="module")
def described() -> Any:
    """The schema, read by those who use it and not by everybody who collects tests."""
    schema: Any = schemathesis.openapi.from_dict(create_app(Settings()).openapi())
    schema.config.checks.positive_data_acceptance.expected_statuses = REFUSALS
    schema.config.checks.negative_data_rejection.expected_statuses = [*REFUSALS[1:], 405, 415]
    return schema


@pytest.fixture(scope="module")
def uncovered(described: Any) -> Any:
    """The same without every boundary of it: these are 27 000 cases for the two POSTs."""
    schema = copy(described)
    schema.config = deepcopy(described.config)
    schema.config.phases.coverage.enabled = False
    return schema


READS: Any = schemathesis.pytest.from_fixture("described").include(method=list(READING))
WRITES: Any = schemathesis.pytest.from_fixture("uncovered").include(method=list(WRITING))

thoroughly = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@pytest.fixture(scope="module")
def document(server: Server) -> dict[str, Any]:
    return server.http.get("/openapi.json").json()


@READS.parametrize()
@thoroughly
def test_every_route_that_reads_keeps_to_its_description(case: Any, server: Server) -> None:
    case.call_and_validate(base_url=server.url)


@WRITES.parametrize()
@thoroughly
def test_every_route_that_takes_a_body_keeps_to_its_description(case: Any, server: Server) -> None:
    case.call_and_validate(base_url=server.url)


def test_its_page_loads_nothing_from_elsewhere(server: Server) -> None:
    page = server.http.get("/docs")
    assert page.status_code == 200
    loaded = re.findall(r"""(?:src|href|url)\s*[=:]\s*["']([^"']*)""", page.text)
    assert len(loaded) == 4  # the script, its style, the icon, the document
    for path in loaded:
        assert path.startswith("/")
        assert server.http.get(path).status_code == 200
    assert server.http.get("/docs/assets/../../service/server/app.py").status_code == 404
    assert server.http.get("/docs/assets/%2e%2e/core.py").status_code == 404


def test_every_route_of_the_document_is_one_of_these(document: dict[str, Any]) -> None:
    methods = {method.upper() for operations in document["paths"].values() for method in operations}
    assert methods == {*READING, *WRITING}
    # Fixed by the profile of the tests: a run that found something finds it again.
    assert thoroughly.derandomize


def test_nothing_that_schemathesis_sent_met_a_defect(server: Server) -> None:
    assert "defect" not in server.log()


def test_every_error_of_every_route_is_described_as_a_problem(document: dict[str, Any]) -> None:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            errors = {int(status) for status in operation["responses"] if int(status) >= 400}
            assert 500 in errors, (path, method)
            if method == "head":
                continue
            for status in errors:
                content = operation["responses"][str(status)]["content"]
                assert list(content) == ["application/problem+json"], (path, method, status)
                assert content["application/problem+json"]["schema"] == {"$ref": "#/components/schemas/Problem"}


def test_every_reference_of_the_document_leads_somewhere(document: dict[str, Any]) -> None:
    def references(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set[str]()
            return own.union(*map(references, value.values()))
        return set[str]().union(*map(references, value)) if isinstance(value, list) else set()

    found = references(document)
    assert len(found) > 50
    schemas = document["components"]["schemas"]
    assert {reference for reference in found if reference.removeprefix("#/components/schemas/") not in schemas} == set()


def test_every_example_of_a_body_is_taken(server: Server, document: dict[str, Any]) -> None:
    sent: dict[str, list[int]] = {}
    for path, operations in document["paths"].items():
        for body in (operation["requestBody"] for operation in operations.values() if "requestBody" in operation):
            for example in body["content"]["application/json"]["examples"].values():
                answer = server.http.post(path, json=example["value"])
                sent.setdefault(path, []).append(answer.status_code)
    assert sent.keys() >= {"/compile", "/jobs:batch", "/explain", "/validate", "/translate"}
    assert {status for statuses in sent.values() for status in statuses} <= {200, 202}


def test_every_path_parameter_has_an_example(server: Server, document: dict[str, Any]) -> None:
    body = document["paths"]["/compile"]["post"]["requestBody"]["content"]["application/json"]["examples"]["graph"]
    (program,) = server.http.post("/compile", json=body["value"]).json()["programs"]
    other = {**body["value"], "options": {"fast_math": True}}
    job = server.http.post("/compile", json=other, headers={"Prefer": "respond-async"}).headers["location"]
    code = program["kernels"][0]["artifact"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            shown = {each["name"]: each["schema"]["examples"][0] for each in path_parameters(operation)}
            if not shown:
                continue
            # Nothing is there by this name; it is one that could be.
            assert server.http.request(method, path.format(**shown)).status_code == 404, (method, path)
            digest = code if path.startswith("/artifacts") else program["digest"]
            given = {**shown, "digest": digest, "job": job.rpartition("/")[2]}
            assert server.http.request(method, path.format(**given)).status_code in (200, 204), (method, path)


def path_parameters(operation: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in operation.get("parameters", []) if each["in"] == "path"]


def test_every_route_is_in_a_group_that_is_described(document: dict[str, Any]) -> None:
    groups = {each["name"] for each in document["tags"] if each["description"]}
    used = {tag for operations in document["paths"].values() for each in operations.values() for tag in each["tags"]}
    assert used == groups
