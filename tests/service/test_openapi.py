"""The OpenAPI document: schemathesis calls every route by it, its examples are answers, and a stranger can read it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import copy, deepcopy
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from jsonschema import Draft202012Validator

from service.http.openapi import answers as shown_answers
from service.server.serve import create_app
from service.settings import Settings
from service.wire.body import MAX_BATCH, MAX_TARGETS
from tensorkiln import Graph
from tensorkiln.build_text.syntax import MAX_TEXT_BYTES
from tensorkiln.limits import I64_MAX, MAX_SYMBOLS
from tensorkiln.spec import CompiledProgram
from tensorkiln.trust import KeySet, SignedRecord
from tensorkiln.trust.record import signed_bytes
from tests.faults.size import sized
from tests.service.openapi_answers import answers
from tests.service.server import Server

EXAMPLES = sized(5, 25)
DOCUMENT = create_app(Settings()).openapi()
# A graph that the schema allows is seldom a valid one: the rules between its nodes are beyond a schema.
REFUSALS = ["2xx", 400, 404, 413, 422]
READING, WRITING = ("GET", "HEAD", "DELETE"), ("POST",)


@pytest.fixture(scope="module")
def described() -> Any:
    """The schema, read by those who use it and not by everybody who collects tests."""
    schema: Any = schemathesis.openapi.from_dict(deepcopy(DOCUMENT))
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
    assert server.http.get("/docs/assets/../../service/server/serve.py").status_code == 404
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


SHOWN = shown_answers()
MOMENTARY = {"POST /compile 202", "POST /jobs:batch 200", "GET /jobs/{job} 200", "DELETE /jobs/{job} 200"}
"""Of these only the fields are the same each time: how far a job has come differs."""


def json_answers() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            for status, response in operation["responses"].items():
                content = response.get("content", {}).get("application/json")
                if int(status) < 300 and content is not None:
                    yield f"{method.upper()} {path} {status}", content


CONTENTS = dict(json_answers())


def test_every_answer_in_json_has_an_example() -> None:
    assert CONTENTS.keys() == SHOWN.keys()
    assert {name: content["example"] for name, content in CONTENTS.items()} == SHOWN


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_an_example_fits_its_schema_and_nothing_else_does(name: str) -> None:
    schema = {**CONTENTS[name]["schema"], "components": DOCUMENT["components"]}
    validator = Draft202012Validator(schema)
    validator.validate(SHOWN[name])
    assert not validator.is_valid([])
    for program in SHOWN[name].get("programs", ()):
        CompiledProgram.model_validate(program)


def test_the_examples_belong_together() -> None:
    stored, signed = SHOWN["GET /programs/{digest} 200"], SHOWN["GET /programs/{digest}/signature 200"]
    made = SignedRecord.model_validate_json(json.dumps(signed))
    body = CompiledProgram.model_validate(stored).model_dump_json().encode()
    assert made.record.program == sha256(body).hexdigest()
    (key,) = (key for key in KeySet.model_validate(SHOWN["GET /keys 200"]).keys if key.kid == made.record.key)
    assert key.has_signed(signed_bytes(made.record), made.signature)
    assert SHOWN["POST /compile 200"]["signatures"] == [signed]
    assert SHOWN["POST /explain 200"]["actions"][0]["digest"] == stored["digest"]
    assert SHOWN["POST /compile 202"]["id"] == SHOWN["GET /jobs/{job} 200"]["id"]
    assert Graph.model_validate(SHOWN["POST /translate 200"]["graph"]).name == "layer"


def test_a_service_answers_with_the_fields_of_the_examples(tmp_path: Path) -> None:
    with Server(tmp_path / "kiln") as server:
        found = answers(server)
    assert found.keys() == SHOWN.keys()
    for name, answer in found.items():
        if name in MOMENTARY:
            assert answer.keys() == SHOWN[name].keys(), name
        else:
            assert fields(answer) == fields(SHOWN[name]), name


def fields(value: Any, at: str = "") -> set[str]:
    """The paths of all fields, in whatever entry of a list they are."""
    if isinstance(value, list):
        return {path for entry in value for path in fields(entry, f"{at}[]")}
    if isinstance(value, dict):
        return {f"{at}.{name}" for name in value} | {
            path for name, entry in value.items() for path in fields(entry, f"{at}.{name}")
        }
    return set()


def test_every_component_is_described_in_words_of_json() -> None:
    schemas: dict[str, dict[str, Any]] = DOCUMENT["components"]["schemas"]
    python = re.compile(r"\bNone\b|ValueError|pydantic|model_validate|\braises?\b")
    for name, schema in schemas.items():
        said = schema.get("description", "")
        assert python.search(said) is None, (name, said)
        # A choice lists its values, and a reference leads to a description.
        assert said or "enum" in schema or "$ref" in schema, name
        assert not said or said[-1] == ".", (name, said)


def test_the_version_and_the_bounds_of_requests_are_those_of_the_service() -> None:
    assert DOCUMENT["info"]["version"] == version("tensorkiln") == version("tensorkiln-server")
    schemas = DOCUMENT["components"]["schemas"]
    of_compile = schemas["CompileBody"]["properties"]
    assert schemas["BatchBody"]["properties"]["requests"]["maxItems"] == MAX_BATCH
    assert of_compile["target"]["anyOf"][1]["maxItems"] == MAX_TARGETS
    assert of_compile["builder"]["maxLength"] == MAX_TEXT_BYTES
    assert of_compile["dims"]["maxProperties"] == MAX_SYMBOLS
    assert of_compile["dims"]["additionalProperties"]["properties"]["max"]["maximum"] == I64_MAX
