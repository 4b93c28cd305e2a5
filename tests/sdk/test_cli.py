"""`kiln` validates, compiles and runs graphs on arrays in files, and refuses files that are no arrays, or no longer."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tensorkiln import Graph, reference
from tensorkiln.build import Builder
from tensorkiln.cli.app import _COMMANDS  # pyright: ignore[reportPrivateUsage]
from tensorkiln.cli.arrays import read_arrays
from tensorkiln.errors import RequestError
from tensorkiln.spec import CompiledProgram
from tests.sdk.conftest import Kiln, complaint, one_line, refusal, succeeded


@pytest.mark.parametrize("command", [(), *((name,) for name in _COMMANDS)])
def test_every_command_has_help(kiln: Kiln, command: tuple[str, ...]) -> None:
    shown = kiln(*command, "--help")
    assert shown.returncode == 0
    assert "Usage" in shown.stdout
    assert shown.stderr == ""


def test_the_version_is_printed(kiln: Kiln) -> None:
    assert kiln("--version").stdout.startswith("kiln ")


def test_validate_prints_the_interface_of_a_graph(kiln: Kiln, graph_file: Path) -> None:
    shown = succeeded(kiln("validate", graph_file.name))
    for text in ("(n, 8)", "(8, 3)", "(n, 3)", "float32", "1 to 64"):
        assert text in shown


def test_an_invalid_graph_is_one_line_with_a_pointer_and_a_missing_file_wrong_usage(
    kiln: Kiln, tmp_path: Path, layer: Graph
) -> None:
    broken = json.loads(layer.to_json())
    broken["nodes"][3]["out_var"] = -1
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    assert one_line(kiln("validate", "broken.json"), 1).startswith("error[graph.invalid] at /nodes/3")
    assert kiln("validate", "nowhere.json").returncode == 2


def test_compile_writes_programs_artifacts_and_stages(kiln: Kiln, graph_file: Path, tmp_path: Path) -> None:
    done = succeeded(
        kiln(
            *("compile", graph_file.name, "-t", "cpu", "-t", "cpu:aarch64", "-o", "out.json"),
            *("--artifacts", "code", "--dump-stages", "stages"),
        )
    )
    written = json.loads((tmp_path / "out.json").read_text())["programs"]
    programs = [CompiledProgram.model_validate_json(json.dumps(program)) for program in written]
    assert len(programs) == 2
    needed = programs[0].artifacts | programs[1].artifacts
    code = {path.name: path.read_bytes() for path in (tmp_path / "code").iterdir()}
    assert code.keys() == needed
    assert all(sha256(content).hexdigest() == name for name, content in code.items())
    for program in programs:
        assert any((tmp_path / "stages" / program.digest[:12]).iterdir())
        assert program.digest[:12] in done


@pytest.mark.parametrize("opinion", [(), ("--no-fusion",), ("--no-schedule",)])
def test_run_computes_what_the_reference_does(
    kiln: Kiln, graph_file: Path, layer: Graph, tmp_path: Path, opinion: tuple[str, ...]
) -> None:
    generator = np.random.default_rng(0)
    x, w = generator.standard_normal((4, 8), np.float32), generator.standard_normal((8, 3), np.float32)
    np.savez(tmp_path / "both.npz", x=x, w=w)
    asked = ("run", graph_file.name, "-i", "both.npz", "-s", "n=4", "--repeat", "3", "-o", "y.npy")
    done = succeeded(kiln(*asked, *opinion))
    (expected,) = reference.evaluate(layer, x, w, n=4)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-5, atol=1e-6)
    for text in ("kernel", "grid", "threads", "estimate", "(4, 3)"):
        assert text in done


def test_made_up_inputs_are_the_same_for_the_same_seed(kiln: Kiln, graph_file: Path, tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        assert kiln("run", graph_file.name, "--random", "7", "-s", "n=2", "-o", name).returncode == 0
    with np.load(tmp_path / "a.npz") as a, np.load(tmp_path / "b.npz") as b:
        assert a.files == ["output_0"]
        np.testing.assert_array_equal(a["output_0"], b["output_0"])


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4"])
def test_a_narrow_dtype_survives_a_file(kiln: Kiln, tmp_path: Path, dtype: str) -> None:
    b = Builder("negated")
    x = b.input(dtype, (5,))
    b.output((-x.cast("float32")).cast(dtype))
    (tmp_path / "negated.json").write_text(b.graph().to_json())
    kind = np.dtype(getattr(ml_dtypes, dtype))
    np.save(tmp_path / "x.npy", np.arange(5).astype(kind).view(f"V{kind.itemsize}"))
    done = kiln("run", "negated.json", "-i", "x.npy", "-o", "y.npy")
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy").view(kind).astype(np.float32), -np.arange(5.0))


def test_a_call_that_does_not_fit_is_its_own_exit_code(kiln: Kiln, graph_file: Path) -> None:
    assert kiln("run", graph_file.name, "-s", "n=4").returncode == 6
    out_of_bounds = complaint(kiln("run", graph_file.name, "--random", "0", "-s", "n=65"), 6)
    assert out_of_bounds.startswith("error[call.bounds]: symbol n=65 is outside bounds [1, 64]")


@pytest.mark.parametrize(
    ("symbols", "said"),
    [
        *(([written], f"--symbol {written}") for written in ("n", "n=", "n=four", "=4x")),
        (["n=4", "n=5"], "--symbol n=5: n has the value 4 already"),
    ],
)
def test_a_symbol_has_one_integer_value(kiln: Kiln, graph_file: Path, symbols: list[str], said: str) -> None:
    refused = refusal(
        kiln("run", graph_file.name, "--random", "0", *(word for each in symbols for word in ("-s", each))), 2
    )
    assert refused.startswith(f"error[request.invalid]: {said}")


def saved(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, a=array)
    return file.getvalue()


def flipped() -> bytes:
    """An .npz with another byte in the numbers of its array than its sum is of."""
    content = bytearray(saved(np.full(64, 7.0, np.float32)))
    place = content.index(np.float32(7.0).tobytes() * 8)
    content[place] ^= 0xFF
    return bytes(content)


def pickled() -> bytes:
    return saved(np.array([{}, None], object))


def with_text() -> bytes:
    file = io.BytesIO(saved(np.ones(3, np.float32)))
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("readme.txt", "what this is")
    return file.getvalue()


def npy(header: bytes) -> bytes:
    padded = header.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded


HUGE = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 64), }"
BROKEN: dict[str, Callable[[], bytes]] = {
    "garbage.npz": lambda: b"PK\003\004garbage",
    "flipped.npz": flipped,
    "objects.npz": pickled,
    "readme.npz": with_text,
    "huge.npy": lambda: npy(HUGE),
    "unclosed.npy": lambda: npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (4, "),
    "deep.npy": lambda: npy(b"(" * 100),
    "empty.npy": lambda: b"",
    "text.npy": lambda: b"1 2 3\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_no_array_is_wrong_usage(kiln: Kiln, graph_file: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(BROKEN[name]())
    refused = one_line(kiln("run", graph_file.name, "-i", name, "-s", "n=4"), 2)
    assert refused.startswith(f"error[request.invalid]: {name} cannot be read as .npy or .npz: ")


def test_a_file_with_any_changed_byte_is_read_or_refused(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    file = io.BytesIO()
    np.save(file, np.ones((2, 3), np.float32))
    packed = io.BytesIO()
    np.savez_compressed(packed, a=np.ones((2, 3), np.float32))
    refused = 0
    for name, whole in (("one.npy", file.getvalue()), ("packed.npz", packed.getvalue())):
        for place in range(len(whole)):
            content = bytearray(whole)
            content[place] ^= int(generator.integers(1, 256))
            (tmp_path / name).write_bytes(content)
            try:
                read_arrays([tmp_path / name])
            except RequestError:
                refused += 1
    assert refused > len(file.getvalue()) // 2
