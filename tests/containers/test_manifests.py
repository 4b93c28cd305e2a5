"""Every manifest is one that a cluster takes."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from .files import KUBERNETES, documents
from .validation import SCHEMAS, validate

FILES = sorted(path for path in KUBERNETES.rglob("*.yaml") if path.name != "kustomization.yaml")
OBJECTS = [each for path in FILES for each in documents(path)]
OF_OPERATORS = [each for each in OBJECTS if each["kind"] in SCHEMAS]
# Their keys are anybody's.
MAPS = ("labels", "matchLabels")


def called(manifest: dict[str, Any]) -> str:
    return f"{manifest['kind']}-{manifest['metadata']['name']}"


def fields(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all fields of a manifest."""
    if isinstance(node, dict):
        for name, below in node.items():
            if not path or path[-1] not in MAPS:
                yield (*path, name)
            yield from fields(below, (*path, name))
    elif isinstance(node, list):
        for place, below in enumerate(node):
            yield from fields(below, (*path, place))


@pytest.mark.parametrize("manifest", OBJECTS, ids=called)
def test_a_manifest_is_valid(manifest: dict[str, Any]) -> None:
    validate(manifest)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one_and_is_used(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])
    assert name in {each["kind"] for each in OF_OPERATORS}


@pytest.mark.parametrize("manifest", OF_OPERATORS, ids=called)
def test_no_field_of_an_operators_kind_can_be_misspelt(manifest: dict[str, Any]) -> None:
    paths = list(fields(manifest))
    assert len(paths) > 8
    for *parents, last in paths:
        misspelt = deepcopy(manifest)
        place: Any = misspelt
        for step in parents:
            place = place[step]
        place[f"{last}s"] = place.pop(last)
        with pytest.raises((ValidationError, KeyError)):
            validate(misspelt)


@pytest.mark.parametrize("manifest", OF_OPERATORS, ids=called)
def test_no_field_of_an_operators_kind_can_be_of_another_type(manifest: dict[str, Any]) -> None:
    for *parents, last in set(fields(manifest)) - {("kind",)}:
        other = deepcopy(manifest)
        place: Any = other
        for step in parents:
            place = place[step]
        place[last] = 1.5
        with pytest.raises(ValidationError):
            validate(other)
