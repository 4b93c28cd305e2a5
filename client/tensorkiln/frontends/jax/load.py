"""Loading of a serialized function as a model, without JAX."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...canonical.one_spelling import one_spelling
from ...dtypes import DType
from ...errors import InvalidGraphError, UnsupportedGraphError
from ...expr import Dim, free_symbols, substitute
from ...graph import Graph
from ...stablehlo import StableHlo, SymbolicArguments
from ..bounds import Bounds, require_known
from ..model import Model
from ..solve_symbols import ArgumentSymbols
from .complex_arrays import COMPLEX, as_pairs
from .dimensions import parse_dim
from .exported import Aval, Exported, read_exported
from .model import Array, JaxModel, Signature, argument_names, leaf_names

if TYPE_CHECKING:
    from ...sdk.client import Client

_KEY_WORDS: Final = {"key<fry>": 2, "key<rbg>": 4, "key<urbg>": 4}
"""The number of uint32 words in a key of each generator."""


def load(
    source: bytes | bytearray | str | os.PathLike[str] | Exported,
    *,
    symbols: Mapping[str, Bounds] | None = None,
    client: Client | None = None,
) -> JaxModel:
    """Load a function that `jax.export` has serialized, from bytes or a file.

    `symbols` gives each symbolic size its inclusive bounds, or one integer that fixes it. The service of `client`
    translates the module; without a client, one with default settings is used for this call. A random key is an array
    of its uint32 words: two for threefry, four for the others.

    InvalidGraphError when it is not such a function, or symbols are missing; RequestError for unknown symbols;
    UnsupportedGraphError, which names the operation, dtype or structure; LimitExceededError when it is too large;
    OSError when a file cannot be read.
    """
    exported = source if isinstance(source, Exported) else read_exported(_content(source))
    return model_of(exported, symbols or {}, client)


def model_of(
    exported: Exported,
    symbols: Mapping[str, Bounds],
    client: Client | None,
    parameters: Sequence[Array] = (),
) -> JaxModel:
    """Like `load`, with the function's last arguments bound to `parameters`."""
    names, called = argument_names(exported.in_tree), [*leaf_names(exported.out_tree, "result")]
    first_parameter = len(names) - len(parameters)
    stated = [_typed(exported.in_avals[index], names[index]) for index in exported.kept]
    results = [_in_graph(aval, *_typed(aval, name)) for aval, name in zip(exported.out_avals, called, strict=True)]
    _require_bounds([shape for _, shape in stated], symbols)
    fixed: dict[str, Dim] = {name: size for name, size in symbols.items() if isinstance(size, int)}
    ranges = {name: bounds for name, bounds in symbols.items() if not isinstance(bounds, int)}
    arguments = [(dtype, tuple(substitute(dim, fixed) for dim in shape)) for dtype, shape in stated]
    shapes = [shape for _, shape in arguments]
    module = StableHlo(exported.module, SymbolicArguments(shapes, ranges) if symbols else None)
    graph = one_spelling(_translated(module, client))
    avals = [exported.in_avals[index] for index in exported.kept]
    in_graph = [_in_graph(aval, *each) for aval, each in zip(avals, arguments, strict=True)]
    _require_fit(graph, in_graph, results)
    kept = [index for index in exported.kept if index < first_parameter]
    inputs, bound = graph.input_vars[: len(kept)], graph.input_vars[len(kept) :]
    arrays = [_bound(parameters[index - first_parameter]) for index in exported.kept[len(kept) :]]
    model = Model(
        graph.model_copy(update={"parameter_vars": bound}),
        dict(zip(bound, arrays, strict=True)),
        {names[index]: var for index, var in zip(kept, inputs, strict=True)},
        dict(zip(called, graph.output_vars, strict=True)),
    )
    signature = Signature(
        exported.in_tree,
        exported.out_tree,
        tuple(kept),
        tuple(dtype for dtype, _ in arguments[: len(kept)]),
        _symbols({names[index]: shape for index, (_, shape) in zip(kept, in_graph, strict=False)}, ranges),
        frozenset(index for index in kept if exported.in_avals[index].dtype in COMPLEX),
        frozenset(at for at, aval in enumerate(exported.out_avals) if aval.dtype in COMPLEX),
    )
    return JaxModel(model, signature)


