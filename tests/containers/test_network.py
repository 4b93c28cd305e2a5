"""Whom a pod may reach, by what the network policies of an overlay come to."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.snippets import blocks

from .files import DOCKER, KUBERNETES, manifests
from .kustomize import Manifest, built
from .test_kustomize import COMPONENTS, EXAMPLE, overlay

WORKLOADS = ("kiln-api", "kiln-worker")
PODS = (*WORKLOADS, "kiln-first-key")


@dataclass(frozen=True)
class Place:
    """Something to be reached: an address beyond the cluster, or a pod and its namespace by their labels."""

    address: str = ""
    pod: dict[str, str] = field(default_factory=dict[str, str])
    namespace: dict[str, str] = field(default_factory=dict[str, str])


DNS = Place(pod={"k8s-app": "kube-dns"})
STORE = Place("203.0.113.7")
STORE_POD = Place(pod={"kiln-store": "true"}, namespace={"kiln-store": "true"})
ELSEWHERE = [
    *(Place(address) for address in ("1.1.1.1", "10.0.0.7", "172.16.0.7", "192.168.0.7", "100.64.0.7")),
    *(Place(address) for address in ("169.254.169.254", "2606:4700::1111", "fd00::7", "fe80::7")),
    *(Place(pod={"app.kubernetes.io/name": name}) for name in PODS),
    *(Place(pod=pod) for pod in ({}, {"app": "anything"}, STORE_POD.pod)),
]
PORTS = (22, 53, 80, 443, 2379, 6443, 8080, 9000, 9090, 9100, 10250)


def selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    assert selector.keys() <= {"matchLabels", "matchExpressions"}
    named = all(labels.get(name) == value for name, value in selector.get("matchLabels", {}).items())
    for each in selector.get("matchExpressions", ()):
        assert each["operator"] == "In"
        named = named and labels.get(each["key"]) in each["values"]
    return named


def admits(peer: dict[str, Any], place: Place) -> bool:
    if "ipBlock" in peer:
        assert peer["ipBlock"].keys() == {"cidr"}
        network = ip_network(peer["ipBlock"]["cidr"])
        return bool(place.address) and ip_address(place.address) in network
    # Without a selector of namespaces a peer is of the pod's own, which tells of no other place.
    assert peer.keys() == {"namespaceSelector", "podSelector"}
    is_there = not place.address and selects(peer["namespaceSelector"], place.namespace)
    return is_there and selects(peer["podSelector"], place.pod)


def reached(objects: list[Manifest], pod: str, place: Place) -> list[int]:
    """The ports of `PORTS` at which a pod reaches a place: all of them when no policy is about what leaves the pod."""
    policies = [
        each["spec"]
        for each in objects
        if each["kind"] == "NetworkPolicy" and selects(each["spec"]["podSelector"], {"app.kubernetes.io/name": pod})
    ]
    ruling = [each for each in policies if "Egress" in each["policyTypes"]]
    if not ruling:
        return list(PORTS)
    rules = [rule for each in ruling for rule in each.get("egress", ()) if any(admits(to, place) for to in rule["to"])]
    return [port for port in PORTS if any(port in {each["port"] for each in rule["ports"]} for rule in rules)]


def with_all(folder: Path) -> list[Manifest]:
    """The example with every component."""
    own = yaml.safe_load((KUBERNETES / EXAMPLE / "kustomization.yaml").read_text())["components"]
    return built(overlay(folder, components=[f"../../{name}" for name in COMPONENTS if f"../../{name}" not in own]))


@pytest.mark.parametrize("pod", WORKLOADS)
def test_the_base_reaches_names_alone(pod: str) -> None:
    base = manifests()
    assert reached(base, pod, DNS) == [53]
    for place in (*ELSEWHERE, STORE, STORE_POD):
        assert reached(base, pod, place) == [], place


@pytest.mark.parametrize("pod", WORKLOADS)
def test_an_overlay_reaches_the_store_that_it_names_besides(pod: str) -> None:
    example = built(KUBERNETES / EXAMPLE)
    assert reached(example, pod, STORE) == [443]
    assert reached(example, pod, DNS) == [53]
    for place in (*ELSEWHERE, STORE_POD):
        assert reached(example, pod, place) == [], place


@pytest.mark.parametrize("pod", WORKLOADS)
def test_a_store_in_the_cluster_is_reached_by_the_labels_of_pod_and_namespace(tmp_path: Path, pod: str) -> None:
    made = with_all(tmp_path / "kubernetes")
    assert reached(made, pod, STORE_POD) == [9000]
    for place in ELSEWHERE:
        assert reached(made, pod, place) == [], place


def test_the_container_that_makes_keys_has_no_network(tmp_path: Path) -> None:
    made = with_all(tmp_path / "kubernetes")
    for place in (*ELSEWHERE, DNS, STORE, STORE_POD):
        assert reached(made, "kiln-first-key", place) == [], place


def test_no_pod_is_without_a_policy_for_either_direction(tmp_path: Path) -> None:
    made = with_all(tmp_path / "kubernetes")
    pods = [each["spec"]["template"]["metadata"]["labels"] for each in made if "template" in each.get("spec", {})]
    assert {labels["app.kubernetes.io/name"] for labels in pods} == set(PODS)
    policies = [each["spec"] for each in made if each["kind"] == "NetworkPolicy"]
    for labels in pods:
        ruled = {kind for each in policies if selects(each["podSelector"], labels) for kind in each["policyTypes"]}
        assert ruled == {"Ingress", "Egress"}


def test_no_address_that_is_shipped_is_anybodys() -> None:
    text = "\n".join(path.read_text() for path in KUBERNETES.rglob("*.yaml"))
    networks = [ip_network(each) for each in re.findall(r"\b[\d.]+/\d+\b|\b[\da-f:]+::/\d+\b", text)]
    assert len(networks) == 2
    # RFC 5737: for examples only.
    assert set(networks) <= {ip_network(each) for each in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")}


def test_the_manual_names_the_components_and_the_labels() -> None:
    text = (DOCKER / "README.md").read_text("utf-8")
    assert all(f"`kubernetes/{name}`" in text or f"`{name}`" in text for name in COMPONENTS)
    assert "kiln-store" in text
    assert any("kiln-store-by-address" in block.text for block in blocks(DOCKER / "README.md", "yaml"))
