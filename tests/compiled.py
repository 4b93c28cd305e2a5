"""Compile a graph in this process and run it: what numerics tests do instead of starting a service."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any, Final
from unittest import mock

from dialect.kiln import new_context
from dialect.mlir import ir
from passes import compile as compile_module
from passes import stage_text
from passes.back_end import BackEnd
from passes.back_ends import back_end_of
from passes.codegen.translate import to_llvm_ir
from passes.compile import CANONICAL_SYMBOL, Compilation, CompileRequest, compile_request
from passes.stage import Stage
from tensorkiln.canonical import canonicalize
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.program import Program
from tensorkiln.target import Target, missing_features
from tests.bounds import Realised, accesses

MOST_COMPILES: Final = 64
"""Compiles in a context. Creating one takes a tenth of a small compile; it keeps all types and constants of its graphs.
"""
EVERY: Final = ("every",)
"""Instead of stages: all of them."""


@cache
def target(name: str) -> Target:
    """The target that a shorthand names."""
    return Target.parse(name)


def compiled(graph: Graph, name: str = "cpu:native", *, texts: Sequence[str] = ()) -> Compilation:
    """The compiled graph for the target called `name`, with the texts of these stages."""
    return with_texts(CompileRequest(graph, target(name)), *texts)


@dataclass(frozen=True, slots=True)
class _ByText:
    """A graph, which has no hash, as a key."""

    text: str
    graph: Graph = field(compare=False)


def shared(graph: Graph, name: str = "cpu:native", *, texts: Sequence[str] = ()) -> Compilation:
    """As `compiled`, once for equal arguments: for tests that read what others of their file do, and patch nothing."""
    return _shared(_ByText(graph.to_json(), graph), name, tuple(texts))


@lru_cache(maxsize=64)
def _shared(given: _ByText, name: str, texts: Sequence[str]) -> Compilation:
    return compiled(given.graph, name, texts=texts)


def with_texts(request: CompileRequest, *stages: str) -> Compilation:
    """What is compiled, with the texts of these stages, of it and of its inner programs, as `dump_stages` writes them.

    With EVERY there are those of all stages, with their origins and with assembly, and a compile takes twice as long.
    """
    if not stages:
        return _compile(request)
    if stages == EVERY:
        return _compile(replace(request, options=request.options.model_copy(update={"dump_stages": True})))
    texts: dict[str, list[str]] = {name: [] for name in stages}
    unpatched = compile_module.back_end_of

    def kept(stage: Stage) -> Stage:
        def run(module: ir.Module) -> ir.Module:
            left = stage.run(module)
            texts[stage.name].append(stage_text.write(left, stage.name))
            return left

        return replace(stage, run=run) if stage.name in texts else stage

    def keeping(target: Target, options: CompileOptions, measured: Mapping[str, float]) -> BackEnd:
        made = unpatched(target, options, measured)
        return replace(made, pipeline=tuple(map(kept, made.pipeline)))

    def translated(module: ir.Module) -> str:
        text = to_llvm_ir(module)
        if "translate" in texts:
            texts["translate"].append(text)
        return text

    with mock.patch.multiple(compile_module, back_end_of=keeping, to_llvm_ir=translated):
        made = _compile(request)
    programs = _programs(made)
    assert all(len(found) == len(programs) for found in texts.values()), "every program has each of these stages"
    dumps = {id(each): {name: found[at] for name, found in texts.items()} for at, each in enumerate(programs)}

    def told(each: Compilation) -> Compilation:
        return replace(each, dumps=dumps[id(each)], inner=tuple(map(told, each.inner)))

    return told(made)


class _Contexts(threading.local):
    """The context of each thread, and the compiles that are left for it."""

    context: ir.Context | None = None
    left: int = 0


_CONTEXTS: Final = _Contexts()


def _compile(request: CompileRequest) -> Compilation:
    with mock.patch.object(compile_module, "new_context", _context):
        return compile_request(request)


def _context() -> ir.Context:
    if _CONTEXTS.context is None or _CONTEXTS.left == 0:
        _CONTEXTS.context, _CONTEXTS.left = new_context(), MOST_COMPILES
    _CONTEXTS.left -= 1
    return _CONTEXTS.context


def _programs(made: Compilation) -> Sequence[Compilation]:
    """This one and those inside it, in the order in which they are compiled: each before those inside it."""
    return [made, *(each for inner in made.inner for each in _programs(inner))]


def proven(
    graph: Graph, name: str = "cpu:native", *, texts: Sequence[str] = (), options: CompileOptions | None = None
) -> Compilation:
    """As `compiled`, with the proof that every store of every kernel stays in the memory that it addresses.

    AssertionError that names the stores of which that is not proven.
    """
    is_canonical = all(map(CANONICAL_SYMBOL.fullmatch, graph.symbols))
    constraints = (graph if is_canonical else canonicalize(graph).graph).constraints

    def proving(stage: Stage) -> Stage:
        def run(module: ir.Module) -> ir.Module:
            made = stage.run(module)
            stores = accesses(Realised.of(module, made), constraints, loads=False)
            unproven = [store for store in stores if not store.is_proven]
            assert not unproven, "\n".join(map(str, unproven))
            return made

        return replace(stage, run=run) if stage.name == "realise" else stage

    def with_proof(target: Target, options: CompileOptions, measured: Mapping[str, float]) -> BackEnd:
        made = back_end_of(target, options, measured)
        return replace(made, pipeline=tuple(map(proving, made.pipeline)))

    with mock.patch.object(compile_module, "back_end_of", with_proof):
        return with_texts(CompileRequest(graph, target(name), options or CompileOptions()), *texts)


def unscheduled(graph: Graph, name: str = "cpu:native", *, texts: Sequence[str] = ()) -> Compilation:
    """As `compiled`, every kernel lowered by the passes of MLIR alone."""
    return with_texts(CompileRequest(graph, target(name), CompileOptions(schedule="none")), *texts)


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
