"""Compile one graph for one target to a program and its artifacts: the only public function of the compiler."""

from __future__ import annotations

import hashlib
import re
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from dialect.diagnostics import to_error
from dialect.from_graph import from_graph
from dialect.kiln import new_context
from dialect.mlir import ir
from dialect.verify import verify
from tensorkiln.canonical import canonicalize
from tensorkiln.errors import TensorkilnError
from tensorkiln.graph import Graph
from tensorkiln.nodes import Region
from tensorkiln.nodes.fields import Vars
from tensorkiln.options import CompileOptions
from tensorkiln.spec import CompiledProgram, StageRecord
from tensorkiln.spec.abi import ABI_IN_PLACE, ABI_OF_LOOPS, ABI_PREPARED, ABI_VERSION
from tensorkiln.target import Target

from . import boundary, stage_text
from .back_end import BackEnd
from .back_ends import back_end_of
from .codegen.assembly import Assembly
from .codegen.parts import Part, divide
from .codegen.translate import to_llvm_ir
from .origin_lines import ORIGINS, OriginLines
from .origins import recorded
from .plan.program_plan import ProgramPlan
from .program import ProgramParts
from .schedule.attach import kernel_functions, read_program
from .schedule.choice import Candidate
from .stage import Stage
from .strategy import UNMEASURED
from .too_large import expressions_bounded
from .values import Value

CANONICAL_SYMBOL = re.compile(r"s\d+")
"""Names that cannot collide with loop names. Other symbols are renamed to such names for the compile."""
INNER = "inner"
"""The stage name passed to `on_stage` while graphs inside loops are compiled."""
RECURSION_LIMIT = 20000
"""Tracing recurses through a kernel's ops; form-kernels bounds their number."""

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """A graph, the target, and options; `measured` has times in nanoseconds by candidate key.

    The graph is the body of a loop if `carried` is not 0: each of so many outputs replaces the input at its position,
    and may be computed in its place.
    """

    graph: Graph
    target: Target
    options: CompileOptions = field(default_factory=CompileOptions)
    measured: Mapping[str, float] = field(default_factory=lambda: UNMEASURED)
    carried: int = 0


@dataclass(frozen=True, slots=True)
class Compilation:
    """A program, its artifacts by SHA-256, and the text of each stage if requested.

    `offered` has, for each kernel of the program, the candidates of its schedule and the position of the picked one.
    `inner` are the compilations of graphs inside loops; their artifacts and dumps are included here.
    """

    program: CompiledProgram
    artifacts: dict[str, bytes]
    dumps: dict[str, str] = field(default_factory=dict[str, str])
    offered: tuple[tuple[tuple[Candidate, ...], int], ...] = ()
    inner: tuple[Compilation, ...] = ()


def compile_request(
    request: CompileRequest, on_stage: Callable[[str], None] = lambda _: None, pool: Executor | None = None
) -> Compilation:
    """Compile a graph. `on_stage` is called with the name of every stage before it runs.

    With a `pool` of threads, LLVM compiles the parts of a large program side by side; the program is the same.

    Raises UnsupportedGraphError for an unsupported target or graph; LimitExceededError, with stage and nodes, if a
    stage exceeds the limits of `tensorkiln.compile_limits` or makes expressions larger than a program may have;
    DiagnosticError, with the stage and the node, if a pass rejects the module.
    """
    back_end = back_end_of(request.target, request.options, request.measured)
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))
    if all(CANONICAL_SYMBOL.fullmatch(symbol) for symbol in request.graph.symbols):
        return _Compiler(request, back_end, on_stage, pool).run()
    canonical = canonicalize(request.graph)
    made = _Compiler(replace(request, graph=canonical.graph), back_end, on_stage, pool).run()
    return _named(made, made.program.renamed(canonical.symbols, canonical.vars, canonical.nodes))


def _named(made: Compilation, program: CompiledProgram) -> Compilation:
    """The compilation with renamed programs."""
    inner = tuple(_named(each, named) for each, named in zip(made.inner, program.inner, strict=True))
    return replace(made, program=program, inner=inner)


def _key(region: Region, carried: int) -> str:
    """The key of a graph inside a loop, of which the first `carried` inputs are replaced in every turn."""
    return f"{carried} {region.model_dump_json()}"


def _abi(parts: ProgramParts, inner: Sequence[CompiledProgram]) -> int:
    """The oldest version whose runtimes run a program of these parts and with these programs inside."""
    own = [ABI_IN_PLACE] if parts.updates_in_place else [ABI_OF_LOOPS] if inner else [ABI_VERSION]
    return max([*own, *(max(each.abi, ABI_PREPARED if each.prepare else each.abi) for each in inner)])


def _inside(program: CompiledProgram) -> CompiledProgram:
    """The program as it is inside of another one: without constraints, and without parameters if nothing is prepared.

    Runtimes of older versions refuse parameters inside.
    """
    inputs = program.inputs
    if not program.prepare:
        inputs = tuple(binding.model_copy(update={"is_parameter": False}) for binding in inputs)
    return program.model_copy(update={"stages": (), "constraints": (), "inputs": inputs})


