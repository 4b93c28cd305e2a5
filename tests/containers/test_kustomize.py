"""The overlays build: with what kustomize would read of them, and where there is a kubectl, as it builds them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.sandbox.levels import Level
from tensorkiln.trust import is_at_least
from tests.snippets import blocks

from .files import DOCKER, KUBERNETES, documents
from .kustomize import KNOWN, Manifest, built
from .validation import validate

EXAMPLE = "overlays/example"
COMPONENTS = sorted(str(path.relative_to(KUBERNETES)) for path in (KUBERNETES / "components").iterdir())
MANUAL = [yaml.safe_load(block.text) for block in blocks(DOCKER / "README.md", "yaml")]
NAMED = documents(KUBERNETES / EXAMPLE / "kustomization.yaml")[0]["components"]
VARIANTS = [
    pytest.param({}, id="as it is"),
    pytest.param(
        {"components": [f"../../{name}" for name in COMPONENTS if f"../../{name}" not in NAMED]},
        id="with all components",
    ),
    *(pytest.param(stated, id=f"with {' and '.join(stated)} of the manual") for stated in MANUAL),
]
"""What an overlay may say more than the example."""
GENERATED = ("ConfigMap", "Secret")


def by_name(objects: list[Manifest]) -> dict[str, Manifest]:
    return {f"{each['kind']} {each['metadata']['name']}": each for each in objects}


def overlay(folder: Path, **stated: Any) -> Path:
    """A copy of the example with more in its kustomization."""
    shutil.copytree(KUBERNETES, folder)
    path = folder / EXAMPLE / "kustomization.yaml"
    (own,) = documents(path)
    for name, more in stated.items():
        own[name] = [*own.get(name, ()), *more]
    path.write_text(yaml.safe_dump(own))
    return path.parent


def by_kubectl(kubectl: str, folder: Path) -> list[Manifest]:
    """What kubectl builds of a folder, the hashes of generated names left out."""
    made = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    text = made.stdout
    hashed = [each["metadata"]["name"] for each in yaml.safe_load_all(text) if each["kind"] in GENERATED]
    for name in hashed:
        text = text.replace(name, re.sub(r"-[a-z0-9]{10}$", "", name))
    return list(yaml.safe_load_all(text))


def references(node: Any) -> Iterator[str]:
    """The objects that a manifest names, each by its kind and name."""
    kinds = {"configMapRef": "ConfigMap", "secretRef": "Secret"}
    if isinstance(node, dict):
        for name, below in node.items():
            if name in kinds:
                yield f"{kinds[name]} {below['name']}"
            elif name == "persistentVolumeClaim":
                yield f"PersistentVolumeClaim {below['claimName']}"
            elif name == "scaleTargetRef":
                yield f"{below.get('kind', 'Deployment')} {below['name']}"
            elif name == "serviceAccountName":
                yield f"ServiceAccount {below}"
            yield from references(below)
    elif isinstance(node, list):
        for below in node:
            yield from references(below)


def test_every_file_is_a_resource() -> None:
    for folder in ("base", *COMPONENTS):
        (kustomization,) = documents(KUBERNETES / folder / "kustomization.yaml")
        files = {path.name for path in (KUBERNETES / folder).glob("*.yaml")} - {"kustomization.yaml"}
        assert set(kustomization["resources"]) == files


def test_the_example_is_of_one_namespace_and_one_registry() -> None:
    made = built(KUBERNETES / EXAMPLE)
    assert {each["metadata"]["namespace"] for each in made} == {"kiln"}
    images = [
        each["spec"]["template"]["spec"]["containers"][0]["image"] for each in made if each["kind"] == "Deployment"
    ]
    assert all(re.fullmatch(r"registry\.example\.org/tensorkiln(-worker)?:[\d.]+", image) for image in images)
    assert len(images) == 2


@pytest.mark.parametrize("more", VARIANTS)
def test_it_builds_and_lacks_nothing(tmp_path: Path, more: dict[str, Any]) -> None:
    made = by_name(built(overlay(tmp_path / "kubernetes", **more)))
    assert (made == by_name(built(KUBERNETES / EXAMPLE))) is (not more)
    for each in made.values():
        validate(each)
        assert set(references(each)) <= made.keys()


@pytest.mark.parametrize("more", VARIANTS)
def test_it_builds_as_kubectl_builds_it(tmp_path: Path, more: dict[str, Any]) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed")
    folder = overlay(tmp_path / "kubernetes", **more)
    assert by_name(built(folder)) == by_name(by_kubectl(kubectl, folder))


def test_an_overlay_can_ask_for_less_isolation_and_otherwise_does_not(tmp_path: Path) -> None:
    name = "KILN_REQUIRE_ISOLATION"
    (less,) = [block for block in blocks(DOCKER / "README.md", "yaml") if name in block.text]
    folder = overlay(tmp_path / "kubernetes", **yaml.safe_load(less.text))
    assert by_name(built(folder))["ConfigMap kiln"]["data"][name] == Level.PROCESS
    stated = by_name(built(KUBERNETES / EXAMPLE))["ConfigMap kiln"]["data"][name]
    assert is_at_least(Level(stated), Level.LANDLOCK)


@pytest.mark.parametrize(
    "wrong",
    [
        {"resource": ["../../base"]},
        {"resources": ["missing.yaml"]},
        {"components": ["../../base"]},
        {"images": [{"name": "tensorkilm", "newName": "x", "newTag": "y"}]},
        {"patches": [{"target": {"kind": "Deployment", "name": "kiln"}, "patch": "[]"}]},
        {"configMapGenerator": [{"name": "kilm", "behavior": "merge", "literals": []}]},
        {"configMapGenerator": [{"name": "kiln", "behavior": "merge", "literal": []}]},
        {"secretGenerator": [{"name": "kiln", "envs": ["kiln.env"]}]},
        {"secretGenerator": [{"name": "other", "envs": ["other.env"]}]},
    ],
    ids=str,
)
def test_an_invalid_kustomization_does_not_build(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises((ValueError, FileNotFoundError)):
        built(overlay(tmp_path / "kubernetes", **wrong))


def test_a_patch_of_a_field_that_is_not_there_does_not_build(tmp_path: Path) -> None:
    operation = "- {op: replace, path: /spec/template/specs, value: 1}"
    patch = {"target": {"kind": "Deployment", "name": "kiln-api"}, "patch": operation}
    with pytest.raises(KeyError):
        built(overlay(tmp_path / "kubernetes", patches=[patch]))


def test_nothing_is_known_that_no_kustomization_says() -> None:
    stated = {name for path in KUBERNETES.rglob("kustomization.yaml") for name in documents(path)[0]}
    assert stated | {name for more in MANUAL for name in more} >= KNOWN
