"""All functions by family, their models, and what tinygrad gives for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from tensorkiln.dtypes import DType
from tensorkiln.frontends.model import Model
from tensorkiln.frontends.tinygrad import model

from . import drawn, elements, networks, shapes
from .recipe import Array, Recipe, tinygrad

FAMILIES: Final[Mapping[str, Mapping[str, Recipe]]] = {
    "elements": elements.RECIPES,
    "shapes": shapes.RECIPES,
    "reductions": shapes.reductions(),
    "networks": networks.RECIPES,
    "drawn": drawn.RECIPES,
}
RESULTS: Final = Path(__file__).parent / "results.npz"


@cache
def called(family: str, name: str) -> tuple[dict[str, Any], list[Any]]:
    """The realized arguments by name, and the results, of which tinygrad has computed nothing."""
    recipe = FAMILIES[family][name]
    tensors = [tinygrad().Tensor(array).realize() for array in recipe.arrays]
    found = recipe.function(*tensors)
    return {f"x{place}": each for place, each in enumerate(tensors)}, list(found) if isinstance(
        found, list | tuple
    ) else [found]


def model_of(family: str, name: str) -> Model:
    """The model of a function's results."""
    inputs, outputs = called(family, name)
    return model(outputs, inputs)


def stored(array: Array) -> tuple[str, Array]:
    """An array as a file holds it, and the name of its type."""
    dtype = DType.from_numpy(array.dtype)
    return dtype.value, array.view(np.uint16) if dtype is DType.BFLOAT16 else array


def recorded() -> dict[str, list[Array]]:
    """What tinygrad gave, by family and name."""
    found: dict[str, list[Array]] = {}
    with np.load(RESULTS) as file:
        for key in file.files:
            name, _, dtype = key.rsplit("/", 2)
            found.setdefault(name, []).append(np.asarray(file[key]).view(DType(dtype).numpy))
    return found


def record(results: Mapping[str, Sequence[Array]]) -> None:
    """Write what `recorded` reads."""
    arrays: dict[str, Array] = {}
    for name, given in results.items():
        for place, each in enumerate(given):
            dtype, array = stored(each)
            arrays[f"{name}/{place}/{dtype}"] = array
    np.savez_compressed(RESULTS, allow_pickle=False, **arrays)
