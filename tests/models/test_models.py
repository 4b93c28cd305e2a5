"""Small models of today's architectures as torch exports them give what torch gave."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np
import onnx
import pytest

from tensorkiln.frontends.model import Model
from tensorkiln.graph import Graph
from tensorkiln.reference import evaluate
from tests import emulated
from tests.compiled import compiled, program, runs_here, unscheduled
from tests.models.exports import EXPORTS, TOLERANCE, Export, Run
from tests.models.families import FAMILIES, FILES, Family
from tests.numerics.cases.turns import EXAMPLES

LARGEST_MODEL: Final = 300_000
"""Bytes of an export with its weights, those that it repeats once."""

OTHER_CPUS: Final = ("bert-dynamo-static", "convnext-torchscript-static")
ON_A_GPU: Final = (
    "modernbert-torchscript-sequence",
    "gpt_step-dynamo-sequence",
    "convnext-dynamo-batch",
    "mobilenet-torchscript-static",
)
OLDER: Final = [
    (name, target)
    for place, name in enumerate(OTHER_CPUS)
    for turn, target in enumerate(("cpu:x86-64-v2", "cpu:x86-64-v3"))
    if EXAMPLES > 1 or place == turn
]
BY_NAME: Final = {str(export): export for export in EXPORTS}


def by_turns() -> Iterator[Export]:
    """Of each family one export that is static or of any batch, and one of any lengths where there are such."""
    for turn, family in enumerate(FAMILIES):
        forms = [form for form in family.forms if form != "sequence"]
        chosen = dict.fromkeys((forms[turn % len(forms)], *family.forms[len(forms) :]))
        for place, form in enumerate(chosen, turn // 2):
            exporter = family.exporters[place % len(family.exporters)]
            yield next(each for each in EXPORTS if (each.family, each.exporter, each.form) == (family, exporter, form))


COMPILED: Final = EXPORTS if EXAMPLES > 1 else (*by_turns(),)
"""What is compiled as well: with KILN_EXAMPLES all."""


def test_every_family_and_every_form_of_every_exporter_is_compiled() -> None:
    assert {each.family.name for each in COMPILED} == {each.family.name for each in EXPORTS}
    assert {(each.exporter, each.form) for each in COMPILED} == {(each.exporter, each.form) for each in EXPORTS}
    assert {each.family.name for each in COMPILED if each.form == "sequence"} == {
        each.family.name for each in EXPORTS if each.form == "sequence"
    }


def wrong(export: Export, model: Model, run: Run) -> dict[str, float]:
    """The outputs that are too far from torch's, and how far."""
    return {f"{export}: {name}": far for name, far in export.differences(model, run) if not far <= TOLERANCE}


@pytest.mark.parametrize(("family", "form"), sorted({(export.family.name, export.form) for export in EXPORTS}))
def test_a_model_gives_what_torch_gave_in_the_reference_and_compiled(family: str, form: str) -> None:
    done: list[tuple[Graph, Run]] = []
    for export in (export for export in EXPORTS if (export.family.name, export.form) == (family, form)):
        model = export.load()
        assert dict(model.graph.symbols) == export.family.bounds(form)
        assert wrong(export, model, partial(evaluate, model.graph)) == {}
        if export not in COMPILED:
            continue
        # Some models are the same graph in both exports.
        run = next((run for graph, run in done if graph == model.graph), None)
        run = run or program(compiled(model.graph), threads=2)
        done.append((model.graph, run))
        assert wrong(export, model, run) == {}


@pytest.mark.parametrize(("name", "target"), OLDER)
def test_an_export_gives_what_torch_gave_compiled_for_an_older_processor(name: str, target: str) -> None:
    if not runs_here(target):
        pytest.skip("this machine lacks instructions of the target")
    export = BY_NAME[name]
    model = export.load()
    assert wrong(export, model, program(compiled(model.graph, target))) == {}


@pytest.mark.parametrize("name", [*OTHER_CPUS[:1], *ON_A_GPU])
def test_an_export_gives_what_torch_gave_lowered_by_the_passes_of_mlir_alone(name: str) -> None:
    export = BY_NAME[name]
    model = export.load()
    assert wrong(export, model, program(unscheduled(model.graph))) == {}


@pytest.mark.parametrize("name", ON_A_GPU)
def test_an_export_gives_what_torch_gave_in_the_emulator_of_a_gpu(name: str) -> None:
    export = BY_NAME[name]
    model = export.load()
    assert wrong(export, model, emulated.ready(model.graph)) == {}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_outputs_of_a_model_differ_enough_to_show_an_error(family: Family) -> None:
    proto = onnx.load(family.path("dynamo", "static"), load_external_data=False)
    names = [f"{number}.{output.name}" for number in range(len(family.sizes)) for output in proto.graph.output]
    with np.load(family.samples) as samples:
        spreads = {name: float(samples[name].std() / np.abs(samples[name]).max()) for name in names}
    assert {name: spread for name, spread in spreads.items() if not spread > 0.05} == {}


@pytest.mark.parametrize("export", EXPORTS, ids=str)
def test_an_export_is_small_and_says_nothing_of_where_it_was_made(export: Export) -> None:
    text = export.path.read_bytes()
    proto = onnx.load_model_from_string(text)
    places = {tuple(entry.value for entry in tensor.external_data) for tensor in proto.graph.initializer} - {()}
    assert len(text) + sum(int(length) for _, _, length in places) <= LARGEST_MODEL
    assert b"stack_trace" not in text
    assert b".py" not in text


def test_every_file_belongs_to_an_export() -> None:
    known = {path for export in EXPORTS for path in (export.path, export.family.samples, export.family.weights)}
    assert {path for path in FILES.rglob("*") if path.is_file()} == known
