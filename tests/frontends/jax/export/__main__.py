"""Write `tests/frontends/jax/files`: functions as `jax.export` serializes them, with what JAX gives for them.

By hand, in an environment of its own, since JAX is no dependency of the project. From the root of a checkout:

    python -m venv jax
    jax/bin/pip install jax==0.10.2 jaxlib==0.10.2 flatbuffers flax==0.12.8 dm-haiku==0.0.17
    PYTHONPATH=client:. jax/bin/python -m tests.frontends.jax.export [FAMILY ...]

A second run writes the same bytes.
"""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import jax
import numpy as np
from jax import export

from tests.frontends.jax.export.recipe import Draw, Function
from tests.frontends.jax.functions import FILES

_EPOCH = (1980, 1, 1, 0, 0, 0)
_FAMILIES = (
    "elementwise",
    "shapes",
    "reductions",
    "linear",
    "factors",
    "indexing",
    "nn",
    "transforms",
    "control",
    "random",
    "networks",
    "spectra",
    "modules",
)


def exported(function: Function) -> export.Exported:
    """The function for all sizes that its arguments name."""
    scope = export.SymbolicScope()

    def abstract(draw: Draw) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(export.symbolic_shape(draw.spec, scope=scope), draw.dtype)

    arguments = jax.tree.map(abstract, function.arguments, is_leaf=lambda leaf: isinstance(leaf, Draw))
    return export.export(jax.jit(function.function), platforms=["cpu"])(*arguments)


def sampled(function: Function) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """The inputs and JAX's outputs at each size, by the names of their arrays."""
    for place in range(len(function.sizes)):
        arguments = function.drawn(place)
        results = jax.jit(function.function)(*arguments)
        for kind, tree in (("in", arguments), ("out", results)):
            for position, leaf in enumerate(jax.tree.leaves(tree)):
                yield f"{function.name}.{place}.{kind}{position}", np.asarray(leaf)


def save(archive: zipfile.ZipFile, name: str, array: np.ndarray[Any, Any]) -> None:
    """One array, its bytes the same whenever it is written; what NumPy has no name for as its bits."""
    plain = array if array.dtype.kind != "V" else array.view(np.uint16)
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.ascontiguousarray(plain).reshape(plain.shape), allow_pickle=False)
    archive.writestr(zipfile.ZipInfo(f"{name}.npy", _EPOCH), stream.getvalue(), zipfile.ZIP_DEFLATED)


def main() -> None:
    jax.config.update("jax_platforms", "cpu")
    # No path of this machine in what is written.
    jax.config.update("jax_include_full_tracebacks_in_locations", False)
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    for family in sys.argv[1:] or _FAMILIES:
        functions = import_module(f"tests.frontends.jax.export.{family}").FUNCTIONS
        folder = FILES / family
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(folder / "samples.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            for function in functions:
                with jax.enable_x64(function.wide):
                    (folder / f"{function.name}.jax").write_bytes(exported(function).serialize())
                    for name, array in sampled(function):
                        save(archive, name, array)
        print(family, len(functions), flush=True)


if __name__ == "__main__":
    main()
