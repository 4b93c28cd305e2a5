"""Graphs taken through the compiler's stages one at a time: what the tests of passes look at."""

from __future__ import annotations

from dialect.from_graph import from_graph
from dialect.kiln import new_context
from dialect.mlir import ir
from dialect.module import graph_function
from passes.back_ends import back_end_of
from passes.cpu.machine import Machine, machine_of
from passes.decompose import decompose
from passes.fuse import form_kernels
from passes.loops.body import KernelBody
from passes.schedule.attach import kernel_functions
from passes.to_linalg.kernels import kernels_to_linalg
from passes.to_linalg.read_kernel import read_kernel
from passes.values import ROWS, Function, functions_of, read_function, read_symbols
from tensorkiln.build import Builder, Tensor
from tensorkiln.graph import Graph
from tensorkiln.options import CompileOptions
from tensorkiln.target import Target
from tests.bounds import Realised

TARGET = "cpu:x86-64-v3"


def machine(target: str = TARGET) -> Machine:
    """What schedules know of a target."""
    return machine_of(Target.parse(target))


def output(builder: Builder, *tensors: Tensor) -> Graph:
    """The graph that returns `tensors`."""
    builder.output(*tensors)
    return builder.graph()


def kiln(graph: Graph) -> ir.Module:
    """The graph in the kiln dialect."""
    return from_graph(graph, new_context())


def decomposed(graph: Graph) -> ir.Module:
    """The graph after decompose."""
    module = decompose(kiln(graph))
    assert module.operation.verify()
    return module


def kernels(graph: Graph, *, fusion: bool = True) -> ir.Module:
    """The graph cut into kernels."""
    module = form_kernels(decomposed(graph), fusion=fusion)
    assert module.operation.verify()
    return module


def after(stage: str, graph: Graph, target: str = TARGET) -> ir.Module:
    """The module that the stage called `stage` leaves."""
    module = kiln(graph)
    for step in back_end_of(Target.parse(target), CompileOptions()).pipeline:
        module = step.run(module)
        assert module.operation.verify()
        if step.name == stage:
            return module
    raise LookupError(stage)


def realised(graph: Graph, target: str = TARGET) -> Realised:
    """The module that `realise` leaves, with what its kernels are given."""
    scheduled = after("schedule", graph, target)
    (realise,) = (
        step for step in back_end_of(Target.parse(target), CompileOptions()).pipeline if step.name == "realise"
    )
    module = realise.run(scheduled)
    assert module.operation.verify()
    return Realised.of(scheduled, module)


def read_graph(module: ir.Module) -> Function:
    """The graph function of a module."""
    return read_function(graph_function(module).operation, read_symbols(module))


def bodies(graph: Graph) -> list[KernelBody]:
    """The traced kernels of a graph, in the order in which they run."""
    return bodies_of(kernels_to_linalg(kernels(graph)))


def bodies_of(module: ir.Module) -> list[KernelBody]:
    """The kernels of a module after `to-linalg`, in the order in which they run."""
    known = read_graph(module)
    functions = functions_of(module)
    called = dict.fromkeys(value.text("callee") for value in known.values if value.kind == "func.call")
    return [read_kernel(functions, name, known.symbols) for name in called]


def body(graph: Graph) -> KernelBody:
    """The one kernel of a graph."""
    (only,) = bodies(graph)
    return only


def shape_of_kernels(graph: Graph, *, fusion: bool = True) -> list[tuple[int, list[str]]]:
    """`(shared rows, kinds of the stored values)` of every kernel, in order."""
    module = kernels(graph, fusion=fusion)
    known = read_graph(module)
    functions = kernel_functions(module)
    called = dict.fromkeys(value.text("callee") for value in known.values if value.kind == "func.call")
    found: list[tuple[int, list[str]]] = []
    for name in called:
        roots = [value.kind for value in read_function(functions[name], known.symbols).values if value.is_root]
        found.append((ir.IntegerAttr(functions[name].attributes[ROWS]).value, roots))
    return found
