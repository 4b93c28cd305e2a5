"""The figures of a running service."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from tests.service.server import Server


class Figures:
    """What `/metrics` said at one moment."""

    def __init__(self, server: Server) -> None:
        answer = server.http.get("/metrics")
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        self.text = answer.text
        self.samples = [sample for family in text_string_to_metric_families(answer.text) for sample in family.samples]

    def __call__(self, name: str, **labels: str) -> float:
        """The sum of the samples with this name that have all of these labels."""
        return sum(
            sample.value for sample in self.samples if sample.name == name and labels.items() <= sample.labels.items()
        )

    def values(self, label: str) -> set[str]:
        """Every value of a label."""
        return {sample.labels[label] for sample in self.samples if label in sample.labels}
