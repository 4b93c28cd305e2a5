"""The rows as graphs that tensorkiln compiles through its service; with the variant `bound`, weights are bound."""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib.metadata import version
from typing import Any

from tensorkiln import Client
from tensorkiln.build import (
    Builder,
    Tensor,
    absolute,
    conv2d,
    exp2,
    layer_norm,
    matmul,
    relu,
    softmax,
    sqrt,
    take,
    transpose,
    where,
)
from tensorkiln.graph import Graph
from tests.bench.peers.engine import Compile, Engine, Task, row_of
from tests.bench.peers.workloads import EPSILON


def chain(x: Tensor) -> Tensor:
    return where(x > 0, exp2(x) * 0.5 + sqrt(absolute(x)), x * x - 1)


ROWS: dict[str, Callable[..., Tensor]] = {
    "E1_1M": chain,
    "E1_16M": chain,
    "E2": lambda x, bias: relu(x + bias),
    "R1": lambda x: x.sum(1),
    "R2": lambda x: x.sum(0),
    "R3": lambda x: x.sum(0),
    "S1": softmax,
    "L1": lambda x, scale, bias: layer_norm(x, -1, scale, bias, EPSILON),
    **dict.fromkeys(("M1_512", "M1_1024", "M1_2048", "M2", "M3"), matmul),
    "P1": lambda x, w1, b1, w2, b2: softmax(relu(x @ w1 + b1) @ w2 + b2),
    "A1": lambda q, k, v: softmax(q @ transpose(k) * 0.125) @ v,
    "C1": lambda x, weight: conv2d(x, weight, padding=1),
    "T1": transpose,
    "G1": take,
    "O1": lambda a, b: a + b,
}


def graph_of(task: Task, parameters: Collection[int] = ()) -> Graph:
    """The row as a graph; the inputs at these positions are parameters."""
    builder = Builder("row")
    inputs = [
        (builder.parameter if place in parameters else builder.input)(array.dtype.name, array.shape)
        for place, array in enumerate(task.inputs)
    ]
    builder.output(row_of(ROWS, task, "is not written for it")(*inputs))
    return builder.graph()


def engine(cores: int, variant: str) -> Engine:
    """A client of the embedded service, whose programs run on `cores` threads."""
    client = Client()

    def write(task: Task) -> Compile:
        if task.model is not None:
            # Imported here, so that rows do not pay for the importer.
            from tensorkiln.frontends.onnx import load

            model = load(task.model)
            return lambda constants: client.compile(model.graph, threads=cores).bind(model.parameters)

        def compile_row(constants: Any) -> Any:
            graph = graph_of(task, constants)
            program = client.compile(graph, threads=cores)
            named = {graph.input_vars[place]: array for place, array in constants.items()}
            return program.bind(named) if named else program

        return compile_row

    return Engine(version("tensorkiln"), write)
