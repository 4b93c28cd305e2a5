"""One trace leads from a call of the SDK through the request to each stage of the compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.farm.members import free_port
from tests.service.bodies import compile_body, encoded
from tests.service.server import Server
from tests.snippets import ROOT

STAGES = ("load", "from-graph", "schedule", "lower", "translate", "codegen", "return")


def test_one_trace_leads_from_the_call_to_each_stage(tmp_path: Path) -> None:
    program = [sys.executable, "-W", "error", "-m", "tests.observe.traced_service", str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
    done = subprocess.run(
        program,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=200,
        env={**environment, "KILN_CONFIG_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    spans: list[dict[str, Any]] = json.loads(done.stdout)
    by_id = {span["id"]: span for span in spans}
    (user,) = [span for span in spans if span["name"] == "user"]
    others = {span["name"] for span in spans if span["trace"] != user["trace"] and span["parent"] is None}
    assert others <= {"sandbox trial", "sandbox ping"}

    def path(span: dict[str, Any]) -> list[str]:
        above = by_id.get(span["parent"])
        return [*([] if above is None else path(above)), f"{span['kind']} {span['name']}"]

    paths = [path(span) for span in spans]
    way = ["INTERNAL user", "CLIENT POST /compile", "SERVER POST /compile"]
    assert [*way, "INTERNAL sandbox prepare", "INTERNAL stage parse"] in paths
    for stage in STAGES:
        assert [*way, "INTERNAL sandbox compile", f"INTERNAL stage {stage}"] in paths
    for span in spans:
        above = by_id.get(span["parent"])
        assert span["begin"] <= span["end"]
        if above is not None and span["name"].startswith("stage "):
            # Of two clocks, one of which is slewed.
            assert above["begin"] - 10**7 <= span["begin"] <= span["end"] <= above["end"] + 10**7
    (compiled,) = [span for span in spans if span["name"] == "sandbox compile"]
    assert compiled["attributes"] == {"kiln.job": "compile", "kiln.target": "cpu"}


def test_without_tracing_nothing_of_it_is_imported() -> None:
    script = (
        "import sys\n"
        "from tensorkiln import Client\n"
        "from tensorkiln.errors import UnavailableError\n"
        "try: Client('http://127.0.0.1:1', timeout_s=1).capabilities()\n"
        "except UnavailableError: pass\n"
        "assert not any(name.startswith('opentelemetry') for name in sys.modules)\n"
        "import service.server.serve, service.settings, service.observe.watch\n"
        "service.server.serve.create_app(service.settings.Settings())\n"
        "assert not any(name.startswith('opentelemetry.sdk') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


def test_a_collector_that_is_away_fails_no_request(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    with Server(home, tracing="1") as server:
        assert server.compile(encoded(compile_body())).status_code == 200
        assert server.stop() == 0
