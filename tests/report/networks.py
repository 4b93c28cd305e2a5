"""Networks whose reports are looked at: from ONNX and from PyTorch, with and without symbols."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from tensorkiln.frontends.onnx import load
from tensorkiln.graph import Graph
from tensorkiln.report import Report
from tests.compiled import EVERY, compiled
from tests.models.exports import EXPORTS
from tests.networks.light import shipped


@cache
def bert() -> Graph:
    """With a dynamic batch and length."""
    (export,) = (each for each in EXPORTS if str(each) == "bert-dynamo-sequence")
    return export.load().graph


def densenet() -> Graph:
    return load(shipped("densenet121")).graph


def squeezenet() -> Graph:
    return load(shipped("squeezenet")).graph


@cache
def report_of(network: Callable[[], Graph], target: str) -> Report:
    """The report of a network with the texts of its stages."""
    made = compiled(network(), target, texts=EVERY)
    return Report.of(made.program, graph=network(), stages=made.dumps, artifacts=made.artifacts)
