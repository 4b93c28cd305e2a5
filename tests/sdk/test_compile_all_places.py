"""Which files of a folder `kiln compile-all` takes for graphs, wherever it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorkiln import Client
from tensorkiln.cli.compile_all.files import find_graphs
from tensorkiln.cli.kiln_toml import ModelSettings
from tensorkiln.errors import RequestError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "above" / "graphs"
    (made / "deep").mkdir(parents=True)
    for name in ("one.json", "deep/two.json"):
        (made / name).write_text("{}")
    return made


def names(folder: Path, out: Path, *files: Path) -> set[str]:
    return {graph.name for graph in find_graphs(folder, out, files)}


def test_what_lies_above_the_folder_hides_no_graph(folder: Path, tmp_path: Path) -> None:
    assert names(folder, tmp_path / "dist", Path("/")) == {"one", "deep/two"}
    for out in (tmp_path, folder.parent, folder, folder / ".." / ".."):
        assert names(folder, out) == {"one", "deep/two"}


def test_what_the_run_writes_is_no_graph(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    (folder / "lock.json").write_text("{}")
    for lock in (folder / "lock.json", folder / "deep" / ".." / "lock.json", tmp_path / "link" / "lock.json"):
        assert names(folder, folder / "deep", lock) == {"one"}
        assert names(folder, tmp_path / "link" / "deep", lock) == {"one"}


def test_a_link_to_nothing_is_a_graph_that_cannot_be_read(folder: Path, tmp_path: Path) -> None:
    (folder / "gone.json").symlink_to(tmp_path / "nowhere.json")
    found = {graph.name: graph for graph in find_graphs(folder, tmp_path / "dist", [])}
    assert found.keys() == {"one", "deep/two", "gone"}
    with pytest.raises(RequestError, match=r"gone\.json cannot be read"):
        found["gone"].read(ModelSettings(), Client)