class _Emissions:
    """The code of LLVM IR texts in the programs of a request. Equal texts are compiled once.

    With a pool of threads, LLVM compiles a text while Python lowers the next program.
    """

    def __init__(self, emit: Callable[[str], bytes], pool: Executor | None) -> None:
        self._emit = emit
        self._pool = pool
        self._begun: dict[str, Future[bytes]] = {}
        self._codes: dict[str, bytes] = {}

    def begin(self, llvm_ir: str) -> None:
        """Compile a text in the pool, if there is one."""
        if self._pool is not None and llvm_ir not in self._begun:
            self._begun[llvm_ir] = self._pool.submit(self._emit, llvm_ir)

    def code(self, llvm_ir: str) -> bytes:
        """The code of a text. Raises what the back end's `emit` raises."""
        if llvm_ir not in self._codes:
            begun = self._begun.get(llvm_ir)
            self._codes[llvm_ir] = self._emit(llvm_ir) if begun is None else begun.result()
        return self._codes[llvm_ir]


@dataclass(frozen=True, slots=True)
class _Lowered:
    """A graph after all stages: its last module and the scheduled one, the program's plan, LLVM IR, and its parts."""

    module: ir.Module
    scheduled: ir.Module
    plan: ProgramPlan
    llvm_ir: str
    parts: tuple[Part, ...]
    groups: list[int]


@dataclass(frozen=True, slots=True)
class _Inside:
    """A graph inside a loop at node `pointer`.

    Errors point to that node, since the nodes inside the loop have other names here than in the user's graph.
    """

    compiler: _Compiler
    lowered: _Lowered
    pointer: str

    def finish(self) -> Compilation:
        with _pointing(self.pointer):
            return self.compiler.finish(self.lowered)


@contextmanager
def _pointing(pointer: str) -> Generator[None]:
    try:
        yield
    except TensorkilnError as error:
        error.pointers = (pointer,)
        raise


