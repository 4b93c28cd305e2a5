"""Compile a graph in this process and run it: what numerics tests do instead of starting a service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any
from unittest import mock

from dialect.mlir import ir
from passes import compile as compile_module
from passes.back_end import BackEnd
from passes.back_ends import back_end_of
from passes.compile import CANONICAL_SYMBOL, Compilation, CompileRequest, compile_request
from tensorkiln.canonical import canonicalize
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.program import Program
from tensorkiln.target import Target, missing_features
from tests.bounds import accesses


@cache
def target(name: str) -> Target:
    """The target that a shorthand names."""
    return Target.parse(name)


def compiled(graph: Graph, name: str = "cpu:native", *, dump_stages: bool = False) -> Compilation:
    """The compiled graph for the target called `name`."""
    return compile_request(CompileRequest(graph, target(name), CompileOptions(dump_stages=dump_stages)))


def proven(graph: Graph, name: str = "cpu:native", *, dump_stages: bool = False) -> Compilation:
    """As `compiled`, with the proof that every store of every kernel stays in the memory that it addresses.

    AssertionError that names the stores of which that is not proven.
    """
    is_canonical = all(map(CANONICAL_SYMBOL.fullmatch, graph.symbols))
    constraints = (graph if is_canonical else canonicalize(graph).graph).constraints

    def prove(module: ir.Module) -> ir.Module:
        unproven = [store for store in accesses(module, constraints, loads=False) if not store.is_proven]
        assert not unproven, "\n".join(map(str, unproven))
        return module

    def with_proof(target: Target, options: CompileOptions, measured: Mapping[str, float]) -> BackEnd:
        made = back_end_of(target, options, measured)
        (number,) = (number for number, stage in enumerate(made.pipeline) if stage.name == "realise")
        proof = replace(made.pipeline[number], name="proof", run=prove)
        return replace(made, pipeline=(*made.pipeline[: number + 1], proof, *made.pipeline[number + 1 :]))

    with mock.patch.object(compile_module, "back_end_of", with_proof):
        return compiled(graph, name, dump_stages=dump_stages)


def unscheduled(graph: Graph, name: str = "cpu:native", *, dump_stages: bool = False) -> Compilation:
    """As `compiled`, every kernel lowered by the passes of MLIR alone."""
    options = CompileOptions(schedule="none", dump_stages=dump_stages)
    return compile_request(CompileRequest(graph, target(name), options))


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
