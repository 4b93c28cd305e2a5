"""`Client.tune` and `kiln tune`: the program whose schedules were the fastest, and how it is had again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tensorkiln import Client, Program
from tensorkiln.cli.tune import verdict
from tensorkiln.errors import NotFoundError
from tensorkiln.options import CompileOptions
from tensorkiln.spec import Timing, TunedKernel, Tuning
from tests.sdk.conftest import Kiln, succeeded
from tests.service.test_tuning import tall_layer

pytestmark = pytest.mark.usefixtures("embedding")
MEASURED = "5" * 64


def timing(least_ns: int, key: str = "a") -> Timing:
    times = {"estimate_ns": 900, "least_ns": least_ns, "median_ns": least_ns + 9, "spread_ns": 3}
    return Timing(key=key * 64, strategy="loops", **times)


def tuning(picked: int, before_ns: int, after_ns: int, gain: bool) -> Tuning:
    kernel = TunedKernel(kernel=0, picked=picked, candidates=(timing(1000), timing(800, "b")))
    times = {"before_ns": before_ns, "after_ns": after_ns}
    return Tuning(machine="znver5", rounds=7, kernels=(kernel,), gain=gain, sizes=(), **times)


def test_a_tuned_program_is_had_by_whoever_prefers_it_and_kept_for_a_client_that_is_offline(tmp_path: Path) -> None:
    x, y = np.random.default_rng(1).standard_normal((20, 96), np.float32), np.ones((96, 48), np.float32)
    graph = tall_layer(48)
    with Client(cache_dir=tmp_path) as client:
        before = client.compile(graph, options={"tuned": "prefer"})
        with pytest.raises(NotFoundError, match="kiln tune"):
            client.compile(graph, options={"tuned": "require"})
        tuned = client.tune(graph)
        program = client.compile(graph, options={"tuned": "prefer"})
        assert before.compiled.tuning is None
        assert tuned.tuning is not None
        assert len(tuned.tuning.kernels) == 1
        assert (program.compiled.digest, program.compiled.tuning) == (tuned.digest, tuned.tuning)
        np.testing.assert_allclose(program(x, y)[0], before(x, y)[0], rtol=1e-5, atol=1e-5)
        (stored,) = client.stored(graph, options={"tuned": "require"})
        assert stored.digest == tuned.digest
    with Client(cache_dir=tmp_path, offline=True) as client:
        (kept,) = client.compile_for(graph, ["cpu:native"], {"tuned": "measure"})
        assert kept.tuning == tuned.tuning


@pytest.mark.parametrize(
    ("asked", "answers"),
    [
        ("off", {"off": True, MEASURED: False, "measure": False}),
        ("prefer", {"off": True, MEASURED: True, "prefer": False}),
        ("require", {"off": False, MEASURED: True}),
        ("measure", {"off": False, MEASURED: True, "measure": False}),
        (MEASURED, {"off": False, MEASURED: True, "6" * 64: False}),
    ],
)
def test_an_answer_has_measurements_as_far_as_they_were_asked_for(asked: str, answers: dict[str, bool]) -> None:
    options = CompileOptions(tuned=asked, fast_math=True)
    for tuned, is_answer in answers.items():
        stated = CompileOptions(fast_math=True).model_dump(mode="json", exclude={"dump_stages"}) | {"tuned": tuned}
        assert options.is_answered_by(stated) is is_answer
        assert not options.is_answered_by({**stated, "fast_math": False})


def test_schedules_are_picked_by_what_a_program_gains_from() -> None:
    assert tuning(1, 2000, 1700, gain=True).measured == {"b" * 64: 800.0}
    assert tuning(1, 2000, 1995, gain=False).measured == {}
    assert tuning(0, 0, 0, gain=False).faster == {}


def test_a_verdict_says_what_is_gained_or_why_nothing() -> None:
    where = "on znver5, 7 rounds"
    gained = f"15.0% less time {where}: a call takes 1.7 us instead of 2 us; 1 of 1 kernels have another schedule."
    assert verdict(tuning(1, 2000, 1700, gain=True)) == gained
    assert verdict(tuning(1, 2000, 1995, gain=False)).startswith(f"Nothing to gain {where}: a call takes 2 us, and ")
    assert verdict(tuning(0, 0, 0, gain=False)) == f"Nothing to gain {where}: no other schedule of 1 kernels is faster."
    assert verdict(Tuning(machine="znver5", rounds=0)).endswith("every kernel has only one schedule worth timing.")


def test_the_command_tells_the_times_and_writes_a_bundle(kiln: Kiln, tmp_path: Path) -> None:
    (tmp_path / "layer.json").write_text(tall_layer(50).to_json())
    done = succeeded(kiln("tune", "layer.json", "--bundle", "layer.kiln"))
    assert "contraction" in done
    assert "rounds: " in done
    assert Program.from_bundle(tmp_path / "layer.kiln").compiled.tuning is not None
    again = kiln("compile", "layer.json", "--tuned", "require")
    assert "hit" in again.stdout
    assert kiln("tune", "layer.json", "--bundle", "layer.json").returncode == 2
    assert kiln("tune", "layer.json", "-t", "cpu:x86-64-v2").returncode == 1
