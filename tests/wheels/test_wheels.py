"""The wheel of the server owns one name, works without the tree, and is the same bytes wherever it is built."""

from __future__ import annotations

import ast
import importlib.util
import re
import textwrap
import tomllib
import zipfile
from pathlib import Path

import pytest

from hatch_build import FOLDERS as MOVED
from hatch_build import moved
from tensorkiln.compiler_build import build as compiler_build
from tensorkiln_server.__main__ import COMMANDS, module_of
from tests.snippets import ROOT

from .built import FOLDERS, Installed, build, copied_tree

CHANGELOG = ROOT / "CHANGELOG.md"
AREAS = [
    *("Graphs and targets", "Models", "Running programs", "The command line", "The service"),
    *("Trust and isolation", "Operations"),
]
"""Of the page of the first release, which says by area what a user can do."""
NAMED = re.compile(r"(?:service|passes|dialect)(?:\.\w+)+(?::\w+)?|stablehlo\.translate(?::\w+)?")
COMPILE = """
    import sys
    from importlib.util import find_spec
    from tensorkiln import Client
    from tensorkiln.build import Builder, relu
    from tensorkiln.compiler_build import build

    b = Builder("layer")
    x = b.input("float32", (b.symbol("n", 1, 8), 4))
    b.output(relu(x))
    with Client(cache_dir=sys.argv[1]) as client:
        program = client.compile(b.graph(), "cuda:sm_80")
    print(build().build_id, [find_spec(name) for name in ("dialect", "stablehlo", "passes", "service")])
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed; the extra dev has it")
    folder = tmp_path_factory.mktemp("built")
    for name, tree in FOLDERS.items():
        build(tree, folder / name)
    return sorted(folder.rglob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(wheels, tmp_path_factory.mktemp("installed"))


def test_the_same_sources_in_another_folder_give_the_same_bytes(wheels: list[Path], tmp_path: Path) -> None:
    tree = copied_tree(tmp_path / "tree")
    for name, folder in (("tensorkiln", tree / "client"), ("tensorkiln_server", tree)):
        again = build(folder, tmp_path / name)
        here = sorted(next(wheel for wheel in wheels if wheel.parent.name == name).parent.iterdir())
        assert [path.name for path in again] == [path.name for path in here]
        assert [path.read_bytes() for path in again] == [path.read_bytes() for path in here]


def test_a_wheel_owns_its_package_and_no_other_name(wheels: list[Path]) -> None:
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            names = {name.partition("/")[0] for name in archive.namelist()}
        (package, _) = sorted(names)
        assert names == {package, f"{package}-{wheel.name.split('-')[1]}.dist-info"}
        assert package == wheel.parent.name


def test_every_file_of_the_folders_is_in_the_wheel(installed: Installed) -> None:
    for folder in MOVED:
        here = {path.relative_to(ROOT) for path in (ROOT / folder).rglob("*") if path.is_file()}
        kept = {path for path in here if "__pycache__" not in path.parts}
        inside = installed.folder / "tensorkiln_server"
        assert {path.relative_to(inside) for path in (inside / folder).rglob("*") if path.is_file()} == kept


def test_the_embedded_service_of_the_wheels_compiles_as_the_tree_does(installed: Installed, tmp_path: Path) -> None:
    done = installed.run("-c", textwrap.dedent(COMPILE), str(tmp_path / "home"), cwd=tmp_path)
    assert done.stdout == f"{compiler_build().build_id} [None, None, None, None]\n", done.stderr


def test_the_commands_of_the_wheel_run(installed: Installed, tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    key = installed.run("-m", "tensorkiln_server", "identity", "make", "--tenant", "acme", cwd=tmp_path, KILN_HOME=home)
    assert key.stdout.startswith("kiln_"), key.stderr
    listed = installed.run("-m", "tensorkiln_server", "identity", "list", cwd=tmp_path, KILN_HOME=home)
    assert "acme" in listed.stdout
    unknown = installed.run("-m", "tensorkiln_server", "bake", cwd=tmp_path)
    assert (unknown.returncode, "there is no command 'bake'" in unknown.stderr) == (2, True)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_tree_is_a_module_that_can_be_run(command: str) -> None:
    module, rest = module_of([command, "--flag"])
    assert rest == ["--flag"]
    path = ROOT / module.replace(".", "/")
    assert (path / "__main__.py").exists() or path.with_suffix(".py").exists()
    assert module_of(["--port", "0"]) == ("service", ["--port", "0"])


def test_no_string_names_a_module_that_a_wheel_has_elsewhere() -> None:
    """What is rewritten is imports: a name in a string is made of `__package__` or `__name__`."""
    named = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for folder in MOVED
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAMED.fullmatch(node.value)
    ]
    assert named == []


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("from service.a import b\n", "from tensorkiln_server.service.a import b\n"),
        ("from passes import b\n", "from tensorkiln_server.passes import b\n"),
        ("import dialect\n", "from tensorkiln_server import dialect\n"),
        ("import passes.cpu as p\n", "from tensorkiln_server.passes import cpu as p\n"),
        ("def f():\n    x = 'é'; from dialect.a import (\n        b)\n", None),
        ("from .service import a\nimport servicex\nfrom tensorkiln.passes import b\n", None),
    ],
)
def test_imports_are_rewritten_within_their_line(here: str, there: str | None) -> None:
    stated = here.replace("from dialect.a", "from tensorkiln_server.dialect.a") if there is None else there
    assert moved(here, "a.py") == stated


@pytest.mark.parametrize("source", ["import passes.cpu\n", "import dialect, os\n", "from  passes.cpu import b\n"])
def test_an_import_that_would_bind_another_name_is_refused(source: str) -> None:
    with pytest.raises(SyntaxError, match=r"a\.py:1: write `from"):
        moved(source, "a.py")


def test_both_distributions_have_one_version_which_the_changelog_dates_and_name_their_pythons() -> None:
    stated = [tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"] for folder in FOLDERS.values()]
    (version,) = {each["version"] for each in stated}
    assert re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", CHANGELOG.read_text("utf-8"), re.MULTILINE)
    pythons = ["11", "12", "13", "14"]
    for each in stated:
        assert each["requires-python"] == ">=3.11"
        assert [name.rpartition(".")[2] for name in each["classifiers"] if "Python :: 3." in name] == pythons
    told = re.search(r"in Python 3\.(\d+) to 3\.(\d+)", (ROOT / "docs" / "operations.md").read_text("utf-8"))
    assert told is not None
    assert told.groups() == (pythons[0], pythons[-1])


def test_the_first_release_has_a_page_by_area() -> None:
    page = CHANGELOG.read_text("utf-8").partition("\n## [0.1.0] - ")[2].partition("\n## ")[0]
    areas = page.split("\n### ")[1:]
    assert [area.partition("\n")[0] for area in areas] == AREAS
    assert all(area.count("\n- ") >= 2 for area in areas)


def test_release_names_are_those_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    named = {
        path.relative_to(ROOT): re.findall(
            r"(?:newTag: |tensorkiln-cli:|git tag -a v)(\d[\w.]*\w)", path.read_text("utf-8")
        )
        for path in (ROOT / "CONTRIBUTING.md", *(ROOT / "docker").rglob("*.yaml"), *(ROOT / "examples").rglob("*.yaml"))
    }
    assert sum(map(len, named.values())) >= 6
    assert {path: found for path, found in named.items() if set(found) - {version}} == {}
