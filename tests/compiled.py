"""Compile a graph in this process and run it: what numerics tests do instead of starting a service."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from passes.compile import Compilation, CompileRequest, compile_request
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.program import Program
from tensorkiln.target import Target, missing_features


@cache
def target(name: str) -> Target:
    """The target that a shorthand names."""
    return Target.parse(name)


def compiled(graph: Graph, name: str = "cpu:native", *, dump_stages: bool = False) -> Compilation:
    """The compiled graph for the target called `name`."""
    return compile_request(CompileRequest(graph, target(name), CompileOptions(dump_stages=dump_stages)))


def program(compilation: Compilation, threads: int = 1) -> Program:
    """What the runtime makes of a compilation."""
    return Program(compilation.program, compilation.artifacts.__getitem__, threads=threads)


def ready(graph: Graph) -> Callable[..., tuple[Any, ...]]:
    """The graph compiled for this machine: what gives its outputs, any number of times."""
    return program(compiled(graph))


def run(graph: Graph, /, *arrays: Any, **symbols: int) -> tuple[Any, ...]:
    """The outputs of the graph compiled for this machine."""
    return ready(graph)(*arrays, **symbols)


@cache
def runs_here(name: str) -> bool:
    """Whether this machine has every instruction of the target."""
    host, wanted = target("cpu:native"), target(name)
    same = (host.triple or "").partition("-")[0] == (wanted.triple or "").partition("-")[0]
    return same and not missing_features(wanted, dict.fromkeys(host.features, True))
