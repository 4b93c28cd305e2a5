"""Imports point one way, and only where the map in CONTRIBUTING says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = {"tensorkiln": ROOT / "client/tensorkiln"} | {name: ROOT / name for name in ("dialect", "passes", "service")}
ORDER = tuple(LAYERS)
MLIR = frozenset({"mlir", "torch_mlir"})
MAX_LINES = 400


def python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def imports(path: Path) -> Iterator[str]:
    """The top-level names of the absolute imports anywhere in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("layer", ORDER)
def test_a_layer_imports_only_those_before_it(layer: str) -> None:
    later = set(ORDER[ORDER.index(layer) + 1 :])
    files = python_files(LAYERS[layer])
    wrong = {str(path.relative_to(ROOT)): bad for path in files if (bad := later & set(imports(path)))}
    assert wrong == {}


def test_only_the_seam_imports_the_bindings() -> None:
    files = [path for folder in LAYERS.values() for path in python_files(folder)]
    wrong = [path.name for path in files if MLIR & set(imports(path)) and path != ROOT / "dialect" / "mlir.py"]
    assert wrong == []


def test_only_the_service_imports_fastapi() -> None:
    files = ((name, path) for name, folder in LAYERS.items() for path in python_files(folder))
    layers = {name for name, path in files if "fastapi" in imports(path)}
    assert layers == {"service"}


def test_only_the_sandboxed_process_imports_the_compiler() -> None:
    files = python_files(LAYERS["service"])
    users = {path.relative_to(ROOT).parts[1] for path in files if {"passes", "dialect"} & set(imports(path))}
    assert users == {"sandbox"}


def test_no_file_is_longer_than_the_limit() -> None:
    files = [path for folder in (*LAYERS.values(), ROOT / "tests") for path in python_files(folder)]
    lines = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in files}
    assert {path: count for path, count in lines.items() if count > MAX_LINES} == {}