class _Compiler:
    def __init__(
        self,
        request: CompileRequest,
        back_end: BackEnd,
        on_stage: Callable[[str], None],
        pool: Executor | None,
        around: _Compiler | None = None,
    ) -> None:
        """`around` compiles the graph with the loop that this graph is inside of."""
        self.request = request
        self.back_end = back_end
        self.on_stage = on_stage
        self.pool = pool
        self.emissions = _Emissions(back_end.emit, pool) if around is None else around.emissions
        self.context = new_context() if around is None else around.context
        self.records: list[StageRecord] = []
        self.dumps: dict[str, str] = {}
        self.inside: dict[str, _Inside] = {}
        self.lines: OriginLines | None = None

    def run(self) -> Compilation:
        return self.finish(self.lower())

    def lower(self) -> _Lowered:
        """Lower the graph, and begin to compile its code and the graphs inside its loops."""
        if not self.request.options.dump_stages:
            return self._lower()
        with recorded() as origins:
            self.lines = OriginLines(origins)
            return self._lower()

    def _lower(self) -> _Lowered:
        request = self.request
        with self._timed("from-graph"):
            module = from_graph(request.graph, self.context, request.carried)
            boundary.require("from-graph", module, boundary.KILN)
            verify(module, "from-graph")
        self._dump("from-graph", module)
        scheduled = module
        for stage in self.back_end.pipeline:
            module = self._run(stage, module)
            if stage.name == "schedule":
                scheduled = module
        with self._timed("translate"):
            llvm_ir = to_llvm_ir(module)
        self._keep("translate", llvm_ir)
        groups = [] if self.lines is None else self.lines.read_llvm("translate", module, llvm_ir)
        parts = tuple(divide(llvm_ir))
        for part in parts:
            self.emissions.begin(part.llvm_ir)
        with expressions_bounded("program"):
            plan = read_program(scheduled)
        for step in plan.steps:
            if step.host is not None and step.host.kind == "while":
                self._begin_inside(step.host, len(step.writes))
        return _Lowered(module, scheduled, plan, llvm_ir, parts, groups)

    def finish(self, lowered: _Lowered) -> Compilation:
        """The compiled program of what `lower` made."""
        module, scheduled, llvm_ir = lowered.module, lowered.scheduled, lowered.llvm_ir
        with expressions_bounded("program"):
            # While LLVM compiles, if there are threads.
            parts = self._parts(lowered)
        with self._timed("codegen"):
            codes = {part: self.emissions.code(part.llvm_ir) for part in lowered.parts}
            boundary.require_code("codegen", codes.values(), module)
        if self.lines is not None:
            listing, found = self.back_end.listing(llvm_ir, tuple(codes.values()), lowered.groups)
            self._keep("codegen", listing)
            self.lines.keep("codegen", found)
        assemblies: tuple[Assembly, ...] = ()
        if self.back_end.assemble is not None and kernel_functions(scheduled):
            with self._timed("assemble"):
                assemblies = tuple(self._each(self.back_end.assemble, codes.values()))
                boundary.require_code("assemble", (each.cubin for each in assemblies), module)
        if self.lines is not None:
            # No stage of the program, which is the same with texts and without.
            self.on_stage(ORIGINS)
            self.lines.read_calls(scheduled)
            self.dumps[ORIGINS] = self.lines.text()
        with expressions_bounded("program"):
            return self._compilation(parts, codes, assemblies)

    def _each(self, function: Callable[[_Given], _Made], given: Iterable[_Given]) -> Iterator[_Made]:
        return map(function, given) if self.pool is None else self.pool.map(function, given)

    def _parts(self, lowered: _Lowered) -> ProgramParts:
        numbers = {key: number for number, key in enumerate(self.inside)}
        return ProgramParts(
            lowered.scheduled,
            lowered.plan,
            self.request.graph,
            self.request.target,
            self.back_end,
            lambda region, carried: numbers[_key(region, carried)],
            self.request.carried,
        )

    def _compilation(
        self, parts: ProgramParts, codes: Mapping[Part, bytes], assemblies: Sequence[Assembly]
    ) -> Compilation:
        graph = self.request.graph
        digests = {part: hashlib.sha256(code).hexdigest() for part, code in codes.items()}
        parts.add_code({name: digest for part, digest in digests.items() for name in part.functions})
        artifacts = {**{digests[part]: code for part, code in codes.items()}, **parts.plan.artifacts}
        inner = tuple(each.finish() for each in self.inside.values())
        for number, each in enumerate(inner):
            artifacts |= each.artifacts
            prefix = f"inner-{number}-"
            stages = each.program.stages
            self.records += [stage.model_copy(update={"name": prefix + stage.name}) for stage in stages]
            self.dumps |= {prefix + name: text for name, text in each.dumps.items()}
        for assembly in assemblies:
            binary = hashlib.sha256(assembly.cubin).hexdigest()
            parts.add_assembly(assembly, binary)
            artifacts[binary] = assembly.cubin
        program = CompiledProgram(
            abi=_abi(parts, [each.program for each in inner]),
            digest="",
            target=self.request.target,
            symbols=graph.symbolic_vars,
            inputs=parts.inputs,
            outputs=parts.outputs,
            constraints=graph.constraints,
            buffers=tuple(parts.plan.buffers),
            kernels=tuple(parts.kernels),
            schedule=parts.schedule,
            prepare=parts.prepare,
            stages=tuple(self.records),
            inner=tuple(_inside(each.program) for each in inner),
            in_place=parts.in_place,
        )
        return Compilation(program, artifacts, self.dumps, parts.offered, inner)

    def _begin_inside(self, loop: Value, carried: int) -> None:
        """Lower the two graphs of a loop that carries so many values; equal ones of the same role share one program."""
        condition, body = loop.fields["condition"], loop.fields["body"]
        fixed: Vars = body.input_vars[carried:] if self.back_end.prepares_loops else ()
        regions: tuple[tuple[Region, int, Vars], ...] = ((condition, 0, ()), (body, carried, fixed))
        for region, count, parameters in regions:
            key = _key(region, count)
            if key in self.inside:
                continue
            if not self.inside:
                self.on_stage(INNER)
            graph = Graph.of_region(region, self.request.graph.symbols, parameters)
            request = replace(self.request, graph=graph, carried=count)
            compiler = _Compiler(request, self.back_end, lambda _: None, self.pool, self)
            with _pointing(loop.pointer):
                self.inside[key] = _Inside(compiler, compiler.lower(), loop.pointer)

    def _run(self, stage: Stage, module: ir.Module) -> ir.Module:
        with self._timed(stage.name):
            result = stage.run(module)
            # Before the verifier, which takes longer: a module that is too large fails here.
            boundary.require(stage.name, result, stage.leaves)
            if not result.operation.verify():
                raise AssertionError(f"stage {stage.name} left an invalid module")
        self._dump(stage.name, result)
        return result

    @contextmanager
    def _timed(self, name: str) -> Generator[None]:
        self.on_stage(name)
        start = time.perf_counter()
        try:
            with expressions_bounded(name):
                yield
        except ir.MLIRError as error:
            raise to_error(error, name) from error
        self.records.append(StageRecord(name=name, seconds=time.perf_counter() - start))

    def _dump(self, name: str, module: ir.Module) -> None:
        if self.lines is not None:
            self._keep(name, stage_text.write(module, name))
            self.lines.read_module(name, stage_text.write(module, name, locations=True))

    def _keep(self, name: str, text: str) -> None:
        if self.lines is not None:
            self.dumps[name] = text
            digest = hashlib.sha256(text.encode()).hexdigest()
            self.records[-1] = self.records[-1].model_copy(update={"dump": digest})
