"""The interpreter of StableHLO beside the translation of the same module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dialect.mlir import ir
from dialect.mlir import stablehlo as native
from stablehlo import reading
from stablehlo.elements import array_of, splat_value
from stablehlo.translate import translate
from stablehlo.types import DTYPES, typed
from tensorkiln.dtypes import DType
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate

Array = npt.NDArray[Any]
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def graph_of(text: str | bytes) -> Graph:
    """The graph that a module is translated to."""
    return Graph.model_validate(translate(text).document)


def interpreted(text: str, arrays: Sequence[Array]) -> list[Array]:
    """What the interpreter of StableHLO computes."""
    with reading.context() as within, ir.Location.unknown():
        module = reading.read_text(text, within)
        reading.legalize(module)
        return [_array(each) for each in native.eval_module(module, [_attribute(each) for each in arrays])]


def _attribute(array: Array) -> Any:
    dtype = DType.from_numpy(array.dtype)
    element = ir.Type.parse(NAMES[dtype])
    kind = ir.RankedTensorType.get(array.shape, element)
    if dtype.is_bool:
        return ir.DenseElementsAttr.get(array)
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    text = "".join(f"{byte:02X}" for byte in raw.tobytes())
    return ir.Attribute.parse(f'dense<"0x{text}"> : {kind}') if array.size else ir.Attribute.parse(f"dense<> : {kind}")


def _array(attribute: Any) -> Array:
    found = typed(attribute.type)
    assert not isinstance(found, str)
    shape = tuple(dim for dim in found.shape if dim is not None)
    if not np.prod(shape):
        return np.zeros(shape, found.dtype.numpy)
    if attribute.is_splat:
        return np.full(shape, splat_value(attribute.get_splat_value(), found.dtype))
    return array_of(attribute, found.dtype).reshape(shape)


def computed(text: str | bytes, arrays: Sequence[Array]) -> list[Array]:
    """What the translation computes, by the reference."""
    return list(evaluate(graph_of(text), *arrays))


def agree(text: str, arrays: Sequence[Array], steps: float = 4.0) -> None:
    """Both compute the same; floats up to so many steps of their precision."""
    with np.errstate(all="ignore"):
        expected, found = interpreted(text, arrays), computed(text, arrays)
    assert len(expected) == len(found)
    for left, right in zip(found, expected, strict=True):
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        if DType.from_numpy(left.dtype).is_float:
            eps = float(np.finfo(np.float32).eps) if left.dtype.itemsize == 4 else _epsilon(left.dtype)
            wide = [each.astype(np.float64) for each in (left, right)]
            np.testing.assert_allclose(*wide, rtol=steps * eps, atol=steps * eps / 4)
        else:
            np.testing.assert_array_equal(left, right)


def _epsilon(dtype: np.dtype[Any]) -> float:
    return {2: 2.0**-7 if dtype.name == "bfloat16" else 2.0**-10, 8: 2.0**-52}[dtype.itemsize]


def arguments(text: str, seed: int = 0) -> list[Array]:
    """Small numbers for the arguments of `@main`, with zeros, ties and both signs among them."""
    draws = np.random.default_rng(seed)
    graph = graph_of(text)
    return [_drawn(draws, graph.types[var].dtype, graph.types[var].shape) for var in graph.input_vars]


def _drawn(draws: np.random.Generator, dtype: DType, shape: Sequence[Any]) -> Array:
    if dtype.is_bool:
        return draws.integers(0, 2, shape).astype(np.bool_)
    if dtype.is_float:
        return (draws.integers(-12, 13, shape) / 4).astype(dtype.numpy)
    return draws.integers(0 if dtype.is_unsigned else -9, 10, shape).astype(dtype.numpy)
