"""`examples/kubernetes`: the farm is that of `docker/kubernetes`, and the pod beside it fits the farm."""

from __future__ import annotations

import json
import re
import shutil
from typing import Any
from urllib.parse import urlsplit

import pytest
from typer.main import get_command

from tensorkiln import Graph
from tensorkiln.cli.app import app
from tensorkiln.settings import resolve_settings
from tests.snippets import ROOT

from .files import KUBERNETES, VARIABLES, documents, manifests, value
from .kustomize import built
from .test_kustomize import by_kubectl, by_name, references
from .test_network import DNS, ELSEWHERE, STORE, reached
from .validation import validate

FOLDER = ROOT / "examples/kubernetes"
FARM = by_name(built(FOLDER / "farm"))
NAMESPACES = {each["metadata"]["name"]: each["metadata"]["labels"] for each in documents(FOLDER / "namespaces.yaml")}
GRAPHS, JOB = documents(FOLDER / "compile.yaml")
POD: dict[str, Any] = JOB["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]


def test_everything_is_a_manifest_that_a_cluster_takes() -> None:
    for each in (*FARM.values(), *documents(FOLDER / "namespaces.yaml"), GRAPHS, JOB):
        validate(each)
    for each in FARM.values():
        assert each["metadata"]["namespace"] in NAMESPACES
        assert set(references(each)) <= FARM.keys()


def test_the_farm_is_the_base_with_what_its_comments_say() -> None:
    base, changed = by_name(built(KUBERNETES / "base")), set[str]()
    assert base.keys() < FARM.keys()
    for name, stated in base.items():
        own = FARM[name]
        if (own.get("spec"), own.get("data")) != (stated.get("spec"), stated.get("data")):
            changed.add(name)
    assert changed == {"Deployment kiln-api", "Deployment kiln-worker", "ConfigMap kiln"}
    assert FARM["Deployment kiln-worker"]["spec"]["replicas"] == 4
    more = FARM["ConfigMap kiln"]["data"].items() - base["ConfigMap kiln"]["data"].items()
    assert {name for name, _ in more} == {"KILN_STORE_MAX_AGE_H"} <= VARIABLES
    assert FARM.keys() - base.keys() >= {"Secret kiln", "Job kiln-first-key", "NetworkPolicy kiln-store-by-address"}


def test_the_farm_reaches_its_bucket_and_names_alone() -> None:
    for pod in ("kiln-api", "kiln-worker"):
        assert reached(list(FARM.values()), pod, STORE) == [443]
        assert reached(list(FARM.values()), pod, DNS) == [53]
        assert [place for place in ELSEWHERE if reached(list(FARM.values()), pod, place)] == []


def test_kubectl_builds_the_same() -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed")
    assert by_name(by_kubectl(kubectl, FOLDER / "farm")) == FARM


def test_the_pod_reaches_the_services_of_the_farm() -> None:
    stated = {each["name"]: each["value"] for each in CONTAINER["env"]}
    settings = resolve_settings(environment={**stated, "KILN_API_KEY": "kiln_x"})
    assert settings.url is not None
    name, namespace, _ = str(urlsplit(settings.url).hostname).split(".")
    service = FARM[f"Service {name}"]
    assert service["metadata"]["namespace"] == namespace
    assert service["spec"]["ports"][0]["port"] == 80
    (ingress,) = FARM["NetworkPolicy kiln-api"]["spec"]["ingress"]
    admitted = [each["namespaceSelector"]["matchLabels"].items() for each in ingress["from"]]
    assert any(labels <= NAMESPACES[JOB["metadata"]["namespace"]].items() for labels in admitted)


def test_the_pod_runs_a_command_that_there_is_on_a_graph_that_is_valid() -> None:
    assert json.loads(value("cli", "ENTRYPOINT")) == ["kiln"]
    name, graph, *arguments = CONTAINER["args"]
    command = get_command(app).get_command(None, name)  # type: ignore[union-attr, arg-type]
    assert command is not None
    known = {option for each in command.params for option in each.opts}
    assert {each for each in arguments if each.startswith("--")} <= known
    mounted = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    folder, _, file = graph.rpartition("/")
    assert folder == mounted["graphs"]
    assert GRAPHS["metadata"]["namespace"] == JOB["metadata"]["namespace"]
    assert Graph.model_validate_json(GRAPHS["data"][file]).name == "double"
    assert all(each["value"].startswith(mounted["tmp"]) for each in CONTAINER["env"] if each["name"] != "KILN_URL")


def test_the_pod_holds_the_standard_of_its_namespace() -> None:
    first_key = next(each for each in manifests("components/first-key") if each["kind"] == "Job")
    stated = first_key["spec"]["template"]["spec"]
    assert {labels["pod-security.kubernetes.io/enforce"] for labels in NAMESPACES.values()} == {"restricted"}
    assert CONTAINER["securityContext"] == stated["containers"][0]["securityContext"]
    assert POD["securityContext"].items() <= stated["securityContext"].items()
    assert value("cli", "USER") == "{runAsUser}:{runAsGroup}".format(**POD["securityContext"])
    image = FARM["Deployment kiln-api"]["spec"]["template"]["spec"]["containers"][0]["image"]
    assert CONTAINER["image"] == image.replace("/tensorkiln:", "/tensorkiln-cli:")


def test_the_commands_of_the_comments_name_what_there_is() -> None:
    text = (FOLDER / "farm/kustomization.yaml").read_text("utf-8")
    commands = re.findall(r"^#   kubectl (.+?)(?:  +#.*)?$", text, re.MULTILINE)
    assert [word for line in commands for word in line.split() if "/" in word and not (ROOT / word).exists()] == [
        "job/kiln-first-key",
        "job/compile",
    ]
    assert "Job kiln-first-key" in FARM
    made = next(line for line in commands if "create secret" in line)
    assert CONTAINER["envFrom"] == [{"secretRef": {"name": "kiln"}}]
    assert made.startswith(f"-n {JOB['metadata']['namespace']} create secret generic kiln --from-literal=KILN_API_KEY=")