def _content(source: bytes | bytearray | str | os.PathLike[str]) -> bytes:
    return bytes(source) if isinstance(source, bytes | bytearray) else Path(source).read_bytes()


def _translated(module: StableHlo, client: Client | None) -> Graph:
    if client is not None:
        return client.translate(module)
    from ...sdk.client import Client

    with Client() as own:
        return own.translate(module)


def _typed(aval: Aval, name: str) -> tuple[DType, tuple[Dim, ...]]:
    shape = tuple(parse_dim(dim) for dim in aval.shape)
    if aval.dtype in _KEY_WORDS:
        return DType.UINT32, (*shape, _KEY_WORDS[aval.dtype])
    if aval.dtype in COMPLEX:
        return COMPLEX[aval.dtype], shape
    if aval.dtype not in {each.value for each in DType}:
        raise UnsupportedGraphError(f"{name} is of {aval.dtype}, which no graph has; convert it in the function")
    return DType(aval.dtype), shape


def _in_graph(aval: Aval, dtype: DType, shape: tuple[Dim, ...]) -> tuple[DType, tuple[Dim, ...]]:
    """The dtype and shape of an array in the graph, where complex numbers have their parts on a last axis of 2."""
    return dtype, (*shape, 2) if aval.dtype in COMPLEX else shape


def _bound(array: Array) -> Array:
    name = array.dtype.name
    return as_pairs(array, COMPLEX[name], lambda: "a parameter") if name in COMPLEX else array


def _require_bounds(shapes: Sequence[Sequence[Dim]], symbols: Mapping[str, Bounds]) -> None:
    used = {name for shape in shapes for dim in shape if not isinstance(dim, int) for name in free_symbols(dim)}
    if missing := sorted(used - symbols.keys()):
        raise InvalidGraphError(
            f"the function has the symbolic size {missing[0]}; give its bounds: symbols={{{missing[0]!r}: (1, 64)}}",
            details={"dimension": missing[0]},
        )
    require_known(symbols, used)


def _symbols(shapes: Mapping[str, Sequence[Dim]], ranges: Mapping[str, tuple[int, int]]) -> ArgumentSymbols:
    found = ArgumentSymbols(shapes, ranges)
    for name in found.unsolved:
        raise UnsupportedGraphError(
            f"no argument has an axis that gives the size {name} by itself, as `{name}` or `2*{name}`: fix it, as "
            f"symbols={{{name!r}: 64}}, or pass an array that has it"
        )
    return found


def _require_fit(
    graph: Graph, arguments: Sequence[tuple[DType, Sequence[Dim]]], results: Sequence[tuple[DType, Sequence[Dim]]]
) -> None:
    """InvalidGraphError when the graph's inputs or outputs differ from the avals stated beside the module."""
    for variables, stated, what in (
        (graph.input_vars, arguments, "argument"),
        (graph.output_vars, results, "result"),
    ):
        if len(variables) != len(stated):
            raise InvalidGraphError(
                f"the module has {len(variables)} {what}s, but the exported function states {len(stated)}"
            )
        for position, (var, (dtype, shape)) in enumerate(zip(variables, stated, strict=True)):
            found = graph.types[var]
            if found.dtype is not dtype or len(found.shape) != len(shape):
                raise InvalidGraphError(
                    f"{what} {position} of the module is {found.dtype} of rank {len(found.shape)}, "
                    f"but the exported function states {dtype} of rank {len(shape)}"
                )
            if what == "result" and any(
                isinstance(own, int) and isinstance(said, int) and own != said
                for own, said in zip(found.shape, shape, strict=True)
            ):
                raise InvalidGraphError(
                    f"result {position} of the module has the shape {_spelled(found.shape)}, "
                    f"but the exported function states {_spelled(shape)}"
                )
            if what == "argument" and tuple(found.shape) != tuple(shape):
                raise InvalidGraphError(
                    f"argument {position} of the module has the shape {_spelled(found.shape)}, "
                    f"but the exported function states {_spelled(shape)}"
                )


def _spelled(shape: Sequence[Dim]) -> str:
    return f"({', '.join(map(str, shape))})"
