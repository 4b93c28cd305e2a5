"""The single access point to MLIR: all other code imports the bindings from here.

The upstream bindings are called `mlir` when `mlir-python-bindings` is installed and `torch_mlir` in the wheels of that
project. PyPI also has an unrelated, empty distribution called `mlir`, so a package of that name counts only when it
holds the bindings' native libraries; it is inspected on disk, never imported to find out.

A dialect module is imported at the first access to its name, so dialects of other targets cost nothing.
"""

from __future__ import annotations

import sys
import typing
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

_DIALECTS = (
    "affine",
    "arith",
    "bufferization",
    "builtin",
    "cf",
    "complex",
    "ext",
    "func",
    "gpu",
    "index",
    "irdl",
    "linalg",
    "llvm",
    "math",
    "memref",
    "nvgpu",
    "nvvm",
    "rocdl",
    "scf",
    "tensor",
    "transform",
    "ub",
    "vector",
)
_PLACES = {
    "ir": "ir",
    "passmanager": "passmanager",
    "rewrite": "rewrite",
    "stablehlo": "_mlir_libs._stablehlo",
    **{name: f"dialects.{name}" for name in _DIALECTS},
    "transform_interpreter": "dialects.transform.interpreter",
    "transform_loop": "dialects.transform.loop",
    "transform_structured": "dialects.transform.structured",
    "transform_vector": "dialects.transform.vector",
}


def bindings_package() -> str:
    """The name of the installed package that holds the bindings: `mlir` or `torch_mlir`.

    Raises ImportError when neither is installed.
    """
    for name in ("mlir", "torch_mlir"):
        spec = find_spec(name)
        folders = spec.submodule_search_locations if spec else None
        if any(Path(folder, "_mlir_libs").is_dir() for folder in folders or ()):
            return name
    raise ImportError("no MLIR bindings found: install torch-mlir or mlir-python-bindings")


PACKAGE = bindings_package()


def __getattr__(name: str) -> Any:
    if name == "PassManager":
        value = import_module(f"{PACKAGE}.passmanager").PassManager
    elif name == "linalg":
        value = _linalg_without_named_ops()
    elif name in _PLACES:
        value = import_module(f"{PACKAGE}.{_PLACES[name]}")
    else:
        raise AttributeError(f"dialect.mlir has no {name!r}")
    globals()[name] = value
    return value


def _linalg_without_named_ops() -> ModuleType:
    """The dialect without its functions for named operations; `dialect.named_ops` has those that are used.

    The bindings generate these functions from a DSL, which takes as long as importing all other dialects.
    """
    place = f"{PACKAGE}.{_PLACES['linalg']}"
    named = f"{place}.opdsl.ops.core_named_ops"
    if named in sys.modules:
        return import_module(place)
    # The other names that the dialect imports from there.
    names = {name: getattr(typing, name) for name in typing.__all__} | {"ir": import_module(f"{PACKAGE}.ir")}
    absent = sys.modules[named] = ModuleType(named)
    vars(absent).update(names)
    try:
        return import_module(place)
    except (AttributeError, ImportError, NameError):  # other bindings import more from there
        del sys.modules[named]
        return import_module(place)
    finally:
        # Later imports of the functions get the real module.
        if sys.modules.get(named) is absent:
            del sys.modules[named]


def search_dialects_in(package: str) -> None:
    """Let the bindings find the Python module of a dialect `x` as `package.x`."""
    import_module(f"{PACKAGE}._mlir_libs._mlir").globals.append_dialect_search_prefix(package)
