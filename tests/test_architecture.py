"""Imports point one way, and only where the map in CONTRIBUTING says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = {"tensorkiln": ROOT / "client/tensorkiln"} | {
    name: ROOT / name for name in ("dialect", "stablehlo", "passes", "service")
}
ORDER = tuple(LAYERS)
LEVELS: dict[str, tuple[str, ...]] = {
    "passes": (
        "codegen scalar",
        "loops",
        "trace",
        "decompose fuse",
        "layout",
        "to_linalg",
        "plan",
        "schedule",
        "emit",
        "cpu gpu",
    ),
    "service": (
        "observe process wire",
        "sandbox trust",
        "store",
        "identity",
        "fairness readiness",
        "engine http",
        "routes upkeep worker",
        "server",
    ),
}
"""The folders of a package by levels: a folder imports those of lower levels only."""
COMMAND = "__main__.py"
"""What is run and imported by nobody; it may import every folder."""
MAX_ROOT_FILES = 10
MLIR = frozenset({"mlir", "torch_mlir"})
MAX_LINES = 400


def python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


@cache
def statements(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """What a file imports, anywhere: read once for all rules."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))


def imports(path: Path) -> Iterator[str]:
    """The top-level names of the absolute imports of a file."""
    for node in statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif node.level == 0 and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("layer", ORDER)
def test_a_layer_imports_only_those_before_it(layer: str) -> None:
    later = set(ORDER[ORDER.index(layer) + 1 :])
    files = python_files(LAYERS[layer])
    wrong = {str(path.relative_to(ROOT)): bad for path in files if (bad := later & set(imports(path)))}
    assert wrong == {}


@cache
def modules_of(package: str) -> dict[str, Path]:
    """The files of a package by the dotted names of their modules."""
    found = {path.relative_to(LAYERS[package]).with_suffix(""): path for path in python_files(LAYERS[package])}
    return {".".join([package, *name.parts]).removesuffix(".__init__"): path for name, path in found.items()}


def modules_imported(path: Path, package: str) -> set[str]:
    """The modules of its own package that a file imports, for types too, each by its longest name."""
    modules = modules_of(package)
    inside = path.relative_to(LAYERS[package]).parent.parts
    found: set[str] = set()
    for node in statements(path):
        if isinstance(node, ast.Import):
            continue
        above = [package, *inside[: len(inside) + 1 - node.level]] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        named = (f"{base}.{alias.name}" for alias in node.names)
        found |= {name if name in modules else base for name in named}
    return found & modules.keys() - {name for name, own in modules.items() if own == path}


def _below(path: Path, package: str) -> set[str]:
    """What a file of a package imports of it, by the names right below the package."""
    return {name.split(".")[1] for name in modules_imported(path, package) if "." in name}


def levels_of(package: str) -> dict[str, int]:
    """The level of every folder and module of a package; a module has that of the highest folder behind it."""
    levels = {name: level for level, names in enumerate(LEVELS[package]) for name in names.split()}
    modules = {path.stem: _below(path, package) - {path.stem} for path in sorted(LAYERS[package].glob("*.py"))}

    def level(name: str) -> int:
        if name not in levels:
            levels[name] = max((level(each) for each in modules[name]), default=-1)
        return levels[name]

    for name in modules:
        level(name)
    return levels


@pytest.mark.parametrize("package", ORDER)
def test_no_modules_import_each_other_in_a_circle(package: str) -> None:
    edges = {name: modules_imported(path, package) for name, path in modules_of(package).items()}
    # A tensor has the functions of tensors as methods.
    edges.pop("tensorkiln.build.tensor", None)
    list(TopologicalSorter(edges).static_order())


@pytest.mark.parametrize("package", LEVELS)
def test_every_folder_has_a_level(package: str) -> None:
    folders = {path.parent.relative_to(LAYERS[package]).parts[0] for path in LAYERS[package].glob("*/*.py")}
    assert folders == {name for names in LEVELS[package] for name in names.split()}


@pytest.mark.parametrize("package", LEVELS)
def test_a_folder_imports_those_of_lower_levels_only(package: str) -> None:
    levels = levels_of(package)
    wrong: dict[str, list[str]] = {}
    for path in python_files(LAYERS[package]):
        folder, *inner = path.relative_to(LAYERS[package]).parts
        if not inner or path.name == COMMAND:
            continue
        if bad := sorted(n for n in _below(path, package) - {folder} if levels[n] >= levels[folder]):
            wrong[str(path.relative_to(ROOT))] = bad
    assert wrong == {}


def test_the_root_of_the_service_has_few_files() -> None:
    assert len(list(LAYERS["service"].glob("*.py"))) <= MAX_ROOT_FILES


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
    users = {
        path.relative_to(ROOT).parts[1] for path in files if {"passes", "stablehlo", "dialect"} & set(imports(path))
    }
    assert users == {"sandbox"}


def test_no_file_is_longer_than_the_limit() -> None:
    files = [path for folder in (*LAYERS.values(), ROOT / "tests") for path in python_files(folder)]
    lines = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in files}
    assert {path: count for path, count in lines.items() if count > MAX_LINES} == {}
