"""`kiln convert`: a model of any format as kiln's own: its graph as JSON, or all of it as a saved model."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import RequestError
from ..frontends.model_file import SUFFIX
from ..graph import Graph
from ..request import graph_json
from ..sdk import Client
from .dims import parse_dims
from .model import Model, read_given
from .options import Dim, GraphFile, TimeoutS, Url
from .out_file import out_file
from .report import output, reported

if TYPE_CHECKING:
    from ..frontends.model import Model as SavedModel


def convert(
    graph: GraphFile,
    out: Annotated[Path, typer.Option("--out", "-o", help=f"A .json for the graph, or a {SUFFIX} with parameters.")],
    dim: Dim = None,
    url: Url = None,
    timeout: TimeoutS = None,
) -> None:
    """Write the graph of a model as JSON, or the model with its parameters.

    In JSON, the parameters are inputs without values; the command prints how many. Only StableHLO and jax.export
    need a service, which translates them.
    """
    suffix = out.suffix.lower()
    with reported() as step, ExitStack() as stack:
        if suffix not in (".json", SUFFIX):
            raise RequestError(f"{out}: a model is converted to .json, its graph, or to {SUFFIX}, with its parameters.")

        @cache
        def connect() -> Client:
            return stack.enter_context(Client(url, timeout_s=timeout))

        step(f"reading {graph}")
        model = read_given(graph, parse_dims(dim or []), connect)[0]
        checked = model.graph if isinstance(model.graph, Graph) else Graph.model_validate_json(graph_json(model.graph))
        step(f"writing {out}")
        if suffix == SUFFIX:
            _saved(model, checked).save(out)
        else:
            with out_file(out) as file:
                file.write(checked.to_json().encode())
    lost = len(model.parameters) if suffix == ".json" else 0
    kept = f"; {lost} parameters are inputs of it, and their values are not written ({SUFFIX} has them)" if lost else ""
    output().print(f"{out} has {len(checked.nodes)} nodes{kept}")


def _saved(model: Model, graph: Graph) -> SavedModel:
    """The model with its format's names; for a format without names, inputs and outputs are named by position."""
    from ..frontends.model import Model as SavedModel

    if model.named is not None:
        return model.named
    free = [var for var in graph.input_vars if var not in model.parameters]
    inputs = {f"input{place}": var for place, var in enumerate(free)}
    outputs = {f"output{place}": var for place, var in enumerate(graph.output_vars)}
    return SavedModel(graph, model.parameters, inputs, outputs)
