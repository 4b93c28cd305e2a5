"""The manifests hold the restricted pod security standard, and agree with images, settings and routes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from service.server.serve import create_app
from service.settings import Settings
from tests.snippets import ROOT
from tests.timeouts import Timeouts, stop_s

from .files import KUBERNETES, VARIABLES, compose, documents, manifests, value

WORKLOADS = ("kiln-api", "kiln-worker")
OBJECTS = [*manifests(), *manifests("components/first-key")]


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in OBJECTS if each["kind"] == kind}


def pod(name: str) -> dict[str, Any]:
    return {**of_kind("Deployment"), **of_kind("Job")}[name]["spec"]["template"]["spec"]


def container(name: str) -> dict[str, Any]:
    (only,) = pod(name)["containers"]
    return only


def settings() -> dict[str, str]:
    (kustomization,) = documents(KUBERNETES / "base/kustomization.yaml")
    (generated,) = kustomization["configMapGenerator"]
    return dict(literal.split("=", 1) for literal in generated["literals"])


@pytest.mark.parametrize("name", [*WORKLOADS, "kiln-first-key"])
def test_a_pod_holds_the_restricted_standard(name: str) -> None:
    assert not pod(name)["automountServiceAccountToken"]
    assert pod(name)["securityContext"]["runAsNonRoot"]
    assert pod(name)["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    user = pod(name)["securityContext"]["runAsUser"]
    assert value("api", "USER") == f"{user}:{pod(name)['securityContext']['runAsGroup']}"
    assert container(name)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize("name", WORKLOADS)
def test_volumes_are_mounted_where_the_settings_say(name: str) -> None:
    mounted = {mount["mountPath"] for mount in container(name)["volumeMounts"]}
    assert {volume["name"] for volume in pod(name)["volumes"]} == {m["name"] for m in container(name)["volumeMounts"]}
    assert settings()["KILN_KEYS"] in mounted
    assert value("api", "VOLUME") in mounted
    assert (settings()["KILN_IDENTITY"] in mounted) == (name == "kiln-api")


def test_the_first_key_is_made_where_services_read() -> None:
    (mount,) = container("kiln-first-key")["volumeMounts"]
    (volume,) = pod("kiln-first-key")["volumes"]
    assert mount["mountPath"] == settings()["KILN_IDENTITY"]
    assert volume in pod("kiln-api")["volumes"]
    assert container("kiln-first-key")["command"] == compose("compose.yaml")["services"]["key"]["entrypoint"]
    assert container("kiln-first-key")["args"] == compose("compose.yaml")["services"]["key"]["command"]


def claims(name: str) -> dict[str, dict[str, Any]]:
    """What is mounted of persistent volumes, by place: the claim, and whether it may only be read."""
    mounts = {mount["name"]: mount for mount in container(name)["volumeMounts"]}
    volumes = {volume["name"]: volume.get("persistentVolumeClaim") for volume in pod(name)["volumes"]}
    return {
        mount["mountPath"]: {"claim": claim["claimName"], "is_read": mount.get("readOnly", False)}
        for mount, claim in ((mounts[name], claim) for name, claim in volumes.items() if claim is not None)
    }


def test_a_service_reads_the_public_halves_of_the_keys_that_workers_sign_with_and_never_the_private_ones() -> None:
    own = {entry["name"]: entry.get("value") for entry in container("kiln-worker")["env"]}
    signs, reads = claims("kiln-worker"), claims("kiln-api")
    shown = signs[own["KILN_PUBLIC_KEYS"]]
    private = signs[settings()["KILN_KEYS"]]
    assert not shown["is_read"]
    assert reads[settings()["KILN_KEYS"]] == {**shown, "is_read": True}
    assert private["claim"] not in {mount["claim"] for mount in reads.values()} | {shown["claim"]}
    assert private["claim"] not in {mount["claim"] for mount in claims("kiln-first-key").values()}
    assert "KILN_PUBLIC_KEYS" not in settings()
    assert {mount["claim"] for mount in (*signs.values(), *reads.values())} == set(of_kind("PersistentVolumeClaim"))


def test_variables_are_known_settings_and_keep_the_order_of_timeouts() -> None:
    own = {entry["name"] for name in WORKLOADS for entry in container(name).get("env", ())}
    assert own | settings().keys() <= VARIABLES
    timeouts = Timeouts.of(float(settings()["KILN_COMPILE_DEADLINE_S"]), float(settings()["KILN_QUEUE_AGE_S"]))
    pause = container("kiln-api")["lifecycle"]["preStop"]["sleep"]["seconds"]
    stopped = pod("kiln-api")["terminationGracePeriodSeconds"] - pause
    grace = float(settings()["KILN_SHUTDOWN_GRACE_S"])
    assert timeouts.lets_finish(grace)
    assert stop_s(float(settings().get("KILN_SHUTDOWN_NOTICE_S", 0)), grace) <= stopped
    assert timeouts.worker_s < pod("kiln-worker")["terminationGracePeriodSeconds"]


def test_a_compile_fits_into_the_memory_of_a_worker() -> None:
    limit = container("kiln-worker")["resources"]["limits"]["memory"]
    assert int(settings()["KILN_COMPILE_MEMORY_MIB"]) + 512 <= int(limit.removesuffix("Gi")) * 1024


def test_probes_ask_what_is_served() -> None:
    routes = set(create_app(Settings()).openapi()["paths"])
    for name, stage in (("kiln-api", "api"), ("kiln-worker", "worker")):
        (port,) = container(name)["ports"]
        assert str(port["containerPort"]) == value(stage, "EXPOSE")
        probes = [probe for key, probe in container(name).items() if key.endswith("Probe")]
        assert len(probes) >= 2
        for probe in probes:
            assert probe["httpGet"]["port"] == port["name"]
            assert probe["httpGet"]["path"] in routes


def test_everything_that_selects_pods_selects_some() -> None:
    budgets = of_kind("PodDisruptionBudget").values()
    selected = {each["spec"]["selector"]["matchLabels"]["app.kubernetes.io/name"] for each in budgets}
    assert selected == set(WORKLOADS)
    assert of_kind("Service")["kiln"]["spec"]["selector"] == {"app.kubernetes.io/name": "kiln-api"}
    assert of_kind("HorizontalPodAutoscaler")["kiln-api"]["spec"]["scaleTargetRef"]["name"] == "kiln-api"


def test_autoscaled_deployments_have_no_fixed_replicas() -> None:
    assert not any("replicas" in of_kind("Deployment")[name]["spec"] for name in WORKLOADS)


def test_the_figures_that_workers_are_scaled_by_are_gathered() -> None:
    monitors = documents(KUBERNETES / "components/keda/monitors.yaml")
    for name, monitor in zip(WORKLOADS, monitors, strict=True):
        assert monitor["spec"]["selector"]["matchLabels"] == {"app.kubernetes.io/name": name}
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        assert endpoint["port"] in {port["name"] for port in container(name)["ports"]}
        (ingress,) = of_kind("NetworkPolicy")[name]["spec"]["ingress"]
        admitted = [each["namespaceSelector"]["matchLabels"] for each in ingress["from"]]
        assert {"kiln-monitoring": "true"} in admitted
        assert {"port": endpoint["port"]} in ingress["ports"]
    assert settings()["KILN_METRICS"] == "public", "a monitor has no credential"


def test_workers_are_scaled_by_a_figure_that_is_told() -> None:
    (scaled,) = documents(KUBERNETES / "components/keda/workers.yaml")
    assert scaled["spec"]["scaleTargetRef"]["name"] in of_kind("Deployment")
    (trigger,) = scaled["spec"]["triggers"]
    told = set(re.findall(r"`(kiln_\w+)`", (ROOT / "docs/observability.md").read_text()))
    asked = set(re.findall(r"kiln_\w+", trigger["metadata"]["query"]))
    assert asked
    assert asked <= told
