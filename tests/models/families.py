"""The models of this folder: their dynamic dims, the bounds of these, and the sizes that torch was asked at.

`tests.models.export` makes the files from this; it needs torch, and nothing here does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

FILES: Final = Path(__file__).parent / "files"

EXPORTERS: Final = ("dynamo", "torchscript")
"""`torch.onnx.export` with `dynamo=True`, and with `dynamo=False` at opset 17."""

FORMS: Final = ("static", "batch", "sequence")
"""Every dim fixed; a dynamic batch; a dynamic batch and dynamic lengths: of these, what a family has."""

BATCH: Final[tuple[int, int]] = (1, 32)
"""The smallest and the largest dynamic batch."""


@dataclass(frozen=True, slots=True)
class Family:
    """An architecture, exported in two or three forms by each exporter that can.

    `lengths` are the dims beside the batch that are dynamic in the form `sequence`, with the smallest and the largest
    size of each; `has_batch` says whether there is a batch. `sizes` are the sizes that torch was asked at: those of the
    static export, then another batch, then other lengths too.
    """

    name: str
    sizes: tuple[dict[str, int], ...]
    lengths: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    exporters: tuple[str, ...] = EXPORTERS
    has_batch: bool = True

    @property
    def forms(self) -> tuple[str, ...]:
        """`static`, `batch` where there is one, and `sequence` where there are lengths."""
        dynamic = {"batch": self.has_batch, "sequence": bool(self.lengths)}
        return tuple(form for form in FORMS if dynamic.get(form, True))

    def bounds(self, form: str) -> dict[str, tuple[int, int]]:
        """The dynamic dims of a form with the smallest and the largest size of each."""
        batch = {"batch": BATCH} if self.has_batch else {}
        return {"static": {}, "batch": batch, "sequence": {**batch, **self.lengths}}[form]

    def asked(self, form: str) -> tuple[int, ...]:
        """The numbers of the sizes that an export of this form takes."""
        return {"static": (0,), "batch": (0, 1), "sequence": (0, len(self.sizes) - 1)}[form]

    def path(self, exporter: str, form: str) -> Path:
        """The export; its larger weights lie beside it."""
        return FILES / self.name / f"{exporter}_{form}.onnx"

    @property
    def weights(self) -> Path:
        """The larger weights of all exports of the family, each once."""
        return FILES / self.name / "weights.bin"

    @property
    def samples(self) -> Path:
        """Inputs and torch's outputs: arrays called `<number of the size>.<name of the input or output>`."""
        return FILES / self.name / "samples.npz"


def _batches(name: str, *batches: int, exporters: tuple[str, ...] = EXPORTERS) -> Family:
    return Family(name, tuple({"batch": batch} for batch in batches), exporters=exporters)


_DYNAMO_ALONE: Final = EXPORTERS[:1]
"""The other exporter has no RMSNorm, and writes another graph than message passing is: ONNX Runtime gives the same."""
_TOKENS: Final = {"tokens": (1, 48)}

FAMILIES: Final = (
    Family("bert", ({"batch": 2, "tokens": 37}, {"batch": 8, "tokens": 37}, {"batch": 3, "tokens": 13}), _TOKENS),
    Family("modernbert", ({"batch": 2, "tokens": 37}, {"batch": 5, "tokens": 37}, {"batch": 3, "tokens": 43}), _TOKENS),
    Family(
        "gpt",
        (
            {"batch": 2, "tokens": 5, "past": 14},
            {"batch": 3, "tokens": 5, "past": 14},
            {"batch": 3, "tokens": 2, "past": 9},
        ),
        {**_TOKENS, "past": (1, 32)},
    ),
    Family(
        "gpt_step", ({"batch": 2, "past": 13}, {"batch": 3, "past": 13}, {"batch": 1, "past": 26}), {"past": (1, 64)}
    ),
    Family("llama", ({"batch": 3, "tokens": 29}, {"batch": 5, "tokens": 29}, {"batch": 1, "tokens": 35}), _TOKENS),
    _batches("vit", 2, 5),
    _batches("swin", 1, 2),
    _batches("convnext", 1, 2),
    _batches("mobilenet", 1, 3),
    _batches("efficientnet", 1, 3),
    _batches("resnet", 1, 2),
    _batches("unet", 1, 2),
    _batches("mixer", 1, 5),
    Family(
        "whisper",
        ({"batch": 2, "frames": 74}, {"batch": 4, "frames": 74}, {"batch": 3, "frames": 33}),
        {"frames": (2, 96)},
    ),
    _batches("dlrm", 19, 6),
    Family(
        "encoder_decoder",
        (
            {"batch": 3, "tokens": 7, "target": 5},
            {"batch": 2, "tokens": 7, "target": 5},
            {"batch": 2, "tokens": 13, "target": 22},
        ),
        {"tokens": (2, 40), "target": (2, 40)},
        _DYNAMO_ALONE,
    ),
    _batches("selective_scan", 3, 5, exporters=_DYNAMO_ALONE),
    _batches("recurrence", 3, 5),
    Family(
        "message_passing",
        ({"nodes": 6, "edges": 9}, {"nodes": 11, "edges": 30}),
        {"nodes": (2, 64), "edges": (2, 128)},
        _DYNAMO_ALONE,
        has_batch=False,
    ),
)
