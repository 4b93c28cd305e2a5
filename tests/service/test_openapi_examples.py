"""Answers and descriptions in the OpenAPI document: what a service answers, and what a stranger can read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from service.http.openapi import answers as shown_answers
from service.server.app import create_app
from service.settings import Settings
from service.wire.body import MAX_BATCH, MAX_TARGETS
from tensorkiln import Graph
from tensorkiln.build_text.syntax import MAX_TEXT_BYTES
from tensorkiln.limits import I64_MAX, MAX_SYMBOLS
from tensorkiln.spec import CompiledProgram
from tensorkiln.trust import KeySet, SignedRecord
from tensorkiln.trust.record import signed_bytes
from tests.service.openapi_answers import answers
from tests.service.server import Server

DOCUMENT = create_app(Settings()).openapi()
SHOWN = shown_answers()
MOMENTARY = {"POST /compile 202", "POST /jobs:batch 200", "GET /jobs/{job} 200", "DELETE /jobs/{job} 200"}
"""Of these only the fields are the same each time: how far a job has come differs."""


def json_answers() -> Iterator[tuple[str, dict[str, Any]]]:
    """The name and the content of each answer in JSON that is no error."""
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
def test_an_example_fits_its_schema(name: str) -> None:
    schema = {**CONTENTS[name]["schema"], "components": DOCUMENT["components"]}
    Draft202012Validator(schema).validate(SHOWN[name])
    for program in SHOWN[name].get("programs", ()):
        CompiledProgram.model_validate(program)


def test_the_schemas_refuse_what_is_no_answer() -> None:
    for name, content in CONTENTS.items():
        validator = Draft202012Validator({**content["schema"], "components": DOCUMENT["components"]})
        assert not validator.is_valid([]), name


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


def test_its_version_is_that_of_the_distributions() -> None:
    assert DOCUMENT["info"]["version"] == version("tensorkiln") == version("tensorkiln-server")


def test_every_component_is_described_in_words_of_json() -> None:
    schemas: dict[str, dict[str, Any]] = DOCUMENT["components"]["schemas"]
    python = re.compile(r"\bNone\b|ValueError|pydantic|model_validate|\braises?\b")
    for name, schema in schemas.items():
        said = schema.get("description", "")
        assert python.search(said) is None, (name, said)
        # A choice lists its values, and a reference leads to a description.
        assert said or "enum" in schema or "$ref" in schema, name
        assert not said or said[-1] == ".", (name, said)


def test_the_bounds_of_requests_are_those_of_the_service() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    of_compile = schemas["CompileBody"]["properties"]
    assert schemas["BatchBody"]["properties"]["requests"]["maxItems"] == MAX_BATCH
    assert of_compile["target"]["anyOf"][1]["maxItems"] == MAX_TARGETS
    assert of_compile["builder"]["maxLength"] == MAX_TEXT_BYTES
    assert of_compile["dims"]["maxProperties"] == MAX_SYMBOLS
    assert of_compile["dims"]["additionalProperties"]["properties"]["max"]["maximum"] == I64_MAX
