"""The action digest: everything that determines the bytes of a compiled program, and nothing else.

The components are kept beside the digest, so that a miss can be explained by the one that differs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

from tensorkiln.limits import SHA256_PATTERN
from tensorkiln.spec.abi import ABI_VERSION

GRAPH = "graph"
SCHEMA_VERSION = 1
"""The only version of the wire format of graphs."""


@dataclass(frozen=True)
class Action:
    """One thing to compile. `graph` is the digest of the canonical graph; `target` names every ISA feature.

    `options` are those that can change the bytes. `salt` is set per operator and tenant; a new one invalidates all
    stored programs.
    """

    abi: int
    build_id: str
    graph: str
    options: Mapping[str, Any]
    salt: str
    schema: int
    target: Mapping[str, Any]

    @property
    def components(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def tuned(self) -> str:
        """The option `tuned`: whether measurements pick the schedules, and which ones."""
        return str(self.options.get("tuned", "off"))

    @property
    def is_tuned(self) -> bool:
        """Whether measurements pick the schedules; `tuned` is then their SHA-256."""
        return re.fullmatch(SHA256_PATTERN, self.tuned) is not None

    def with_tuned(self, tuned: str) -> Action:
        """The same action with another option `tuned`."""
        return replace(self, options={**self.options, "tuned": tuned})

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the components as JSON with sorted keys."""
        return sha256(json.dumps(self.components, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    @staticmethod
    def requested(
        graph: bytes, target: Mapping[str, Any], options: Mapping[str, Any], *, build_id: str, salt: str
    ) -> Action:
        """The action of a canonical graph, given as JSON, in the versions of this service."""
        return Action(ABI_VERSION, build_id, sha256(graph).hexdigest(), options, salt, SCHEMA_VERSION, target)


def differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The components that differ, with both values; a component that is an object is named down to its field."""
    found: dict[str, tuple[Any, Any]] = {}
    for name in sorted(left.keys() | right.keys()):
        mine, theirs = left.get(name), right.get(name)
        if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
            found |= {f"{name}.{inner}": values for inner, values in differences(mine, theirs).items()}
        elif mine != theirs:
            found[name] = mine, theirs
    return found
