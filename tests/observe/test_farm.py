"""What is seen of a farm: the workers' figures, and spans of a trace that began at a service."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.farm.members import free_port
from tests.farm.topology import Farm
from tests.faults.requests import answered
from tests.observe.collector import collector
from tests.service.bodies import compile_body, encoded

TRACE = "0af7651916cd43dd8448eb211c80319c"


def test_a_worker_tells_its_figures_and_sends_the_spans_of_its_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"127.0.0.1:{free_port()}"
    seen: dict[str, Any] = {"tracing": 1, "worker_metrics": address}
    with collector() as spans:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", spans.url)
        with Farm(tmp_path, services=1, workers=1, **seen) as farm:
            parent = f"00-{TRACE}-b7ad6b7169203331-01"
            answer = answered(farm.urls[0], encoded(compile_body()), traceparent=parent)
            assert answer.status_code == 200, answer.text
            figures = httpx2.get(f"http://{address}/metrics", timeout=30, verify=False).text
            assert httpx2.get(f"http://{address}/readyz", timeout=30, verify=False).status_code == 200
            served = httpx2.get(f"{farm.urls[0]}/metrics", timeout=30, verify=False).text
            log = farm.workers[0].log
            while '"an order ended"' not in log.read_text():
                time.sleep(0.05)
            assert farm.stop() == [0, 0]
    assert counted(figures, "kiln_compile_seconds_count", "codegen") == 1
    assert counted(served, "kiln_compile_seconds_count", "codegen") == 0
    assert [line for line in log.read_text().splitlines() if '"an order ended"' in line and TRACE in line]
    traced = {span.name for span in spans.received if span.trace == TRACE}
    assert {"POST /compile", "sandbox prepare", "sandbox compile", "stage codegen"} <= traced


def counted(text: str, name: str, stage: str) -> float:
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return sum(sample.value for sample in samples if sample.name == name and sample.labels["stage"] == stage)
