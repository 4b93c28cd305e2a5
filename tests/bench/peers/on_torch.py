"""The rows in PyTorch, and the models of `tests/models` before their export; eager or compiled."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as functional

from tests.bench.peers.engine import CannotExpress, Compile, Engine, Task
from tests.bench.peers.workloads import EPSILON
from tests.models.export.recipe import with_drawn_weights
from tests.models.families import FAMILIES


def chain(x: Any) -> Any:
    return torch.where(x > 0, torch.exp2(x) * 0.5 + torch.sqrt(torch.abs(x)), x * x - 1)


def softmax(x: Any) -> Any:
    return torch.softmax(x, -1)


def product(a: Any, b: Any) -> Any:
    return a @ b


ROWS: dict[str, Callable[..., Any]] = {
    "E1_1M": chain,
    "E1_16M": chain,
    "E2": lambda x, bias: torch.relu(x + bias),
    "R1": lambda x: x.sum(-1),
    "R2": lambda x: x.sum(0),
    "R3": lambda x: x.sum(),
    "S1": softmax,
    "L1": lambda x, scale, bias: functional.layer_norm(x, (x.shape[-1],), scale, bias, EPSILON),
    **dict.fromkeys(("M1_512", "M1_1024", "M1_2048", "M2", "M3"), product),
    "P1": lambda x, w1, b1, w2, b2: softmax(torch.relu(x @ w1 + b1) @ w2 + b2),
    "A1": functional.scaled_dot_product_attention,
    "C1": lambda x, weight: functional.conv2d(x, weight, padding=1),
    "T1": lambda x: x.t().contiguous(),
    "G1": lambda table, places: table[places],
    "O1": lambda a, b: a + b,
}

MODELS = frozenset(family.name for family in FAMILIES)


def _function(task: Task) -> Callable[..., Any]:
    if task.row in ROWS:
        return ROWS[task.row]
    if task.row not in MODELS:
        raise CannotExpress("reads no ONNX")
    recipe = import_module(f"tests.models.export.{task.row}").RECIPE
    return with_drawn_weights(recipe.model(), seed=0)


def engine(cores: int, variant: str) -> Engine:
    """PyTorch on `cores` threads; the variant `compiled` uses `torch.compile`."""
    torch.set_num_threads(cores)
    torch.set_grad_enabled(False)

    def write(task: Task) -> Compile:
        function = _function(task)

        def compile_row(constants: Any) -> Any:
            if variant != "compiled":
                return function
            torch.compiler.reset()
            return torch.compile(function, dynamic=False, fullgraph=True)

        return compile_row

    def outputs(result: Any) -> list[Any]:
        return [each.numpy() for each in (result if isinstance(result, tuple) else (result,))]

    return Engine(torch.__version__, write, place=torch.from_numpy, outputs=outputs)
