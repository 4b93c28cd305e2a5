"""A back end small enough to read: elementwise float kernels as LLVM IR, compiled for this machine."""

from __future__ import annotations

from dataclasses import dataclass, field

from tensorkiln.launch import Binary, BinaryOp, Const, DefineVar, LaunchNode, Unary, UnaryOp
from tensorkiln.program_ast import Index, Load, Param, Sink, Special, Store
from tensorkiln.program_walk import Rule, content_digest, toposort
from tensorkiln.spec import CompiledSpec, ProgramSpec
from tests.runtime.kernels import compile_object, elementwise

_OPS = {BinaryOp.ADD: "fadd", BinaryOp.MUL: "fmul", BinaryOp.SUB: "fsub"}


def kernel(result: LaunchNode, inputs: int) -> Sink:
    """`out[i] = result` over `n` elements, `out` being the parameter behind the inputs."""
    index = Special(DefineVar("n", 1, 1 << 20), "gidx0")
    return Sink((Store(Index(Param(inputs), (index,)), result),))


def element(slot: int) -> Load:
    """The element of input `slot` that the kernel is at."""
    return Load(Index(Param(slot), (Special(DefineVar("n", 1, 1 << 20), "gidx0"),)))


def cubic_sine(node: LaunchNode) -> LaunchNode | None:
    """Sin(x) as x - x^3 / 6, which is enough near zero."""
    if not isinstance(node, Unary) or node.kind is not UnaryOp.SIN:
        return None
    x = node.source
    cube = Binary(BinaryOp.MUL, Binary(BinaryOp.MUL, x, x), x)
    return Binary(BinaryOp.SUB, x, Binary(BinaryOp.MUL, cube, Const(1 / 6)))


@dataclass
class ToyRenderer:
    """Knows add, sub, mul, loads and constants; `seen` is every operation that reached it."""

    device: str
    rule: Rule | None = None
    seen: list[str] = field(default_factory=list[str])

    def decompositor(self) -> Rule | None:
        return self.rule

    def render(self, ast: LaunchNode, name: str | None) -> ProgramSpec:
        spec = ProgramSpec.new(name, None, self.device).with_derived_metadata(ast)
        names: dict[int, str] = {}
        lines: list[str] = []
        for node in toposort(ast):
            self.seen.append(node.kind.value if isinstance(node, Unary | Binary) else node.op)
            match node:
                case Const(value) if isinstance(value, float):
                    lines.append(f"  %v{len(names)} = fadd double 0.0, {value!r}")
                    lines.append(f"  %c{len(names)} = fptrunc double %v{len(names)} to float")
                    names[id(node)] = f"%c{len(names)}"
                case Load(Index(Param(slot))):
                    names[id(node)] = f"%x{slot}"
                case Binary(kind, left, right):
                    lines.append(f"  %t{len(names)} = {_OPS[kind]} float {names[id(left)]}, {names[id(right)]}")
                    names[id(node)] = f"%t{len(names)}"
                case Store(_, value):
                    lines.append(f"  %y = fadd float {names[id(value)]}, -0.0")
                case _:
                    pass
        source = elementwise(spec.name, len(spec.globals) - 1, "\n".join(lines), chunk=1)
        return spec.model_copy(update={"src": source})


@dataclass
class ToyCompiler:
    """Compiles for this machine; `compiled` is the name of every kernel that it was asked for."""

    cache_key: str = "toy 1"
    compiled: list[str] = field(default_factory=list[str])

    def compile(self, spec: ProgramSpec) -> CompiledSpec:
        self.compiled.append(spec.name)
        assert spec.src is not None
        made = CompiledSpec.from_bytes(spec.name, compile_object(spec.src), content_digest(Sink(())))
        return made.model_copy(update={"var_names": spec.var_names, "buf_count": spec.buf_count})


class SourceOnlyCompiler(ToyCompiler):
    """A just-in-time compiler: leaves the work to the runtime."""

    def compile(self, spec: ProgramSpec) -> CompiledSpec:
        assert spec.src is not None
        return CompiledSpec.from_source(spec.name, spec.src, content_digest(Sink(())), spec.buf_count)
