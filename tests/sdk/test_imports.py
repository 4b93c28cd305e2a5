"""What a program does not load before it needs it, and what it lacks on other systems, by errors that say so."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

HTTP = ("httpx2", "httpcore2", "ssl", "h11")
PROGRAMS = ("tensorkiln.spec.compiled_program", "tensorkiln.program", "tensorkiln.runtime")
NATIVE = ("llvmlite", "cryptography")
DOUBLED = """
from tensorkiln import Client
from tensorkiln.build import Builder
b = Builder("doubled")
x = b.input("float32", (4,))
b.output(x + x)
graph = b.graph()
"""


def loaded(script: str, names: tuple[str, ...]) -> list[str]:
    """Those of `names` that a fresh interpreter has loaded after the script."""
    told = f"{script}\nimport sys\nprint(*(name for name in {names!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", told], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_package_loads_nothing_of_what_it_names() -> None:
    heavy = ("numpy", "pydantic", "tensorkiln.sdk", "tensorkiln.graph", *HTTP, *NATIVE)
    assert loaded("import tensorkiln", heavy) == []


def test_a_client_is_made_without_what_only_an_answer_needs(tmp_path: Path) -> None:
    script = f"{DOUBLED}\nClient(cache_dir={str(tmp_path)!r})"
    assert loaded(script, (*HTTP, *PROGRAMS, *NATIVE)) == []


def test_a_program_that_is_kept_is_had_without_what_talks_to_services(tmp_path: Path) -> None:
    cold = f"""{DOUBLED}
import sys
from tensorkiln.sdk.needed_later import load_early
load_early()
before = {{*sys.modules}}
Client(cache_dir={str(tmp_path)!r}).compile(graph)
print(*(name for name in sys.modules.keys() - before if name.partition(".")[0] in ("anyio", "h11", "httpcore2")))
"""
    assert loaded(cold, ()) == [], "all that a request takes is loaded while a service starts"
    script = f"""{DOUBLED}
import numpy as np
program = Client(cache_dir={str(tmp_path)!r}).compile(graph)
assert program(np.ones(4, np.float32))[0].tolist() == [2, 2, 2, 2]
assert program.compiled.cache.status == "hit"
"""
    absent = (*HTTP, "asyncio", "tensorkiln.sdk.answers", "tensorkiln.bundle", "tensorkiln.runtime.cuda")
    assert loaded(script, absent) == []


@pytest.mark.parametrize("package", ["tensorkiln", "tensorkiln.nodes", "tensorkiln.sdk", "tensorkiln.spec"])
def test_a_name_that_is_imported_on_first_use_is_there_and_is_no_module(package: str) -> None:
    names = import_module(package)
    for name in names.__all__:
        assert getattr(names, name) is not None
        # The import of a module would hide what the package calls so.
        assert find_spec(f"{package}.{name}") is None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = names.nothing


@pytest.mark.parametrize("state", ["enable", "disable"])
def test_collection_is_afterwards_as_the_program_has_it(state: str) -> None:
    script = f"import gc; gc.{state}(); from tensorkiln import Client; from tensorkiln.build import Builder"
    assert loaded(f"{script}\nassert gc.isenabled() is {state == 'enable'}", ("tensorkiln.sdk.client",)) != []


def test_imports_are_frozen_and_frozen_objects_of_a_program_stay_frozen() -> None:
    young = "sum(map(len, (gc.get_objects(0), gc.get_objects(1))))"
    script = "import gc; from tensorkiln import Client; from tensorkiln.build import Builder"
    assert loaded(f"{script}\nassert {young} < 5_000 < len(gc.get_objects())", ("tensorkiln.sdk.client",)) != []
    frozen = f"import gc; gc.freeze(); frozen = gc.get_freeze_count(); {script}"
    assert loaded(f"{frozen}\nassert 0 < gc.get_freeze_count() <= frozen", ("tensorkiln.sdk.client",)) != []


SYSTEMS = ("win32", "darwin")


def test_all_but_running_on_this_cpu_works_on_other_systems(served: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", "tests.sdk.elsewhere", served, str(tmp_path), *SYSTEMS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for system, line in zip(SYSTEMS, done.stdout.splitlines(), strict=True):
        said, here = json.loads(line), f"runs on Linux, and this system is {system}"
        assert said["missing"] == []
        imported = {f"tensorkiln.{name}" for name in ("embedded", "parent_watchdog", "cli.run", "doctor.gpu")}
        assert imported <= {*said["imported"]}
        assert (said["layer"], said["one"], said["bundle"]) == (1, 1, "one")
        assert said["run"] == f"DeviceError: CPU programs run on Linux, and this system is {system}"
        assert said["embedded"].startswith(f"UnavailableError: The compile service {here}")
        assert "KILN_URL" in said["embedded"]
        assert said["validate"][0] == 0, said["validate"]
        assert said["compile"][0] == 0, said["compile"]
        assert here in " ".join(said["serve"].split())
