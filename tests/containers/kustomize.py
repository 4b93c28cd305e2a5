"""What `kubectl kustomize` makes of a folder, for where there is none: of its language as much as the manifests use.

It is stricter: a field that it does not know, a file that is not there, and a patch or an image that nothing has are
errors. Names of generated objects have no hash.
"""

from __future__ import annotations

from base64 import b64encode
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from .files import documents

Manifest = dict[str, Any]

KNOWN = {
    *("apiVersion", "kind", "namespace", "resources", "components", "labels", "images", "patches"),
    *("configMapGenerator", "secretGenerator"),
}
VERSIONS = {"Kustomization": "kustomize.config.k8s.io/v1beta1", "Component": "kustomize.config.k8s.io/v1alpha1"}


def built(folder: Path) -> list[Manifest]:
    """The objects of an overlay or a base. ValueError when it is not right."""
    return _built(folder, "Kustomization", [])


def _built(folder: Path, kind: str, objects: list[Manifest]) -> list[Manifest]:
    (stated,) = documents(folder / "kustomization.yaml")
    _require(stated.keys() <= KNOWN, f"{folder} has {sorted(stated.keys() - KNOWN)}")
    _require((stated["kind"], stated["apiVersion"]) == (kind, VERSIONS[kind]), f"{folder} is no {kind}")
    objects = [*objects]
    for name in stated.get("resources", ()):
        path = (folder / name).resolve()
        objects += built(path) if path.is_dir() else documents(path)
    for name in stated.get("components", ()):
        objects = _built((folder / name).resolve(), "Component", objects)
    for each in stated.get("configMapGenerator", ()):
        _generate(objects, "ConfigMap", each, _pairs(each.get("literals", ())))
    for each in stated.get("secretGenerator", ()):
        lines = [line for name in each.get("envs", ()) for line in (folder / name).read_text().splitlines()]
        encoded = {key: b64encode(text.encode()).decode() for key, text in _pairs(lines).items()}
        _generate(objects, "Secret", each, encoded)
    named = [f"{each['kind']} {each['metadata']['name']}" for each in objects]
    _require(len(named) == len(set(named)), f"{folder} has one of {named} twice")
    for each in stated.get("patches", ()):
        _patch(objects, each)
    for each in objects:
        if "namespace" in stated:
            each["metadata"]["namespace"] = stated["namespace"]
        for labels in stated.get("labels", ()):
            _require(labels.keys() == {"pairs"}, f"{labels}: selectors and templates are left alone")
            each["metadata"]["labels"] = {**each["metadata"].get("labels", {}), **labels["pairs"]}
    for image in stated.get("images", ()):
        _rename(objects, **image)
    return objects


def _pairs(lines: Any) -> dict[str, str]:
    stated = [line for line in lines if line.strip() and not line.startswith("#")]
    return {key: text for key, _, text in (line.partition("=") for line in stated)}


def _generate(objects: list[Manifest], kind: str, stated: dict[str, Any], data: dict[str, str]) -> None:
    known = {"name", "behavior", "literals" if kind == "ConfigMap" else "envs"}
    _require(stated.keys() <= known, f"a generator of a {kind} has {sorted(stated.keys() - known)}")
    there = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, stated["name"])]
    if "behavior" in stated:
        _require(stated["behavior"] == "merge" and bool(there), f"there is no {kind} {stated['name']} to merge with")
        there[0]["data"].update(data)
        return
    made = {"apiVersion": "v1", "kind": kind, "metadata": {"name": stated["name"]}, "data": data}
    objects.append({**made, "type": "Opaque"} if kind == "Secret" else made)


def _patch(objects: list[Manifest], stated: dict[str, Any]) -> None:
    """Apply the operations of RFC 6902 to the objects that are named."""
    target, operations = stated["target"], yaml.safe_load(stated["patch"])
    _require(stated.keys() == {"target", "patch"} and target.keys() == {"kind", "name"}, f"{stated} is not known")
    hit = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (target["kind"], target["name"])]
    _require(bool(hit), f"there is no {target} to patch")
    for each in hit:
        for operation in operations:
            _operate(each, **operation)


def _operate(manifest: Manifest, op: str, path: str, value: Any) -> None:
    *parents, last = [step.replace("~1", "/").replace("~0", "~") for step in path.removeprefix("/").split("/")]
    place: Any = manifest
    for step in parents:
        place = place[int(step) if isinstance(place, list) else step]
    if op == "add" and isinstance(place, list):
        place.insert(len(place) if last == "-" else int(last), deepcopy(value))
        return
    key: Any = int(last) if isinstance(place, list) else last
    _require(op == "add" or (op == "replace" and place[key] is not None), f"{op} is not known")
    place[key] = deepcopy(value)


def _rename(objects: list[Manifest], name: str, newName: str, newTag: str) -> None:
    pods = [each["spec"]["template"]["spec"] for each in objects if "template" in each.get("spec", {})]
    hit = [container for pod in pods for container in pod["containers"] if container["image"] == name]
    _require(bool(hit), f"nothing runs the image {name}")
    for container in hit:
        container["image"] = f"{newName}:{newTag}"


def _require(is_right: bool, otherwise: str) -> None:
    if not is_right:
        raise ValueError(otherwise)
