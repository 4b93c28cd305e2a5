from __future__ import annotations

from pathlib import Path

import pytest

import dialect.mlir
from dialect.mlir import bindings_package


def test_the_bindings_are_found() -> None:
    assert dialect.mlir.PACKAGE in ("mlir", "torch_mlir")
    assert bindings_package() == dialect.mlir.PACKAGE


def test_an_unrelated_package_called_mlir_is_neither_taken_nor_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mlir").mkdir()
    (tmp_path / "mlir" / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert bindings_package() == dialect.mlir.PACKAGE


def test_upstream_bindings_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mlir" / "_mlir_libs").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)
    assert bindings_package() == "mlir"


def test_without_bindings_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(name: str) -> None:
        return None

    monkeypatch.setattr(dialect.mlir, "find_spec", find_nothing)
    with pytest.raises(ImportError, match="install torch-mlir"):
        bindings_package()


def test_a_name_that_the_bindings_do_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"dialect\.mlir has no 'tosa_like'"):
        getattr(dialect.mlir, "tosa_like")  # noqa: B009


@pytest.mark.parametrize("name", ["ir", "PassManager", "rewrite", "linalg", "gpu", "transform_structured"])
def test_a_module_of_the_bindings_is_imported_when_asked_for(name: str) -> None:
    assert getattr(dialect.mlir, name).__name__.split(".")[-1] in (name, "structured")


def test_named_operations_are_loaded_where_the_dialect_cannot_do_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ops = tmp_path / "other_bindings" / "dialects" / "linalg" / "opdsl" / "ops"
    ops.mkdir(parents=True)
    (tmp_path / "other_bindings" / "ir.py").write_text("")
    (ops / "core_named_ops.py").write_text("matmul = 1\n")
    (ops.parent.parent / "__init__.py").write_text("from .opdsl.ops.core_named_ops import *\nof_all = [matmul]\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert dialect.mlir.linalg.GenericOp  # that of these bindings is had, and put back afterwards
    monkeypatch.delattr(dialect.mlir, "linalg")
    monkeypatch.setattr(dialect.mlir, "PACKAGE", "other_bindings")
    assert dialect.mlir.linalg.of_all == [1]
