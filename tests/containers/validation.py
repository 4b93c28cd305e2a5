"""Whether a manifest is one that a cluster takes: Kubernetes' own kinds, and those that operators add."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import kubernetes_validate
from jsonschema import Draft202012Validator

VERSION = "1.34"
SCHEMAS = {
    path.stem: json.loads(path.read_text()) for path in sorted((Path(__file__).parent / "schemas").glob("*.json"))
}
"""Of the kinds that Kubernetes does not define."""


def validate(manifest: dict[str, Any]) -> None:
    """An exception when the manifest has a field that its kind has not, lacks one, or has one of another type."""
    schema = SCHEMAS.get(manifest["kind"])
    if schema is None:
        kubernetes_validate.validate(manifest, VERSION, strict=True)
    else:
        Draft202012Validator(schema).validate(manifest)
